"""Each case of `array_cases.py`: values, types, gradients and inferred shapes are those that MXNet 1.9.1 recorded."""
import contextlib
import pathlib
import sys

import numpy as np
import pytest
import torch

from mxnet.ops import get

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from array_cases import CASES, head_gradient  # noqa: E402

RECORDS = np.load(pathlib.Path(__file__).parent / "array_oracle.npz")


def name_of(number):
    return f"{number}-{CASES[number]['operator']}"


def recorded(number, what):
    found = []
    while f"{number}.{what}{len(found)}" in RECORDS:
        found.append(RECORDS[f"{number}.{what}{len(found)}"])
    return found


def check(found, expected, tolerance, what):
    assert (tuple(found.shape), str(found.dtype)[6:]) == (expected.shape, expected.dtype.name), what
    np.testing.assert_allclose(found.detach().double().numpy(), expected.astype(float), rtol=tolerance, atol=tolerance, err_msg=what)


def test_all_cases_are_recorded():
    assert [str(RECORDS[f"{i}.operator"]) for i in range(len(CASES))] == [c["operator"] for c in CASES]


@pytest.mark.parametrize("number", range(len(CASES)), ids=name_of)
def test_case(number):
    case = CASES[number]
    operator = get(case["operator"])
    parsed = operator.parse({k: str(v) for k, v in case["attributes"].items()})
    tensors = [torch.from_numpy(i.copy()) for i in case["inputs"]]
    for i in case["grad"]:
        tensors[i].requires_grad_()
    outputs = operator(*tensors, **parsed)
    outputs = [outputs] if isinstance(outputs, torch.Tensor) else list(outputs)
    expected = recorded(number, "output")

    assert len(outputs) == len(expected) == operator.outputs(parsed) == len(operator.list_output_names(parsed))
    for i, (output, wanted) in enumerate(zip(outputs, expected)):
        check(output, wanted, case["tolerance"], f"output {i}")

    if case["grad"]:
        heads = [(o, torch.from_numpy(head_gradient(tuple(o.shape), w.dtype))) for o, w in zip(outputs, expected) if o.requires_grad]
        torch.autograd.backward(*zip(*heads))
        for i in case["grad"]:
            gradient = torch.zeros_like(tensors[i]) if tensors[i].grad is None else tensors[i].grad
            check(gradient, RECORDS[f"{number}.gradient{i}"], case["tolerance"], f"gradient of input {i}")

    # Shape inference runs the operator without data, too; only NotImplementedError says that it needs them.
    with torch.no_grad(), contextlib.suppress(NotImplementedError):
        result = operator.raw(*(t.detach().to("meta") for t in tensors), **parsed)
        assert [tuple(r.shape) for r in ([result] if isinstance(result, torch.Tensor) else result)] == [w.shape for w in expected]

    shapes, types, every = [tuple(t.shape) for t in tensors], [t.dtype for t in tensors], operator.with_defaults(parsed)
    if operator.shape_inference is not None:
        ins, outs = operator.shape_inference(list(shapes), [None] * len(outputs), **every)
        assert ins == shapes
        for inferred, wanted in zip(outs, expected):  # None where the operator itself is run without data, -1 where only the values tell
            assert inferred is None or len(inferred) == wanted.ndim and all(a in (-1, b) for a, b in zip(inferred, wanted.shape))
    if operator.dtype_inference is not None:
        assert operator.dtype_inference(types, [None] * len(outputs), **every)[1] == [o.dtype for o in outputs]
