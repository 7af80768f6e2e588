"""Convolutions with step 1 by fewer multiplications: of 3x3 4 or 2.25 for an output and pair of channels instead of 9, of 5x5 9 instead of 25, and
along one axis 1.5 instead of 3 or 4 instead of 7.

They compute in single precision, of bfloat16 as well, which they read and write.
Their rounding errors beside those of the direct kernel are in docs/performance.md. Weights are transformed first, at each call or once.
"""
from typing import NamedTuple, Optional

import torch

from ..runtime.contract import Kernel, Plan
from ..runtime.strided_output import ANY


class Form(NamedTuple):
    """How many outputs along each axis are computed together, of how many taps."""

    outputs: tuple[int, int]
    taps: tuple[int, int]

    @property
    def points(self) -> int:
        """Products for each pair of channels."""
        return (self.outputs[0] + self.taps[0] - 1) * (self.outputs[1] + self.taps[1] - 1)

    @property
    def entry(self) -> str:
        """What the kernels' names end with."""
        return "{}x{}_{}x{}".format(*self.outputs, *self.taps)


DIRECT = "direct"
FORMS = {"Winograd F(2x2)": Form((2, 2), (3, 3)), "Winograd F(4x4)": Form((4, 4), (3, 3)), "Winograd F(2x2, 5x5)": Form((2, 2), (5, 5)),
         "Winograd F(1x4, 1x3)": Form((1, 4), (1, 3)), "Winograd F(4x1, 3x1)": Form((4, 1), (3, 1)),
         "Winograd F(1x2, 1x7)": Form((1, 2), (1, 7)), "Winograd F(2x1, 7x1)": Form((2, 1), (7, 1))}
_BY_TAPS: dict[tuple[int, ...], tuple[str, ...]] = {form.taps: tuple(n for n, f in FORMS.items() if f.taps == form.taps) for form in FORMS.values()}
_ROOM, _LEAST = 12 << 20, 32  # bytes of the squares whose products are summed up together for the gradient of the weights; so many squares at least
_DEMANDS = ("c % 16 == 0", "k % 16 == 0", "min(n, c, h, w, k, p, q) >= 1", "min(pad_h, pad_w) >= 0")


def _weights(form: Form) -> Kernel:
    return Kernel("conv/winograd", f"weights_{form.entry}", {"weight": "float32 (k, c, {}, {}) last".format(*form.taps)},
                  {"out": f"float32 ({form.points}, channels, filters)"}, integers=("turned",),
                  where={"channels": "k if turned else c", "filters": "c if turned else k"},
                  demands=("c % 16 == 0", "k % 16 == 0", "min(c, k) >= 1"), sizes=("channels", "filters", "turned"))


def _forward(form: Form) -> Kernel:
    height, width = form.taps
    return Kernel("conv/winograd", f"forward_{form.entry}_{{T}}",
                  {"data": "T (n, c, h, w) last", "weights": f"float32 ({form.points}, c, k)", "bias": "float32 (k) optional",
                   "residual": "T (n, k, p, q) last optional", "into": "T (n, total, p, q) last"}, integers=("pad_h", "pad_w", "first"), numbers="f",
                  where={"p": f"h + 2 * pad_h - {height - 1}", "q": f"w + 2 * pad_w - {width - 1}"},
                  demands=(*_DEMANDS, "first >= 0", "first + k <= total"),
                  sizes=("n", "h", "w", "c", "k", "p", "q", "pad_h", "pad_w", "total", "first"), packed=True,
                  multiplies=f"n * c * k * p * q * {height * width}")  # of the direct kernel, which takes the same numbers for zero


def _backward_weight(form: Form) -> Kernel:
    (down, across), (height, width) = form.outputs, form.taps
    return Kernel("conv/winograd", f"backward_weight_{form.entry}_{{T}}", {"dout": "T (n, k, p, q) last", "data": "T (n, c, h, w) last"},
                  {"dweight": f"float32 (k, c, {height}, {width}) last", "dbias": "float32 (k) if biased", "sums": f"float32 ({form.points}, k, c)",
                   "left": f"float32 ({form.points}, left_plane)", "right": f"float32 ({form.points}, right_plane)"},
                  integers=("biased", "pad_h", "pad_w"),
                  where={"squares": f"n * ((p + {down - 1}) // {down}) * ((q + {across - 1}) // {across})",
                         "block": f"min(squares, max({_LEAST}, {_ROOM} // (4 * {form.points} * (k + c))))",
                         "left_plane": "block * (k + 16) + 16", "right_plane": "block * c + 16"},
                  demands=(*_DEMANDS, f"p == h + 2 * pad_h - {height - 1}", f"q == w + 2 * pad_w - {width - 1}"),
                  sizes=("n", "h", "w", "c", "k", "p", "q", "pad_h", "pad_w", "block"), packed=True,
                  multiplies=f"n * c * k * p * q * {height * width}")


weights = {name: _weights(form) for name, form in FORMS.items()}
forward = {name: _forward(form) for name, form in FORMS.items()}
# Of five or seven taps errors are three to four times those of the direct kernel, and with two threads more.
backward = {name: _backward_weight(form) for name, form in FORMS.items() if max(form.taps) < 5}


def names(weight: torch.Tensor, steps: tuple[int, ...]) -> tuple[str, ...]:
    """The forms that may compute a convolution with these weights; `steps` are its stride, padding and dilation, two each, and what may follow."""
    if weight.dtype is not torch.float32 or steps[:2] != (1, 1) or steps[4:6] != (1, 1):
        return ()
    return _BY_TAPS.get(tuple(weight.shape[2:]), ())


def backwards(weight: torch.Tensor, pad: tuple[int, ...]) -> tuple[int, int]:
    """The padding of the convolution that brings a gradient back through one with this padding; below 0 there is none."""
    return weight.shape[2] - 1 - pad[0], weight.shape[3] - 1 - pad[1]


def transformed(name: str, weight: torch.Tensor, turned: bool = False) -> torch.Tensor:
    """The weights (channels last) as the algorithm of that name multiplies them."""
    found, = weights[name]((weight,), (turned,))
    return found


def plan(name: str, data: torch.Tensor, weight: torch.Tensor, bias: Optional[torch.Tensor], residual: Optional[torch.Tensor], into: torch.Tensor,
         pad: tuple[int, ...], first: int) -> Optional[Plan]:
    """How to run on arguments like these, of which the weights are transformed; the result are the channels of `into` from `first` on.

    The plan's number is the ceiling of the rectified results, `ANY` where they stay as they are.
    """
    return forward[name].plan((data, weight, bias, residual, into), (*pad, first))


def convolve(name: str, data: torch.Tensor, transformed: torch.Tensor, bias: Optional[torch.Tensor] = None, residual: Optional[torch.Tensor] = None,
             pad: tuple[int, ...] = (0, 0), ceiling: float = ANY) -> torch.Tensor:
    """The convolution of `data` (N, C, H, W) with transformed weights, plus the `residual` (N, K, P, Q); with a `ceiling` between 0 and that."""
    (height, width), (n, _, h, w) = FORMS[name].taps, data.shape
    sizes = n, transformed.shape[-1], max(h + 2 * pad[0] - height + 1, 0), max(w + 2 * pad[1] - width + 1, 0)
    out = torch.empty(sizes, dtype=data.dtype, memory_format=torch.channels_last)
    forward[name]((data, transformed, bias, residual, out), (*pad, 0), (ceiling,))
    return out


def run(name: str, data: torch.Tensor, weight: torch.Tensor, bias: Optional[torch.Tensor], pad: tuple[int, ...],
        turned: bool = False) -> torch.Tensor:
    """The convolution of `data` by the algorithm of that name; with `turned`, of a gradient back to the data, `pad` being that of this direction."""
    return convolve(name, data, transformed(name, weight, turned), bias, pad=pad)


def backward_weight(name: str, dout: torch.Tensor, data: torch.Tensor, biased: bool,
                    pad: tuple[int, ...]) -> tuple[torch.Tensor, Optional[torch.Tensor]]:
    """The gradients of the weights (K, C, R, S), by the algorithm of that name, and of the bias, if it is `biased`; float32."""
    dweight, dbias, *_ = backward[name]((dout, data), (biased, *pad))
    return dweight, dbias
