"""Iterators that wrap other iterators."""
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np

from ..base import MXNetError
from ..suggestions import shortened
from .background import Background
from .base import DataBatch, DataDesc, DataIter

__all__ = ["PrefetchingIter", "ResizeIter"]


class _CurrentBatch(DataIter):
    """The base class of iterators with a `current_batch`."""

    current_batch: Any = None

    def next(self) -> DataBatch:
        """Return the next batch."""
        if not self.iter_next():
            raise StopIteration
        return self.current_batch

    def getpad(self) -> int | None:
        """Return the number of padding examples of the current batch."""
        return self.current_batch.pad

    def getindex(self) -> np.ndarray | None:
        """Return the numbers of the examples of the current batch."""
        return self.current_batch.index

    def getlabel(self) -> Any:
        """Return the labels of the current batch."""
        return self.current_batch.label

    def getdata(self) -> Any:
        """Return the data of the current batch."""
        return self.current_batch.data


class ResizeIter(_CurrentBatch):
    """Wraps an iterator with a given number of batches in each epoch.

    Parameters
    ----------
    data_iter : DataIter
        The wrapped iterator; it starts again whenever it ends before `size` batches.
    size : int
        Batches in an epoch.
    reset_internal : bool
        If True, `reset` resets `data_iter` too; otherwise an epoch continues after the end of the previous one.

    Example
    -------
    >>> import mxnet as mx
    >>> it = mx.io.ResizeIter(mx.io.NDArrayIter(mx.nd.ones((100, 10)), batch_size=25), 2)
    >>> len(list(it))
    2
    """

    provide_data: list[DataDesc]
    provide_label: list[DataDesc]

    def __init__(self, data_iter: DataIter, size: int, reset_internal: bool = True) -> None:
        super().__init__(data_iter.batch_size)
        self.data_iter, self.size, self.reset_internal, self.cur = data_iter, size, reset_internal, 0
        self.provide_data, self.provide_label = data_iter.provide_data, data_iter.provide_label
        if hasattr(data_iter, "default_bucket_key"):
            self.default_bucket_key = data_iter.default_bucket_key

    def reset(self) -> None:
        """Start the next epoch."""
        if self.reset_internal:
            self.data_iter.reset()
        self.cur = 0

    def iter_next(self) -> bool:
        """Advance to the next batch; return True if there is one."""
        if self.cur >= self.size:
            return False
        batch = _next_batch(self.data_iter)
        if batch is None:
            self.data_iter.reset()
            batch = _next_batch(self.data_iter)
            if batch is None:
                raise MXNetError("ResizeIter: the inner iterator gives no batch, even after reset()")
        self.current_batch = batch
        self.cur += 1
        return True

    def state(self) -> dict[str, Any]:
        """Return the position in the epoch, and that of the inner iterator, which needs a ``state()``."""
        return {"cur": self.cur, "data_iter": self.data_iter.state()}  # type: ignore[attr-defined]

    def load_state(self, state: dict[str, Any]) -> None:
        """Restore the position of a `state()` of such an iterator.

        Raises
        ------
        MXNetError
            If the state is invalid.
        """
        if not isinstance(state, dict) or state.keys() != {"cur", "data_iter"} or type(state["cur"]) is not int:
            raise MXNetError(f"load_state: what `state()` of a ResizeIter returned is expected, received {shortened(state)}")
        self.data_iter.load_state(state["data_iter"])  # type: ignore[attr-defined]
        self.cur = state["cur"]


def _next_batch(data_iter: DataIter) -> DataBatch | None:
    try:
        return data_iter.next()
    except StopIteration:
        return None


def _batches(data_iter: DataIter) -> Iterator[DataBatch]:
    while (batch := _next_batch(data_iter)) is not None:
        yield batch


class PrefetchingIter(_CurrentBatch):
    """Wraps one or more iterators, each of which prefetches its next batch in a thread of its own.

    Errors of the inner iterators are raised by `next`.

    Parameters
    ----------
    iters : DataIter or list of DataIter
        The batches of several are concatenated: the arrays of the first, then those of the second, ....
    rename_data, rename_label : list of dict, optional
        For each iterator, a dict from old names to new ones.

    Raises
    ------
    MXNetError
        While iterating: if the iterators have different numbers of batches, or batches with different padding.

    Example
    -------
    >>> import mxnet as mx
    >>> parts = [mx.io.NDArrayIter({'data': mx.nd.ones((100, 10))}, batch_size=25) for _ in range(2)]
    >>> mx.io.PrefetchingIter(parts, rename_data=[{'data': 'data_1'}, {'data': 'data_2'}]).provide_data
    [DataDesc[data_1,(25, 10),<class 'numpy.float32'>,NCHW], DataDesc[data_2,(25, 10),<class 'numpy.float32'>,NCHW]]
    """

    def __init__(self, iters: DataIter | list[DataIter], rename_data: list[dict[str, Any]] | None = None,
                 rename_label: list[dict[str, Any]] | None = None) -> None:
        super().__init__()
        self.iters = list(iters) if isinstance(iters, (list, tuple)) else [iters]
        self.n_iter = len(self.iters)
        if not self.n_iter:
            raise MXNetError("PrefetchingIter needs at least one iterator, received none")
        self.rename_data, self.rename_label = rename_data, rename_label
        self.batch_size = self.provide_data[0][1][0]
        self._start()

    def _start(self) -> None:
        self._fetching = [Background(_batches(inner), ahead=1) for inner in self.iters]

    @property
    def prefetch_threads(self) -> list[threading.Thread]:
        """The thread of each iterator."""
        return [fetching.thread for fetching in self._fetching]

    @property
    def started(self) -> bool:
        """True if the prefetching threads are alive: fetching, or waiting until a batch is taken."""
        return any(thread.is_alive() for thread in self.prefetch_threads)

    def _describe(self, kind: str, renames: list[dict[str, str]] | None) -> list[DataDesc]:
        joined = []
        for i, inner in enumerate(self.iters):
            for desc in getattr(inner, kind):
                desc = desc if isinstance(desc, DataDesc) else DataDesc(*desc)
                if renames is not None:
                    desc = DataDesc(renames[i][desc.name], desc.shape, desc.dtype, desc.layout)
                joined.append(desc)
        return joined

    @property
    def provide_data(self) -> list[DataDesc]:
        """Name, shape and type of the data arrays of a batch."""
        return self._describe("provide_data", self.rename_data)

    @property
    def provide_label(self) -> list[DataDesc]:
        """Name, shape and type of the label arrays of a batch."""
        return self._describe("provide_label", self.rename_label)

    def reset(self) -> None:
        """Reset the iterators and restart the prefetching."""
        for fetching in self._fetching:
            fetching.close()
        for inner in self.iters:
            inner.reset()
        self._start()

    def iter_next(self) -> bool:
        """Advance to the next batch; return True if there is one."""
        batches: list[Any] = [next(fetching, None) for fetching in self._fetching]
        ended = [batch is None for batch in batches]
        if all(ended):
            return False
        if any(ended):
            raise MXNetError("PrefetchingIter: number of entries mismatches between iterators: "
                             f"number {ended.index(True)} ended while others go on")
        pads = [batch.pad for batch in batches]
        if any(pad != pads[0] for pad in pads):
            raise MXNetError(f"PrefetchingIter: number of entries mismatches between iterators: batches are filled up with {pads} examples")
        self.current_batch = DataBatch([x for batch in batches for x in batch.data], [x for batch in batches for x in batch.label or ()],
                                       pads[0], batches[0].index, provide_data=self.provide_data, provide_label=self.provide_label)
        return True
