"""The protocol of worker processes: a request is one line of JSON, and so is its answer; workers compute on request only.

`prepare` builds a row's work; `round` times it once. stdout is for answers; the output of libraries goes to stderr.
"""
import ctypes
import gc
import glob
import json
import math
import os
import sys
import time
import traceback

import numpy as np

WARM_UP_CALLS = 3
WARM_UP_SECONDS = 4.0  # enough for a slow peer
SETTLE_SECONDS = 20.0  # of warm-up for rows with `settle`
TUNING_LIMIT = 90.0  # seconds, where a peer reports that it is still tuning
PREFETCHED = 8  # batches, at least as many as loaders prefetch


def keep_memory():
    """Let malloc keep freed memory and never use mmap: otherwise each step would get its memory from the system again."""
    libc = ctypes.CDLL(None)
    m_trim_threshold, m_mmap_max = -1, -4
    libc.mallopt(m_mmap_max, 0)
    libc.mallopt(m_trim_threshold, -1)


def timed(function):
    """Return the seconds of a call."""
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def high_water():
    """Return the peak of the resident memory of this process, in bytes."""
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM"))


def processor_seconds():
    """Return the processor seconds of this process and its living children."""
    seconds = time.process_time()
    for path in glob.glob("/proc/self/task/*/children"):
        with open(path) as file:
            for child in file.read().split():
                try:
                    with open(f"/proc/{child}/stat") as stat:
                        used = stat.read().rsplit(")", 1)[1].split()[11:13]
                except OSError:  # it has just ended
                    continue
                seconds += sum(map(int, used)) / os.sysconf("SC_CLK_TCK")
    return seconds


def rate(call, seconds):
    """Run `call`, which returns its number of images, for so long; return images, seconds and processor seconds.

    Batches that were prefetched during the turns of others are consumed before.
    """
    for _ in range(PREFETCHED):
        call()
    images, start, used = 0, time.perf_counter(), processor_seconds()
    while time.perf_counter() - start < seconds:
        images += call()
    return {"images": images, "wall": time.perf_counter() - start, "cpu": processor_seconds() - used}


def resident():
    """Return the resident memory of this process, in bytes."""
    with open("/proc/self/statm") as sizes:
        return int(sizes.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


class Worker:
    """Answers the requests to one peer.

    `prepare(row)` returns (call, result): a function for one step, and one for the output that is compared; `finish` waits for asynchronous work.
    A call may have the attribute ``settled``, a function that returns True when tuning has ended.
    """

    def __init__(self, prepare, finish=lambda: None):
        self.prepare, self.finish, self.call, self.calls = prepare, finish, None, 1

    def serve(self):
        answers = os.fdopen(os.dup(1), "w")
        os.dup2(2, 1)
        for line in sys.stdin:
            request = json.loads(line)
            try:
                answer = getattr(self, "do_" + request.pop("do"))(**request)
            except Exception as error:  # the driver writes it to the table and continues
                traceback.print_exc()
                answer = {"error": f"{type(error).__name__}: {error}".splitlines()[0][:200]}
            print(json.dumps(answer), file=answers, flush=True)

    def do_prepare(self, row, seconds, result_path):
        self.call = None
        gc.collect()
        ctypes.CDLL(None).malloc_trim(0)
        self.call, result = self.prepare(row)
        if row["task"] in ("compile", "quantizing"):
            return {"value": timed(self.call)}
        start = time.perf_counter()
        outputs = np.asarray(result())  # the losses of the first steps in training: before all other calls
        first = time.perf_counter() - start
        if result_path:
            np.save(result_path, outputs)
        if row["task"] == "memory":
            for _ in range(5):
                self.call()
            return {"value": high_water()}
        times = [first] if first > WARM_UP_SECONDS else []
        count, limit = (row["settle"], SETTLE_SECONDS) if row.get("settle") else (WARM_UP_CALLS, WARM_UP_SECONDS)
        while not times or (len(times) < count and sum(times) < limit):
            times.append(timed(self.call))
        settled = getattr(self.call, "settled", lambda: True)
        while not settled() and sum(times) < TUNING_LIMIT:
            times.append(timed(self.call))
        self.calls = min(100_000, max(1, math.ceil(seconds / min(times))))
        return {"ready": min(times)}

    def do_begin(self, row, seconds):
        """Return the time of the first call, the ends of the calls in the next seconds, counted from its end, and the time when tuning had ended."""
        call, _ = self.prepare(row)
        settled = getattr(call, "settled", lambda: True)
        first, start, ends, decided = timed(call), time.perf_counter(), [], None
        while not ends or ends[-1] < seconds:
            if decided is None and settled():
                decided = time.perf_counter() - start
            call()
            ends.append(time.perf_counter() - start)
        self.finish()
        return {"first": first, "ends": ends, "settled": decided}

    def do_round(self):
        def repeat():
            for _ in range(self.calls):
                self.call()
            self.finish()
        self.finish()
        start = time.process_time()
        return {"wall": timed(repeat) / self.calls, "cpu": (time.process_time() - start) / self.calls}

    def do_many(self, calls):
        """Run so many calls; return the resident memory after them."""
        for _ in range(calls):
            self.call()
        self.finish()
        return {"value": resident()}


class Rank(Worker):
    """Answers a driver of several ranks; subclasses have `do_prepare`, `step`, and `meet`, a barrier."""

    def __init__(self):
        super().__init__(None)

    def do_step(self, count):
        self.meet()
        start = time.perf_counter()
        for _ in range(count):
            self.step()
        return {"seconds": (time.perf_counter() - start) / count}
