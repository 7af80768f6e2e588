"""Every layer, cell and loss of Gluon on a simulated GPU, eager and hybridized: values and gradients of the CPU, everything on the GPU."""
import inspect
import itertools

import numpy as np
import pytest

import mxnet as mx
from gpu_operator_runs import check_same
from mxnet.gluon import loss, nn, rnn
from simulated_gpus import Watch, gpus


def real(*shape):
    return np.sin(np.arange(np.prod(shape)) * 0.7 + 0.3).reshape(shape)


def pairs(*sizes):
    """A layer for each number of axes, with its input."""
    return [(n + 1, (2, 4, *[size] * (n + 1))) for n, size in enumerate(sizes)]


def layers():
    for n, shape in pairs(7, 6, 5):
        yield f"Conv{n}D", lambda n=n: getattr(nn, f"Conv{n}D")(4, 3, padding=1, groups=2, activation="relu"), [real(*shape)]
        yield f"Conv{n}DTranspose", lambda n=n: getattr(nn, f"Conv{n}DTranspose")(3, 3, strides=2), [real(*shape)]
        for kind, scope in itertools.product(("Avg", "Max"), ("", "Global")):
            yield f"{scope}{kind}Pool{n}D", lambda n=n, kind=kind, scope=scope: getattr(nn, f"{scope}{kind}Pool{n}D")(), [real(*shape)]
    image = real(2, 4, 6, 5)
    for name, make in {
            "Activation": lambda: nn.Activation("softrelu"), "ELU": nn.ELU, "GELU": nn.GELU, "LeakyReLU": lambda: nn.LeakyReLU(0.1),
            "PReLU": nn.PReLU, "SELU": nn.SELU, "SiLU": nn.SiLU, "Swish": nn.Swish, "BatchNorm": nn.BatchNorm, "BatchNormReLU": nn.BatchNormReLU,
            "BatchNorm-fixed": lambda: nn.BatchNorm(scale=False), "BatchNorm-global": lambda: nn.BatchNorm(use_global_stats=True),
            "GroupNorm": lambda: nn.GroupNorm(2), "InstanceNorm": nn.InstanceNorm, "LayerNorm": nn.LayerNorm, "Dense": lambda: nn.Dense(3),
            "Dense-last": lambda: nn.Dense(3, flatten=False, activation="tanh"), "Dropout": lambda: nn.Dropout(0.0), "Flatten": nn.Flatten,
            "HybridLambda": lambda: nn.HybridLambda("tanh"), "Lambda": lambda: nn.Lambda("tanh"), "ReflectionPad2D": lambda: nn.ReflectionPad2D(1),
    }.items():
        yield name, make, [image]
    yield "Embedding", lambda: nn.Embedding(5, 3), [np.array([[0, 4], [2, 2]])]
    yield "Embedding-rows", lambda: nn.Embedding(5, 3, sparse_grad=True), [np.array([[0, 4], [2, 2]])]
    yield "Sequential", lambda: sequence(nn.Sequential()), [image]
    yield "HybridSequential", lambda: sequence(nn.HybridSequential()), [image]
    time = real(4, 2, 3)
    for name in ("RNN", "LSTM", "GRU"):
        yield name, lambda name=name: getattr(rnn, name)(5), [time]
        yield f"{name}-stacked", lambda name=name: getattr(rnn, name)(5, num_layers=2, bidirectional=True), [time]
    yield "LSTM-projection", lambda: rnn.LSTM(5, projection_size=3), [time]


def sequence(block):
    relu = nn.Lambda("relu") if type(block) is nn.Sequential else nn.Activation("relu")
    block.add(nn.Conv2D(3, 3), nn.BatchNorm(), relu, nn.MaxPool2D(), nn.Dense(2))
    return block


class HybridUnrolled(mx.gluon.HybridBlock):
    """A cell over 3 steps, in a graph."""

    def __init__(self, cell):
        super().__init__()
        self.cell = cell

    def hybrid_forward(self, F, x):
        return self.cell.unroll(3, x, layout="NTC", merge_outputs=True)[0]


class Unrolled(mx.gluon.Block):
    """A cell over 3 steps."""

    def __init__(self, cell):
        super().__init__()
        self.cell = cell

    def forward(self, x):
        return self.cell.unroll(3, x, layout="NTC", merge_outputs=True)[0]


def unrolled(cell):
    return (HybridUnrolled if isinstance(cell, mx.gluon.HybridBlock) else Unrolled)(cell)


def stacked(container, *cells):
    for cell in cells:
        container.add(cell)
    return container


CELLS = {
    "RNNCell": lambda: rnn.RNNCell(4), "LSTMCell": lambda: rnn.LSTMCell(4), "GRUCell": lambda: rnn.GRUCell(4),
    "SequentialRNNCell": lambda: stacked(rnn.SequentialRNNCell(), rnn.LSTMCell(4), rnn.GRUCell(4)),
    "HybridSequentialRNNCell": lambda: stacked(rnn.HybridSequentialRNNCell(), rnn.LSTMCell(4), rnn.GRUCell(4)),
    "DropoutCell": lambda: stacked(rnn.HybridSequentialRNNCell(), rnn.LSTMCell(4), rnn.DropoutCell(0.0)),
    "BidirectionalCell": lambda: rnn.BidirectionalCell(rnn.LSTMCell(4), rnn.LSTMCell(4)),
    "ResidualCell": lambda: rnn.ResidualCell(rnn.GRUCell(4)), "ZoneoutCell": lambda: rnn.ZoneoutCell(rnn.RNNCell(4), 0.0, 0.0),
}

FEW, SIGNS, WIDE = real(4, 3), np.array([[1, -1, 1]] * 4), real(4, 5)
LOSSES = {
    "L1Loss": [FEW, WIDE[:, :3]], "L2Loss": [FEW, WIDE[:, :3]], "HuberLoss": [FEW, WIDE[:, :3]], "HingeLoss": [FEW, SIGNS],
    "SquaredHingeLoss": [FEW, SIGNS], "LogisticLoss": [FEW, SIGNS], "SigmoidBCELoss": [FEW, SIGNS > 0], "SoftmaxCELoss": [FEW, np.arange(4) % 3],
    "KLDivLoss": [FEW, np.full((4, 3), 1 / 3)], "CTCLoss": [real(2, 6, 4), np.array([[1, 2], [2, -1]])],
    "PoissonNLLLoss": [FEW, abs(WIDE[:, :3])],
    "TripletLoss": [FEW, WIDE[:, :3], WIDE[:, 1:4]], "CosineEmbeddingLoss": [FEW, WIDE[:, :3], np.array([1, -1, 1, 1])],
    "SDMLLoss": [FEW, WIDE[:, :3]],
}
CASES = [*layers(), *((name, lambda make=make: unrolled(make()), [real(2, 3, 4)]) for name, make in CELLS.items()),
         *((name, getattr(loss, name), inputs) for name, inputs in LOSSES.items())]
BASES = {"Block", "HybridBlock", "SymbolBlock", "HybridRecurrentCell", "RecurrentCell", "ModifierCell", "Loss", "Any", "UsageError"}
WAITS = {"Embedding-rows"}  # how many rows its gradient has depends on the values


def run(make, inputs, ctx, hybridized, watch):
    """The results, gradients and parameters of a layer after a training step's forward and backward, then its results for scoring."""
    layer = make()
    layer.initialize(ctx=ctx)
    if hybridized:
        layer.hybridize()
    inputs = [mx.nd.array(i, ctx=ctx) for i in inputs]
    layer(*inputs)  # which finds the shapes of parameters
    parameters = [p for _, p in sorted(layer._collect_params_with_prefix().items())]
    for k, p in enumerate(parameters):
        p.set_data(mx.nd.array(abs(np.cos(np.arange(np.prod(p.shape)) + k)).reshape(p.shape) * 0.5 + 0.1))
    inputs[0].attach_grad()
    for _ in range(2 if hybridized else 1):  # the second call of a graph takes other ways
        with watch:
            with mx.autograd.record():
                result = layer(*inputs)
            result.backward()
            scored = layer(*inputs)
    learned = [p for p in parameters if p.grad_req != "null"]
    return [result, scored, inputs[0].grad, *(p.grad(ctx) for p in learned), *(p.data(ctx) for p in parameters)]


@pytest.mark.parametrize("hybridized", [False, True], ids=["eager", "hybridized"])
@pytest.mark.parametrize("name, make, inputs", CASES, ids=[c[0] for c in CASES])
def test_layer(name, make, inputs, hybridized):
    expected, watch = run(make, inputs, mx.cpu(), hybridized, Watch()), Watch()
    with gpus() as (gpu, _):
        for a, b in zip(run(make, inputs, gpu, hybridized, watch), expected, strict=True):
            check_same(*((a.data, b.data) if a.stype != "default" else (a, b)), gpu, tolerance=1e-4)
    assert bool(watch.waits or watch.copies) == (name in WAITS), (watch.waits, watch.copies)


def test_every_layer_is_here():
    names = {n for module in (nn, rnn, loss) for n, c in vars(module).items() if inspect.isclass(c) and not n.startswith("_")}
    same = {"SigmoidBinaryCrossEntropyLoss", "SoftmaxCrossEntropyLoss"}  # other names of losses that are here
    # tests/gluon/test_sharded_*.py has these, on several contexts.
    sharded = {"ShardedDense", "ShardedEmbedding", "ShardedSoftmaxCELoss", "ShardedLogits", "Margin"}
    assert names - BASES - same - sharded == {c[0].split("-")[0] for c in CASES}
