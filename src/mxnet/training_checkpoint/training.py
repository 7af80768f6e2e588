"""The content of a checkpoint: weights, the optimizer with its states and counters, random generators, and the position in the data."""
from __future__ import annotations

import abc
import json
import os
from collections.abc import Iterator
from typing import Any, NamedTuple

import torch

from .. import ndarray
from ..base import MXNetError
from ..io.position import position_text, restore_position
from ..ndarray import NDArray
from ..ops import dtypes
from ..optimizer import Optimizer, pickles
from ..remote import is_remote
from .entries import Entry, share_of
from .saves import Folder, PendingSave

#: All ranks have the same values; each rank has other elements; each rank has values of its own (moving averages).
SHARED, DIVIDED, OWN = "shared", "divided", "own"
_MOST_OPTIMIZER = 64 << 20  # bytes
_HEIGHT = 8  # nested lists in a state


class Weight(NamedTuple):
    """A weight: the shape of the whole, the pieces of this process (first element, array), and `SHARED`, `DIVIDED` or `OWN`.

    A piece of an `OWN` weight is the array of a context, and its first element that of a stack of all of them.
    """

    shape: tuple[int, ...]
    pieces: list[tuple[int, NDArray]]
    kind: str


class StatePart(NamedTuple):
    """An updater's state of some elements of a weight: its key there, the first element, and the shape of those elements.

    `divided` is True if other ranks or contexts have the states of other elements.
    """

    updater: Any
    key: Any
    begin: int
    shape: tuple[int, ...]
    ctx: Any
    divided: bool


class Resumed(NamedTuple):
    """The position of a resumed training. `exact` is False if the number of ranks has changed, so that generators and data were not restored."""

    epoch: int
    batch: int
    exact: bool


class Training(abc.ABC):
    """A training as checkpoints see it."""

    #: The `kvstore.group.Group` of the job's ranks, or None.
    group: Any = None

    @abc.abstractmethod
    def weights(self) -> dict[str, Weight]:
        """Return all weights by name."""

    @abc.abstractmethod
    def prepare(self, shapes: dict[str, tuple[int, ...]]) -> None:
        """Allocate the weights whose shapes are not known yet."""

    @abc.abstractmethod
    def state_parts(self, anew: bool = False) -> dict[str, list[StatePart]]:
        """Return the places of optimizer states by name of the weight; with `anew` those in which loaded states go."""

    @abc.abstractmethod
    def optimizer(self) -> Optimizer:
        """Return the optimizer."""

    @abc.abstractmethod
    def replaced(self, optimizer: Optimizer) -> None:
        """Take over the optimizer, and weights that were overwritten; the states are in the updaters already."""

    # -- saving ------------------------------------------------------------------------------------------------------------------

    def save(self, folder: Folder, data: Any, epoch: int, batch: int, epoch_over: bool) -> PendingSave:
        """Begin to write a checkpoint, see `Trainer.save_training`."""
        for name, number in (("epoch", epoch), ("batch", batch)):
            if not isinstance(number, int) or number < 0:
                raise MXNetError(f"save_training: {name}={number!r:.40} is not a number from 0 on")
        shared: dict[str, Entry] = {}
        own: dict[str, Entry] = {}
        for name, weight in self.weights().items():
            entry = _entry(weight)
            if weight.kind == OWN:
                own[f"own/{folder.rank}/{name}"] = entry
            else:
                (shared if weight.kind == SHARED else own)[f"weights/{name}"] = entry
        states = self._collect_states(shared, own)
        content = torch.frombuffer(bytearray(pickles.dumps(self.optimizer())), dtype=torch.uint8)
        shared["optimizer"] = Entry((len(content),), content.dtype, [(0, content)])
        numbers = {name: parts[0].key for name, parts in self.state_parts().items()}
        about = {"position": position_text(data, epoch_over), "states": json.dumps(states), "numbers": json.dumps(numbers)}
        return folder.save({**share_of(shared, folder.rank, folder.count), **own}, about, {"epoch": epoch, "batch": batch})

    def _collect_states(self, shared: dict[str, Entry], own: dict[str, Entry]) -> dict[str, Any]:
        """Add the arrays of states to the entries; return the structure of each state."""
        structures, weights = {}, self.weights()
        for name, parts in self.state_parts().items():
            weight = weights[name]
            size = torch.Size(weight.shape).numel()
            for part in parts:
                if part.key not in part.updater.states:
                    continue
                leaves: list[NDArray] = []
                structures[name] = _structure(part.updater.states[part.key], leaves, name)
                count = torch.Size(part.shape).numel()
                for i, leaf in enumerate(leaves):
                    key, tensor = f"states/{name}/{i}", leaf._raw().reshape(-1)
                    if leaf.size != count and count != size:
                        raise MXNetError(f"save_training: the state of {name!r} has an array of shape {leaf.shape}, which can't be divided as its "
                                         "weight is; use an optimizer with states of the shape of the weight")
                    entry = Entry(weight.shape if leaf.size == count else leaf.shape, tensor.dtype, [])
                    entry = (own if part.divided else shared).setdefault(key, entry)
                    entry.pieces.append((part.begin, tensor))
                if not part.divided:
                    break  # other contexts have the same
        return structures

    # -- loading -----------------------------------------------------------------------------------------------------------------

    def resume(self, folder: Folder, data: Any) -> Resumed | None:
        """Continue from the newest checkpoint, see `Trainer.resume_training`."""
        newest = folder.newest()
        if newest is None:
            return None
        checkpoint, index = newest
        exact = index["ranks"] == folder.count
        folder.everywhere("resume_training: weights", lambda: self._load(checkpoint, folder.rank if exact else 0, folder.path))
        if exact:
            about = checkpoint.about[folder.rank]
            folder.everywhere("resume_training: position",
                              lambda: restore_position(about.get("position", ""), folder.path, data))
        return Resumed(index["epoch"], index["batch"] if exact or data is None else 0, exact)

    def _load(self, checkpoint: Any, rank: int, source: str) -> None:
        own = f"own/{rank}/"
        self.prepare(_shapes(checkpoint, own))
        entries: dict[str, Entry] = {}
        copies: list[tuple[NDArray, torch.Tensor]] = []
        for name, weight in self.weights().items():
            pieces = []
            for begin, array in weight.pieces:
                tensor = array._writable()
                flat = tensor.view(-1) if tensor.is_contiguous() else tensor.new_empty(tensor.numel())
                if flat.data_ptr() != tensor.data_ptr():
                    copies.append((array, flat))
                pieces.append((begin, flat))
            key, shape = f"weights/{name}", weight.shape
            if weight.kind == OWN:
                key = own + name
                shape = checkpoint.shapes.get(key, shape)
                if shape != (len(pieces), *weight.shape):  # of another number of contexts: that of the first
                    shape, pieces = (*shape[:1], *weight.shape), [(0, flat) for _, flat in pieces]
            entries[key] = Entry(shape, pieces[0][1].dtype, pieces)
        optimizer = self._read_optimizer(checkpoint, source)
        states = self._made_states(checkpoint, entries, source)
        # Pieces of contexts with the same elements have the same first element: DCP reads one, the others are copied.
        doubles = _without_doubles(entries)
        checkpoint.load(entries)
        for target, source_tensor in doubles:
            target.copy_(source_tensor)
        for array, flat in copies:
            array._writable().copy_(flat.view(array.shape))
        self._set_states(checkpoint, optimizer, states, source)

    @staticmethod
    def _read_optimizer(checkpoint: Any, source: str) -> Any:
        shape = checkpoint.shapes.get("optimizer", ())
        if len(shape) != 1 or shape[0] > _MOST_OPTIMIZER:
            raise MXNetError(f"the checkpoint in {source} has no optimizer of at most {_MOST_OPTIMIZER} bytes")
        checkpoint.require("optimizer", 0, shape[0])
        content = torch.empty(shape, dtype=torch.uint8)
        checkpoint.load({"optimizer": Entry(shape, torch.uint8, [(0, content)])})
        optimizer = pickles.loads(content.numpy().tobytes(), f"the optimizer of {source}")
        if not isinstance(optimizer, Optimizer):
            raise MXNetError(f"the checkpoint in {source} has a {type(optimizer).__name__} in the place of an optimizer")
        return optimizer

    def _made_states(self, checkpoint: Any, entries: dict[str, Entry], source: str) -> list[tuple[StatePart, Any]]:
        """Allocate states, and add their arrays to the entries."""
        structures: dict[str, Any] = {}
        for about in reversed(checkpoint.about):
            structures.update(_json(about, "states", source))
        made = []
        weights = self.weights()
        for name, parts in self.state_parts(anew=True).items():
            if name not in structures:
                continue
            size = torch.Size(weights[name].shape).numel()
            for part in parts:
                count = torch.Size(part.shape).numel()
                if not count and size:
                    continue  # all of it is another rank's
                leaves = iter(range(1 << 20))

                def leaf(described: Any, part: StatePart = part, name: str = name, size: int = size, leaves: Iterator[int] = leaves) -> NDArray:
                    key = f"states/{name}/{next(leaves)}"
                    shape = checkpoint.shapes.get(key)
                    if shape is None:
                        raise MXNetError(f"the checkpoint in {source} lacks {key!r}")
                    divisible = shape == weights[name].shape
                    begin, own = (part.begin, part.shape) if divisible else (0, shape)
                    checkpoint.require(key, begin, torch.Size(own).numel())
                    array = ndarray.zeros(own, dtype=dtypes.TORCH_TO_NAME[checkpoint.dtype(key)], ctx=part.ctx)
                    entry = entries.setdefault(key, Entry(shape, checkpoint.dtype(key), []))
                    entry.pieces.append((begin, array._writable().view(-1)))
                    return array
                try:
                    made.append((part, _state(structures[name], leaf)))
                except (KeyError, TypeError, ValueError) as error:
                    raise MXNetError(f"the checkpoint in {source} has a damaged state of {name!r}: {error}") from None
        return made

    def _set_states(self, checkpoint: Any, optimizer: Any, states: list[tuple[StatePart, Any]], source: str) -> None:
        numbers = _json(checkpoint.about[0], "numbers", source)
        optimizer._carry_counts()
        counts = {}
        parts_of = self.state_parts(anew=True)
        for name, parts in parts_of.items():
            saved = numbers.get(name)
            if isinstance(saved, (int, str)) and saved in optimizer._carried_counts:
                counts.update((part.key, optimizer._carried_counts[saved]) for part in parts)
        optimizer._all_index_update_counts = {0: counts}
        optimizer._index_update_count = counts
        optimizer._carry_counts()
        for updater in {id(part.updater): part.updater for parts in parts_of.values() for part in parts}.values():
            updater.states = {}
            updater._loaded = updater._states_matched = True
            updater.optimizer, updater.aggregate_updates = optimizer, optimizer.aggregate_num > 0
        for part, state in states:
            part.updater.states[part.key] = _finished(state)
            part.updater.states_synced[part.key] = False  # compared with its weight at the next update
        self.replaced(optimizer)


def _shapes(checkpoint: Any, own: str) -> dict[str, tuple[int, ...]]:
    """Return the shapes of weights whose elements are all there."""
    shapes = {}
    for name, shape in checkpoint.shapes.items():
        if name.startswith(("weights/", own)):
            checkpoint.require(name, 0, torch.Size(shape).numel())
            shapes[name.removeprefix(own).removeprefix("weights/")] = shape[1:] if name.startswith(own) else shape
    return shapes


def _entry(weight: Weight) -> Entry:
    pieces = [(begin, array._raw().reshape(-1)) for begin, array in weight.pieces]
    shape = (len(pieces), *weight.shape) if weight.kind == OWN else weight.shape
    return Entry(shape, pieces[0][1].dtype, pieces[:1] if weight.kind == SHARED else pieces)


def _without_doubles(entries: dict[str, Entry]) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Leave each piece once in the entries; return the others, with the tensors to copy."""
    doubles = []
    for entry in entries.values():
        first: dict[int, torch.Tensor] = {}
        for begin, tensor in entry.pieces:
            if begin in first:
                doubles.append((tensor, first[begin]))
            first.setdefault(begin, tensor)
        entry.pieces = list(first.items())
    return doubles


def _json(about: dict[str, str], name: str, source: str) -> dict[str, Any]:
    try:
        content = json.loads(about[name])
    except (ValueError, KeyError, RecursionError) as error:
        raise MXNetError(f"the checkpoint in {source} is damaged: no {name}: {error}") from None
    if not isinstance(content, dict):
        raise MXNetError(f"the checkpoint in {source} is damaged: its {name} are no object")
    return content


def _structure(state: Any, leaves: list[NDArray], name: str) -> Any:
    """Return a state as JSON; its arrays are appended to `leaves`."""
    if isinstance(state, NDArray):
        leaves.append(state if state.stype == "default" else state.tostype("default"))
        return {"stype": state.stype, "np": type(state) is not NDArray and state.stype == "default"}
    if isinstance(state, (list, tuple)):
        return {"tuple" if isinstance(state, tuple) else "list": [_structure(part, leaves, name) for part in state]}
    if state is None or isinstance(state, (bool, int, float)):
        return {"value": state}
    raise MXNetError(f"save_training: the state of {name!r} has a {type(state).__name__}; arrays, numbers, lists and tuples can be saved")


def _state(structure: Any, leaf: Any, height: int = 0) -> Any:
    """Return a state of `_structure`, with arrays of `leaf`."""
    if height > _HEIGHT:
        raise ValueError(f"its lists are nested more than {_HEIGHT} deep")
    if "value" in structure:
        value = structure["value"]
        if value is not None and type(value) not in (bool, int, float):
            raise ValueError(f"{value!r:.40} is no number")
        return value
    if "stype" in structure:
        if structure["stype"] not in ("default", "row_sparse", "csr"):
            raise ValueError(f"{structure['stype']!r:.40} is no storage type")
        return _Leaf(leaf(structure), structure["stype"], structure["np"] is True)
    parts = structure["tuple"] if "tuple" in structure else structure["list"]
    made = [_state(part, leaf, height + 1) for part in parts]
    return tuple(made) if "tuple" in structure else made


class _Leaf:
    """An array of a state that is read as a dense one."""

    def __init__(self, array: NDArray, stype: str, as_np: bool) -> None:
        self.array, self.stype, self.as_np = array, stype, as_np

    def finished(self) -> Any:
        """Return the array of the state."""
        if self.stype != "default":
            return self.array.tostype(self.stype)
        return self.array.as_np_ndarray() if self.as_np else self.array


def _finished(state: Any) -> Any:
    if isinstance(state, _Leaf):
        return state.finished()
    return type(state)(map(_finished, state)) if isinstance(state, (list, tuple)) else state


def folder_of(owner: Any, path: str | os.PathLike[str], group: Any) -> Folder:
    """Return the `Folder` at a path, which `owner` keeps with the memory of its copies."""
    folders = owner.__dict__.setdefault("_training_folders", {})
    key = os.path.realpath(path)
    if is_remote(path):
        raise MXNetError(f"checkpoints need a folder of the file system, which all ranks share; received {os.fspath(path)!r}")
    if key not in folders:
        for other in folders.values():
            other.settle()
        folders.clear()  # the memory of one is enough
        folders[key] = Folder(key, group)
    return folders[key]
