"""Two-dimensional maximum pooling for training on a GPU, of images with their channels last: one kernel forward, and one backward.

The kernels are in Triton (`max_pooling_triton`), on which CUDA builds of torch depend. They are bound by memory traffic: torch saves the data and
an index of 8 bytes a result, these save a byte a result, the offset in the window. Backward gathers, so that each gradient is written once,
and is the same at each run.
"""
from collections.abc import Callable
from typing import Any, NamedTuple, Optional

import torch

from ..runtime import channel_kernels, measurement, tuning
from ..runtime.channel_kernels import arranged, blocks
from ..runtime.triton_kernels import on
from .scoring_on_gpu import fits_window

_MOST_PIXELS = 1 << 30  # of the result, and cells of the gradient: their numbers have 32 bits
KERNEL, TORCH = "a kernel in Triton", "torch's operator"


class Window(NamedTuple):
    """The attributes of a pooling; `ceil` is torch's ``ceil_mode``."""

    kernel: tuple[int, ...]
    stride: tuple[int, ...]
    pad: tuple[int, ...]
    ceil: bool

    def counts(self, sizes: torch.Size) -> list[int]:
        """Return the number of windows along each axis of data with these sizes, as torch does: none begins behind the data."""
        counts = []
        for size, k, s, p in zip(sizes, *self[:3]):
            count = (size + 2 * p - k + (s - 1 if self.ceil else 0)) // s + 1
            counts.append(count - (self.ceil and (count - 1) * s >= size + p))
        return counts

    def constants(self) -> tuple[int, ...]:
        return *self.kernel, *self.stride, *self.pad


def _load() -> Any:
    from . import max_pooling_triton

    return max_pooling_triton


def _smoke_tests(device: torch.device, dtype: torch.dtype, window: Window, channels: int) -> list[Callable[[], None]]:
    """Return a function that pools one window of some channels, and computes the gradient."""

    def test() -> None:
        data = torch.zeros(1, channels, *window.kernel, dtype=dtype, device=device).contiguous(memory_format=torch.channels_last)
        with on(device):
            out, offsets = _forward(data, window)
            _backward(out, offsets, data.shape, window)

    return [test]


kernels = channel_kernels.KernelModule("maximum poolings", _load, _smoke_tests)


def max_pool2d(data: torch.Tensor, window: Window) -> Optional[torch.Tensor]:
    """Compute maximum pooling, recorded by torch's autograd; return None where no kernel fits, or torch's operator is faster.

    Parameters
    ----------
    data : torch.Tensor
        (N, C, H, W) with its channels last.
    window : Window
    """
    if not channel_kernels.fits(data) or data.dim() != 4 or not _fits(data.shape, window):
        return None
    # Triton compiles anew for each window, width of a tile, and remainder of the channels.
    channels = data.shape[1]
    alike = channels if channels <= blocks(channels)[1] else blocks(channels)[1] + channels % 16
    if not kernels.available(data.device, data.dtype, window, alike) or choices.choose(data, window) == TORCH:
        return None
    out: torch.Tensor = _MaxPool.apply(data, window)
    return out


def _fits(shape: torch.Size, window: Window) -> bool:
    if not (fits_window(window.kernel) and fits_window(window.stride) and all(0 <= 2 * p <= k for p, k in zip(window.pad, window.kernel))):
        return False
    counts = window.counts(shape[2:])
    return min(counts) > 0 and shape[0] * max(counts[0] * counts[1], _cells(shape, window)[0]) <= _MOST_PIXELS


class Choices:
    """The choices between the kernels and torch's operator, each made at the first pooling of about its size."""

    def __init__(self) -> None:
        self._made: dict[tuple, str] = {}

    def choose(self, data: torch.Tensor, window: Window) -> str:
        """Return the name of the faster one; the kernels' where nothing was timed, in a capture or as timing is not allowed."""
        key = data.device, data.dtype, window, data.shape[1], data.numel().bit_length()
        choice = self._made.get(key)
        if choice is None and data.is_cuda and tuning.allowed() and not measurement.cuda.is_current_stream_capturing():
            choice = self._made[key] = fastest(data.detach(), window)
        return choice or KERNEL


choices = Choices()


def fastest(data: torch.Tensor, window: Window) -> str:
    """Return the name of the faster candidate for a training step, forward and backward, by the GPU's clock."""
    arguments = *window[:3], (1, 1), window.ceil

    def by_kernels() -> None:
        out, offsets = _forward(data, window)
        _backward(out, offsets, data.shape, window)

    def by_torch() -> None:
        out, indices = torch.ops.aten.max_pool2d_with_indices(data, *arguments)
        torch.ops.aten.max_pool2d_with_indices_backward(out, data, *arguments, indices)

    runs = {KERNEL: by_kernels, TORCH: by_torch}
    try:
        with torch.no_grad(), on(data.device):
            for run in runs.values():
                run()
            times = measurement.benchmark(runs, lambda run: [measurement.gpu_milliseconds(run)], measurement.GPU_LAYER).times
    except torch.OutOfMemoryError:  # the kernels need less
        return KERNEL
    return measurement.GPU_LAYER.fastest(times)


class _MaxPool(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, data: torch.Tensor, window: Window) -> torch.Tensor:
        with on(data.device):
            out, offsets = _forward(data, window)
        ctx.shape, ctx.window = data.shape, window
        ctx.save_for_backward(offsets)
        return out

    @staticmethod
    def backward(ctx: Any, dout: torch.Tensor) -> tuple[torch.Tensor, None]:
        offsets, = ctx.saved_tensors
        if torch.is_grad_enabled():  # the gradient will be differentiated itself
            return _recorded_gradient(dout, offsets, ctx.shape, ctx.window), None
        with on(dout.device):
            return _backward(arranged(dout), offsets, ctx.shape, ctx.window), None


def _recorded_gradient(dout: torch.Tensor, offsets: torch.Tensor, shape: torch.Size, window: Window) -> torch.Tensor:
    """Return the gradient computed by torch's operators, which can be differentiated again: it is linear in `dout`."""
    below, right = (torch.arange(n, device=dout.device) * s - p for n, s, p in zip(offsets.shape[2:], window.stride, window.pad))
    place = offsets.long()
    place = (place // window.kernel[1] + below[:, None]) * shape[3] + place % window.kernel[1] + right
    dx = torch.zeros(*shape[:2], shape[2] * shape[3], dtype=torch.float32, device=dout.device)
    return dx.scatter_add(2, place.flatten(2), dout.flatten(2).float()).to(dout.dtype).view(shape)


def _cells(shape: torch.Size, window: Window) -> tuple[int, int, int]:
    """Return the number of cells of an image, and those along its axes; see `max_pooling_triton`."""
    rows, columns = ((size - 1 + p) // s + 1 for size, s, p in zip(shape[2:], window.stride, window.pad))
    return rows * columns, rows, columns


def _tiles(pixels: int, channels: int) -> tuple[tuple[int, int, int], int, int]:
    """Return the grid of programs, and the pixels and channels of a tile."""
    height, width = blocks(channels)
    height //= 2  # twice the programs, as each holds several values of an element
    return (-(-pixels // height) * -(-channels // width), 1, 1), height, width


def _forward(data: torch.Tensor, window: Window) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the largest values and their offsets in the windows."""
    count, channels, *sizes = data.shape
    counts = window.counts(data.shape[2:])
    out = torch.empty(count, channels, *counts, dtype=data.dtype, device=data.device, memory_format=torch.channels_last)
    offsets = torch.empty_like(out, dtype=torch.uint8)
    pixels = count * counts[0] * counts[1]
    grid, *tile = _tiles(pixels, channels)
    kernels.start("max_pool", grid, (data, out, offsets), channels, (channels, pixels, *sizes, *counts), (*window.constants(), *tile))
    return out, offsets


def _backward(dout: torch.Tensor, offsets: torch.Tensor, shape: torch.Size, window: Window) -> torch.Tensor:
    """Return the gradient of data of this shape."""
    count, channels, *sizes = shape
    dx = torch.empty(shape, dtype=dout.dtype, device=dout.device, memory_format=torch.channels_last)
    cells, rows, columns = _cells(shape, window)
    cells *= count
    grid, *tile = _tiles(cells, channels)
    kernels.start("max_pool_gradient", grid, (dout, offsets, dx), channels,
                  (channels, cells, rows, columns, *sizes, *dout.shape[2:]), (*window.constants(), *tile))
    return dx
