"""DLPack capsules of ``mx.np`` arrays."""
from typing import Any

from ..numpy.creation import from_dlpack
from ..numpy.multiarray import ndarray

__all__ = ["from_dlpack", "to_dlpack_for_read", "to_dlpack_for_write"]


def to_dlpack_for_read(data: ndarray) -> Any:
    """Return a DLPack capsule that shares the memory of an array, for readers.

    Example
    -------
    >>> mx.npx.from_dlpack(mx.npx.to_dlpack_for_read(mx.np.ones(2)))
    array([1., 1.])
    """
    return data.to_dlpack_for_read()


def to_dlpack_for_write(data: ndarray) -> Any:
    """Return a DLPack capsule that shares the memory of an array, for writers.

    Example
    -------
    >>> x = mx.np.zeros(2)
    >>> y = mx.npx.from_dlpack(mx.npx.to_dlpack_for_write(x))
    >>> y[0] = 1
    >>> x
    array([1., 0.])
    """
    return data.to_dlpack_for_write()
