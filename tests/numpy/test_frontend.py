import pytest

import mxnet as mx
from mxnet import np
from mxnet.ndarray import dispatch
from mxnet.numpy.frontend import TABLE, bind

SPACES = {"": mx.np, "linalg": mx.np.linalg, "random": mx.np.random, "npx.random": mx.npx.random}
FUNCTIONS = {f"{SPACES[space].__name__}.{name}": getattr(SPACES[space], name) for space, names in TABLE.items() for name in names}


def test_every_function_has_an_example_of_its_own():  # which pytest runs
    silent = []
    for name, function in FUNCTIONS.items():
        shown = name.replace("mxnet.numpy_extension", "mx.npx").replace("mxnet.numpy", "mx.np")
        if f"{shown}(" not in function.__doc__.partition("Example\n")[2]:
            silent.append(name)
    assert not silent, f"functions without an example in their docstring: {silent}"


def test_other_names_of_a_function_stand_in_its_example():
    assert ">>> mx.np.max(" in mx.np.max.__doc__ and ">>> mx.np.amax(" in mx.np.amax.__doc__
    assert ">>> mx.np.bitwise_not(" not in mx.np.invert.__doc__


def test_the_example_of_an_operator_of_the_same_name_but_another_function_is_not_taken():
    def power(F, a):
        """Numbers with a density."""

    assert bind(power, None, "power", "mxnet.numpy.random").__doc__ == "Numbers with a density."
    assert "mx.np.power(" in bind(power, None, "power", "mxnet.numpy").__doc__


@pytest.mark.parametrize("name", ["sum", "prod", "mean", "std", "var", "max", "min", "all", "any", "argmax", "argmin"])
def test_reductions_are_the_same_on_the_short_way_and_the_general_one(name):
    function = getattr(np, name)
    for dtype in ("float32", "float64", "int32", "bool"):
        if dtype == "bool" and name in ("std", "var", "argmax", "argmin"):
            continue
        x = np.array([[3, 1, 2], [0, 5, 5]], dtype=dtype)
        calls = [((), {}), ((1,), {}), ((-1,), {}), ((), {"axis": 0}), ((None,), {}), ((), {"axis": None})]
        for args, kwargs in calls:
            axis = args[0] if args else kwargs.get("axis")
            general = function(x, axis=axis, **({} if name.startswith("arg") else {"keepdims": False}))
            ways = [function(x, *args, **kwargs), getattr(x, name)(*args, **kwargs)]
            for found in ways:
                assert type(found) is np.ndarray and found.dtype == general.dtype and found.shape == general.shape
                assert found.asnumpy().tolist() == general.asnumpy().tolist()
    for axis in (2, -3):
        for call in (lambda axis=axis: function(x, axis), lambda axis=axis: function(x, axis=axis), lambda axis=axis: getattr(x, name)(axis)):
            with pytest.raises(mx.MXNetError, match=rf"`axis` must be in \[-2, 1\] for 2-D data, received {axis}"):
                call()


def test_reductions_are_recorded_and_observed():
    x = np.array([[3.0, 1.0], [2.0, 3.0]])
    x.attach_grad()
    with mx.autograd.record():
        y = np.sum(x) + x.max() + np.mean(x, 1).sum()
    y.backward()
    assert x.grad.asnumpy().tolist() == [[2.5, 1.5], [1.5, 2.5]]
    seen = []
    before, dispatch.observer = dispatch.observer, lambda *event: seen.append(event[0])
    try:
        np.sum(x.detach())
        x.detach().max()
    finally:
        dispatch.observer = before
    assert [name for name in seen if name.startswith("_np_")] == ["_np_sum", "_np_max"]
