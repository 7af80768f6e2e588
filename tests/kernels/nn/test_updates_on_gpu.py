"""The GPU's updates without a GPU: this file run as a program computes steps in Triton's interpreter, which is chosen when triton is imported.

Numbers of real GPUs are compared in tests/gpu/test_training.py.
"""
import json
import types
import warnings

import numpy as np
import pytest
import torch

import mxnet as mx
from mxnet.kernels.nn import updates_on_gpu
from mxnet.kernels.nn.updates_on_gpu import Step
from mxnet.kernels.runtime.triton_kernels import CompiledKernels
from mxnet.ndarray import memory_format
from triton_programs import interpreted_results, needs_triton, repair_interpreter

SHAPES = (1,), (7,), (2, 4, 16, 32), (100, 200), (3, 5)
OPTIMIZERS = {
    "sgd": {}, "sgd momentum": {"momentum": 0.9}, "nag": {"momentum": 0.9}, "adam": {}, "adam zero": {"epsilon": 0}, "adamax": {},
    "adamax epsilon": {"epsilon": 1e-3}, "rmsprop": {}, "rmsprop clip": {"clip_weights": 0.5}, "rmsprop centered": {"centered": True},
    "adagrad": {}, "adadelta": {}, "nadam": {}, "ftrl": {}, "ftml": {}, "signum": {}, "signum lh": {"wd_lh": 0.1},
    "signum none": {"momentum": 0}, "adamw": {}, "adabelief": {}, "adabelief biased": {"correct_bias": False}, "dcasgd": {},
    "dcasgd momentum": {"momentum": 0.9}, "lars": {"momentum": 0.9}}
ALL_OPTIONS = {"plain": {}, "wd": {"wd": 0.1}, "clip": {"clip_gradient": 0.4, "wd": 0.1, "rescale_grad": 0.5}, "zero clip": {"clip_gradient": 0.0},
               "float16": {"wd": 0.1, "rescale_grad": 0.5}, "bfloat16": {"clip_gradient": 0.4}}
CASES = [f"{name}, {options}" for name in OPTIMIZERS for options in ALL_OPTIONS]
STEPS = 3


def flat(state):
    return [a for s in state for a in flat(s)] if isinstance(state, (list, tuple)) else [] if state is None else [state]


def run(name, options):
    """Weights and states after some steps. The last one has gradients that are not finite."""
    random = np.random.RandomState(0)
    dtype = options if options.endswith("16") else "float32"
    optimizer = mx.optimizer.create(name.split()[0], learning_rate=0.1, multi_precision=dtype != "float32",
                                    **OPTIMIZERS[name], **ALL_OPTIONS[options])
    weights = [mx.nd.array(random.randn(*shape), dtype=dtype) for shape in SHAPES]
    memory_format.channels_last(weights[2])
    updater = mx.optimizer.get_updater(optimizer)
    for step in range(STEPS):
        grads = [mx.nd.array(random.randn(*shape), dtype=dtype) for shape in SHAPES]
        memory_format.channels_last(grads[2])
        if step == STEPS - 1:
            grads[3][0, :3] = mx.nd.array([np.nan, np.inf, -np.inf], dtype=dtype)
        updater(list(range(len(SHAPES))), grads, weights)
    return [a.astype("float32").asnumpy() for i, w in enumerate(weights) for a in [w, *flat(updater.states[i])]]


def difference(found, expected):
    """The largest difference of two arrays, relative to values above 1; infinite if other elements are finite.

    One element in 10,000 may differ, by a step of Signum whose momentum is about 0.
    """
    finite = np.isfinite(expected)
    if not (np.isfinite(found) == finite).all():
        return np.inf
    differences = np.sort((abs(found - expected) / np.maximum(abs(expected), 1))[finite])
    return float(differences[len(differences) - 1 - len(differences) // 10000]) if len(differences) else 0.0


def compared(case):
    """The largest difference of weights and states from those of torch's operators, and the number of starts."""
    starts, start = [], updates_on_gpu.start
    expected = run(*case.split(", "))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(updates_on_gpu, "on_gpu", lambda tensor: True)
        patch.setattr(updates_on_gpu, "start", lambda *a: (starts.append(len(a[1])), start(*a))[1])
        found = run(*case.split(", "))
    return max(map(difference, found, expected)), starts


def main():
    repair_interpreter()
    warnings.simplefilter("ignore")
    print(json.dumps({case: compared(case) for case in CASES}))


@pytest.fixture(scope="module")
def interpreted():
    return interpreted_results(__file__)


@needs_triton
@pytest.mark.parametrize("case", CASES)
def test_steps_are_those_of_torchs_operators(case, interpreted):
    error, starts = interpreted[case]
    assert error < {"float16": 2e-3, "bfloat16": 2e-2}.get(case.split(", ")[1], 2e-5)
    count, name = len(SHAPES), case.split(", ")[0]
    each = [1] * count  # numbers of their own: the schedule of Nadam, the norms of LARS; or the first step's 0 / 0 is looked for
    assert starts == (each * STEPS if name in ("nadam", "lars") else [*(each if name in ("adamax", "adam zero") else [count]), count, count])


@pytest.fixture
def anywhere(monkeypatch):
    """The kernel is tried on the CPU."""
    monkeypatch.setattr(updates_on_gpu, "available", lambda device: True)


def test_what_it_leaves_to_torch(anywhere, monkeypatch):
    """Nothing has changed where the kernel can't run."""
    monkeypatch.setattr(updates_on_gpu, "start", lambda *_: pytest.fail("it would have run"))
    weight, half = torch.ones(3), torch.ones(3, dtype=torch.float16)
    for weights, grads, moms, copies in (
            ([weight], [half], [], None), ([weight], [weight], [], [weight]), ([weight] * 2, [half, weight], [], [half] * 2),
            ([half], [half], [], None), ([weight.double()], [weight.double()], [], None), ([weight], [torch.ones(2)], [], None),
            ([weight, half], [weight, weight], [], None), ([weight], [weight], [[weight.double()]], None),
            ([weight] * 2, [half] * 2, [], [half, half.bfloat16()])):
        assert not updates_on_gpu.move(Step("sgd", (0.1, 0.9), 1, None), weights, grads, moms, copies)
    assert not updates_on_gpu.move(Step("sgd", (0.1, 0.9), 1, -0.5), [weight], [weight], [])
    assert weight.tolist() == [1, 1, 1]


def test_a_kernel_that_fails_is_tried_once(anywhere, monkeypatch, caplog):
    def fail(*_):
        raise RuntimeError("no assembler")

    monkeypatch.setattr(CompiledKernels, "start", fail)
    monkeypatch.setattr(updates_on_gpu, "_kernels", lambda: types.SimpleNamespace(tl=torch))
    monkeypatch.setattr(updates_on_gpu, "_failed", set())
    for _ in range(2):
        assert not updates_on_gpu.move(Step("sgd", (0.1, 0), 1, None), [torch.ones(3)], [torch.ones(3)], [])
    assert [r.getMessage() for r in caplog.records] == ["optimizers take torch's kernels, as Triton's fails on cpu: no assembler"]


def test_kernels_are_selected_once():
    """By Triton; then the compiled kernel is started, unless there is no key."""
    calls = []

    class Selecting:
        def __getitem__(self, grid):
            return lambda *arguments, **options: (calls.append(("select", arguments)), {grid: lambda *a: calls.append(("start", a))})[1]

    kernels = CompiledKernels()
    for key in (None, "a", "a", "b", None):
        kernels.start(key, Selecting, (1, 1, 1), (key,), 8)
    assert calls == [("select", (None,)), ("select", ("a",)), ("start", ("a",)), ("select", ("b",)), ("select", (None,))]


def tables(monkeypatch, *args):
    """The tables with which the kernel starts, and whether their addresses are aligned."""
    started = []
    monkeypatch.setattr(updates_on_gpu, "_kernels", lambda: types.SimpleNamespace(tl=torch, move=None))
    monkeypatch.setattr(CompiledKernels, "start", lambda self, key, load, grid, arguments, warps: started.append((grid, arguments, key)))
    done = updates_on_gpu.move(*args)
    return done, [(grid[0], arguments[0].tolist(), key[-1]) for grid, arguments, key in started]


def test_tables_name_pieces(anywhere, monkeypatch):
    data = torch.zeros(80000)
    weights, grads, moms = ([data[i:i + size] for i, size in places] for places in (((0, 20000), (20000, 3)), ((0, 20000), (1, 3)),
                                                                                    ((32000, 20000), (60000, 3))))
    copies = [torch.zeros(20000, dtype=torch.float16), torch.zeros(3, dtype=torch.float16)]
    step, place = Step("sgd", (0.1, 0.9), 1, None), data.data_ptr()
    w, m, (c, other) = place, place + 4 * 32000, [t.data_ptr() for t in copies]
    rows = [[w, w, m, w, w, c, 16384], [w + 65536, w + 65536, m + 65536, w + 65536, w + 65536, c + 32768, 3616],
            [w + 80000, w + 4, place + 240000, w + 80000, w + 80000, other, 3]]
    assert tables(monkeypatch, step, weights, grads, [moms], copies) == (True, [(3, rows, False)])
    aligned = torch.zeros(64)[(-data.data_ptr() // 4) % 4:][:4]
    assert tables(monkeypatch, step, [aligned], [aligned], [])[1][0][2] == (aligned.data_ptr() % 16 == 0)


def test_weights_that_overlap_are_left_to_torch(anywhere, monkeypatch):
    data, step = torch.zeros(100), Step("sgd", (0.1, 0.9), 1, None)
    assert tables(monkeypatch, step, [data[:50], data[49:99]], [data[:50]] * 2, []) == (False, [])
    assert tables(monkeypatch, step, [data[:50]], [data[:50]], [[data[:50]]]) == (False, [])
    assert tables(monkeypatch, step, [data[:50], data[50:]], [data[:50]] * 2, [])[0]


def test_a_table_that_is_added_again_counts_once():
    tables = updates_on_gpu._Tables()
    for _ in range(3):
        tables.add(("key",), (torch.zeros(5, 7), True))
    assert tables._rows == 5


if __name__ == "__main__":
    main()
