"""Winograd convolutions with stride 1. Multiplications for an output and pair of channels: 4 or 2.25 instead of 9 for 3x3, 9 instead of 25 for 5x5,
and along one axis 1.5 instead of 3 or 4 instead of 7.

The arithmetic is float32, also for data in bfloat16. docs/performance.md compares the rounding errors with those of the direct kernel. Weights are
transformed first, at each call or once.
"""
from typing import NamedTuple, Optional

import torch

from ..runtime.contract import Kernel, Plan
from ..runtime.parameters import WinogradGradientParams, WinogradParams
from ..runtime.strided_output import ANY


class Form(NamedTuple):
    """A variant F(outputs, taps): the output tile and the filter's size along each axis."""

    outputs: tuple[int, int]
    taps: tuple[int, int]

    @property
    def points(self) -> int:
        """The number of products for each tile and pair of channels."""
        return (self.outputs[0] + self.taps[0] - 1) * (self.outputs[1] + self.taps[1] - 1)

    @property
    def entry(self) -> str:
        """The suffix of the kernels' names."""
        return "{}x{}_{}x{}".format(*self.outputs, *self.taps)


DIRECT = "direct"
FORMS = {"Winograd F(2x2)": Form((2, 2), (3, 3)), "Winograd F(4x4)": Form((4, 4), (3, 3)), "Winograd F(2x2, 5x5)": Form((2, 2), (5, 5)),
         "Winograd F(1x4, 1x3)": Form((1, 4), (1, 3)), "Winograd F(4x1, 3x1)": Form((4, 1), (3, 1)),
         "Winograd F(1x2, 1x7)": Form((1, 2), (1, 7)), "Winograd F(2x1, 7x1)": Form((2, 1), (7, 1))}
_BY_TAPS: dict[tuple[int, ...], tuple[str, ...]] = {form.taps: tuple(n for n, f in FORMS.items() if f.taps == form.taps) for form in FORMS.values()}
_ROOM, _LEAST = 12 << 20, 32  # bytes of a block of tiles in the weight gradient, and the least number of tiles in a block
_PRECONDITIONS = ("c % 16 == 0", "k % 16 == 0", "min(n, c, h, w, k, p, q) >= 1", "min(pad_h, pad_w) >= 0")


def _weights(form: Form) -> Kernel:
    return Kernel("conv/winograd", f"weights_{form.entry}", {"weight": "float32 (k, c, {}, {}) last".format(*form.taps)},
                  {"out": f"float32 ({form.points}, channels, filters)"}, integers=("turned",),
                  where={"channels": "k if turned else c", "filters": "c if turned else k"},
                  preconditions=("c % 16 == 0", "k % 16 == 0", "min(c, k) >= 1"), sizes=("channels", "filters", "turned"))


def _forward(form: Form) -> Kernel:
    height, width = form.taps
    return Kernel("conv/winograd", f"forward_{form.entry}_{{T}}",
                  {"data": "T (n, c, h, w) last", "weights": f"float32 ({form.points}, c, k)", "bias": "float32 (k) optional",
                   "residual": "T (n, k, p, q) last optional", "into": "T (n, total, p, q) last"}, integers=("pad_h", "pad_w", "first"), numbers="f",
                  where={"p": f"h + 2 * pad_h - {height - 1}", "q": f"w + 2 * pad_w - {width - 1}"},
                  preconditions=(*_PRECONDITIONS, "first >= 0", "first + k <= total"),
                  parameters=WinogradParams,
                  multiplies=f"n * c * k * p * q * {height * width}")  # the direct kernel's count, so that both flush the same denormal numbers


def _backward_weight(form: Form) -> Kernel:
    (down, across), (height, width) = form.outputs, form.taps
    return Kernel("conv/winograd", f"backward_weight_{form.entry}_{{T}}", {"dout": "T (n, k, p, q) last", "data": "T (n, c, h, w) last"},
                  {"dweight": f"float32 (k, c, {height}, {width}) last", "dbias": "float32 (k) if biased", "sums": f"float32 ({form.points}, k, c)",
                   "left": f"float32 ({form.points}, left_plane)", "right": f"float32 ({form.points}, right_plane)"},
                  integers=("biased", "pad_h", "pad_w"),
                  where={"squares": f"n * ((p + {down - 1}) // {down}) * ((q + {across - 1}) // {across})",
                         "block": f"min(squares, max({_LEAST}, {_ROOM} // (4 * {form.points} * (k + c))))",
                         "left_plane": "block * (k + 16) + 16", "right_plane": "block * c + 16"},
                  preconditions=(*_PRECONDITIONS, f"p == h + 2 * pad_h - {height - 1}", f"q == w + 2 * pad_w - {width - 1}"),
                  parameters=WinogradGradientParams,
                  multiplies=f"n * c * k * p * q * {height * width}")


weights = {name: _weights(form) for name, form in FORMS.items()}
forward = {name: _forward(form) for name, form in FORMS.items()}
# With five or seven taps the errors are three to four times those of the direct kernel, and with two threads more.
backward = {name: _backward_weight(form) for name, form in FORMS.items() if max(form.taps) < 5}


def names(weight: torch.Tensor, steps: tuple[int, ...]) -> tuple[str, ...]:
    """Return the names of the forms that fit these weights; `steps` begins with stride, padding and dilation, two numbers each."""
    if weight.dtype is not torch.float32 or steps[:2] != (1, 1) or steps[4:6] != (1, 1):
        return ()
    return _BY_TAPS.get(tuple(weight.shape[2:]), ())


def transformed(name: str, weight: torch.Tensor, turned: bool = False) -> torch.Tensor:
    """Return the weights (channels last) in the Winograd domain of the named form."""
    found, = weights[name]((weight,), (turned,))
    return found


def plan(name: str, data: torch.Tensor, weight: torch.Tensor, bias: Optional[torch.Tensor], residual: Optional[torch.Tensor], into: torch.Tensor,
         pad: tuple[int, ...], first: int) -> Optional[Plan]:
    """Return the plan for these arguments, the weights being transformed; the result goes to the channels of `into` from `first` on.

    The plan's number is the upper bound of a clipped ReLU (infinite for ReLU), or `ANY` for none.
    """
    return forward[name].plan((data, weight, bias, residual, into), (*pad, first))


def convolve(name: str, data: torch.Tensor, transformed: torch.Tensor, bias: Optional[torch.Tensor] = None, residual: Optional[torch.Tensor] = None,
             pad: tuple[int, ...] = (0, 0), ceiling: float = ANY) -> torch.Tensor:
    """Convolve `data` (N, C, H, W) with transformed weights and add `residual` (N, K, P, Q); a `ceiling` clips to [0, ceiling]."""
    (height, width), (n, _, h, w) = FORMS[name].taps, data.shape
    sizes = n, transformed.shape[-1], max(h + 2 * pad[0] - height + 1, 0), max(w + 2 * pad[1] - width + 1, 0)
    out = torch.empty(sizes, dtype=data.dtype, memory_format=torch.channels_last)
    forward[name]((data, transformed, bias, residual, out), (*pad, 0), (ceiling,))
    return out


def run(name: str, data: torch.Tensor, weight: torch.Tensor, bias: Optional[torch.Tensor], pad: tuple[int, ...],
        turned: bool = False) -> torch.Tensor:
    """Convolve `data` by the named form; with `turned`, compute the data gradient, `pad` being the padding of that direction."""
    return convolve(name, data, transformed(name, weight, turned), bias, pad=pad)


def backward_weight(name: str, dout: torch.Tensor, data: torch.Tensor, biased: bool,
                    pad: tuple[int, ...]) -> tuple[torch.Tensor, Optional[torch.Tensor]]:
    """Return the float32 gradients of the weights (K, C, R, S) and, if `biased`, of the bias (else None), by the named form."""
    dweight, dbias, *_ = backward[name]((dout, data), (biased, *pad))
    return dweight, dbias
