"""Execution of fused nodes (``symbol.fused``): on real numbers as their subgraph, on integers by `Integers`."""
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import torch

from ...base import MXNetError
from ...ops.nn.convolution import convolution
from ...ops.quantization.arithmetic import EIGHT_BITS, INT8, Quantized, as_arrays, check_types, levels, limit_of, product_range, ranged, store
from ...ops.registry import Operator
from ...symbol.fused import Recipe, elemwise_add
from ...symbol.node import Node
from ..control_flow import Subgraph
from ..ownership import distinct
from . import gemm


def function(node: Node, lower: Callable, is_train: bool, device: torch.device) -> Callable:
    """Return the function over tensors that a fused node computes; that of a quantized node has its `Integers` as attribute ``integers``."""
    if not node.parsed().get("quantized"):
        part = Subgraph(node.subgraphs[0], lower, is_train, device)
        return lambda *inputs: distinct(part(inputs), inputs) if len(part.outputs) > 1 else distinct(part(inputs), inputs)[0]
    integers = Integers(node)

    def fused(*inputs: torch.Tensor) -> Any:
        return integers(inputs)

    fused.integers = integers  # type: ignore[attr-defined]
    return fused


class IntegerWeights(NamedTuple):
    """The quantized weights of a matrix product or convolution.

    Attributes
    ----------
    values : torch.Tensor
        int8.
    unit : torch.Tensor
        The scale (the value of integer 1): one number, or one for each output channel.
    bias : torch.Tensor or None
        In real numbers.
    limit : torch.Tensor
        The largest magnitude of the real weights, one element.
    """

    values: torch.Tensor
    unit: torch.Tensor
    bias: torch.Tensor | None
    limit: torch.Tensor


def _at_once(following: Sequence[tuple[Operator, dict]]) -> tuple[bool, bool] | None:
    """Return (adds, relu) if only a sum, and ReLU behind it, follow a product, which kernels compute as they store; None for anything else."""
    adds = bool(following) and following[0][0] is elemwise_add
    rest = following[adds:]
    if len(rest) > 1 or rest and not rest[0][0].holds("is_relu", rest[0][1]):
        return None
    return adds, bool(rest)


class Integers:
    """A quantized fused node.

    Attributes
    ----------
    recipe : Recipe
    dtype : torch.dtype
        The result's type.
    ends : (float, float) or None
        The calibrated range of the result.
    """

    def __init__(self, node: Node):
        parsed, op = node.op.with_defaults(node.parsed()), node.op
        self.name = op.name
        self.recipe: Recipe = op.recipe(parsed)
        self.names = node.input_names()
        self.dtype: torch.dtype = op.output_type(parsed)
        self.ranges = {n: tuple(end.format(n) for end in op.ends) for n in op.ranged(parsed)}
        ends = parsed["min_calib_range"], parsed["max_calib_range"]
        self.ends = None if None in ends else ends
        # Sums in int32 have one scale for all channels.
        self.by_channel = parsed.get("channel_wise_quantize") or not op.quantizes_weights and self.dtype is not torch.int32
        flowing = {name for n in ("data", "sum") for name in (n, *self.ranges.get(n, ()))}
        self._constant = [n for n in self.names if n not in flowing]
        self._packed: gemm.Packed | None = None
        # The result's scale, if all nodes behind the product are computed as the result is stored; else 0.
        self._at_once = _at_once(self.recipe.following)
        self._unit = max(map(abs, ends)) / levels(self.dtype) if self._at_once and self.ends and self.dtype in EIGHT_BITS else 0.0

    def __call__(self, inputs: Sequence[torch.Tensor]) -> Any:
        given = dict(zip(self.names, inputs))
        data = self.quantized(given, "data")
        if self.dtype is not torch.int32 and gemm.suits(self.recipe.attributes, data.values) and data.number:
            return self._on_integers(given, data)
        weights = self.weights(given, data.unit)
        channels = (1, -1, *[1] * (data.values.dim() - 2)) if self.recipe.product is convolution else (-1,)
        out = self._product(data.values.to(torch.float32), weights.values.to(torch.float32)) * (data.unit * weights.unit).reshape(channels)
        if weights.bias is not None:
            out = out + weights.bias.reshape(channels)
        out = self._followed(out, given)
        if self.dtype is torch.int32:
            low, high = product_range(data, Quantized(weights.values, -weights.limit, weights.limit))
            return store(out.to(torch.float64) / (data.unit * weights.unit), torch.int32), low, high
        return self._stored(out)

    def _on_integers(self, given: Mapping[str, torch.Tensor], data: Quantized) -> Any:
        """Compute the node by integer kernels; results are rounded once, and may differ from `__call__` by one integer."""
        sources, attributes, packed = [given[n] for n in self._constant], self.recipe.attributes, self._packed
        if packed is None or not packed.holds(sources, data):
            weights = self.weights(given, data.unit)
            packed = self._packed = gemm.Packed(sources, attributes, data, weights.values, weights.unit, weights.bias)
        if self._unit and self._at_once and self.ends:
            adds, relu = self._at_once
            added = self.quantized(given, "sum") if adds else None
            if added is None or packed.adds(added, self.dtype):
                return packed.product(data.values, self._unit, self.dtype, relu, added), *as_arrays(*self.ends, data.low)
        return self._stored(self._followed(packed.product(data.values), given))

    def _stored(self, out: torch.Tensor) -> Any:
        """Return real numbers as the node's outputs: quantized, with the ends of the range, if that is calibrated."""
        if self.ends is None or self.dtype is torch.float32:
            return out
        low, high = as_arrays(*self.ends, out)
        return store(out * (levels(self.dtype) / limit_of(low, high)), self.dtype), low, high

    def _followed(self, out: torch.Tensor, given: Mapping[str, torch.Tensor]) -> torch.Tensor:
        for op, attributes in self.recipe.following:
            out = op.raw(out, self.quantized(given, "sum").real()) if op is elemwise_add else op.raw(out, **attributes)
        return out

    def quantized(self, given: Mapping[str, torch.Tensor], name: str) -> Quantized:
        """Return an input with its range."""
        check_types(self.name, EIGHT_BITS if name in ("data", "sum") else (torch.int8,), **{name: given[name]})
        low, high = self.ranges[name]
        return ranged(self.name, name, given[name], given[low], given[high])

    def _product(self, data: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        return self.recipe.product.raw(data, weight, **{**self.recipe.attributes, "no_bias": True})

    def weights(self, given: Mapping[str, torch.Tensor], data_unit: torch.Tensor) -> IntegerWeights:
        """Return the weights, with the batch norm folded in, as integers for data of this scale."""
        weight, bias = given["weight"], given.get("bias")
        if "weight" in self.ranges:
            quantized = self.quantized(given, "weight")
            return IntegerWeights(weight, quantized.unit, None if bias is None else self.quantized(given, "bias").real(), quantized.limit)
        check_types(self.name, (torch.float32,), **{n: given[n] for n in self._constant})
        rows = weight.flatten(1)
        if self.recipe.norm is not None:
            factor = torch.rsqrt(given["var"] + self.recipe.norm["eps"])
            factor = factor if self.recipe.norm["fix_gamma"] else factor * given["gamma"]
            bias = given["beta"] + factor * ((0 if bias is None else bias) - given["mean"])
            rows = rows * factor.unsqueeze(1)
        limit = rows.abs().amax(1)
        largest = limit.amax().reshape(1)
        if largest.is_cpu and not all(torch.isfinite(t).all() for t in (largest, bias) if t is not None):
            raise MXNetError(f"{self.name}: its weights are infinite or no numbers, or become so as the batch norm is folded into them; no integers "
                             "can stand for these")
        unit = limit / INT8 if self.by_channel else largest / INT8
        if bias is not None:
            # Biases have the scale of the sums, in int32: for channels of tiny weights the scale is bounded below, so that no bias overflows.
            unit = torch.maximum(unit, bias.abs() / (data_unit * float(1 << 30))) if self.by_channel else unit
        unit = torch.where(unit > 0, unit, torch.ones_like(unit))
        return IntegerWeights(store(rows / unit.unsqueeze(-1), torch.int8).view(weight.shape), unit, bias, largest)
