"""Two steps of every optimizer on a simulated GPU: the weights of the CPU, everything on the GPU."""
import re

import numpy as np
import pytest
import torch

import mxnet as mx
from gpu_operator_runs import check_same
from mxnet.optimizer import steps as steps_of_optimizers
from simulated_gpus import Watch, gpus

# Those that other tests register begin with an underscore.
OPTIMIZERS = sorted(name for name in mx.optimizer.Optimizer.opt_registry if not name.startswith("_"))
DRAWS = {"sgld"}
# Optimizers that look at numbers on the host; docs/gpu.md names them.
WAITS = {"adamax": ["_local_scalar_dense"],  # whether the first step made 0 / 0
         "lars": ["copy to the host"]}       # the norms, once in a step

START = np.linspace(-1, 2, 12).reshape(4, 3)
GRADIENTS = [np.cos(np.arange(12)).reshape(4, 3), np.sin(np.arange(12)).reshape(4, 3)]


def steps(name, ctx, dtype, stype, watch):
    """The weight and what the optimizer remembers after two steps."""
    wd = 0.0 if name == "groupadagrad" or stype == "row_sparse" else 0.01
    optimizer = mx.optimizer.create(name, learning_rate=0.1, wd=wd, **{"epsilon": 1e-3} if name == "adamax" and stype == "row_sparse" else {},
                                    rescale_grad=0.5, multi_precision=dtype == "float16",
                                    **{"momentum": 0.9} if name in ("sgd", "nag", "signum", "lars") else {})
    weight = mx.nd.array(START, dtype=dtype, ctx=ctx)
    gradients = [mx.nd.array(g, dtype=dtype, ctx=ctx) for g in GRADIENTS]
    if stype == "row_sparse":
        gradients = [mx.nd.sparse.row_sparse_array((g[[0, 2]], [0, 2]), shape=(4, 3), dtype=dtype, ctx=ctx) for g in GRADIENTS]
    mx.random.seed(0)
    updater = mx.optimizer.get_updater(optimizer)
    with watch:
        for gradient in gradients:
            updater(0, gradient, weight)
    return weight, [a for a in flat(updater.states[0]) if a is not None]


def flat(state):
    return [a for s in state for a in flat(s)] if isinstance(state, (list, tuple)) else [state]


def check(name, dtype="float32", stype="default"):
    expected, watch = steps(name, mx.cpu(), dtype, stype, Watch()), Watch()
    with gpus() as (gpu, _):
        found = steps(name, gpu, dtype, stype, watch)
        for a, b in zip([found[0], *found[1]], [expected[0], *expected[1]]):
            if isinstance(a, mx.nd.NDArray):
                check_same(a, b, gpu, name not in DRAWS, 1e-3 if dtype == "float16" else 1e-5)
            else:
                assert a == b
    return sorted({*watch.waits, *watch.copies})


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_optimizer_steps(name, dtype):
    assert check(name, dtype) == WAITS.get(name, [])


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_optimizer_steps_by_rows(name):
    try:
        steps(name, mx.cpu(), "float32", "row_sparse", Watch())
    except mx.MXNetError as error:
        with gpus() as (gpu, _), pytest.raises(mx.MXNetError, match=re.escape(str(error))):
            steps(name, gpu, "float32", "row_sparse", Watch())
    else:
        check(name, stype="row_sparse")


@pytest.mark.parametrize("weights", [1, 3])
def test_many_weights_in_one_call(weights):
    def run(ctx):
        optimizer = mx.optimizer.SGD(learning_rate=0.1, momentum=0.9)
        arrays = [mx.nd.array(START + i, ctx=ctx) for i in range(weights)]
        updater = mx.optimizer.get_updater(optimizer)
        for gradient in GRADIENTS:
            updater(list(range(weights)), [mx.nd.array(gradient, ctx=ctx) for _ in range(weights)], arrays)
        return arrays

    expected = run(mx.cpu())
    with gpus() as (gpu, _):
        for a, b in zip(run(gpu), expected):
            check_same(a, b, gpu)


OPTIONS = [("adam", {}), ("adam", {"wd": 0.01, "clip_gradient": 0.3}), ("nag", {"momentum": 0.9}),
           ("nag", {"momentum": 0.9, "wd": 0.01, "clip_gradient": 0.3}), ("nag", {})]


@pytest.mark.parametrize("dtype, multi_precision", [("float32", False), ("float16", True)])
@pytest.mark.parametrize("name, options", OPTIONS)
def test_many_weights_are_moved_by_few_calls(name, options, dtype, multi_precision, monkeypatch):
    """As each would be by itself; one has its values in another order in memory."""
    calls = []

    def run(ctx):
        optimizer = mx.optimizer.create(name, learning_rate=0.1, multi_precision=multi_precision, rescale_grad=0.5, **options)
        arrays = [mx.nd.array(np.stack([START + i] * 2).reshape(2, 4, 3, 1), dtype=dtype, ctx=ctx) for i in range(3)]
        arrays[1]._data = arrays[1]._data.contiguous(memory_format=torch.channels_last)
        updater = mx.optimizer.get_updater(optimizer)
        for gradient in GRADIENTS:
            gradients = [mx.nd.array(np.stack([gradient, -gradient]).reshape(2, 4, 3, 1), dtype=dtype, ctx=ctx) for _ in arrays]
            gradients[1]._data = gradients[1]._data.contiguous(memory_format=torch.channels_last)
            updater([0, 1, 2], gradients, arrays)
        return arrays

    for together in ("adam_together", "nag_together"):
        function = getattr(steps_of_optimizers, together)
        monkeypatch.setattr(steps_of_optimizers, together, lambda *a, function=function: (calls.append(len(a[0])), function(*a)))
    expected, _ = run(mx.cpu()), calls.clear()
    with gpus() as (gpu, _):
        for a, b in zip(run(gpu), expected):
            check_same(a, b, gpu, tolerance=1e-3 if dtype == "float16" else 1e-5)
    assert calls == ([3, 3] if name == "adam" or options else [])


def test_states_of_an_updater_are_loaded_on_their_gpu():
    with gpus() as (gpu, _):
        updater, again = (mx.optimizer.get_updater(mx.optimizer.create("adam")) for _ in range(2))
        weight, other = mx.nd.array(START, ctx=gpu), mx.nd.array(START, ctx=gpu)
        updater(0, mx.nd.array(GRADIENTS[0], ctx=gpu), weight)
        weight.copyto(other)
        again.set_states(updater.get_states(dump_optimizer=True))
        for u, w in ((updater, weight), (again, other)):
            u(0, mx.nd.array(GRADIENTS[1], ctx=gpu), w)
        check_same(other, weight.as_in_context(mx.cpu()), gpu)
