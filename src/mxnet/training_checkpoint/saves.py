"""A folder of checkpoints. Each appears in one step, when the files of all ranks are on the disk."""
from __future__ import annotations

import concurrent.futures
import json
import logging
import os
import re
import secrets
import shutil
import threading
from collections.abc import Callable
from typing import Any

import torch

from .. import files
from ..base import MXNetError
from .entries import Entry

_FORMAT = "remex training 1"
_INDEX = "index.json"
_NAME = re.compile(r"training-(\d{9})")
_UNFINISHED = re.compile(r"\.training-\d{9}-[0-9a-f]{16}")
_KEPT = 2  # complete checkpoints
_MOST = 1 << 16  # ranks
_log = logging.getLogger(__name__)


class PendingSave:
    """A checkpoint that is being written.

    Parameters
    ----------
    future : concurrent.futures.Future
    """

    def __init__(self, future: concurrent.futures.Future[None]) -> None:
        self._future, self._seen = future, False
        future.add_done_callback(self._report)

    def _report(self, future: concurrent.futures.Future[None]) -> None:
        error = future.exception()
        if error is not None:
            _log.error("a checkpoint was not saved: %s", error)

    def done(self) -> bool:
        """Return True if it is complete on the disk, or has failed."""
        return self._future.done()

    def wait(self, timeout: float | None = None) -> None:
        """Wait until the files of all ranks are on the disk.

        Raises
        ------
        MXNetError
            If a rank could not write its file, or was lost; the checkpoint before is the newest then.
        TimeoutError
            After `timeout` seconds.
        """
        self._seen = True
        try:
            self._future.result(timeout)
        except concurrent.futures.TimeoutError:  # another class than TimeoutError before Python 3.11
            raise TimeoutError(f"the checkpoint is not complete after {timeout} s") from None

    def _settle(self) -> None:
        """Wait, and raise the error unless `wait` has raised it."""
        if self._seen:
            concurrent.futures.wait([self._future])
        else:
            self.wait()


class Folder:
    """The checkpoints of a job in a folder that all its ranks share.

    Parameters
    ----------
    path : str
    group : kvstore.group.Group, optional
        The ranks; without it this process is the only one.
    """

    def __init__(self, path: str | os.PathLike[str], group: Any = None) -> None:
        self.path, self._group = os.fspath(path), group
        self.rank, self.count = (group.rank, group.num_workers) if group else (0, 1)
        self._pending: PendingSave | None = None
        self._staged: dict[tuple[str, int], torch.Tensor] = {}

    def settle(self) -> None:
        """Wait for the checkpoint that is being written; errors as in `PendingSave.wait`, unless that has raised them."""
        if self._pending is not None:
            self._pending._settle()

    def _agree(self, doing: str, *numbers: int) -> list[list[int]]:
        return [list(numbers)] if self._group is None else self._group.numbers_of_all(doing, *numbers)

    def _numbers(self) -> list[int]:
        """Return the numbers of complete checkpoints, ascending."""
        with files.reported(self.path):
            names = os.listdir(self.path) if os.path.isdir(self.path) else []
        return sorted(int(match[1]) for match in map(_NAME.fullmatch, names) if match)

    def _complete(self, number: int) -> str:
        return os.path.join(self.path, f"training-{number:09d}")

    # -- saving ------------------------------------------------------------------------------------------------------------------

    def save(self, entries: dict[str, Entry], about: dict[str, str], job: dict[str, Any]) -> PendingSave:
        """Copy this rank's pieces, and begin to write them; all ranks call it.

        Parameters
        ----------
        entries : dict of str to Entry
        about : dict of str to str
            Texts of this rank.
        job : dict
            Numbers of the job, for the index.
        """
        from . import storage
        doing = "save_training"
        self.settle()
        tag = number = 0
        if self.rank == 0:
            with files.reported(self.path, "write"):
                os.makedirs(self.path, exist_ok=True)
            self._remove_unfinished()
            # Not from a generator of the program, whose numbers a checkpoint must not change. Below the sign of 64 bits.
            tag, number = secrets.randbits(62), (self._numbers() or [0])[-1] + 1
        tag, number = self._agree(doing, tag, number)[0]
        storage.accept_single_process()
        staged = {name: self._stage(name, entry) for name, entry in entries.items()}
        executor = concurrent.futures.ThreadPoolExecutor(1, thread_name_prefix="mxnet-checkpoint")
        self._pending = PendingSave(executor.submit(self._write, number, f"{tag:016x}", staged, about, job))
        executor.shutdown(wait=False)  # the thread ends after its work, which the interpreter's exit waits for
        return self._pending

    def _stage(self, name: str, entry: Entry) -> Entry:
        pieces = []
        for begin, tensor in entry.pieces:
            copy = self._staged.get((name, begin))
            if copy is None or copy.shape != tensor.shape or copy.dtype != tensor.dtype:
                copy = self._staged[name, begin] = torch.empty(tensor.shape, dtype=tensor.dtype)
            pieces.append((begin, copy.copy_(tensor)))
        return Entry(entry.shape, entry.dtype, pieces)

    def _write(self, number: int, tag: str, entries: dict[str, Entry], about: dict[str, str], job: dict[str, Any]) -> None:
        """Write this rank's file; rank 0 waits for those of all, and commits."""
        from . import storage
        final = self._complete(number)
        made = os.path.join(self.path, f".training-{number:09d}-{tag}")
        signals = _Signals(self._group, tag)
        try:
            with files.reported(made, "write"):
                os.makedirs(made, exist_ok=True)
            size = storage.save(_file(made, self.rank, self.count), entries, about)
        except BaseException as error:
            signals.send(self.rank, f"rank {self.rank}: {error}")
            raise
        signals.send(self.rank, str(size))
        if self.rank:
            answer = signals.receive("commit")
            if answer:
                raise MXNetError(f"the checkpoint {final} was not completed: {answer}")
            return
        try:
            sizes = [signals.receive(rank) for rank in range(self.count)]
            failed = [text for text in sizes if not text.isdecimal()]
            if failed:
                raise MXNetError(f"the checkpoint {final} was not completed: {failed[0]}")
            index = {"format": _FORMAT, "ranks": self.count, "sizes": [int(text) for text in sizes], **job}
            files.write_bytes(os.path.join(made, _INDEX), json.dumps(index).encode())
            with files.reported(final, "write"):
                _sync(made)
                os.rename(made, final)
                _sync(self.path)
        except BaseException as error:
            shutil.rmtree(made, ignore_errors=True)
            signals.send("commit", str(error) or type(error).__name__)
            raise
        signals.send("commit", "")
        for old in self._numbers()[:-_KEPT]:
            self._remove(self._complete(old))

    def _remove(self, path: str) -> None:
        """Remove a complete checkpoint: it gets the name of an unfinished one first, so that no part of it is ever loaded."""
        hidden = os.path.join(self.path, f".{os.path.basename(path)}-{'0' * 16}")
        try:
            os.rename(path, hidden)
        except OSError:
            return
        shutil.rmtree(hidden, ignore_errors=True)

    def _remove_unfinished(self) -> None:
        """Remove what killed jobs have left."""
        for name in os.listdir(self.path):
            if _UNFINISHED.fullmatch(name):
                shutil.rmtree(os.path.join(self.path, name), ignore_errors=True)

    # -- loading -----------------------------------------------------------------------------------------------------------------

    def newest(self) -> tuple[Any, dict[str, Any]] | None:
        """Return the newest checkpoint (a `storage.Checkpoint`) and its index, the same on all ranks; None if there is none.

        Raises
        ------
        MXNetError
            If it is damaged, or a rank can't read it; then on all ranks.
        """
        doing = "resume_training"
        self.settle()
        number = self._agree(doing, (self._numbers() or [0])[-1] if self.rank == 0 else 0)[0][0]
        if not number:
            return None
        return self.everywhere(doing, lambda: self._read(self._complete(number)))

    def everywhere(self, doing: str, read: Callable[[], Any]) -> Any:
        """Return the result of a function, if it raises an error on no rank."""
        result = error = None
        try:
            result = read()
        except (MXNetError, OSError, ValueError) as raised:
            error = raised
        failed = [rank for rank, (wrong,) in enumerate(self._agree(doing, int(error is not None))) if wrong]
        if error is not None:
            raise error
        if failed:
            raise MXNetError(f"{doing}: rank {failed[0]} has failed to read the checkpoint, and says why")
        return result

    def _read(self, path: str) -> tuple[Any, dict[str, Any]]:
        from . import storage
        source = os.path.join(path, _INDEX)
        try:
            index = json.loads(files.read_bytes(source))
            sizes = index["sizes"]
            valid = index["format"] == _FORMAT and index["ranks"] == len(sizes) <= _MOST and all(type(n) is int and n > 0 for n in sizes)
            valid = valid and all(type(index[name]) is int and index[name] >= 0 for name in ("epoch", "batch"))
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            raise MXNetError(f"{source} is no index of a checkpoint: {type(error).__name__}: {error}") from None
        if not valid or not sizes:
            raise MXNetError(f"{source} is no index of a checkpoint of the format {_FORMAT!r}")
        return storage.Checkpoint([_file(path, rank, len(sizes)) for rank in range(len(sizes))], sizes), index


def _file(folder: str, rank: int, count: int) -> str:
    return os.path.join(folder, f"rank-{rank:05d}-of-{count:05d}.safetensors")


def _sync(folder: str) -> None:
    """Write a folder's entries to the disk."""
    if os.name == "posix":
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


class _Signals:
    """Reports of the ranks about one checkpoint, in the store where the job has met: the thread that writes makes no collective calls."""

    def __init__(self, group: Any, tag: str) -> None:
        self._group, self._tag = group, tag
        self._own: dict[Any, str] = {}
        self._store = group.store.clone() if group else None

    def send(self, name: Any, text: str) -> None:
        """Report a text, which is never empty in the store."""
        self._own[name] = text
        if self._store is not None:
            self._store.set(f"training/{self._tag}/{name}", "=" + text)

    def receive(self, name: Any) -> str:
        """Wait for a text.

        Raises
        ------
        MXNetError
            If a rank was lost meanwhile.
        """
        if name in self._own:
            return self._own[name]
        key, pause = f"training/{self._tag}/{name}", 0.01
        while not self._store.check([key]):
            monitor = self._group.monitor
            trouble = monitor.trouble()
            if trouble:
                raise MXNetError(f"rank {self._group.rank} waits in vain for the others' parts of a checkpoint ({trouble})")
            threading.Event().wait(pause)
            pause = min(2 * pause, 0.5)
        return self._store.get(key).decode()[1:]
