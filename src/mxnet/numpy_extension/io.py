"""Files of ``mx.np`` arrays."""
from typing import Any

from ..ndarray import NDArray
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
