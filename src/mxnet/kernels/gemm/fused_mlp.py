"""Small fully connected layers one after another, with weights that do not change, as one call: of a few microseconds each call would take one."""
from collections.abc import Sequence
from typing import NamedTuple, Optional

import torch

from ..runtime.contract import Kernel
from ..runtime.denormals import HEAVY, zeroed
from ..runtime.strided_output import Bindable, Bound
from . import prepacked_skinny

MOST = 8  # layers
BETWEEN = 1 << 14  # numbers between two layers, at most: the kernel keeps them on its stack
_widths = [f"k{i}" for i in range(1, MOST + 1)]
_columns = [f"({k} + 31) // 32 * 32" for k in _widths]
_chain = Kernel("gemm/prepacked_skinny", "chain_float32", {"rows": "float32 (n, c)", "panels": "float32 (cells)", "bias": "float32 (columns)"},
                {"out": "float32 (n, last)"}, integers=(*_widths, "rectifies"),
                where={"last": " or ".join(reversed(_widths)), "columns": " + ".join(_columns),
                       "cells": " + ".join(f"{wide} * {deep}" for wide, deep in zip(_columns, ["c", *_widths]))},
                demands=("min(n, c, k1) >= 1", f"min({', '.join(_widths)}) >= 0", f"n * max({', '.join(_widths)}) <= {BETWEEN}",
                         *[f"{before} > 0 or {after} == 0" for before, after in zip(_widths, _widths[1:])], f"0 <= rectifies < {1 << MOST}"),
                sizes=("n", "c", *_widths, "rectifies"), packed=True,
                multiplies=f"n * ({' + '.join(f'{deep} * {wide}' for wide, deep in zip(_widths, ['c', *_widths]))})")


class Layer(NamedTuple):
    """A fully connected layer: its weight (K, C) and bias (K,), and whether its results are rectified."""

    weight: torch.Tensor
    bias: Optional[torch.Tensor]
    rectifies: bool


class Chain(Bindable):
    """Fully connected layers in single precision.

    Parameters
    ----------
    layers : list of Layer
        At most `MOST`.
    flatten : bool
        Whether the data's axes behind the first are joined; without, layers are those of its last axis.

    Raises
    ------
    MXNetError
        From a call, if the data does not fit the first layer, or there are more rows than the kernel can take.

    Example
    -------
    >>> chain = Chain([Layer(torch.tensor([[1.0, 2.0], [-3.0, 1.0]]), None, True), Layer(torch.ones(1, 2), torch.tensor([0.5]), False)], True)
    >>> chain(torch.tensor([[1.0, 1.0]]))
    tensor([[3.5000]])
    """

    __name__ = "FullyConnected"  # what generated code and profiles call it

    def __init__(self, layers: Sequence[Layer], flatten: bool):
        widths = [len(layer.weight) for layer in layers]
        self._flatten, self._inputs, self._outputs = flatten, layers[0].weight.shape[1], widths[-1]
        self._integers = [*widths, *[0] * (MOST - len(layers)), sum(layer.rectifies << i for i, layer in enumerate(layers))]
        self._panels = torch.cat([prepacked_skinny.packed(layer.weight) for layer in layers])
        self._bias = torch.cat([_padded(layer) for layer in layers])
        # The last number of rows, and the kernel with what it takes besides the data and the result. Asking the gate takes as long as the kernel.
        self._bound: tuple = (-1, None, None, False)

    def __call__(self, data: torch.Tensor) -> torch.Tensor:
        """The layers of `data` (N, ...), or (..., C) where it does not flatten."""
        rows = data if data.dim() == 2 else data.flatten(1) if self._flatten else data.reshape(-1, data.shape[-1])
        if not rows.is_contiguous():
            rows = rows.contiguous()
        count, function, rest, heavy = self._bound
        if rows.shape != (count, self._inputs) or rows.dtype is not torch.float32 or not rows.is_cpu:
            count, function, rest, heavy = self._judged(rows)
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
        plan = _chain.plan((rows, self._panels, self._bias), self._integers)
        return None if plan is None else Bound(plan, (data, self._panels, self._bias), ())

    def _judged(self, rows: torch.Tensor) -> tuple:
        arrays = (rows, self._panels, self._bias)
        plan = _chain.plan(arrays, self._integers)
        if plan is None:
            raise _chain.refusal(arrays, self._integers)
        function, (_, panels, bias, _, sizes, _) = plan.bound((None, self._panels.data_ptr(), self._bias.data_ptr(), None), (), 1)
        self._bound = found = len(rows), function, (panels, bias, sizes), plan.heavy
        return found


def fits(rows: int, layers: Sequence[Layer]) -> bool:
    """Whether the kernel takes so many rows through these layers, and is there."""
    return len(layers) <= MOST and 0 < rows * max(len(layer.weight) for layer in layers) <= BETWEEN and prepacked_skinny.available()


def _padded(layer: Layer) -> torch.Tensor:
    """The bias, with zeros to the end of the last panel."""
    width = len(layer.weight)
    bias = layer.weight.new_zeros((width + 31) // 32 * 32)
    if layer.bias is not None:
        bias[:width] = layer.bias.view(-1)
    return bias
