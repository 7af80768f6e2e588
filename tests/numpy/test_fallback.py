"""What mx.np hands to the official NumPy."""
import collections

import numpy as onp
import pytest

import mxnet as mx
from mxnet import autograd, np, npx
from mxnet.numpy import fallback


@pytest.fixture(autouse=True)
def numpy_semantics():
    npx.set_np()
    yield
    npx.reset_np()


def test_fallback():
    x = np.array([1.0, 2.0, 4.0])
    assert np.allclose(x, x) is True and np.ndim(x) == 1 and np.count_nonzero(x) == 3
    assert np.cov(x).item() == pytest.approx(2.3333333) and np.cov(x).dtype == onp.float64
    assert np.interp(np.array([1.5]), x, x).tolist() == [1.5]
    assert [p.tolist() for p in np.divmod(x, np.array([2.0, 2.0, 3.0]))] == [[0.0, 1.0, 1.0], [1.0, 0.0, 1.0]]
    assert onp.heaviside(x, x).tolist() == [1.0, 1.0, 1.0] and np.linalg.matrix_rank(np.eye(3)) == 3


def test_fallback_is_not_recorded():
    x = np.array([1.0])
    with autograd.record(), pytest.raises(ValueError, match=r"computed by NumPy, which autograd can't record"):
        np.interp(x, x, x)


def test_arrays_are_found_wherever_they_stand():
    Pair = collections.namedtuple("Pair", "a b")
    x = np.array([1.0, 2.0], ctx=mx.cpu(1))
    plain, ctx = fallback.to_official([Pair(x, 3), (x, "text")])
    assert type(plain[0]) is Pair and type(plain[0].a) is onp.ndarray and plain[0].b == 3 and plain[1][1] == "text" and ctx == mx.cpu(1)
    assert fallback.to_official(5) == (5, None)
    with pytest.raises(ValueError, match=r"arrays on one device expected, received cpu\(1\), cpu\(0\)"):
        fallback.to_official([x, np.ones(1)])


def test_results_come_back_as_ours():
    found = fallback.from_official([onp.arange(2), (onp.bool_(True), 3.5, None, "x", onp.dtype("int8"))], mx.cpu(1))
    assert type(found[0]) is np.ndarray and found[0].ctx == mx.cpu(1) and found[0].dtype == onp.int64
    assert found[1][0].item() is True and found[1][1:] == (3.5, None, "x", onp.dtype("int8"))
    texts = onp.array(["a"])
    assert fallback.from_official(texts, mx.cpu()) is texts  # no array of ours holds texts
    with pytest.raises(TypeError, match="<class 'object'>"):
        fallback.from_official(object(), mx.cpu())


def test_results_are_written_to_out():
    x, out = np.array([1.0, 4.0]), np.zeros(2)
    assert fallback.call_official(onp.positive, (x,), {"out": out}) is out and out.tolist() == [1, 4]


def test_functions_look_like_numpy_s():
    functions = fallback.functions()
    interp = functions["interp"]
    assert interp.__name__ == "interp" and interp.__module__ == "mxnet.numpy" and "numpy.interp" in interp.__doc__
    assert functions["in1d"](np.array([1, 2]), np.array([2])).tolist() == [False, True]  # under the name that NumPy dropped
    assert functions["msort"](np.array([[2.0], [1.0]])).tolist() == [[1], [2]]
    assert fallback.linalg_functions()["matrix_power"](np.array([[2.0]]), 3).item() == 8


def test_integrals_of_endless_order_are_refused():
    assert np.polyint([6, 2], 2).asnumpy().tolist() == [1, 1, 0, 0]
    with pytest.raises(ValueError, match="polyint: the order m must be at most 500, received 2147483647"):
        np.polyint([6, 2], 2 ** 31 - 1)


def test_texts_that_describe_no_type():
    with pytest.raises(TypeError, match="result_type: '\\(' was never closed"):
        np.result_type("(1,")
