"""The fully connected layer."""
import torch

from ...base import MXNetError
from ...kernels.gemm.matmul import linear
from .. import sparse_input_linear
from ..dtypes import same_type
from ..quantization.arithmetic import Quantized, holding, in_units_of_product, product_range
from ..quantization.form import EightBits, Int8, quantized_form
from ..registry import op
from ..schema import AtLeast1
from ..shapes import product
from .common import assign, bias_inputs, check_bias


@op("FullyConnected", aliases=("_npx_fully_connected", "_sparse_FullyConnected"), inputs_rule=bias_inputs, result_type="inputs", inplace_safe=True,
    compute_bound=True, complete_rule=True, names_output=True, amp=("low", "low"))
def fully_connected(data, weight, bias=None, *, num_hidden: AtLeast1, no_bias: bool = False, flatten: bool = True):
    """``data @ weight.T + bias``, with `weight` (num_hidden, inputs) and, unless `no_bias`, `bias` (num_hidden,).

    With `flatten` all axes of `data` but the first are joined to one; without, only the last one is transformed.

    Raises
    ------
    MXNetError
        If the shapes do not fit.

    Example
    -------
    >>> x, w = mx.nd.ones((2, 3)), mx.nd.ones((4, 3))
    >>> mx.nd.FullyConnected(x, w, num_hidden=4, no_bias=True).shape
    (2, 4)
    """
    if (bias is None) is not no_bias:
        check_bias("FullyConnected", bias, no_bias)
    if weight.shape[0] != num_hidden:
        raise MXNetError(f"FullyConnected: `weight` must have `num_hidden` = {num_hidden} rows, received shape {tuple(weight.shape)}")
    if flatten and data.dim() != 2:
        data = data.reshape(data.shape[0], -1) if data.numel() else data.flatten(1)
    if bias is not None and (bias.dim() != 1 or bias.shape[0] != num_hidden):  # torch would spread a single one
        if bias.shape != (num_hidden, 1):  # which MXNet also takes, see FullyConnectedShape
            raise MXNetError(f"FullyConnected: `bias` must have shape ({num_hidden},), received {tuple(bias.shape)}")
        bias = bias.flatten()
    if weight.numel() >= sparse_input_linear.LARGE:
        return sparse_input_linear.linear(data, weight, bias)
    return linear(data, weight, bias)


@fully_connected.shape_rule
def _fully_connected_shape_rule(in_shapes, out_shapes, *, num_hidden, flatten, **_):
    data = in_shapes[0]
    if data is None:
        return in_shapes, out_shapes
    if not data:
        raise MXNetError("FullyConnected: `data` must have at least one axis, received a scalar")
    num_input = product(data[1:]) if flatten else data[-1]
    assign(in_shapes, 1, (num_hidden, num_input), "FullyConnected's weight")
    if len(in_shapes) > 2 and (in_shapes[2] is None or len(in_shapes[2]) != 2):
        assign(in_shapes, 2, (num_hidden,), "FullyConnected's bias")
    elif len(in_shapes) > 2:
        assign(in_shapes, 2, (num_hidden, 1), "FullyConnected's bias")
    assign(out_shapes, 0, (data[0], num_hidden) if flatten else (*data[:-1], num_hidden), "FullyConnected's output")
    in_shapes[0] = (out_shapes[0][0], *data[1:])
    return in_shapes, out_shapes


fully_connected.dtype_rule(same_type)


@quantized_form(fully_connected, "_contrib_quantized_fully_connected", result=torch.int32, must=True)
def quantized_fully_connected(data: EightBits, weight: Int8, bias: Int8 = None, *, num_hidden, flatten, **attributes) -> Quantized:
    """A fully connected layer on int8 or uint8 `data` and int8 `weight` (num_hidden, inputs) and `bias`; the ranges follow these.

    Returns int32, and the range that it represents.

    Example
    -------
    >>> x, w = mx.nd.array([[1, -2]], dtype='int8'), mx.nd.array([[3, 4]], dtype='int8')
    >>> low, high = mx.nd.array([-1]), mx.nd.array([1])
    >>> out, *ends = mx.nd.contrib.quantized_fully_connected(x, w, low, high, low, high, num_hidden=1, no_bias=True)
    >>> out.asnumpy()
    array([[-5]], dtype=int32)
    """
    rows = data.values.reshape(data.values.shape[0], -1) if flatten else data.values
    shapes = tuple(weight.values.shape), None if bias is None else tuple(bias.values.shape)
    if shapes[0] != (num_hidden, rows.shape[-1]) or shapes[1] not in (None, (num_hidden,)):
        raise MXNetError(f"_contrib_quantized_fully_connected: `weight` must have shape {(num_hidden, rows.shape[-1])} and `bias` ({num_hidden},), "
                         f"received {shapes[0]} and {shapes[1] or 'none'}")
    exact = holding(rows.shape[-1])
    out = rows.to(exact) @ weight.values.to(exact).t()
    if bias is not None:
        out = out.to(torch.float64) + in_units_of_product(bias, data, weight)
    return Quantized(out.to(torch.int32), *product_range(data, weight))
