"""What every worker process does: read one request a line, answer one line of JSON, and compute only when asked.

`prepare` builds a row's work; `round` times it once. stdout is kept for answers; what libraries print goes to stderr.
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
ENOUGH = 4.0  # seconds after which a slow peer is as warm as it gets
WARM_UP_LIMIT = 20.0  # seconds
SETTLE_LIMIT = 90.0  # where a peer says itself that it still looks for the fastest way
AHEAD = 8  # batches that loaders make ahead, and more


def keep_memory():
    """Let malloc keep what is freed and never map: each step would otherwise fetch its memory anew from the system."""
    libc = ctypes.CDLL(None)
    m_trim_threshold, m_mmap_max = -1, -4
    libc.mallopt(m_mmap_max, 0)
    libc.mallopt(m_trim_threshold, -1)


def timed(function):
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def high_water():
    """The largest resident size of this process so far, in bytes."""
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM"))


def processor_seconds():
    """What this process and its living children have used of the processors."""
    found = time.process_time()
    for path in glob.glob("/proc/self/task/*/children"):
        with open(path) as file:
            for child in file.read().split():
                try:
                    with open(f"/proc/{child}/stat") as stat:
                        used = stat.read().rsplit(")", 1)[1].split()[11:13]
                except OSError:  # it has just ended
                    continue
                found += sum(map(int, used)) / os.sysconf("SC_CLK_TCK")
    return found


def rate(call, seconds):
    """Run `call`, which returns how many images it gave, for so long: images, seconds and the processor's seconds.

    What was made ahead while others had their turn is used up before.
    """
    for _ in range(AHEAD):
        call()
    images, start, used = 0, time.perf_counter(), processor_seconds()
    while time.perf_counter() - start < seconds:
        images += call()
    return {"images": images, "wall": time.perf_counter() - start, "cpu": processor_seconds() - used}


def resident():
    """The resident size of this process, in bytes."""
    with open("/proc/self/statm") as sizes:
        return int(sizes.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


class Worker:
    """Serves one peer. `prepare(row)` gives (call, result): one step, and what of it can be compared; `finish` waits for what calls leave behind.

    A call may have a function ``settled()`` as its attribute: whether it is decided by now who computes it.
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
            except Exception as error:  # whatever it is, the driver names it in the table and goes on
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
        outputs = np.asarray(result())  # for training the losses of the first steps, so it comes before all other calls
        first = time.perf_counter() - start
        if result_path:
            np.save(result_path, outputs)
        if row["task"] == "memory":
            for _ in range(5):
                self.call()
            return {"value": high_water()}
        taken = [first] if first > ENOUGH else []
        count, limit = (row["settle"], WARM_UP_LIMIT) if row.get("settle") else (WARM_UP_CALLS, ENOUGH)
        while not taken or (len(taken) < count and sum(taken) < limit):
            taken.append(timed(self.call))
        settled = getattr(self.call, "settled", lambda: True)
        while not settled() and sum(taken) < SETTLE_LIMIT:
            taken.append(timed(self.call))
        self.calls = min(100_000, max(1, math.ceil(seconds / min(taken))))
        return {"ready": min(taken)}

    def do_begin(self, row, seconds):
        """The first call and those of the next seconds: when each was over, counted from the first one, and when it was settled who computes it."""
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
        """So many calls, and the resident memory after them."""
        for _ in range(calls):
            self.call()
        self.finish()
        return {"value": resident()}
