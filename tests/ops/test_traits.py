"""What operators say of themselves is true, for each that says it, on its records' inputs."""
import pathlib
import sys

import numpy as np
import pytest
import torch

import mxnet.ndarray.sparse.graph_sampling  # noqa: F401  registers kernels
import mxnet.ops.numpy  # noqa: F401  registers the operators of mx.np
from mxnet.base import MXNetError
from mxnet.ndarray.sparse import dispatch
from mxnet.ops import random_state, traits
from mxnet.ops.registry import OPERATORS, op
from mxnet.ops.shapes import known
from mxnet.symbol import inference

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from records import RECORDS  # noqa: E402

EVERY = sorted(set(OPERATORS.values()), key=lambda o: o.name)


def saying(trait):
    return [o for o in EVERY if getattr(o, trait)]


def uses(operator, trait=None):
    """(tensors, attributes) of the records of an operator for which the trait holds."""
    for sample in RECORDS.get(operator.name, ()):
        attributes = operator.parse(sample.attributes)
        if operator.wants_training:
            attributes[operator.wants_training] = sample.training
        if operator.wants_device:
            attributes[operator.wants_device] = torch.device("cpu")
        everything = {**operator.with_defaults(attributes), **attributes}
        if trait is None or operator.holds(trait, everything):
            yield [None if i is None else torch.from_numpy(np.array(i)) for i in sample.inputs], attributes, everything


def first(result):
    return result if isinstance(result, torch.Tensor) else result[0]


# -- registration ------------------------------------------------------------------------------------------------------


def helper(data):
    return data * torch.rand(data.shape, generator=random_state.generator(data.device))


def test_a_function_reaches_a_generator_through_others():
    def noise(data):
        return helper(data)

    def outside(data):
        return helper(data)

    noise.__module__ = helper.__module__ = "mxnet.test"
    assert traits.reaches_generator(noise)
    assert not traits.reaches_generator(outside)  # only what stands in the package is looked into


def test_an_unknown_trait_is_refused():
    with pytest.raises(TypeError, match="operator _test: there is no option or trait `layout_agnositc`; traits are stochastic, data_dependent"):
        op("_test", layout_agnositc=True)(lambda data: data)
    assert "_test" not in OPERATORS


@pytest.mark.parametrize("operator", EVERY, ids=lambda o: o.name)
def test_who_can_reach_a_generator_declares_it(operator):
    # Anew: at registration a helper that stands further down in the module was not there yet.
    traits._reaching.clear()
    kernel = dispatch._kernels.get(operator)  # where the operator itself is for sparse arrays only
    assert bool(operator.stochastic) == (traits.reaches_generator(operator.raw) or traits.reaches_generator(kernel))


# -- each trait ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("operator", saying("stochastic"), ids=lambda o: o.name)
def test_stochastic(operator):
    for tensors, attributes, everything in uses(operator):
        if not operator.holds("stochastic", everything):
            runs = [first(operator.raw(*tensors, **attributes)) for _ in range(2)]
            assert torch.equal(*runs) or torch.equal(*(r.isnan() for r in runs))


@pytest.mark.parametrize("operator", saying("layout_agnostic"), ids=lambda o: o.name)
def test_layout_agnostic(operator):
    """The values are the same whether images lie with their channels first or last, and with random data there are images."""
    if operator.stochastic:
        return
    for tensors, attributes, _ in [*uses(operator, "layout_agnostic"), *_images(operator)]:
        moved = [t.contiguous(memory_format=torch.channels_last) if t is not None and t.dim() == 4 else t for t in tensors]
        state = [None if t is None else t.clone() for t in tensors]
        expected, found = (first(operator.raw(*t, **attributes)) for t in (state, moved))
        assert expected.shape == found.shape
        torch.testing.assert_close(found, expected, equal_nan=True)


def _images(operator):
    """Images for an operator that goes element by element."""
    if operator.same_shape and not operator.mutates and not operator.stochastic:
        required = {n: 0.5 for n, a in operator.attributes.items() if a.required and a.kind is float}
        if any(a.required and n not in required for n, a in operator.attributes.items()):
            return
        attributes = {**required, **({operator.wants_training: False} if operator.wants_training else {})}
        yield [torch.rand(2, 3, 4, 5) for _ in range(1 if operator.num_inputs == 1 else 2)], attributes, {}


@pytest.mark.parametrize("operator", saying("by_rows"), ids=lambda o: o.name)
def test_by_rows(operator):
    for tensors, attributes, _ in [*uses(operator, "by_rows"), *_images(operator)]:
        data, = tensors
        if data.dim() and len(data):
            whole, part = (first(operator.raw(t, **attributes)) for t in (data, data[-1:]))
            torch.testing.assert_close(part, whole[-1:], equal_nan=True)


FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)


@pytest.mark.parametrize("operator", saying("result_type"), ids=lambda o: o.name)
def test_result_type(operator):
    tried = 0
    for tensors, attributes, _ in [*uses(operator, "result_type"), *_images(operator)]:
        for dtype in FLOATS:
            # What a batch norm writes to stays float32 beside half precision, and so do its weights.
            rest = torch.float32 if operator.mutates and dtype is not torch.float64 else dtype
            cast = [t.to(rest if i else dtype) if t is not None and t.is_floating_point() else t for i, t in enumerate(tensors)]
            if not any(t is not None and t.is_floating_point() for t in cast):
                continue
            try:
                found = first(operator.raw(*cast, **attributes))
            except (RuntimeError, MXNetError):
                if dtype in (torch.float32, torch.float64) and all(t is None or t.is_floating_point() for t in tensors):
                    raise
                continue  # torch has it for wider types only
            assert found.dtype is dtype, (operator.name, attributes)
            tried += 1
    assert tried


def _gradients_behind(relu, operator, tensors, attributes):
    leaves = [None if t is None else t.clone().requires_grad_(t.is_floating_point() and i not in operator.mutated_indices)
              for i, t in enumerate(tensors)]
    result = relu(first(operator.fn(*leaves, **attributes)))
    return torch.autograd.grad(result.sum(), [t for t in leaves if t is not None and t.requires_grad], allow_unused=True)


@pytest.mark.parametrize("operator", saying("inplace_safe"), ids=lambda o: o.name)
def test_inplace_safe(operator):
    tried = 0
    for tensors, attributes, _ in uses(operator, "inplace_safe"):
        for found, expected in zip(*(_gradients_behind(relu, operator, tensors, attributes) for relu in (torch.relu_, torch.relu))):
            assert (found is None) == (expected is None)
            if found is not None:
                torch.testing.assert_close(found, expected)
        tried += 1
    assert tried


@pytest.mark.parametrize("operator", saying("is_relu"), ids=lambda o: o.name)
def test_is_relu(operator):
    data = torch.tensor([-2.0, -0.0, 0.5, float("inf")])
    attributes = {"act_type": "relu"} if "act_type" in operator.attributes else {}
    assert operator.holds("is_relu", operator.with_defaults(attributes))
    assert torch.equal(operator.raw(data, **attributes), torch.tensor([0.0, 0.0, 0.5, float("inf")]))
    if attributes:
        assert not operator.holds("is_relu", operator.with_defaults({"act_type": "tanh"}))


@pytest.mark.parametrize("operator", saying("arithmetic"), ids=lambda o: o.name)
def test_arithmetic(operator):
    x, y = torch.tensor([6.0, -3.0]), torch.tensor([2.0, 4.0])
    compute = {"add": torch.add, "multiply": torch.mul, "divide": torch.div}[operator.arithmetic]
    if operator.num_inputs == 2:
        assert torch.equal(operator.raw(x, y), compute(x, y))
    else:
        assert operator.num_inputs == 1 and torch.equal(operator.raw(x, scalar=4.0), compute(x, 4.0))


def test_stops_gradient():
    x = torch.ones(2, requires_grad=True)
    for operator in saying("stops_gradient"):
        found = operator.fn(x)
        assert not found.requires_grad or not torch.autograd.grad(found.sum(), x)[0].any()


def test_is_cast_and_changes_storage():
    x = torch.tensor([1.5])
    assert [o.name for o in saying("is_cast")] == ["Cast"]
    assert OPERATORS["Cast"].raw(x, dtype=torch.float64).dtype is torch.float64
    assert [o.name for o in saying("changes_storage")] == ["cast_storage"]


def test_data_dependent_shape():
    """No other operator of the records gives results of two shapes for inputs of the same shapes and attributes."""
    assert sorted(o.name for o in saying("data_dependent_shape")) == [
        "_contrib_boolean_mask", "_cvimdecode", "_npi_bincount", "_npi_delete", "_npi_unique", "_npx_nonzero"]
    for operator in EVERY:
        if operator.data_dependent_shape or operator.data_dependent:
            continue
        for tensors, attributes, _ in uses(operator):
            try:
                results = [operator.raw(*ts, **attributes) for ts in (tensors, [None if t is None else torch.ones_like(t) for t in tensors])]
            except Exception:  # ones are no input for it
                continue
            shapes = [[tuple(r.shape) for r in ([result] if isinstance(result, torch.Tensor) else result)] for result in results]
            assert shapes[0] == shapes[1], operator.name


def test_weights():
    assert OPERATORS["Convolution"].weights == ("weight", "bias")
    assert OPERATORS["BatchNorm"].weights == ("gamma", "beta", "moving_mean", "moving_var")
    assert OPERATORS["Pooling"].weights == ()


def test_precision():
    assert [OPERATORS["Convolution"].precision(low) for low in ("float16", "bfloat16")] == ["low", "low"]
    assert [OPERATORS["RNN"].precision(low) for low in ("float16", "bfloat16")] == ["low", "float32"]
    assert [OPERATORS["square"].precision(low) for low in ("float16", "bfloat16")] == ["float32", "inputs"]
    assert [OPERATORS["transpose"].precision(low) for low in ("float16", "bfloat16")] == ["inputs", "float32"]
    assert [OPERATORS["_npi_add"].precision(low) for low in ("float16", "bfloat16")] == [None, None]


def test_a_source_takes_the_size_that_its_users_need():
    arange = OPERATORS["_arange"]
    given = arange.with_defaults({"start": 2.0, "step": 0.5, "repeat": 2, "infer_range": True})
    assert arange.holds("leaves_size_open", given) and not arange.holds("leaves_size_open", {**given, "stop": 3.0})
    assert arange.raw(**{**given, **arange.sized((5,), given), "device": torch.device("cpu")}).tolist()[:5] == [2.0, 2.0, 2.5, 2.5, 3.0]


def test_how_gradients_are_stored():
    embedding, dot = OPERATORS["Embedding"], OPERATORS["dot"]
    assert embedding.gradient_storage(1, (None, None), {"sparse_grad": True}) == "row_sparse"
    assert embedding.gradient_storage(1, (None, None), {"sparse_grad": False}) == "default"
    assert embedding.gradient_storage(0, (None, None), {"sparse_grad": True}) is None
    plain = {"transpose_a": False, "transpose_b": False}
    assert dot.gradient_storage(1, ("csr", "row_sparse"), plain) == "row_sparse"
    assert dot.gradient_storage(1, ("default", "row_sparse"), plain) is None
    assert dot.gradient_storage(1, ("csr", "row_sparse"), {**plain, "transpose_a": True}) is None


# -- shapes without a run ----------------------------------------------------------------------------------------------

# They look at a combination of attribute and axes, or at sizes of 0, only where they run.
_LATER = {"SoftmaxActivation", "softmax", "argmax", "argmin", "InstanceNorm", "SequenceLast", "GroupNorm", "L2Normalization", "Deconvolution",
          "_np_max", "_np_min", "masked_softmax", "masked_log_softmax", "_npx_index_update", "_npx_index_add",
          "_image_adjust_lighting", "_image_normalize",
          *(f"_image_{way}flip_{to}" for way in ("", "random_") for to in ("left_right", "top_bottom")),
          *(f"_image_random_{what}" for what in ("brightness", "contrast", "saturation", "hue", "lighting"))}


def _changed(shapes):
    """The shapes, and with one of them cut or longer by an axis."""
    yield shapes
    for i, shape in enumerate(shapes):
        for other in (shape[1:], shape[:-1], (2, *shape), (*shape[:-1], 1) if shape else (2, 2)):
            yield [*shapes[:i], other, *shapes[i + 1:]]


def _run_on_zeros(operator, shapes, parsed):
    """The shapes of the results, for an operator that does not run without values."""
    found = operator.raw(*map(torch.zeros, shapes), **parsed, **({operator.wants_training: False} if operator.wants_training else {}))
    return [tuple(r.shape) for r in ([found] if isinstance(found, torch.Tensor) else found)]


@pytest.mark.parametrize("operator", [o for o in EVERY if o.complete_rule == "shape" and o.name in RECORDS], ids=lambda o: o.name)
def test_rules_say_the_shapes_that_a_run_gives(operator):
    agreed = 0
    for sample in RECORDS[operator.name]:
        parsed = operator.parse(sample.attributes)
        for shapes in _changed([np.shape(i) for i in sample.inputs]):
            try:
                ins, outs = operator.shape_inference(list(shapes), [None] * operator.outputs(parsed), **operator.with_defaults(parsed))
            except MXNetError:
                continue
            if all(known(s) for s in outs) and all(i is None or tuple(i) == tuple(s) for i, s in zip(ins, shapes)):
                try:
                    found = inference.run_on_meta(operator, shapes, parsed) or _run_on_zeros(operator, shapes, parsed)
                except Exception:
                    assert operator.name in _LATER, (sample.attributes, shapes)
                    continue
                assert [tuple(s) for s in outs][:len(found)] == found, (sample.attributes, shapes)
                agreed += 1
    assert agreed


def _less_known(shapes):
    """The shapes with one size unknown, with all sizes of one unknown, and with nothing known of one."""
    for i, shape in enumerate(shapes):
        for other in (*((*shape[:k], -1, *shape[k + 1:]) for k in range(len(shape))), (-1,) * len(shape), None):
            yield [*shapes[:i], other, *shapes[i + 1:]]


def _allows(partial, shape):
    return partial is None or len(partial) == len(shape) and all(p in (-1, n) for p, n in zip(partial, shape))


_BY_WHOLE_SHAPE = {"SoftmaxOutput"}  # a label of the shape of the data holds probabilities


@pytest.mark.parametrize("operator", [o for o in EVERY if o.complete_rule and o.name in RECORDS and o.name not in _BY_WHOLE_SHAPE],
                         ids=lambda o: o.name)
def test_rules_say_nothing_wrong_of_what_is_known_in_part(operator):
    for sample in RECORDS[operator.name]:
        parsed = operator.parse(sample.attributes)
        attributes, shapes, count = operator.with_defaults(parsed), [np.shape(i) for i in sample.inputs], operator.outputs(parsed)
        expected = operator.shape_inference(list(shapes), [None] * count, **attributes)[1]
        for partial in _less_known(shapes):
            ins, outs = operator.shape_inference(list(partial), [None] * count, **attributes)
            # Of an input of which nothing is known a rule may choose the usual shape.
            assert all(p is None or _allows(i, s) for i, s, p in zip(ins, shapes, partial)), (sample.attributes, partial)
            assert all(e is None or _allows(o, e) for o, e in zip(outs, expected)), (sample.attributes, partial, outs, expected)
