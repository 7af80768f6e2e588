"""What holds of every operator, checked with its record: nd or np agrees with sym, inference is right, JSON keeps it, gradients are derivatives."""
import contextlib
import pathlib
import sys

import numpy as np
import pytest
import torch

import mxnet as mx
import mxnet.ops.numpy  # noqa: F401  its operators are registered when first asked for
from mxnet.ndarray import dispatch
from mxnet.ops import get
from mxnet.ops.dtypes import to_numpy
from mxnet.ops.registry import OPERATORS
from mxnet.symbol import compose

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from records import EXEMPT, GRADIENT_IS_NOT_THE_DERIVATIVE, IMPERATIVE, NO_DERIVATIVE_HERE, RECORDS  # noqa: E402

OUTSIDE = ("mxnet.ops.quantization", "mxnet.ops.graph_sampling", "mxnet.symbol.control_flow", "mxnet.contrib.onnx")  # with tests of their own
SAMPLES = 4  # of each operator: what differs between more of them, the comparisons with the oracle check


def operators():
    """Every operator that must have a record, by the name in files."""
    found = {o.name: o for o in OPERATORS.values() if not o.raw.__module__.startswith(OUTSIDE) and o.raw.__module__.startswith("mxnet.")}
    quantized = {o.quantized for o in found.values()}  # tested in tests/ops/quantization
    return {n: o for n, o in found.items() if n not in EXEMPT and o not in quantized and not n.startswith("_sg_mkldnn")}


def chosen(samples):
    """A few samples, spread over all."""
    return samples if len(samples) <= SAMPLES else [samples[i * (len(samples) - 1) // (SAMPLES - 1)] for i in range(SAMPLES)]


CASES = [pytest.param(get(name), sample, id=f"{name}-{i}") for name, samples in RECORDS.items() for i, sample in enumerate(chosen(samples))]


def semantics(operator):
    """MXNet's NumPy mode around the operators that belong to it."""
    stack = contextlib.ExitStack()
    if is_numpy(operator):
        stack.enter_context(mx.util.np_shape(True))
        stack.enter_context(mx.util.np_array(True))
    return stack


def is_numpy(operator):
    return operator.name.startswith("_np")


def array(operator, values):
    return (mx.np if is_numpy(operator) else mx.nd).array(values, dtype=values.dtype)


def strings(sample):
    return {k: str(v) for k, v in sample.attributes.items()}


def test_every_operator_has_a_record():
    recorded = {get(name).name for name in RECORDS}
    assert sorted(set(operators()) - recorded) == []


def test_what_is_exempt_exists_and_has_no_record():
    assert [n for n in EXEMPT if n not in OPERATORS or n in RECORDS] == []
    assert [n for n in GRADIENT_IS_NOT_THE_DERIVATIVE if n not in RECORDS] == []


def call(operator, sample):
    """The operator through mx.nd or mx.np: results and the inputs afterwards."""
    mx.random.seed(3)
    arrays = [array(operator, i) for i in sample.inputs]
    with mx.autograd.train_mode() if sample.training else mx.autograd.predict_mode():
        outputs = dispatch.invoke(operator, arrays, strings(sample), None, mx.np.ndarray if is_numpy(operator) else None)
    return outputs if isinstance(outputs, list) else [outputs], arrays


def symbol_of(operator, sample):
    inputs = [mx.sym.Variable(f"input{i}") for i in range(len(sample.inputs))]
    return compose.create(operator, [i.as_np_ndarray() for i in inputs] if is_numpy(operator) else inputs, strings(sample), "node")


def same(found, expected, tolerance=0.0):
    assert len(found) == len(expected)
    for f, e in zip(found, expected):
        assert (f.shape, f.dtype) == (e.shape, e.dtype)
        np.testing.assert_allclose(f.asnumpy().astype(float), e.asnumpy().astype(float), rtol=tolerance, atol=tolerance)


def bound(operator, symbol, sample):
    """The graph run on the sample: results and the inputs afterwards."""
    mx.random.seed(3)
    arrays = {f"input{i}": array(operator, a) for i, a in enumerate(sample.inputs)}
    arguments = {n: arrays[n] for n in symbol.list_arguments()}
    states = {n: arrays[n] for n in symbol.list_auxiliary_states()}
    executor = symbol.bind(mx.cpu(), arguments, aux_states=states, grad_req="null")
    return executor.forward(is_train=sample.training), list(arrays.values())


@pytest.mark.parametrize("operator, sample", CASES)
def test_sym_is_nd_and_inference_is_right(operator, sample):
    with semantics(operator):
        check_symbol(operator, sample)


def check_symbol(operator, sample):
    outputs, after = call(operator, sample)
    if not outputs:  # an operator that only writes has nothing to be a Symbol of
        assert all((a.asnumpy() == 0).all() for a in after)
        return
    if operator.name in IMPERATIVE:
        return
    symbol = symbol_of(operator, sample)
    found, changed = bound(operator, symbol, sample)
    same(found, outputs, sample.tolerance)
    same(changed, after, sample.tolerance)

    text = symbol.tojson(remove_amp_cast=False)
    again = mx.sym.load_json(text)
    assert again.tojson(remove_amp_cast=False) == text and again.list_outputs() == symbol.list_outputs()
    assert again.list_attr() == symbol.list_attr()
    same(bound(operator, again, sample)[0], found)

    shapes = {f"input{i}": a.shape for i, a in enumerate(sample.inputs)}
    inferred = symbol.infer_shape_partial(**shapes)[1]
    for shape, output in zip(inferred, outputs):  # -1, and () or None for nothing, where only the values tell
        assert shape in ((), None) or len(shape) == output.ndim and all(s in (-1, 0, d) for s, d in zip(shape, output.shape)), (shape, output.shape)
    types = {f"input{i}": a.dtype for i, a in enumerate(sample.inputs)}
    assert [np.dtype(t) for t in symbol.infer_type(**types)[1]] == [np.dtype(o.dtype) for o in outputs]


def differentiable():
    for case in CASES:
        operator, sample = case.values
        if operator.no_gradient or operator.loss or operator.name in GRADIENT_IS_NOT_THE_DERIVATIVE or case.id in NO_DERIVATIVE_HERE:
            continue
        positions = [i for i, a in enumerate(sample.inputs) if a.dtype.kind == "f" and i not in operator.mutated_indices
                     and (sample.gradient is None or i in sample.gradient)]
        if positions:
            yield pytest.param(operator, sample, positions, id=case.id)


def head(shape):
    return torch.from_numpy((((np.arange(int(np.prod(shape))) * 271 + 7) % 499) / 250.0 - 1).reshape(shape))


@pytest.mark.parametrize("operator, sample, positions", list(differentiable()))
def test_gradient_is_the_derivative(operator, sample, positions):
    parsed = operator.parse({k: v for k, v in strings(sample).items() if k not in ("dtype", "out_dtype") or operator.attributes[k].required})
    tensors = [torch.from_numpy(a.astype("float64") if a.dtype.kind == "f" else a.copy()) for a in sample.inputs]
    if operator.wants_training:
        parsed = {**parsed, operator.wants_training: sample.training}
    for i in positions:
        tensors[i].requires_grad_()

    def cost(values):
        mx.random.seed(3)
        results = operator(*values, **parsed)
        results = [results] if isinstance(results, torch.Tensor) else results
        return sum(((r.double() * head(r.shape)).sum() for r in results if r.is_floating_point()), torch.zeros((), dtype=torch.float64))

    total = cost([t.clone() if i in operator.mutated_indices else t for i, t in enumerate(tensors)])
    total = total if total.requires_grad else total + sum(tensors[i].sum() * 0 for i in positions)
    gradients = torch.autograd.grad(total, [tensors[i] for i in positions], allow_unused=True)
    plain = [t.detach() for t in tensors]
    step, compared = 1e-5, 0
    middle = total.item()
    for i, gradient in zip(positions, gradients):
        count = plain[i].numel()
        for k in sorted({j * count // 8 for j in range(8)}) if count else ():
            sides = []
            for sign in (1, -1):
                moved = [t.clone() if j == i or j in operator.mutated_indices else t for j, t in enumerate(plain)]
                moved[i].view(-1)[k] += sign * step
                sides.append(cost(moved).item())
            if not abs(sides[0] - 2 * middle + sides[1]) < 1e-3 * step:
                continue  # a kink or a jump lies between
            numeric = (sides[0] - sides[1]) / (2 * step)
            exact = 0.0 if gradient is None else gradient.to_dense().reshape(-1)[k].item()
            assert exact == pytest.approx(numeric, rel=2e-4, abs=2e-5), f"input {i}, entry {k}"
            compared += 1
    assert compared or not any(plain[i].numel() for i in positions), "every entry lies at a kink: choose other inputs"


def test_dtypes_of_records_are_those_of_arrays():
    assert {np.dtype(a.dtype) for samples in RECORDS.values() for s in samples for a in s.inputs} <= {
        np.dtype(to_numpy(t)) for t in (torch.float16, torch.float32, torch.float64, torch.int8, torch.uint8, torch.int32, torch.int64, torch.bool)}
