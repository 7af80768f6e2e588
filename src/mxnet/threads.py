"""The number of threads that share an operator: one for each core of the process, and fewer while other programs need the cores.

OpenMP divides an operator evenly among threads, and those that finish first spin until the others finish. If another program is busy, one waits
for a core, and all others wait for that thread: a step of 2 ms then takes 100. With at most as many threads as free cores there is no such wait.
The free cores are measured periodically while the main thread trains or scores, since the load changes. A number set by ``OMP_NUM_THREADS`` or
``torch.set_num_threads`` is never changed.
"""
import functools
import math
import os
import pathlib
import threading
import time

import torch

from . import environment, openmp

# Where Linux shows the load of the processors, the limits of control groups, and those of this process.
STAT, CONTROL_GROUPS, OWN_GROUPS = pathlib.Path("/proc/stat"), pathlib.Path("/sys/fs/cgroup"), pathlib.Path("/proc/self/cgroup")
_FIRST, _PERIOD = 0.1, 0.3  # seconds between two measurements: the system's resolution is a hundredth
_ENOUGH = 0.35  # a core with this load still counts as free
_LASTING = 3.0  # seconds with one thread after which kernels are chosen for it: a shorter load is not worth benchmarks
_IDLE = slice(3, 5)  # fields of a processor's line: idle, and waiting for a disk
TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100


def usable() -> float:
    """Return the number of cores that this process may use: its affinity, limited by the quotas of its control groups (containers)."""
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        own = OWN_GROUPS.read_text().splitlines()
    except OSError:
        return count
    shares: list[float] = [count]
    for line in own:
        _, controllers, path = line.split(":", 2)
        if controllers == "" or "cpu" in controllers.split(","):
            # In a container the path may be the host's: then there is no such folder, and the topmost one is the container's.
            group = pathlib.PurePosixPath(path)
            shares += [share for folder in (group, *group.parents) if (share := _share(controllers, str(folder).lstrip("/"))) is not None]
    return min(shares)


def _share(controllers: str, group: str) -> float | None:
    """Return a control group's quota in cores; None if it has no limit or doesn't exist. Version 1 has two files, version 2 has one."""
    try:
        if controllers:
            folder = CONTROL_GROUPS / controllers / group
            quota, period = ((folder / f"cpu.cfs_{name}_us").read_text() for name in ("quota", "period"))
        else:
            quota, period = (CONTROL_GROUPS / group / "cpu.max").read_text().split()
        return float(quota) / float(period) if float(quota) > 0 else None
    except (OSError, ValueError, ZeroDivisionError):  # of ValueErrors one is "max"
        return None


def idle() -> float | None:
    """Return the idle time of this process's cores since the machine started, in seconds, summed; None if the system doesn't report it."""
    cores = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set()
    try:
        lines = [line.split() for line in STAT.read_text().splitlines() if line.startswith("cpu")]
        own = [fields[1:] for fields in lines if fields[0][3:].isdigit() and int(fields[0][3:]) in cores]
        return sum(sum(map(int, fields[_IDLE])) for fields in own) / TICKS_PER_SECOND if own else None
    except (OSError, ValueError):
        return None


class Policy:
    """The number of threads of one thread's operators.

    Attributes
    ----------
    full : int
        The number of threads when no other program is busy.
    count : int
        The current number of threads.
    due : float
        The time of the next measurement, on `time.perf_counter`'s clock.
    reason : str
        The reason for the current number.
    """

    def __init__(self) -> None:
        self.full = self.count = 1
        self.due, self.reason = math.inf, "not set up yet"
        self._thread, self._last, self._calm, self._since = 0, (0.0, 0.0, 0.0), 0, 0.0

    def begin(self) -> None:
        """Choose the number of threads for the calling thread, and start measuring. Called once, at import."""
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
        """Stop adapting the number of threads: the user sets it."""
        self.full = self.count = torch.get_num_threads()
        self.due, self.reason = math.inf, "torch.set_num_threads, or OpenMP's own function, was called"

    @property
    def lasting(self) -> bool:
        """True if other programs have left one core only for seconds, as of the last measurement."""
        return self.count == 1 < self.full and self._last[0] - self._since >= _LASTING

    @staticmethod
    def _now() -> tuple[float, float, float] | None:
        seconds = idle()
        return None if seconds is None else (time.perf_counter(), seconds, time.process_time())

    def look(self) -> None:
        """Measure the cores that other programs leave free, and limit the number of threads to them."""
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
        count = torch.get_num_threads()
        if count != self.count:
            if count != 1:  # one thread may be due to `openmp.alone` or a fork
                self.end()
            return
        # The available cores are the idle ones and those that this process uses itself.
        free = (unused - unused_then + spent - spent_then) / (at - then)
        wanted = max(1, min(self.full, int(free + _ENOUGH)))
        self._calm = self._calm + 1 if wanted > self.count else 0
        if wanted < self.count or self._calm > 1:
            openmp.share(wanted)
            self.count, self._calm, self._since = wanted, 0, at
            self.reason = f"{free:.1f} of {usable():g} cores are free" if wanted < self.full else f"this process may use {usable():g} cores"


policy = Policy()
if hasattr(os, "register_at_fork"):
    # A forked process always computes with one thread (`environment.configure`). The hook is in C: a Python function could lose a Ctrl-C.
    os.register_at_fork(after_in_child=functools.partial(vars(policy).update, full=1, count=1, due=math.inf, reason="this process was forked"))


def poll() -> None:
    """Measure the free cores if the period has passed. Called from functions that take longer than an operator."""
    if time.perf_counter() >= policy.due:
        policy.look()


def reduced() -> bool:
    """Return True if there are fewer threads than usual because other programs are busy."""
    return policy.count < policy.full


def usual() -> int:
    """Return the number of threads when no other program is busy; cached results for a number of threads have this as their key."""
    count = torch.get_num_threads()
    return policy.full if reduced() and count in (1, policy.count) else count  # another number was set by the user since the last `look`


def of_kernels() -> int:
    """Return the number of threads for which kernels are chosen: `usual`, but one where the load of other programs has lasted for seconds."""
    count = usual()
    return 1 if count > 1 and torch.get_num_threads() == 1 and policy.lasting else count


def unreliable() -> bool:
    """Return True if other programs would mislead a benchmark of kernels; one for a single thread measures that thread's own time."""
    return reduced() and of_kernels() > 1
