import numpy as np
import pytest
import torch

from mxnet.base import MXNetError
from mxnet.ops.registry import get

FLOATS = [-7.5, -2.0, -0.0, 0.0, 1.0, 3.5, float("inf"), float("-inf"), float("nan")]


@pytest.mark.parametrize("name", ["floor_divide", "fmod", "fmax", "fmin", "logaddexp"])
def test_floating_point_numbers_as_in_numpy(name):
    a, b = (x.ravel() for x in np.meshgrid(np.array(FLOATS), np.array(FLOATS)))
    with np.errstate(all="ignore"):
        expected = getattr(np, name)(a, b)
        if name == "floor_divide":  # of infinite numbers NumPy has none, the array API standard the quotient
            expected = np.where(np.isinf(a) | np.isinf(b), np.floor(a / b), expected)
    found = get(f"_npi_{name}")(torch.from_numpy(a), torch.from_numpy(b)).numpy()
    np.testing.assert_allclose(found, expected, rtol=1e-14)


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64", "uint8", "uint16", "uint32"])
@pytest.mark.parametrize("name", ["floor_divide", "fmod", "fmax", "fmin", "gcd", "bitwise_left_shift", "bitwise_right_shift"])
def test_integers_as_in_numpy(name, dtype):
    info = np.iinfo(dtype)
    shifts = name.endswith("shift")
    lhs = np.array([0, 1, 7, info.max, info.min, info.max // 3], dtype)
    rhs = np.array([0, 1, 3, 7] if shifts else [0, 1, 3, info.max, *([-1] if info.min else [])], dtype)
    a, b = (x.ravel().copy() for x in np.meshgrid(lhs, rhs))
    with np.errstate(all="ignore"):
        expected = getattr(np, {"bitwise_left_shift": "left_shift", "bitwise_right_shift": "right_shift"}.get(name, name))(a, b)
    found = get(f"_npi_{name}")(torch.from_numpy(a), torch.from_numpy(b)).numpy()
    assert found.dtype == expected.dtype and found.tolist() == expected.tolist()


def test_all_bits_may_be_moved_out():
    a = torch.tensor([1, -1, 127], dtype=torch.int8)
    assert get("_npi_bitwise_left_shift")(a, torch.full_like(a, 8)).tolist() == [0, 0, 0]


def test_numbers_on_either_side():
    n = torch.tensor([7, -7], dtype=torch.int32)
    assert get("_npi_floor_divide_scalar")(n, scalar=2.0).tolist() == [3, -4]
    assert get("_npi_rfloor_divide_scalar")(n, scalar=20.0).tolist() == [2, -3]
    assert get("_npi_fmod_scalar")(n, scalar=4.0).tolist() == [3, -3] and get("_npi_rfmod_scalar")(n, scalar=9.0).tolist() == [2, 2]
    assert get("_npi_rbitwise_left_shift_scalar")(torch.tensor([1, 2]), scalar=3).tolist() == [6, 12]
    assert get("_npi_logical_xor_scalar")(n - 7, scalar=1.0).tolist() == [True, False]
    assert get("_npi_fmax_scalar")(torch.tensor([float("nan"), 3.0]), scalar=2.0).tolist() == [2.0, 3.0]


def test_types_mix():
    out = get("_npi_floor_divide")(torch.tensor([7], dtype=torch.uint8), torch.tensor([-2], dtype=torch.int8))
    assert out.dtype is torch.int16 and out.tolist() == [-4]
    assert get("_npi_logaddexp")(torch.tensor([0]), torch.tensor([0])).dtype is torch.float32
    for name in ("floor_divide", "logaddexp", "logical_and"):
        types = [torch.int32, torch.float16]
        assert get(f"_npi_{name}").dtype_inference(types, [None])[1] == [get(f"_npi_{name}")(*(torch.ones(1, dtype=t) for t in types)).dtype]


@pytest.mark.parametrize("name", ["gcd", "bitwise_left_shift"])
def test_integers_are_expected(name):
    with pytest.raises(MXNetError, match=f"_npi_{name}: integers or booleans expected, received float32; convert with astype"):
        get(f"_npi_{name}")(torch.ones(1), torch.ones(1))
