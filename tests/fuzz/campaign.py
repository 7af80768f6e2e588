"""Runs targets on cases and says what broke a promise."""
import contextlib
import faulthandler
import functools
import importlib
import os
import random
import re
import resource
import signal
import sys
import threading
import time
import traceback
import warnings
from collections.abc import Callable
from typing import NamedTuple

from mxnet import MXNetError

# Modules of targets; the names of these begin with the module's.
MODULES = ("readers", "networks", "onnx_files", "calls", "frontends", "kernels")
_SECONDS = 10  # what a case may take
_MOST_DATA = 2 << 30  # bytes that any case gets: what lies in a heap that grew beyond them would serve later cases without a limit
_MEMORY = 256 << 10  # KiB by which a case may raise the peak
_DATA = 768 << 20  # bytes that the system gives to a case of a target that says what is granted, so that what asks for more does not get it
_REFUSED = re.compile(r"tried to allocate (\d+) bytes|[Uu]nable to allocate|bad_alloc|MemoryError|[Cc]annot allocate|[Oo]ut of memory")
_ADDRESSES = 4 << 30  # bytes of address space that a case may ask for, whether it uses them or not


class Target(NamedTuple):
    """What is tried: ``make(rng)`` gives a case as bytes, ``run(case)`` tries it and may raise `allowed`.

    A campaign tries `share` cases of it in each of its rounds: many where a case costs little. ``granted(case)`` says how many bytes a case may
    take besides the budget; memory that the system refused to a case of such a target counts as taken, although the error is an allowed one.
    ``seeds()`` gives good cases, none of which may be refused.
    """

    name: str
    make: Callable[[random.Random], bytes]
    run: Callable[[bytes], None]
    allowed: tuple = (MXNetError,)
    share: int = 1
    granted: Callable[[bytes], int] | None = None
    seeds: Callable[[], list[bytes]] = list


class Hang(BaseException):
    """A case that takes too long."""


def targets(only=()):
    """The targets by name: all, or those whose names begin with one of `only`."""
    modules = [m for m in MODULES if not only or any(m.startswith(o.split(".")[0]) for o in only)]
    found = [t for m in modules for t in importlib.import_module(f".{m}", __package__).TARGETS]
    return {t.name: t for t in found if not only or any(t.name.startswith(o) for o in only)}


# -- what no case may do ---------------------------------------------------------------------------------------------

_EXECUTES = {"os.system", "os.exec", "os.posix_spawn", "os.spawn", "os.startfile", "subprocess.Popen", "socket.connect", "socket.getaddrinfo",
             "socket.bind", "urllib.Request", "os.kill", "os.chown", "os.link", "os.symlink"}
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT
_trying = False
_broken: list[str] = []  # what a hook noticed


def forbid(folder):
    """From now on note what a case executes, connects to or writes outside of `folder`, and errors that nobody sees; for good."""
    folder = os.path.realpath(folder) + os.sep
    own = (folder, "/dev/null", "/proc/self/")

    def audit(event, arguments):
        if not _trying:
            return
        if event in _EXECUTES:
            # Our own kernels may be compiled when a case is the first to need them.
            if not (event == "subprocess.Popen" and os.path.basename(str(arguments[0])) in ("g++", "c++", "clang++")):
                _broken.append(f"{event}{arguments!r:.200}")
        elif event in ("os.chmod", "shutil.rmtree") and isinstance(arguments[0], str) and not os.path.abspath(arguments[0]).startswith(own):
            _broken.append(f"{event}{arguments!r:.200}")
        elif (event == "open" and isinstance(arguments[0], str) and (arguments[2] or 0) & _WRITES
              and not os.path.abspath(arguments[0]).startswith(own)):
            _broken.append(f"open{arguments!r:.200}")

    def unseen(told):
        error = getattr(told, "exc_value", None)
        _broken.append("an error that nobody sees: " + "".join(traceback.format_exception(error, limit=-6)))

    sys.addaudithook(audit)
    sys.unraisablehook = threading.excepthook = unseen


def limit_addresses():
    """Let no case ask for far more memory than the process has now, even if it does not use it."""
    with open("/proc/self/statm") as f:
        now = int(f.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (now + _ADDRESSES, resource.RLIM_INFINITY))


def _peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def _forget_peak():
    """So that the next case is measured against what is in use now."""
    with contextlib.suppress(OSError), open("/proc/self/clear_refs", "w") as f:
        f.write("5")


# -- trying ----------------------------------------------------------------------------------------------------------

@functools.cache
def _statm():
    """Open once: to open a file takes longer than most cases."""
    return os.open("/proc/self/statm", os.O_RDONLY)


@contextlib.contextmanager
def _limited(seconds, data=None):
    """So many seconds, and if given so many bytes more than are in use."""
    def stop(*_):
        raise Hang

    limits = resource.getrlimit(resource.RLIMIT_DATA)
    if data is not None:
        used = int(os.pread(_statm(), 200, 0).split()[5]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_DATA, (used + data, limits[1]))
    # Of the processor's time, since others may keep the machine busy; and of the clock's, in case it only waits.
    timers = ((signal.SIGPROF, signal.ITIMER_PROF, seconds), (signal.SIGALRM, signal.ITIMER_REAL, 6 * seconds))
    left = [signal.getitimer(timer) for _, timer, _ in timers]  # of pytest's own limit, where this runs inside of it
    before = [signal.signal(number, stop) for number, _, _ in timers]
    try:
        for _, timer, limit in timers:
            signal.setitimer(timer, limit)
        yield
    finally:
        for (number, timer, _), handler, rest in zip(timers, before, left):
            signal.setitimer(timer, 0)
            signal.signal(number, handler)
            signal.setitimer(timer, *rest)
        resource.setrlimit(resource.RLIMIT_DATA, limits)


def _asked(error):
    """The KiB that the system refused to whatever raised `error`."""
    seen, most = set(), 0
    while error is not None and id(error) not in seen:  # the number stands in the cause
        seen.add(id(error))
        if found := _REFUSED.search(str(error)):
            most = max(most, int(found[1] or _DATA) >> 10)
        error = error.__cause__ or error.__context__
    return most


def attempt(target, case):
    """What is wrong with how `target` takes `case`: a text; else whether it was refused."""
    global _trying
    peak, refused, asked, trace = _peak(), False, 0, ""
    _broken.clear()
    try:
        _trying = True
        with _limited(_SECONDS, _MOST_DATA if target.granted is None else _DATA), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            target.run(case)
    except target.allowed as error:
        refused = True
        if target.granted is not None and (asked := _asked(error)):
            trace = traceback.format_exc(limit=-6)
    except Hang:
        return f"took over {_SECONDS} s:\n{traceback.format_exc(limit=-6)}"
    except Exception:
        return traceback.format_exc(limit=-6)
    finally:
        _trying = False
    if _broken:
        return "; ".join(_broken)
    more = _peak() - peak
    if more > _MEMORY // 4:
        _forget_peak()
    more = max(more, asked)
    if more <= _MEMORY or target.granted is not None and more <= _MEMORY + (target.granted(case) >> 10):
        return refused
    return f"{trace}took {more >> 10} MiB"


def _place(target, text):
    """What tells one fault from another."""
    return target.name, text.strip().splitlines()[-1].split(":")[0], *[line for line in text.splitlines() if "File " in line][-1:]


def run(chosen, seed, seconds, count=None, progress=None):
    """Try cases of the targets `chosen` in turns for so many seconds, or `count` of them.

    Returns how many, and the different (target, case, text) that failed. The cases follow from the seed and the names alone. `progress` (a
    `progress.Progress`) holds the case being tried, for whoever finds this process dead, and what was counted.
    """
    turns = [i for i, t in enumerate(chosen) for _ in range(t.share)]
    rngs = [random.Random(f"{seed} {t.name}") for t in chosen]
    clock = time.monotonic
    end, number, failed, seen = clock() + seconds, 0, [], set()
    while (start := clock()) < end and (count is None or number < count):
        i = turns[number % len(turns)]
        target = chosen[i]
        case = target.make(rngs[i])
        if progress is not None:
            progress.begin(target.name, case)
        made = clock()
        outcome = attempt(target, case)
        number += 1
        if progress is not None:
            now = clock()
            progress.end(i, outcome is True, now - start, now - made, isinstance(outcome, str))
        if isinstance(outcome, str) and (place := _place(target, outcome)) not in seen:
            seen.add(place)
            failed.append((target, case, outcome))
    return number, failed


def child(progress, only, seed, seconds, count, folder, report):
    """What a process of a campaign does; `report` gets the different failures."""
    faulthandler.enable(open(os.path.join(folder, "crash"), "w"))
    chosen = list(targets(only).values())
    progress.name([t.name for t in chosen])
    for target in chosen:  # seeds are made, and what a first call imports is there, before anything is counted
        rng = random.Random(0)
        for _ in range(5):
            attempt(target, target.make(rng))
    forbid(folder)
    limit_addresses()
    _forget_peak()
    _, failed = run(chosen, seed, seconds, count, progress)
    progress.peak(_peak())
    for target, case, text in failed:
        report(target.name, case, text)
