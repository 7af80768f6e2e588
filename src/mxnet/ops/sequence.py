"""Operators on batches of sequences of different lengths: SequenceMask, SequenceLast, SequenceReverse."""
import torch

from ..base import MXNetError
from ..kernels.memory import gather_scatter
from .registry import op
from .shapes import unify


def _inputs(attributes):
    return ("data", "sequence_length") if attributes["use_sequence_length"] else ("data",)


def _check(operator, data, sequence_length, use_sequence_length, axis):
    if data.dim() < 2:
        raise MXNetError(f"{operator}: `data` must be of rank 2 or greater, received shape {tuple(data.shape)}")
    if axis not in (0, 1):
        raise MXNetError(f"{operator}: `axis` must be 0 or 1, received {axis}")
    if use_sequence_length != (sequence_length is not None):
        needed, given = ("2 inputs", 1) if use_sequence_length else ("1 input", 2)
        raise MXNetError(f"{operator} expects {needed} with use_sequence_length={use_sequence_length}, but got {given}")
    if use_sequence_length and tuple(sequence_length.shape) != (data.shape[1 - axis],):
        raise MXNetError(f"{operator}: `sequence_length` must have shape ({data.shape[1 - axis]},) for data {tuple(data.shape)} with axis={axis}, "
                         f"received {tuple(sequence_length.shape)}")


def _length_rule(operator, reduces):
    """Shape inference: one length for each sequence of the batch; the result loses the time axis if `reduces`."""
    def rule(in_shapes, out_shapes, *, use_sequence_length, axis, **_):
        data, out = in_shapes[0], out_shapes[0]
        if not reduces:
            data = out = unify(data, out)
        if data is None:
            return in_shapes, out_shapes
        if len(data) < 2:
            raise MXNetError(f"{operator}: `data` must be of rank 2 or greater, received shape {data}")
        if reduces:
            out = unify(out, (*data[:axis], *data[axis + 1:]))
        return [data, *(unify(s, (data[1 - axis],)) for s in in_shapes[1:])], [out]
    return rule


@op("SequenceMask", complete_rule="shape", aliases=("_npx_sequence_mask",), inputs_rule=_inputs, names_output=True)
def sequence_mask(data, sequence_length=None, *, use_sequence_length: bool = False, value: float = 0.0, axis: int = 0):
    """Set what lies beyond the end of each sequence to `value`.

    Parameters
    ----------
    data : (T, N, ...), or (N, T, ...) with axis=1
    sequence_length : (N,)
        Used, and required, if `use_sequence_length`; without it nothing changes.

    Raises
    ------
    MXNetError
        If the lengths are missing, superfluous or of another shape, or `axis` is not 0 or 1.

    Example
    -------
    >>> x = mx.nd.array([[1, 2, 3], [4, 5, 6]])
    >>> mx.nd.SequenceMask(x, mx.nd.array([1, 2]), use_sequence_length=True, value=-1, axis=1).asnumpy()
    array([[ 1., -1., -1.],
           [ 4.,  5., -1.]], dtype=float32)
    """
    _check("SequenceMask", data, sequence_length, use_sequence_length, axis)
    if not use_sequence_length:
        return data.clone()
    length = sequence_length.long()
    masked = gather_scatter.mask(data, length, value, axis == 1)
    if masked is not None:
        return masked
    steps = torch.arange(data.shape[axis], device=data.device)
    inside = steps.unsqueeze(1) < length.unsqueeze(0) if axis == 0 else steps.unsqueeze(0) < length.unsqueeze(1)
    if data.device.type == "cpu" and not torch.compiler.is_compiling():  # filling only these rows takes half the time; a GPU would have to wait
        outside = inside.logical_not().reshape(-1).nonzero().reshape(-1)
        return data.flatten(0, inside.dim() - 1).index_fill(0, outside, value).view(data.shape)
    return torch.where(inside.reshape(inside.shape + (1,) * (data.dim() - 2)), data, data.new_full((), value))


@op("SequenceLast", aliases=("_npx_sequence_last",), complete_rule="shape", inputs_rule=_inputs, names_output=True)
def sequence_last(data, sequence_length=None, *, use_sequence_length: bool = False, axis: int = 0):
    """The last element of each sequence: (T, N, ...) to (N, ...), or (N, T, ...) with axis=1.

    `sequence_length` (N,) is used, and required, if `use_sequence_length`; without it each sequence has all T elements.

    Raises
    ------
    MXNetError
        If the lengths are missing, superfluous or of another shape, or `axis` is not 0 or 1.

    Example
    -------
    >>> x = mx.nd.array([[1, 2, 3], [4, 5, 6]])
    >>> mx.nd.SequenceLast(x, mx.nd.array([1, 2]), use_sequence_length=True, axis=1).asnumpy()
    array([1., 5.], dtype=float32)
    """
    _check("SequenceLast", data, sequence_length, use_sequence_length, axis)
    if not use_sequence_length:
        return data.select(axis, -1).clone()
    index = (sequence_length.long() - 1).clamp(0, data.shape[axis] - 1)
    batch = torch.arange(data.shape[1 - axis], device=data.device)
    return data[(index, batch) if axis == 0 else (batch, index)]


@op("SequenceReverse", aliases=("_npx_sequence_reverse",), complete_rule="shape", inputs_rule=_inputs, names_output=True)
def sequence_reverse(data, sequence_length=None, *, use_sequence_length: bool = False, axis: int = 0):
    """Reverse each sequence of (T, N, ...) within its length; what lies beyond the end stays.

    `sequence_length` (N,) is used, and required, if `use_sequence_length`; without it each sequence has all T elements.

    Raises
    ------
    MXNetError
        If a length is greater than T (not checked on a GPU), the lengths are missing, superfluous or of another shape, or `axis` is not 0.

    Example
    -------
    >>> x = mx.nd.array([[1, 4], [2, 5], [3, 6]])           # two sequences, in columns
    >>> mx.nd.SequenceReverse(x, mx.nd.array([2, 3]), use_sequence_length=True).asnumpy()
    array([[2., 6.],
           [1., 5.],
           [3., 4.]], dtype=float32)
    """
    _check("SequenceReverse", data, sequence_length, use_sequence_length, axis)
    if axis != 0:
        raise MXNetError(f"SequenceReverse: `axis` must be 0, received {axis}; swap the axes first")
    if not use_sequence_length:
        return data.flip(0)
    steps = torch.arange(data.shape[0], device=data.device).unsqueeze(1)
    length = sequence_length.long().unsqueeze(0)
    if length.device.type == "cpu" and length.numel() and int(length.max()) > data.shape[0]:
        raise MXNetError(f"SequenceReverse: `sequence_length` must be at most {data.shape[0]}, the length of the data, received {int(length.max())}")
    length = length.clamp_max(data.shape[0])  # a GPU is not waited for
    source = torch.where(steps < length, length - 1 - steps, steps)
    return data[source, torch.arange(data.shape[1], device=data.device).unsqueeze(0)]


for _operator in (sequence_mask, sequence_last, sequence_reverse):
    _operator.shape_rule(_length_rule(_operator.name, _operator is sequence_last))

    @_operator.dtype_rule
    def _(in_types, out_types, **_):
        first = in_types[0] or out_types[0]
        return [t or first for t in in_types], [first]
