"""The number of threads that share an operator: one for each core of the process, and fewer while other programs need the cores.

Threads of OpenMP divide an operator evenly, and who is done first waits at full speed for the others. Beside a busy program one of them waits for
a core, and all others for it: a step that takes 2 ms alone then takes 100. With as many threads as there are free cores nobody waits. What is free is
measured from time to time while the main thread trains or scores, since programs come and go; who sets ``OMP_NUM_THREADS``, or calls
``torch.set_num_threads``, decides alone.
"""
import functools
import math
import os
import pathlib
import threading
import time

import torch

from . import environment, openmp

_STAT, _GROUPS, _OWN = pathlib.Path("/proc/stat"), pathlib.Path("/sys/fs/cgroup"), pathlib.Path("/proc/self/cgroup")
_FIRST, _PERIOD = 0.1, 0.3  # seconds between two looks: the system counts in hundredths
_ENOUGH = 0.35  # a core of which so much is taken still counts as free
_IDLE = slice(3, 5)  # of a processor's line: idle, and waiting for a disk
_TICKS = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100


def usable() -> float:
    """How many cores this process may use at once: it may be tied to some, or have a share of them (a container)."""
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        own = _OWN.read_text().splitlines()
    except OSError:
        return count
    shares: list[float] = [count]
    for line in own:
        _, controllers, path = line.split(":", 2)
        if controllers == "" or "cpu" in controllers.split(","):
            # Seen from inside of a container the path may be the host's: then there is no such folder, and the uppermost one is the container's.
            group = pathlib.PurePosixPath(path)
            shares += [share for folder in (group, *group.parents) if (share := _share(controllers, str(folder).lstrip("/"))) is not None]
    return min(shares)


def _share(controllers: str, group: str) -> float | None:
    """How many cores a control group gets; None where it has no limit, or doesn't exist. The first version has two files, the second one."""
    try:
        if controllers:
            folder = _GROUPS / controllers / group
            quota, period = ((folder / f"cpu.cfs_{name}_us").read_text() for name in ("quota", "period"))
        else:
            quota, period = (_GROUPS / group / "cpu.max").read_text().split()
        return float(quota) / float(period) if float(quota) > 0 else None
    except (OSError, ValueError, ZeroDivisionError):  # of ValueErrors one is "max"
        return None


def idle() -> float | None:
    """For how many seconds this process's cores have been idle since the machine started, added up; None where the system doesn't say."""
    cores = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set()
    try:
        lines = [line.split() for line in _STAT.read_text().splitlines() if line.startswith("cpu")]
        own = [fields[1:] for fields in lines if fields[0][3:].isdigit() and int(fields[0][3:]) in cores]
        return sum(sum(map(int, fields[_IDLE])) for fields in own) / _TICKS if own else None
    except (OSError, ValueError):
        return None


class Policy:
    """The number of threads of one thread's operators.

    Attributes
    ----------
    full : int
        How many there are where no other program is busy.
    count : int
        How many there are now.
    due : float
        When `look` looks again, on `time.perf_counter`'s clock.
    reason : str
        Why there are so many.
    """

    def __init__(self) -> None:
        self.full = self.count = 1
        self.due, self.reason = math.inf, "not set up yet"
        self._thread, self._last, self._calm = 0, (0.0, 0.0, 0.0), 0

    def begin(self) -> None:
        """Choose for the calling thread, and look from now on. Called once, at import."""
        self.full = self.count = torch.get_num_threads()
        self._thread, self._calm, self.due = threading.get_ident(), 0, math.inf
        if "OMP_NUM_THREADS" in os.environ:
            self.reason = "OMP_NUM_THREADS says so"
            return
        cores = max(1, int(usable()))
        if self.full > cores:
            torch.set_num_threads(cores)
            self.full = self.count = cores
        self.reason = f"this process may use {usable():g} cores"
        if self.full > 1 and not environment.get_bool("MXNET_ENFORCE_DETERMINISM") and (now := self._now()) is not None:
            self._last, self.due = now, now[0] + _FIRST

    def end(self) -> None:
        """Leave the number to the user from now on."""
        self.full = self.count = torch.get_num_threads()
        self.due, self.reason = math.inf, "torch.set_num_threads, or OpenMP's own function, was called"

    @staticmethod
    def _now() -> tuple[float, float, float] | None:
        seconds = idle()
        return None if seconds is None else (time.perf_counter(), seconds, time.process_time())

    def look(self) -> None:
        """Find out how many cores other programs leave, and take no more threads than that."""
        if threading.get_ident() != self._thread:
            return
        now = self._now()
        if now is None:
            self.due = math.inf
            return
        (at, unused, spent), (then, unused_then, spent_then) = now, self._last
        self._last, self.due = now, at + _PERIOD
        if at - then < _FIRST / 2:
            return
        found = torch.get_num_threads()
        if found != self.count:
            if found != 1:  # one thread may be `openmp.alone`, or a fork's
                self.end()
            return
        # What is idle, and what this process takes itself, is what it can have.
        free = (unused - unused_then + spent - spent_then) / (at - then)
        wanted = max(1, min(self.full, int(free + _ENOUGH)))
        self._calm = self._calm + 1 if wanted > self.count else 0
        if wanted < self.count or self._calm > 1:
            openmp.share(wanted)
            self.count, self._calm = wanted, 0
            self.reason = f"{free:.1f} of {usable():g} cores are free" if wanted < self.full else f"this process may use {usable():g} cores"


policy = Policy()
if hasattr(os, "register_at_fork"):
    # A forked process computes with one thread (`environment.configure`), for good. No Python in the hook: that could lose a Ctrl-C.
    os.register_at_fork(after_in_child=functools.partial(vars(policy).update, full=1, count=1, due=math.inf, reason="this process was forked"))


def poll() -> None:
    """Look if it is time to. For calls that take longer than an operator."""
    if time.perf_counter() >= policy.due:
        policy.look()


def reduced() -> bool:
    """Whether there are fewer threads than usual, because other programs are busy: no time to find out what is the fastest."""
    return policy.count < policy.full


def usual() -> int:
    """How many threads there are where no other program is busy: by these is kept what was found out for a number of threads."""
    count = torch.get_num_threads()
    return policy.full if reduced() and count in (1, policy.count) else count  # another number is the user's, of which `look` does not know yet
