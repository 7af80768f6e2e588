"""Float32 convolutions and matrix products on bfloat16 tiles (AMX), whose multiplication rate is sixteen times that of floats.

Each float is split exactly into three bfloat16 numbers, and the six largest of the nine products are added. The error against double precision is
0.4 to 0.7 of the direct kernel's (root mean square), and most layers take 0.6 to 0.85 of its time. "Leveraging the bfloat16 Artificial Intelligence
Datatype For Higher-Precision Computations" (Henry, Tang and Heinecke 2019) has the arithmetic. Infinite numbers give NaN.
"""
import functools
from collections.abc import Sequence
from typing import Any, Optional

import torch

from ... import processor
from ..runtime import libraries
from ..runtime.contract import Kernel, Plan
from ..runtime.libraries import load
from ..runtime.parameters import StridedConvParams

NAME, BRIEF = "bfloat16 in three parts (AMX)", "own tiles (AMX)"  # of float32, and of bfloat16
ONE_PASS = "bfloat16 in three parts (AMX), one pass"  # products of few rows, which read a weight, or write its gradient, once
_FEWEST = 16  # filters and channels
_STEPS = ("stride_h", "stride_w", "pad_h", "pad_w", "dilate_h", "dilate_w")
_HEIGHT, _WIDTH = "(h + 2 * pad_h - dilate_h * (r - 1) - 1) // stride_h + 1", "(w + 2 * pad_w - dilate_w * (s - 1) - 1) // stride_w + 1"
_SIZE = {"size": "(k + 31) // 32 * r * s * ((c + 31) // 32) * 1536"}  # in floats: six bytes for each weight, of whole tiles
_PRECONDITIONS = ("min(k, c, r, s) >= 1", "k * c * r * s < 1 << 31")
_POSITIVE = ("min(n, h, w, p, q) >= 1", "min(stride_h, stride_w, dilate_h, dilate_w) >= 1", "min(pad_h, pad_w) >= 0")
_WORK = "k * c * r * s * n * p * q"
pack = Kernel("gemm/amx", "pack_{T}", {"weight": "T (k, c, r, s) last"}, {"packed": "T (size)"}, where=_SIZE,
              preconditions=_PRECONDITIONS, sizes=("k", "r * s", "c"))
forward = Kernel("gemm/amx", "forward_{T}",
                 {"data": "T (n, c, h, w) last", "packed": "T (size)", "bias": "T (lanes) optional", "residual": "T (n, k, p, q) last optional",
                  "into": "T (n, total, p, q) last"}, integers=("k", "r", "s", *_STEPS, "first"), numbers="f",
                 where={**_SIZE, "lanes": "(k + 15) // 16 * 16", "p": _HEIGHT, "q": _WIDTH},
                 preconditions=(*_PRECONDITIONS, *_POSITIVE, "first >= 0", "first + k <= total"), multiplies=_WORK,
                 parameters=StridedConvParams)
pack_turned = Kernel("gemm/amx", "pack_turned_{T}", {"weight": "T (k, c, r, s) last"}, {"packed": "T (size)"},
                     where={"size": "(c + 31) // 32 * r * s * ((k + 31) // 32) * 1536"}, preconditions=_PRECONDITIONS, sizes=("k", "r * s", "c"))
backward_weight = Kernel("gemm/amx", "backward_weight_{T}", {"dout": "T (n, k, p, q) last", "data": "T (n, c, h, w) last"},
                         {"dweight": "float32 (k, c, r, s) last"}, integers=("r", "s", *_STEPS),
                         preconditions=(*_PRECONDITIONS, *_POSITIVE, "c % 16 == 0", "k % 16 == 0", f"p == {_HEIGHT}", f"q == {_WIDTH}"),
                         multiplies=_WORK, parameters=StridedConvParams, sizes={"total": "k", "first": "0"})
_PRODUCT = {"packed": "T (size)", "odd": "int64 (1) filled 0"}
_products = {
    "forward": Kernel("gemm/amx", "product_{T}", {"rows": "T (n, c)", "weight": "T (k, c)", "bias": "T (k) optional", "out": "T (n, k)"}, _PRODUCT,
                      where={"size": "(k + 31) // 32 * ((c + 31) // 32) * 1536"}, preconditions=("min(n, c, k) >= 1", "k * c < 1 << 31"),
                      sizes=("n", "c", "k", "0"), multiplies="n * c * k"),
    "gradient of data": Kernel("gemm/amx", "product_{T}", {"dout": "T (n, k)", "weight": "T (k, c)", "bias": "T (c) optional", "out": "T (n, c)"},
                               _PRODUCT, where={"size": "(c + 31) // 32 * ((k + 31) // 32) * 1536"},
                               preconditions=("min(n, c, k) >= 1", "k * c < 1 << 31"),
                               sizes=("n", "k", "c", "1"), multiplies="n * c * k"),
    "gradient of weights": Kernel("gemm/amx", "outer_{T}", {"dout": "T (n, k)", "rows": "T (n, c)", "out": "T (k, c)"}, {"odd": "int64 (1) filled 0"},
                                  preconditions=("min(n, c, k) >= 1", "c % 16 == 0", "k % 16 == 0"), sizes=("n", "c", "k"), multiplies="n * c * k")}
_FEW_ROWS: dict[str, Any] = {
    "where": {"size": "(n + 31) // 32 * ((c + 31) // 32) * 1536"}, "sizes": ("n", "c", "k"), "multiplies": "n * c * k",
    # The rows in tiles, of six bytes a number, take half of the L2 cache at most.
    "preconditions": ("min(n, c, k) >= 1", "n <= 256", "size <= 1 << 18", "k * c < 1 << 31")}
_one_pass = {
    "forward": Kernel("gemm/amx", "few_rows_forward_{T}",
                      {"rows": "T (n, c)", "weight": "T (k, c)", "bias": "T (k) optional", "out": "T (n, k)"}, _PRODUCT, **_FEW_ROWS),
    "gradient of data": Kernel("gemm/amx", "few_rows_backward_data_{T}", {"dout": "T (n, k)", "weight": "T (k, c)", "out": "T (n, c)"},
                               {"odd": "int64 (1) filled 0"}, **_FEW_ROWS),
    "gradient of weights": Kernel("gemm/amx", "few_rows_backward_weight_{T}", {"dout": "T (n, k)", "rows": "T (n, c)", "out": "T (k, c)"},
                                  _PRODUCT, **{**_FEW_ROWS, "preconditions": (*_FEW_ROWS["preconditions"], "c % 16 == 0")})}


@functools.cache
def available() -> bool:
    """Return True if the processor has AMX, the kernels are compiled for it, and the operating system grants it to this process."""
    if not processor.tiles():
        return False
    allow = libraries.symbol(load("gemm/amx"), "allow", False)
    return allow is not None and pack.available(T="float32") and forward.available(T="float32") and bool(allow())


def suits(weight: torch.Tensor) -> bool:
    """Return True if AMX may be faster for weights (K, C, R, S): a partly filled tile takes as long as a full one."""
    return weight.dtype is torch.float32 and min(weight.shape[:2]) >= _FEWEST and available()


def packed(weight: torch.Tensor) -> torch.Tensor:
    """Return the weights (channels last) packed into tiles."""
    return pack((weight,))[0]


def plan(data: torch.Tensor, packed: torch.Tensor, bias: Optional[torch.Tensor], residual: Optional[torch.Tensor], into: torch.Tensor,
         numbers: tuple[int, ...], first: int) -> Optional[Plan]:
    """Return the plan to convolve `data` (N, C, H, W) with packed weights into the channels of `into` from `first` on.

    `numbers` are the number of filters, the kernel's two sizes, stride, padding and dilation. The plan's number is the upper bound of the ReLU, or -1
    for none.
    """
    return forward.plan((data, packed, bias, residual, into), (*numbers, first))


def convolve(data: torch.Tensor, weight: torch.Tensor, bias: Optional[torch.Tensor], steps: tuple[int, ...], turned: bool = False) -> torch.Tensor:
    """Convolve `data` with `weight` (K, C, R, S), both channels last; `steps` are stride, padding and dilation.

    With `turned`, convolve gradients (N, K, P, Q) back to the C channels; `steps` are then those of this convolution.
    """
    tiles, = (pack_turned if turned else pack)((weight,))
    filters, kernel = weight.shape[int(turned)], tuple(weight.shape[2:])
    along = [(n + 2 * p - d * (k - 1) - 1) // s + 1 for n, k, s, p, d in zip(data.shape[2:], kernel, steps[:2], steps[2:4], steps[4:])]
    out = torch.empty((len(data), filters, *along), dtype=data.dtype, memory_format=torch.channels_last)
    forward((data, tiles, bias, None, out), (filters, *kernel, *steps, 0), (-1.0,))
    return out


def fits(name: str, way: str, arrays: Sequence[Optional[torch.Tensor]], out: torch.Tensor) -> bool:
    """Return True if `multiply` takes arrays of these shapes by the way called `name`: `NAME` or `ONE_PASS`."""
    kernel, given = _call(name, way, arrays, out)
    return kernel.plan(given) is not None


def multiply(name: str, way: str, arrays: Sequence[Optional[torch.Tensor]], out: torch.Tensor) -> bool:
    """Write a matrix product to `out`; return False if it contains NaN, as it does for infinite inputs.

    The arrays of ``"forward"`` are rows (N, C), a weight (K, C) and a bias (K,) or None; of ``"gradient of data"``, gradients (N, K) and a weight
    (K, C); of ``"gradient of weights"``, gradients (N, K) and rows (N, C). `name` is that of `fits`.
    """
    kernel, given = _call(name, way, arrays, out)
    return not kernel(given)[-1].item()


def _call(name: str, way: str, arrays: Sequence[Optional[torch.Tensor]], out: torch.Tensor) -> tuple[Kernel, tuple[Optional[torch.Tensor], ...]]:
    """Return the kernel for a product, and its arrays."""
    if name == ONE_PASS:
        return _one_pass[way], (*arrays, out)
    return _products[way], (*arrays, *([None] if way == "gradient of data" else []), out)
