"""Autotuning: the choice of the fastest of several algorithms, benchmarked once on each machine and stored on disk.

The tuning cache lies beside the compiled kernels (`libraries.folder`), with a file for each processor and each version of the kernels' sources. The
package contains choices for well-known networks on common processors (``shipped_tuning/``, made by ``scripts/ship_tuning.py``), which count until
this machine has its own.
"""
import functools
import json
import pathlib
import threading
from collections.abc import Callable, Container, Iterator, Mapping
from typing import Optional

import torch

from ... import environment, interrupts, processor
from ...base import MXNetError
from ...files import atomic_write
from ...threads import unreliable
from . import libraries
from .measurement import LAYER, benchmark, thread_seconds

_CACHES = 1 << 22  # floats read before each run to evict the caches, as other layers of a network do
_SHIPPED = pathlib.Path(__file__).parent / "shipped_tuning"
_LARGEST = 1 << 22  # bytes of a cache file: a larger one is foreign, or of programs whose shapes never repeat, and is replaced


def allowed() -> bool:
    """Return True if algorithms may be benchmarked against each other."""
    return environment.get_int("MXNET_CUDNN_AUTOTUNE_DEFAULT") > 0


_here = threading.local()


@interrupts.scope
def paused() -> Iterator[None]:
    """Run no benchmark in this thread within a ``with`` block.

    For functions that run once, as the reference of a validation: without a cached choice their layers take the first candidate, in these calls only.

    Example
    -------
    >>> with paused():
    ...     print(postponed())
    True
    """
    before = getattr(_here, "paused", False)
    try:
        _here.paused = True
        yield
    finally:
        _here.paused = before


def postponed() -> bool:
    """Return True if a choice that is not cached has to wait: other programs are busy, or benchmarks are `paused` in this thread."""
    return unreliable() or getattr(_here, "paused", False)


def shipped_file(name: str) -> pathlib.Path:
    """Return the path of the package's choices of a kind for processors of this design: maker, generation and instruction sets in use."""
    return _SHIPPED / f"{name}-{processor.design()}.json"


class TuningCache:
    """A persistent map of one kind of computation: the key describes the computation, the value names the chosen algorithm.

    Parameters
    ----------
    name : str
        The prefix of the file's name.
    *sources : str
        The kernels that take part: a change of one of their sources invalidates the cache.
    """

    def __init__(self, name: str, *sources: str):
        self.name, self._sources = name, sources
        self._known: dict[pathlib.Path, dict[str, str]] = {}  # by file
        self._writing = threading.Lock()

    @functools.cached_property
    def _file(self) -> str:
        return f"{self.name}-{libraries.fingerprint(*self._sources)}.json"

    @property
    def path(self) -> pathlib.Path:
        """The path of the cache file."""
        return libraries.folder() / self._file

    def get(self, key: str) -> Optional[str]:
        """Return the choice stored for `key`, or None. Its value is untrusted: others may have written the file."""
        path = self.path
        known = self._known.get(path)
        if known is None:
            known = self._known[path] = _read(path)
        return known.get(key)

    def shipped(self, key: str) -> Optional[str]:
        """Return the package's choice for `key` on processors of this design, or None."""
        return self._shipped.get(key)

    @functools.cached_property
    def _shipped(self) -> dict[str, str]:
        return _read(shipped_file(self.name))

    def keep(self, key: str, choice: Optional[str]) -> None:
        """Store a choice under `key`; None deletes the entry."""
        path = self.path
        with self._writing:
            known = {**self._known.get(path, {}), **_read(path)}  # with the entries that other processes have added meanwhile
            known.pop(key, None)
            self._known[path] = known = known if choice is None else {**known, key: choice}
            try:
                with atomic_write(path) as f:
                    f.write(json.dumps(known, indent=0, sort_keys=True).encode())
            except MXNetError:  # a read-only or full disk: the next process benchmarks again
                pass

    def forget(self) -> None:
        """Drop the entries in memory, so that the files are read again."""
        self._known.clear()


class Autotuner(TuningCache):
    """A tuning cache that benchmarks kernels of one kind when it has no choice.

    A narrow result measured while other programs used the processors is valid for this process only, and not written to disk.
    """

    def __init__(self, name: str, *sources: str):
        super().__init__(name, *sources)
        self._benchmarking = threading.Lock()
        self._disturbed: dict[str, str] = {}  # choices measured beside other programs, valid in this process only

    def get(self, key: str) -> Optional[str]:
        return super().get(key) or self._disturbed.get(key) or self.shipped(key)

    def forget(self) -> None:
        super().forget()
        self._disturbed.clear()

    def cached(self, key: str, names: Container[str]) -> Optional[str]:
        """Return the cached choice if it is one of `names`, else None."""
        found = self.get(key)
        return found if found in names else None

    def fastest(self, key: str, runs: Mapping[str, Callable[[], object]]) -> str:
        """Return the name of the fastest of `runs`, from the cache or by a benchmark.

        The first is chosen where no other is clearly faster, another thread is benchmarking, or benchmarks are not `allowed`.
        """
        first, known = next(iter(runs)), self.cached(key, runs)
        if known is not None:
            return known
        if not allowed() or not self._benchmarking.acquire(blocking=False):
            return first
        try:
            fastest, reliable = _fastest(runs)
            if reliable:
                self.keep(key, fastest)
            else:
                self._disturbed[key] = fastest
        finally:
            self._benchmarking.release()
        return fastest


def _fastest(runs: Mapping[str, Callable[[], object]]) -> tuple[str, bool]:
    """Benchmark `runs`. Return the name of the fastest, and True if that is reliable: nothing disturbed it, or the lead is large."""
    for run in runs.values():
        run()
    elsewhere = torch.zeros(_CACHES, dtype=torch.float32, device="cpu")

    def clock(run: Callable[[], object]) -> list[float]:
        elsewhere.sum()
        return [thread_seconds(run)]

    outcome = benchmark(runs, clock, LAYER)
    fastest = LAYER.fastest(outcome.times)
    return fastest, outcome.is_quiet or LAYER.is_sure(fastest, outcome.times)


def _read(path: pathlib.Path) -> dict[str, str]:
    try:
        if path.stat().st_size > _LARGEST:
            return {}
        found = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError, RecursionError):  # no file yet, or one that a full disk truncated
        return {}
    return {k: v for k, v in found.items() if isinstance(v, str)} if isinstance(found, dict) else {}
