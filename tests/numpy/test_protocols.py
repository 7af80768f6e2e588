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


def test_mixing_with_numpy_arrays_is_refused():
    x, plain = np.array([1.0]), onp.array([1.0])
    for mix in (lambda: x + plain, lambda: onp.add(plain, x), lambda: onp.concatenate([plain, x])):
        with pytest.raises(TypeError):
            mix()


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
