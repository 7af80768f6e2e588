"""A short campaign of calls with a fixed seed, and every case that failed once."""
import json
import random

import numpy as np
import pytest

import mxnet as mx
from fuzz import calls, campaign, frontends, supervise
from mxnet.ops.registry import OPERATORS, get

COUNTS = {"calls.nd": 1500, "calls.compiled": 40}


@pytest.mark.parametrize("target", campaign.targets(["calls", "frontends"]).values(), ids=lambda t: t.name)
def test_hostile_calls(target):
    count = COUNTS.get(target.name, 100 if target.name.startswith("calls") else 400)
    number, failed = campaign.run([target], seed=11, seconds=60, count=count)
    assert not failed, "\n".join(f"{case!r}\n{text}" for _, case, text in failed)
    assert number == count


@pytest.mark.parametrize("path", sorted([p for m in ("calls", "frontends") for p in supervise.CASES.glob(f"{m}.*--*")]), ids=lambda path: path.name)
def test_what_failed_once(path):
    assert not isinstance(campaign.attempt(campaign.targets()[path.name.split("--")[0]], path.read_bytes()), str)


def _case(op, inputs=(), attributes=None, **more):
    return json.dumps({"op": op, "inputs": list(inputs), "attributes": attributes or {}, "gradient": False, "training": False, **more}).encode()


def test_every_operator_is_called_and_most_calls_are_nearly_right():
    assert set(calls.operators()) == {op.name for op in OPERATORS.values()}
    rng, refused = random.Random(1), 0
    target = campaign.targets(["calls.nd"])["calls.nd"]
    for _ in range(300):
        refused += campaign.attempt(target, target.make(rng))
    assert 60 < refused < 240


def test_a_case_says_what_is_called():
    x = {"shape": [3], "dtype": "int8", "values": [1, 300, float("nan")]}
    case = calls._Case(_case("clip", [x, {"same": 0}, None], {"a_min": 0, "a_max": [1, [2]]}, out=[{"input": 0}]))
    assert case.arrays[0].asnumpy().tolist() == [1, 44, 0] and case.arrays[1] is case.arrays[0] and case.arrays[2] is None
    assert case.attributes == {"a_min": 0, "a_max": (1, (2,))} and case.out == [case.arrays[0]]
    sliced = calls._array({"shape": [2], "dtype": "bfloat16", "values": [1, 2], "sliced": True}, mx.nd.NDArray)
    assert sliced._data.float().tolist() == [2, 1] and sliced._data.storage_offset() == 1


def test_an_error_of_torch_is_a_failure(monkeypatch):
    def fail(*tensors, **attributes):
        raise KeyError("broken")

    target = campaign.targets(["calls.nd"])["calls.nd"]
    case = _case("relu", [{"shape": [2], "dtype": "float32", "values": [1]}])
    assert campaign.attempt(target, case) is False
    monkeypatch.setattr(calls, "operator_function", lambda name, kind: fail)
    assert "KeyError: 'broken'" in campaign.attempt(target, case)


@pytest.mark.parametrize("op, attributes, fails", [("_zeros", {"shape": [1 << 34]}, False), ("_zeros", {"shape": [1 << 20]}, False),
                                                   ("relu", {}, True)])
def test_memory_is_granted_for_results_only(op, attributes, fails, monkeypatch):
    """64 GB of zeros may be asked for, and refused; a result of two numbers may not take as much on its way."""
    if fails:
        monkeypatch.setattr(calls, "operator_function", lambda name, kind: lambda x: mx.nd._internal._zeros(shape=(1 << 34,)))
    inputs = [{"shape": [2], "dtype": "float32", "values": [1]}] * get(op).num_inputs
    outcome = campaign.attempt(campaign.targets(["calls.nd"])["calls.nd"], _case(op, inputs, attributes))
    assert ("took 65536 MiB" in outcome) if fails else (outcome is (attributes["shape"] == [1 << 34]))


def test_what_the_front_ends_are_given():
    assert {"np.linalg.svd", "np.tile", "npx.topk", "nd.random.normal"} <= set(frontends._functions()) and "np.save" not in frontends._functions()
    assert {"operator.iadd", "nd.slice_axis", "np.reshape"} <= set(frontends._methods()) and "nd.save" not in frontends._methods()
    assert frontends._value({"tuple": [{"slice": [0, None, 2]}, "...", None, [True]]}, mx.nd.NDArray) == (slice(0, None, 2), ..., None, [True])
    array = frontends._value({"array": {"shape": [2], "dtype": "float32", "values": [1]}}, mx.np.ndarray)
    assert type(array) is mx.np.ndarray and np.array_equal(array.asnumpy(), [1, 1])
