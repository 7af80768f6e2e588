"""Killed writers: `python -m tests.fuzz --kills 1000 --seed S [--only nd.save]`.

For each writer of the project child processes save one version of a file after the other, and are killed at a moment drawn at random: most by
SIGKILL, some by SIGTERM or Ctrl-C. Then the file must be whole and one of the versions written last, and after the next save nothing but it
may be left in the folder.
"""
import faulthandler
import gc
import mmap
import os
import pathlib
import random
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import weakref

from . import data_writers, writers
from .supervise import circumstances, shared_memory

WRITERS = {**writers.WRITERS, **data_writers.WRITERS}

_SIGNALS = [signal.SIGKILL] * 8 + [signal.SIGTERM, signal.SIGINT]


# -- killing ---------------------------------------------------------------------------------------------------------

class _Shared:
    """What a child tells its parent: the versions that it began and finished to write."""

    def __init__(self):
        self._map = mmap.mmap(-1, 4096)
        self.numbers = memoryview(self._map).cast("q")

    begun = property(lambda self: self.numbers[0], lambda self, value: self.numbers.__setitem__(0, value))
    done = property(lambda self: self.numbers[1], lambda self, value: self.numbers.__setitem__(1, value))


def _child(writer, shared, version):
    """Save for ever; a child process never returns from here."""
    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        faulthandler.enable()  # says where, if it gets stuck
        while True:
            shared.begun = version
            writer.save(version)
            shared.done = version
            version += 1
    except KeyboardInterrupt as error:
        # As the interpreter ends a program: what nobody caught is kept, and what is left is finalized.
        sys.last_value = error
        weakref.finalize._exitfunc()
        os._exit(130)
    except BaseException:
        traceback.print_exc()
        os._exit(1)


def _wait(pid, how):
    """How a process ended; over 30 s it is an error. Ctrl-C is pressed again then and now: Python loses one that comes when it enters a finalizer."""
    descriptor = os.pidfd_open(pid)
    try:
        for _ in range(10):
            stuck = not select.select([descriptor], [], [], 3)[0]
            if not stuck:
                break
            if how == signal.SIGINT:
                os.kill(pid, how)
    finally:
        os.close(descriptor)
    if stuck:
        os.kill(pid, signal.SIGABRT)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    return "over 30 s" if stuck else code


def _as_versions(found):
    return found if isinstance(found, tuple) else (found,)


def kill_writer(name, kills, seed, report=print):
    """Kill a writer so many times; what went wrong, as texts."""
    rng, failures = random.Random(f"{seed} {name}"), []
    folder = pathlib.Path(tempfile.mkdtemp(dir=shared_memory(), prefix="fuzz-kills-"))
    try:
        writer, shared, version = WRITERS[name](folder), _Shared(), 1
        writer.save(version)
        begin = time.perf_counter()
        for _ in range(3):
            version += 1
            writer.save(version)
        span = (time.perf_counter() - begin) / 3
        gc.freeze()
        for number in range(kills):
            how = rng.choice(_SIGNALS)
            shared.begun = shared.done = version
            pid = os.fork()
            if pid == 0:
                _child(writer, shared, version + 1)
            deadline = time.monotonic() + 30
            while shared.begun == version and time.monotonic() < deadline:
                time.sleep(0.0002)
            time.sleep(rng.uniform(0, 3 * span))
            os.kill(pid, how)
            ended = _wait(pid, how)
            problem = None
            if ended not in (-how, 130 if how == signal.SIGINT else -how):
                problem = f"the process ended with {ended}"
            try:
                for found in _as_versions(writer.load()):
                    if found is not None and not shared.done <= found <= shared.begun:
                        problem = f"version {found} is there, {shared.done} was complete and {shared.begun} begun"
            except Exception:
                problem = traceback.format_exc(limit=-4)
            version = shared.begun + 1
            writer.save(version)
            try:
                if set(_as_versions(writer.load())) != {version}:
                    problem = f"version {version} was saved, {writer.load()} is there"
            except Exception:
                problem = traceback.format_exc(limit=-4)
            left = [p.name for p in folder.iterdir() if not any(p.match(f) for f in writer.files)]
            if left:
                problem = f"left over: {left}"
            if problem:
                failures.append(f"{name}, kill {number} ({signal.Signals(how).name}): {problem}")
                report(failures[-1])
                for path in left:
                    subprocess.run(["rm", "-rf", folder / path], timeout=120)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return failures


def run(kills, seed, only=(), command=""):
    """Kill all writers; print a report; the number of failures."""
    begin, rows = time.monotonic(), []
    for name in WRITERS:
        if only and not any(name.startswith(o) for o in only):
            continue
        start = time.monotonic()
        failures = kill_writer(name, kills, seed)
        rows.append((name, len(failures), time.monotonic() - start))
        print(f"{name}: {kills} kills, {len(failures)} failures, {rows[-1][2]:.0f} s", file=sys.stderr, flush=True)
    lines = [*circumstances(command, time.monotonic() - begin),
             f"- Kills: {kills * len(rows):,}, seed {seed}; 8 of 10 by SIGKILL, one by SIGTERM, one by Ctrl-C",
             f"- Failures: {sum(r[1] for r in rows) or 'none'}", "",
             "| writer | kills | not whole, or something left over | s |", "|---|--:|--:|--:|",
             *(f"| {name} | {kills:,} | {failed} | {seconds:.0f} |" for name, failed, seconds in rows)]
    print("\n".join(lines))
    return sum(r[1] for r in rows)
