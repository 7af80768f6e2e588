"""Reductions, and searches along an axis."""
import numpy as np

from .....base import MXNetError
from ..reading import UnsupportedFeature
from ..registry import translates
from .elemwise import binary, cast_to, with_number


def reduced(g, name, data, axes=None, keepdims=1, noop_with_empty_axes=0, **attributes):
    """A reduction by one of the operators here, with ONNX's arguments."""
    g.entry(data)
    chosen = () if axes is None else axes.integers("axes")
    if not chosen and noop_with_empty_axes:
        return g.op("_copy", data, is_scalar=data.scalar)
    if data.scalar:
        return g.op(name, data, axis=(0,), keepdims=True, is_scalar=True, **attributes)
    chosen = tuple(g.axis(data, axis) for axis in chosen)
    if not chosen:
        return g.op(name, data, keepdims=bool(keepdims), is_scalar=not keepdims, **attributes)
    everything = not keepdims and len(set(chosen)) == g.rank(data)
    if name == "norm" and len(chosen) > 2:
        raise UnsupportedFeature("a norm over more than two axes")
    return g.op(name, data, axis=chosen, keepdims=bool(keepdims), is_scalar=everything, **attributes)


def _of_nothing(g, operator, data, axes, keepdims):
    """Return the result of a reduction over no elements, or None if there are elements."""
    shapes = g.known_shapes(data)
    if shapes is None or not any(0 in shape for shape in shapes):
        return None
    sizes, kind = g.fixed(data, operator), g.dtype(data) or np.dtype("float32")
    chosen = {g.axis(data, axis) for axis in (() if axes is None else axes.integers("axes"))} or {*range(len(sizes))}
    lowest, highest = ((-np.inf, np.inf) if kind.kind == "f" else (False, True) if data.boolean or kind.kind == "b" else
                       (np.iinfo(kind).min, np.iinfo(kind).max))
    number = {"ReduceMax": lowest, "ReduceMin": highest, "ReduceProd": 1, "ReduceMean": np.nan, "ReduceLogSum": -np.inf,
              "ReduceLogSumExp": -np.inf}.get(operator, 0)
    left = [1 if axis in chosen else size for axis, size in enumerate(sizes) if keepdims or axis not in chosen]
    return g.array(np.full(g.small(left, operator), number, kind))


def _register(operator, name, before=None, after=None):
    @translates(operator)
    def translate(g, data, axes=None, *, keepdims=1, noop_with_empty_axes=0):
        g.entry(data)
        if not (noop_with_empty_axes and (axes is None or not axes.integers("axes"))):
            nothing = _of_nothing(g, operator, data, axes, keepdims)
            if nothing is not None:
                return nothing
        kind = g.dtype(data)
        if kind is not None and kind.kind == "b":
            data = cast_to(g, data, "int32")
        prepared = data if before is None else g.op(before, data, is_scalar=data.scalar)
        result = reduced(g, name, prepared, axes, keepdims, noop_with_empty_axes)
        result = result if after is None else g.op(after, result, is_scalar=result.scalar)
        return cast_to(g, result, kind) if kind is not None and kind.kind in "iub" else result


for _arguments in (("ReduceMax", "max"), ("ReduceMin", "min"), ("ReduceMean", "mean"), ("ReduceSum", "sum"), ("ReduceProd", "prod"),
                   ("ReduceL1", "sum", "abs"), ("ReduceL2", "sum", "square", "sqrt"), ("ReduceSumSquare", "sum", "square"),
                   ("ReduceLogSum", "sum", None, "log")):
    _register(*_arguments)


@translates("ReduceLogSumExp")
def reduce_log_sum_exp(g, data, axes=None, *, keepdims=1, noop_with_empty_axes=0):
    """``log(sum(exp(x)))``, with the largest value taken out before, so that nothing overflows."""
    if noop_with_empty_axes and (axes is None or not axes.integers("axes")):
        return reduced(g, "max", data, axes, keepdims, 1)
    nothing = _of_nothing(g, "ReduceLogSumExp", data, axes, keepdims)
    if nothing is not None:
        return nothing
    largest = reduced(g, "max", data, axes, 1)
    rest = g.op("exp", binary(g, "broadcast_sub", data, largest), is_scalar=data.scalar)
    total = g.op("log", reduced(g, "sum", rest, axes, keepdims))
    peak = largest if keepdims else reduced(g, "max", data, axes, 0)
    result = binary(g, "broadcast_add", total, peak)
    result.scalar = peak.scalar
    return result


@translates("ArgMax")
def argmax(g, data, *, axis=0, keepdims=1, select_last_index=0):
    """The place of the largest value along an axis."""
    return _place(g, "argmax", data, axis, keepdims, select_last_index)


@translates("ArgMin")
def argmin(g, data, *, axis=0, keepdims=1, select_last_index=0):
    """The place of the smallest value along an axis."""
    return _place(g, "argmin", data, axis, keepdims, select_last_index)


def _place(g, name, data, axis, keepdims, last):
    axis = g.axis(data, axis)
    scalar = not keepdims and g.rank(data) == 1
    if last:
        data = g.op("reverse", data, axis=(axis,))
    result = g.op("Cast", g.op(name, data, axis=axis, keepdims=bool(keepdims)), dtype="int64", is_scalar=scalar)
    return with_number(g, "_rminus_scalar", result, g.size(data, axis, "select_last_index") - 1) if last else result


@translates("TopK")
def topk(g, data, k, *, axis=-1, largest=1, sorted=1):
    """The `k` largest or smallest values along an axis, and their places."""
    g.entry(data)
    count = int(k.number("k"))
    if count < 1:
        raise MXNetError(f"`k` must be 1 or more, received {count}")
    values, places = g.op("topk", data, k=count, axis=g.axis(data, axis), ret_typ="both", is_ascend=not largest, dtype="int64")
    return values, places


@translates("CumSum")
def cumsum(g, data, axis, *, exclusive=0, reverse=0):
    """Cumulative sums, which include each element or exclude it."""
    along = g.axis(data, axis.number("axis"))
    kind = g.dtype(data)
    if reverse:
        data = g.op("reverse", data, axis=(along,))
    sums = g.op("_np_cumsum", data, axis=along, **({} if kind is None else {"dtype": kind.name}))
    if exclusive:
        sums = binary(g, "broadcast_sub", sums, data)
    return g.op("reverse", sums, axis=(along,)) if reverse else sums


@translates("CumProd")
def cumprod(g, data, axis, *, exclusive=0, reverse=0):
    """Cumulative products, which include each element or exclude it."""
    along = g.axis(data, int(axis.number("axis")))
    if reverse:
        data = g.op("reverse", data, axis=(along,))
    if exclusive:
        ones = g.op("ones_like", g.op("slice_axis", data, axis=along, begin=0, end=1))
        data = g.op("slice_axis", g.op("Concat", ones, data, dim=along), axis=along, begin=0, end=-1)
    products = g.op("_contrib_cumprod", data, axis=along)
    return g.op("reverse", products, axis=(along,)) if reverse else products


@translates("Trilu")
def trilu(g, data, k=None, *, upper=1):
    """The upper or lower triangle of matrices, 0 elsewhere."""
    number = 0 if k is None else k.number("k")
    if not upper:
        return g.op("_npi_tril", data, k=number)
    return binary(g, "broadcast_sub", data, g.op("_npi_tril", data, k=number - 1))


@translates("NonZero")
def non_zero(g, data):
    """The places of elements that are not 0, an axis of `data` in each row."""
    return g.op("Cast", g.op("transpose", g.op("_npx_nonzero", data)), dtype=np.dtype("int64").name)
