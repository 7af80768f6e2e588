"""Data iterators outside of MXNet's stability promise."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import ndarray as nd
from ..io import DataDesc, DataIter

if TYPE_CHECKING:
    from ..gluon.data import DataLoader
    from ..ndarray import NDArray


class DataLoaderIter(DataIter):
    """A Gluon `DataLoader` as a data iterator, for `Module`.

    Parameters
    ----------
    loader : mxnet.gluon.data.DataLoader
        Yields pairs of data and label; the size of its first batch is the batch size.
    data_name, label_name : str
    dtype : str
        The type of both.

    Example
    -------
    >>> import mxnet as mx
    >>> pairs = mx.gluon.data.ArrayDataset(mx.nd.ones((3, 2)), mx.nd.zeros((3,)))
    >>> it = mx.contrib.io.DataLoaderIter(mx.gluon.data.DataLoader(pairs, batch_size=2))
    >>> [(b.data[0].shape, b.pad) for b in it]
    [((2, 2), 0), ((2, 2), 1)]
    """

    def __init__(self, loader: DataLoader, data_name: str = "data", label_name: str = "softmax_label", dtype: Any = "float32"):
        data, label = next(iter(loader))
        super().__init__(batch_size=len(data))
        self._loader, self._current_batch, self.dtype = loader, None, dtype
        self.provide_data, self.provide_label = ([DataDesc(name, array.shape, dtype)] for name, array in ((data_name, data), (label_name, label)))
        self.reset()

    def reset(self) -> None:
        """Start again."""
        self._iter = iter(self._loader)

    def iter_next(self) -> bool:
        """Go to the next batch; False if there is none."""
        self._current_batch = next(self._iter, None)
        return self._current_batch is not None

    def _padded(self, array):
        array = array.astype(self.dtype)
        missing = self.getpad()
        if not missing:
            return [array]
        return [nd.concat(array, nd.zeros((missing, *array.shape[1:]), ctx=array.ctx, dtype=self.dtype), dim=0)]

    def getdata(self) -> list[NDArray]:
        """Return the batch's data, filled up to the batch size."""
        return self._padded(self._current_batch[0])

    def getlabel(self) -> list[NDArray]:
        """Return the batch's labels, filled up to the batch size."""
        return self._padded(self._current_batch[1])

    def getpad(self) -> int:
        """Return the number of padding rows in the batch."""
        return self.batch_size - self._current_batch[0].shape[0]

    def getindex(self) -> None:
        """Return None, since a loader does not expose the indices of its samples."""
        return None


__all__ = ["DataDesc", "DataIter", "DataLoaderIter"]
