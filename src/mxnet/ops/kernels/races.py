"""Which of several kernels that compute the same is the fastest for arguments of a kind: they race once on this machine, and the winner is kept.

Winners are kept with the compiled kernels (`compiled.folder`), in a file for each processor and each version of the sources.
"""
import json
import threading
import time
from collections.abc import Callable, Mapping

from ...base import MXNetError
from ...files import atomic_write
from . import compiled

_ROUNDS, _ENOUGH = 3, 0.1  # each runs so often, or until all have taken so many seconds
_CLEARLY = 0.93  # of the first one's time: who is only just ahead may be so by chance


class Races:
    """The races of one kind.

    Parameters
    ----------
    name : str
    *libraries : str
        The kernels that take part: after one of their sources has changed, all races start anew.
    """

    def __init__(self, name: str, *libraries: str):
        self.name, self._libraries = name, libraries
        self._lock = threading.Lock()
        self._winners: dict[str, dict[str, str]] = {}  # by file

    def winner(self, key: str, runs: Mapping[str, Callable[[], object]]) -> str:
        """The name of the fastest, as found now or before.

        The first of them where no other is clearly faster, or a race goes on in another thread.
        """
        first = next(iter(runs))
        path = compiled.folder() / f"{self.name}-{compiled.fingerprint(*self._libraries)}.json"
        known = self._winners.get(str(path))
        if known is None:
            known = self._winners[str(path)] = _read(path)
        if known.get(key) in runs:
            return known[key]
        if not self._lock.acquire(blocking=False):
            return first
        try:
            found = _fastest(runs, first)
            merged = {**_read(path), key: found}  # with what other processes have found meanwhile
            self._winners[str(path)] = {**known, **merged}
            try:
                with atomic_write(path) as f:
                    f.write(json.dumps(merged, indent=0, sort_keys=True).encode())
            except MXNetError:  # read-only, or full: the next process races again
                pass
        finally:
            self._lock.release()
        return found

    def forget(self) -> None:
        """Read the files again."""
        self._winners.clear()


def _fastest(runs: Mapping[str, Callable[[], object]], first: str) -> str:
    for run in runs.values():
        run()
    best = dict.fromkeys(runs, float("inf"))
    begin = time.perf_counter()
    for _ in range(_ROUNDS):
        for name, run in runs.items():
            start = time.thread_time()  # which other programs that use the processor do not lengthen
            run()
            best[name] = min(best[name], time.thread_time() - start)
        if time.perf_counter() - begin > _ENOUGH:
            break
    found = min(best, key=best.__getitem__)
    return found if best[found] < _CLEARLY * best[first] else first


def _read(path) -> dict[str, str]:
    try:
        found = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError, RecursionError):  # there is none yet, or a disk was full
        return {}
    return {k: v for k, v in found.items() if isinstance(v, str)} if isinstance(found, dict) else {}
