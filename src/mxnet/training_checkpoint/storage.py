"""Planners and storage of `torch.distributed.checkpoint` (DCP) for flat pieces of arrays.

DCP's own file system storage pickles its metadata, and its planner the values that are no tensors; loading unpickles both without restriction. Here
metadata are JSON in the headers of `shard_file`, and all values are tensors. DCP's collectives pickle plans between ranks; each rank plans alone
here (``no_dist``), since the division of arrays follows from the number of ranks. What is DCP's: the resharding of what was saved to what is needed,
and the protocol of planning, writing and reading.
"""
from __future__ import annotations

import json
import os
import warnings
from typing import Any

import torch
from torch.distributed import checkpoint as dcp
from torch.distributed.checkpoint.api import CheckpointException
from torch.distributed.checkpoint.metadata import ChunkStorageMetadata, Metadata, MetadataIndex, TensorProperties, TensorStorageMetadata
from torch.distributed.checkpoint.planner import (
    LoadItemType,
    LoadPlan,
    LoadPlanner,
    ReadItem,
    SavePlan,
    SavePlanner,
    TensorWriteData,
    WriteItem,
    WriteItemType,
)
from torch.distributed.checkpoint.planner_helpers import create_read_items_for_chunk_list
from torch.distributed.checkpoint.storage import StorageReader, StorageWriter, WriteResult

from ..base import MXNetError
from . import shard_file
from .entries import Entry

_ENTRIES = "entries"  # the key of the JSON with the pieces, in a file's metadata


def accept_single_process() -> None:
    """Ignore DCP's warning that it plans without collectives. Called before threads begin: filters belong to the process."""
    warnings.filterwarnings("ignore", "torch.distributed is disabled, unavailable or uninitialized", UserWarning)


def _done(value: Any) -> torch.futures.Future:
    future: torch.futures.Future = torch.futures.Future()
    future.set_result(value)
    return future


def _chunk(begin: int, size: int) -> ChunkStorageMetadata:
    return ChunkStorageMetadata(torch.Size([begin]), torch.Size([size]))


class _PieceSaver(SavePlanner):
    """Plans to write this rank's pieces of each `Entry`."""

    def set_up_planner(self, state_dict: Any, storage_meta: Any = None, is_coordinator: bool = False) -> None:
        self.entries: dict[str, Entry] = state_dict

    def create_local_plan(self) -> SavePlan:
        items = []
        for name, entry in self.entries.items():
            properties, size = TensorProperties(dtype=entry.dtype), torch.Size([entry.size])
            items += [WriteItem(MetadataIndex(name, [begin], i), WriteItemType.SHARD,
                                tensor_data=TensorWriteData(_chunk(begin, len(tensor)), properties, size))
                      for i, (begin, tensor) in enumerate(entry.pieces) if len(tensor)]
        return SavePlan(items)

    def create_global_plan(self, all_plans: list[SavePlan]) -> tuple[list[SavePlan], Metadata]:
        return all_plans, Metadata({})  # the metadata are in the files' headers

    def finish_plan(self, new_plan: SavePlan) -> SavePlan:
        return new_plan

    def resolve_data(self, write_item: WriteItem) -> torch.Tensor:
        return self.entries[write_item.index.fqn].pieces[write_item.index.index or 0][1]


class _ShardWriter(StorageWriter):
    """Writes a plan as one `shard_file`."""

    def __init__(self, path: str, shapes: dict[str, tuple[int, ...]], about: dict[str, str]) -> None:
        self._path, self._shapes, self._about, self.size = path, shapes, about, 0

    def reset(self, checkpoint_id: Any = None) -> None:
        pass

    def set_up_storage_writer(self, is_coordinator: bool, *args: Any, **kwargs: Any) -> None:
        pass

    def prepare_local_plan(self, plan: SavePlan) -> SavePlan:
        return plan

    def prepare_global_plan(self, plans: list[SavePlan]) -> list[SavePlan]:
        return plans

    def write_data(self, plan: SavePlan, planner: SavePlanner) -> Any:
        tensors, entries, results = [], {}, []
        for item in plan.items:
            name, begin, shape = item.index.fqn, item.index.offset[0], self._shapes[item.index.fqn]  # type: ignore[index]  # set by the planner
            tensor = planner.resolve_data(item)
            complete = len(tensor) == torch.Size(shape).numel()
            key = name if complete else f"{name}@{begin}"
            tensors.append((key, shape if complete else (len(tensor),), tensor))
            entries[key] = {"name": name, "begin": begin, "shape": list(shape)}
            results.append(WriteResult(item.index, tensor.nbytes, None))
        self.size = shard_file.write(self._path, tensors, {**self._about, _ENTRIES: json.dumps(entries)})
        return _done(results)

    def finish(self, metadata: Metadata, results: Any) -> None:
        pass  # `saves` commits the files of all ranks together

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id: Any) -> bool:
        return True


def save(path: str, entries: dict[str, Entry], about: dict[str, str]) -> int:
    """Write this rank's pieces to a file, with texts `about` the training in its header; return its size."""
    writer = _ShardWriter(path, {name: entry.shape for name, entry in entries.items()}, about)
    try:
        dcp.save(entries, storage_writer=writer, planner=_PieceSaver(), no_dist=True)
    except CheckpointException as error:
        raise _cause(error) from error
    return writer.size


def _cause(error: CheckpointException) -> BaseException:
    """Return the error of this rank."""
    return next(iter(error.failures.values()))[0]


class Checkpoint(StorageReader):
    """The files of a checkpoint, whose headers were read and checked.

    Parameters
    ----------
    paths : list of str
        One for each rank that wrote it.
    sizes : list of int
        Their sizes in bytes.

    Attributes
    ----------
    about : list of dict
        The texts of each rank.
    shapes : dict of str to tuple of int
        The shape of each array.

    Raises
    ------
    MXNetError
        If a file is missing or damaged, or files contradict one another.
    """

    def __init__(self, paths: list[str], sizes: list[int]) -> None:
        self.about, self.shapes = [], {}
        self._arrays: dict[str, TensorStorageMetadata] = {}
        self._places: dict[Any, shard_file.Place] = {}
        for path, size in zip(paths, sizes):
            about, places = shard_file.read_header(path, size)
            try:
                self._add(json.loads(about.pop(_ENTRIES)), places)
            except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError) as error:
                raise MXNetError(f"{path} is damaged: {type(error).__name__}: {error}") from None
            self.about.append(about)

    def _add(self, entries: dict[str, Any], places: dict[str, shard_file.Place]) -> None:
        for key, entry in entries.items():
            place, name, begin, shape = places[key], entry["name"], entry["begin"], tuple(entry["shape"])
            if not (isinstance(name, str) and all(type(n) is int and 0 <= n < 1 << 62 for n in (begin, *shape))):
                raise ValueError(f"{entry!r:.80} is no piece of an array")
            count = 1
            for length in shape:
                count *= length
            if begin + place.size > count:
                raise ValueError(f"{key!r:.80} exceeds its array of shape {shape}")
            array = self._arrays.setdefault(name, TensorStorageMetadata(TensorProperties(dtype=place.dtype), torch.Size([count]), []))
            if self.shapes.setdefault(name, shape) != shape or array.properties.dtype != place.dtype:
                raise ValueError(f"{name!r:.80} has several shapes or types")
            array.chunks.append(_chunk(begin, place.size))
            self._places[MetadataIndex(name, [begin])] = place

    def dtype(self, name: str) -> torch.dtype:
        """Return the type of an array."""
        return self._arrays[name].properties.dtype

    def require(self, name: str, begin: int, size: int) -> None:
        """Raise an error if elements of an array are missing, or are there twice: nothing is allocated or overwritten for such a checkpoint."""
        array = self._arrays.get(name)
        items = create_read_items_for_chunk_list(name, array, [_chunk(begin, size)]) if array else []
        if sum(item.lengths[0] for item in items) != size:
            raise MXNetError(f"the checkpoint does not have each of the elements {begin} to {begin + size} of {name!r} once")

    def load(self, entries: dict[str, Entry]) -> None:
        """Read the pieces that are needed; all are checked before the first is read.

        Raises
        ------
        MXNetError
            If an array is missing, or has another shape or type.
        """
        for name, entry in entries.items():
            if entry.size and name not in self.shapes:
                raise MXNetError(f"the checkpoint lacks {name!r}")
            if entry.size and (self.shapes[name] != entry.shape or self.dtype(name) != entry.dtype):
                raise MXNetError(f"{name!r}: an array of shape {entry.shape} and {entry.dtype} expected, the checkpoint has {self.shapes[name]} and "
                                 f"{self.dtype(name)}")
            for begin, tensor in entry.pieces:
                self.require(name, begin, len(tensor))
        accept_single_process()
        try:
            dcp.load(dict(entries), storage_reader=self, planner=_PieceLoader(), no_dist=True)
        except CheckpointException as error:
            raise _cause(error) from error

    # -- the protocol of DCP -----------------------------------------------------------------------------------------------------

    def reset(self, checkpoint_id: Any = None) -> None:
        """Do nothing: a reader is for one checkpoint."""

    def read_metadata(self, *args: Any, **kwargs: Any) -> Metadata:
        """Return the arrays of the checkpoint."""
        return Metadata(dict(self._arrays), storage_data=self._places)

    def set_up_storage_reader(self, metadata: Metadata, is_coordinator: bool, *args: Any, **kwargs: Any) -> None:
        """Do nothing."""

    def prepare_local_plan(self, plan: LoadPlan) -> LoadPlan:
        """Return the plan."""
        return plan

    def prepare_global_plan(self, plans: list[LoadPlan]) -> list[LoadPlan]:
        """Return the plans."""
        return plans

    def read_data(self, plan: LoadPlan, planner: LoadPlanner) -> Any:
        """Read each item of the plan, one file after the other."""
        by_file: dict[str, list[ReadItem]] = {}
        for item in plan.items:
            by_file.setdefault(self._places[item.storage_index].path, []).append(item)
        for path, items in by_file.items():
            with open(path, "rb") as file:
                for item in items:
                    target = planner.resolve_tensor(item)
                    shard_file.read_into(file, self._places[item.storage_index], item.storage_offsets[0], target)
                    planner.commit_tensor(item, target)
        return _done(None)

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id: str | os.PathLike[str]) -> bool:
        """Return True."""
        return True


class _PieceLoader(LoadPlanner):
    """Plans to read this rank's pieces of each `Entry`."""

    def set_up_planner(self, state_dict: Any, metadata: Metadata | None = None, is_coordinator: bool = False) -> None:
        self.entries: dict[str, Entry] = state_dict
        self.arrays: Any = metadata.state_dict_metadata if metadata else {}

    def create_local_plan(self) -> LoadPlan:
        items: list[ReadItem] = []
        self.targets = {}
        for name, entry in self.entries.items():
            for begin, tensor in entry.pieces:
                if len(tensor):
                    self.targets[name, begin] = tensor
                    items += create_read_items_for_chunk_list(name, self.arrays[name], [_chunk(begin, len(tensor))])
        return LoadPlan(items)

    def create_global_plan(self, global_plan: list[LoadPlan]) -> list[LoadPlan]:
        return global_plan

    def finish_plan(self, central_plan: LoadPlan) -> LoadPlan:
        return central_plan

    def load_bytes(self, read_item: ReadItem, value: Any) -> None:
        raise MXNetError(f"{read_item.type} of {read_item.dest_index.fqn!r}: checkpoints hold {LoadItemType.TENSOR} only")

    def resolve_tensor(self, read_item: ReadItem) -> torch.Tensor:
        target = self.targets[read_item.dest_index.fqn, read_item.dest_index.offset[0]]  # type: ignore[index]  # each piece has an offset
        return target.narrow(0, read_item.dest_offsets[0], read_item.lengths[0])

    def commit_tensor(self, read_item: ReadItem, tensor: torch.Tensor) -> None:
        pass
