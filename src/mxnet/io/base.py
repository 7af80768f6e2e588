"""The interface of data iterators: batches, their descriptions, and the base class of all iterators."""
import collections
from collections.abc import Iterable
from typing import Any

import numpy as np

from ..base import mx_real_t

__all__ = ["DataBatch", "DataDesc", "DataIter"]


class DataDesc(collections.namedtuple("DataDesc", ["name", "shape"])):
    """Name, shape, type and layout of one input.

    It compares and unpacks as the pair (name, shape).

    Parameters
    ----------
    name : str
    shape : tuple of int
    dtype : type or str
    layout : str
        A letter for each axis; ``N`` is the one along which examples are counted.

    Example
    -------
    >>> import mxnet as mx
    >>> mx.io.DataDesc('data', (32, 3, 28, 28), 'uint8')
    DataDesc[data,(32, 3, 28, 28),uint8,NCHW]
    """

    dtype: Any
    layout: str | None

    def __new__(cls, name: str, shape: tuple[int, ...], dtype: Any = mx_real_t, layout: str | None = "NCHW") -> "DataDesc":
        self = super().__new__(cls, name, shape)
        self.dtype, self.layout = dtype, layout
        return self

    def __getnewargs__(self) -> tuple[Any, ...]:
        return self.name, self.shape, self.dtype, self.layout

    def __repr__(self) -> str:
        return f"DataDesc[{self.name},{self.shape},{self.dtype},{self.layout}]"

    @staticmethod
    def get_batch_axis(layout: str | None) -> int:
        """Return the batch axis of a layout; 0 for None, -1 if there is none."""
        return 0 if layout is None else layout.find("N")

    @staticmethod
    def get_list(shapes: Iterable[tuple[str, tuple[int, ...]]], types: Iterable[tuple[str, Any]] | None) -> list["DataDesc"]:
        """Return descriptions for (name, shape) pairs and, if `types` is not None, (name, type) pairs."""
        if types is None:
            return [DataDesc(name, shape) for name, shape in shapes]
        type_of = dict(types)
        return [DataDesc(name, shape, type_of[name]) for name, shape in shapes]


class DataBatch:
    """One batch of examples.

    Parameters
    ----------
    data : list of NDArray
    label : list of NDArray, optional
    pad : int, optional
        The number of padding examples at the end of the batch.
    index : numpy.ndarray, optional
        The numbers of the examples.
    bucket_key : optional
        The batch's bucket in a BucketingModule.
    provide_data, provide_label : list of DataDesc, optional
        The descriptions of the arrays, if they differ between batches.

    Raises
    ------
    TypeError
        If `data` or `label` is not a list.

    Example
    -------
    >>> batch = mx.io.DataBatch(data=[mx.nd.ones((2, 3))], label=[mx.nd.zeros(2)], pad=0)
    >>> batch.data[0].shape, batch.pad
    ((2, 3), 0)
    """

    def __init__(self, data: list[Any], label: list[Any] | None = None, pad: int | None = None, index: Any = None,
                 bucket_key: Any = None, provide_data: list[DataDesc] | None = None, provide_label: list[DataDesc] | None = None) -> None:
        for name, value in (("data", data), ("label", label)):
            if value is not None and not isinstance(value, (list, tuple)):
                raise TypeError(f"{name} must be a list of NDArrays, received {type(value).__name__}; write [x] for one array")
        self.data, self.label, self.pad, self.index = data, label, pad, index
        self.bucket_key, self.provide_data, self.provide_label = bucket_key, provide_data, provide_label

    def __str__(self) -> str:
        labels = [label.shape for label in self.label] if self.label else None
        return f"{type(self).__name__}: data shapes: {[d.shape for d in self.data or ()]} label shapes: {labels}"


class DataIter:
    """The base class of data iterators.

    A subclass defines `provide_data` and `provide_label` (lists of DataDesc) and either `next`, or `iter_next` with `getdata`,
    `getlabel`, `getpad` and `getindex`. An epoch ends with StopIteration; `reset` starts the next one.

    Parameters
    ----------
    batch_size : int

    Example
    -------
    >>> class Ones(mx.io.DataIter):
    ...     count = 0
    ...
    ...     def next(self):
    ...         self.count += 1
    ...         if self.count > 2:
    ...             raise StopIteration
    ...         return mx.io.DataBatch([mx.nd.ones((self.batch_size, 3))])
    >>> [batch.data[0].shape for batch in Ones(batch_size=4)]
    [(4, 3), (4, 3)]
    """

    # Lists of DataDesc, or of pairs; a subclass defines them as attributes or as properties, which `Any` allows.
    provide_data: Any
    provide_label: Any

    def __init__(self, batch_size: int = 0) -> None:
        self.batch_size = batch_size

    def __iter__(self) -> "DataIter":
        return self

    def __next__(self) -> DataBatch:
        return self.next()

    def reset(self) -> None:
        """Return to the beginning of the data."""

    def next(self) -> DataBatch:
        """Return the next batch.

        Raises
        ------
        StopIteration
            At the end of the data.
        """
        if not self.iter_next():
            raise StopIteration
        return DataBatch(data=self.getdata(), label=self.getlabel(), pad=self.getpad(), index=self.getindex())

    def iter_next(self) -> Any:
        """Advance to the next batch; return True if there is one."""

    def getdata(self) -> Any:
        """Return the data of the current batch, a list of NDArray."""

    def getlabel(self) -> Any:
        """Return the labels of the current batch, a list of NDArray."""

    def getindex(self) -> np.ndarray | None:
        """Return the numbers of the examples of the current batch, or None."""
        return None

    def getpad(self) -> int | None:
        """Return the number of padding examples of the current batch."""
