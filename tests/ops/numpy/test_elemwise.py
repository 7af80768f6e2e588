"""Elementwise operators of mx.np: types and errors; values where MXNet differs from NumPy, or NumPy has none."""
import numpy as onp
import pytest
import torch

from mxnet import MXNetError
from mxnet.ops import get

UNARY = """negative sign rint ceil floor fix square sqrt cbrt reciprocal exp expm1 log log2 log10 log1p sin cos tan arcsin arccos arctan sinh cosh
           tanh arcsinh arctanh degrees radians""".split()


@pytest.mark.parametrize("name", UNARY)
def test_functions_of_one_array_are_numpy_s(name):
    x = onp.array([0.25, 0.5, 0.75])
    torch.testing.assert_close(get(f"_npi_{name}")(torch.from_numpy(x)), torch.from_numpy(getattr(onp, name)(x)))
    with pytest.raises(MXNetError, match=f"_npi_{name}: not supported for boolean arrays"):
        get(f"_npi_{name}")(torch.tensor([True]))


SPECIAL = [-float("inf"), -1.0, 0.0, float("inf"), float("nan")]


@pytest.mark.parametrize("name", ["logical_not", "isnan", "isinf", "isfinite", "isposinf", "isneginf"])
def test_tests_of_elements_are_boolean(name):
    found = get(f"_npi_{name}")(torch.tensor(SPECIAL))
    assert found.dtype is torch.bool and found.tolist() == getattr(onp, name)(onp.array(SPECIAL)).tolist()


def test_rounding_to_decimals():
    around = get("_npi_around")
    assert around(torch.tensor([1.25, 1.75, -2.5], dtype=torch.float64), decimals=1).tolist() == [1.2, 1.8, -2.5]
    assert around(torch.tensor([14, 15, 26]), decimals=-1).tolist() == [10, 20, 30]


def test_what_is_no_number_becomes_one():
    found = get("_npi_nan_to_num")(torch.tensor([float("nan"), float("inf"), -float("inf"), 2.0]), nan=7.0, posinf=8.0)
    assert found.tolist()[0] == 7 and found.tolist()[1] == 8 and found.tolist()[2] == torch.finfo(torch.float32).min and found.tolist()[3] == 2


@pytest.mark.parametrize("name, lhs, rhs, expected", [
    ("add", [True, False], [True, True], [True, True]), ("multiply", [True, False], [True, True], [True, False]),
    ("mod", [5, -5, 5, 5], [3, 3, -3, 0], [2, 1, -1, 0]), ("power", [2, 3], [3, 2], [8, 9]), ("copysign", [3.0, -3.0], [-1.0, 1.0], [-3, 3]),
    ("ldexp", [3.0, 5.0], [2.0, -1.0], [12, 2.5]), ("arctan2", [1.0, 0.0], [0.0, 1.0], [onp.pi / 2, 0]), ("hypot", [3.0, 5.0], [4.0, 12.0], [5, 13])])
def test_values_of_two_arrays(name, lhs, rhs, expected):
    assert get(f"_npi_{name}")(torch.tensor(lhs), torch.tensor(rhs)).tolist() == pytest.approx(expected)


@pytest.mark.parametrize("name, lhs, rhs, expected", [
    ("add", "float32", "float64", "float64"), ("add", "int32", "float16", "float16"), ("multiply", "int8", "int32", "int32"),
    ("power", "int32", "int64", "int64"), ("add", "bool", "float32", "float32"), ("true_divide", "int32", "int32", "float32"),
    ("true_divide", "int64", "float64", "float64"), ("subtract", "float16", "int64", "float16"),
    ("hypot", "float32", "float64", "float64"), ("arctan2", "float16", "float32", "float32"), ("copysign", "float32", "int32", "float32")])
def test_types_of_results(name, lhs, rhs, expected):
    a, b = torch.ones(2, dtype=getattr(torch, lhs)), torch.ones(2, dtype=getattr(torch, rhs))
    found = get(f"_npi_{name}")(a, b)
    assert found.dtype is getattr(torch, expected)
    assert get(f"_npi_{name}").dtype_inference([a.dtype, b.dtype], [None])[1] == [found.dtype]


@pytest.mark.parametrize("name, lhs, rhs, text", [
    ("subtract", "bool", "bool", "_npi_subtract: not supported for boolean arrays"),
    ("subtract", "uint64", "int64", "do not mix, since no integer type holds both")])
def test_types_that_do_not_go_together(name, lhs, rhs, text):
    a, b = torch.ones(2, dtype=getattr(torch, lhs)), torch.ones(2, dtype=getattr(torch, rhs))
    with pytest.raises(MXNetError, match=text):
        get(f"_npi_{name}")(a, b)


def test_bits():
    a, b = torch.tensor([6, 3]), torch.tensor([3, 3])
    assert [get(f"_npi_bitwise_{n}")(a, b).tolist() for n in ("and", "or", "xor")] == [[2, 3], [7, 3], [5, 0]]
    assert get("_npi_bitwise_not")(a).tolist() == [-7, -4] and get("_npi_bitwise_not")(torch.tensor([True])).tolist() == [False]
    with pytest.raises(MXNetError, match="integer and boolean types, not float32"):
        get("_npi_bitwise_not")(torch.ones(1))
    with pytest.raises(MXNetError, match="integers or booleans expected, received float32"):
        get("_npi_bitwise_and")(torch.ones(1), torch.ones(1))


def test_constraints_are_checked():
    check = get("_npx_constraint_check")
    assert check(torch.tensor([True, True]), msg="never").item() is True
    with pytest.raises(ValueError, match="^scale must be above 0"):
        check(torch.tensor([True, False]), msg="scale must be above 0")
    with pytest.raises(MXNetError, match="`input` must be boolean, received float32"):
        check(torch.ones(1), msg="x")


@pytest.mark.parametrize("dtype", [torch.int8, torch.int32, torch.int64])
def test_lcm_of_the_smallest_integer(dtype):
    """Its greatest common divisor with 5 comes out as -1, by which no processor divides it."""
    low = torch.iinfo(dtype).min
    a, b = torch.tensor([low, 6, 0, low, -4], dtype=dtype), torch.tensor([5, -4, 3, low, 6], dtype=dtype)
    expected = [(abs(low * 5) - low) % (1 << torch.iinfo(dtype).bits) + low, 12, 0, low, 12]
    found = get("_npi_lcm")(a, b).tolist()
    assert [found[1:], abs(found[0])] == [expected[1:], abs(expected[0])]
    assert get("_npi_lcm_scalar")(a[:2], scalar=5).tolist() == [found[0], 30]
