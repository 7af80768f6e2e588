"""The common interface and the declaration of the iterators that MXNet implements in C++.

Such an iterator is a function with keyword-only, annotated parameters (the annotations are those of operators, `ops.schema`) that
returns a source of batches; `native_iterator` converts it to the public function.
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
_log = logging.getLogger(__name__)  # not the root logger, whose functions make later `logging.basicConfig` calls ineffective

Dtype = Optional[Literal["float32", "float64", "float16", "bfloat16", "int64", "int32", "uint8", "int8"]]
LoaderContext = Literal["cpu", "gpu"]


class BatchSource:
    """The source of an MXDataIter's batches.

    Attributes
    ----------
    prefetch_buffer : int
        The number of batches that a thread prefetches; 0 for none.
    """

    prefetch_buffer = 0

    def epoch(self, state: Any) -> Iterator[tuple[Any, ...]]:
        """Yield (data, label, pad, index, state after it) for each batch of an epoch, data and label tensors or NDArrays.

        `state` is None at first, then the state of the last batch that was taken; it has the position of a source whose epochs do not
        all start at the beginning of the data.
        """
        raise NotImplementedError

    def knows(self, state: Any) -> bool:
        """Return True if the value is a valid state of `epoch`, also after JSON has converted tuples to lists."""
        return state is None or is_count(state)

    def rest(self, state: Any, last: Any, taken: int) -> Iterator[tuple[Any, ...]]:
        """Return the batches of `epoch(state)` after the first `taken`; `last` is the state after the last of these."""
        return itertools.islice(self.epoch(state), taken, None)


class MXDataIter(DataIter):
    """The iterator that `ImageRecordIter`, `MNISTIter`, `CSVIter` and similar functions return.

    It prefetches in a thread, which ends with the iterator.

    Parameters
    ----------
    handle : BatchSource
    data_name, label_name : str
        The names of the inputs in a Module.
    """

    provide_data: list[DataDesc]
    provide_label: list[DataDesc]

    def __init__(self, handle: BatchSource, data_name: str = "data", label_name: str = "softmax_label", **_: Any) -> None:
        super().__init__()
        self.handle = handle
        self._debug_skip_load = False
        self._at_begin = True
        self._begun: Any = None  # the state at the beginning of the epoch
        self._state: Any = None  # the state after the last batch that was taken
        self._taken = 0
        self._batch: Any = None  # the current one
        self.first_batch: DataBatch | None
        self._start()
        try:
            self.first_batch = first = self._take()
        except StopIteration:
            self.close()
            raise MXNetError("the data hold no batch: at least one expected, received no examples, or fewer than a batch needs") from None
        data, label = first.data[0], first.label[0]  # type: ignore[index]  # all of these iterators have labels
        self.provide_data = [DataDesc(data_name, data.shape, data.dtype)]
        self.provide_label = [DataDesc(label_name, label.shape, label.dtype)]
        self.batch_size = data.shape[0]

    def _start(self) -> None:
        self._begun, self._taken = self._state, 0
        self._read(self.handle.epoch(self._state))

    def _read(self, epoch: Iterator[Any]) -> None:
        self._batches: Any = Background(epoch, self.handle.prefetch_buffer) if self.handle.prefetch_buffer else epoch

    def state(self) -> dict[str, Any]:
        """Return the position of the iterator, as numbers that any file format supports.

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
        # The first batch is read when the iterator is made, and may not have been taken.
        taken = self._taken - (self.first_batch is not None)
        return {"begun": self._begun, "taken": taken, "last": self._state if taken else self._begun}

    def load_state(self, state: dict[str, Any]) -> None:
        """Restore the position of a `state()` of an iterator over the same data with the same arguments: the next batch is the one that followed
        there.

        Raises
        ------
        MXNetError
            If the state is invalid.
        """
        if not isinstance(state, dict) or state.keys() != {"begun", "taken", "last"} or not is_count(state["taken"]) \
                or not (self.handle.knows(state["begun"]) and self.handle.knows(state["last"])):
            raise MXNetError(f"load_state: what `state()` of such an iterator returned is expected, received {shortened(state)}")
        self.close()
        self.first_batch, self._at_begin = None, state["taken"] == 0
        self._begun, self._state, self._taken = state["begun"], state["last"], state["taken"]
        self._read(self.handle.rest(self._begun, self._state, self._taken))

    def close(self) -> None:
        """Stop prefetching; `reset` starts it again."""
        self._batches.close()

    def debug_skip_load(self) -> None:
        """Repeat the current batch endlessly instead of loading others, to measure a network without its data loading."""
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
        """Return the next batch."""
        if self._debug_skip_load and not self._at_begin:
            return self._batch
        self._at_begin = False
        if self.first_batch is not None:
            batch, self.first_batch = self.first_batch, None
            return batch
        return self._take()

    def iter_next(self) -> bool:
        """Advance to the next batch; return True if there is one."""
        try:
            self.next()
        except StopIteration:
            return False
        return True

    def getdata(self) -> Any:
        """Return the data of the current batch, an NDArray."""
        return self._batch.data[0]

    def getlabel(self) -> Any:
        """Return the labels of the current batch, an NDArray."""
        return self._batch.label[0]

    def getindex(self) -> np.ndarray | None:
        """Return the numbers of the examples of the current batch, an array of uint64, or None."""
        return self._batch.index

    def getpad(self) -> int | None:
        """Return the number of padding examples of the current batch."""
        return self._batch.pad


def _as_ndarray(values: Any) -> Any:
    return NDArray._new(values, cpu(0)) if isinstance(values, torch.Tensor) else values


def native_iterator(function: Callable[..., BatchSource]) -> Callable[..., MXDataIter]:
    """Decorate a function that returns a BatchSource, so that it returns an iterator.

    The result accepts keyword arguments, also as strings such as ``"(3, 224, 224)"``, and returns an MXDataIter. An unknown
    argument is ignored with a warning; MXNet ignores it without one.
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
    """Return True if the value is a plausible number of examples: an integer from 0 to below 2**62."""
    return isinstance(value, int) and 0 <= value < 1 << 62


def files_of(uri: str) -> list[tuple[str, int]]:
    """Return (path, size) pairs for a path: the file itself, the files of a folder, or several files separated by semicolons.

    Raises
    ------
    MXNetError
        If there is no file.
    """
    paths = []
    for path in filter(None, os.fspath(uri).split(";")):
        if is_remote(path):
            paths += _remote_files(path)
            continue
        path = path.removeprefix("file://")
        members = [os.path.join(path, member) for member in sorted(os.listdir(path))] if os.path.isdir(path) else [path]
        for member in members:
            with reported(member):
                size = os.stat(current(member)).st_size
            if not os.path.isdir(member) and size:
                paths.append((member, size))
    require(paths, f"cannot find any files that hold data under {uri!r}")
    return paths


def _remote_files(path: str) -> list[tuple[str, int]]:
    with open_stream(path) as stream:
        size = stream.seek(0, os.SEEK_END)
    return [(path, size)]


def part_of(total: int, part_index: int, num_parts: int, alignment: int = 1) -> tuple[int, int]:
    """Return the range of a part if `total` is divided into `num_parts`; the lengths of all but the last are multiples of `alignment`."""
    require(num_parts > 0 and 0 <= part_index < num_parts,
            f"part_index must be from 0 to num_parts - 1, received part_index={part_index} and num_parts={num_parts}")
    step = -(-total // num_parts)
    step = -(-step // alignment) * alignment
    return min(step * part_index, total), min(step * (part_index + 1), total)
