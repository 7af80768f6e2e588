"""Convolutions of 3x3 with step 1 by fewer multiplications: 4 or 2.25 for an output and pair of channels, instead of 9.

They compute in single precision, of bfloat16 as well, which they read and write.
Their rounding errors beside those of the direct kernel are in docs/performance.md. Weights are transformed first, at each call or once.
"""
import functools
from collections.abc import Callable
from typing import Any, Optional

import torch

from .gate import Kernel, Plan
from .races import Races

DIRECT = "direct"
_POINTS = {2: 16, 4: 36}  # by the size of a square of outputs: products for it
NAMES = {size: f"Winograd F({size}x{size})" for size in _POINTS}
_SIZES = {name: size for size, name in NAMES.items()}
_WORTHWHILE = 1 << 24  # multiplications (of the direct kernel) from which on there is a race
_SQUARES = 512  # of 4x4 outputs for each thread: as many as a race needs
_MOST = 1 << 10  # programs whose shapes never repeat must not fill the memory
_DEMANDS = ("c % 16 == 0", "k % 16 == 0", "min(n, c, h, w, k, p, q) >= 1", "min(pad_h, pad_w) >= 0")

weights = {size: Kernel("winograd", f"weights_{size}", {"weight": "float32 (k, c, 3, 3) last"},
                        {"out": f"float32 ({points}, channels, filters)"}, integers=("turned",),
                        where={"channels": "k if turned else c", "filters": "c if turned else k"},
                        demands=("c % 16 == 0", "k % 16 == 0", "min(c, k) >= 1"), sizes=("channels", "filters", "turned"))
           for size, points in _POINTS.items()}
forward = {size: Kernel("winograd", f"forward_{size}_{{T}}",
                        {"data": "T (n, c, h, w) last", "weights": f"float32 ({points}, c, k)", "bias": "float32 (k) optional",
                         "residual": "T (n, k, p, q) last optional"}, {"out": "T (n, k, p, q) last"}, integers=("pad_h", "pad_w", "relu"),
                        where={"p": "h + 2 * pad_h - 2", "q": "w + 2 * pad_w - 2"}, demands=_DEMANDS,
                        sizes=("n", "h", "w", "c", "k", "p", "q", "pad_h", "pad_w", "relu"), packed=True,
                        multiplies="n * c * k * p * q * 9")  # of the direct kernel, which takes the same numbers for zero
           for size, points in _POINTS.items()}
races = Races("convolutions", "convolution", "winograd")
_found: dict[tuple, str] = {}


def suits(weight: torch.Tensor, steps: tuple[int, ...]) -> bool:
    """Whether a convolution with these weights may be computed so; `steps` are its stride, padding and dilation, two each, and what may follow."""
    return weight.dtype is torch.float32 and weight.shape[2:] == (3, 3) and steps[:2] == steps[4:6] == (1, 1)


def transformed(name: str, weight: torch.Tensor, turned: bool = False) -> torch.Tensor:
    """The weights (channels last) as the algorithm of that name multiplies them."""
    found, = weights[_SIZES[name]]((weight,), (turned,))
    return found


def plan(name: str, data: torch.Tensor, weight: torch.Tensor, bias: Optional[torch.Tensor], residual: Optional[torch.Tensor], pad: tuple[int, ...],
         relu: bool) -> Optional[Plan]:
    """How to run on arguments like these, of which the weights are transformed."""
    return forward[_SIZES[name]].plan((data, weight, bias, residual), (*pad, relu))


def run(name: str, data: torch.Tensor, weight: torch.Tensor, bias: Optional[torch.Tensor], pad: tuple[int, ...],
        turned: bool = False) -> torch.Tensor:
    """The convolution of `data` by the algorithm of that name; with `turned`, of a gradient back to the data, `pad` being that of this direction."""
    out, = forward[_SIZES[name]]((data, transformed(name, weight, turned), bias, None), (*pad, False))
    return out


def fastest(data: torch.Tensor, weight: torch.Tensor, pad: tuple[int, ...], direct: Callable[[torch.Tensor], Any], turned: bool = False,
            kept: Optional[Callable[[str], torch.Tensor]] = None) -> str:
    """The name of the fastest way to convolve data of this shape with weights of this one: found by a race of all, once for each machine.

    Parameters
    ----------
    data : torch.Tensor
        (N, C, H, W), float32, channels last, as the direct kernel takes them.
    weight : torch.Tensor
        (K, C, 3, 3), or (C, K, 3, 3) where it is `turned`.
    pad : tuple of int
    direct : callable
        ``direct(data)`` is the direct kernel.
    turned : bool
        Whether gradients go back through the weights.
    kept : callable, optional
        ``kept(name)`` has the weights transformed before; without it each call transforms them.
    """
    threads = torch.get_num_threads()
    key = data.shape, weight.shape, pad, threads, turned, kept is None
    try:
        return _found[key]
    except KeyError:
        pass
    n, c, h, w = data.shape
    filters, p, q = weight.shape[int(turned)], h + 2 * pad[0] - 2, w + 2 * pad[1] - 2
    found = DIRECT
    if min(p, q, *pad) >= 0 and n * c * filters * p * q * 9 >= _WORTHWHILE and forward[4].available(T="float32"):
        images = min(n, -(-_SQUARES * threads // (-(-p // 4) * -(-q // 4))))
        part = data[:images]
        runs = {DIRECT: functools.partial(direct, part)}
        for size, name in NAMES.items():
            if kept is None:
                runs[name] = functools.partial(run, name, part, weight, None, pad, turned)
            else:
                runs[name] = functools.partial(forward[size], (part, kept(name), None, None), (*pad, False))
        way = "weights kept" if kept is not None else "gradient of data" if turned else "forward"
        found = races.winner(f"{way}, {images}x{c}x{h}x{w} to {filters}, padding {pad[0]}x{pad[1]}, {threads} threads", runs)
    if len(_found) >= _MOST:
        _found.clear()
    _found[key] = found
    return found
