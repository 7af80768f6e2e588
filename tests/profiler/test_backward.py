import sys
import threading

import pytest
import torch

from mxnet import kernels
from mxnet.profiler.backward import Backward
from mxnet.profiler.events import Events, Kind


@pytest.fixture(params=["compiled", "hooks"])
def backward(request, monkeypatch):
    if request.param == "hooks":
        monkeypatch.setattr(Backward, "load_library", staticmethod(lambda: None))
    elif kernels.load("runtime/autograd_hooks") is None:
        pytest.skip("needs a C++ compiler")
    made = Backward(Events())
    made.events.sums = True
    made.watch(True)
    yield made
    made.watch(False)


def call(backward, name, function, *inputs):
    result = function(*inputs)
    backward.note(backward.events.number(Kind("X", name, "operator")), inputs, result)
    return result


def counts(backward):
    backward.collect()
    return {name: total[0] for (_, name), total in backward.events.totals().items() if name != "AccumulateGrad"}


def test_each_operator_has_one_event_however_many_steps_it_recorded(backward):
    x = torch.ones(4, requires_grad=True)
    y = call(backward, "composite", lambda t: ((t * 2).exp() + 1).log(), x)
    z = call(backward, "single", torch.exp, y)
    call(backward, "sum", torch.sum, z).backward()
    found = counts(backward)
    if backward.library is not None:
        assert found == {"composite": 1, "single": 1, "sum": 1}
    else:  # hooks tell of steps
        assert found == {"composite": 4, "single": 1, "sum": 1}
    times = {name: total[1] for (_, name), total in backward.events.totals().items()}
    assert all(t > 0 for t in times.values())


def test_what_was_recorded_before_is_not_taken_for_an_operator_of_now(backward):
    backward.watch(False)
    x = torch.ones(4, requires_grad=True)
    y = x.exp().log()
    backward.watch(True)
    call(backward, "sum", torch.sum, y).backward()
    expected = {"sum": 1, "_backward_unprofiled": 2} if backward.library is not None else None
    assert counts(backward)["sum"] == 1 and (expected is None or counts(backward) == expected)


def test_threads_that_record_are_told_apart(backward):
    heads = {}

    def record(name):
        x = torch.ones(3, requires_grad=True)
        heads[name] = call(backward, name, torch.sum, call(backward, f"{name}_exp", torch.exp, x))

    threads = [threading.Thread(target=record, args=(name,)) for name in ("a", "b")]
    for t in threads:
        t.start()
        t.join()
    heads["b"].backward()
    heads["a"].backward()
    assert counts(backward) == {"a": 1, "a_exp": 1, "b": 1, "b_exp": 1}


def test_a_call_whose_steps_are_torn_apart_counts_once():
    steps = [("a", 0, 1, 10, 20), ("b", 1, 1, 20, 30), ("a", 0, 1, 30, 45), ("a", 0, 1, 45, 50), ("c", 2, 1, 31, 33)]
    assert sorted(Backward.merged(steps), key=lambda r: r[3]) == [
        (True, 0, 1, 10, 20), (True, 1, 1, 20, 30), (False, 0, 1, 30, 50), (True, 2, 1, 31, 33)]


def test_nothing_is_watched_afterwards(backward):
    backward.watch(False)
    x = torch.ones(4, requires_grad=True)
    x.exp().sum().backward()
    assert counts(backward) == {}


def test_the_systems_number_of_a_thread_is_known():
    if kernels.load("runtime/autograd_hooks") is None:
        pytest.skip("needs a C++ compiler")
    seen = Backward(Events())
    seen.watch(True)
    x = torch.ones(3, requires_grad=True)
    x.exp().sum().backward()
    seen.watch(False)
    assert not sys.platform.startswith("linux") or seen.natives()[threading.get_native_id()] == threading.get_ident()
