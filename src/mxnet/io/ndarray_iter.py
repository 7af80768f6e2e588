"""Batches from arrays in memory."""
from typing import Any

import numpy as np
import torch

from ..base import MXNetError
from ..ndarray import NDArray, array, concat
from ..ndarray.sparse import CSRNDArray
from ..suggestions import shortened
from .base import DataBatch, DataDesc, DataIter

__all__ = ["NDArrayIter"]

_HANDLINGS = ("pad", "discard", "roll_over")


def is_h5py(x: Any) -> bool:
    # Checking the name of the type's module avoids the import of h5py.
    return type(x).__module__.partition(".")[0] == "h5py"


def _named_arrays(source: Any, allow_empty: bool, default_name: str) -> list[tuple[str, Any]]:
    """Return (name, array) pairs for an array, or for a list or a dict of arrays, sorted by name."""
    if source is None:
        source = []
    if isinstance(source, (np.ndarray, NDArray, torch.Tensor)) or is_h5py(source):
        source = [source]
    if isinstance(source, (list, tuple)):
        source = ({default_name: source[0]} if len(source) == 1 else
                  {f"_{i}_{default_name}": x for i, x in enumerate(source)})
    if not isinstance(source, dict):
        raise TypeError("NDArrayIter: an array (NDArray, numpy, h5py), a list or a dict of arrays expected, "
                        f"received {type(source).__name__}")
    if not source and not allow_empty:
        raise MXNetError(f"NDArrayIter: `data` holds no array, received {source}")
    pairs = []
    for name, x in sorted(source.items()):
        if not isinstance(x, NDArray) and not is_h5py(x):
            try:
                x = array(x)
            except (TypeError, ValueError, MXNetError) as error:
                raise TypeError(f"Invalid type '{type(x)}' for {name}, should be NDArray, numpy.ndarray or h5py.Dataset: {error}") from None
        pairs.append((name, x))
    return pairs


def _has_instance(data: Any, dtype: type | tuple[type, ...]) -> bool:
    """Return True if any array of the (name, array) pairs is of the type `dtype`."""
    return any(isinstance(x, dtype) for _, x in data)


def _rows_of(x: CSRNDArray, positions: torch.Tensor) -> CSRNDArray:
    """Return the rows of a CSR array at the given positions, in that order."""
    starts, columns = x._aux
    positions = positions.to(starts.device)
    counts = starts.diff()[positions]
    ends = torch.cat([starts.new_zeros(1), counts.cumsum(0)])
    places = torch.repeat_interleave(starts[positions] - ends[:-1], counts) + torch.arange(int(ends[-1]), device=starts.device)
    return CSRNDArray._make(x._values[places], [ends, columns[places]], (len(positions), x.shape[1]), x._ctx)


class NDArrayIter(DataIter):
    """Iterates over batches from arrays: NDArray, numpy.ndarray, CSRNDArray, scipy.sparse.csr_matrix or h5py.Dataset.

    Parameters
    ----------
    data : array, list of arrays or dict of arrays
        The data; all arrays have the same number of examples.
    label : array, list of arrays or dict of arrays, optional
    batch_size : int
    shuffle : bool
        Use a new random order in each epoch, drawn from NumPy's global generator.
    last_batch_handle : str
        The handling of the last batch if the number of examples is not a multiple of `batch_size`: ``'pad'`` fills it with examples
        from the beginning, ``'discard'`` drops it, ``'roll_over'`` moves its examples to the next epoch.
    data_name, label_name : str
        Names of arrays without a name.
    layout : str
        A letter for each axis; ``N`` is the one along which examples are counted.

    Raises
    ------
    TypeError
        If `data` or `label` is not an array.
    MXNetError
        If an array has fewer examples than the first one.
    NotImplementedError
        For sparse arrays with another `last_batch_handle` than ``'discard'``.

    Example
    -------
    >>> import mxnet as mx, numpy as np
    >>> it = mx.io.NDArrayIter(np.arange(5), np.arange(5) * 10, batch_size=2)
    >>> for batch in it:
    ...     print(batch.data[0].asnumpy(), batch.label[0].asnumpy(), batch.pad)
    [0. 1.] [ 0. 10.] 0
    [2. 3.] [20. 30.] 0
    [4. 0.] [40.  0.] 1
    """

    def __init__(self, data: Any, label: Any = None, batch_size: int = 1, shuffle: bool = False, last_batch_handle: str = "pad",
                 data_name: str = "data", label_name: str = "softmax_label", layout: str = "NCHW") -> None:
        super().__init__(batch_size)
        if last_batch_handle not in _HANDLINGS:
            raise MXNetError(f"NDArrayIter: last_batch_handle must be one of {_HANDLINGS}, received {shortened(last_batch_handle)}")
        if batch_size < 1:
            raise MXNetError(f"NDArrayIter: batch_size must be at least 1, received {batch_size}")
        self.data = _named_arrays(data, allow_empty=False, default_name=data_name)
        self.label = _named_arrays(label, allow_empty=True, default_name=label_name)
        self.layout = layout
        self._axis = layout.find("N")
        self.last_batch_handle = last_batch_handle
        self.shuffle = shuffle
        self.data_list = [x for _, x in self.data + self.label]
        self.num_source = len(self.data_list)
        if last_batch_handle != "discard" and _has_instance(self.data + self.label, CSRNDArray):
            raise NotImplementedError(f"NDArrayIter: csr arrays need last_batch_handle='discard', received {shortened(last_batch_handle)}")
        self.num_data = self._count_examples()
        self.idx = np.arange(self.num_data)
        self._order = self.idx.copy()
        self._rest = self.idx[:0]
        self.cursor = -batch_size
        self.reset()

    def _count_examples(self) -> int:
        """Return the number of examples of the first array; raise an error if another array has fewer."""
        for name, x in self.data + self.label:
            if self._axis < 0 or self._axis >= len(x.shape):
                raise MXNetError(f"NDArrayIter: layout {self.layout!r} places the examples on axis {self._axis}, which {name} of shape "
                                 f"{tuple(x.shape)} has not")
        count = self.data_list[0].shape[self._axis]
        for name, x in self.data + self.label:
            if x.shape[self._axis] < count:
                raise MXNetError(f"NDArrayIter: {name} has {x.shape[self._axis]} examples and {self.data[0][0]} has {count}")
        return count

    def _describe(self, pairs: list[tuple[str, Any]]) -> list[DataDesc]:
        axis = self._axis
        return [DataDesc(name, (*x.shape[:axis], self.batch_size, *x.shape[axis + 1:]), x.dtype, layout=self.layout) for name, x in pairs]

    @property
    def provide_data(self) -> list[DataDesc]:
        """Name, shape and type of the data arrays of a batch."""
        return self._describe(self.data)

    @property
    def provide_label(self) -> list[DataDesc]:
        """Name, shape and type of the label arrays of a batch."""
        return self._describe(self.label)

    def _shuffle_data(self) -> None:
        np.random.shuffle(self.idx)
        # Shuffling the shuffled order again gives MXNet's order for the same seed in each epoch; for h5py data MXNet uses the order directly.
        self._order = self.idx.copy() if all(map(is_h5py, self.data_list)) else self._order[self.idx]

    def hard_reset(self) -> None:
        """Return to the beginning and drop the examples of ``'roll_over'``."""
        self._rest = self.idx[:0]
        if self.shuffle:
            self._shuffle_data()
        self.cursor = -self.batch_size

    def reset(self) -> None:
        """Start the next epoch."""
        positions = self._positions() if 0 <= self.cursor < self.num_data or -self.batch_size < self.cursor < 0 else self.idx[:0]
        incomplete = self.last_batch_handle == "roll_over" and 0 < len(positions) < self.batch_size
        self._rest = positions.copy() if incomplete else self.idx[:0]
        if self.shuffle:
            self._shuffle_data()
        self.cursor = -self.batch_size - len(self._rest)

    def state(self) -> dict[str, Any]:
        """Return the position in the epoch and its order, as numbers that any file format supports. The orders of later epochs depend on NumPy's
        generator, whose state the program has to save.

        Example
        -------
        >>> import mxnet as mx, numpy as np
        >>> it = mx.io.NDArrayIter(np.arange(6), batch_size=2, shuffle=True)
        >>> first, state = it.next(), it.state()
        >>> it, rest = mx.io.NDArrayIter(np.arange(6), batch_size=2, shuffle=True), it
        >>> it.load_state(state)
        >>> all((a.data[0] == b.data[0]).asnumpy().all() for a, b in zip(it, rest, strict=True))
        True
        """
        shuffled = {"idx": self.idx.tolist(), "order": self._order.tolist()} if self.shuffle else {}
        return {"cursor": int(self.cursor), "rest": self._rest.tolist(), **shuffled}

    def load_state(self, state: dict[str, Any]) -> None:
        """Restore the position of a `state()` of an iterator over the same arrays with the same arguments.

        Raises
        ------
        MXNetError
            If the state is invalid.
        """
        expected, size = {"cursor", "rest", *(("idx", "order") if self.shuffle else ())}, self.batch_size
        if not isinstance(state, dict) or state.keys() != expected or not self._are_examples(state["rest"]) or len(state["rest"]) >= size \
                or type(state["cursor"]) is not int or not -2 * size < state["cursor"] < 1 << 62 \
                or self.shuffle and any(not self._are_examples(state[key]) or len({*state[key]}) != self.num_data for key in ("idx", "order")):
            raise MXNetError(f"load_state: what `state()` of an NDArrayIter over {self.num_data} examples with shuffle={self.shuffle} returned is "
                             "expected, received something else")
        self.cursor, self._rest = state["cursor"], np.array(state["rest"], self.idx.dtype)
        if self.shuffle:
            self.idx, self._order = (np.array(state[key], self.idx.dtype) for key in ("idx", "order"))

    def _are_examples(self, numbers: Any) -> bool:
        return isinstance(numbers, list) and all(type(number) is int and 0 <= number < self.num_data for number in numbers)

    def iter_next(self) -> bool:
        """Advance to the next batch; return True if there are examples left."""
        self.cursor += self.batch_size
        return self.cursor < self.num_data

    def next(self) -> DataBatch:
        """Return the next batch."""
        if not self.iter_next() or len(self._positions()) < self.batch_size:
            raise StopIteration
        return DataBatch(data=self.getdata(), label=self.getlabel(), pad=self.getpad(), index=None)

    def _positions(self) -> np.ndarray:
        """Return the numbers of the examples in the current batch."""
        start, stop = self.cursor, self.cursor + self.batch_size
        if start >= self.num_data:
            raise MXNetError(f"NDArrayIter is at the end of its data, at example {start} of {self.num_data}; call reset() first")
        if start < 0:
            return np.concatenate([self._rest, self._order[:max(stop, 0)]])
        if stop > self.num_data and self.last_batch_handle == "pad":
            return np.concatenate([self._order[start:], np.resize(self._order, stop - self.num_data)])
        return self._order[start:stop]

    def _batchify(self, pairs: list[tuple[str, Any]]) -> list[NDArray]:
        """Return the arrays of the current batch for (name, array) pairs."""
        positions = self._positions()
        in_order = not self.shuffle and self.cursor >= 0 and self.cursor + len(positions) <= self.num_data
        return [self._pick_from(x, positions, in_order) for _, x in pairs]

    def _getdata(self, pairs: list[tuple[str, Any]], start: int | None = None, end: int | None = None) -> list[NDArray]:
        """Return the examples `start` to `end`, in this epoch's order, of (name, array) pairs."""
        positions = self._order[slice(start, end)]
        return [self._pick_from(x, positions, in_order=not self.shuffle and len(positions) > 0) for _, x in pairs]

    def _concat(self, first: list[NDArray], second: list[NDArray]) -> list[NDArray]:
        """Concatenate two lists of arrays pairwise along the batch axis; if one list is empty, return the other."""
        if not first or not second:
            return first or second
        return [concat(a, b, dim=self._axis) for a, b in zip(first, second, strict=True)]

    @staticmethod
    def _tile(arrays: list[NDArray], repeats: int) -> list[NDArray]:
        """Repeat each array `repeats` times along its first axis."""
        return [concat(*[x] * repeats, dim=0) for x in arrays]

    def _pick_from(self, x: Any, positions: np.ndarray, in_order: bool) -> NDArray:
        if is_h5py(x):
            # h5py requires unique, increasing indices.
            unique, inverse = np.unique(positions, return_inverse=True)
            return array(np.take(x[(slice(None),) * self._axis + (unique,)], inverse, axis=self._axis), dtype=x.dtype)
        if isinstance(x, CSRNDArray):
            if in_order:
                return x[int(positions[0]):int(positions[-1]) + 1]
            return _rows_of(x, torch.from_numpy(positions))
        values = x._data.detach()
        if in_order:
            # A copy: a batch changed in place must not change the data set.
            values = values.narrow(self._axis, int(positions[0]), len(positions)).clone(memory_format=torch.contiguous_format)
        else:
            values = values.index_select(self._axis, torch.from_numpy(positions).to(values.device))
        return type(x)._new(values, x._ctx)

    def getdata(self) -> Any:
        """Return the data arrays of the current batch."""
        return self._batchify(self.data)

    def getlabel(self) -> Any:
        """Return the label arrays of the current batch."""
        return self._batchify(self.label)

    def getpad(self) -> int | None:
        """Return the number of padding examples of the last batch, or of examples rolled over into the first one."""
        if self.last_batch_handle == "pad":
            return max(0, self.cursor + self.batch_size - self.num_data)
        return max(0, -self.cursor) if self.last_batch_handle == "roll_over" else 0
