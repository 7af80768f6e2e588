"""Consecutive small fully connected layers with constant weights as one kernel call: separate calls would add about a microsecond each."""
from collections.abc import Sequence
from typing import NamedTuple, Optional

import torch

from ..runtime.contract import Kernel
from ..runtime.denormals import HEAVY, zeroed
from ..runtime.parameters import MLP_LAYERS, FusedMlpParams
from ..runtime.strided_output import Bindable, Bound
from . import prepacked_skinny

MOST = MLP_LAYERS
BETWEEN = 1 << 14  # most numbers between two layers: the kernel stores them on its stack
_widths = [f"k{i}" for i in range(1, MOST + 1)]
_columns = [f"({k} + 31) // 32 * 32" for k in _widths]
_fused_mlp = Kernel("gemm/prepacked_skinny", "chain_float32", {"rows": "float32 (n, c)", "panels": "float32 (cells)", "bias": "float32 (columns)"},
                {"out": "float32 (n, last)"}, integers=(*_widths, "relu_mask"),
                where={"last": " or ".join(reversed(_widths)), "columns": " + ".join(_columns),
                       "cells": " + ".join(f"{wide} * {deep}" for wide, deep in zip(_columns, ["c", *_widths]))},
                preconditions=("min(n, c, k1) >= 1", f"min({', '.join(_widths)}) >= 0", f"n * max({', '.join(_widths)}) <= {BETWEEN}",
                         *[f"{before} > 0 or {after} == 0" for before, after in zip(_widths, _widths[1:])], f"0 <= relu_mask < {1 << MOST}"),
                parameters=FusedMlpParams, sizes={"widths": f"(c, {', '.join(_widths)})"},
                multiplies=f"n * ({' + '.join(f'{deep} * {wide}' for wide, deep in zip(_widths, ['c', *_widths]))})")


class Layer(NamedTuple):
    """A fully connected layer: its weight (K, C), its bias (K,) or None, and a flag for a ReLU."""

    weight: torch.Tensor
    bias: Optional[torch.Tensor]
    relu: bool


class FusedMLP(Bindable):
    """Consecutive fully connected layers in float32.

    Parameters
    ----------
    layers : list of Layer
        At most `MOST`.
    flatten : bool
        True to flatten the data's axes behind the first; else the layers apply to its last axis.

    Raises
    ------
    MXNetError
        From a call, if the data does not fit the first layer, or there are more rows than the kernel can take.

    Example
    -------
    >>> mlp = FusedMLP([Layer(torch.tensor([[1.0, 2.0], [-3.0, 1.0]]), None, True), Layer(torch.ones(1, 2), torch.tensor([0.5]), False)], True)
    >>> mlp(torch.tensor([[1.0, 1.0]]))
    tensor([[3.5000]])
    """

    __name__ = "FullyConnected"  # the name in generated code and profiles

    def __init__(self, layers: Sequence[Layer], flatten: bool):
        widths = [len(layer.weight) for layer in layers]
        self._flatten, self._inputs, self._outputs = flatten, layers[0].weight.shape[1], widths[-1]
        self._integers = [*widths, *[0] * (MOST - len(layers)), sum(layer.relu << i for i, layer in enumerate(layers))]
        self._panels = torch.cat([prepacked_skinny.packed(layer.weight) for layer in layers])
        self._bias = torch.cat([_padded(layer) for layer in layers])
        # The last number of rows, and the kernel with its constant arguments: checking the contract takes as long as the kernel.
        self._bound: tuple = (-1, None, None, False)

    def __call__(self, data: torch.Tensor) -> torch.Tensor:
        """Return the result for `data` (N, ...), or (..., C) without `flatten`."""
        rows = data if data.dim() == 2 else data.flatten(1) if self._flatten else data.reshape(-1, data.shape[-1])
        if not rows.is_contiguous():
            rows = rows.contiguous()
        count, function, rest, heavy = self._bound
        if rows.shape != (count, self._inputs) or rows.dtype is not torch.float32 or not rows.is_cpu:
            count, function, rest, heavy = self._bind(rows)
        out = rows.new_empty((count, self._outputs))
        panels, bias, sizes = rest
        if heavy:
            with zeroed(HEAVY):
                function(rows.data_ptr(), panels, bias, out.data_ptr(), sizes, torch.get_num_threads())
        else:
            function(rows.data_ptr(), panels, bias, out.data_ptr(), sizes, torch.get_num_threads())
        return out if self._flatten or data.dim() == 2 else out.view(*data.shape[:-1], self._outputs)

    def sizes(self, shape: Sequence[int]) -> tuple[int, ...]:
        return (shape[0], self._outputs) if self._flatten else (*shape[:-1], self._outputs)

    def bound(self, data: torch.Tensor, residual: Optional[torch.Tensor], into: torch.Tensor, first: int) -> Optional[Bound]:
        rows = data.flatten(1) if self._flatten else data
        if residual is not None or rows.dim() != 2:
            return None
        plan = _fused_mlp.plan((rows, self._panels, self._bias), self._integers)
        return None if plan is None else Bound(plan, (data, self._panels, self._bias), ())

    def _bind(self, rows: torch.Tensor) -> tuple:
        arrays = (rows, self._panels, self._bias)
        plan = _fused_mlp.plan(arrays, self._integers)
        if plan is None:
            raise _fused_mlp.error(arrays, self._integers)
        function, (_, panels, bias, _, sizes, _) = plan.bound((None, self._panels.data_ptr(), self._bias.data_ptr(), None), (), 1)
        self._bound = found = len(rows), function, (panels, bias, sizes), plan.heavy
        return found


def fits(rows: int, layers: Sequence[Layer]) -> bool:
    """Return True if the kernel is available and takes `rows` rows through these layers."""
    return len(layers) <= MOST and 0 < rows * max(len(layer.weight) for layer in layers) <= BETWEEN and prepacked_skinny.available()


def _padded(layer: Layer) -> torch.Tensor:
    """Return the bias, padded with zeros to the end of the last panel."""
    width = len(layer.weight)
    bias = layer.weight.new_zeros((width + 31) // 32 * 32)
    if layer.bias is not None:
        bias[:width] = layer.bias.view(-1)
    return bias
