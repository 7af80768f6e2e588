"""Convolutions of single precision on tiles of bfloat16 (AMX), which processors that have them multiply sixteen times as fast as floats.

Each float is split into three numbers of bfloat16, exactly, and the six largest of their nine products are added: results are closer to those of
double precision than the direct kernel's (0.4 to 0.7 of its error, root mean square), for most layers in 0.6 to 0.85 of its time. "Leveraging the
bfloat16 Artificial Intelligence Datatype For Higher-Precision Computations" (Henry, Tang and Heinecke 2019) has the arithmetic. Infinite numbers give
NaN.
"""
import functools
from collections.abc import Sequence
from typing import Optional

import torch

from ... import processor
from ..runtime import libraries
from ..runtime.contract import Kernel, Plan
from ..runtime.libraries import load

NAME, BRIEF = "bfloat16 in three parts (AMX)", "own tiles (AMX)"  # of float32, and of bfloat16
_FEWEST = 16  # filters and channels
_STEPS = ("stride_h", "stride_w", "pad_h", "pad_w", "dilate_h", "dilate_w")
_HEIGHT, _WIDTH = "(h + 2 * pad_h - dilate_h * (r - 1) - 1) // stride_h + 1", "(w + 2 * pad_w - dilate_w * (s - 1) - 1) // stride_w + 1"
_SIZE = {"size": "(k + 31) // 32 * r * s * ((c + 31) // 32) * 1536"}  # in floats: six bytes for each weight, of whole tiles
_DEMANDS = ("min(k, c, r, s) >= 1", "k * c * r * s < 1 << 31")
_POSITIVE = ("min(n, h, w, p, q) >= 1", "min(stride_h, stride_w, dilate_h, dilate_w) >= 1", "min(pad_h, pad_w) >= 0")
_SIZES = ("n", "h", "w", "c", "k", "r", "s", "p", "q", *_STEPS)
_WORK = "k * c * r * s * n * p * q"
pack = Kernel("gemm/amx", "pack_{T}", {"weight": "T (k, c, r, s) last"}, {"packed": "T (size)"}, where=_SIZE,
              demands=_DEMANDS, sizes=("k", "r * s", "c"))
forward = Kernel("gemm/amx", "forward_{T}",
                 {"data": "T (n, c, h, w) last", "packed": "T (size)", "bias": "T (lanes) optional", "residual": "T (n, k, p, q) last optional",
                  "into": "T (n, total, p, q) last"}, integers=("k", "r", "s", *_STEPS, "first"), numbers="f",
                 where={**_SIZE, "lanes": "(k + 15) // 16 * 16", "p": _HEIGHT, "q": _WIDTH},
                 demands=(*_DEMANDS, *_POSITIVE, "first >= 0", "first + k <= total"), multiplies=_WORK, packed=True,
                 sizes=(*_SIZES, "total", "first"))
pack_turned = Kernel("gemm/amx", "pack_turned_{T}", {"weight": "T (k, c, r, s) last"}, {"packed": "T (size)"},
                     where={"size": "(c + 31) // 32 * r * s * ((k + 31) // 32) * 1536"}, demands=_DEMANDS, sizes=("k", "r * s", "c"))
backward_weight = Kernel("gemm/amx", "backward_weight_{T}", {"dout": "T (n, k, p, q) last", "data": "T (n, c, h, w) last"},
                         {"dweight": "float32 (k, c, r, s) last"}, integers=("r", "s", *_STEPS),
                         demands=(*_DEMANDS, *_POSITIVE, "c % 16 == 0", "k % 16 == 0", f"p == {_HEIGHT}", f"q == {_WIDTH}"),
                         multiplies=_WORK, packed=True, sizes=(*_SIZES, "k", "0"))
_PRODUCT = {"packed": "T (size)", "odd": "int64 (1) filled 0"}
_products = {
    "forward": Kernel("gemm/amx", "product_{T}", {"rows": "T (n, c)", "weight": "T (k, c)", "bias": "T (k) optional", "out": "T (n, k)"}, _PRODUCT,
                      where={"size": "(k + 31) // 32 * ((c + 31) // 32) * 1536"}, demands=("min(n, c, k) >= 1", "k * c < 1 << 31"),
                      sizes=("n", "c", "k", "0"), multiplies="n * c * k"),
    "gradient of data": Kernel("gemm/amx", "product_{T}", {"dout": "T (n, k)", "weight": "T (k, c)", "bias": "T (c) optional", "out": "T (n, c)"},
                               _PRODUCT, where={"size": "(c + 31) // 32 * ((k + 31) // 32) * 1536"}, demands=("min(n, c, k) >= 1", "k * c < 1 << 31"),
                               sizes=("n", "k", "c", "1"), multiplies="n * c * k"),
    "gradient of weights": Kernel("gemm/amx", "outer_{T}", {"dout": "T (n, k)", "rows": "T (n, c)", "out": "T (k, c)"}, {"odd": "int64 (1) filled 0"},
                                  demands=("min(n, c, k) >= 1", "c % 16 == 0", "k % 16 == 0"), sizes=("n", "c", "k"), multiplies="n * c * k")}


@functools.cache
def available() -> bool:
    """Whether the processor has such tiles, the kernels are compiled for them, and the system lets this process use them."""
    if not processor.tiles():
        return False
    allow = libraries.symbol(load("gemm/amx"), "allow", False)
    return allow is not None and pack.available(T="float32") and forward.available(T="float32") and bool(allow())


def suits(weight: torch.Tensor) -> bool:
    """Whether it may pay to compute a convolution with these weights (K, C, R, S) so: tiles of few numbers take as long as full ones."""
    return weight.dtype is torch.float32 and min(weight.shape[:2]) >= _FEWEST and available()


def packed(weight: torch.Tensor) -> torch.Tensor:
    """The weights (channels last) in tiles."""
    return pack((weight,))[0]


def plan(data: torch.Tensor, packed: torch.Tensor, bias: Optional[torch.Tensor], residual: Optional[torch.Tensor], into: torch.Tensor,
         numbers: tuple[int, ...], first: int) -> Optional[Plan]:
    """How to convolve `data` (N, C, H, W) with the packed weights; the result are the channels of `into` from `first` on.

    `numbers` are the filters, the kernel's two sizes, stride, padding and dilation. The plan's number is the ceiling of the rectified results, or -1.
    """
    return forward.plan((data, packed, bias, residual, into), (*numbers, first))


def convolve(data: torch.Tensor, weight: torch.Tensor, bias: Optional[torch.Tensor], steps: tuple[int, ...], turned: bool = False) -> torch.Tensor:
    """The convolution of `data` with `weight` (K, C, R, S), both channels last; `steps` are stride, padding and dilation.

    With `turned` the convolution that brings gradients (N, K, P, Q) back to the C channels, of which stride and padding are those of its own.
    """
    tiles, = (pack_turned if turned else pack)((weight,))
    filters, kernel = weight.shape[int(turned)], tuple(weight.shape[2:])
    along = [(n + 2 * p - d * (k - 1) - 1) // s + 1 for n, k, s, p, d in zip(data.shape[2:], kernel, steps[:2], steps[2:4], steps[4:])]
    out = torch.empty((len(data), filters, *along), dtype=data.dtype, memory_format=torch.channels_last)
    forward((data, tiles, bias, None, out), (filters, *kernel, *steps, 0), (-1.0,))
    return out


def fits(way: str, arrays: Sequence[Optional[torch.Tensor]], out: torch.Tensor) -> bool:
    """Whether `multiply` takes arrays like these."""
    return _products[way].plan(_whole(way, arrays, out)) is not None


def multiply(way: str, arrays: Sequence[Optional[torch.Tensor]], out: torch.Tensor) -> bool:
    """Write a product of matrices to `out`; False where it has numbers that are none, as it does for infinite ones.

    Of rows (N, C), a weight (K, C) and a bias (K,) or None, which is what is called ``"forward"``; of gradients (N, K) and a weight (K, C) as the
    ``"gradient of data"``; of gradients (N, K) and rows (N, C) as the ``"gradient of weights"``.
    """
    return not _products[way](_whole(way, arrays, out))[-1].item()


def _whole(way: str, arrays: Sequence[Optional[torch.Tensor]], out: torch.Tensor) -> tuple[Optional[torch.Tensor], ...]:
    return (*arrays, *([None] if way == "gradient of data" else []), out)
