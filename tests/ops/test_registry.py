"""How an operator is made of a function, and what it then says about its uses."""
import functools
import gc
import inspect
import math
import subprocess
import weakref

import numpy as np
import pytest
import torch

import mxnet as mx
from forked import python
from mxnet.base import MXNetError
from mxnet.ops import registry
from mxnet.ops.registry import OPERATORS, Operator, UnknownOperatorError, alias, get, op
from mxnet.ops.schema import Axes, Device, Floats, Shape, Training


def scaled(data, bias=None, *, factor: float = 2.0, rows: int, training: Training):
    """data * factor + bias."""
    return data * factor


def repeated(data, bias=None, *, factor: float = 2.0, rows: int):
    return (data * factor if bias is None else data * factor + bias).expand(rows, -1)


@pytest.fixture
def names():
    """The table of operators, which a test may add to."""
    before = dict(OPERATORS)
    yield OPERATORS
    OPERATORS.clear()
    OPERATORS.update(before)


# -- the signature --------------------------------------------------------------------------------------------------------------


def test_the_signature_says_what_is_input_and_what_attribute():
    operator = Operator("scaled", scaled)
    assert operator.inputs == ("data", "bias") and operator.optional_inputs == {"bias"} and operator.num_inputs == 2
    assert list(operator.attributes) == ["factor", "rows"] and operator.wants_training == "training" and operator.wants_device is None
    assert operator.attributes["rows"].required and operator.attributes["factor"].default == 2.0
    assert operator.__doc__ == "data * factor + bias." and repr(operator) == "<operator scaled>"
    assert not operator.simple and not operator.variadic and not operator.stochastic


def test_an_operator_is_simple_if_tensors_are_all_it_takes():
    assert Operator("f", lambda x: x).simple and Operator("f", lambda x, y: x).simple
    assert not Operator("f", lambda x, y=None: x).simple and not Operator("f", lambda *x: x).simple
    assert not Operator("f", lambda x: (x, x), num_outputs=2).simple


def test_any_number_of_inputs():
    def joined(first, *data, num_args: int = 0):
        return data

    operator = Operator("joined", joined)
    assert operator.variadic and operator.num_inputs == -1 and operator.inputs == ("first", "data") and operator.key_var_num_args == "num_args"
    assert operator.input_names({}, 3) == ("first", "arg0", "arg1") and operator.input_names({}) == ("first",)


def test_a_source_asks_for_its_device():
    def source(*, shape: Shape = (), device: Device):
        return torch.zeros(shape, device=device)

    operator = Operator("source", source)
    assert operator.wants_device == "device" and list(operator.attributes) == ["shape"] and operator.num_inputs == 0
    assert operator.parse({"ctx": "cpu(1)", "shape": "(2, 3)"}) == {"shape": (2, 3)}


@pytest.mark.parametrize("function, message", [
    (lambda x, *, factor=2: x, r"operator f\(x, \*, factor=2\): attribute `factor` needs an annotation"),
    (lambda x, **rest: x, r"operator f\(x, \*\*rest\): `\*\*rest` says nothing about its attributes")])
def test_functions_that_are_no_operators(function, message):
    with pytest.raises(TypeError, match=message):
        Operator("f", function)


def test_unknown_traits_are_refused():
    with pytest.raises(TypeError, match="no option or trait `fast`"):
        Operator("f", lambda x: x, fast=True)


# -- attributes ------------------------------------------------------------------------------------------------------------------


def test_attributes_are_parsed_from_values_and_strings():
    operator = Operator("scaled", scaled)
    assert operator.parse({"rows": "3", "factor": 1}) == {"rows": 3, "factor": 1.0}
    assert operator.parse({"rows": 3}) == {"rows": 3}
    assert operator.with_defaults({"rows": 3}) == {"factor": 2.0, "rows": 3}
    assert operator.parse({}, partial=True) == {}
    assert operator.parse({"rows": 1, "cudnn_off": True, "workspace": 512}) == {"rows": 1}


@pytest.mark.parametrize("given, message", [
    ({}, r"scaled: required argument `rows` \(an integer\) was not given"),
    ({"rows": "three"}, r"scaled: `rows` must be an integer, received 'three'"),
    ({"rows": 1, "columns": 2}, r"scaled: cannot find argument 'columns'\nPossible arguments: inputs data, bias; "
     r"attributes:\n    factor : a number, optional, default=2.0\n    rows : an integer, required$"),
    ({"rows": 1, "factr": 2}, r"scaled: cannot find argument 'factr'; did you mean 'factor'\?\n")])
def test_wrong_attributes(given, message):
    with pytest.raises(MXNetError, match=message):
        Operator("scaled", scaled).parse(given)


def test_an_operator_without_attributes_ignores_them_with_a_warning():
    with pytest.warns(UserWarning, match="f has no attributes: `axis` is ignored"):
        assert Operator("f", lambda x: x).parse({"axis": 1}) == {}


def test_the_same_attributes_are_parsed_once():
    operator = Operator("scaled", scaled)
    for given, parsed in (({"rows": "3"}, {"rows": 3}), ({"rows": "4"}, {"rows": 4}), ({"rows": 3, "factor": 1.5}, {"rows": 3, "factor": 1.5})):
        first, second, third = (operator.parse_cached(given) for _ in range(3))  # there might be others in each call
        assert first == second == third == parsed and second is third


def test_attributes_that_cannot_be_hashed_are_parsed_each_time():
    def f(x, *, shape: Shape = ()):
        return x

    operator = Operator("f", f)
    assert operator.parse_cached({"shape": [1, 2]}) == {"shape": (1, 2)} == operator.parse_cached({"shape": [1, 2]})


def test_equal_values_of_other_types_are_other_attributes():
    def f(x, *, axis: Axes = None, text: str = "", sizes: Floats = (), factor: float = 1.0):
        return x

    operator = Operator("f", f)
    for _ in range(3):
        assert [operator.parse_cached({"axis": v}) for v in (1, True, np.int64(1))] == [{"axis": 1}] * 3
        with pytest.raises(MXNetError, match="`axis` must be an integer"):
            operator.parse_cached({"axis": 1.0})
        assert [operator.parse_cached({"text": v})["text"] for v in (1, True, 1.0, (1,), (True,))] == ["1", "True", "1.0", "(1,)", "(True,)"]
        assert [math.copysign(1, operator.parse_cached({"factor": v})["factor"]) for v in (0, 0.0, -0.0, np.float32(-0.0))] == [1, 1, -1, -1]
        assert [math.copysign(1, operator.parse_cached({"sizes": (v,)})["sizes"][0]) for v in (0, -0.0, 0.0)] == [1, -1, 1]


def test_a_function_with_attributes_takes_tensors_only():
    operator, x = Operator("repeated", repeated), torch.ones(2)
    assert torch.equal(operator.bound({"rows": "3"})(x), repeated(x, rows=3))
    function = operator.bound({"rows": "3"})
    assert function.keywords == {"rows": 3} and operator.bound({"rows": "3"}) is function and operator.bound({"rows": 4}) is not function
    assert torch.equal(function(x), repeated(x, rows=3)) and torch.equal(function(x, x), repeated(x, x, rows=3))
    assert torch.equal(operator.bound({"rows": 3, "factor": 1.5})(x), repeated(x, rows=3, factor=1.5))


def test_a_function_with_attributes_shares_no_memory_either():
    x = torch.ones(2)
    for _ in range(3):
        result = get("expand_dims").bound({"axis": 0})(x)
        assert result.shape == (1, 2) and result.data_ptr() != x.data_ptr()


def test_functions_behind_a_decorator_get_their_attributes():
    @functools.wraps(repeated)
    def decorated(*tensors, **attributes):
        return repeated(*tensors, **attributes)

    operator = Operator("decorated", decorated)
    for _ in range(3):
        assert torch.equal(operator.bound({"rows": 3})(torch.ones(2)), repeated(torch.ones(2), rows=3))


def test_the_table_of_parsed_attributes_does_not_grow_without_end():
    operator = Operator("repeated", repeated)
    functions = weakref.WeakSet()
    for rows in range(3000):
        for given in ({"rows": rows}, {"rows": 1, "factor": rows + 0.5}):
            assert operator.parse_cached(given) == operator.parse_cached(given) == given
            functions.add(operator.bound(given))
    gc.collect()
    assert 1 <= len(functions) <= 1024


# -- inputs and outputs of a use -----------------------------------------------------------------------------------------------


def test_inputs_in_use_follow_the_attributes():
    def layer(data, weight, bias=None, *, no_bias: bool = False):
        return data

    operator = Operator("layer", layer, inputs_rule=lambda a: ("data", "weight") if a["no_bias"] else ("data", "weight", "bias"))
    assert operator.input_names({}) == ("data", "weight", "bias") and operator.input_names({"no_bias": True}) == ("data", "weight")
    assert Operator("layer", layer).input_names({}) == ("data", "weight")


def test_names_of_outputs():
    def parts(x, *, count: int = 2):
        return x.chunk(count)

    operator = Operator("parts", parts, num_outputs=lambda a: a["count"])
    assert operator.outputs({}) == 2 and operator.list_output_names({"count": 3}) == ("output0", "output1", "output2")
    assert Operator("f", lambda x: x).list_output_names({}) == ("output",)
    assert Operator("f", lambda x: x, num_outputs=2, output_names=("mean", "var", "rest")).list_output_names({}) == ("mean", "var")
    assert Operator("parts", parts, output_names=lambda a: [f"part{a['count']}"]).list_output_names({}) == ("part2",)


def test_written_inputs_are_known_by_name_and_place():
    operator = Operator("f", lambda x, state: x, mutates=("state",))
    assert operator.mutated_inputs({}) == ("state",) and operator.mutated_indices == (1,)


def test_inputs_and_outputs_of_one_shape():
    rule = Operator("f", lambda x, y: x, same_shape=True).shape_inference
    assert rule([(2, -1), None], [(-1, 3)]) == ([(2, 3), (2, 3)], [(2, 3)])


# -- gradients ------------------------------------------------------------------------------------------------------------------


def test_a_registered_gradient_replaces_the_derivative_only_where_one_is_wanted():
    operator = Operator("f", lambda x: x * 3)
    operator.gradient(lambda out_grads, inputs, outputs: out_grads[0] * 10 + inputs[0] + outputs[0])
    x = torch.tensor([2.0], requires_grad=True)
    operator(x).backward()
    assert x.grad.tolist() == [10 + 2 + 6]
    x.grad = None
    operator.raw(x).backward()
    assert x.grad.tolist() == [3]
    assert not operator(torch.tensor([2.0])).requires_grad
    with torch.no_grad():
        assert not operator(x).requires_grad


def test_inputs_without_a_gradient_get_zeros():
    operator = Operator("f", lambda x, y: x * y)
    operator.gradient(lambda out_grads, inputs, outputs: out_grads[0])
    x, y = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
    operator(x, y).sum().backward()
    assert x.grad.tolist() == [1, 1] and y.grad.tolist() == [0, 0]


# -- the table --------------------------------------------------------------------------------------------------------------------


def test_registration_under_all_names(names):
    @op("_test_twice", aliases=("_test_double",))
    def twice(x):
        return x + x

    assert names["_test_twice"] is names["_test_double"] is twice and get("_test_double") is twice
    assert alias("_test_times_two", "_test_twice") is twice and get("_test_times_two") is twice
    assert alias("_test_times_two", "_test_twice") is twice  # once more changes nothing
    assert mx.nd._internal._test_twice(mx.nd.array([1, 2])).asnumpy().tolist() == [2, 4]


def test_a_name_stands_for_one_operator(names):
    with pytest.raises(ValueError, match=r"operator name 'relu' is registered twice: by mxnet\.ops\.[\w.]+ and [\w.]*test_registry"):
        op("relu")(lambda x: x)
    with pytest.raises(ValueError, match="operator name 'relu' is registered twice"):
        alias("relu", "sigmoid")


def test_names_that_nobody_registered():
    with pytest.raises(UnknownOperatorError, match="operator 'sofmax' is not registered; did you mean .*softmax"):
        get("sofmax")
    with pytest.raises(UnknownOperatorError, match="operator 'zzzzzzzz' is not registered$"):
        get("zzzzzzzz")


def test_the_operators_of_numpy_are_loaded_when_asked_for():
    assert get("_npi_add").name == "_npi_add" and registry.exists("_npi_add") and not registry.exists("_npi_nothing")


def test_operators_loaded_on_demand_are_functions_of_their_namespaces_at_once():
    code = "import mxnet as mx; print(mx.nd.contrib.onnx_graph.__name__, mx.sym.contrib.onnx_graph.__name__, mx.nd._internal._npi_add.__name__)"
    done = subprocess.run([*python(), "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["_contrib_onnx_graph", "_contrib_onnx_graph", "_npi_add"], done.stderr


def test_signatures_are_read_as_inspect_reads_them():
    def function(a, b=None, /, c=2, *rest, d: int, e: float = 1.0, **others):
        """Has every kind of parameter."""

    for fn in [function, *(o.raw for o in OPERATORS.values())]:
        expected = [(p.name, p.default, p.annotation, p.kind) for p in inspect.signature(fn).parameters.values()]
        found = [(p.name, p.default, p.annotation, p.kind) for p in registry._parameters(fn)]
        if fn is function:  # that an input may not be given by name is of no interest
            expected = [(n, d, a, max(k, inspect.Parameter.POSITIONAL_OR_KEYWORD)) for n, d, a, k in expected]
        assert found == expected, fn


def test_attributes_that_are_arrays_are_parsed_every_time():
    low, x = mx.np.array(0.0), mx.np.array([1.0, -2, 0.3])
    assert mx.np.clip(x, low, mx.np.array(0.5)).tolist() == [0.5, 0, pytest.approx(0.3)]
    low[()] = -1
    assert mx.np.clip(x, low, mx.np.array(0.5)).tolist() == [0.5, -1, pytest.approx(0.3)]
    dtype = mx.nd.zeros((1,), dtype="int32")
    assert mx.nd.cast(mx.nd.ones(2), dtype=dtype).dtype is np.int32
    dtype[:] = 1
    references = weakref.ref(dtype)
    del dtype
    assert references() is None  # it is in no table
