"""Protection from the loss of a worker: notes of each worker's position at every step, and weights that the others save when one is lost."""
from __future__ import annotations

import os
import re
import shutil
import signal
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from .. import files
from ..base import MXNetError
from ..io.position import position_text, restore_position
from ..training_checkpoint import shard_file

if TYPE_CHECKING:
    from ..ndarray import NDArray

_NAME = re.compile(r"rescue-(\d{9})-(\d{1,5})of(\d{1,5})")
_NOTES = 3  # of a worker: workers may be at two steps when one is lost, and a third is being written
_MOST = 1 << 30  # bytes of a note


_asked: list[bool] = []


def _terminate(*_: Any) -> None:
    _asked.append(True)


class Note(NamedTuple):
    """A worker's position: how many steps were done then, the position in the data with the random generators, and its moving averages."""

    steps: int
    epoch: int
    batch: int
    position: str
    arrays: dict[str, torch.Tensor]


class Rescue:
    """The notes and rescued weights of a job in a folder that its workers share.

    A worker notes its position when a step begins, after backward: if any worker completes the step, all have noted it. The weights of data
    parallelism are the same on all workers, so that one that survives has what the lost one had.

    Parameters
    ----------
    folder : str
    rank, workers : int
    own : function
        Returns the arrays that each worker has for itself, by name.
    """

    def __init__(self, folder: str, rank: int, workers: int, own: Callable[[], dict[str, NDArray]]) -> None:
        self._folder, self._rank, self._workers, self._own = folder, rank, workers, own
        _asked.clear()
        if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGTERM) in (signal.SIG_DFL, _terminate):
            signal.signal(signal.SIGTERM, _terminate)

    @property
    def terminated(self) -> bool:
        """True once the process was asked to end (SIGTERM), as launchers do when another worker was lost."""
        return bool(_asked)

    # -- notes -------------------------------------------------------------------------------------------------------------------

    def _note_file(self, steps: int) -> str:
        return os.path.join(self._folder, f"note-{self._rank}of{self._workers}-{steps % _NOTES}")

    def note(self, steps: int, epoch: int, batch: int, data: Any) -> None:
        """Write the position with which the training continues after so many steps."""
        path = self._note_file(steps)
        made = f"{path}.unfinished"
        with files.reported(path, "write"):
            if os.path.exists(made):
                os.unlink(made)
            about = {"steps": str(steps), "epoch": str(epoch), "batch": str(batch), "position": position_text(data)}
            arrays = [(name, array.shape, array._raw().reshape(-1).cpu()) for name, array in self._own().items()]
            shard_file.write(made, arrays, about, sync=False)  # for the end of a process, not of the machine
            os.replace(made, path)

    def _read_note(self, steps: int) -> Note | None:
        path = self._note_file(steps)
        try:
            size = os.path.getsize(path)
        except OSError:
            return None
        if size > _MOST:
            return None
        about, places = shard_file.read_header(path, size)
        arrays = {}
        with open(path, "rb") as file:
            for name, place in places.items():  # the network may not know their shapes yet
                arrays[name] = torch.empty(place.size, dtype=place.dtype)
                shard_file.read_into(file, place, 0, arrays[name])
        try:
            note = Note(int(about["steps"]), int(about["epoch"]), int(about["batch"]), about["position"], arrays)
        except (KeyError, ValueError) as error:
            raise MXNetError(f"{path} is damaged: {error}") from None
        return note if note.steps == steps else None

    # -- weights -----------------------------------------------------------------------------------------------------------------

    def save(self, steps: int, save: Callable[[str], Any]) -> None:
        """Save weights and states after so many steps, by a function that writes them into a folder."""
        path = os.path.join(self._folder, f"rescue-{steps:09d}-{self._rank}of{self._workers}")
        with files.scratch_folder(path) as made, files.reported(path, "write"):
            part = os.path.join(made, "rescue")
            os.mkdir(part)
            save(part)
            shutil.rmtree(path, ignore_errors=True)
            os.replace(part, path)

    def _rescued(self) -> list[tuple[int, int]]:
        """Return (steps, rank) of all rescued weights of this number of workers, the newest first."""
        matches = map(_NAME.fullmatch, os.listdir(self._folder))
        return sorted(((int(m[1]), -int(m[2])) for m in matches if m and int(m[3]) == self._workers), reverse=True)

    def newest(self, steps: int, agree: Callable[..., list[list[int]]]) -> tuple[str, Note] | None:
        """Return the folder with the newest weights, and this worker's note; None if there are none after more than so many steps.

        `agree` exchanges numbers with the other workers: all take the same, or none.
        """
        rescued = self._rescued()
        best, source = rescued[0] if self._rank == 0 and rescued and rescued[0][0] > steps else (0, 0)
        best, source = agree("rescued weights", best, -source)[0]
        note = self._read_note(best) if best else None
        path = os.path.join(self._folder, f"rescue-{best:09d}-{source}of{self._workers}")
        complete = all(ready for (ready,) in agree("notes", int(note is not None and os.path.isdir(path))))
        return (path, note) if complete and note is not None else None

    def restore(self, note: Note, data: Any) -> None:
        """Restore generators, the position of the data, and this worker's own arrays."""
        for name, array in self._own().items():
            tensor = note.arrays.get(name)
            if tensor is None or tensor.numel() != array.size or tensor.dtype != array._data.dtype:
                raise MXNetError(f"the notes in {self._folder} are of another network: {name!r} is missing, or of another shape or type")
            array._set_values(tensor.view(array.shape))
        restore_position(note.position, self._folder, data)

    def remove(self) -> None:
        """Remove this worker's rescued weights: a later save is complete."""
        for steps, rank in self._rescued():
            if -rank == self._rank:
                shutil.rmtree(os.path.join(self._folder, f"rescue-{steps:09d}-{self._rank}of{self._workers}"), ignore_errors=True)
