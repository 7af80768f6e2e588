"""Functions that combine samples into a batch, for ``DataLoader(batchify_fn=...)``."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ... import context, ndarray
from ...ndarray import NDArray
from ...suggestions import shortened
from ...util import is_np_array
from ..utils import UsageError
from . import shared_memory
from .dataloader import batchify_nested

__all__ = ["Stack", "Pad", "Append", "Group", "AsList"]


def _array(values: Any, shared: bool) -> Any:
    """Return an array of ``mx.nd``, or of ``mx.np`` where it is on, of the type of a NumPy array; with `shared` in memory for other processes."""
    ctx = shared_memory.SHARED if shared else context.cpu()
    if is_np_array():
        from ... import numpy as mx_np
        return mx_np.array(values, dtype=values.dtype, ctx=ctx)
    return ndarray.array(values, dtype=values.dtype, ctx=ctx)


class Stack:
    """Stacks samples of one shape; of tuples and lists of samples' parts each part.

    Parameters
    ----------
    use_shared_mem : bool
        Put the batch where other processes can have it.

    Example
    -------
    >>> from mxnet.gluon.data import batchify
    >>> batchify.Stack()([[1, 2], [3, 4]])[1].asnumpy()
    array([2, 4])
    """

    def __init__(self, use_shared_mem: bool = False) -> None:
        self._use_shared_mem = use_shared_mem

    def __call__(self, data: Sequence[Any]) -> Any:
        """Return the batch of a list of samples."""
        if isinstance(data[0], (tuple, list)):
            return [self(part) for part in zip(*data)]
        if isinstance(data[0], NDArray):
            allocate = shared_memory.empty if self._use_shared_mem else lambda shape, dtype: None
            return batchify_nested(list(data), self, allocate, shared_memory.SHARED if self._use_shared_mem else None)
        return _array(np.asarray(data), self._use_shared_mem)


class Pad:
    """Fills samples up to the size of the largest one along each axis, and stacks them.

    Parameters
    ----------
    val : number, optional
        The padding value, 0 by default.
    dtype : str or type, optional
        Of the batch; by default that of the first sample.
    round_to : int, optional
        Pad each axis to a multiple of this size.
    use_shared_mem : bool
        Put the batch where other processes can have it.

    Example
    -------
    >>> from mxnet.gluon.data import batchify
    >>> batchify.Pad(val=-1)([[1, 2, 3], [4]]).asnumpy()
    array([[ 1,  2,  3],
           [ 4, -1, -1]])
    """

    def __init__(self, val: float | None = None, dtype: Any = None, round_to: int | None = None, use_shared_mem: bool = False) -> None:
        self._pad_val = 0 if val is None else val
        self._dtype, self._round_to, self._use_shared_mem = dtype, round_to, use_shared_mem

    def __call__(self, data: Sequence[Any]) -> Any:
        """Return the batch of a list of arrays or lists of numbers.

        Raises
        ------
        UsageError
            If samples have parts, or different numbers of axes.
        """
        if not isinstance(data[0], (NDArray, np.ndarray, list)):
            raise UsageError(f"Pad: arrays or lists of numbers expected, received {type(data[0])}; of samples with parts each takes its own: "
                             "Group(Pad(), Stack())")
        arrays = [x.asnumpy() if isinstance(x, NDArray) else np.asarray(x) for x in data]
        if len({x.ndim for x in arrays}) > 1:
            raise UsageError(f"Pad: samples with one number of axes expected, received shapes {', '.join(sorted({str(x.shape) for x in arrays}))}")
        sizes = np.max([x.shape for x in arrays], axis=0)
        if self._round_to is not None:
            sizes = -(-sizes // self._round_to) * self._round_to
        batch = np.full((len(arrays), *sizes), self._pad_val, self._dtype or arrays[0].dtype)
        for row, x in zip(batch, arrays):
            row[tuple(map(slice, x.shape))] = x
        return _array(batch, self._use_shared_mem)


class Append:
    """Makes an array of each sample, of whatever shape.

    Parameters
    ----------
    expand : bool
        Give each an axis of size 1 for the batch,
    batch_axis : int
        there.
    use_shared_mem : bool
        Put the arrays where other processes can have them.

    Example
    -------
    >>> from mxnet.gluon.data import batchify
    >>> [x.shape for x in batchify.Append()([[1, 2, 3], [4]])]
    [(1, 3), (1, 1)]
    """

    def __init__(self, expand: bool = True, batch_axis: int = 0, use_shared_mem: bool = False) -> None:
        self._expand, self._batch_axis, self._use_shared_mem = expand, batch_axis, use_shared_mem

    def __call__(self, data: Sequence[Any]) -> list[Any]:
        """Return the list of arrays."""
        arrays = []
        for x in data:
            if not isinstance(x, NDArray):
                x = _array(np.asarray(x), self._use_shared_mem)
            elif self._use_shared_mem:
                x = x.as_in_context(shared_memory.SHARED)
            arrays.append(x.expand_dims(axis=self._batch_axis) if self._expand else x)
        return arrays


class Group:
    """Makes a batch of each part of the samples, by a function of its own.

    Parameters
    ----------
    fn : callable, or list of callable
    *args : callable
        Those of the further parts, if `fn` is no list.

    Raises
    ------
    UsageError
        If they are no functions.

    Example
    -------
    >>> from mxnet.gluon.data import batchify
    >>> words, labels = batchify.Group(batchify.Pad(), batchify.Stack())([([1, 2, 3], 0), ([4], 1)])
    >>> words.shape, labels.asnumpy().tolist()
    ((2, 3), [0, 1])
    """

    def __init__(self, fn: Callable[..., Any] | Sequence[Callable[..., Any]], *args: Callable[..., Any]) -> None:
        if isinstance(fn, (list, tuple)) and args:
            raise UsageError(f"Group: either one list of functions expected or each as an argument, received {fn} and {args}")
        self._fn: tuple[Any, ...] = tuple(fn) if isinstance(fn, (list, tuple)) else (fn, *args)
        for function in self._fn:
            if not callable(function):
                raise UsageError(f"Group: functions expected, received {shortened(function)}")

    def __call__(self, data: Sequence[Any]) -> tuple[Any, ...]:
        """Return the batches of the parts.

        Raises
        ------
        UsageError
            If the samples have another number of parts.
        """
        if len(data[0]) != len(self._fn):
            raise UsageError(f"Group: samples of {len(self._fn)} parts expected, one for each function, received {len(data[0])}")
        return tuple(function([sample[i] for sample in data]) for i, function in enumerate(self._fn))


class AsList:
    """Leaves samples as they are, in a list: for texts."""

    def __call__(self, data: Sequence[Any]) -> list[Any]:
        """Return the list."""
        return list(data)
