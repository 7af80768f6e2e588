"""Files of ``mx.np`` arrays."""
from typing import Any

from .. import files
from ..ndarray import NDArray
from ..ndarray.serialization import load as _load
from ..ndarray.serialization import save as _save
from ..numpy.multiarray import ndarray
from ..suggestions import type_names


def save(file: str, arr: ndarray | list[ndarray] | dict[str, ndarray]) -> None:
    """Write arrays to a file: in the format of safetensors if it is called ``.safetensors``, else in MXNet's ``.params``.

    After ``mx.util.set_version('2.0')`` files called ``.npz``, and ``.npy`` for one array, have NumPy's formats.

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
        raise TypeError("npx.save takes an mx.np.ndarray, or a list or dict of them, received "
                        f"{type_names(items if isinstance(arr, (dict, list, tuple)) else [arr])}; use mx.nd.save for mx.nd arrays")
    _save(file, {k: v.as_nd_ndarray() for k, v in arr.items()} if isinstance(arr, dict) else [x.as_nd_ndarray() for x in arr])


def savez(file: str, *args: ndarray, **kwds: ndarray) -> None:
    """Write arrays to a file in NumPy's ``.npz`` format, whatever the file is called: `args` as ``arr_0``, ``arr_1``, ..., and `kwds` by name.

    Raises
    ------
    TypeError
        If something else than ``mx.np`` arrays is to be saved.
    ValueError
        If one of `kwds` is called as one of `args`.

    Example
    -------
    >>> import os, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), 'a.npz')
    >>> mx.npx.savez(path, mx.np.ones((2,)), bias=mx.np.zeros((1,)))
    >>> mx.npx.load(path)
    {'arr_0': array([1., 1.]), 'bias': array([0.])}
    """
    from ..ndarray import npz
    arrays = {f"arr_{i}": array for i, array in enumerate(args)}
    if taken := sorted(set(arrays) & set(kwds)):
        raise ValueError(f"savez: two arrays are called {taken[0]!r}")
    arrays.update(kwds)
    for name, array in arrays.items():
        if not isinstance(array, ndarray):
            raise TypeError(f"npx.savez takes mx.np arrays, received {type(array).__name__} as {name}; use mx.nd.save for mx.nd arrays")
    with files.atomic_write(file) as f:
        npz.write(f, arrays.items())


def load(file: str) -> Any:
    """Read the arrays of a file: a list, a dict if they have names, or one array from ``.npy``."""
    loaded = _load(file)
    if isinstance(loaded, dict):
        return {k: _as_np(v) for k, v in loaded.items()}
    return [_as_np(v) for v in loaded] if isinstance(loaded, list) else _as_np(loaded)


def _as_np(array: NDArray | None) -> Any:
    return None if array is None else array.as_np_ndarray()  # None was saved before its shape was known
