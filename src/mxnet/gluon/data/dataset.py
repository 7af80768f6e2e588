"""Datasets: objects with a length and elements by index, and ways to build them."""
import os
from collections.abc import Callable
from typing import Any

from ... import recordio
from ...ndarray import NDArray
from ..utils import UsageError
from .sampler import FilterSampler, Sampler, SequentialSampler

__all__ = ["Dataset", "SimpleDataset", "ArrayDataset", "RecordFileDataset"]


class Dataset:
    """The base of datasets. A subclass has ``__getitem__``, which gives the element at an index, and ``__len__``.

    Arrays and lists serve as datasets as they are.
    """

    def __getitem__(self, idx: int) -> Any:
        raise NotImplementedError

    def __len__(self) -> int:
        raise NotImplementedError

    def filter(self, fn: Callable[[Any], Any]) -> "Dataset":
        """Return the elements for which `fn` is true, as a dataset. All elements are looked at now."""
        return _FilteredDataset(self, fn)

    def shard(self, num_shards: int, index: int) -> "Dataset":
        """One of `num_shards` parts, of sizes that differ by at most 1, as a dataset. Shard before you shuffle.

        Raises
        ------
        UsageError
            If there is no such part.

        Example
        -------
        >>> from mxnet.gluon.data import SimpleDataset
        >>> list(SimpleDataset([1, 2, 3, 4, 5]).shard(2, 0))
        [1, 2, 3]
        """
        if index >= num_shards:
            raise UsageError(f"Shard index of out bound: {index} out of {num_shards}")
        if index < 0:
            raise UsageError(f"Index must be non-negative, received {index}")
        size, larger = divmod(len(self), num_shards)
        start = size * index + min(index, larger)
        return _SampledDataset(self, SequentialSampler(size + (index < larger), start))

    def take(self, count: int | None) -> "Dataset":
        """Return the first `count` elements as a dataset; all of them if there are fewer or `count` is None."""
        count = len(self) if count is None else min(count, len(self))
        return _SampledDataset(self, SequentialSampler(count))

    def sample(self, sampler: Any) -> "Dataset":
        """Return the elements that a sampler chooses, as a dataset.

        Raises
        ------
        TypeError
            If `sampler` is no `Sampler`.
        """
        if not isinstance(sampler, Sampler):
            raise TypeError(f"Invalid sampler type: {type(sampler)}. Expected gluon.data.Sampler instead.")
        return _SampledDataset(self, sampler)

    def transform(self, fn: Callable[..., Any], lazy: bool = True) -> "Dataset":
        """Return a dataset whose elements are the results of `fn` on this one's.

        Parameters
        ----------
        fn : callable
            Receives an element; the parts of a tuple as arguments.
        lazy : bool
            Compute at each access to an element, as random transforms need; otherwise once, now.
        """
        lazily = _LazyTransformDataset(self, fn)
        return lazily if lazy else SimpleDataset([lazily[i] for i in range(len(lazily))])

    def transform_first(self, fn: Callable[[Any], Any], lazy: bool = True) -> "Dataset":
        """Return a dataset whose elements' first part, usually the data before a label, went through `fn`; see `transform`.

        Example
        -------
        >>> from mxnet.gluon.data import ArrayDataset
        >>> ArrayDataset([1, 2], [10, 20]).transform_first(lambda x: x * 3)[1]
        (6, 20)
        """
        return self.transform(_TransformFirstClosure(fn), lazy)


class SimpleDataset(Dataset):
    """A list or anything else with a length and elements by index.

    Parameters
    ----------
    data : list or array
    """

    def __init__(self, data: list[Any] | Any) -> None:
        self._data = data

    def __getitem__(self, idx: int) -> Any:
        return self._data[idx]

    def __len__(self) -> int:
        return len(self._data)


class _LazyTransformDataset(SimpleDataset):
    def __init__(self, data: Any, fn: Callable[[Any], Any]) -> None:
        super().__init__(data)
        self._fn = fn

    def __getitem__(self, idx: int) -> Any:
        item = super().__getitem__(idx)
        return self._fn(*item) if isinstance(item, tuple) else self._fn(item)


class _TransformFirstClosure:
    """A function applied to the first part of each element; a class, so that it can be pickled."""

    def __init__(self, fn: Callable[[Any], Any]) -> None:
        self._fn = fn

    def __call__(self, x: Any, *rest: Any) -> Any:
        return (self._fn(x), *rest) if rest else self._fn(x)


class _SampledDataset(Dataset):
    def __init__(self, dataset: Any, sampler: Any) -> None:
        self._dataset = dataset
        self._indices = list(sampler)

    def __len__(self) -> int:
        return len(self._indices)

    def __getitem__(self, idx: int) -> Any:
        return self._dataset[self._indices[idx]]


class ArrayDataset(Dataset):
    """Several arrays or datasets of one length, zipped: the element at `i` is ``(a[i], b[i], ...)``, or ``a[i]`` of a lone one.

    Parameters
    ----------
    *args
        The arrays.

    Raises
    ------
    UsageError
        If there are none, or their lengths differ.
    """

    def __init__(self, *args: Any) -> None:
        if not args:
            raise UsageError("Needs at least 1 arrays, received none")
        self._length = len(args[0])
        for i, data in enumerate(args):
            if len(data) != self._length:
                raise UsageError(f"ArrayDataset: arrays of one length expected, received {self._length} items in the first and "
                                 f"{len(data)} in array {i}")
        # Labels come as numpy scalars, which are made much faster than arrays.
        self._data = [data.asnumpy() if isinstance(data, NDArray) and data.ndim == 1 else data for data in args]

    def __getitem__(self, idx: int) -> Any:
        if len(self._data) == 1:
            return self._data[0][idx]
        return tuple(data[idx] for data in self._data)

    def __len__(self) -> int:
        return self._length


class RecordFileDataset(Dataset):
    """The records of a RecordIO file, as bytes. The index is beside it, with the ending ``.idx``.

    Parameters
    ----------
    filename : str
        The ``.rec`` file.

    Raises
    ------
    MXNetError
        If a file is missing or damaged; the text names it.
    """

    def __init__(self, filename: str) -> None:
        self.filename = filename
        self.idx_file = os.path.splitext(filename)[0] + ".idx"
        self._record = recordio.MXIndexedRecordIO(self.idx_file, self.filename, "r")

    def __len__(self) -> int:
        return len(self._record.keys)

    def __getitem__(self, idx: int) -> Any:
        return self._record.read_idx(self._record.keys[idx])


class _FilteredDataset(_SampledDataset):
    """The elements of a dataset for which a function is true."""

    def __init__(self, dataset: Dataset, fn: Callable[[Any], Any]) -> None:
        super().__init__(dataset, FilterSampler(fn, dataset))


class _DownloadedDataset(Dataset):
    """The base of published datasets: all data in memory, read from files in a folder by ``_get_data``."""

    def __init__(self, root: str, transform: Callable[..., Any] | None) -> None:
        self._transform = transform
        self._data: Any = None
        self._label: Any = None
        self._root = os.path.expanduser(root)
        os.makedirs(self._root, exist_ok=True)
        self._get_data()

    def __getitem__(self, idx: int) -> Any:
        sample = self._data[idx], self._label[idx]
        return self._transform(*sample) if self._transform is not None else sample

    def __len__(self) -> int:
        return len(self._label)

    def _get_data(self) -> None:
        raise NotImplementedError
