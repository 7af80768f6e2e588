"""Symbols without inputs, which create arrays, and reading Symbols from files."""
from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import files
from ..suggestions import shortened
from . import serialization
from .functions import operator_function
from .symbol import Symbol


def zeros(shape: int | Sequence[int], dtype: Any = None, **kwargs: Any) -> Symbol:
    """Return an array of zeros of the given shape, as a Symbol. Sizes of 0 are inferred from its uses."""
    return operator_function("_zeros")(shape=shape, dtype="float32" if dtype is None else dtype, **kwargs)


def ones(shape: int | Sequence[int], dtype: Any = None, **kwargs: Any) -> Symbol:
    """Return an array of ones of the given shape, as a Symbol."""
    return operator_function("_ones")(shape=shape, dtype="float32" if dtype is None else dtype, **kwargs)


def full(shape: int | Sequence[int], val: float, dtype: Any = None, **kwargs: Any) -> Symbol:
    """Return an array with the same value everywhere, as a Symbol."""
    return operator_function("_full")(shape=shape, value=float(val), dtype="float32" if dtype is None else dtype, **kwargs)


def eye(N: int, M: int = 0, k: int = 0, dtype: Any = None, **kwargs: Any) -> Symbol:
    """Return an N x M array with ones on the diagonal number `k`, as a Symbol."""
    return operator_function("_eye")(N=N, M=M, k=k, dtype="float32" if dtype is None else dtype, **kwargs)


def arange(start: float, stop: float | None = None, step: float = 1.0, repeat: int = 1, infer_range: bool = False, name: str | None = None,
           dtype: Any = None) -> Symbol:
    """Evenly spaced numbers from `start` up to, without, `stop`, as a Symbol; the length can be inferred if `infer_range`."""
    return operator_function("_arange")(start=start, stop=stop, step=step, repeat=repeat, infer_range=infer_range, name=name,
                                        dtype="float32" if dtype is None else dtype)


def linspace(start: float, stop: float, num: int, endpoint: bool = True, name: str | None = None, dtype: Any = None) -> Symbol:
    """`num` evenly spaced numbers from `start` to `stop`, as a Symbol."""
    return operator_function("_linspace")(start=start, stop=stop, num=num, endpoint=endpoint, name=name, dtype="float32" if dtype is None else dtype)


def histogram(a: Symbol, bins: Symbol | int = 10, range: Sequence[float] | None = None, **kwargs: Any) -> Symbol:
    """Counts of values between bin edges, and the edges. `bins` is a Symbol of edges, or a number together with `range`."""
    if isinstance(bins, Symbol):
        return operator_function("_histogram")(data=a, bins=bins, **kwargs)
    if not isinstance(bins, (int, np.integer)):
        raise ValueError(f"histogram: bins must be a number of bins or a Symbol of edges, received {type(bins).__name__}")
    if range is None:
        raise ValueError("histogram: a number of bins needs range=(low, high), received none: a Symbol has no values to find it from")
    return operator_function("_histogram")(data=a, bin_cnt=int(bins), range=range, **kwargs)


def split_v2(ary: Symbol, indices_or_sections: int | Sequence[int], axis: int = 0, squeeze_axis: bool = False) -> Symbol:
    """Cut along an axis into equal sections, or at the given indices."""
    if isinstance(indices_or_sections, (int, np.integer)):
        return operator_function("_split_v2")(ary, indices=(), axis=axis, squeeze_axis=squeeze_axis, sections=int(indices_or_sections))
    if isinstance(indices_or_sections, (tuple, list)):
        return operator_function("_split_v2")(ary, indices=(0, *indices_or_sections), axis=axis, squeeze_axis=squeeze_axis, sections=0)
    raise ValueError(f"indices_or_sections must be a number of parts or a tuple of indices, received {shortened(indices_or_sections)}")


def load(fname: str) -> Symbol:
    """Read a Symbol from a JSON file, of any version since 0.8.

    Raises
    ------
    MXNetError
        If the file cannot be read or holds no Symbol; the message names the file and the fault.
    """
    if not isinstance(fname, str):
        raise TypeError(f"fname need to be string, received {type(fname).__name__}")
    return Symbol(serialization.load(files.read_text(fname), fname))


def load_json(json_str: str) -> Symbol:
    """Read a Symbol from a JSON text; see `load`."""
    if not isinstance(json_str, str):
        raise TypeError(f"json_str required to be string, received {type(json_str).__name__}")
    return Symbol(serialization.load(json_str))


__all__ = ["arange", "eye", "full", "histogram", "linspace", "load", "load_json", "ones", "split_v2", "zeros"]
