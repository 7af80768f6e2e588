"""The functions of ``mx.nd``: how arguments are told apart, and what the functions look like."""
import builtins
import inspect
import sys
import types

import pytest

import mxnet as mx
from mxnet import autograd, nd
from mxnet.base import MXNetError, _Null
from mxnet.ndarray import NDArray, functions
from mxnet.ndarray.functions import call_shared, namespace_lookup, operator_function, signature, split_arguments
from mxnet.ops.registry import Operator, get

X, Y = nd.array([1, 2]), nd.array([3, 4])


def layer(data, weight, bias=None, *, size: int, flatten: bool = True):
    return data


def split(*args, op=None, **kwargs):
    inputs, attributes = split_arguments(op or Operator("layer", layer), args, kwargs, NDArray)
    return [None if i is None else "x" if i is X else "y" if i is Y else i for i in inputs], attributes


# -- arguments --------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("args, kwargs, inputs, attributes", [
    ((X, Y), {"size": 3}, ["x", "y"], {"size": 3}),
    ((X, Y, Y, 3, False), {}, ["x", "y", "y"], {"size": 3, "flatten": False}),
    ((X,), {"weight": Y, "size": 3}, ["x", "y"], {"size": 3}),
    ((), {"weight": Y, "data": X, "size": 3}, ["x", "y"], {"size": 3}),
    ((X,), {"bias": Y, "size": 3}, ["x", None, "y"], {"size": 3}),
    ((X, Y, None), {"size": 3}, ["x", "y"], {"size": 3}),
    ((X, Y, 3), {}, ["x", "y"], {"size": 3}),  # an attribute where an optional input was left out
    ((X, Y, None, 3), {"flatten": _Null}, ["x", "y"], {"size": 3}),
    ((X, Y, None, _Null, False), {}, ["x", "y"], {"flatten": False})])
def test_inputs_and_attributes(args, kwargs, inputs, attributes):
    assert split(*args, **kwargs) == (inputs, attributes)


@pytest.mark.parametrize("args, kwargs, error, message", [
    ((X, Y), {"data": X}, TypeError, "layer: input `data` was given twice"),
    ((X, Y, Y, 3), {"size": 3}, TypeError, "layer: `size` was given twice"),
    ((X, Y, Y, 3, True, 7), {}, TypeError, "layer takes at most 5 arguments, received 6")])
def test_arguments_that_do_not_fit(args, kwargs, error, message):
    with pytest.raises(error, match=message):
        split(*args, **kwargs)


@pytest.mark.parametrize("args, kwargs, inputs, attributes", [
    ((X, Y), {"dim": 0}, ["x", "y"], {"dim": 0}), (([X, Y],), {"dim": 0}, ["x", "y"], {"dim": 0}), (((X,),), {}, ["x"], {}),
    ((), {"data": [X, Y], "dim": 1}, ["x", "y"], {"dim": 1})])
def test_any_number_of_inputs(args, kwargs, inputs, attributes):
    assert split(*args, op=get("Concat"), **kwargs) == (inputs, attributes)


def test_attributes_of_operators_with_any_number_of_inputs_need_names():
    with pytest.raises(MXNetError, match="Concat: positional arguments must be arrays, received 0; give attributes by name"):
        split(X, Y, 0, op=get("Concat"))


def test_missing_inputs_are_named():
    with pytest.raises(MXNetError, match=r"FullyConnected expects 3 inputs \(data, weight, bias\), received 1"):
        nd.FullyConnected(X, num_hidden=2)
    with pytest.raises(MXNetError, match=r"FullyConnected expects 2 inputs \(data, weight\), received 1"):
        nd.FullyConnected(X, num_hidden=2, no_bias=True)
    with pytest.raises(MXNetError, match=r"broadcast_add expects 2 inputs \(lhs, rhs\), received 0"):
        nd.broadcast_add()


# -- the functions ---------------------------------------------------------------------------------------------------------------------------


def test_a_function_is_made_once_for_each_name_and_class():
    assert operator_function("relu") is operator_function("relu") is nd.relu
    assert operator_function("relu", mx.np.ndarray) is not nd.relu
    assert type(operator_function("_npx_relu", mx.np.ndarray)(mx.np.ones((1,)))) is mx.np.ndarray


def test_a_replaced_function_is_handed_out_from_then_on(monkeypatch):
    monkeypatch.setattr(functions, "_made", dict(functions._made))
    before = operator_function("relu")
    functions.replace("relu", before_or_not := lambda x: "replaced")
    assert operator_function("relu") is before_or_not and before is not before_or_not


def test_what_help_shows():
    function = nd.FullyConnected
    assert function.__name__ == function.__qualname__ == "FullyConnected" and function.__module__ == "mxnet.ndarray.op"
    description, _, rest = function.__doc__.partition("\nParameters\n----------\n")
    assert inspect.cleandoc(get("FullyConnected").__doc__) == description + rest[rest.index("\nRaises"):]
    assert rest.startswith("data : NDArray\nweight : NDArray\nbias : NDArray, optional\nnum_hidden : ")
    parameters = inspect.signature(function).parameters
    assert list(parameters)[:3] == ["data", "weight", "bias"] and list(parameters)[-3:] == ["out", "name", "kwargs"]
    assert parameters["num_hidden"].default is _Null and parameters["data"].default is None


def test_signatures_of_operators_with_any_number_of_inputs_and_of_sources():
    assert str(signature(get("Concat"))).startswith("(*data, ") and "num_args" in signature(get("Concat")).parameters
    assert signature(get("Concat")).parameters["dim"].kind is inspect.Parameter.KEYWORD_ONLY
    assert "ctx" in signature(get("_zeros")).parameters


def test_legacy_functions_on_numpy_s_arrays_return_such():
    assert type(nd.FullyConnected(mx.np.ones((1, 2)), mx.np.ones((3, 2)), num_hidden=3, no_bias=True)) is mx.np.ndarray


def test_functions_return_memory_of_their_own():
    x = marked = nd.array([[1, 2], [3, 4]])
    marked.attach_grad()
    with autograd.record():
        y = nd.reshape(x, shape=(4,))
    y.backward()
    assert x.grad.asnumpy().tolist() == [[1, 1], [1, 1]]
    copy = nd.flatten(x)
    copy[:] = 0
    assert x.asnumpy().tolist() == [[1, 2], [3, 4]]


def test_call_shared_returns_the_memory_of_its_input():
    x = nd.array([[1, 2], [3, 4]])
    call_shared("expand_dims", x, axis=0)[:] = 7
    assert x.asnumpy().tolist() == [[7, 7], [7, 7]]
    assert type(call_shared("squeeze", mx.np.ones((1, 2)))) is mx.np.ndarray


# -- namespaces ---------------------------------------------------------------------------------------------------------------------------------


@pytest.fixture
def module():
    module = types.ModuleType("mxnet_test_namespace")
    sys.modules[module.__name__] = module
    yield module
    del sys.modules[module.__name__]


def test_a_namespace_finds_operators_by_prefix_and_keeps_them(module):
    lookup, listing = namespace_lookup(module.__name__, "_linalg_", operator_function)
    assert lookup("gemm2") is operator_function("_linalg_gemm2") and module.gemm2 is operator_function("_linalg_gemm2")
    assert {"gemm2", "potrf", "__name__"} <= set(listing()) and "_linalg_gemm2" not in listing()
    with pytest.raises(AttributeError, match="module 'mxnet_test_namespace' has no attribute 'relu'"):
        lookup("relu")
    with pytest.raises(AttributeError, match="no attribute '__path__'"):
        lookup("__path__")


def test_a_namespace_without_prefix_has_the_public_operators(module):
    lookup, listing = namespace_lookup(module.__name__, "", operator_function)
    assert lookup("relu") is nd.relu and "relu" in listing() and "_plus_scalar" not in listing()
    with pytest.raises(AttributeError):
        lookup("_plus_scalar")
    assert lookup("sum") is operator_function("sum") and not hasattr(module, "sum")  # the module's own code may mean Python's
    assert module.__dict__.get("sum", builtins.sum) is builtins.sum

    lookup, listing = namespace_lookup(module.__name__, "", operator_function, underscored=True, may_hide_builtins=True)
    assert lookup("_plus_scalar") is operator_function("_plus_scalar") and "_plus_scalar" in listing()
    assert lookup("sum") is module.sum


def test_out_and_name_may_follow_the_attributes():
    out = nd.zeros((2,))
    assert nd.relu(nd.array([-1, 2]), out) is out and out.asnumpy().tolist() == [0, 2]
    assert nd.broadcast_add(X, Y, out, "node") is out and out.asnumpy().tolist() == [4, 6]
    assert nd.clip(X, 0, 1, out) is out and out.asnumpy().tolist() == [1, 1]
    assert X.abs(out) is out and out.asnumpy().tolist() == [1, 2]
    assert nd.relu(X, None, "node").asnumpy().tolist() == [1, 2]
    with pytest.raises(TypeError, match="`out` must be an NDArray, received int"):
        nd.relu(X, 3)
    with pytest.raises(TypeError, match="relu takes at most 1 arguments, received 4"):
        nd.relu(X, out, "node", 4)
    with pytest.raises(TypeError, match="clip takes at most 3 arguments, received 5"):
        nd.clip(X, 0, 1, out, "node", out=out)
