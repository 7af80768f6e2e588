"""Failure detection in a distributed job: every process increments a heartbeat counter in the common store, and one watches the counters.

A killed process closes its connections, which is detected immediately; a stopped or disconnected one only stops responding. While a process waits
for others it therefore polls its own `Monitor`, which never blocks, and gives up if one of them has failed.
"""
from __future__ import annotations

import contextlib
import datetime
import json
import os
import threading
import time
from collections.abc import Iterable
from typing import Any

from .. import environment

#: Seconds between two polls of the monitor while waiting.
STEP = 1.0

#: MXNet's bit flags of the groups of nodes.
SCHEDULER, SERVERS, WORKERS = 1, 2, 4


def name(role: str, rank: int) -> str:
    """Return the name of a process in messages."""
    return role if role == "scheduler" else f"{role} {rank}"


class Monitor:
    """Sends this process's heartbeat in a thread of its own, and receives the state of the other processes.

    Parameters
    ----------
    store : torch.distributed.Store
        The rendezvous of all processes; the monitor has a connection of its own.
    me : str
        The result of `name` for this process.
    others : list of str
        All workers and servers of the job. The first one that has not left watches the others and publishes their state.
    """

    def __init__(self, store: Any, me: str, others: Iterable[str]):
        self.me, self.others, self._watcher = me, list(others), 0
        self.interval = environment.get_float("PS_HEARTBEAT_INTERVAL")
        self.limit = environment.get_float("PS_HEARTBEAT_TIMEOUT")
        self._store = store.clone()
        self._store.set_timeout(datetime.timedelta(seconds=max(self.limit, 1)))
        self._counts, self._heard = {}, {}
        self._table, self._version, self._told = {}, None, time.monotonic()
        self._ended = {}  # from earlier watchers to the reasons of their end
        self._reached = time.monotonic()
        self._left = None
        self._wake, self._tried, self._stopping = threading.Event(), threading.Event(), False  # `_tried` to publish the end
        self._pid = os.getpid()
        self._thread = threading.Thread(target=self._run, name="mxnet-kvstore-monitor", daemon=True)

    def start(self) -> Monitor:
        """Start the thread; all others have joined before."""
        now = time.monotonic()
        self._heard = dict.fromkeys(self.others, now)
        self._told = self._reached = now
        self._store.set(f"beat/{self.me}", "0")
        self._thread.start()
        return self

    def end(self, mark: str) -> None:
        """Publish that this process ends, and why: ``left``, or ``failed`` and a text. It goes on to learn of the others."""
        if self._pid == os.getpid() and self._left is None:
            self._left = mark
            self._wake.set()
            self._tried.wait(self._longest())

    def stop(self, mark: str = "left") -> None:
        """Stop the thread, after `end`."""
        if self._pid != os.getpid() or self._stopping:
            return
        self.end(mark)
        self._stopping = True
        self._wake.set()
        self._thread.join(self._longest())  # a thread inside of a call of the store at the interpreter's exit causes a SIGABRT

    def _longest(self):
        """Return the seconds that pending calls of the store take at most."""
        return 2 * (self.interval + max(self.limit, 1)) + 1

    def _run(self):
        beat = 0
        while True:
            self._wake.wait(self.interval)
            self._wake.clear()
            if self._stopping:
                return
            beat, mark = beat + 1, self._left
            with contextlib.suppress(Exception):  # any error of the store: `trouble` reports that it can't be reached
                try:
                    self._store.set(f"beat/{self.me}", mark or str(beat))
                finally:
                    if mark:
                        self._tried.set()
                if self.watches:
                    self._watch(beat)
                else:
                    self._listen()
                self._reached = time.monotonic()

    def _watch(self, version):
        now = time.monotonic()
        table = {}
        for node, text in self._beats():
            if self._counts.get(node) != text:
                self._counts[node], self._heard[node] = text, now
            table[node] = text if not text.isdigit() else round(now - self._heard[node], 3)
        for node in self.others:
            table.setdefault(node, round(now - self._heard[node], 3))
        if self._left is None:  # otherwise the next one does it
            self._store.set("alive", json.dumps([[self.me, version], table]))
        self._table, self._told = table, now

    def _beats(self):
        present = [node for node in self.others if self._store.check([f"beat/{node}"])] if len(self._counts) < len(self.others) else self.others
        values = self._store.multi_get([f"beat/{node}" for node in present])
        return [(node, value.decode(errors="replace")) for node, value in zip(present, values)]

    @property
    def watches(self) -> bool:
        """True if this process watches all others."""
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

    def silent(self, seconds: float) -> dict[str, str]:
        """Return the workers and servers that have not responded for `seconds`, or have failed, with the reasons."""
        found = {}
        for node in self.others:
            age = self._ended.get(node) or self._table.get(node, 0.0)
            if isinstance(age, str):
                if age != "left":
                    found[node] = age
            elif node != self.me and age > seconds:
                found[node] = f"silent for {age:.0f} s"
        late = time.monotonic() - self._told
        if not self.watches and late > seconds and self._watcher < len(self.others):  # the state of the others is not known then
            found.setdefault(self.others[self._watcher], f"silent for {late:.0f} s")
        return found

    def ended(self) -> dict[str, str]:
        """Ask the rendezvous for the processes that have said that they end, and why; return none if it is gone or does not answer."""
        if time.monotonic() - self._reached > 3 * self.interval + 1:
            return {}
        try:
            return {node: text for node, text in self._beats() if not text.isdigit()}
        except RuntimeError:
            return {}

    def gone(self) -> list[str]:
        """Return the processes that have ended without an error."""
        return [node for node in self.others if (self._ended.get(node) or self._table.get(node)) == "left"]

    def cut_off(self) -> str | None:
        """Return an error text if this process has not reached the rendezvous for longer than the limit; else None."""
        lost = time.monotonic() - self._reached
        if lost <= self.limit:
            return None
        return (f"this process ({self.me}) has not reached the meeting point of the job for {lost:.0f} s: it is cut off, or whoever has that "
                "point is gone")

    def trouble(self, about: str = "") -> str:
        """Return the reason why waiting for the processes whose names begin with `about` is futile; None if it is not."""
        silent = {node: why for node, why in self.silent(self.limit).items() if node.startswith(about)}
        return self.cut_off() or ", ".join(f"{node}: {why}" for node, why in silent.items()) or None
