"""Operators of ``mx.npx`` that MXNet 2.0 added, and its names of operators that ``mx.nd`` has had."""
import torch

from ...base import MXNetError
from ..axes import normalize_axis
from ..registry import OPERATORS, alias, op
from ..schema import Optional
from ._common import broadcast, shape_of_inputs

_NAMES = {
    "add_n": "add_n", "bipartite_matching": "_contrib_bipartite_matching", "box_decode": "_contrib_box_decode", "box_encode": "_contrib_box_encode",
    "box_iou": "_contrib_box_iou", "box_nms": "_contrib_box_nms", "broadcast_greater": "broadcast_greater", "broadcast_like": "broadcast_like",
    "contrib_calibrate_entropy": "_contrib_calibrate_entropy", "contrib_quantize": "_contrib_quantize", "contrib_quantize_v2": "_contrib_quantize_v2",
    "contrib_quantized_rnn": "_contrib_quantized_rnn", "ctc_loss": "CTCLoss", "deformable_convolution": "_contrib_DeformableConvolution",
    "group_norm": "GroupNorm", "instance_norm": "InstanceNorm", "interleaved_matmul_encdec_qk": "_contrib_interleaved_matmul_encdec_qk",
    "interleaved_matmul_encdec_valatt": "_contrib_interleaved_matmul_encdec_valatt",
    "interleaved_matmul_selfatt_qk": "_contrib_interleaved_matmul_selfatt_qk",
    "interleaved_matmul_selfatt_valatt": "_contrib_interleaved_matmul_selfatt_valatt",
    "modulated_deformable_convolution": "_contrib_ModulatedDeformableConvolution", "norm": "norm", "pad": "Pad",
    "quantized_act": "_contrib_quantized_act",
    "quantized_conv": "_contrib_quantized_conv", "quantized_elemwise_add": "_contrib_quantized_elemwise_add",
    "quantized_elemwise_mul": "_contrib_quantized_elemwise_mul", "quantized_embedding": "_contrib_quantized_embedding",
    "quantized_flatten": "_contrib_quantized_flatten", "quantized_fully_connected": "_contrib_quantized_fully_connected",
    "quantized_npi_add": "_contrib_quantized_elemwise_add", "quantized_pooling": "_contrib_quantized_pooling", "requantize": "_contrib_requantize",
    "round_ste": "_contrib_round_ste", "scalar_poisson": "_random_poisson", "sequence_last": "SequenceLast", "sequence_reverse": "SequenceReverse",
    "sign_ste": "_contrib_sign_ste", "slice_channel": "SliceChannel", "slice_like": "slice_like", "softsign": "softsign",
    "stop_gradient": "BlockGrad",
    "sync_batch_norm": "_contrib_SyncBatchNorm", "tensor_poisson": "_sample_poisson", "_random_categorical": "_sample_multinomial"}
for _name, _of in _NAMES.items():
    alias(f"_npx_{_name}", of=OPERATORS[_of].name)


# -- softmax under a mask --------------------------------------------------------------------------------------------------

def _masked(operator, data, mask, axis, temperature, normalize):
    """The numbers to take the softmax of, and where the mask leaves some out.

    `normalize` only says whether MXNet subtracts the largest number first, against overflow; the result is the same, and torch always does.
    """
    axis = normalize_axis(operator, axis, data.dim())
    if torch.broadcast_shapes(data.shape, mask.shape) != data.shape:
        raise MXNetError(f"{operator}: a mask that broadcasts to the data's shape {tuple(data.shape)} expected, received {tuple(mask.shape)}")
    hidden = mask == 0
    data = data if temperature is None or temperature == 1 else data / temperature
    return data.masked_fill(hidden, -torch.inf), hidden, axis


@op("_npx_masked_softmax", complete_rule="shape", heavy=True)
def masked_softmax(data, mask, *, axis: int = -1, temperature: Optional[float] = 1.0, normalize: Optional[bool] = True):
    """``exp(x / temperature)`` where `mask` is other than 0, normalized to sum 1 along `axis`; 0 elsewhere. `mask` broadcasts to the data.

    Raises
    ------
    MXNetError
        If the mask does not broadcast to the data.

    Example
    -------
    >>> mx.npx.masked_softmax(mx.np.array([1, 5, 1]), mx.np.array([1, 0, 1]))
    array([0.5, 0. , 0.5])
    """
    data, hidden, axis = _masked("_npx_masked_softmax", data, mask, axis, temperature, normalize)
    return torch.softmax(data, axis).masked_fill(hidden, 0)


@op("_npx_masked_log_softmax", complete_rule="shape", heavy=True)
def masked_log_softmax(data, mask, *, axis: int = -1, temperature: Optional[float] = 1.0, normalize: Optional[bool] = True):
    """The logarithm of `masked_softmax`, computed without losing small values; minus infinity where `mask` is 0.

    Raises
    ------
    MXNetError
        If the mask does not broadcast to the data.

    Example
    -------
    >>> mx.npx.masked_log_softmax(mx.np.array([1, 5, 1]), mx.np.array([1, 0, 1]))
    array([-0.6931472,       -inf, -0.6931472])
    """
    data, hidden, axis = _masked("_npx_masked_log_softmax", data, mask, axis, temperature, normalize)
    return torch.log_softmax(data, axis).masked_fill(hidden, -torch.inf)


for _operator in (masked_softmax, masked_log_softmax):
    _operator.shape_rule(shape_of_inputs(lambda data, mask, **_: broadcast(data, mask)))


# -- writing to a copy -----------------------------------------------------------------------------------------------------

def _places(operator, a, ind):
    """The rows of indices, one for each of the first axes; a vector of indices goes along the first axis."""
    if ind.is_floating_point() and not ind.is_meta:
        raise MXNetError(f"{operator}: `ind` must hold integers; convert with astype('int64')")
    rows = ind.reshape(1, -1) if ind.dim() < 2 else ind
    if rows.shape[0] > a.dim():
        raise MXNetError(f"{operator}: at most {a.dim()} rows of indices expected, one an axis of `a`; received shape {tuple(ind.shape)}")
    return tuple(rows.long().unbind(0))


@op("_npx_index_add", complete_rule="shape")
def index_add(a, ind, val):
    """A copy of `a` with `val` added at the places that the rows of `ind` name, one row an axis; a place named twice receives both.

    Raises
    ------
    MXNetError
        If `ind` holds no integers, or has more rows than `a` has axes.

    Example
    -------
    >>> mx.npx.index_add(mx.np.zeros(3), mx.np.array([[0, 2, 0]], dtype='int32'), mx.np.array([1, 2, 3]))
    array([4., 0., 2.])
    """
    return a.index_put(_places("_npx_index_add", a, ind), val, accumulate=True)


@op("_npx_index_update", complete_rule="shape")
def index_update(a, ind, val):
    """A copy of `a` with `val` at the places that the rows of `ind` name, one row an axis.

    Raises
    ------
    MXNetError
        If `ind` holds no integers, or has more rows than `a` has axes.

    Example
    -------
    >>> mx.npx.index_update(mx.np.zeros(3), mx.np.array([[0, 2]], dtype='int32'), mx.np.array([1, 2]))
    array([1., 0., 2.])
    """
    return a.index_put(_places("_npx_index_update", a, ind), val)


for _operator in (index_add, index_update):
    _operator.shape_rule(shape_of_inputs(lambda a, ind, val: a))
