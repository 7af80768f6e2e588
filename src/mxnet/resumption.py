"""Trainings that go on where they were: what each worker of a job keeps in a folder, and from which of it all of them start."""
import json
import os
import shutil
from typing import NamedTuple

import torch

from . import files
from .base import MXNetError
from .io import load_position, save_position

PARAMETERS, STATES, _POSITION, _SUMMARY = "weights.params", "optimizer.states", "data.position", "summary.json"
_KEPT = 2  # while one worker writes its newest save, another may not have begun


class Save(NamedTuple):
    """One that is complete: where it is, and where the training was. `exact` is False if the job has another number of workers now."""

    path: str
    epoch: int
    batch: int
    exact: bool

    def restore_position(self, data):
        """Let the iterator go on behind the batches that were trained on, and the random generators, too."""
        if self.exact:
            load_position(os.path.join(self.path, _POSITION), data)


class Saves:
    """The saves of this worker, in folders ``000000012-0of2``: the number of the save, the worker, and how many there are.

    A save appears in one piece, when all of it is on the disk; the newest two are kept.

    Parameters
    ----------
    folder : str
        Made if it is not there. For jobs whose number of workers changes, one that all machines share.
    store : KVStoreBase, optional
        Through which the workers agree on the newest save that all of them have.

    Raises
    ------
    MXNetError
        If the store's workers do not go in step.
    """

    def __init__(self, folder, store=None):
        self._net = getattr(store, "_group", None)
        if store is not None and "async" in store.type:
            raise MXNetError(f"resume: the workers of a kvstore of type {store.type!r} are at different batches; use 'dist_sync'")
        self.folder, self.rank, self.workers = os.fspath(folder), getattr(store, "rank", 0), getattr(store, "num_workers", 1)
        self._number = 0
        with files.reported(self.folder, "write"):
            os.makedirs(self.folder, exist_ok=True)

    def _complete(self):
        """``(number, worker, workers)`` of all saves that are here, the newest first."""
        found = []
        for name in os.listdir(self.folder):
            number, dash, rest = name.partition("-")
            rank, of, workers = rest.partition("of")
            if dash and of and number.isdecimal() and rank.isdecimal() and workers.isdecimal():
                found.append((int(number), int(rank), int(workers)))
        return sorted(found, reverse=True)

    def newest(self):
        """The `Save` to go on from, the same on all workers; None if there is none.

        If the number of workers has changed since, it is worker 0's, and the epoch that was under way begins anew.

        Raises
        ------
        MXNetError
            If it is damaged, or can't be reached from here.
        """
        found = self._complete()
        own = [number for number, rank, workers in found if (rank, workers) == (self.rank, self.workers)]
        others = [(number, workers) for number, rank, workers in found if rank == 0 and workers != self.workers]
        numbers = (own + [0] * _KEPT)[:_KEPT]
        everyone = [[*numbers, *(others[0] if others else (0, 0))]]
        if self._net is not None:
            everyone = self._net.begin_gather(torch.tensor(everyone[0]), "the newest save of all workers")().tolist()
        common = max(set.intersection(*(set(row[:_KEPT]) for row in everyone)) | {0})
        number, workers = everyone[0][_KEPT:]
        # Numbers go on behind any that was given before.
        self._number = max(n for row in everyone for n in row[:_KEPT + 1])
        if number <= common:
            number, workers = common, self.workers
        if not number:
            return None
        exact = workers == self.workers
        return self._read(os.path.join(self.folder, _name(number, self.rank if exact else 0, workers)), exact)

    @staticmethod
    def _read(path, exact):
        try:
            summary = json.loads(files.read_bytes(os.path.join(path, _SUMMARY)))
            epoch, batch = int(summary["epoch"]), int(summary["batch"])
        except (ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
            raise MXNetError(f"{path} is no complete save of a training: {error}; remove it to begin anew") from None
        return Save(path, epoch, batch if exact else 0, exact)

    def write(self, save, data, epoch, batch, epoch_over=False):
        """Save the training.

        Parameters
        ----------
        save : function
            Writes the weights and the optimizer's states into a folder, as `PARAMETERS` and `STATES`.
        data : iterator
            With a state, see `mx.io.save_position`.
        epoch, batch : int
            What comes next: the batches of the epoch that were trained on are `batch`.
        epoch_over : bool
            Whether `data` is at the end of an epoch, and not reset.
        """
        self._number += 1
        path = os.path.join(self.folder, _name(self._number, self.rank, self.workers))
        with files.scratch_folder(path) as made, files.reported(path, "write"):
            part = os.path.join(made, "save")
            os.mkdir(part)
            save(part)
            save_position(os.path.join(part, _POSITION), data, epoch_over)
            files.write_bytes(os.path.join(part, _SUMMARY), json.dumps({"epoch": epoch, "batch": batch}).encode())
            shutil.rmtree(path, ignore_errors=True)  # of a run that went another way
            os.replace(part, path)
        mine = [entry for entry in self._complete() if entry[1] == self.rank]
        for entry in mine[_KEPT:]:
            shutil.rmtree(os.path.join(self.folder, _name(*entry)), ignore_errors=True)
        files.remove_left(self.folder, rf"\d+-{self.rank}of\d+")


def _name(number, rank, workers):
    return f"{number:09d}-{rank}of{workers}"
