"""Unique elements in the form of the array API standard, as MXNet 2.0 has them."""
from typing import Any, NamedTuple

from .frontend import TABLE, arrays
from .multiarray import ndarray


class UniqueAll(NamedTuple):
    """The result of `unique_all`."""

    values: ndarray
    indices: ndarray
    inverse_indices: ndarray
    counts: ndarray


class UniqueInverse(NamedTuple):
    """The result of `unique_inverse`."""

    values: ndarray
    inverse_indices: ndarray


def _unique(x: ndarray, *wanted: bool) -> Any:
    return TABLE[""]["unique"](arrays, x, *wanted)


def unique_all(x: ndarray) -> UniqueAll:
    """Return the unique elements in ascending order, the index of the first of each, the number of each element among them, and the counts.

    The numbers are those of the elements of the flattened array, in one axis; `mxnet.numpy.array_api.unique_all` gives them the shape of `x`.

    Example
    -------
    >>> mx.np.unique_all(mx.np.array([3, 1, 3])).counts
    array([1, 2], dtype=int64)
    """
    return UniqueAll(*_unique(x, True, True, True))


def unique_inverse(x: ndarray) -> UniqueInverse:
    """Return the unique elements in ascending order, and the number of each element of the flattened array among them; see `unique_all`.

    Example
    -------
    >>> mx.np.unique_inverse(mx.np.array([3, 1, 3])).inverse_indices
    array([1, 0, 1], dtype=int64)
    """
    return UniqueInverse(*_unique(x, False, True))


def unique_values(x: ndarray) -> ndarray:
    """Return the unique elements in ascending order.

    Example
    -------
    >>> mx.np.unique_values(mx.np.array([3, 1, 3]))
    array([1., 3.])
    """
    return _unique(x)
