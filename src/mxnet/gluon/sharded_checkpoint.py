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
from .sharded_parameter import ShardedParameter, change_state, has_rows_of, joined_states, ranks, split_states
from .utils import UsageError, _brief_print_list

if TYPE_CHECKING:
    from .block import Block
    from .trainer import Trainer

__all__ = ["load_shards", "save_shards"]

_INDEX = "shards.json"  # names the checkpoint that is complete
_MISSING = object()  # a state that a file does not have
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
    divided: dict[str, Any] = {"params": {}, "states": []}  # of which each rank writes its rows; rank 0 writes all others
    for name, parameter in net._collect_params_with_prefix().items():
        if isinstance(parameter, ShardedParameter):
            arrays[name] = parameter.local([array._raw() for array in parameter.list_data()])
            divided["params"][name] = parameter.shape[0]
        elif found.rank == 0:
            arrays[name] = parameter._reduce()
    ndarray.save(_file(folder, tag, found.rank, found.count, "params"), arrays)
    if trainer is not None:
        trainer._prepare()
        trainer._refuse_on_kvstore(doing)
        states = joined_states(trainer._updaters, trainer._params, ShardedParameter.local)
        divided["states"] = [i for i in states if trainer._params[i].sharded]
        if found.rank:
            states = {i: states[i] for i in divided["states"]}
        files.write_bytes(_file(folder, tag, found.rank, found.count, "states"), pickles.dumps((states, trainer._optimizer)))
    found.agree(f"{doing}: files", 0)  # all are written
    if found.rank == 0:
        index = {"checkpoint": tag, "ranks": found.count, "trainer": trainer is not None, "divided": divided}
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
    """Read a checkpoint of `save_shards`, of any number of ranks; all ranks call it. They read rank 0's files and those with their rows, one by one.

    A weight may be divided in the checkpoint and not here, or the other way round: `shard='full'` divides those with a row for each rank.

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
    _require_names(folder, first, parameters)
    wanted = {}
    for name, parameter in parameters.items():
        shape = pieces.shape_of(name, first[name], parameter)
        if name in split:
            _require_shape(name, parameter.shape, shape)
            wanted[name] = shape, split[name].rows()
        elif name in pieces.divided:
            wanted[name] = shape, (0, shape[0])
    for name, parameter in parameters.items():
        if name not in wanted:
            parameter._load_init(first[name], None)
    del first
    rows = pieces.rows(wanted)
    for name, array in rows.items():
        if name in split:
            split[name].set_local(array)
        else:
            parameters[name]._load_init(array, None)
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
    divided = index.get("divided")
    if divided is not None:
        try:
            valid = (all(type(number) is int and number > 0 for number in divided["params"].values())
                     and all(type(number) is int for number in divided["states"]))
        except (AttributeError, KeyError, TypeError):
            valid = False
        if not valid:
            raise MXNetError(f"{path} is no index of a checkpoint: it does not say which weights and states are divided")
    return index


def _require_names(folder: Any, first: dict[str, Any], parameters: dict[str, Any]) -> None:
    """Refuse a checkpoint of another network; the file of rank 0 has all names."""
    for name in parameters:
        if name not in first:
            raise UsageError(f"load_shards: the checkpoint in {folder} lacks Parameter '{name}'")
    for name in first:
        if name not in parameters:
            raise UsageError(f"load_shards: the checkpoint in {folder} has '{name}', the network has no such Parameter, only "
                             f"{_brief_print_list(parameters)}")


class _Pieces:
    """The files of a checkpoint, one for each rank of the job that wrote it.

    Attributes
    ----------
    divided : dict
        The names of parameters, or numbers of states, of which each file has some rows; the file of rank 0 has all of others. The values are
        numbers of rows, and None where the index does not have them.
    """

    def __init__(self, folder: Any, index: dict[str, Any], kind: str) -> None:
        self._folder, self._tag, self.count, self._kind = folder, index["checkpoint"], index["ranks"], kind
        self.divided: dict[Any, int | None] = {}
        if self.count > 1 and index.get("divided") is not None:
            divided = index["divided"][kind]
            self.divided = dict(divided) if kind == "params" else dict.fromkeys(divided)
        elif self.count > 1:  # an index of an earlier version: all but rank 0 have written divided ones only
            second = self.read(1)
            self.divided = dict.fromkeys(second if kind == "params" else second[0])

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

    def shape_of(self, name: str, first: Any, parameter: Any) -> tuple[int, ...]:
        """Return the shape of a parameter as it was saved, of which the file of rank 0 has `first`."""
        shape = getattr(first, "shape", ())
        if name not in self.divided:
            return shape
        rows = self.divided[name]
        return ((parameter.shape or (0,))[0] if rows is None else rows), *shape[1:]

    def overlapping(self, name: Any, size: int, begin: int, end: int) -> list[tuple[int, slice, int]]:
        """Return where rows from `begin` to `end` of so many are: ranks, which of their rows these are, and how many rows they wrote."""
        if name not in self.divided:
            return [(0, slice(begin, end), size)]
        places = []
        for rank in range(self.count):
            first, last = size * rank // self.count, size * (rank + 1) // self.count
            if first < end and begin < last:
                places.append((rank, slice(max(begin, first) - first, min(end, last) - first), last - first))
        return places

    def rows(self, wanted: dict[str, tuple[Any, tuple[int, int]]]) -> dict[str, NDArray]:
        """Return rows of arrays, given by name with the whole shape and the limits."""
        parts: dict[str, list[torch.Tensor]] = {name: [] for name in wanted}
        needed: dict[int, list[tuple[str, slice, int]]] = {}
        for name, (shape, (begin, end)) in wanted.items():
            for rank, rows, count in self.overlapping(name, shape[0], begin, end):
                needed.setdefault(rank, []).append((name, rows, count))
        for rank in sorted(needed):
            loaded = self.read(rank)
            for name, rows, count in needed[rank]:
                array = loaded.get(name)
                _require_shape(name, (count, *wanted[name][0][1:]), array.shape if isinstance(array, NDArray) and array.stype == "default" else None)
                parts[name].append(array._raw()[rows].clone())
        for name, tensors in parts.items():
            if not tensors:
                _require_shape(name, tuple(wanted[name][0]), None)
        return {name: NDArray._new(torch.cat(tensors), cpu()) for name, tensors in parts.items()}


def _require_shape(name: str, expected: tuple[int, ...], shape: tuple[int, ...] | None) -> None:
    if shape != expected:
        raise UsageError(f"load_shards: rows of shape {expected} expected for '{name}', the checkpoint has {shape}; build the network that was saved")


def _load_states(pieces: _Pieces, trainer: Trainer) -> None:
    states, optimizer = pieces.read(0)
    trainer._require_fitting(optimizer)
    for i in pieces.divided:
        states.pop(i, None)  # only some rows, which are read again below
    collected: dict[int, list[Any]] = {}
    wanted: dict[int, list[tuple[int, Any]]] = {}
    cut = _Cut()
    for i, parameter in enumerate(trainer._params):
        if parameter.sharded or i in pieces.divided:
            parameter.list_data()  # which says so if the shape is not known yet
            size, *rest = parameter.shape
            limits = parameter.rows() if isinstance(parameter, ShardedParameter) else (0, size)
            for rank, rows, count in pieces.overlapping(i, size, *limits):
                wanted.setdefault(rank, []).append((i, (rows, (count, *rest))))
    for rank in sorted(wanted):
        loaded = pieces.read(rank)[0]
        for i, place in wanted[rank]:  # slices are copied, so that one file at a time is in memory
            collected.setdefault(i, []).append(change_state(cut.rows(*place), loaded[i]) if i in loaded else _MISSING)
    for i, parts in collected.items():
        if all(part is _MISSING for part in parts):
            continue
        if any(part is _MISSING for part in parts):
            raise MXNetError(f"load_shards: some files of the checkpoint lack the state of Parameter '{trainer._params[i].name}': it is damaged")
        states[i] = change_state(cut.joined, *parts)
    for updater in trainer._updaters:
        updater.set_states(pickles.dumps((states, optimizer)))
        updater.optimizer = trainer._updaters[0].optimizer
    split_states(trainer._updaters, trainer._params, local=True)
    trainer._optimizer = trainer._updaters[0].optimizer
    trainer._optimizer.param_dict = dict(enumerate(trainer._params))


class _Cut:
    """Rows of optimizer states, and what tells them from states without rows, such as counters."""

    def __init__(self) -> None:
        self._cut: set[int] = set()  # identities of arrays that `collected` keeps

    def rows(self, rows: slice, shape: tuple[int, ...]) -> Callable[[NDArray], NDArray]:
        """Return a function that copies rows of an array if it has some for a weight of this shape, and returns others."""
        def cut(array: NDArray) -> NDArray:
            if not has_rows_of(array, shape):
                return array
            copy = type(array)._new(array._raw()[rows].clone(), array.ctx)
            self._cut.add(id(copy))
            return copy
        return cut

    def joined(self, *arrays: NDArray) -> NDArray:
        """Return the arrays one after the other; of arrays without rows the first."""
        cut = [id(array) in self._cut for array in arrays]
        if not any(cut):
            return arrays[0]
        if not all(cut) or len({array.shape[1:] for array in arrays}) > 1:
            raise MXNetError("load_shards: the files of the checkpoint have states of different shapes: it is damaged")
        return type(arrays[0])._new(torch.cat([array._raw() for array in arrays]), arrays[0].ctx)
