import pytest
import torch

import mxnet as mx
from mxnet.graph.runtime import half_precision


@pytest.fixture
def speeds(monkeypatch):
    """Sets how long a convolution takes by type, in seconds."""
    monkeypatch.setattr(half_precision, "_warned", set())
    times = {torch.float32: 0.001}
    monkeypatch.setattr(half_precision, "step", lambda dtype: dtype)
    monkeypatch.setattr(half_precision, "timed", lambda dtype: (times[dtype], None))
    half_precision.slowness.cache_clear()
    yield times
    half_precision.slowness.cache_clear()


def run(dtype, operator=lambda x: mx.sym.FullyConnected(x, num_hidden=2, name="f")):
    executor = operator(mx.sym.var("x")).simple_bind(mx.cpu(), x=(1, 3), type_dict={"x": dtype})
    executor.forward()
    return executor.outputs[0].asnumpy()


@pytest.mark.parametrize("times, text", [
    ({torch.float16: 0.0705, torch.bfloat16: 0.009}, "70.5 times as long as in float32. Use float32"),
    ({torch.float16: 0.002, torch.bfloat16: 0.0005}, "2.0 times as long as in float32. Use float32, or bfloat16, which takes 0.5 times as long")])
def test_a_slow_type_is_told_of_once(speeds, caplog, times, text):
    speeds.update(times)
    run("float32")
    assert not caplog.records
    run("float16")
    run("float16")
    assert [r.getMessage() for r in caplog.records] == [f"float16 is slow on this processor: a convolution takes {text}"]


def test_a_fast_type_is_not(speeds, caplog):
    speeds.update({torch.float16: 0.0012, torch.bfloat16: 0.0012})
    run("float16")
    assert not caplog.records


def test_what_multiplies_nothing_is_not(speeds, caplog):
    run("float16", mx.sym.relu)  # nothing is measured either, which would fail
    assert not caplog.records


def test_it_is_measured():
    half_precision.slowness.cache_clear()
    assert half_precision.slowness(torch.bfloat16) > 0 and half_precision.slowness(torch.float32) == 1
