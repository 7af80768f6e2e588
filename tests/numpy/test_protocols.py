"""NumPy's functions on mx.np arrays, and what mx.np hands to NumPy."""
import numpy as onp
import pytest

import mxnet as mx
from mxnet import autograd, np, npx


@pytest.fixture(autouse=True)
def numpy_semantics():
    npx.set_np()
    yield
    npx.reset_np()


def test_numpy_calls_ours():
    x = np.array([1.0, 2.0])
    for result, expected in ((onp.mean(x), 1.5), (onp.add(x, x), [2.0, 4.0]), (onp.concatenate([x, x]), [1.0, 2.0, 1.0, 2.0]),
                             (onp.divide(x, 2), [0.5, 1.0]), (onp.linalg.norm(x), 2.2360680103302), (onp.absolute(-x), [1.0, 2.0])):
        assert type(result) is np.ndarray
        assert result.tolist() == pytest.approx(expected)


def test_recorded_through_numpy():
    x = np.array([1.0, 2.0])
    x.attach_grad()
    with autograd.record():
        y = onp.sum(onp.multiply(x, x))
    y.backward()
    assert x.grad.tolist() == [2.0, 4.0]


def test_arrays_mix_with_those_of_numpy():
    x, plain = np.array([1.0, 2.0]), onp.array([3.0, 4.0])
    for result, expected in ((x + plain, [4.0, 6.0]), (plain - x, [2.0, 2.0]), (onp.add(plain, x), [4.0, 6.0]), (np.multiply(x, plain), [3.0, 8.0]),
                             (x @ plain, 11.0), (plain @ x, 11.0), (plain > x, [True, True]), (x == plain, [False, False]),
                             (onp.concatenate([plain.astype("float32"), x]), [3.0, 4.0, 1.0, 2.0])):
        assert type(result) is np.ndarray and result.tolist() == expected
    assert (x + plain).dtype == onp.float64 and (x + plain.astype("int64")).dtype == onp.float32
    x *= plain.astype("float32")
    plain += x
    assert type(x) is np.ndarray and x.tolist() == [3.0, 8.0]
    assert type(plain) is onp.ndarray and plain.tolist() == [6.0, 12.0]
    whole = np.array([6, 5], dtype="int32")
    whole ^= onp.array([3, 1], "int32")
    assert whole.tolist() == [5, 4] and (whole << onp.array([1, 2], "int32")).tolist() == [10, 16]
    with pytest.raises(TypeError, match="not supported"):
        x + onp.array(["text"])
    with autograd.record(), pytest.raises(TypeError):
        onp.add(x, object())


def test_memory_is_compared_with_that_of_numpy_arrays():
    plain = onp.zeros(4, "float32")
    x = npx.from_numpy(plain)
    assert onp.shares_memory(plain, x) and onp.may_share_memory(x, plain[:2]) and not onp.shares_memory(plain[:2], x[2:])
    assert not onp.shares_memory(plain, x.copy())


def test_gradients_flow_past_arrays_of_numpy():
    x = np.array([1.0, 2.0])
    x.attach_grad()
    with autograd.record():
        y = (onp.array([3.0, 4.0], "float32") * x).sum()
    y.backward()
    assert x.grad.tolist() == [3.0, 4.0]


def test_lazy_import_registers_operators():
    assert mx.ops.get("_npi_add").name == "_npi_add"
    assert mx.ops.get("_npx_nonzero") is mx.ops.get("_npi_nonzero")


def test_several_results_come_as_from_the_installed_numpy():
    x = np.array([[2.0, 0.0], [0.0, 3.0]])
    for name in ("linalg.eig", "linalg.eigh", "broadcast_arrays", "meshgrid", "atleast_2d"):
        function = onp
        for part in name.split("."):
            function = getattr(function, part)
        arguments = (x,) if "linalg" in name else (x, x) if name != "meshgrid" else (x[0], x[0])
        result = function(*arguments)
        assert type(result) is type(function(*(a.asnumpy() for a in arguments))), name
        assert all(type(r) is np.ndarray for r in result), name
    values, vectors = onp.linalg.eig(x)
    assert values.tolist() == [2.0, 3.0] and vectors.tolist() == [[1.0, 0.0], [0.0, 1.0]]
    assert type(np.linalg.eig(x)) is tuple


def test_functions_that_programs_implement():
    from mxnet.numpy.protocols import _functions

    @mx.numpy_dispatch_protocol._implements(onp.setxor1d)
    def own(a, b):
        return "own"

    try:
        assert onp.setxor1d(mx.np.ones(1), mx.np.ones(1)) == "own" and own(1, 2) == "own"
    finally:
        del _functions[onp.setxor1d]


def test_arrays_beside_plain_numbers():
    """NumPy's own function of numbers asks the array, which must not ask back."""
    out = np.zeros(3)
    assert np.copysign(1, -2, out) is out and out.tolist() == [-1, -1, -1]
    with pytest.raises(TypeError, match="tile: an array of mx.np was given where numbers are expected"):
        np.tile(3, np.array([2]))
    assert onp.add(np.array([1]), 2).tolist() == [3]  # and later calls work
