"""Every converter gives what the operator's own function gives: on the records of its operator, and on a few cases of their own."""
import functools
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
from mxnet.graph.openvino import OpenVINO, conversion, core, model  # noqa: E402

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "ops"))
from records import RECORDS  # noqa: E402

# Converters of what needs inputs that the records don't hold (or of operators of mx.np): cases of their own.
F = "float32"


def numbers(*shape, seed=0, low=-1.5, high=1.5):
    return np.random.RandomState(seed).uniform(low, high, shape).astype(F)


RNN_SIZE = {"lstm": 4, "gru": 3, "rnn_relu": 1, "rnn_tanh": 1}


def rnn_case(mode, directions, layers):
    size, width, gates = 3, 2, RNN_SIZE[mode]
    count = sum(directions * gates * size * ((width if k == 0 else size * directions) + size + 2) for k in range(layers))
    states = [numbers(layers * directions, 2, size, seed=i) for i in range(2 if mode == "lstm" else 1)]
    return [numbers(4, 2, width), numbers(count, seed=5), *states], dict(
        state_size=size, num_layers=layers, mode=mode, bidirectional=directions == 2, state_outputs=True)


OWN = {
    "RNN": [rnn_case(m, d, n) for m in RNN_SIZE for d in (1, 2) for n in (1, 2)],
    "Pooling": [([numbers(1, 2, 7, 7)], dict(kernel=(3, 3), stride=(2, 2), pool_type=t, pooling_convention=c, pad=p))
                for t in ("max", "avg") for c in ("valid", "full") for p in ((0, 0), (1, 1))],
    "Convolution": [([numbers(2, 4, 6, 6), numbers(6, 2, 3, 3), numbers(6)],
                     dict(kernel=(3, 3), num_filter=6, num_group=2, stride=(2, 1), pad=(1, 0))),
                    ([numbers(1, 3, 8), numbers(4, 3, 3)], dict(kernel=(3,), num_filter=4, no_bias=True, dilate=(2,)))],
    "Deconvolution": [([numbers(1, 4, 5, 5), numbers(4, 3, 4, 4)], dict(kernel=(4, 4), stride=(2, 2), pad=(1, 1), num_filter=6, num_group=2)),
                      ([numbers(1, 2, 3, 3), numbers(2, 3, 3, 3), numbers(3)],
                       dict(kernel=(3, 3), stride=(2, 2), adj=(1, 1), num_filter=3, no_bias=False))],
    "UpSampling": [([numbers(1, 2, 3, 3)], dict(scale=2, sample_type="nearest"))],
    "_np_reshape": [([numbers(2, 6)], dict(newshape=(3, -1)))], "_npx_reshape": [([numbers(2, 6)], dict(newshape=(-2, 3, -1)))],
    "_np_transpose": [([numbers(2, 3, 4)], dict(axes=(1, 0, 2)))], "_np_squeeze": [([numbers(2, 1)], {})],
    "_npi_concatenate": [([numbers(2, 3), numbers(2, 3)], dict(axis=1))], "_npi_broadcast_to": [([numbers(1, 3)], dict(shape=(2, 3)))],
    "_npi_mean": [([numbers(2, 3)], dict(axis=1))], "_np_sum": [([numbers(2, 3)], dict(axis=(0, 1), keepdims=True))],
    "_np_prod": [([numbers(2, 3)], dict(axis=0))], "_np_max": [([numbers(2, 3)], dict(axis=0))], "_np_min": [([numbers(2, 3)], dict(axis=0))],
    "_npi_clip": [([numbers(2, 3)], dict(a_min=-0.5, a_max=0.5))], "_npi_cast": [([numbers(2, 3)], dict(dtype="int32"))],
    "_np_dot": [([numbers(2, 3), numbers(3, 4)], {})], "_npi_matmul": [([numbers(5, 2, 3), numbers(3, 4)], {})],
    "amp_cast": [([numbers(2, 3)], dict(dtype="float32"))],
    "BatchNorm_v1": [([numbers(2, 3, 4), *(numbers(3, seed=i, low=0.5) for i in range(4))], dict(fix_gamma=f)) for f in (True, False)],
    "_npi_where": [([numbers(2, 3), numbers(2, 3), numbers(2, 3, seed=1)], {})],
}
POSITIVE = ("sqrt", "log", "log2", "log10", "power", "_npi_power_scalar", "_npi_rpower_scalar", "reciprocal")


def own_cases(name):
    """Cases of a converter for which neither the records nor `OWN` have any: elementwise operators of mx.np."""
    op, base = get(name), name.removeprefix("_npi_")
    low, high = (0.2, 1.4) if base in POSITIVE or name in POSITIVE else (1.1, 1.6) if base == "arccosh" else (-0.9, 0.9)
    arrays = [numbers(2, 3, seed=i, low=low, high=high) for i in range(len(op.inputs))]
    return [(arrays, {"scalar": 1.25} if "scalar" in op.attributes else {})]


def registered(name):
    try:
        get(name)
        return True
    except mx.MXNetError:
        return False


@functools.cache
def names():
    model.build  # the converters are registered when this module is imported
    return sorted(n for n in conversion.CONVERTERS if registered(n))


def cases(name):
    found = [(list(s.inputs), s.attributes) for s in RECORDS.get(name, ())] + OWN.get(name, [])
    return found or own_cases(name)


def program_of(name, inputs, attributes):
    symbol = compose.create(get(name), [mx.sym.Variable(f"input{i}") for i in range(len(inputs))], {k: str(v) for k, v in attributes.items()}, "node")
    order = [int(n.removeprefix("input")) for n in symbol.list_inputs()]
    tensors = [torch.from_numpy(np.array(inputs[i])) for i in order]
    module = lower(symbol._outputs, False, torch.device("cpu"))
    return Program(module, tensors, range(1, len(tensors)) if name in ("RNN",) else ()), tensors


@pytest.mark.parametrize("name", names())
def test_converter(name):
    converted = 0
    for inputs, attributes in cases(name):
        program, tensors = program_of(name, inputs, attributes)
        built, refused = model.build(program)
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


def test_every_converter_names_an_operator():
    assert [n for n in conversion.CONVERTERS if not registered(n)] == []


def test_the_runtime_is_started_once():
    assert core() is core()
