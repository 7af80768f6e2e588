"""Equivalents of private helper functions of MXNet 1.9.1 that programs import; `table` lists their modules."""
from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, MutableSequence, Sequence
from typing import Any, TypeVar

import numpy as np

from .. import ndarray as nd
from ..base import integer_types, mx_real_t, numeric_types
from ..context import Context, current_context
from ..io.ndarray_iter import is_h5py
from ..ndarray import NDArray, sparse
from ..ndarray.functions import call_shared
from ..numpy import ndarray as np_ndarray
from ..ops.image.geometry import interpolation
from ..rnn.rnn_cell import BaseRNNCell
from ..runtime import Features
from ..symbol import Symbol
from ..symbol.numpy import _Symbol as NumpySymbol
from ..util import is_np_array

T = TypeVar("T")
UFUNC_DEFAULTS = {"where": True, "casting": "same_kind", "order": "K", "dtype": None, "subok": True}  # ufunc arguments that mx.np ignores
INDEX_TYPES = {"row_sparse": [np.int64], "csr": [np.int64, np.int64]}  # the types of a sparse array's index arrays


# -- lists, dicts and texts ---------------------------------------------------------------------------------------------------

def flatten(nested_list: Iterable[Iterable[T]]) -> list[T]:
    """Return the items of nested lists as one list."""
    return [item for part in nested_list for item in part]


def sorted_items(d: Mapping[Any, T]) -> list[tuple[Any, T]]:
    """Return the items of a dict, sorted by key."""
    return sorted(d.items(), key=lambda item: item[0])


def sorted_dict(d: Mapping[Any, T]) -> OrderedDict[Any, T]:
    """Return a dict sorted by key."""
    return OrderedDict(sorted_items(d))


def first_duplicate(strs: Iterable[str]) -> str | None:
    """Return the first repeated text of a list; None if there is none."""
    seen: set[str] = set()
    for text in strs:
        if text in seen:
            return text
        seen.add(text)
    return None


def extend(base_data: MutableSequence[T], new_data: Sequence[T]) -> None:
    """Append the items of another list from the first list's length on."""
    base_data.extend(new_data[len(base_data):])


def add_columns(dataframe: Any, metrics: Iterable[str]) -> None:
    """Add the missing columns of a dict's keys to a pandas data frame."""
    for name in metrics:
        if name not in dataframe.columns:
            dataframe[name] = None


# -- arrays, Symbols and numbers ----------------------------------------------------------------------------------------------

def array_ufunc(lhs: Any, rhs: Any, fn_array: Callable[..., Any], fn_scalar: Callable[..., Any], lfn_scalar: Callable[..., Any],
                rfn_scalar: Callable[..., Any] | None = None) -> Any:
    """Call the function for the kinds of the operands: two arrays, two numbers, an array and a number, or the reverse.

    Without `rfn_scalar` the reverse is `lfn_scalar` with the operands exchanged.

    Raises
    ------
    TypeError
        If `rhs` is neither.
    """
    if isinstance(lhs, numeric_types):
        return fn_scalar(lhs, rhs) if isinstance(rhs, numeric_types) else (rfn_scalar or lfn_scalar)(rhs, float(lhs))
    if isinstance(rhs, numeric_types):
        return lfn_scalar(lhs, float(rhs))
    if isinstance(rhs, NDArray):
        return fn_array(lhs, rhs)
    raise TypeError(f"an NDArray or a number expected, received {type(rhs)}")


def unary(x: Any, fn_array: Callable[..., Any], fn_scalar: Callable[..., Any], out: NumpySymbol | None = None, **kwargs: Any) -> Any:
    """Call the function for the kind of `x`: a Symbol of ``mx.sym.np`` or a number.

    Raises
    ------
    TypeError
        If it is neither.
    """
    if isinstance(x, numeric_types):
        return fn_scalar(x, **kwargs)
    if isinstance(x, NumpySymbol):
        return fn_array(x, out=out, **kwargs)
    raise TypeError(f"a Symbol of mx.sym.np or a number expected, received {type(x)}")


def check_data(inputs: Any, in_type: type | tuple[type, ...], msg: str) -> None:
    """Raise an AssertionError with `msg` unless `inputs` is of `in_type`, or a list of such."""
    if not all(isinstance(x, in_type) for x in (inputs if isinstance(inputs, list) else [inputs])):
        raise AssertionError(msg)


def _of_one_kind(params: Sequence[Any], kinds: Iterable[Any]) -> Any:
    for kind in kinds:
        if isinstance(params[0], kind):
            for other in params[1:]:
                if not isinstance(other, kind):
                    raise AssertionError(f"parameters of a distribution of one type expected, received {type(params[0])} and {type(other)}")
            return kind
    raise ValueError(f"arrays, Symbols or numbers expected as parameters of a distribution, received {type(params[0])}")


def draw(random: Callable[..., NDArray], sampler: Callable[..., NDArray], params: Sequence[Any], shape: Any, dtype: Any, ctx: Context | None,
         out: NDArray | None, kwargs: Mapping[str, Any]) -> NDArray:
    """Draw random numbers: by `sampler` for array parameters, by `random` for numbers.

    Raises
    ------
    AssertionError
        If the parameters are of both kinds.
    ValueError
        If they are of neither kind.
    """
    if _of_one_kind(params, (NDArray, numeric_types)) is NDArray:
        return sampler(*params, shape=shape, dtype=dtype, out=out, **kwargs)
    if out is None and shape is nd._internal._Null:
        shape = 1
    return random(*params, shape=shape, dtype=dtype, ctx=ctx or current_context(), out=out, **kwargs)


def draw_symbol(random: Callable[..., Symbol], sampler: Callable[..., Symbol], params: Sequence[Any], shape: Any, dtype: Any,
                kwargs: Mapping[str, Any]) -> Symbol:
    """Draw random numbers as `draw` does, for Symbols."""
    function = sampler if _of_one_kind(params, (Symbol, numeric_types)) is Symbol else random
    return function(*params, shape=shape, dtype=dtype, **kwargs)


def large_arrays() -> bool:
    """Return True if arrays may have 2**31 or more elements."""
    return Features().is_enabled("INT64_TENSOR_SIZE")


def rescale_array(rescale_grad: float | NDArray, ctx: Context | None = None) -> NDArray:
    """Return a factor of gradients as an array (1,) on a context."""
    ctx = ctx or current_context()
    return rescale_grad.as_in_context(ctx) if isinstance(rescale_grad, NDArray) else nd.full((1,), rescale_grad, ctx=ctx)


def as_classic(a: Any, allow_np: bool) -> Any:
    """Convert ``mx.np`` arrays, alone or in a list, to those of ``mx.nd``; return anything else unchanged.

    Raises
    ------
    ValueError
        If there are ``mx.np`` arrays and `allow_np` is false.
    """
    several = isinstance(a, (tuple, list))
    if not any(isinstance(x, np_ndarray) for x in (a if several else [a])):
        return a
    if not allow_np:
        raise ValueError("arrays of mx.nd expected, received some of mx.np; call as_nd_ndarray() on them, or allow them")
    return [x.as_nd_ndarray() for x in a] if several else a.as_nd_ndarray()


def reshaped_view(a: np_ndarray, *shape: int) -> np_ndarray:
    """Return an ``mx.np`` array in another shape; both share their memory."""
    return call_shared("_np_reshape", a, newshape=shape)


def check_one_kind(symbols: Iterable[Symbol]) -> type[Symbol]:
    """Return the class of Symbols, `Symbol` or that of ``mx.sym.np``.

    Raises
    ------
    TypeError
        If they are of both classes.
    """
    kinds = {isinstance(s, NumpySymbol) for s in symbols}
    if len(kinds) > 1:
        raise TypeError("Symbols of one kind expected, received some of mx.sym and some of mx.sym.np, which no graph can hold together; call "
                        "as_np_ndarray() or as_nd_ndarray() on the ones or the others")
    return NumpySymbol if kinds.pop() else Symbol


def check_np(out: Any) -> None:
    """Raise a TypeError if `out` (an array or Symbol, or a list of them) contains one that is not of ``mx.np`` or ``mx.sym.np``."""
    if isinstance(out, (list, tuple)):
        for part in out:
            check_np(part)
    elif isinstance(out, (NDArray, Symbol)) and not isinstance(out, (np_ndarray, NumpySymbol)):
        raise TypeError(f"arrays of mx.np or Symbols of mx.sym.np expected, received {type(out)}; call as_np_ndarray() on it")


def infer_input_shapes(op_name: str, data_shape: Sequence[int], kwargs: Mapping[str, Any]) -> list[tuple[int, ...]]:
    """Return the shapes of an operator's inputs, as far as they follow from the first one and the attributes."""
    from .. import symbol
    data = symbol.var("data", shape=data_shape)
    place: Any = symbol
    if is_np_array():
        place = symbol.numpy_extension
        data = data.as_np_ndarray()
    return getattr(place, op_name)(data, **kwargs).infer_shape_partial()[0]


def symbol_ufunc(lhs: Any, rhs: Any, fn_array: Callable[..., Any], fn_scalar: Callable[..., Any], lfn_scalar: Callable[..., Any],
                 rfn_scalar: Callable[..., Any] | None = None, out: NumpySymbol | None = None) -> Any:
    """Do the same as `array_ufunc` for Symbols of ``mx.sym.np``, whose functions have ``scalar=``, ``is_int=`` and ``out=``."""
    if isinstance(lhs, numeric_types):
        if isinstance(rhs, numeric_types):
            return fn_scalar(lhs, rhs, out=out)
        return (rfn_scalar or lfn_scalar)(rhs, scalar=float(lhs), is_int=isinstance(rhs, integer_types), out=out)
    if isinstance(rhs, numeric_types):
        return lfn_scalar(lhs, scalar=float(rhs), is_int=isinstance(rhs, integer_types), out=out)
    if isinstance(rhs, Symbol):
        return fn_array(lhs, rhs, out=out)
    raise TypeError(f"a Symbol or a number expected, received {type(rhs)}")


def unique_name(sym: Symbol) -> str:
    """Return a Symbol's name with the number of its output."""
    return f"{sym.name}-{sym._outputs[0][1]}"


def graph_inputs(subg: Symbol) -> list[Symbol]:
    """Return the variables of a graph, as Symbols."""
    internals = subg.get_internals()
    names = set(subg.list_inputs())
    return [internals[i] for i, name in enumerate(internals.list_outputs()) if name in names]


def interp_method(interp: int, sizes: Sequence[int] = ()) -> int:
    """Return OpenCV's number of a method of `mx.image.imresize`; 9 selects by ``(old height, old width, new height, new width)``."""
    old, new = sizes[:2], sizes[2:]
    return interpolation(interp, (old[0], old[1]) if old else None, (new[0], new[1]) if new else None)


# -- data -----------------------------------------------------------------------------------------------------------------------

def entries(data: Iterable[tuple[str, Any]], idx: Any) -> list[tuple[str, Any]]:
    """Return (name, array) pairs with copies of the entries `idx` of each array; h5py data sets are unchanged."""
    picked = []
    for name, x in data:
        if isinstance(x, sparse.CSRNDArray):
            x = sparse.array(x.asscipy()[idx], x.context)
        elif not is_h5py(x):
            x = nd.array(x.asnumpy()[idx], x.context)
        picked.append((name, x))
    return picked


def part_of_batch(data: NDArray, s: slice, batch_axis: int) -> NDArray:
    """Return the part of an array that a slice selects along an axis."""
    return data.slice_axis(axis=batch_axis, begin=s.start, end=s.stop)


# -- sparse arrays --------------------------------------------------------------------------------------------------------------

def source_array(source: Any, dtype: Any) -> NDArray | np.ndarray:
    """Return an array unchanged; convert anything else to a NumPy array.

    Raises
    ------
    TypeError
        If it can't be converted.
    """
    if isinstance(source, (NDArray, np.ndarray)):
        return source
    try:
        return np.array(source, dtype=dtype)
    except (TypeError, ValueError) as error:
        raise TypeError(f"values that make an array expected ({error})") from None


def default_type(source: Any, dtype: Any) -> Any:
    """Return `dtype` if given, else the type of an array, else float32."""
    return dtype if dtype is not None else getattr(source, "dtype", None) or mx_real_t


def check_shapes(s1: Sequence[int] | None, s2: Sequence[int] | None) -> None:
    """Raise a ValueError if both shapes are given and differ."""
    if s1 and s2 and s1 != s2:
        raise ValueError(f"one shape expected, received {s1} and {s2}")


def csr_from_parts(data: Any, indices: Any, indptr: Any, shape: tuple[int, int] | None = None, ctx: Context | None = None, dtype: Any = None,
                   indices_type: Any = None, indptr_type: Any = None) -> sparse.CSRNDArray:
    """Create a CSRNDArray from values, their columns, and the row offsets; indices are always int64, regardless of the requested types."""
    for kind in (indices_type, indptr_type):
        if kind is not None and np.dtype(kind) != np.int64:
            raise ValueError(f"CSRNDArray keeps its indices as int64, received {np.dtype(kind)}")
    return sparse.csr_matrix((data, indices, indptr), shape=shape, ctx=ctx, dtype=default_type(data, dtype))


def rows_from_parts(data: Any, indices: Any, shape: tuple[int, ...] | None = None, ctx: Context | None = None, dtype: Any = None,
                    indices_type: Any = None) -> sparse.RowSparseNDArray:
    """Create a RowSparseNDArray from rows and their numbers; these are always int64, regardless of the requested type."""
    if indices_type is not None and np.dtype(indices_type) != np.int64:
        raise ValueError(f"RowSparseNDArray keeps its indices as int64, received {np.dtype(indices_type)}")
    return sparse.row_sparse_array((data, indices), shape=shape, ctx=ctx, dtype=default_type(data, dtype))


# -- cells of mx.rnn ------------------------------------------------------------------------------------------------------------

def cells_state_shape(cells: Iterable[BaseRNNCell]) -> list[tuple[int, ...]]:
    """Return the shapes of the states of all cells."""
    return flatten(cell.state_shape for cell in cells)


def cells_state_info(cells: Iterable[BaseRNNCell]) -> list[dict[str, Any]]:
    """Return the shapes and layouts of the states of all cells."""
    return flatten(cell.state_info for cell in cells)


def cells_begin_state(cells: Iterable[BaseRNNCell], **kwargs: Any) -> list[Symbol]:
    """Return the initial states of all cells."""
    return flatten(cell.begin_state(**kwargs) for cell in cells)


def cells_unpack_weights(cells: Iterable[BaseRNNCell], args: dict[str, NDArray]) -> dict[str, NDArray]:
    """Return parameters by name, unpacked by each cell in turn."""
    for cell in cells:
        args = cell.unpack_weights(args)
    return args


def cells_pack_weights(cells: Iterable[BaseRNNCell], args: dict[str, NDArray]) -> dict[str, NDArray]:
    """Return parameters by name, packed by each cell in turn."""
    for cell in cells:
        args = cell.pack_weights(args)
    return args
