"""Checkpoints of networks with split layers in shards: each rank writes its rows, and a job of any number of ranks reads those that it needs."""
from __future__ import annotations

import json
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch

from .. import files, ndarray
from ..base import MXNetError
from ..context import cpu
from ..ndarray import NDArray
from ..ops import random_state
from ..optimizer import pickles
from .sharded_parameter import ShardedParameter, change_state, joined_states, ranks, split_states
from .utils import UsageError

if TYPE_CHECKING:
    from .block import Block
    from .trainer import Trainer

__all__ = ["load_shards", "save_shards"]

_INDEX = "shards.json"  # names the checkpoint that is complete
_MOST = 1 << 16  # ranks


def save_shards(folder: str | os.PathLike[str], net: Block, trainer: Trainer | None = None) -> None:
    """Write the parameters, and the states of a trainer, each rank those rows of split ones that it has; all ranks call it.

    The folder is one that all ranks share. An earlier checkpoint in it stays valid until this one is complete, and is removed then.

    Parameters
    ----------
    folder : str
        Made if it is not there.
    net : Block
    trainer : Trainer, optional
        Which updates the parameters itself (``update_on_kvstore=False``, the default with split layers).

    Raises
    ------
    UsageError
        If the kvstore updates.
    FileError
        If a file can't be written.

    Example
    -------
    >>> import mxnet as mx, tempfile
    >>> folder = tempfile.mkdtemp()
    >>> net, other = mx.gluon.nn.ShardedDense(4, in_units=2), mx.gluon.nn.ShardedDense(4, in_units=2)
    >>> net.initialize(), other.initialize()
    (None, None)
    >>> mx.gluon.save_shards(folder, net)
    >>> mx.gluon.load_shards(folder, other)
    >>> bool((net.weight.data() == other.weight.data()).asnumpy().all())
    True
    """
    found, doing = ranks(), "save_shards"
    low, high = random_state.bank().words(2).tolist()
    tag = f"{found.from_first((high << 31 ^ low) % (1 << 62), doing):016x}"
    with files.reported(folder, "write"):
        os.makedirs(folder, exist_ok=True)
    arrays = {}
    for name, parameter in net._collect_params_with_prefix().items():
        if isinstance(parameter, ShardedParameter):
            arrays[name] = parameter.local([array._raw() for array in parameter.list_data()])
        elif found.rank == 0:
            arrays[name] = parameter._reduce()
    ndarray.save(_file(folder, tag, found.rank, found.count, "params"), arrays)
    if trainer is not None:
        trainer._prepare()
        trainer._refuse_on_kvstore(doing)
        states = joined_states(trainer._updaters, trainer._params, ShardedParameter.local)
        if found.rank:
            states = {i: state for i, state in states.items() if trainer._params[i].sharded}
        files.write_bytes(_file(folder, tag, found.rank, found.count, "states"), pickles.dumps((states, trainer._optimizer)))
    found.agree(f"{doing}: files", 0)  # all are written
    if found.rank == 0:
        index = {"checkpoint": tag, "ranks": found.count, "trainer": trainer is not None}
        files.write_bytes(os.path.join(folder, _INDEX), json.dumps(index).encode())
        _remove_others(folder, tag)
    found.agree(f"{doing}: index", 0)


def _file(folder: Any, tag: str, rank: int, count: int, kind: str) -> str:
    return os.path.join(folder, f"shard-{tag}-{rank:05d}-of-{count:05d}.{kind}")


def _remove_others(folder: Any, tag: str) -> None:
    for name in os.listdir(folder):
        if name.startswith("shard-") and not name.startswith(f"shard-{tag}-"):
            os.unlink(os.path.join(folder, name))


def load_shards(folder: str | os.PathLike[str], net: Block, trainer: Trainer | None = None) -> None:
    """Read a checkpoint of `save_shards`, of any number of ranks; all ranks call it, and read only files with rows of theirs, one at a time.

    Parameters
    ----------
    folder : str
    net : Block
        Initialized, with the structure of the one that was saved.
    trainer : Trainer, optional
        Its optimizer becomes the saved one.

    Raises
    ------
    FileError
        If there is no checkpoint in the folder, or a file of it is missing.
    UsageError
        If names or shapes do not fit, or the checkpoint has no states for the trainer.
    RuntimeError, DeferredInitializationError
        If the network is not initialized, or a shape is not known yet.
    MXNetError
        If a file is damaged.

    Example
    -------
    >>> import mxnet as mx, tempfile
    >>> net, trained = mx.gluon.nn.ShardedDense(4, in_units=2), mx.gluon.nn.ShardedDense(4, in_units=2)
    >>> net.initialize(), trained.initialize(mx.init.One())
    (None, None)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     mx.gluon.save_shards(folder, trained)
    ...     mx.gluon.load_shards(folder, net)
    >>> float(net.weight.data().sum().asscalar())
    8.0
    """
    index = _index(folder)
    parameters = net._collect_params_with_prefix()
    split = {name: parameter for name, parameter in parameters.items() if isinstance(parameter, ShardedParameter)}
    for split_parameter in split.values():
        split_parameter.list_data()  # which says so if there are no values yet
    pieces = _Pieces(folder, index, "params")
    first = pieces.read(0)
    for name, parameter in parameters.items():
        if name not in first:
            raise UsageError(f"load_shards: the checkpoint in {folder} lacks Parameter '{name}'")
        if name not in split:
            parameter._load_init(first[name], None)
    del first
    rows = pieces.rows({name: (parameter.shape, parameter.rows()) for name, parameter in split.items()})
    for name, split_parameter in split.items():
        split_parameter.set_local(rows[name])
    if trainer is None:
        return
    if not index["trainer"]:
        raise UsageError(f"load_shards: the checkpoint in {folder} has no states for the trainer; it was saved without one")
    trainer._prepare()
    trainer._refuse_on_kvstore("load_shards")
    _load_states(_Pieces(folder, index, "states"), trainer)


def _index(folder: Any) -> dict[str, Any]:
    """Return the content of the index, checked."""
    path = os.path.join(folder, _INDEX)
    try:
        index = json.loads(files.read_bytes(path))
        tag, count = index["checkpoint"], index["ranks"]
        valid = type(count) is int and 0 < count <= _MOST and isinstance(tag, str) and len(tag) == 16 and tag.isalnum()
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise MXNetError(f"{path} is no index of a checkpoint: {error}") from error
    if not valid or type(index.get("trainer")) is not bool:
        raise MXNetError(f"{path} is no index of a checkpoint: it needs a name of 16 characters, and from 1 to {_MOST} ranks")
    return index


class _Pieces:
    """The files of a checkpoint, one for each rank of the job that wrote it."""

    def __init__(self, folder: Any, index: dict[str, Any], kind: str) -> None:
        self._folder, self._tag, self.count, self._kind = folder, index["checkpoint"], index["ranks"], kind

    def read(self, rank: int) -> Any:
        """Return the content of a rank's file."""
        path = _file(self._folder, self._tag, rank, self.count, self._kind)
        if self._kind == "states":
            found = pickles.loads(files.read_bytes(path), path)
            if not (isinstance(found, tuple) and len(found) == 2 and isinstance(found[0], dict)):
                raise MXNetError(f"{path} does not hold optimizer states")
            return found
        found = ndarray.load(path)
        if not isinstance(found, dict):
            raise MXNetError(f"{path} does not hold parameters by name")
        return found

    def overlapping(self, size: int, begin: int, end: int) -> list[tuple[int, slice]]:
        """Return the ranks that wrote rows from `begin` to `end` of so many, and which of their rows these are."""
        found = []
        for rank in range(self.count):
            first, last = size * rank // self.count, size * (rank + 1) // self.count
            if first < end and begin < last:
                found.append((rank, slice(max(begin, first) - first, min(end, last) - first)))
        return found

    def rows(self, wanted: dict[str, tuple[Any, tuple[int, int]]]) -> dict[str, NDArray]:
        """Return rows of arrays, given by name with the whole shape and the limits."""
        parts: dict[str, list[torch.Tensor]] = {name: [] for name in wanted}
        needed: dict[int, list[tuple[str, slice]]] = {}
        for name, (shape, (begin, end)) in wanted.items():
            for rank, rows in self.overlapping(shape[0], begin, end):
                needed.setdefault(rank, []).append((name, rows))
        for rank in sorted(needed):
            loaded = self.read(rank)
            for name, rows in needed[rank]:
                size, *rest = wanted[name][0]
                parts[name].append(_checked(loaded.get(name), self.shape(rank, size, rest), name)._raw()[rows].clone())
        return {name: NDArray._new(torch.cat(found), cpu()) for name, found in parts.items()}

    def shape(self, rank: int, size: int, rest: list[int]) -> tuple[int, ...]:
        """Return the shape of a rank's part of an array of so many rows."""
        return size * (rank + 1) // self.count - size * rank // self.count, *rest


def _checked(array: Any, shape: tuple[int, ...], name: str) -> NDArray:
    if not isinstance(array, NDArray) or array.stype != "default" or array.shape != shape:
        raise UsageError(f"load_shards: rows of shape {shape} expected for '{name}', the checkpoint has {getattr(array, 'shape', None)}; build the "
                         "network that was saved")
    return array


def _load_states(pieces: _Pieces, trainer: Trainer) -> None:
    states, optimizer = pieces.read(0)
    collected: dict[int, list[tuple[Any, Any]]] = {}
    wanted: dict[int, list[tuple[int, slice]]] = {}
    for i, parameter in enumerate(trainer._params):
        if isinstance(parameter, ShardedParameter):
            for rank, rows in pieces.overlapping(parameter.shape[0], *parameter.rows()):
                wanted.setdefault(rank, []).append((i, rows))
    for rank in sorted(wanted):
        found = pieces.read(rank)[0]
        for i, rows in wanted[rank]:
            size, *rest = trainer._params[i].shape
            if i in found:
                collected.setdefault(i, []).append((found[i], _cut(pieces.shape(rank, size, rest), rows)))
    for i, parts in collected.items():
        states[i] = change_state(_joined, *[change_state(cut, state) for state, cut in parts])
    for updater in trainer._updaters:
        updater.set_states(pickles.dumps((states, optimizer)))
        updater.optimizer = trainer._updaters[0].optimizer
    split_states(trainer._updaters, trainer._params, local=True)
    trainer._optimizer = trainer._updaters[0].optimizer
    trainer._optimizer.param_dict = dict(enumerate(trainer._params))


def _cut(shape: tuple[int, ...], rows: slice) -> Callable[[NDArray], NDArray]:
    """Return a function that takes rows of arrays of a shape, and leaves others as they are."""
    return lambda array: array[rows.start:rows.stop].copy() if array.shape == shape else array


def _joined(first: NDArray, *others: NDArray) -> NDArray:
    return NDArray._new(torch.cat([array._raw() for array in (first, *others)]), first.ctx) if others and first.shape else first
