"""The threads in which Gloo sends and receives, and how they share the processors with the thread that computes."""
import contextlib
import os
import pathlib
from collections.abc import Iterable, Iterator

_TASKS = pathlib.Path("/proc/self/task")


class SendingThreads:
    """Gloo's threads in this process; none where the system is not Linux.

    Each packet that arrives wakes one of them, which takes its processor from the computation at once: 2,300 times in a step of ResNet-50 on two
    ranks at 1 Gbit/s. As threads of Linux's batch class they wait for the end of a time slice, and find more to do then. That is worth while only
    beside a computation of this process: while it waits for them, they must not wait for other programs.
    """

    def __init__(self) -> None:
        self._all: list[str] = []  # the threads of this process when those of Gloo were listed
        self._settled = False
        self._ids: list[int] = []

    def defer(self) -> None:
        """Let the threads wait for the computation, unless somebody has given them another class than the usual one."""
        if not hasattr(os, "sched_setscheduler"):
            return
        threads = os.listdir(_TASKS)
        if threads != self._all or not self._settled:  # a group has its threads from its first work on, and they get their names later
            self._settled = threads == self._all
            self._all, self._ids = threads, list(_gloo(threads))
        self._change(os.SCHED_OTHER, os.SCHED_BATCH)

    def hurry(self) -> None:
        """Undo `defer`."""
        if self._ids:
            self._change(os.SCHED_BATCH, os.SCHED_OTHER)

    def _change(self, before: int, after: int) -> None:
        for number in self._ids:
            with contextlib.suppress(OSError):  # it has ended, or a container forbids it
                if os.sched_getscheduler(number) == before:
                    os.sched_setscheduler(number, after, os.sched_param(0))


def _gloo(threads: Iterable[str]) -> Iterator[int]:
    for thread in threads:
        with contextlib.suppress(OSError):  # it has ended
            if "gloo" in (_TASKS / thread / "comm").read_text():
                yield int(thread)
