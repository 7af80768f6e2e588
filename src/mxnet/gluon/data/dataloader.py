"""`DataLoader`: batches of a dataset, made in this process, in threads or in worker processes."""
from __future__ import annotations

import functools
import itertools
import multiprocessing
import os
import pickle
from collections import deque
from collections.abc import Callable, Iterator
from multiprocessing.reduction import ForkingPickler
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from ... import context
from ...base import MXNetError
from ...ndarray import NDArray
from ...ops import dtypes, host_arrays
from ...suggestions import shortened
from ...util import is_np_array, is_np_shape, set_np
from ..utils import UsageError
from . import sampler as _sampler
from . import shared_memory
from .dataset import _LazyTransformDataset, _TransformFirstClosure
from .shared_memory import reduce_ndarray
from .vision.datasets import ImageFolderDataset, ImageListDataset, ImageRecordDataset
from .vision.transforms import Compose
from .workers import WorkerPool, WorkerThreads, WorkerTimeout, leave_opencv_alone

if TYPE_CHECKING:
    from ...context import Context
    from .dataset import Dataset
    from .sampler import Sampler

__all__ = ["DataLoader"]

# Pools and queues of multiprocessing pass arrays through shared memory, too.
ForkingPickler.register(NDArray, reduce_ndarray)

_worker_dataset: Any = None  # in workers: the dataset they read


# -- from samples to a batch ---------------------------------------------------------------------------------------------

def _array_class():
    if is_np_array():
        from ... import numpy as mx_np
        return mx_np.ndarray
    return NDArray


def batchify_nested(data: Any, recurse: Any, allocate: Any, ctx: Any) -> Any:
    """Stack samples. `allocate(shape, dtype)` returns the tensor to stack into, or None for a new one."""
    first = data[0]
    if isinstance(first, NDArray):
        tensors = [sample._data.detach() for sample in data]
        out = allocate((len(tensors), *first.shape), tensors[0].dtype) if not tensors[0].is_cuda else None
        return type(first)._new(torch.stack(tensors, out=out), ctx or first.ctx)
    if isinstance(first, tuple):
        return [recurse(part) for part in zip(*data)]
    if isinstance(first, np.ndarray) and first.dtype.name in dtypes.NAME_TO_TORCH and first.dtype.isnative:
        # Straight into the batch's memory.
        if all(type(sample) is np.ndarray and sample.dtype == first.dtype and sample.shape == first.shape for sample in data):
            out = allocate((len(data), *first.shape), dtypes.to_torch(first.dtype))
            if out is not None:
                np.stack(data, out=out.numpy())
                return _array_class()._new(out, ctx)
    values = np.asarray(data)
    if values.dtype.kind not in "biuf":
        raise KeyError(f"samples of type {type(first).__name__} (numpy {values.dtype}) make no array; pass a `batchify_fn` for them")
    tensor = host_arrays.as_tensor(values)
    out = allocate(tuple(tensor.shape), tensor.dtype)
    place = ctx or context.current_context()
    return _array_class()._new(host_arrays.sent(tensor if out is None else out.copy_(tensor), place.torch_device), place)


def default_batchify_fn(data: list[Any]) -> Any:
    """Make a batch of samples.

    Parameters
    ----------
    data : list
        Arrays are stacked; of tuples, each part is batched; numbers and lists become an array of their numpy type.

    Example
    -------
    >>> from mxnet.gluon.data.dataloader import default_batchify_fn
    >>> [part.shape for part in default_batchify_fn([([1, 2], 0), ([3, 4], 1), ([5, 6], 0)])]
    [(3, 2), (3,)]
    """
    return batchify_nested(data, default_batchify_fn, lambda shape, dtype: None, None)


def default_mp_batchify_fn(data: Any) -> Any:
    """Make a batch of samples in memory that other processes can have; see `default_batchify_fn`."""
    return batchify_nested(data, default_mp_batchify_fn, shared_memory.empty, shared_memory.SHARED)


def _as_in_context(data: Any, ctx: Context) -> Any:
    """Copy the arrays of a batch to another context; other values are unchanged."""
    if isinstance(data, NDArray):
        if ctx.device_type == "cpu_pinned" and torch.cuda.is_available() and not data._is_sparse:
            return type(data)._new(data._data.detach().pin_memory(), ctx)
        return data._on(ctx)
    if isinstance(data, (list, tuple)):
        return [_as_in_context(part, ctx) for part in data]
    return data


# -- in workers ----------------------------------------------------------------------------------------------------------

def _thread_worker_initializer(active_shape: bool, active_array: bool) -> None:
    """Give a thread the NumPy semantics of the one that started it."""
    set_np(shape=active_shape, array=active_array)


def _worker_initializer(dataset: Any, active_shape: bool, active_array: bool) -> None:
    """Store `dataset` in a worker of a ``multiprocessing.Pool``."""
    global _worker_dataset
    _worker_dataset = dataset
    if multiprocessing.parent_process() is not None:
        leave_opencv_alone()
    set_np(shape=active_shape, array=active_array)


def _worker_fn(samples: Any, batchify_fn: Callable[..., Any], dataset: Any = None) -> Any:
    """Return the batch of the samples with these indices; the dataset is the worker's own unless it is given."""
    dataset = _worker_dataset if dataset is None else dataset
    return batchify_fn([dataset[i] for i in samples])


_thread_worker_fn = _worker_fn


class _MultiWorkerIter:
    """The batches of one epoch, made by a pool of workers and given in order.

    Parameters
    ----------
    worker_pool
        Has ``apply_async(function, arguments)``, which gives something with ``get(timeout)``.
    batchify_fn : callable
    batch_sampler : Sampler
    pin_memory, pin_device_id
        As for `DataLoader`.
    worker_fn : callable
        ``worker_fn(samples, batchify_fn, dataset)`` runs in a worker; its result may be a batch or a pickled one.
    prefetch : int
        The number of batches to request before the first is taken.
    dataset : Dataset, optional
        The dataset to pass to `worker_fn`; None if workers have one.
    data_loader : DataLoader, optional
        Kept alive until the epoch ends.
    timeout : float
        Seconds to wait for a batch.
    """

    def __init__(self, worker_pool, batchify_fn: Callable[..., Any], batch_sampler: Sampler, pin_memory: bool = False, pin_device_id: int = 0,
                 worker_fn: Callable[..., Any] = _worker_fn, prefetch: int = 0, dataset: Dataset | None = None,
                 data_loader: DataLoader | None = None, timeout: float = 120) -> None:
        self._worker_pool = worker_pool
        self._batchify_fn = batchify_fn
        self._batch_sampler = batch_sampler
        self._pin_memory = pin_memory
        self._pin_device_id = pin_device_id
        self._worker_fn = worker_fn
        self._dataset = dataset
        self._data_loader = data_loader
        self._timeout = timeout
        self._data_buffer: dict[int, Any] = {}
        self._rcvd_idx = self._sent_idx = 0
        self._iter = iter(batch_sampler)
        for _ in range(prefetch):
            self._push_next()

    def __len__(self) -> int:
        return len(self._batch_sampler)

    def __iter__(self) -> Iterator[Any]:
        return self

    def _push_next(self) -> None:
        """Ask a worker for the next batch, if there is one."""
        samples = next(self._iter, None)
        if samples is not None:
            arguments = samples, self._batchify_fn, self._dataset
            self._data_buffer[self._sent_idx] = self._worker_pool.apply_async(self._worker_fn, arguments)
            self._sent_idx += 1

    def __next__(self) -> Any:
        self._push_next()
        if self._rcvd_idx == self._sent_idx:
            raise StopIteration
        self._rcvd_idx += 1
        try:
            batch = self._data_buffer.pop(self._rcvd_idx - 1).get(self._timeout)  # no name: a traceback would keep it, and it the error
        except WorkerTimeout:
            raise
        except multiprocessing.TimeoutError as error:
            raise WorkerTimeout(f"Worker timed out after {self._timeout} seconds; raise the DataLoader's `timeout`, speed up the "
                                "transforms, or use more workers") from error
        if isinstance(batch, bytes) and self._dataset is None and not isinstance(self._worker_pool, WorkerPool):
            batch = pickle.loads(batch)  # the worker_fn of a client's own, which must pickle for multiprocessing's pool
        return _as_in_context(batch, context.cpu_pinned(self._pin_device_id)) if self._pin_memory else batch

    next = __next__


class _Order:
    """An iterator over the lists of indices of an epoch; `left` returns those whose batches are not delivered yet."""

    def __init__(self, sampler: Any, batches: Any = None) -> None:
        self._sampler = sampler
        self._batches = iter(sampler if batches is None else batches)
        self._under_way: deque[Any] = deque()

    def __len__(self) -> int:
        return len(self._sampler)

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        samples = next(self._batches)
        self._under_way.append(samples)
        return samples

    def delivered(self) -> None:
        """Mark the oldest batch in preparation as delivered."""
        self._under_way.popleft()

    def left(self) -> list[list[Any]]:
        """Return the lists of indices whose batches were not delivered."""
        batches = list(itertools.islice(self._batches, len(self)))  # a sampler may yield more than its length
        self._batches = itertools.chain(batches, self._batches)
        return [[i.item() if isinstance(i, np.generic) else i for i in batch] for batch in (*self._under_way, *batches)]


def _python_in(dataset: Any) -> str:
    """Return the reason why threads cannot read the dataset in parallel (Python code for each image); '' if there is none."""
    while isinstance(dataset, _LazyTransformDataset):
        function = dataset._fn._fn if isinstance(dataset._fn, _TransformFirstClosure) else dataset._fn
        if not isinstance(function, Compose) or function._row is None:
            return f"the transform {function!r} is not a Compose that is done in one pass over the pixels"
        dataset = dataset._data
    if not isinstance(dataset, (ImageFolderDataset, ImageListDataset, ImageRecordDataset)):
        return f"{type(dataset).__name__} does not read image files"
    return ""


class DataLoader:
    """Batches of a dataset.

    Parameters
    ----------
    dataset : Dataset or array
    batch_size : int
    shuffle : bool
        Take the samples in a random order, another one in each epoch.
    sampler : Sampler, optional
        The selection and order of the samples; instead of `shuffle`.
    last_batch : str, optional
        ``'keep'`` (the default), ``'discard'`` or ``'rollover'``; see `BatchSampler`.
    batch_sampler : Sampler, optional
        Gives lists of indices; instead of the four above.
    batchify_fn : callable, optional
        Makes a batch of a list of samples, by default `default_batchify_fn`.
    num_workers : int
        The number of processes that make batches; 0 makes them in this one. They are forked from this process, so dataset and functions can be
        any; their changes to memory are not visible to this process. Batches come through shared memory, on the context ``cpu_shared(0)``.
        Where a system can't fork, threads serve.
    pin_memory : bool
        Put batches into memory that a GPU can reach directly.
    pin_device_id : int
        The GPU.
    prefetch : int, optional
        The number of batches that workers make ahead, by default twice `num_workers`.
    thread_pool : bool
        Use threads instead of processes.
    timeout : float
        Seconds to wait for a batch.
    auto_reload : bool
        Begin to make the batches of the first epoch now, and of the next when one ends.
    try_nopython : bool, optional
        True: use threads instead of processes, which is right where all work releases the interpreter: image files, and a `Compose` of
        transforms that are done in one pass over the pixels.

    Raises
    ------
    ValueError
        If the arguments contradict each other.
    RuntimeError
        With ``try_nopython=True``, if there is Python to run for each image; the message names the place.

    Example
    -------
    >>> from mxnet.gluon.data import ArrayDataset, DataLoader
    >>> loader = DataLoader(ArrayDataset([[1, 2], [3, 4], [5, 6]], [0, 1, 0]), batch_size=2)
    >>> [(data.shape, label.shape) for data, label in loader]
    [((2, 2), (2,)), ((1, 2), (1,))]
    """

    def __init__(self, dataset: Any, batch_size: int | None = None, shuffle: bool = False, sampler: Any = None, last_batch: str | None = None,
                 batch_sampler: Any = None, batchify_fn: Callable[..., Any] | None = None, num_workers: int = 0, pin_memory: bool = False,
                 pin_device_id: int = 0, prefetch: int | None = None, thread_pool: bool = False, timeout: float = 120,
                 auto_reload: bool = False, try_nopython: bool | None = None) -> None:
        if timeout <= 0:
            raise UsageError(f"timeout must be positive, given {timeout}")
        reason = ("there is a batchify_fn" if batchify_fn else _python_in(dataset)) if try_nopython else ""
        if reason:
            raise RuntimeError(f"DataLoader: try_nopython=True needs work that runs without the interpreter, and {reason}; without it processes do")
        self._batch_sampler = _make_batch_sampler(dataset, batch_size, shuffle, sampler, last_batch, batch_sampler)
        self._dataset = dataset
        self._pin_memory = pin_memory
        self._pin_device_id = pin_device_id
        self._timeout = timeout
        self._num_workers = max(num_workers, 0)
        self._prefetch = max(0, 2 * self._num_workers if prefetch is None else int(prefetch))
        self._thread_pool = thread_pool or bool(try_nopython) or not hasattr(os, "fork")
        self._batchify_fn = batchify_fn or (default_mp_batchify_fn if self._num_workers else default_batchify_fn)
        self._worker_pool: Any = self._make_pool() if self._num_workers else None
        self._iter: Any = None
        self._order: _Order | None = None  # of the epoch that was begun last, until it is over
        self.auto_reload = auto_reload
        if auto_reload:
            self.refresh()

    def _make_pool(self):
        if self._thread_pool:
            return WorkerThreads(self._num_workers, functools.partial(_thread_worker_initializer, is_np_shape(), is_np_array()))
        return WorkerPool(self._num_workers, inherited=(self._dataset, self._batchify_fn),
                          initializer=functools.partial(_worker_initializer, self._dataset, is_np_shape(), is_np_array()))

    def __iter__(self) -> Iterator[Any]:
        if self._iter is None:
            self.refresh()
        (batches, order), self._iter = self._iter, None
        self._order = order
        for batch in batches:
            order.delivered()
            yield batch
            del batch  # frees its memory while the next one is awaited
        if self._order is order:
            self._order = None
        if self._iter is None and self.auto_reload:
            self.refresh()

    def __len__(self) -> int:
        return len(self._batch_sampler)

    def refresh(self) -> None:
        """Begin a new epoch, for the next iteration over the loader."""
        self._begin(_Order(self._batch_sampler))

    def _begin(self, order: _Order) -> None:
        # It has no reference to the loader, so that both are freed with their last users, and the workers with them.
        self._iter = (self._batches(order) if not self._num_workers else _MultiWorkerIter(
            self._worker_pool, self._batchify_fn, order, pin_memory=self._pin_memory, pin_device_id=self._pin_device_id,  # type: ignore[arg-type]
            prefetch=self._prefetch, dataset=self._dataset, timeout=self._timeout)), order

    def state(self) -> dict[str, Any]:
        """Return the rest of the current epoch, for `load_state`: the sample indices of each batch that was not delivered,
        or None where the next epoch has no order yet. Orders of later epochs, and transforms, depend on the random generators, which
        `mx.io.save_position` keeps with it.

        Example
        -------
        >>> from mxnet.gluon.data import DataLoader
        >>> loader = DataLoader(list(range(6)), batch_size=2)
        >>> for batch in loader:
        ...     break
        >>> loader.state()
        {'batches': [[2, 3], [4, 5]], 'rolled_over': []}
        """
        order = self._order or (None if self._iter is None else self._iter[1])  # or that of the epoch that will be next
        left = None if order is None else order.left()
        rolled_over = self._batch_sampler._prev if isinstance(self._batch_sampler, _sampler.BatchSampler) else []
        return {"batches": left, "rolled_over": [int(i) for i in rolled_over]}

    def load_state(self, state: dict[str, Any]) -> None:
        """Continue, in the next iteration, the epoch of a loader of the same dataset that `state()` has saved.

        Raises
        ------
        MXNetError
            If it is no such state.

        Example
        -------
        >>> from mxnet.gluon.data import DataLoader
        >>> loader = DataLoader(list(range(6)), batch_size=2)
        >>> loader.load_state({'batches': [[4, 5]], 'rolled_over': []})
        >>> [batch.asnumpy().tolist() for batch in loader], len(list(loader))
        ([[4, 5]], 3)
        """
        if not isinstance(state, dict) or state.keys() != {"batches", "rolled_over"} or not isinstance(state["batches"], (list, type(None))) \
                or not all(isinstance(samples, list) for samples in (*(state["batches"] or ()), state["rolled_over"])):
            raise MXNetError(f"load_state: what `state()` of a DataLoader returned is expected, received {shortened(state)}")
        if isinstance(self._batch_sampler, _sampler.BatchSampler):
            self._batch_sampler._prev = list(state["rolled_over"])
        self._order = self._iter = None
        if state["batches"] is not None:
            self._begin(_Order(self._batch_sampler, state["batches"]))

    def clean(self) -> None:
        """Discard the batches prepared for the next epoch."""
        self._iter = None

    def _batches(self, order: _Order) -> Iterator[Any]:
        for samples in order:
            yield self._batch(samples)

    def _batch(self, samples: Any) -> Any:
        batch = self._batchify_fn([self._dataset[i] for i in samples])
        return _as_in_context(batch, context.cpu_pinned(self._pin_device_id)) if self._pin_memory else batch


def _make_batch_sampler(dataset: Any, batch_size: int | None, shuffle, sampler: Any, last_batch, batch_sampler):
    """Return the sampler of batches that `DataLoader`'s arguments describe."""
    if batch_sampler is not None:
        if batch_size is not None or shuffle or sampler is not None or last_batch is not None:
            raise ValueError("DataLoader: batch_sampler makes whole batches; leave out batch_size, shuffle, sampler and last_batch, received "
                             f"{batch_size}, "
                             f"{shuffle}, {sampler} and {last_batch}")
        return batch_sampler
    if batch_size is None:
        raise ValueError("DataLoader: batch_size or batch_sampler expected, received neither")
    if sampler is None:
        sampler = (_sampler.RandomSampler if shuffle else _sampler.SequentialSampler)(len(dataset))
    elif shuffle:
        raise ValueError("DataLoader: either shuffle or sampler expected, received both")
    return _sampler.BatchSampler(sampler, batch_size, last_batch or "keep")
