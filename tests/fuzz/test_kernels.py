"""A short campaign with a fixed seed on the kernels; `python -m tests.fuzz --sanitize --only kernels` is the long one."""
import json
import random

import pytest
import torch

from fuzz import arrays, campaign, kernels
from mxnet.kernels.nn import nms
from mxnet.kernels.runtime import contract

COUNTS = {"kernels.handles": 400, "kernels.functions": 150, "kernels.operators": 80, "kernels.heap": 40, "kernels.jpeg": 400}
needs_compiler = pytest.mark.skipif(not nms._overlaps.available(), reason="no C++ compiler")


@needs_compiler
@pytest.mark.parametrize("target", kernels.TARGETS, ids=lambda t: t.name)
def test_right_and_wrong_arguments(target):
    number, failed = campaign.run([target], seed=11, seconds=100, count=COUNTS[target.name])
    assert not failed, "\n".join(f"{case!r}\n{text}" for _, case, text in failed)
    assert number == COUNTS[target.name]


@needs_compiler
@pytest.mark.parametrize("name", sorted(kernels._HANDLES))
def test_what_fits_each_declaration_runs(name):
    for seed in range(3):
        case = kernels._fitting(name, random.Random(seed))
        kernels._run_handle(json.dumps(case).encode())


@needs_compiler
def test_a_wrong_result_is_noticed(monkeypatch):
    case = json.dumps({"function": "overlaps", "right": True, "attributes": {}, "threads": 1,
                       "arrays": {k: arrays.described("float32", [3, 4], random.Random(0), low=0, high=9) for k in ("lhs", "rhs")}}).encode()
    kernels._run_function(case)
    run = contract.Plan.__call__
    monkeypatch.setattr(contract.Plan, "__call__", lambda *a: [t + 1 for t in run(*a)])
    with pytest.raises(kernels.Wrong, match="overlaps: result 0 differs from torch's by 1"):
        kernels._run_function(case)


@pytest.mark.parametrize("order", arrays.ORDERS)
def test_descriptions_of_arrays(order):
    spec = arrays.described("float32", [2, 3, 4, 5], random.Random(0), order)
    made, again = arrays.made(spec), arrays.made(spec)
    assert made.shape == (2, 3, 4, 5) and made.dtype is torch.float32
    if order not in ("meta", "sparse"):
        assert torch.equal(made, again)
        assert made.is_contiguous() == (order in ("plain", "the end", "parameter", "subclass"))


def test_every_description_can_be_made():
    rng = random.Random(4)
    for _ in range(300):
        specs = [arrays.described(rng.choice(arrays.TYPES), [2, 3], rng), None, arrays.described("int64", [4], rng, low=-1, high=3)]
        for _ in range(3):
            arrays.spoil(specs, rng)
        assert len(arrays.all_made(json.loads(json.dumps(specs)))) == 3
