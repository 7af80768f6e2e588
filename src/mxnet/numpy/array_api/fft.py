"""Fourier transforms."""
from collections.abc import Callable, Sequence
from typing import Any

import torch

from ..multiarray import ndarray
from .calls import apply, device_of, new, to_torch
from .manipulation import axes_of

__all__ = ["fft", "fftfreq", "fftn", "fftshift", "hfft", "ifft", "ifftn", "ifftshift", "ihfft", "irfft", "irfftn", "rfft", "rfftfreq", "rfftn"]


def _of_axis(name: str, function: Callable, doc: str) -> Callable:
    def call(x: ndarray, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> ndarray:
        return apply(f"fft.{name}", function, x, n=n, dim=axis, norm=norm)

    call.__name__ = call.__qualname__ = name
    call.__doc__ = doc
    return call


def _of_axes(name: str, function: Callable, doc: str) -> Callable:
    def call(x: ndarray, /, *, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, norm: str = "backward") -> ndarray:
        return apply(f"fft.{name}", function, x, s=s, dim=axes, norm=norm)

    call.__name__ = call.__qualname__ = name
    call.__doc__ = doc
    return call


fft = _of_axis("fft", torch.fft.fft, "The Fourier transform along an axis, of `n` elements: cut off, or filled up with zeros.")
ifft = _of_axis("ifft", torch.fft.ifft, "The inverse of `fft`.")
rfft = _of_axis("rfft", torch.fft.rfft, "The half of `fft` of real numbers that is not the other's conjugate.")
irfft = _of_axis("irfft", torch.fft.irfft, "The inverse of `rfft`.")
hfft = _of_axis("hfft", torch.fft.hfft, "The real transform of numbers that are one half of a sequence, whose other half is their conjugate.")
ihfft = _of_axis("ihfft", torch.fft.ihfft, "The inverse of `hfft`.")
fftn = _of_axes("fftn", torch.fft.fftn, "The Fourier transform along several axes, by default all.")
ifftn = _of_axes("ifftn", torch.fft.ifftn, "The inverse of `fftn`.")
rfftn = _of_axes("rfftn", torch.fft.rfftn, "The half of `fftn` of real numbers that is not the other's conjugate.")
irfftn = _of_axes("irfftn", torch.fft.irfftn, "The inverse of `rfftn`.")


def _frequencies(function: Callable, n: int, d: float, dtype: Any, device: Any) -> ndarray:
    context = device_of(device)
    target = torch.float32 if dtype is None else to_torch(dtype)
    return new(function(n, d, dtype=torch.float64, device=context.torch_device).to(target), context)


def fftfreq(n: int, /, *, d: float = 1.0, dtype: Any = None, device: Any = None) -> ndarray:
    """Return the frequencies of the elements of `fft`, for samples at the distance `d`."""
    return _frequencies(torch.fft.fftfreq, n, d, dtype, device)


def rfftfreq(n: int, /, *, d: float = 1.0, dtype: Any = None, device: Any = None) -> ndarray:
    """Return the frequencies of the elements of `rfft`, for samples at the distance `d`."""
    return _frequencies(torch.fft.rfftfreq, n, d, dtype, device)


def fftshift(x: ndarray, /, *, axes: Any = None) -> ndarray:
    """Return the elements with the frequency 0 in the middle of the axes."""
    return apply("fft.fftshift", torch.fft.fftshift, x, dim=axes_of("fftshift", axes, x.ndim))


def ifftshift(x: ndarray, /, *, axes: Any = None) -> ndarray:
    """Return the argument of `fftshift` from its result."""
    return apply("fft.ifftshift", torch.fft.ifftshift, x, dim=axes_of("ifftshift", axes, x.ndim))
