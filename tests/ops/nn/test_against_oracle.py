"""Each case of `oracle_cases.py`: values, types, gradients, changed inputs and inferred shapes are those that MXNet 1.9.1 recorded."""
import json
import pathlib
import sys

import numpy as np
import pytest
import torch

from mxnet.ops import get

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from oracle_cases import CASES, head_gradient, values  # noqa: E402

RECORDS = json.loads((pathlib.Path(__file__).parent / "oracle.json").read_text())


def name_of(i):
    operator, inputs, attributes, train = CASES[i]
    return f"{i}-{operator}-{'train' if train else 'test'}"


def check(found, recorded, what, half):
    assert list(found.shape) == recorded["shape"], what
    assert str(found.dtype)[6:] == recorded["dtype"], what
    tolerance = 4e-3 if half else 2e-5
    expected = np.array(recorded["values"]).reshape(recorded["shape"])
    scale = max(1.0, float(np.abs(expected).max(initial=0)))
    np.testing.assert_allclose(found.detach().double().numpy(), expected, rtol=tolerance * 5, atol=tolerance * scale, err_msg=what)


def test_all_cases_are_recorded():
    assert [r["operator"] for r in RECORDS] == [c[0] for c in CASES]


@pytest.mark.parametrize("i", range(len(CASES)), ids=name_of)
def test_case(i):
    name, inputs, attributes, train = CASES[i]
    record, operator = RECORDS[i], get(name)
    parsed = operator.parse(attributes)
    names = operator.input_names(parsed)
    tensors = [torch.from_numpy(values(spec, k).copy()) for k, spec in enumerate(inputs)]
    assert len(names) == len(tensors)
    for k, gradient in enumerate(record["gradients"]):
        if gradient is not None and names[k] not in operator.mutates:
            tensors[k].requires_grad_()
    call = {**parsed, operator.wants_training: train} if operator.wants_training else parsed
    outputs = operator(*tensors, **call)
    half = tensors[0].dtype == torch.float16
    outputs = [outputs] if isinstance(outputs, torch.Tensor) else list(outputs)

    assert len(outputs) == len(record["outputs"]) == operator.outputs(parsed)
    assert len(operator.list_output_names(parsed)) == len(outputs)
    for k, (found, recorded) in enumerate(zip(outputs, record["outputs"])):
        check(found, recorded, f"output {k}", half)

    if any(t.requires_grad for t in tensors):
        outputs[0].backward(torch.from_numpy(head_gradient(tuple(outputs[0].shape), record["outputs"][0]["dtype"])))
        for k, tensor in enumerate(tensors):
            if tensor.requires_grad:
                gradient = torch.zeros_like(tensor) if tensor.grad is None else tensor.grad
                check(gradient, record["gradients"][k], f"gradient of {names[k]}", half)
    if record["inputs_after"]:
        for k, changed in enumerate(record["inputs_after"], 1):
            if names[k] in operator.mutates:
                check(tensors[k], changed, f"{names[k]} afterwards", half)

    if operator.shape_inference is not None:
        shapes, types = [tuple(t.shape) for t in tensors], [t.dtype for t in tensors]
        every = operator.with_defaults(parsed)
        ins, outs = operator.shape_inference(list(shapes), [None] * len(outputs), **every)
        assert [tuple(s) for s in ins] == shapes and [tuple(s) for s in outs] == [tuple(o.shape) for o in outputs]
        if operator.dtype_inference is not None:
            assert operator.dtype_inference(types, [None] * len(outputs), **every)[1] == [o.dtype for o in outputs]


@pytest.mark.parametrize("i", [i for i, c in enumerate(CASES) if c[0] not in ("CTCLoss",)], ids=name_of)
def test_runs_without_data(i):
    """Inference also runs an operator on meta tensors."""
    name, inputs, attributes, _ = CASES[i]
    operator = get(name)
    tensors = [torch.from_numpy(values(spec, k).copy()).to("meta") for k, spec in enumerate(inputs)]
    outputs = operator.raw(*tensors, **operator.parse(attributes))
    outputs = [outputs] if isinstance(outputs, torch.Tensor) else outputs
    assert [list(o.shape) for o in outputs] == [r["shape"] for r in RECORDS[i]["outputs"]]
