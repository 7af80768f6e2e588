"""Files of ``mx.np`` arrays."""
from typing import Any

from ..ndarray import NDArray
from ..ndarray.creation import from_numpy as _from_numpy
from ..ndarray.serialization import load as _load
from ..ndarray.serialization import save as _save
from ..numpy.multiarray import ndarray


def save(file: str, arr: ndarray | list[ndarray] | dict[str, ndarray]) -> None:
    """Write arrays to a file in MXNet's ``.params`` format.

    Parameters
    ----------
    arr : ndarray, list of ndarray, or dict of str to ndarray

    Raises
    ------
    TypeError
        If something else is to be saved, an ``mx.nd`` array included.
    """
    arr = [arr] if isinstance(arr, NDArray) else arr
    items = arr.values() if isinstance(arr, dict) else arr
    if not isinstance(arr, (dict, list, tuple)) or any(not isinstance(x, ndarray) for x in items):
        raise TypeError("npx.save takes an mx.np.ndarray, or a list or dict of them; use mx.nd.save for mx.nd arrays")
    _save(file, {k: v.as_nd_ndarray() for k, v in arr.items()} if isinstance(arr, dict) else [x.as_nd_ndarray() for x in arr])


def load(file: str) -> Any:
    """The arrays of a file: a list, or a dict if they have names."""
    found = _load(file)
    if isinstance(found, dict):
        return {k: _as_np(v) for k, v in found.items()}
    return [_as_np(v) for v in found]


def _as_np(array: NDArray | None) -> Any:
    return None if array is None else array.as_np_ndarray()  # None was saved before its shape was known


def from_numpy(array: Any, zero_copy: bool = True) -> ndarray:
    """An array with the values of one of NumPy, whose memory it shares unless `zero_copy` is False; the official array can't be written to then.

    Example
    -------
    >>> import numpy
    >>> mx.npx.from_numpy(numpy.ones(2, 'float32'))
    array([1., 1.])
    """
    return _from_numpy(array, zero_copy).as_np_ndarray()


def to_dlpack_for_read(data: ndarray) -> Any:
    """A DLPack capsule that shares the memory of an array, for readers."""
    return data.to_dlpack_for_read()


def to_dlpack_for_write(data: ndarray) -> Any:
    """A DLPack capsule that shares the memory of an array, for writers."""
    return data.to_dlpack_for_write()
