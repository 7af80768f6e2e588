"""Operators on sparse arrays that need no fallback to dense ones, with MXNet's rules for the result's storage type."""
from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch

from ...base import MXNetError
from ...ops.storage import check_rows
from .. import dispatch
from ..ndarray import NDArray
from .arrays import CSRNDArray, RowSparseNDArray, cast_storage, summed_rows
from .creation import zeros
from .dispatch import coordinates, csr_from_coordinates, densified_call, error_kernel, kernel
from .rows import Taken

if TYPE_CHECKING:
    from ...ops.registry import Operator

_ZERO = torch.zeros(1, dtype=torch.float64)


# -- one array --------------------------------------------------------------------------------------------------------------------

# f(0) = 0: only the stored values need computing.
@kernel("abs", "sign", "rint", "ceil", "floor", "trunc", "fix", "square", "sqrt", "cbrt", "sin", "tan", "arcsin", "arctan", "sinh", "tanh",
        "arcsinh", "arctanh", "expm1", "log1p", "degrees", "radians", "relu", "negative", "_copy", "round", "_mul_scalar", "_div_scalar", "BlockGrad",
        "make_loss", "_contrib_gradientmultiplier", "_contrib_backward_gradientmultiplier", row_by_row=True)
def on_values(op: Operator, arrays: Sequence[Any], attributes: dict[str, Any]) -> Any:
    a, = arrays
    values = op.raw(a._values, **attributes)
    return a._like(values.clone() if values.data_ptr() == a._values.data_ptr() else values)


@kernel("_scatter_plus_scalar", "_scatter_minus_scalar", masked=True)
def on_stored_values(op: Operator, arrays: Sequence[Any], attributes: dict[str, Any]) -> Any:
    a, = arrays
    return a._like(op.raw(a._values, **attributes))


@kernel("_plus_scalar", "_minus_scalar", "_equal_scalar", "_not_equal_scalar", "_greater_scalar", "_greater_equal_scalar", "_lesser_scalar",
        "_lesser_equal_scalar", "clip")
def preserves_zeros(op: Operator, arrays: Sequence[Any], attributes: dict[str, Any]) -> Any:
    if op.raw(_ZERO, **attributes).item() != 0:
        return NotImplemented
    return on_values(op, arrays, attributes)


@kernel("_contrib_quadratic")
def quadratic(op: Operator, arrays: Sequence[Any], attributes: dict[str, Any]) -> Any:
    if not isinstance(arrays[0], CSRNDArray):
        return NotImplemented
    return preserves_zeros(op, arrays, attributes)


@kernel("zeros_like")
def zeros_like(op: Operator, arrays: Sequence[Any], attributes: dict[str, Any]) -> Any:
    a, = arrays
    return zeros(a.stype, a.shape, ctx=a._ctx, dtype=a.dtype)


@kernel("cast_storage", differentiable=True)
def cast(op: Operator, arrays: Sequence[Any], attributes: dict[str, Any]) -> Any:
    return cast_storage(arrays[0], attributes["stype"])


@kernel("_identity_with_attr_like_rhs")
def like_rhs(op: Operator, arrays: Sequence[Any], attributes: dict[str, Any]) -> Any:
    lhs, rhs = arrays
    return cast_storage(lhs, rhs.stype) if lhs.stype != rhs.stype else lhs._like(lhs._values.clone())


# -- two arrays of one shape ------------------------------------------------------------------------------------------------------

@kernel("elemwise_add", "elemwise_sub", "_grad_add")
def sum_of_two(op: Operator, arrays: Sequence[Any], attributes: dict[str, Any]) -> Any:
    a, b = arrays
    if a.shape != b.shape:
        return NotImplemented
    sign = -1 if op.name == "elemwise_sub" else 1
    if a.stype == b.stype:
        if isinstance(a, RowSparseNDArray):
            rows, values = summed_rows([a._aux[0], b._aux[0]], [a._values, b._values * sign if sign < 0 else b._values])
            return RowSparseNDArray._make(values, [rows], a.shape, a._ctx)
        return _union(op, a, b)
    if op.name == "_grad_add" or a._is_sparse and b._is_sparse:
        return NotImplemented
    dense, sparse = (a, b) if b._is_sparse else (b, a)
    total = dense._raw().clone() if sparse is b or sign > 0 else -dense._raw()
    _add_stored(total, sparse, sign if sparse is b else 1)
    return NDArray._new(total, a._ctx)


def _add_stored(total: torch.Tensor, sparse: Any, sign: int = 1) -> None:
    """Add the stored values of a sparse array to a dense tensor."""
    if isinstance(sparse, CSRNDArray):
        total.index_put_(coordinates(sparse), sparse._values * sign, accumulate=True)
    else:
        total.index_add_(0, sparse._aux[0].to(torch.int64), sparse._values, alpha=sign)


@kernel("_maximum", "_minimum", "_hypot")
def of_two(op: Operator, arrays: Sequence[Any], attributes: dict[str, Any]) -> Any:
    a, b = arrays
    if a.stype != b.stype or a.shape != b.shape:
        return NotImplemented
    return _union(op, a, b)


@kernel("elemwise_mul")
def product(op: Operator, arrays: Sequence[Any], attributes: dict[str, Any]) -> Any:
    a, b = arrays
    if a.shape != b.shape:
        return NotImplemented
    if a.stype == b.stype:
        # MXNet keeps all rows that either has, but of matrices only the places that both have.
        return _union(op, a, b) if isinstance(a, RowSparseNDArray) else _intersection(a, b)
    if a._is_sparse and b._is_sparse:
        return NotImplemented
    sparse, dense = (a, b) if a._is_sparse else (b, a)
    return sparse._like(sparse._values * _stored_places(dense._raw(), sparse))


@kernel("_scatter_elemwise_div", masked=True)
def scatter_div(op: Operator, arrays: Sequence[Any], attributes: dict[str, Any]) -> Any:
    a, b = arrays
    if not isinstance(a, RowSparseNDArray):
        return NotImplemented
    rows = a._aux[0].to(torch.int64)
    divisor = b._rows(rows) if isinstance(b, RowSparseNDArray) else b._raw()[rows]
    return a._like(op.raw(a._values, divisor))


def _stored_places(dense: torch.Tensor, sparse: Any) -> torch.Tensor:
    """Return the entries of a dense tensor at the places where a sparse array stores values."""
    if isinstance(sparse, CSRNDArray):
        return dense[coordinates(sparse)]
    return dense[sparse._aux[0].to(torch.int64)]


def _union(op: Operator, a: Any, b: Any) -> Any:
    """An operator of two arrays stored alike, for which f(0, 0) = 0, wherever either stores something."""
    if isinstance(a, RowSparseNDArray):
        rows = torch.unique(torch.cat([a._aux[0], b._aux[0]]))
        return RowSparseNDArray._make(op.raw(a._rows(rows), b._rows(rows)), [rows], a.shape, a._ctx)
    width = max(a.shape[1], 1)
    keys = [rows * width + columns for rows, columns in (coordinates(a), coordinates(b))]
    places, inverse = torch.unique(torch.cat(keys), return_inverse=True)
    sides = []
    for values, where in zip((a._values, b._values), inverse.split([len(k) for k in keys])):
        sides.append(values.new_zeros(len(places)).index_add_(0, where, values))
    result = op.raw(*sides)
    result, places = result[result != 0], places[result != 0]
    return csr_from_coordinates(result, places // width, places % width, a.shape, a._ctx)


def _intersection(a: Any, b: Any) -> CSRNDArray:
    width = max(a.shape[1], 1)
    (ka, va), (kb, vb) = [((m._row_numbers() * width + m._aux[1]).sort(), m._values) for m in (a, b)]
    if not len(kb.values):
        return zeros("csr", a.shape, ctx=a._ctx, dtype=a.dtype)
    at = torch.searchsorted(kb.values, ka.values).clamp_(max=len(kb.values) - 1)
    both = kb.values[at] == ka.values
    places = ka.values[both]
    return csr_from_coordinates(va[ka.indices[both]] * vb[kb.indices[at[both]]], places // width, places % width, a.shape, a._ctx)


@kernel("broadcast_mul", "broadcast_div")
def broadcast(op: Operator, arrays: Sequence[Any], attributes: dict[str, Any]) -> Any:
    a, b = arrays
    if not isinstance(a, CSRNDArray) or b._is_sparse or b.ndim > 2:
        return NotImplemented
    factor = b._raw()
    try:
        factor = factor.expand(a.shape)
    except RuntimeError:
        return NotImplemented  # the result is larger than the matrix, or there is none
    return a._like(op.raw(a._values, factor[coordinates(a)]))


@kernel("add_n")
def add_n(op: Operator, arrays: Sequence[Any], attributes: dict[str, Any]) -> Any:
    if all(isinstance(a, RowSparseNDArray) for a in arrays):
        rows, values = summed_rows([a._aux[0] for a in arrays], [a._values for a in arrays])
        return RowSparseNDArray._make(values, [rows], arrays[0].shape, arrays[0]._ctx)
    if any(isinstance(a, CSRNDArray) for a in arrays):
        return NotImplemented
    total = torch.zeros(arrays[0].shape, dtype=arrays[0]._values.dtype if arrays[0]._is_sparse else arrays[0]._data.dtype,
                        device=arrays[0]._ctx.torch_device)
    for a in arrays:
        if a._is_sparse:
            _add_stored(total, a)
        else:
            total += a._raw()
    return NDArray._new(total, arrays[0]._ctx)


@kernel("where")
def where(op: Operator, arrays: Sequence[Any], attributes: dict[str, Any]) -> Any:
    condition, x, y = arrays
    if not isinstance(condition, CSRNDArray) or x._is_sparse or y._is_sparse or not condition.shape == x.shape == y.shape:
        return NotImplemented
    rows, columns = coordinates(condition)
    true = condition._values != 0
    rows, columns = rows[true], columns[true]
    result = y._raw().clone()
    result[rows, columns] = x._raw()[rows, columns]
    return NDArray._new(result, y._ctx)


# -- sums -------------------------------------------------------------------------------------------------------------------------

@kernel("sum", "mean")
def reduce(op: Operator, arrays: Sequence[Any], attributes: dict[str, Any]) -> Any:
    a, = arrays
    if attributes.get("exclude") or isinstance(a, RowSparseNDArray):
        return NotImplemented
    axis, keepdims = attributes.get("axis"), attributes.get("keepdims")
    axis = axis[0] if isinstance(axis, tuple) and len(axis) == 1 else axis
    if axis in (None, ()):
        total = a._values.sum().reshape((1, 1) if keepdims else (1,))
        count = a.size
    elif axis in (0, 1, -1, -2):
        axis %= 2
        total = a._values.new_zeros(a.shape[1 - axis])
        total.index_add_(0, coordinates(a)[1 - axis], a._values)
        total, count = total.unsqueeze(axis) if keepdims else total, a.shape[axis]
    else:
        return NotImplemented
    return NDArray._new(total / count if op.name == "mean" else total, a._ctx)


@kernel("norm")
def norm(op: Operator, arrays: Sequence[Any], attributes: dict[str, Any]) -> Any:
    a, = arrays
    if attributes.get("axis") not in (None, ()) or attributes.get("ord", 2) != 2 or attributes.get("out_dtype") is not None:
        return NotImplemented
    result = op.raw(a._values.reshape(-1))
    return NDArray._new(result.reshape([1] * a.ndim if attributes.get("keepdims") else [1]), a._ctx)


@kernel("_square_sum", row_by_row=True)
def square_sum(op: Operator, arrays: Sequence[Any], attributes: dict[str, Any]) -> Any:
    a, = arrays
    axis, keepdims = attributes.get("axis"), attributes.get("keepdims")
    axis = axis[0] if isinstance(axis, tuple) and len(axis) == 1 else axis
    if not isinstance(a, RowSparseNDArray) or a.ndim != 2 or axis not in (0, 1):
        return NotImplemented
    squares = a._values.square().sum(axis, keepdim=bool(keepdims))
    if axis == 0:
        return NDArray._new(squares, a._ctx)
    result = RowSparseNDArray._make(squares, [a._aux[0].clone()], (a.shape[0], 1) if keepdims else a.shape[:1], a._ctx)
    return result if keepdims else NDArray._new(result._dense(), a._ctx)


# -- parts ------------------------------------------------------------------------------------------------------------------------

@kernel("slice")
def slice_csr(op: Operator, arrays: Sequence[Any], attributes: dict[str, Any]) -> Any:
    a, = arrays
    if not isinstance(a, CSRNDArray) or attributes.get("step"):
        return NotImplemented
    bounds = []
    for size, begin, end in zip(a.shape, _padded(attributes["begin"]), _padded(attributes["end"])):
        begin, end, _ = slice(begin, end).indices(size)
        if end <= begin:
            return NotImplemented
        bounds.append((begin, end))
    (top, bottom), (left, right) = bounds
    part = a[top:bottom]
    if (left, right) == (0, a.shape[1]):
        return part
    rows, columns = coordinates(part)
    inside = (columns >= left) & (columns < right)
    return csr_from_coordinates(part._values[inside], rows[inside], columns[inside] - left, (bottom - top, right - left), a._ctx)


def _padded(bounds: tuple[int | None, ...]) -> tuple[int | None, ...]:
    return (*bounds, None)[:2] if len(bounds) < 2 else bounds[:2]


@kernel("Concat")
def concat(op: Operator, arrays: Sequence[Any], attributes: dict[str, Any]) -> Any:
    if attributes.get("dim", 1) != 0 or not all(isinstance(a, CSRNDArray) for a in arrays):
        return NotImplemented
    if len({a.shape[1] for a in arrays}) != 1:
        raise MXNetError(f"{op.name}: matrices put below each other must have as many columns, received shapes "
                         f"{', '.join(str(a.shape) for a in arrays)}")
    starts, total = [arrays[0]._aux[0]], int(arrays[0]._aux[0][-1])
    for a in arrays[1:]:
        starts.append(a._aux[0][1:] + total)
        total += int(a._aux[0][-1])
    shape = (sum(a.shape[0] for a in arrays), arrays[0].shape[1])
    return CSRNDArray._make(torch.cat([a._values for a in arrays]), [torch.cat(starts), torch.cat([a._aux[1] for a in arrays])],
                            shape, arrays[0]._ctx)


@kernel("take")
def take(op: Operator, arrays: Sequence[Any], attributes: dict[str, Any]) -> Any:
    a, indices = arrays
    mode = attributes.get("mode", "clip")
    if not isinstance(a, CSRNDArray) or attributes.get("axis", 0) != 0 or indices._is_sparse or indices.ndim != 1:
        return NotImplemented
    wanted, count = indices._raw().to(torch.int64), a.shape[0]
    if mode == "raise" and len(wanted) and (int(wanted.min()) < 0 or int(wanted.max()) >= count):
        raise MXNetError(f"take: indices must be in [0, {count}), received {int(wanted.min())} to {int(wanted.max())}")
    wanted = wanted % count if mode == "wrap" else wanted.clamp(0, count - 1)
    starts, lengths = a._aux[0][:-1][wanted], a._aux[0].diff()[wanted]
    ends = lengths.cumsum(0)
    # Where each taken value is: its row's start, and how far it is from the first value taken of that row.
    count = int(ends[-1]) if len(ends) else 0
    places = torch.repeat_interleave(starts - ends + lengths, lengths) + torch.arange(count, device=starts.device)
    return CSRNDArray._make(a._values[places], [torch.cat([ends.new_zeros(1), ends]), a._aux[1][places]], (len(wanted), a.shape[1]), a._ctx)


@kernel("_sparse_retain", masked=True)
def retain(op: Operator, arrays: Sequence[Any], attributes: dict[str, Any]) -> Any:
    data, indices = arrays
    if not isinstance(data, RowSparseNDArray):
        raise MXNetError(f"retain needs a row_sparse array, received {data.stype}; convert it with tostype('row_sparse')")
    rows = indices._raw().to(torch.int64, copy=True)
    check_rows(rows, data.shape[0])
    return RowSparseNDArray._make(data._rows(rows), [rows], data.shape, data._ctx)


@kernel("Embedding", "_contrib_SparseEmbedding", differentiable=True)
def embedding(op: Operator, arrays: Sequence[Any], attributes: dict[str, Any]) -> Any:
    indices, weight = arrays
    if not isinstance(weight, RowSparseNDArray) or indices._is_sparse:
        return NotImplemented
    expected = attributes["input_dim"], attributes["output_dim"]
    if weight.shape != expected:
        raise MXNetError(f"{op.name}: `weight` must have shape {expected}, received {weight.shape}")
    rows = indices._raw().to(torch.int64).clamp(0, weight.shape[0] - 1)
    if dispatch.mode.recording and weight._token is not None:
        taken, _ = dispatch.run(op, lambda t: Taken.apply(t, weight, rows), (weight._token,), {}, weight._ctx)
        out = NDArray._new(taken, weight._ctx)
        dispatch.record(op, attributes, (indices, weight), (out,))
        return out
    return NDArray._new(weight._rows(rows.reshape(-1)).reshape(*rows.shape, weight.shape[1]), weight._ctx)


# -- operators with dense results, as in MXNet -----------------------------------------------------------------------------------

@kernel("elemwise_div", "FullyConnected", "LinearRegressionOutput", "LogisticRegressionOutput", differentiable=True)
def dense_result(op: Operator, arrays: Sequence[Any], attributes: dict[str, Any]) -> Any:
    kinds = [a.stype for a in arrays if a is not None]
    quiet = {"elemwise_div": [["row_sparse"] * 2, ["csr"] * 2]}.get(op.name)
    if op.name == "FullyConnected":
        quiet = [["default", "row_sparse", *["default"] * (len(kinds) - 2)], ["default", *["row_sparse"] * (len(kinds) - 1)]]
    elif quiet is None:
        quiet = [["default", "csr"]]
    return densified_call(op, arrays, attributes, None, NDArray, announce=False) if kinds in quiet else NotImplemented


@error_kernel("BatchNorm")
def batch_norm(op: Operator, arrays: Sequence[Any], attributes: dict[str, Any]) -> Any:
    if attributes.get("fix_gamma", True):
        raise MXNetError(f"BatchNorm: fix_gamma={attributes.get('fix_gamma', True)} takes no sparse arrays; set fix_gamma=False, or convert them "
                         "with "
                         "tostype('default')")


