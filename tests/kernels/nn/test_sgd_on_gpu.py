"""The GPU's SGD without a GPU: this file run as a program computes steps in Triton's interpreter, which is chosen when triton is imported.

Numbers of real GPUs are compared in tests/gpu/test_training.py.
"""
import importlib.util
import itertools
import json

import pytest
import torch

from mxnet.kernels.nn import sgd_on_gpu
from triton_programs import interpreted_results, repair_interpreter

needs_triton = pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="triton is not installed, which torch for CUDA brings")
SHAPES = (1,), (3, 5), (200,), (64,), (0,), (65,)  # of weights; a piece is 64 elements
CASES = [f"{dtype}-{momentum}-{clip}-{wd}-{offset}" for dtype, momentum, clip, wd, offset in
         itertools.product(("float32", "bfloat16", "float16"), (0, 0.9), (0, 0.5), (0, 0.1), (0, 1))]


def step(case):
    """The largest differences of weights, momenta and copies from those of double precision, and whether a NaN came through."""
    dtype, momentum, clip, wd, offset = case.split("-")
    dtype, momentum, clip, wd, offset = getattr(torch, dtype), float(momentum), float(clip), float(wd), int(offset)
    made = [torch.randn(int(torch.Size(shape).numel()) + offset)[offset:].reshape(shape) for shape in SHAPES * 3]
    weights, moms, grads = made[:6], made[6:12] if momentum else None, [g.to(dtype) for g in made[12:]]
    copies = None if dtype is torch.float32 else [torch.zeros(shape, dtype=dtype) for shape in SHAPES]
    grads[2][7] = float("nan")
    before = [[t.double() for t in group or []] for group in (weights, moms)]
    if not sgd_on_gpu.move(weights, grads, moms, copies, 0.1, wd, momentum, 0.5, clip or None):
        return "did not run"
    worst = [0.0, 0.0, 0.0]
    for i, weight in enumerate(weights):
        grad = grads[i].double() * 0.5
        change = -0.1 * ((grad.clamp(-clip, clip) if clip else grad) + wd * before[0][i])
        change += momentum * before[1][i] if moms else 0
        pairs = [(weight, before[0][i] + change), (moms[i], change) if moms else (weight, weight), (copies[i] if copies else weight, weight)]
        for j, (found, expected) in enumerate(pairs):
            if i == 2 and not (found.flatten()[7].isnan() and found.isnan().sum() == 1):
                return "the NaN is lost"
            worst[j] = max([worst[j], *(found.double() - expected).abs().flatten().nan_to_num(0).tolist()])
    return worst


def main():
    repair_interpreter()
    sgd_on_gpu._PIECE, sgd_on_gpu._BLOCK = 64, 16
    torch.manual_seed(0)
    print(json.dumps({case: step(case) for case in CASES}))


@pytest.fixture(scope="module")
def interpreted():
    return interpreted_results(__file__)


@needs_triton
@pytest.mark.parametrize("case", CASES)
def test_a_step_is_that_of_double_precision(case, interpreted):
    weights, momenta, copies = interpreted[case]
    assert weights < 1e-6 and momenta < 1e-6
    assert copies < {"float32": 1e-9, "bfloat16": 4e-2, "float16": 2e-3}[case.split("-")[0]]  # half of, or where it truncates one, last place


def test_what_it_leaves_to_torch(monkeypatch):
    """Nothing has changed where the kernel can't run."""
    monkeypatch.setattr(sgd_on_gpu, "available", lambda device: True)
    monkeypatch.setattr(sgd_on_gpu, "_table", lambda *_: pytest.fail("it would have run"))
    weight, half = torch.ones(3), torch.ones(3, dtype=torch.float16)
    for weights, grads, moms, copies in (
            ([weight], [half], None, None), ([weight], [weight], None, [half]), ([weight], [half], None, [half.bfloat16()]),
            ([half], [half], None, None), ([weight.double()], [weight.double()], None, None), ([weight], [torch.ones(2)], None, None),
            ([weight, half], [weight, weight], None, None), ([weight], [weight], [weight.double()], None)):
        assert not sgd_on_gpu.move(weights, grads, moms, copies, 0.1, 0, 0.9, 1, None)
    assert weight.tolist() == [1, 1, 1]


def test_a_kernel_that_fails_is_tried_once(monkeypatch, caplog):
    class Kernels:
        tl = torch
        move = {}

    monkeypatch.setattr(sgd_on_gpu, "available", lambda device: True)
    monkeypatch.setattr(sgd_on_gpu, "_kernels", lambda: Kernels)
    monkeypatch.setattr(sgd_on_gpu, "_failed", set())
    monkeypatch.setattr(sgd_on_gpu, "_tables", {})
    for _ in range(2):
        assert not sgd_on_gpu.move([torch.ones(3)], [torch.ones(3)], None, None, 0.1, 0, 0, 1, None)
    assert [r.getMessage() for r in caplog.records] == ["SGD takes torch's kernels, as Triton's fails on cpu: (1,)"]


def test_tables_name_pieces_and_few_are_kept(monkeypatch):
    monkeypatch.setattr(sgd_on_gpu, "_PIECE", 100)
    table, aligned = sgd_on_gpu._table((250, 3), ((16, 4), (32, 64), (48, 80), (64, 96)), 2, torch.device("cpu"))
    assert table.tolist() == [[16, 32, 48, 64, 100], [416, 232, 448, 264, 100], [816, 432, 848, 464, 50], [4, 64, 80, 96, 3]] and not aligned
    assert sgd_on_gpu._table((5,), ((16,), (32,), (48,), (64,)), 4, torch.device("cpu"))[1]


if __name__ == "__main__":
    main()
