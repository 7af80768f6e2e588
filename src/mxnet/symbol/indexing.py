"""The indexing of an array as a Symbol, for computations that were recorded with arrays."""
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..base import MXNetError
from ..ndarray import NDArray, indexing
from ..ops.registry import get
from .compose import create
from .symbol import Symbol


def index(data: Symbol, arrays: Sequence[Symbol | None], variable: Callable[[], Symbol], key: Any, shape: tuple[int, ...],
          result: tuple[int, ...]) -> Symbol:
    """Return the Symbol of ``x[key]``.

    Parameters
    ----------
    data : Symbol
        The Symbol that computes `x`, an array of `shape`.
    arrays : list of Symbol and None
        The Symbols of the NDArrays in `key`, in their order; None for one that is not part of the computation.
    variable : callable
        Makes a variable for indices that are not part of the computation.
    key
        The key between the brackets.
    result : tuple of int
        The shape of ``x[key]``.

    Raises
    ------
    MXNetError
        If computed indices stand apart, or select by a mask besides others.
    """
    if indexing.is_basic(key):
        return _basic(data, key, shape, result)
    if all(a is None for a in arrays):
        return _call("gather_nd", data, variable())
    given = key if isinstance(key, tuple) else (key,)
    if len(given) == 1 and arrays[0] is not None and given[0].dtype == np.bool_:
        return _call("_contrib_boolean_mask", _reshape(data, (-1, *shape[given[0].ndim:])), _reshape(arrays[0], (-1,)))
    keys = indexing.expand(key, len(shape))
    while isinstance(keys[-1], slice) and keys[-1] == slice(None):
        keys = keys[:-1]
    first = min(i for i, k in enumerate(keys) if not isinstance(k, slice))
    masks = any(isinstance(k, NDArray) and k.dtype == np.bool_ for k in keys)
    if masks or any(k is None for k in keys) or any(isinstance(k, slice) for k in keys[first:]):
        raise MXNetError(f"get_symbol: computed indices that stand apart, or beside None or a mask, have no counterpart in a Symbol; received {key}")
    common = result[:len(result) - len(shape) + len(keys)]
    symbols = iter(arrays)
    computed = [next(symbols) if isinstance(k, NDArray) else None for k in keys]
    rows = [variable() if row is None else _call("_npi_broadcast_to", row, shape=common) for row in computed]
    return _call("gather_nd", data, _call("stack", *rows, axis=0, num_args=len(rows)))


def _basic(data: Symbol, key: Any, shape: tuple[int, ...], result: tuple[int, ...]) -> Symbol:
    begin: list[int | None] = []
    end: list[int | None] = []
    step: list[int | None] = []
    sliced: list[int] = []
    for k in indexing.expand(key, len(shape)):
        if k is None:
            continue
        size = shape[len(sliced)]
        if isinstance(k, slice):
            first, last, by, count = indexing.normalize_slice(k, size)
        else:
            first = indexing.check_integer(k, len(sliced), size)
            last, by, count = first + 1, 1, 1
        everything = count == size and by == 1
        begin.append(None if everything else first)
        end.append(None if everything or last < 0 else last)
        step.append(None if by == 1 else by)
        sliced.append(count)
    if any(b is not None for b in begin):
        used = max(i for i, b in enumerate(begin) if b is not None) + 1
        data = _call("slice", data, begin=tuple(begin[:used]), end=tuple(end[:used]), step=tuple(step[:used]) if any(step) else ())
    return data if tuple(sliced) == result else _reshape(data, result)


def _reshape(data: Symbol, shape: tuple[int, ...]) -> Symbol:
    return _call("Reshape", data, shape=shape) if shape else _call("_np_reshape", data, newshape=shape)


def _call(name: str, *inputs: Symbol, **attributes: Any) -> Symbol:
    return create(get(name), list(inputs), attributes)


__all__ = ["index"]
