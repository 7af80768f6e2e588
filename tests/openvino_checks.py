"""What the tests of converters share: one is right if its network gives what the operator's own function gives."""
import functools
import importlib
import pathlib
import sys

import numpy as np
import pytest
import torch

import mxnet as mx
from mxnet.graph import lower
from mxnet.graph.program import Program
from mxnet.ops import get
from mxnet.symbol import compose

pytest.importorskip("openvino")
from mxnet.graph.backends.openvino import OpenVINO, conversion, model  # noqa: E402  (model imports every converter)

sys.path.insert(0, str(pathlib.Path(__file__).parent / "ops"))
from records import RECORDS  # noqa: E402

_POSITIVE = ("sqrt", "log", "log2", "log10", "power", "_npi_power_scalar", "_npi_rpower_scalar", "reciprocal")


def numbers(*shape, seed=0, low=-1.5, high=1.5):
    return np.random.RandomState(seed).uniform(low, high, shape).astype("float32")


@functools.cache
def registered_in(module):
    """The operators whose converters a module of ``graph.backends.openvino`` registers, found by running the module once more."""
    spec = importlib.util.find_spec(f"mxnet.graph.backends.openvino.{module}")
    before, conversion.CONVERTERS = conversion.CONVERTERS, {}
    try:
        spec.loader.exec_module(importlib.util.module_from_spec(spec))
        return sorted(conversion.CONVERTERS)
    finally:
        conversion.CONVERTERS = before


def _elementwise(name):
    """Inputs of an operator for which there are no records: those of mx.np, and some with a number."""
    op, base = get(name), name.removeprefix("_npi_")
    low, high = (0.2, 1.4) if base in _POSITIVE or name in _POSITIVE else (1.1, 1.6) if base == "arccosh" else (-0.9, 0.9)
    arrays = [numbers(2, 3, seed=i, low=low, high=high) for i in range(len(op.inputs))]
    return [(arrays, {"scalar": 1.25} if "scalar" in op.attributes else {})]


def _program(name, inputs, attributes):
    symbol = compose.create(get(name), [mx.sym.Variable(f"input{i}") for i in range(len(inputs))], {k: str(v) for k, v in attributes.items()}, "node")
    order = [int(n.removeprefix("input")) for n in symbol.list_inputs()]
    tensors = [torch.from_numpy(np.array(inputs[i])) for i in order]
    module = lower(symbol.handle, False, torch.device("cpu"))
    return Program(module, tensors, range(1, len(tensors)) if name == "RNN" else ()), tensors


def check(name, cases=()):
    """Compare on (inputs, attributes) that must all be converted, and on the operator's records, of which one must be if there are no others.

    What computes on integers is converted where others made these, see graph/backends/openvino/test_integers.py.
    """
    if name in conversion.ON_INTEGERS:
        return
    of_records = [(list(s.inputs), s.attributes) for s in RECORDS.get(name, ())]
    if not cases and not of_records:
        cases = _elementwise(name)
    converted = 0
    for k, (inputs, attributes) in enumerate([*cases, *of_records]):
        program, tensors = _program(name, inputs, attributes)
        _, refused = model.build(program)
        assert not refused or k >= len(cases), f"{name}{attributes}: {refused}"
        if refused:
            continue
        converted += 1
        expected = program.module.forward(*tensors)
        found = OpenVINO().compile(program)(*tensors)
        assert len(found) == len(expected)
        for f, e in zip(found, expected):
            assert (f.shape, f.dtype) == (e.shape, e.dtype)
            torch.testing.assert_close(f.to(torch.float64), e.to(torch.float64), rtol=2e-4, atol=2e-5, equal_nan=True)
    assert converted, f"no case of {name} was converted: {refused}"


def refusal(name, *inputs, **attributes):
    """Why an operator stays on torch; None if it does not."""
    _, refused = model.build(_program(name, inputs, attributes)[0])
    reasons = [r for n, r in refused.items() if n.name != "output"]
    return reasons[0] if reasons else None
