"""Float32 matrix products on a CPU as 1 x 1 convolutions of one row of pixels: faster than oneDNN where an operand is transposed.

MKL, torch's library, is 10 to 30 % faster on Intel's processors.
"""
from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch

from ... import processor
from ..runtime.contract import Kernel
from ..runtime.denormals import zeroed
from ..runtime.parameters import ConvParams, PrepackedConvParams
from ..runtime.strided_output import ANY
from . import matmul

_WORTHWHILE = 1 << 20  # multiplications from which on the kernel is called (and compiled)
_LARGE = 1 << 16  # elements of a constant weight from which on it is packed
_ROWS, _WEIGHT, _RESULT = "float32 (n, c)", "float32 (k, c)", "float32 (n, k)"
# A row is a pixel of an image with one line.
_PIXELS = {"n": "1", "h": "1", "w": "n", "p": "1", "q": "n", "r": "1", "s": "1", "stride_h": "1", "stride_w": "1", "pad_h": "0", "pad_w": "0",
           "dilate_h": "1", "dilate_w": "1"}
_REST: dict[str, Any] = {"preconditions": ("c % 16 == 0", "k % 16 == 0", "min(n, c, k) >= 1"), "work": "n * c * k",
                         "multiplies": "n * c * k", "parameters": ConvParams, "sizes": _PIXELS}

_forward = Kernel("conv/convolution", "forward_float32",
                  {"rows": _ROWS, "weight": _WEIGHT, "bias": "float32 (k) optional"}, {"out": _RESULT}, **_REST)
_backward_data = Kernel("conv/convolution", "backward_data_float32", {"dout": _RESULT, "weight": _WEIGHT}, {"out": _ROWS}, **_REST)
_backward_weight = Kernel("conv/convolution", "backward_weight_float32", {"dout": _RESULT, "rows": _ROWS},
                          {"out": _WEIGHT, "dbias": "float32 (k) if biased"}, where={"biased": "0"}, **_REST)

# With constant weights, packed as for the convolutions of a graph.
_pack = Kernel("conv/prepacked_conv", "pack_float32", {"weight": _WEIGHT}, {"packed": "float32 (k * c)"}, preconditions=("c >= 1", "k >= 1",
                                                                                                                   "k % 16 == 0"), work="k * c",
               sizes=("k", "1", "c"))
_forward_packed = Kernel("conv/prepacked_conv", "forward_float32",
                         {"rows": _ROWS, "packed": "float32 (k * c)", "bias": "float32 (k)", "residual": f"{_RESULT} optional"},
                         {"out": _RESULT, "frame": "float32 (0) if framed"}, numbers="f", where={"framed": "0"},
                         preconditions=("c >= 1", "k >= 1", "k % 16 == 0"), multiplies="n * c * k",
                         parameters=PrepackedConvParams, sizes={**_PIXELS, "total": "k", "first": "0", "lines": "0", "planes": "0"})


def forward(rows: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
    """Return ``rows @ weight.T + bias`` for `rows` (N, C) and `weight` (K, C)."""
    found = _run(_forward, rows, weight, bias)
    return matmul.linear(rows, weight, bias) if found is None else found


def prepacked(weight: torch.Tensor) -> Callable[..., torch.Tensor]:
    """Return ``forward(rows, weight, bias)`` as a function of `rows` and `bias`; the constant `weight` is packed once."""
    if not matmul.prefers_onednn_layout(weight.dtype):
        return _prepacked_in_panels(weight) or (lambda rows, bias: forward(rows, weight, bias))
    ordered = torch.ops.mkldnn._reorder_linear_weight(weight.contiguous())

    def multiply(rows, bias):
        with zeroed(rows.shape[0] * weight.numel()):
            return torch.ops.mkldnn._linear_pointwise(rows.contiguous(), ordered, bias, "none", [], "")
    return multiply


def _prepacked_in_panels(weight):
    """Return the same function with the weight in the order of `prepacked_conv.cpp`; None where that is slower or not available."""
    weight = weight.contiguous()
    pack = None if _leaves() else _pack.plan((weight,), (), _LARGE)
    if pack is None:
        return None
    packed, = pack((weight,))
    return lambda rows, bias: _forward_packed((rows.contiguous(), packed, bias, None), (), (ANY,))[0]


def backward_data(dout: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """Return ``dout @ weight`` for `dout` (N, K) and `weight` (K, C)."""
    found = _run(_backward_data, dout, weight)
    return matmul.matmul(dout, weight) if found is None else found


def backward_weight(dout: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
    """Return ``dout.T @ rows`` for `dout` (N, K) and `rows` (N, C)."""
    found = _run(_backward_weight, dout, rows)
    return matmul.of_weight(dout, rows) if found is None else found


def _run(kernel, *arrays):
    if _leaves():
        return None
    given = [None if a is None else a.contiguous() for a in arrays]
    plan = kernel.plan(given, (), _WORTHWHILE)
    return None if plan is None else plan(given)[0]


@functools.cache
def _leaves():
    """Return True if torch computes the products: it has MKL, and the processor is Intel's."""
    return torch.backends.mkl.is_available() and processor.maker() == "GenuineIntel"
