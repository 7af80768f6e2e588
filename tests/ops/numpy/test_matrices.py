import numpy as np
import pytest
import torch

from mxnet.base import MXNetError
from mxnet.ops.registry import get


@pytest.mark.parametrize("shapes, axes", [(((3,), (3,)), {}), (((2, 3), (3,)), {}), (((4, 2), (4, 3)), {}), (((2,), (2,)), {}),
                                          (((3, 5), (5, 3)), {"axisa": 0}), (((3, 2, 4), (3, 2, 4)), {"axisa": 0, "axisb": 0, "axisc": 0})])
@pytest.mark.filterwarnings("ignore:Arrays of 2-dimensional vectors:DeprecationWarning")
def test_cross_products_as_in_numpy(shapes, axes):
    random = np.random.RandomState(0)
    a, b = (random.randint(-9, 9, s).astype("float64") for s in shapes)
    given = {f"{k[-1]}_axis": v for k, v in axes.items()}
    out = get("_npi_cross")(torch.from_numpy(a), torch.from_numpy(b), **given)
    assert out.tolist() == np.cross(a, b, **axes).tolist()
    full = get("_npi_cross").with_defaults(given)
    assert get("_npi_cross").shape_inference([a.shape, b.shape], [None], **full)[1] == [tuple(out.shape)]


def test_vectors_have_two_or_three_elements():
    with pytest.raises(MXNetError, match="vectors of 2 or 3 elements expected, received 4 and 3"):
        get("_npi_cross")(torch.ones(4), torch.ones(3))


def test_kronecker_products():
    a = torch.tensor([[1, 2]], dtype=torch.uint16)
    out = get("_npi_kron")(a, torch.tensor([1, 300], dtype=torch.uint16))
    assert out.dtype is torch.uint16 and out.tolist() == [[1, 300, 2, 600]]


def test_triangles():
    assert get("_npi_tri")(N=2, M=3, k=-1, dtype=torch.int32).tolist() == [[0, 0, 0], [1, 0, 0]]
    assert get("_npi_triu")(torch.tensor([1, 2], dtype=torch.uint32)).tolist() == [[1, 2], [0, 2]]
    with pytest.raises(MXNetError, match="at least one axis expected, received a scalar"):
        get("_npi_triu")(torch.tensor(1.0))


def test_cumulative_products():
    assert get("_npi_cumprod")(torch.tensor([2, 3, 4])).tolist() == [2, 6, 24]
    assert get("_npi_cumprod")(torch.tensor([True, False])).dtype is torch.int64
    out = get("_npi_cumprod")(torch.tensor([[2, 200], [3, 200]], dtype=torch.uint16), axis=0)
    assert out.dtype is torch.uint16 and out.tolist() == [[2, 200], [6, 40000]]
