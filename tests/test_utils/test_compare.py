import numpy as np
import pytest

import mxnet as mx
from mxnet import test_utils as tu


def test_default_tolerances_follow_the_less_precise_type():
    a32, a64, a16 = (np.ones(2, dtype=d) for d in ("float32", "float64", "float16"))
    assert tu.get_tols(a64, a64, None, None) == (1e-5, 1e-20)
    assert tu.get_tols(a64, a32, None, None) == (1e-4, 1e-3)
    assert tu.get_tols(a16, a32, None, None) == (1e-2, 1e-1)
    assert tu.get_tols(1, 2, None, None) == (0, 0)
    assert tu.get_tols(a32, a16, {np.dtype("float16"): 0.5}, 0.25) == (0.5, 0.25)
    assert tu.get_rtol() == 1e-5 and tu.get_atol(dtype=np.dtype("float32")) == 1e-3 and tu.get_etol() == 0
    assert tu.default_numeric_eps()[np.dtype("float16")] == 2 ** -6


def test_equal_arrays_pass():
    tu.assert_almost_equal(mx.nd.array([1, 2]), mx.nd.array([1, 2.0001]))
    tu.assert_almost_equal(np.array([1.0, np.inf]), mx.nd.array([1, np.inf], dtype="float64"))
    tu.assert_almost_equal(np.array([1.0, 1.0]), 1.0)
    tu.assert_almost_equal(mx.nd.array([np.nan]), mx.nd.array([np.nan]), equal_nan=True)
    tu.assert_almost_equal(np.array([True]), np.array([True]))
    tu.assert_almost_equal(mx.nd.ones((2,), dtype="bfloat16"), mx.nd.ones((2,)))


def test_message_names_the_worst_place(capsys):
    a, b = np.zeros((2, 3)), np.zeros((2, 3))
    a[1, 2], a[0, 1] = 0.5, 0.25
    with pytest.raises(AssertionError) as error:
        tu.assert_almost_equal(a, b, rtol=0, atol=0.1, names=("mine", "theirs"))
    text = str(error.value)
    assert "Error 5.000000 exceeds tolerance rtol=0.000000e+00, atol=1.000000e-01 (mismatch 33.333333%)." in text
    assert "Location of maximum error: (1, 2), mine=0.50000000, theirs=0.00000000" in text
    out = capsys.readouterr().out
    assert "*** Maximum errors for vector of size 6:  rtol=0, atol=0.1" in out
    assert "  1: Error 5.000000  Location of error: (1, 2)" in out and "  2: Error 2.500000  Location of error: (0, 1)" in out


def test_few_mismatches_are_counted():
    with pytest.raises(AssertionError, match=r"mismatch at least 3.000000%"):
        tu.assert_almost_equal(np.ones(100), np.zeros(100), rtol=0, atol=0.1, mismatches=(1, 2))
    with pytest.raises(AssertionError, match=r"mismatch 100.000000%"):
        tu.assert_almost_equal(np.ones(100), np.zeros(100), rtol=0, atol=0.1, mismatches=(1, 0))


@pytest.mark.parametrize("a, b", [(np.nan, 1.0), (1.0, np.nan), (np.nan, np.nan), (np.inf, 1.0), (True, False), (3, 4)])
def test_different_values_fail(a, b):
    with pytest.raises(AssertionError):
        tu.assert_almost_equal(np.array([0, a]), np.array([0, b]), rtol=0.01, atol=0.1)
    with pytest.raises(AssertionError):
        tu.assert_almost_equal(np.array(a), np.array(b), rtol=0.01, atol=0.1)


def test_shapes():
    with pytest.raises(AssertionError, match=r"arrays of one shape expected, received \(2,\) and \(1,\)"):
        tu.assert_almost_equal(mx.nd.ones((2,)), mx.nd.ones((1,)), use_broadcast=False)
    tu.assert_almost_equal(mx.nd.ones((2,)), mx.nd.ones((1,)))


def test_a_share_may_be_wrong():
    a, b = np.zeros(10), np.zeros(10)
    a[3] = 1
    tu.assert_almost_equal_with_err(a, b, rtol=0, atol=0.1, etol=0.1)
    with pytest.raises(AssertionError, match="mismatch 10.0"):
        tu.assert_almost_equal_with_err(a, b, rtol=0, atol=0.1, etol=0.05)
    with pytest.raises(AssertionError):
        tu.assert_almost_equal_with_err(a, b)


def test_other_comparisons():
    assert tu.same(mx.nd.ones((2,)), np.ones(2)) and not tu.same(np.ones(2), np.ones(3))
    assert tu.almost_equal(np.ones(2), np.ones(2) + 1e-7) and not tu.almost_equal(np.ones(2), np.ones(2) + 1e-3)
    tu.assert_almost_equal_ignore_nan(np.array([np.nan, 1]), np.array([5, 1.0]))
    with pytest.raises(AssertionError):
        tu.assert_allclose(np.ones(2), np.ones(2) + 1e-6)
    x = mx.nd.ones((2,))
    assert tu.same_array(x, x.reshape((1, 2)).reshape((2,))) and not tu.same_array(x, x.copy())
    assert x.asnumpy().tolist() == [1, 1]
    tu.assert_exception(int, ValueError, "x")
    with pytest.raises(AssertionError, match="int did not raise ValueError"):
        tu.assert_exception(int, ValueError, "1")


def test_the_largest_violation():
    a, b = np.array([[1.0, 2.0], [3.0, np.inf]]), np.array([[1.0, 2.5], [3.0, np.inf]])
    place, violation = mx.test_utils._find_max_violation(a, b, 0.1, 0.0)
    assert tuple(map(int, place)) == (0, 1) and round(float(violation), 6) == 2
