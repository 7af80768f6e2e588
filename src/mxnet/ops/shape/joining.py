"""Operators that join arrays: Concat, stack."""
import torch

from ...base import MXNetError
from ..axes import normalize_axis
from ..dtypes import name_of
from ..quantization.arithmetic import Quantized, levels, limit_of, store
from ..quantization.form import EightBits, quantized_form
from ..registry import op
from ..shapes import unify


def _same_type(operator, data):
    first = data[0].dtype
    for i, t in enumerate(data):
        if t.dtype != first:
            raise MXNetError(f"{operator}: all inputs must have one data type; the first has {name_of(first)}, input {i} has {name_of(t.dtype)}; "
                             "convert with astype")


@op("Concat", aliases=("concat", "_sparse_concat"), key_var_num_args="num_args", layout_agnostic=lambda a: a["dim"] == 1, result_type="inputs",
    complete_rule=True, names_output=True, amp=("widest", "inputs"))
def concat(*data, dim: int = 1):
    """Join arrays along the existing axis `dim`; all their other sizes must agree.

    Raises
    ------
    MXNetError
        If shapes disagree elsewhere, or types differ.

    Example
    -------
    >>> mx.nd.concat(mx.nd.array([[1, 2]]), mx.nd.array([[3, 4]]), dim=0).asnumpy()
    array([[1., 2.],
           [3., 4.]], dtype=float32)
    """
    _same_type("Concat", data)
    return torch.cat(data, dim)


def _concat_rule(in_shapes, out_shapes, *, dim):
    common, axis = None, 0
    for shape in (*in_shapes, out_shapes[0]):
        if shape is not None and len(shape) > 0:
            axis = normalize_axis("Concat", dim, len(shape), "dim")
            common = unify(common, (*shape[:axis], -1, *shape[axis + 1:]))
    if common is None:
        return in_shapes, out_shapes
    in_shapes = [unify(s, common) for s in in_shapes]
    sizes = [s[axis] for s in in_shapes]
    unknown = [i for i, size in enumerate(sizes) if size < 0]
    total = sum(sizes) if not unknown else -1
    out = unify(out_shapes[0], (*common[:axis], total, *common[axis + 1:]))
    return in_shapes, [out]


concat.shape_rule(_concat_rule)


def _joined_type(types, attributes):
    return torch.uint8 if all(t == torch.uint8 for t in types) else torch.int8


@quantized_form(concat, "_contrib_quantized_concat", ends=("{}_min", "{}_max"), result=_joined_type,
                when=lambda attributes: attributes["dim"] > 0)
def quantized_concat(*data: EightBits, dim, **attributes) -> Quantized:
    """Join `num_args` quantized arrays along `dim`; behind them stand their ranges, min and max of each.

    The result is uint8 if all arrays are, else int8, for the smallest range that holds all theirs.

    Example
    -------
    >>> a, b = mx.nd.array([100], dtype='int8'), mx.nd.array([100], dtype='int8')
    >>> one, two = mx.nd.array([1]), mx.nd.array([2])
    >>> mx.nd.contrib.quantized_concat(a, b, -one, one, -two, two, num_args=2, dim=0)[0].asnumpy()
    array([ 50, 100], dtype=int8)
    """
    dtype = _joined_type([a.values.dtype for a in data], attributes)
    low, high = torch.cat([a.low.reshape(1) for a in data]).min().reshape(1), torch.cat([a.high.reshape(1) for a in data]).max().reshape(1)
    scale = levels(dtype) / limit_of(low, high)
    return Quantized(concat.raw(*(store(a.values * (scale * a.unit), dtype) for a in data), dim=dim), low, high)


@op("_rnn_param_concat", complete_rule="shape", aliases=("_npi_rnn_param_concat",), key_var_num_args="num_args", names_output=True)
def rnn_param_concat(*data, dim: int = 1):
    """Join the parameters of a recurrent layer into the one vector that RNN takes."""
    _same_type("_rnn_param_concat", data)
    return torch.cat(data, dim)


@rnn_param_concat.shape_rule
def _(in_shapes, out_shapes, *, dim):
    in_shapes, out_shapes = _concat_rule(in_shapes, out_shapes, dim=dim)
    out = out_shapes[0]
    if out is None:
        return in_shapes, out_shapes
    axis = dim % len(out)
    unknown = [i for i, s in enumerate(in_shapes) if s[axis] < 0]
    # The input-to-hidden weights of a layer have unknown sizes until the data is known: they get the remaining elements.
    if unknown and out[axis] >= 0:
        rest = out[axis] - sum(s[axis] for s in in_shapes if s[axis] >= 0)
        if rest < 0 or len(unknown) > 2:
            raise MXNetError(f"_rnn_param_concat: parameters of sizes {[s[axis] for s in in_shapes]} do not fill a vector of {out[axis]}")
        for i in unknown:
            in_shapes[i] = (*in_shapes[i][:axis], rest // len(unknown), *in_shapes[i][axis + 1:])
    return in_shapes, out_shapes


@op("stack", complete_rule="shape", aliases=("_npi_stack",), key_var_num_args="num_args", amp="widest")
def stack(*data, axis: int = 0):
    """Join arrays of one shape along a new axis, at position `axis` of the result.

    Raises
    ------
    MXNetError
        If shapes or types differ.

    Example
    -------
    >>> mx.nd.stack(mx.nd.array([1, 2]), mx.nd.array([3, 4]), axis=1).asnumpy()
    array([[1., 3.],
           [2., 4.]], dtype=float32)
    """
    _same_type("stack", data)
    return torch.stack(data, axis)


@stack.shape_rule
def _(in_shapes, out_shapes, *, axis):
    common = None
    for shape in in_shapes:
        common = unify(common, shape)
    out = out_shapes[0]
    if out is not None:
        at = normalize_axis("stack", axis, len(out))
        common = unify(common, (*out[:at], *out[at + 1:]))
    if common is None:
        return in_shapes, out_shapes
    at = normalize_axis("stack", axis, len(common) + 1)
    return [common] * len(in_shapes), [unify(out, (*common[:at], len(in_shapes), *common[at:]))]
