"""Runs targets on cases and says what broke a promise."""
import contextlib
import hashlib
import pathlib
import random
import resource
import signal
import time
import traceback
import warnings
from collections.abc import Callable
from typing import NamedTuple

from mxnet import MXNetError

CASES = pathlib.Path(__file__).parent / "cases"
_SECONDS = 10  # what a case may take
_MEMORY = 256 << 10  # KiB by which a case may raise the peak


class Target(NamedTuple):
    """What is tried: ``make(rng)`` gives a case as bytes, ``run(case)`` tries it and may raise `allowed`."""

    name: str
    make: Callable[[random.Random], bytes]
    run: Callable[[bytes], None]
    allowed: tuple = (MXNetError,)


class Hang(BaseException):
    """A case that takes too long."""


def targets():
    """All targets by name. Operator calls and kernels are to join here."""
    from . import readers
    return {t.name: t for t in readers.TARGETS}


@contextlib.contextmanager
def _limited(seconds):
    def stop(*_):
        raise Hang

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def attempt(target, case):
    """What is wrong with how `target` takes `case`: a text, or None."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    try:
        with _limited(_SECONDS), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            target.run(case)
    except target.allowed:
        pass
    except Hang:
        return f"took over {_SECONDS} s:\n{traceback.format_exc(limit=-6)}"
    except Exception:
        return traceback.format_exc(limit=-6)
    more = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - peak
    return f"took {more >> 10} MiB" if more > _MEMORY else None


def keep(target, case):
    """Write a case to where the tests find it."""
    path = CASES / f"{target.name}--{hashlib.sha256(case).hexdigest()[:12]}"
    path.write_bytes(case)
    return path


def run(names, seed, seconds, count=None, current=None, report=print):
    """Try cases of the named targets in turns for so many seconds, or `count` of them; returns how many, and the (target, case, text) that failed.

    `current` is a file that holds the case being tried, for whoever finds this process dead.
    """
    known = targets()
    chosen = [known[n] for n in names or known]
    rngs = {t.name: random.Random(f"{seed} {t.name}") for t in chosen}
    end, number, failed, seen = time.monotonic() + seconds, 0, [], set()
    while time.monotonic() < end and (count is None or number < count):
        target = chosen[number % len(chosen)]
        case = target.make(rngs[target.name])
        if current is not None:
            current.write_bytes(target.name.encode() + b"\n" + case)
        text = attempt(target, case)
        number += 1
        if text is not None:
            # The place tells one fault from another.
            place = (target.name, text.strip().splitlines()[-1].split(":")[0], *[line for line in text.splitlines() if "File " in line][-1:])
            if place not in seen:
                seen.add(place)
                failed.append((target, case, text))
                report(f"{target.name}: {text}\n{case[:300]!r}")
    return number, failed
