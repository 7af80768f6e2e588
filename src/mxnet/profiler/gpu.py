"""Kernels and copies of GPUs, recorded by torch's profiler (Kineto) while this one runs, with the operator call that launched each."""
from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import torch

from .events import OPERATOR, Events, Kind

KERNEL, LAUNCH = "gpu", "launch"
_LOST = "kernels of GPUs are missing here: profiling has ended in another thread than the one in which it began"
_IN_USE = "no kernels of GPUs here: torch's profiler is in use by the program itself"


class Row(NamedTuple):
    """An event; times in ns of `time.perf_counter_ns`."""

    kind: Kind
    start: int
    value: int
    thread: int


def rows(records: Iterable[Any], offset: int, threads: Mapping[int, int]) -> Iterator[Row]:
    """Yield the events of kernels and copies on GPUs, and flows from their launches.

    A line from the launch to the kernel (a flow of Chrome's traces) starts within the event of the operator that made the launch.

    Parameters
    ----------
    found : iterable
        Kineto's events.
    offset : int
        The difference between Kineto's clock (ns since 1970) and `time.perf_counter_ns`.
    threads : mapping of int to int
        From the system's number of a thread to its number in the events.
    """
    records = list(records)
    launches = {e.correlation_id(): e for e in records if _on_cpu(e) and e.name().startswith("cu") and e.correlation_id()}
    for event in records:
        if _on_cpu(event):
            continue
        place, start, stream = f"gpu/{event.device_index()}", event.start_ns() - offset, event.device_resource_id()
        yield Row(Kind("X", event.name(), KERNEL, place), start, event.duration_ns(), stream)
        launch = launches.get(event.correlation_id())
        if launch is not None and launch.device_resource_id() in threads:
            number = event.correlation_id()
            yield Row(Kind("s", LAUNCH, OPERATOR, counts=-1), launch.start_ns() - offset, number, threads[launch.device_resource_id()])
            yield Row(Kind("f", LAUNCH, OPERATOR, place, counts=-1), start, number, stream)


def _on_cpu(event: Any) -> bool:
    return event.device_type() == torch.autograd.DeviceType.CPU


class Kernels:
    """Runs torch's profiler, and adds its kernels and copies to the events.

    Parameters
    ----------
    events : Events
    natives : callable
        Returns the mapping for `rows` of threads that Python did not start.
    """

    def __init__(self, events: Events, natives: Any = dict) -> None:
        self._events, self._natives = events, natives
        self._lock = threading.Lock()
        self._profile: Any = None
        self._thread = 0  # the thread that started torch's profiler: no other one can stop it

    def watch(self, on: bool) -> None:
        """Start or stop recording; without a GPU this does nothing."""
        with self._lock:
            if on and self._profile is None and torch.cuda.is_available():
                self._start()
            elif not on and self._profile is not None:
                self._take()

    def collect(self) -> None:
        """Add the events so far if this thread started torch's profiler; otherwise they are added when it stops."""
        with self._lock:
            if self._profile is not None and self._thread == threading.get_ident():
                self._take()
                self._start()

    def _start(self) -> None:
        try:
            self._profile, self._thread = listen(), threading.get_ident()
        except RuntimeError:  # the program runs torch's profiler itself, and there can be only one
            self._events.add(Kind("i", _IN_USE, KERNEL), time.perf_counter_ns(), "p")

    def _take(self) -> None:
        profile, self._profile = self._profile, None
        if self._thread != threading.get_ident():
            self._events.add(Kind("i", _LOST, KERNEL), time.perf_counter_ns(), "p")
            return
        profile.__exit__(None, None, None)
        threads = {**self._natives(), **{t.native_id: t.ident for t in threading.enumerate() if t.native_id and t.ident}}
        for row in rows(profile.kineto_results.events(), time.time_ns() - time.perf_counter_ns(), threads):
            if row.kind.category == KERNEL:
                self._events.threads.setdefault(row.thread, f"stream {row.thread}")
            self._events.append(self._events.number(row.kind), row.start, row.value, row.thread)


def listen() -> Any:
    """Start torch's profiler for GPU activities and calls of CUDA, and return it.

    Raises
    ------
    RuntimeError
        If the program has started one itself.
    """
    profile = torch.autograd.profiler.profile(use_cpu=False, use_device="cuda", use_kineto=True)
    profile.__enter__()
    return profile
