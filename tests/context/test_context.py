import pickle
import threading

import pytest
import torch

import mxnet as mx
from mxnet.context import intern_context, parse_context


def test_names_and_equality():
    assert [str(c) for c in (mx.cpu(), mx.cpu(2), mx.gpu(1), mx.cpu_pinned(), mx.Context("cpu_shared", 3))] == [
        "cpu(0)", "cpu(2)", "gpu(1)", "cpu_pinned(0)", "cpu_shared(3)"]
    assert mx.Context("cpu", 1) == mx.cpu(1) != mx.cpu(0) and mx.Context(mx.gpu(2)) == mx.gpu(2) and mx.cpu() != "cpu(0)"
    assert (mx.gpu(1).device_type, mx.gpu(1).device_id, mx.gpu(1).device_typeid) == ("gpu", 1, 2)
    assert len({mx.cpu(0), mx.Context("cpu", 0), mx.cpu_pinned(0)}) == 2
    assert pickle.loads(pickle.dumps(mx.cpu(3))) == mx.cpu(3)
    with pytest.raises(mx.MXNetError, match=r"unknown device type 'tpu'; expected one of \['cpu', 'cpu_pinned', 'cpu_shared', 'gpu'\]"):
        mx.Context("tpu")


def test_one_object_stands_for_a_device():
    assert intern_context(mx.Context("cpu", 1)) is mx.cpu(1) is intern_context("cpu(1)")
    with pytest.raises(TypeError, match="expected a Context such as .* received 3"):
        intern_context(3)


@pytest.mark.parametrize("text, expected", [("cpu", "cpu(0)"), ("gpu(1)", "gpu(1)"), ("cpu_pinned(2)", "cpu_pinned(2)"), ("cpu()", "cpu(0)")])
def test_contexts_by_text(text, expected):
    assert str(parse_context(text)) == expected


@pytest.mark.parametrize("text", ["tpu(0)", "cpu(x)", ""])
def test_texts_that_name_none(text):
    with pytest.raises(mx.MXNetError, match="unknown context '.*'; expected a form such as"):
        parse_context(text)


def test_the_current_context_is_that_of_the_innermost_block():
    assert mx.current_context() == mx.cpu(0)
    with mx.cpu(1):
        with mx.cpu(2) as inner:
            assert mx.current_context() is mx.cpu(2) and inner == mx.cpu(2)
            assert mx.nd.zeros((1,)).context == mx.cpu(2)
        assert mx.current_context() == mx.cpu(1)
        found = []
        other = threading.Thread(target=lambda: found.append(mx.current_context()))
        other.start()
        other.join()
        assert found == [mx.cpu(0)]  # each thread has its own
    with pytest.raises(ZeroDivisionError), mx.cpu(1):
        raise ZeroDivisionError
    assert mx.current_context() == mx.cpu(0)


def test_the_default_can_be_set():
    before = mx.Context.default_ctx
    try:
        mx.Context.default_ctx = mx.cpu(4)
        assert mx.current_context() is mx.Context.default_ctx is mx.cpu(4)
    finally:
        mx.Context.default_ctx = before


def test_devices_of_torch():
    assert {c.torch_device for c in (mx.cpu(), mx.cpu(7), mx.cpu_pinned(), mx.Context("cpu_shared"))} == {torch.device("cpu")}
    missing = mx.num_gpus()
    with pytest.raises(mx.MXNetError, match=rf"gpu\({missing}\) is not available: torch sees {missing} GPU\(s\)"):
        mx.gpu(missing).torch_device
    with pytest.raises(mx.MXNetError, match="is not available"):
        mx.gpu_memory_info(missing)


def test_memory_that_no_array_uses_is_given_back(monkeypatch):
    from mxnet import memory
    called = []
    monkeypatch.setattr(memory, "trim", lambda: called.append("trim"))
    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: called.append("cuda"))
    mx.cpu(1).empty_cache()
    mx.gpu(0).empty_cache()
    assert called == ["trim", "cuda"]
