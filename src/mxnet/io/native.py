"""The iterators that MXNet implements in C++: their common front, and how they are declared.

Such an iterator is a function with keyword-only, annotated parameters (the annotations are those of operators, `ops.schema`) that
returns a source of batches; `native_iterator` turns it into what users call.
"""
import difflib
import functools
import inspect
import itertools
import logging
import os
import warnings
from collections.abc import Callable, Iterator
from typing import Any, Literal, Optional

import numpy as np
import torch

from ..base import MXNetError
from ..context import cpu
from ..files import current, is_remote, open_stream, reported
from ..ndarray import NDArray
from ..ops.schema import Attribute
from ..suggestions import shortened
from .background import Background
from .base import DataBatch, DataDesc, DataIter

__all__ = ["MXDataIter"]
_log = logging.getLogger(__name__)  # never the root logger, whose functions make `logging.basicConfig` futile

Dtype = Optional[Literal["float32", "float64", "float16", "bfloat16", "int64", "int32", "uint8", "int8"]]
LoaderContext = Literal["cpu", "gpu"]


class BatchSource:
    """Where an MXDataIter gets its batches from.

    Attributes
    ----------
    prefetch_buffer : int
        How many batches to read ahead in a thread; 0 for none.
    """

    prefetch_buffer = 0

    def epoch(self, state: Any) -> Iterator[tuple[Any, ...]]:
        """Yield (data, label, pad, index, state after it) for each batch of an epoch, data and label tensors or NDArrays.

        `state` is None at first, then what came with the last batch that was taken; a source whose epochs do not all start at
        the beginning of the data keeps there how far it got.
        """
        raise NotImplementedError

    def knows(self, state: Any) -> bool:
        """Whether that may have come from `epoch`; JSON makes lists of tuples."""
        return state is None or is_count(state)

    def rest(self, state: Any, last: Any, taken: int) -> Iterator[tuple[Any, ...]]:
        """The batches of `epoch(state)` after the first `taken`; `last` is what came with the last of these as the state after it."""
        return itertools.islice(self.epoch(state), taken, None)


class MXDataIter(DataIter):
    """The iterator that `ImageRecordIter`, `MNISTIter`, `CSVIter` and their like return.

    It reads ahead in a thread, which ends with the iterator.

    Parameters
    ----------
    handle : BatchSource
    data_name, label_name : str
        What a Module calls the inputs.
    """

    provide_data: list[DataDesc]
    provide_label: list[DataDesc]

    def __init__(self, handle: BatchSource, data_name: str = "data", label_name: str = "softmax_label", **_: Any) -> None:
        super().__init__()
        self.handle = handle
        self._debug_skip_load = False
        self._at_begin = True
        self._begun: Any = None  # the state in which the epoch began
        self._state: Any = None  # and that after its last batch that was taken
        self._taken = 0
        self._batch: Any = None  # the current one
        self.first_batch: DataBatch | None
        self._start()
        try:
            self.first_batch = first = self._take()
        except StopIteration:
            self.close()
            raise MXNetError("the data hold no batch: there are no examples, or fewer than a batch needs") from None
        data, label = first.data[0], first.label[0]  # type: ignore[index]  # these iterators always have labels
        self.provide_data = [DataDesc(data_name, data.shape, data.dtype)]
        self.provide_label = [DataDesc(label_name, label.shape, label.dtype)]
        self.batch_size = data.shape[0]

    def _start(self) -> None:
        self._begun, self._taken = self._state, 0
        self._read(self.handle.epoch(self._state))

    def _read(self, epoch: Iterator[Any]) -> None:
        self._batches: Any = Background(epoch, self.handle.prefetch_buffer) if self.handle.prefetch_buffer else epoch

    def state(self) -> dict[str, Any]:
        """Where the iterator is: numbers, which any format of files holds.

        Example
        -------
        >>> import mxnet as mx, numpy as np, os, tempfile
        >>> path = os.path.join(tempfile.mkdtemp(), 'numbers.csv')
        >>> np.savetxt(path, np.arange(6))
        >>> it = mx.io.CSVIter(data_csv=path, data_shape=(1,), batch_size=2)
        >>> first, state = it.next(), it.state()
        >>> it = mx.io.CSVIter(data_csv=path, data_shape=(1,), batch_size=2)
        >>> it.load_state(state)
        >>> it.next().data[0].asnumpy().ravel()
        array([2., 3.], dtype=float32)
        """
        # The first batch is read when the iterator is made, and may not have been asked for.
        taken = self._taken - (self.first_batch is not None)
        return {"begun": self._begun, "taken": taken, "last": self._state if taken else self._begun}

    def load_state(self, state: dict[str, Any]) -> None:
        """Go to where an iterator over the same data with the same arguments was when its `state()` was asked for: the next batch is the one that
        followed there.

        Raises
        ------
        MXNetError
            If it is no such state.
        """
        if not isinstance(state, dict) or state.keys() != {"begun", "taken", "last"} or not is_count(state["taken"]) \
                or not (self.handle.knows(state["begun"]) and self.handle.knows(state["last"])):
            raise MXNetError(f"load_state: what `state()` of such an iterator returned is expected, received {shortened(state)}")
        self.close()
        self.first_batch, self._at_begin = None, state["taken"] == 0
        self._begun, self._state, self._taken = state["begun"], state["last"], state["taken"]
        self._read(self.handle.rest(self._begun, self._state, self._taken))

    def close(self) -> None:
        """Stop reading ahead. `reset` starts again."""
        self._batches.close()

    def debug_skip_load(self) -> None:
        """Give the current batch for ever instead of loading others: shows how fast a network is without its data."""
        self._debug_skip_load = True
        _log.info("debug_skip_load: from now on every batch is the current one")

    def reset(self) -> None:
        """Start the next epoch."""
        self._at_begin = True
        self.first_batch = None
        self.close()
        self._start()

    def _take(self) -> DataBatch:
        data, label, pad, index, state = next(self._batches)
        self._state = state
        self._taken += 1
        self._batch = DataBatch(data=[_as_ndarray(data)], label=[_as_ndarray(label)], pad=pad, index=index)
        return self._batch

    def next(self) -> DataBatch:
        """The next batch."""
        if self._debug_skip_load and not self._at_begin:
            return self._batch
        self._at_begin = False
        if self.first_batch is not None:
            batch, self.first_batch = self.first_batch, None
            return batch
        return self._take()

    def iter_next(self) -> bool:
        """Move to the next batch; whether there is one."""
        try:
            self.next()
        except StopIteration:
            return False
        return True

    def getdata(self) -> Any:
        """The data of the current batch, an NDArray."""
        return self._batch.data[0]

    def getlabel(self) -> Any:
        """The labels of the current batch, an NDArray."""
        return self._batch.label[0]

    def getindex(self) -> np.ndarray | None:
        """The numbers of the examples of the current batch, an array of uint64, or None."""
        return self._batch.index

    def getpad(self) -> int | None:
        """How many examples of the current batch only fill it up."""
        return self._batch.pad


def _as_ndarray(values: Any) -> Any:
    return NDArray._new(values, cpu(0)) if isinstance(values, torch.Tensor) else values


def native_iterator(function: Callable[..., BatchSource]) -> Callable[..., MXDataIter]:
    """Make an iterator out of a function that returns a BatchSource.

    The result takes keyword arguments, also as strings such as ``"(3, 224, 224)"``, and returns an MXDataIter. An argument that
    the iterator does not know is ignored with a warning, where MXNet ignores it without one.
    """
    name = function.__name__
    parameters = inspect.signature(function).parameters.values()
    attributes = {p.name: Attribute(name, p.name, p.annotation, None if p.default is p.empty else p.default, p.default is p.empty)
                  for p in parameters}

    @functools.wraps(function)
    def create(*args: Any, **kwargs: Any) -> Any:
        if args:
            raise TypeError(f"{name} can only accept keyword arguments, received {len(args)} positional; write for instance batch_size=32")
        names = {key: kwargs.pop(key) for key in ("data_name", "label_name") if key in kwargs}
        return MXDataIter(function(**_parse(name, attributes, kwargs)), **names)

    signature = inspect.Signature(
        [*parameters, *(inspect.Parameter(key, inspect.Parameter.KEYWORD_ONLY, default=default)
                        for key, default in (("data_name", "data"), ("label_name", "softmax_label"))),
         inspect.Parameter("kwargs", inspect.Parameter.VAR_KEYWORD)], return_annotation=MXDataIter)
    vars(create)["__signature__"] = signature
    return create


def _parse(name: str, attributes: dict[str, Attribute], given: dict[str, Any]) -> dict[str, Any]:
    values = {}
    for key, value in given.items():
        attribute = attributes.get(key)
        if attribute is None:
            close = difflib.get_close_matches(key, attributes, 1)
            warnings.warn(f"{name} has no parameter {key!r} and ignores it" + (f"; did you mean {close[0]!r}?" if close else ""), stacklevel=4)
            continue
        try:
            values[key] = attribute.parse(value)
        except (ValueError, TypeError, OverflowError):
            expected = attribute.expected + (" or None" if attribute.optional else "")
            raise MXNetError(f"{name}: Invalid Parameter format for {key}: expected {expected}, received {shortened(value)}") from None
    missing = [key for key, attribute in attributes.items() if attribute.required and key not in values]
    if missing:
        raise MXNetError(f"{name}: Required parameter {', '.join(missing)} is not presented")
    return values


def require(condition: object, message: str) -> None:
    """Raise an MXNetError with `message` unless the condition holds."""
    if not condition:
        raise MXNetError(message)


def is_count(value: Any) -> bool:
    """Whether that is a number of examples, such as a file may hold."""
    return isinstance(value, int) and 0 <= value < 1 << 62


def files_of(uri: str) -> list[tuple[str, int]]:
    """The files that a path names: itself, those of a folder, or several separated by semicolons; (path, size) pairs.

    Raises
    ------
    MXNetError
        If there is none.
    """
    found = []
    for path in filter(None, os.fspath(uri).split(";")):
        if is_remote(path):
            found += _remote_files(path)
            continue
        path = path.removeprefix("file://")
        members = [os.path.join(path, member) for member in sorted(os.listdir(path))] if os.path.isdir(path) else [path]
        for member in members:
            with reported(member):
                size = os.stat(current(member)).st_size
            if not os.path.isdir(member) and size:
                found.append((member, size))
    require(found, f"cannot find any files that hold data under {uri!r}")
    return found


def _remote_files(path: str) -> list[tuple[str, int]]:
    with open_stream(path) as stream:
        size = stream.seek(0, os.SEEK_END)
    return [(path, size)]


def part_of(total: int, part_index: int, num_parts: int, alignment: int = 1) -> tuple[int, int]:
    """The range of a part when `total` is cut into `num_parts`, each but the last a multiple of `alignment` long."""
    require(num_parts > 0 and 0 <= part_index < num_parts,
            f"part_index must be from 0 to num_parts - 1, received part_index={part_index} and num_parts={num_parts}")
    step = -(-total // num_parts)
    step = -(-step // alignment) * alignment
    return min(step * part_index, total), min(step * (part_index + 1), total)
