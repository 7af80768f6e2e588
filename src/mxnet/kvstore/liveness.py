"""Who of a distributed job is alive: every process counts up a number in the common store, and one watches the numbers.

A process that is killed closes its connections, which shows at once; one that is stopped, or whose network is cut, only falls silent. So
whoever waits for others asks the `Monitor` of its own process, which never blocks, whether waiting still makes sense.
"""
import datetime
import json
import os
import threading
import time

from .. import environment

#: Seconds between looks at the monitor while waiting.
STEP = 1.0

#: Groups of nodes, as MXNet numbers them; they can be added up.
SCHEDULER, SERVERS, WORKERS = 1, 2, 4


def name(role, rank):
    """How messages call a process."""
    return role if role == "scheduler" else f"{role} {rank}"


class Monitor:
    """Says in a thread of its own that this process is alive, and hears who else is.

    Parameters
    ----------
    store : torch.distributed.Store
        Where all processes meet; the monitor works on a connection of its own.
    me : str
        As `name` makes it.
    others : list of str
        All workers and servers of the job. The first one that has not left watches the others and tells them.
    """

    def __init__(self, store, me, others):
        self.me, self.others, self._watcher = me, list(others), 0
        self.interval = environment.get_float("PS_HEARTBEAT_INTERVAL")
        self.limit = environment.get_float("PS_HEARTBEAT_TIMEOUT")
        self._store = store.clone()
        self._store.set_timeout(datetime.timedelta(seconds=max(self.limit, 1)))
        self._counts, self._heard = {}, {}
        self._table, self._version, self._told = {}, None, time.monotonic()
        self._ended = {}  # those that watched before, and why they ended
        self._reached = time.monotonic()
        self._left = None
        self._stop = threading.Event()
        self._pid = os.getpid()
        self._thread = threading.Thread(target=self._run, name="mxnet-kvstore-monitor", daemon=True)

    def start(self):
        """Begin; all others have joined."""
        now = time.monotonic()
        self._heard = dict.fromkeys(self.others, now)
        self._told = self._reached = now
        self._store.set(f"beat/{self.me}", "0")
        self._thread.start()
        return self

    def stop(self, mark="left"):
        """End, and tell the others why: ``left``, or ``failed`` and a reason."""
        if self._pid != os.getpid() or self._stop.is_set():
            return
        self._left = mark
        self._stop.set()
        # As long as the store's calls under way may take: a thread that is left in one ends the process with SIGABRT when the interpreter ends.
        self._thread.join(timeout=2 * (self.interval + max(self.limit, 1)) + 1)

    def _run(self):
        beat = 0
        while True:
            stopping = self._stop.wait(self.interval)
            beat += 1
            try:
                self._store.set(f"beat/{self.me}", self._left if stopping else str(beat))
                if self.watches:
                    self._watch(beat)
                else:
                    self._listen()
                self._reached = time.monotonic()
            except Exception:  # noqa: BLE001  (whatever is wrong with the store: `trouble` says that it can't be reached)
                if not stopping:
                    self._stop.wait(self.interval)
            if stopping:
                return

    def _watch(self, version):
        now = time.monotonic()
        present = [node for node in self.others if self._store.check([f"beat/{node}"])] if len(self._counts) < len(self.others) else self.others
        table = {}
        for node, value in zip(present, self._store.multi_get([f"beat/{node}" for node in present])):
            if self._counts.get(node) != value:
                self._counts[node], self._heard[node] = value, now
            text = value.decode(errors="replace")
            table[node] = text if not text.isdigit() else round(now - self._heard[node], 3)
        for node in self.others:
            table.setdefault(node, round(now - self._heard[node], 3))
        self._store.set("alive", json.dumps([[self.me, version], table]))
        self._table, self._told = table, now

    @property
    def watches(self):
        """Whether this process watches all others."""
        return self._watcher < len(self.others) and self.me == self.others[self._watcher]

    def _listen(self):
        if self._watcher < len(self.others):
            mark = self._store.get(f"beat/{self.others[self._watcher]}").decode(errors="replace")
            if not mark.isdigit():  # it has left; the next one watches
                self._ended[self.others[self._watcher]] = mark
                self._watcher += 1
                self._told = time.monotonic()
                return
        if not self._store.check(["alive"]):
            return
        version, table = json.loads(self._store.get("alive"))
        if version != self._version:
            self._table, self._version, self._told = table, version, time.monotonic()

    def silent(self, seconds):
        """The workers and servers of which nothing was heard for so many seconds, or which have failed, with the reason."""
        found = {}
        for node in self.others:
            age = self._ended.get(node) or self._table.get(node, 0.0)
            if isinstance(age, str):
                if age != "left":
                    found[node] = age
            elif node != self.me and age > seconds:
                found[node] = f"silent for {age:.0f} s"
        late = time.monotonic() - self._told
        if not self.watches and late > seconds and self._watcher < len(self.others):  # of the others nothing is known then
            found.setdefault(self.others[self._watcher], f"silent for {late:.0f} s")
        return found

    def gone(self):
        """Those that have ended without an error."""
        return [node for node in self.others if (self._ended.get(node) or self._table.get(node)) == "left"]

    def cut_off(self):
        """Why this process is alone, if nobody could be reached for long; else None."""
        lost = time.monotonic() - self._reached
        if lost <= self.limit:
            return None
        return (f"this process ({self.me}) has not reached the meeting point of the job for {lost:.0f} s: it is cut off, or whoever has that "
                "point is gone")

    def trouble(self, about=""):
        """Why waiting for the others makes no sense any more, or for those whose names begin so; None if it does."""
        silent = {node: why for node, why in self.silent(self.limit).items() if node.startswith(about)}
        return self.cut_off() or ", ".join(f"{node}: {why}" for node, why in silent.items()) or None
