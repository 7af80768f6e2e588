"""Fully connected layers with constant weights, for inference with few rows on a CPU, which is bound by reading the weights."""
import math
import threading
from collections.abc import Callable, Sequence
from typing import Optional

import torch

from ..runtime.contract import Kernel
from ..runtime.strided_output import ANY, Bindable, Bound
from . import conv_gemm

MOST = 12  # rows up to which reading the weights takes longer than multiplying
_WORTHWHILE = 1 << 14  # weights from which on the kernel is called (and compiled)
_PANELS = "(k + 31) // 32 * 32 * c"
_multiply = Kernel("gemm/prepacked_skinny", "multiply_{T}", {"rows": "float32 (n, c)", "panels": "T (cells)", "bias": "float32 (k)"},
                   {"out": "float32 (n, k)"},
                   where={"cells": _PANELS}, preconditions=("min(n, c, k) >= 1",), sizes=("n", "c", "k"), numbers="f",
                   multiplies="n * c * k")
_pack = Kernel("gemm/prepacked_skinny", "pack_{T}", {"weight": "T (k, c)"}, {"panels": "T (cells)"}, where={"cells": _PANELS},
               preconditions=("min(c, k) >= 1",),
               sizes=("c", "k"))


def available() -> bool:
    """Return True if the kernel is available."""
    return _multiply.available(T="float32")


def packed(weight: torch.Tensor) -> torch.Tensor:
    """Return a weight (K, C) packed into the kernels' panels."""
    return _pack((weight.contiguous(),))[0]


class Dense(Bindable):
    """A fully connected layer with packed weights and an optional ReLU.

    Parameters
    ----------
    weight : torch.Tensor
        (K, C), float32.
    bias : torch.Tensor or None
        (K,).
    flatten : bool
        True to flatten the data's axes behind the first.
    relu : bool
        True if a ReLU follows.
    brief : bool
        True to round the weights to bfloat16, which calls with up to `MOST` rows read as such. All arithmetic is float32.

    Example
    -------
    >>> layer = Dense(torch.tensor([[1.0, 2.0], [-3.0, 1.0]]), torch.tensor([0.0, 1.0]), True, True)
    >>> layer(torch.tensor([[1.0, 1.0]]))
    tensor([[3., 0.]])
    """

    __name__ = "FullyConnected"  # the name in generated code and profiles

    def __init__(self, weight: torch.Tensor, bias: Optional[torch.Tensor], flatten: bool, relu: bool = False, brief: bool = False):
        self._weight = weight.to(torch.bfloat16) if brief else weight.contiguous()
        self._bias = weight.new_zeros(len(weight)) if bias is None else bias.contiguous().view(-1)
        self._flatten, self._ceiling = flatten, math.inf if relu else ANY
        self._panels: Optional[torch.Tensor] = None
        self._many: Optional[Callable] = None  # the product for more rows
        self._lock = threading.Lock()

    def __call__(self, data: torch.Tensor) -> torch.Tensor:
        """Return the result for `data` (N, ...), or (..., C) without `flatten`."""
        rows = data.flatten(1) if self._flatten and data.dim() > 1 else data.reshape(-1, data.shape[-1])
        rows = rows.contiguous()
        out = self._few(rows) if len(rows) <= MOST else None
        if out is None:
            if self._many is None:
                self._many = conv_gemm.prepacked(self._weight.float())
            out = self._many(rows, self._bias)
            if self._ceiling >= 0:
                out.relu_()
        return out if self._flatten else out.view(*data.shape[:-1], out.shape[1])

    def _few(self, rows: torch.Tensor) -> Optional[torch.Tensor]:
        if self._panels is None:
            with self._lock:
                if self._panels is None:
                    plan = _pack.plan((self._weight,)) if self._weight.numel() >= _WORTHWHILE else None
                    self._panels = self._weight.new_empty(0) if plan is None else plan((self._weight,))[0]
        plan = _multiply.plan((rows, self._panels, self._bias)) if self._panels.numel() else None
        return None if plan is None else plan((rows, self._panels, self._bias), (self._ceiling,))[0]

    def sizes(self, shape: Sequence[int]) -> tuple[int, ...]:
        return (shape[0], len(self._bias)) if self._flatten else (*shape[:-1], len(self._bias))

    def bound(self, data: torch.Tensor, residual: Optional[torch.Tensor], into: torch.Tensor, first: int) -> Optional[Bound]:
        rows = data.flatten(1) if self._flatten and data.dim() > 1 else data
        if residual is not None or rows.dim() != 2 or len(rows) > MOST or self._panels is None or not self._panels.numel():
            return None
        plan = _multiply.plan((rows, self._panels, self._bias))
        return None if plan is None else Bound(plan, (data, self._panels, self._bias), (self._ceiling,))

    def release(self) -> None:
        """Free the weights of a layer that is not called any more."""
        self._panels, self._many, self._weight = None, None, self._weight[:0].clone()
