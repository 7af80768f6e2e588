"""Convolutions of concatenations, in parts: the same values, and only where the parts are cheaper."""
import numpy as np
import pytest
import torch

import mxnet as mx
from mxnet.graph.passes.conv_over_concat import split_convolutions
from mxnet.graph.program import Program, operator_of
from mxnet.graph.runtime.runner import GraphRunner


def program(out, fixed=True, **shapes):
    """The program of a symbol with its weights fixed, and its inputs."""
    runner = GraphRunner(out)
    sizes = dict(zip(out.list_arguments(), out.infer_shape(**shapes)[0]))
    random = np.random.RandomState(0)
    inputs = [torch.from_numpy(random.uniform(-1, 1, sizes[name]).astype("float32")) for name in runner.input_names]
    weights = [i for i, name in enumerate(runner.input_names) if name not in shapes] if fixed else []
    return Program(runner.lowered(False, torch.device("cpu"), inputs), inputs, weights)


def names(made):
    return [op.name for n in made.graph.nodes if (op := operator_of(n)) is not None]


def joined(*channels):
    return mx.sym.Concat(*[mx.sym.var(f"x{i}") for i in range(len(channels))], dim=1)


def check(out, before, after, **shapes):
    """The pass makes of these operators those, which compute the same."""
    made = program(out, **shapes)
    expected = made.module(*made.inputs)
    assert names(made) == before
    split_convolutions(made)
    assert names(made) == after
    for found, wanted in zip(made.module(*made.inputs), expected):
        torch.testing.assert_close(found, wanted, rtol=1e-5, atol=1e-5)
    return made


def test_parts_are_summed():
    out = mx.sym.Convolution(joined(5, 7), kernel=(3, 3), pad=(1, 1), stride=(2, 2), num_filter=4, name="c")
    made = check(out, ["Concat", "Convolution"], ["slice_axis", "Convolution", "slice_axis", "Convolution", "elemwise_add"],
                 x0=(2, 5, 8, 8), x1=(2, 7, 8, 8))
    assert made.report == ["distribution: 1 x convolution of a concatenation in parts"]
    slices = [made.constants[n] for n in made.graph.nodes if n.op == "call_function" and operator_of(n).name == "slice_axis"]
    assert [tuple(s.shape) for s in slices] == [(4, 5, 3, 3), (4, 7, 3, 3)]
    assert all(n in made.values for n in made.graph.nodes if n.op == "call_function")


@pytest.mark.parametrize("kind", ["max", "avg"])
def test_behind_a_pooling_three_parts_without_a_bias(kind):
    pooled = mx.sym.Pooling(joined(4, 6, 8), kernel=(3, 3), stride=(2, 2), pool_type=kind)
    out = mx.sym.Convolution(pooled, kernel=(1, 1), num_filter=4, no_bias=True, name="c")
    check(out, ["Concat", "Pooling", "Convolution"],
          ["slice_axis", "Pooling", "Convolution", "slice_axis", "Pooling", "Convolution", "elemwise_add", "slice_axis", "Pooling", "Convolution",
           "elemwise_add"], x0=(1, 4, 9, 9), x1=(1, 6, 9, 9), x2=(1, 8, 9, 9))


def convolution(data, filters=4, **more):
    return mx.sym.Convolution(data, kernel=(1, 1), num_filter=filters, **more)


@pytest.mark.parametrize("out", [
    convolution(joined(8, 8), filters=9),  # the sums are larger than what is joined
    convolution(joined(8, 8), num_group=2),
    convolution(mx.sym.Concat(mx.sym.var("x0"), mx.sym.var("x1"), dim=2)),
    convolution(mx.sym.relu(joined(8, 8))),
], ids=["many filters", "groups", "another axis", "something between"])
def test_left_alone(out):
    made = program(out, x0=(1, 8, 4, 4), x1=(1, 8, 4, 4))
    before = names(made)
    split_convolutions(made)
    assert names(made) == before and made.report == []


def test_left_alone_where_the_concatenation_is_read_elsewhere():
    both = joined(8, 8)
    made = program(mx.sym.Group([both, convolution(both)]), x0=(1, 8, 4, 4), x1=(1, 8, 4, 4))
    split_convolutions(made)
    assert names(made) == ["Concat", "Convolution"]


def test_left_alone_where_weights_may_change():
    made = program(convolution(joined(8, 8)), fixed=False, x0=(1, 8, 4, 4), x1=(1, 8, 4, 4))
    split_convolutions(made)
    assert names(made) == ["Concat", "Convolution"]
