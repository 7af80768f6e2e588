"""The products of multi-head attention over interleaved projections.

Sequences are (T, N, ...) with the heads side by side in the last axis; of each head the queries, keys and values follow one another.
"""
import functools
import math
from typing import Optional

import torch

from ...base import MXNetError
from ...kernels.gemm.tensor_cores import product
from ..quantization.arithmetic import INT8, INT32, calibrated, limit_of, ranged, store
from ..quantization.plan import Plan
from ..registry import op
from ..schema import Finite
from .common import assign


@op("_contrib_div_sqrt_dim", same_shape=True)
def div_sqrt_dim(data):
    """Divide by the square root of the size of the last axis; for integers that root and the result are truncated, as in MXNet.

    Example
    -------
    >>> mx.nd.contrib.div_sqrt_dim(mx.nd.ones((1, 4))).asnumpy()
    array([[0.5, 0.5, 0.5, 0.5]], dtype=float32)
    """
    root = math.sqrt(data.shape[-1])
    return data / root if data.is_floating_point() else torch.div(data, int(root), rounding_mode="trunc")


def _heads(interleaved, heads, parts):
    """Views (N * heads, T, size), one for each part."""
    length, batch, features = interleaved.shape
    size = features // parts // heads
    if size * parts * heads != features:  # MXNet reads as many numbers as it needs, in their order
        interleaved = interleaved.reshape(-1)[:length * batch * heads * parts * size]
    split = interleaved.reshape(length, batch * heads, parts, size)
    return [part.transpose(0, 1) for part in split.unbind(2)]


def _scores(queries, keys):
    return (product if queries.is_cuda else torch.bmm)(queries / math.sqrt(queries.shape[2]), keys.transpose(1, 2))


def _mix(attention, values, batch):
    """Weigh the values and put the heads side by side again."""
    heads = attention.shape[0] // max(batch, 1)
    mixed = (product if attention.is_cuda else torch.bmm)(attention, values)
    return mixed.transpose(0, 1).reshape(attention.shape[1], batch, heads * values.shape[2])


@op("_contrib_interleaved_matmul_selfatt_qk", aliases=("_npx_interleaved_matmul_selfatt_qk",), complete_rule="shape", compute_bound=True,
    names_output=True, amp=("widest", None))
def interleaved_matmul_selfatt_qk(queries_keys_values, *, heads: int):
    """Scores (N * heads, T, T) of queries with keys, scaled by ``1 / sqrt(size)``, from projections (T, N, heads * 3 * size).

    `size` is that of one head; its queries, keys and values lie side by side. Self-attention as of Vaswani et al. 2017: follow up with
    `softmax` and `interleaved_matmul_selfatt_valatt`. If ``3 * heads`` does not divide the features, `size` is rounded down, and the last numbers
    of the whole array are not read, as in MXNet.

    Raises
    ------
    MXNetError
        If the projections do not have 3 axes, or less than ``3 * heads`` features.

    Example
    -------
    >>> x = mx.nd.array([[[1, 10, 5]], [[2, 20, 6]]])       # two steps, one head of size 1: query, key, value
    >>> mx.nd.contrib.interleaved_matmul_selfatt_qk(x, heads=1).asnumpy()
    array([[[10., 20.],
            [20., 40.]]], dtype=float32)
    """
    _check("interleaved_matmul_selfatt_qk", queries_keys_values.shape, heads, 3, exact=False)
    queries, keys, _ = _heads(queries_keys_values, heads, 3)
    return _scores(queries, keys)


@op("_contrib_interleaved_matmul_selfatt_valatt", aliases=("_npx_interleaved_matmul_selfatt_valatt",), complete_rule="shape", compute_bound=True,
    names_output=True, amp=("widest", None))
def interleaved_matmul_selfatt_valatt(queries_keys_values, attention, *, heads: int):
    """Values weighted by `attention` (N * heads, T, T), shape (T, N, heads * size), from projections (T, N, heads * 3 * size).

    Raises
    ------
    MXNetError
        If the features cannot be split into ``3 * heads`` parts, or `attention` has another shape.

    Example
    -------
    >>> x = mx.nd.array([[[1, 10, 5]], [[2, 20, 6]]])       # two steps, one head of size 1: query, key, value
    >>> each_other = mx.nd.array([[[0, 1], [1, 0]]])
    >>> mx.nd.contrib.interleaved_matmul_selfatt_valatt(x, each_other, heads=1).asnumpy()
    array([[[6.]],
    <BLANKLINE>
           [[5.]]], dtype=float32)
    """
    _check("interleaved_matmul_selfatt_valatt", queries_keys_values.shape, heads, 3)
    length, batch = queries_keys_values.shape[:2]
    if attention.shape != (batch * heads, length, length):
        raise MXNetError(f"interleaved_matmul_selfatt_valatt: `attention` must have shape {(batch * heads, length, length)}, "
                         f"received {tuple(attention.shape)}")
    return _mix(attention, _heads(queries_keys_values, heads, 3)[2], queries_keys_values.shape[1])


@op("_contrib_interleaved_matmul_encdec_qk", aliases=("_npx_interleaved_matmul_encdec_qk",), complete_rule="shape", compute_bound=True,
    names_output=True, amp=("widest", None))
def interleaved_matmul_encdec_qk(queries, keys_values, *, heads: int):
    """Scores (N * heads, T, S) of `queries` (T, N, heads * size) with the keys in `keys_values` (S, N, heads * 2 * size).

    They are scaled by ``1 / sqrt(size)``: the attention of a decoder's T steps to an encoder's S.

    Raises
    ------
    MXNetError
        If the features cannot be split into `heads` queries, or ``2 * heads`` keys and values.

    Example
    -------
    >>> queries, keys_values = mx.nd.array([[[3]]]), mx.nd.array([[[10, 5]], [[20, 6]]])
    >>> mx.nd.contrib.interleaved_matmul_encdec_qk(queries, keys_values, heads=1).asnumpy()
    array([[[30., 60.]]], dtype=float32)
    """
    _check("interleaved_matmul_encdec_qk", queries.shape, heads, 1)
    _check("interleaved_matmul_encdec_qk", keys_values.shape, heads, 2)
    return _scores(_heads(queries, heads, 1)[0], _heads(keys_values, heads, 2)[0])


@op("_contrib_interleaved_matmul_encdec_valatt", aliases=("_npx_interleaved_matmul_encdec_valatt",), complete_rule="shape", compute_bound=True,
    names_output=True, amp=("widest", None))
def interleaved_matmul_encdec_valatt(keys_values, attention, *, heads: int):
    """Values in `keys_values` (S, N, heads * 2 * size) weighted by `attention` (N * heads, T, S), shape (T, N, heads * size).

    Raises
    ------
    MXNetError
        If the features cannot be split into ``2 * heads`` keys and values.

    Example
    -------
    >>> keys_values = mx.nd.array([[[10, 5]], [[20, 6]]])
    >>> half_of_each = mx.nd.array([[[0.5, 0.5]]])
    >>> mx.nd.contrib.interleaved_matmul_encdec_valatt(keys_values, half_of_each, heads=1).asnumpy()
    array([[[5.5]]], dtype=float32)
    """
    _check("interleaved_matmul_encdec_valatt", keys_values.shape, heads, 2)
    return _mix(attention, _heads(keys_values, heads, 2)[1], keys_values.shape[1])


def _check(name, shape, heads, parts, exact=True):
    if len(shape) != 3:
        raise MXNetError(f"{name}: projections must be (sequence, batch, features), received shape {tuple(shape)}")
    if heads < 1 or shape[2] >= 0 and (shape[2] % (parts * heads) if exact else shape[2] < parts * heads):
        raise MXNetError(f"{name}: {shape[2]} features cannot be split into {parts} projections for each of {heads} heads")


def _times(a, b):
    return a * b if a >= 0 and b >= 0 else -1


def _per_part(features, parts):
    return features // parts if features >= 0 else -1


@interleaved_matmul_selfatt_qk.shape_rule
def _selfatt_qk_shape_rule(in_shapes, out_shapes, *, heads):
    shape = in_shapes[0]
    if shape is not None:
        _check("interleaved_matmul_selfatt_qk", shape, heads, 3, exact=False)
        assign(out_shapes, 0, (_times(shape[1], heads), shape[0], shape[0]), "interleaved_matmul_selfatt_qk's output")
    return in_shapes, out_shapes


@interleaved_matmul_selfatt_valatt.shape_rule
def _selfatt_valatt_shape_rule(in_shapes, out_shapes, *, heads):
    shape = in_shapes[0]
    if shape is not None:
        _check("interleaved_matmul_selfatt_valatt", shape, heads, 3)
        assign(in_shapes, 1, (_times(shape[1], heads), shape[0], shape[0]), "interleaved_matmul_selfatt_valatt's attention")
        assign(out_shapes, 0, (*shape[:2], _per_part(shape[2], 3)), "interleaved_matmul_selfatt_valatt's output")
    return in_shapes, out_shapes


@interleaved_matmul_encdec_qk.shape_rule
def _encdec_qk_shape_rule(in_shapes, out_shapes, *, heads):
    queries, keys_values = in_shapes
    if queries is not None:
        _check("interleaved_matmul_encdec_qk", queries, heads, 1)
        assign(in_shapes, 1, (-1, queries[1], _times(queries[2], 2)), "interleaved_matmul_encdec_qk's keys_values")
    if queries is not None and keys_values is not None:
        assign(out_shapes, 0, (_times(queries[1], heads), queries[0], keys_values[0]), "interleaved_matmul_encdec_qk's output")
    return in_shapes, out_shapes


@interleaved_matmul_encdec_valatt.shape_rule
def _encdec_valatt_shape_rule(in_shapes, out_shapes, *, heads):
    shape = in_shapes[0]
    if shape is not None:
        _check("interleaved_matmul_encdec_valatt", shape, heads, 2)
        assign(in_shapes, 1, (_times(shape[1], heads), -1, shape[0]), "interleaved_matmul_encdec_valatt's attention")
        assign(out_shapes, 0, (in_shapes[1][1], shape[1], _per_part(shape[2], 2)), "interleaved_matmul_encdec_valatt's output")
    return in_shapes, out_shapes


def _attention_outputs(attributes):
    return 3 if attributes["quantized"] and not attributes["enable_float_output"] else 1


def _attention_result(real, enable_float_output, low, high):
    """Convert a float32 result: unchanged, to int8 for a calibrated range, or to int32 for its own range."""
    if enable_float_output:
        return real
    ends = calibrated(low, high, real)
    if ends is not None:
        return store(real * (INT8 / limit_of(*ends)), torch.int8), *ends
    limit = real.abs().max().reshape(1)
    return store(real.to(torch.float64) * (INT32 / limit), torch.int32), -limit, limit


def _quantized_attention(operator, attributes, channel_wise):
    return Plan(operator, {"quantized": "True"}, must=True, wide=True)


@op("_sg_mkldnn_selfatt_qk", num_outputs=_attention_outputs, output_names=("output", "min_output", "max_output"), no_gradient=True,
    inputs_rule=lambda a: ("queries_keys_values", *(("min_qkv", "max_qkv") if a["quantized"] else ())), amp=None)
def selfatt_qk(queries_keys_values, min_qkv=None, max_qkv=None, *, heads: int, quantized: bool = False, enable_float_output: bool = False,
               min_calib_range: Optional[Finite] = None, max_calib_range: Optional[Finite] = None):
    """``interleaved_matmul_selfatt_qk``, with `quantized` on an int8 array and its range.

    Then it returns float32 on request, else int8 for the calibrated range or int32 for its own, and the range.
    """
    product = interleaved_matmul_selfatt_qk.raw
    if not quantized:
        return product(queries_keys_values, heads=heads)
    real = product(ranged("_sg_mkldnn_selfatt_qk", "queries_keys_values", queries_keys_values, min_qkv, max_qkv).real(), heads=heads)
    return _attention_result(real, enable_float_output, min_calib_range, max_calib_range)


@op("_sg_mkldnn_selfatt_valatt", num_outputs=_attention_outputs, output_names=("output", "min_output", "max_output"), no_gradient=True,
    inputs_rule=lambda a: ("queries_keys_values", "attention",
                           *(("min_qkv", "max_qkv", "min_attention", "max_attention") if a["quantized"] else ())), amp=None)
def selfatt_valatt(queries_keys_values, attention, min_qkv=None, max_qkv=None, min_attention=None, max_attention=None, *, heads: int,
                   quantized: bool = False, enable_float_output: bool = False, min_calib_range: Optional[Finite] = None,
                   max_calib_range: Optional[Finite] = None):
    """``interleaved_matmul_selfatt_valatt``, with `quantized` on int8 and uint8 arrays and their ranges; see ``_sg_mkldnn_selfatt_qk``."""
    product = interleaved_matmul_selfatt_valatt.raw
    if not quantized:
        return product(queries_keys_values, attention, heads=heads)
    real = product(ranged("_sg_mkldnn_selfatt_valatt", "queries_keys_values", queries_keys_values, min_qkv, max_qkv).real(),
                   ranged("_sg_mkldnn_selfatt_valatt", "attention", attention, min_attention, max_attention).real(), heads=heads)
    return _attention_result(real, enable_float_output, min_calib_range, max_calib_range)


for _operator in (selfatt_qk, selfatt_valatt):
    _operator.may_hold_graph = True
    _operator.quantization = functools.partial(_quantized_attention, _operator)
