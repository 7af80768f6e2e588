import numpy as np
import pytest
import torch

from mxnet.base import MXNetError
from mxnet.ops import dtypes
from mxnet.ops.numpy.promotion import common_type, number_beside, promoted_pair

INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]


@pytest.mark.parametrize("a", [*INTEGERS, "bool"])
@pytest.mark.parametrize("b", [*INTEGERS, "bool"])
def test_integers_and_booleans_have_numpys_common_type(a, b):
    expected = np.promote_types(a, b)
    types = dtypes.NAME_TO_TORCH[a], dtypes.NAME_TO_TORCH[b]
    if expected.kind == "f":  # uint64 and a signed type: NumPy leaves the integers
        with pytest.raises(MXNetError, match=f"add: the data types {a} and {b} do not mix, since no integer type holds both"):
            common_type("add", *types)
    else:
        assert dtypes.name_of(common_type("add", *types)) == expected.name


@pytest.mark.parametrize("integer", INTEGERS)
def test_floating_point_types_win(integer):
    assert common_type("add", dtypes.NAME_TO_TORCH[integer], torch.float16) is torch.float16
    assert common_type("add", torch.complex64, dtypes.NAME_TO_TORCH[integer]) is torch.complex64


def test_pairs_are_converted():
    a, b = promoted_pair("add", torch.tensor([200], dtype=torch.uint8), torch.tensor([-1], dtype=torch.int8))
    assert (a.dtype, b.dtype, a.tolist(), b.tolist()) == (torch.int16, torch.int16, [200], [-1])


def test_numbers_beside_arrays():
    data, number = number_beside(torch.tensor([3], dtype=torch.uint64), 2.0)
    assert data.dtype is number.dtype is torch.uint64 and number.item() == 2
    data, number = number_beside(torch.tensor([3], dtype=torch.int8), 2.5)
    assert data.dtype is number.dtype is torch.float32 and number.item() == 2.5
    assert number_beside(torch.tensor([3], dtype=torch.uint16), -1.0)[1].item() == 65535
    assert number_beside(torch.tensor([True]), 2.0)[0].dtype is torch.int64
