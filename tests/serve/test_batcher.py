import asyncio
import threading

import pytest

from mxnet.base import MXNetError
from mxnet.serve.batcher import Batcher, Compute
from mxnet.serve.curve import Curve
from mxnet.serve.errors import RequestError
from mxnet.serve.metrics import Metrics


class Gate:
    """What runs batches: waits until it is opened, and notes what it got."""

    def __init__(self):
        self.open, self.entered, self.batches = threading.Event(), threading.Event(), []

    def __call__(self, jobs, rows, size):
        self.entered.set()
        assert self.open.wait(20)
        self.batches.append((list(jobs), rows, size))
        if "bad" in jobs:
            raise MXNetError("an index is out of range")
        if "broken" in jobs:
            raise ZeroDivisionError
        return [job * 2 for job in jobs]


def run(scenario, seconds=None, limit=10):
    """Run a coroutine with a batcher whose batches wait for a gate."""
    async def main():
        compute, gate, metrics = Compute(), Gate(), Metrics()
        compute.start()
        batcher = Batcher(compute, gate, Curve(seconds or {1: 1.0, 2: 1.0, 4: 1.0}), limit, metrics.of_model("m", "1"), asyncio.get_running_loop())

        def submit(value, rows=1, key=None, seconds=20.0):
            return asyncio.ensure_future(batcher.submit(value, rows, key, asyncio.get_running_loop().time() + seconds))

        try:
            await scenario(batcher, gate, submit)
        finally:
            gate.open.set()
            await batcher.close()
            await asyncio.to_thread(compute.stop)

    asyncio.run(main())


async def running(gate, submit, **options):
    """A job that runs, while others can be queued."""
    first = submit("a", **options)
    await asyncio.sleep(0)
    assert await asyncio.to_thread(gate.entered.wait, 20)
    return first


def test_what_has_come_meanwhile_runs_together():
    async def scenario(batcher, gate, submit):
        first = await running(gate, submit)
        others = [submit(value) for value in "bcdef"]
        await asyncio.sleep(0)
        assert batcher.pending == 6
        gate.open.set()
        assert await asyncio.gather(first, *others) == ["aa", "bb", "cc", "dd", "ee", "ff"]
        assert [jobs for jobs, *_ in gate.batches] == [["a"], ["b", "c", "d", "e"], ["f"]]

    run(scenario)


def test_only_what_is_alike_and_in_order():
    async def scenario(batcher, gate, submit):
        first = await running(gate, submit)
        others = [submit("b", key=1), submit("c", key=2), submit("d", key=1), submit("e", rows=3, key=2)]
        await asyncio.sleep(0)
        gate.open.set()
        await asyncio.gather(first, *others)
        assert [(jobs, rows) for jobs, rows, _ in gate.batches] == [(["a"], 1), (["b", "d"], 2), (["c", "e"], 4)]

    run(scenario)


def test_no_padding_where_two_batches_take_less_time():
    async def scenario(batcher, gate, submit):
        first = await running(gate, submit)
        others = [submit(value) for value in "bcd"]
        await asyncio.sleep(0)
        gate.open.set()
        await asyncio.gather(first, *others)
        assert [(jobs, size) for jobs, _, size in gate.batches] == [(["a"], 1), (["b", "c"], 2), (["d"], 1)]

    run(scenario, {1: 1.0, 2: 2.0, 4: 4.0})


def test_a_request_larger_than_any_batch_runs_alone():
    async def scenario(batcher, gate, submit):
        gate.open.set()
        assert await submit("a", rows=9) == "aa"
        assert gate.batches == [(["a"], 9, 9)]

    run(scenario)


def test_only_the_one_to_blame_fails():
    async def scenario(batcher, gate, submit):
        first = await running(gate, submit)
        others = [submit("b"), submit("bad"), submit("broken")]
        await asyncio.sleep(0)
        gate.open.set()
        answers = await asyncio.gather(first, *others, return_exceptions=True)
        assert answers[:2] == ["aa", "bb"]
        assert [(error.status, error.message) for error in answers[2:]] == [
            (400, "the network can't compute this: an index is out of range"), (500, "the network failed: ZeroDivisionError")]

    run(scenario)


def test_a_full_queue_refuses_and_says_when_to_come_again():
    async def scenario(batcher, gate, submit):
        first = await running(gate, submit)
        others = [submit(value) for value in "bc"]
        await asyncio.sleep(0)
        with pytest.raises(RequestError, match="2 requests wait") as caught:
            await submit("d")
        assert caught.value.status == 429 and caught.value.headers == {"Retry-After": "8"}  # two rows, of which four take 16 seconds
        with pytest.raises(RequestError):
            batcher.refuse_if_full()
        gate.open.set()
        await asyncio.gather(first, *others)
        batcher.refuse_if_full(1)
        with pytest.raises(RequestError):
            batcher.refuse_if_full(2)

    run(scenario, {4: 16.0, 1: 16.0}, limit=2)


def test_time_that_is_up():
    async def scenario(batcher, gate, submit):
        first = await running(gate, submit, seconds=0.05)
        second, third = submit("b", seconds=0.05), submit("c")
        for job, text in ((first, "was being computed"), (second, "waited")):
            with pytest.raises(RequestError, match=f"the request {text} when its time was up") as caught:
                await job
            assert caught.value.status == 504
        gate.open.set()
        assert await third == "cc"
        assert [jobs for jobs, *_ in gate.batches] == [["a"], ["c"]]  # nobody computes for those that have left

    run(scenario)


def test_calls_raise_in_their_own_thread():
    compute = Compute()
    compute.start()
    assert compute.call(lambda: threading.current_thread().name) == "mxnet.serve"
    with pytest.raises(KeyError):
        compute.call(lambda: {}["a"])
    compute.stop()
