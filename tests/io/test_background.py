import concurrent.futures
import os
import subprocess
import threading
import time

import pytest

from forked import python
from interrupt_checks import interrupt, interrupted, settle
from mxnet.base import MXNetError
from mxnet.io.background import Background


def test_gives_the_items_in_order():
    items = Background(iter(range(100)), ahead=3)
    assert list(items) == list(range(100))
    assert list(items) == []


def test_stays_so_many_items_ahead():
    made = []

    def make():
        for i in range(10):
            made.append(i)
            yield i

    items = Background(make(), ahead=2)
    deadline = time.monotonic() + 5
    while len(made) < 3 and time.monotonic() < deadline:
        time.sleep(0.01)
    time.sleep(0.05)
    assert made == [0, 1, 2]  # two wait, one is about to
    assert next(items) == 0
    items.close()


def test_closing_ends_the_generator_and_the_thread():
    ended = threading.Event()

    def make():
        try:
            while True:
                yield 1
        finally:
            ended.set()

    items = Background(make(), ahead=1)
    assert next(items) == 1
    items.close()
    assert ended.is_set()
    with pytest.raises(StopIteration):
        next(items)


def test_errors_come_where_the_item_would():
    def make():
        yield 1
        raise ValueError("broken")

    items = Background(make(), ahead=5)
    assert next(items) == 1
    with pytest.raises(ValueError, match="broken"):
        next(items)


def test_a_forked_process_is_told():
    items = Background(iter(range(3)), ahead=1)
    read, write = os.pipe()
    pid = os.fork()
    if not pid:
        try:
            next(items)
        except MXNetError as error:
            os.write(write, str(error).encode())
        items.close()
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as stream:
        assert "create the iterator in the process that uses it" in stream.read()
    assert os.waitpid(pid, 0)[1] == 0


@pytest.mark.parametrize("ending, status", [("", 0), ("raise SystemExit(3)", 3), ("raise ValueError", 1)])
def test_the_interpreter_exits_while_a_thread_waits(ending, status):
    program = ("import itertools\nfrom mxnet.io.background import Background\nitems = Background(itertools.count(), 2)\n"
               f"next(items)\n{ending}")
    assert subprocess.run([*python(), "-c", program], timeout=60, stderr=subprocess.DEVNULL, check=False).returncode == status


def test_an_interrupt_while_it_ends_comes_afterwards():
    def make():
        yield 1
        waits.wait(10)

    waits = threading.Event()
    items = Background(make(), ahead=2)
    assert next(items) == 1
    threading.Timer(0.2, interrupt).start()
    start = time.monotonic()
    with interrupted():
        del items  # waits for the thread, but no longer than that
        settle()
    assert time.monotonic() - start < 5
    waits.set()


def test_a_thread_that_is_waited_for_does_not_wait():
    """A garbage collection in a thread that decodes can be what ends its iterator."""
    made = threading.Event()

    def items():
        with concurrent.futures.ThreadPoolExecutor(1, "mxnet-decode") as pool:
            yield pool.submit(lambda: made.wait(20) and background.close()).result()

    background = Background(items(), 1)
    made.set()
    background.thread.join(20)
    assert not background.thread.is_alive()
