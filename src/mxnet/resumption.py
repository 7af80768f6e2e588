"""Resumable training: the saves of each worker in a folder, and the agreement of all workers on the save to start from."""
from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from typing import Any, NamedTuple

import torch

from . import files
from .base import MXNetError
from .io import load_position, save_position

PARAMETERS, STATES, _POSITION, _SUMMARY = "weights.params", "optimizer.states", "data.position", "summary.json"
_KEPT = 2  # saves per worker: when one worker has written its newest save, another may not have begun its own


class Save(NamedTuple):
    """A complete save: its folder, and the position of the training. `exact` is False if the job has another number of workers now.

    `steps` counts updates since the beginning of the training.
    """

    path: str
    epoch: int
    batch: int
    exact: bool
    steps: int = 0

    def restore_position(self, data: Any) -> None:
        """Restore the position of the iterator after the trained batches, and the state of the random generators."""
        if self.exact:
            load_position(os.path.join(self.path, _POSITION), data)


class Saves:
    """The saves of this worker, in folders such as ``000000012-0of2``: the numbers of the save, of the worker, and of all workers.

    A save appears atomically, when all of it is on the disk; the newest two are kept.

    Parameters
    ----------
    folder : str
        The folder, created if it does not exist. Jobs with a changing number of workers need one that all machines share.
    store : KVStoreBase, optional
        The store with which the workers agree on the newest save that all of them have.

    Raises
    ------
    MXNetError
        If the store's workers are not synchronous.
    """

    def __init__(self, folder: str | os.PathLike[str], store: Any = None):
        self._net = getattr(store, "_group", None)
        if store is not None and "async" in store.type:
            raise MXNetError(f"resume: the workers of a kvstore of type {store.type!r} are at different batches; use 'dist_sync'")
        self.folder, self.rank, self.workers = os.fspath(folder), getattr(store, "rank", 0), getattr(store, "num_workers", 1)
        self._number = 0
        with files.reported(self.folder, "write"):
            os.makedirs(self.folder, exist_ok=True)

    def _complete(self):
        """Return ``(number, worker, workers)`` of all complete saves in the folder, the newest first."""
        saves = []
        for name in os.listdir(self.folder):
            number, dash, rest = name.partition("-")
            rank, of, workers = rest.partition("of")
            if dash and of and number.isdecimal() and rank.isdecimal() and workers.isdecimal():
                saves.append((int(number), int(rank), int(workers)))
        return sorted(saves, reverse=True)

    def newest(self) -> Save | None:
        """Return the `Save` to resume from, the same on all workers; None if there is none.

        If the number of workers has changed since, it is worker 0's, and the interrupted epoch starts again.

        Raises
        ------
        MXNetError
            If it is damaged, or not accessible from this machine.
        """
        saves = self._complete()
        own = [number for number, rank, workers in saves if (rank, workers) == (self.rank, self.workers)]
        others = [(number, workers) for number, rank, workers in saves if rank == 0 and workers != self.workers]
        numbers = (own + [0] * _KEPT)[:_KEPT]
        everyone = [[*numbers, *(others[0] if others else (0, 0))]]
        if self._net is not None:
            everyone = self._net.begin_gather(torch.tensor(everyone[0]), "the newest save of all workers")().tolist()
        common = max(set.intersection(*(set(row[:_KEPT]) for row in everyone)) | {0})
        number, workers = everyone[0][_KEPT:]
        # New numbers follow all earlier ones.
        self._number = max(n for row in everyone for n in row[:_KEPT + 1])
        if number <= common:
            number, workers = common, self.workers
        if not number:
            return None
        exact = workers == self.workers
        return self._read(os.path.join(self.folder, _name(number, self.rank if exact else 0, workers)), exact)

    def agree(self, doing: str, *numbers: int) -> list[list[int]]:
        """Return the numbers of all workers, a list for each."""
        return [list(numbers)] if self._net is None else self._net.numbers_of_all(doing, *numbers)

    @staticmethod
    def _read(path, exact):
        try:
            summary = json.loads(files.read_bytes(os.path.join(path, _SUMMARY)))
            epoch, batch, steps = int(summary["epoch"]), int(summary["batch"]), int(summary.get("steps", 0))
        except (ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
            raise MXNetError(f"{path} is no complete save of a training: {error}; remove it to begin anew") from None
        return Save(path, epoch, batch if exact else 0, exact, steps)

    def write(self, save: Callable[[str], Any], data: Any, epoch: int, batch: int, epoch_over: bool = False, steps: int = 0) -> None:
        """Save the training.

        Parameters
        ----------
        save : function
            A function that writes the weights and the optimizer's states into a folder, as `PARAMETERS` and `STATES`.
        data : iterator
            An iterator with a state, see `mx.io.save_position`.
        epoch, batch : int
            The position of the training: `batch` batches of epoch `epoch` were trained on.
        epoch_over : bool
            True if `data` is at the end of an epoch, and not reset.
        steps : int
            How many updates were done.
        """
        self._number += 1
        path = os.path.join(self.folder, _name(self._number, self.rank, self.workers))
        with files.scratch_folder(path) as made, files.reported(path, "write"):
            part = os.path.join(made, "save")
            os.mkdir(part)
            save(part)
            save_position(os.path.join(part, _POSITION), data, epoch_over)
            files.write_bytes(os.path.join(part, _SUMMARY), json.dumps({"epoch": epoch, "batch": batch, "steps": steps}).encode())
            shutil.rmtree(path, ignore_errors=True)  # a save of an earlier run with this number
            os.replace(part, path)
        mine = [entry for entry in self._complete() if entry[1] == self.rank]
        for entry in mine[_KEPT:]:
            shutil.rmtree(os.path.join(self.folder, _name(*entry)), ignore_errors=True)
        files.remove_left(self.folder, rf"\d+-{self.rank}of\d+")


def _name(number, rank, workers):
    return f"{number:09d}-{rank}of{workers}"
