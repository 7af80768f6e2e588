"""What the tables of tests/numpy/functions, and the tests of ops/numpy, are checked with."""
import pytest

from mxnet import autograd, np
from mxnet.ndarray import dispatch
from mxnet.ops import registry


def assert_close(array, expected):
    """Values and their Python types (int, float, bool) agree."""
    got = array.asnumpy().tolist()
    assert _same(got, expected), got


def _same(got, expected):
    if isinstance(expected, list):
        return isinstance(got, list) and len(got) == len(expected) and all(_same(g, e) for g, e in zip(got, expected))
    return type(got) is type(expected) and got == pytest.approx(expected, rel=1e-4, abs=1e-5, nan_ok=True)


def check_value(compute, dtype, expected):
    """``compute()`` is an ``mx.np.ndarray`` of this type with these values."""
    result = compute()
    assert type(result) is np.ndarray
    assert str(result.dtype) == dtype
    assert_close(result, expected)


def check_gradients(compute, x, y, x_grad, y_grad):
    """The gradients of ``compute(x, y)``; `y` may be None."""
    x, y = x.copy(), None if y is None else y.copy()
    for array in (x, y):
        if array is not None:
            array.attach_grad()
    with autograd.record():
        result = compute(x, y)
    result.backward()
    assert_close(x.grad, x_grad)
    if y is not None:
        assert_close(y.grad, y_grad)


def call(name, *arrays, **attributes):
    """What an operator makes of arrays of mx.np, called by its internal name as MXNet's front end does, as a list."""
    return dispatch.invoke(registry.get(name), list(arrays), {k: str(v) for k, v in attributes.items()}, None, np.ndarray).asnumpy().tolist()


def ruled(name, *shapes, **attributes):
    """The shapes of the results as the operator's shape rule alone says them; sizes of -1, and shapes that are None, are not known."""
    operator = registry.get(name)
    parsed = operator.parse(attributes)
    _, outs = operator.shape_inference(list(shapes), [None] * operator.outputs(parsed), **operator.with_defaults(parsed))
    return outs[0] if len(outs) == 1 else outs
