"""Which of several ways to compute the same is the fastest: they race once on this machine, and the winner is kept.

Winners are kept with the compiled kernels (`libraries.folder`), in a file for each processor and each version of the kernels' sources. Those of
well-known networks on common processors came with the package (``winners/``, made by ``scripts/ship_winners.py``), and count until there are others.
"""
import functools
import json
import pathlib
import threading
import time
from collections.abc import Callable, Container, Mapping
from typing import Optional

import torch

from ... import environment, processor
from ...base import MXNetError
from ...files import atomic_write
from . import libraries

_ROUNDS, _ENOUGH = 3, 0.1  # each runs so often, or until all have taken so many seconds
_CACHES = 1 << 22  # floats that are read before each run: in a network, too, other layers' weights have been in the caches meanwhile
_CLEARLY = 0.93  # of the first one's time: who is only just ahead may be so by chance
_SURE = 1.2  # times the fastest one's time: if all others take longer, other programs don't explain it
_HOPELESS = 1.5  # times the best one's time: who takes that long in one round needs no other
_QUIET = 0.1  # of the time that was measured: where threads waited longer for a processor, other programs have decided the race (OpenVINO's
# and torch's threads let one another wait for a twentieth where they take turns)
_SHIPPED = pathlib.Path(__file__).parent / "winners"
_LARGEST = 1 << 22  # bytes of a file of winners: a larger one is not ours, or of programs whose shapes never repeat, and begins anew


def allowed() -> bool:
    """Whether ways to compute the same may race."""
    return environment.get_int("MXNET_CUDNN_AUTOTUNE_DEFAULT") > 0


def quiet(seconds: float, waited: float) -> bool:
    """Whether what was measured tells something about this process, and not about others.

    Parameters
    ----------
    seconds, waited : float
        How long was measured, and for how long threads of this process waited for a processor meanwhile.
    """
    return waited <= _QUIET * seconds


def shipped_file(name: str) -> pathlib.Path:
    """Where the package has the winners of that kind for processors of this design: maker, generation and instruction sets in use."""
    return _SHIPPED / f"{name}-{processor.design()}.json"


class Winners:
    """The winners of one kind, each under a text that says what was computed.

    Parameters
    ----------
    name : str
        How the file's name begins.
    *sources : str
        The kernels that take part: after one of their sources has changed, nothing is known any more.
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
        """Where they are kept."""
        return libraries.folder() / self._file

    def get(self, key: str) -> Optional[str]:
        """Who won, as a file says that anybody could have written; None where that is not known."""
        path = self.path
        known = self._known.get(path)
        if known is None:
            known = self._known[path] = _read(path)
        return known.get(key)

    def shipped(self, key: str) -> Optional[str]:
        """Who won on a processor of this design when the package was made; None where that is not known."""
        return self._shipped.get(key)

    @functools.cached_property
    def _shipped(self) -> dict[str, str]:
        return _read(shipped_file(self.name))

    def keep(self, key: str, winner: Optional[str]) -> None:
        """Keep who won, or with None forget it."""
        path = self.path
        with self._writing:
            known = {**self._known.get(path, {}), **_read(path)}  # with what other processes have found meanwhile
            known.pop(key, None)
            self._known[path] = known = known if winner is None else {**known, key: winner}
            try:
                with atomic_write(path) as f:
                    f.write(json.dumps(known, indent=0, sort_keys=True).encode())
            except MXNetError:  # read-only, or full: the next process races again
                pass

    def forget(self) -> None:
        """Read the files again."""
        self._known.clear()


class Races(Winners):
    """The races of kernels of one kind.

    What won narrowly while other programs had a part of the processors is not kept on disk, for processes that run without them.
    """

    def __init__(self, name: str, *sources: str):
        super().__init__(name, *sources)
        self._racing = threading.Lock()
        self._disturbed: dict[str, str] = {}  # the winners among other programs, which count in this process

    def get(self, key: str) -> Optional[str]:
        return super().get(key) or self._disturbed.get(key) or self.shipped(key)

    def forget(self) -> None:
        super().forget()
        self._disturbed.clear()

    def known(self, key: str, names: Container[str]) -> Optional[str]:
        """Who won before, if it is one of these."""
        found = self.get(key)
        return found if found in names else None

    def winner(self, key: str, runs: Mapping[str, Callable[[], object]]) -> str:
        """The name of the fastest, as found now or before.

        The first of them where no other is clearly faster, a race goes on in another thread, or none is `allowed`.
        """
        first, known = next(iter(runs)), self.known(key, runs)
        if known is not None:
            return known
        if not allowed() or not self._racing.acquire(blocking=False):
            return first
        try:
            found, believed = _fastest(runs, first)
            if believed:
                self.keep(key, found)
            else:
                self._disturbed[key] = found
        finally:
            self._racing.release()
        return found


def _fastest(runs: Mapping[str, Callable[[], object]], first: str) -> tuple[str, bool]:
    """The name of the fastest, and whether that is to be believed: it was `quiet`, or no other comes near."""
    for run in runs.values():
        run()
    best = dict.fromkeys(runs, float("inf"))
    elsewhere = torch.zeros(_CACHES, dtype=torch.float32, device="cpu")
    waited, begin = processor.waited(), time.perf_counter()
    for _ in range(_ROUNDS):
        for name in [n for n in best if best[n] <= _HOPELESS * min(best.values())]:
            elsewhere.sum()
            start = time.thread_time()  # which other programs that use the processor do not lengthen
            runs[name]()
            best[name] = min(best[name], time.thread_time() - start)
        if time.perf_counter() - begin > _ENOUGH:
            break
    fastest, *others = sorted(best, key=best.__getitem__)
    found = fastest if best[fastest] < _CLEARLY * best[first] else first
    sure = found == fastest and all(best[other] > _SURE * best[fastest] for other in others)
    return found, sure or quiet(time.perf_counter() - begin, processor.waited() - waited)


def _read(path: pathlib.Path) -> dict[str, str]:
    try:
        if path.stat().st_size > _LARGEST:
            return {}
        found = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError, RecursionError):  # there is none yet, or a disk was full
        return {}
    return {k: v for k, v in found.items() if isinstance(v, str)} if isinstance(found, dict) else {}
