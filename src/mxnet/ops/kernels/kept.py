"""Two-dimensional convolutions whose weights do not change, for scoring on a CPU in single precision."""
import threading
from typing import Optional

import torch

from . import convolution, winograd
from .gate import Plan

_LAST = torch.channels_last


class Kept:
    """A convolution with its weights brought into the order, or transformed to what, is read fastest; a sum and ReLU may follow.

    Attributes
    ----------
    chosen : dict of str to str
        Under ``"forward"`` the name of the algorithm that computed it last.

    Parameters
    ----------
    weight : torch.Tensor
        (K, C / groups, R, S).
    bias : torch.Tensor or None
        (K,).
    stride, pad, dilate : tuple of two int
    groups : int
    relu : bool
        Whether the result is rectified.
    exact : bool
        Whether algorithms that multiply less and round more are left out.

    Example
    -------
    >>> layer = Kept(torch.ones(1, 1, 2, 2), torch.tensor([-3.0]), (1, 1), (0, 0), (1, 1), 1, True)
    >>> layer(torch.tensor([[[[1.0, 0, 1], [1, 2, 1]]]]))
    tensor([[[[1., 1.]]]])
    """

    __name__ = "convolution"  # what generated code and profiles call it

    def __init__(self, weight: torch.Tensor, bias: Optional[torch.Tensor], stride: tuple[int, ...], pad: tuple[int, ...], dilate: tuple[int, ...],
                 groups: int, relu: bool, exact: bool = False):
        self._weight, self._bias = weight.contiguous(memory_format=_LAST), None if bias is None else bias.contiguous()
        self._stride, self._pad, self._dilate, self._groups = tuple(stride), tuple(pad), tuple(dilate), groups
        self._relu, self._exact = relu, exact
        self._transformed: dict[str, torch.Tensor] = {}
        self._plans: dict[tuple, Optional[Plan]] = {}
        self.chosen: dict[str, str] = {}
        self._lock = threading.Lock()

    def __call__(self, data: torch.Tensor, residual: Optional[torch.Tensor] = None) -> torch.Tensor:
        """The convolution of `data` (N, C, H, W), plus `residual` (N, K, P, Q), rectified if it is to be."""
        data = data.contiguous(memory_format=_LAST)
        if residual is not None:
            residual = residual.contiguous(memory_format=_LAST)
        key = data.shape, torch.get_num_threads(), residual is None
        try:
            plan = self._plans[key]
        except KeyError:
            with self._lock:
                plan = self._plans[key] = self._plan(data, residual)
        if plan is None:
            out = torch.conv2d(data, self._weight, self._bias, self._stride, self._pad, self._dilate, self._groups)
            if residual is not None:
                out += residual
            return out.relu_() if self._relu else out
        transformed = self._transformed.get(self.chosen["forward"])
        out, = plan((data, self._weight if transformed is None else transformed, self._bias, residual))
        return out

    def release(self) -> None:
        """Give up the weights: it will not be called any more."""
        self._plans, self._transformed, self._weight = {}, {}, self._weight[:0].clone()

    def _plan(self, data: torch.Tensor, residual: Optional[torch.Tensor]) -> Optional[Plan]:
        """How data of this shape is convolved, by a kernel if one is able to; it stays the same algorithm for all shapes."""
        steps = (*self._stride, *self._pad, *self._dilate, self._relu)
        direct = self._groups == 1 and convolution.forward.plan((data, self._weight, self._bias, residual), steps, convolution._WORTHWHILE) or None
        name = self.chosen.get("forward")
        if name is None:
            name = winograd.DIRECT if direct is not None else "torch"
            if direct is not None and not self._exact and winograd.names(self._weight, steps):
                name = winograd.fastest(data, self._weight, self._pad,
                                        lambda part: convolution.forward((part, self._weight, self._bias, None), steps), kept=self._transform)
            self._transformed = {name: self._transformed[name]} if name in self._transformed else {}
            if name in winograd.FORMS:
                self._transform(name)
                self._weight = self._weight[:0].clone()  # no second copy stays
            self.chosen["forward"] = name
        if name in self._transformed:
            return winograd.plan(name, data, self._transformed[name], self._bias, residual, self._pad, self._relu)
        return direct if name == winograd.DIRECT else None

    def _transform(self, name: str) -> torch.Tensor:
        found = self._transformed.get(name)
        if found is None:
            found = self._transformed[name] = winograd.transformed(name, self._weight)
        return found
