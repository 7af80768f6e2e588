"""Two-dimensional maximum pooling for training on a GPU, of images with their channels last: one kernel forward, and one backward.

The kernels are in Triton (`max_pooling_triton`), on which CUDA builds of torch depend. They are bound by memory traffic: torch saves the data and
an index of 8 bytes a result, these save a byte a result, its mark. That is the offset in the window, or says that a ReLU behind the pooling
lets no gradient pass. Backward gathers, so that each gradient is written once, and is the same at each run.
"""
from collections.abc import Callable
from typing import Any, NamedTuple, Optional

import torch

from ..runtime import channel_kernels, measurement, tuning
from ..runtime.channel_kernels import arranged, blocks
from ..runtime.triton_kernels import on
from .bias_on_gpu import bias_gradient
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


def _smoke_tests(device: torch.device, dtype: torch.dtype, window: Window, channels: int, bias_type: Optional[torch.dtype],
                 relu: bool) -> list[Callable[[], None]]:
    """Return a function that pools one window of some channels, and computes the gradients."""

    def test() -> None:
        data = torch.zeros(1, channels, *window.kernel, dtype=dtype, device=device).contiguous(memory_format=torch.channels_last)
        bias = None if bias_type is None else torch.zeros(channels, dtype=bias_type, device=device)
        with on(device):
            out, marks = _forward(data, window, bias, relu)
            _backward(out, marks, data.shape, window)
            if bias_type is not None:
                bias_gradient(out, marks if relu else None, bias_type)

    return [test]


kernels = channel_kernels.KernelModule("maximum poolings", _load, _smoke_tests)


def max_pool2d(data: torch.Tensor, window: Window, bias: Optional[torch.Tensor] = None, relu: bool = False) -> Optional[torch.Tensor]:
    """Compute ``relu(maximum pooling of data + bias)``, recorded by torch's autograd; bias and ReLU are optional.

    Parameters
    ----------
    data : torch.Tensor
        (N, C, H, W) with its channels last.
    window : Window
    bias : torch.Tensor, optional
        (C,).
    relu : bool

    Returns None where no kernel fits, or torch's operator is faster.
    """
    if not channel_kernels.fits(data) or data.dim() != 4 or not _fits(data.shape, window):
        return None
    if bias is not None and not channel_kernels.fits_vector(bias, data, channel_kernels.TYPES):
        return None
    # Triton compiles anew for each window, width of a tile, and remainder of the channels.
    channels = data.shape[1]
    alike = channels if channels <= blocks(channels)[1] else blocks(channels)[1] + channels % 16
    variant = window, alike, None if bias is None else bias.dtype, relu
    if not kernels.available(data.device, data.dtype, *variant) or choices.choose(data, window) == TORCH:
        return None
    out: torch.Tensor = _MaxPool.apply(data, window, bias, relu)
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
        """Return the name of the faster one; the kernels' where nothing was timed, in a capture or as timing is not allowed.

        Torch's gradient is an error where torch's algorithms have to be deterministic, as the kernels' are.
        """
        if torch.are_deterministic_algorithms_enabled():
            return KERNEL
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
        out, marks = _forward(data, window)
        _backward(out, marks, data.shape, window)

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
    def forward(ctx: Any, data: torch.Tensor, window: Window, bias: Optional[torch.Tensor], relu: bool) -> torch.Tensor:
        with on(data.device):
            out, marks = _forward(data, window, bias, relu)
        ctx.shape, ctx.window, ctx.relu, ctx.bias_type = data.shape, window, relu, None if bias is None else bias.dtype
        ctx.save_for_backward(marks)
        return out

    @staticmethod
    def backward(ctx: Any, dout: torch.Tensor) -> tuple[Optional[torch.Tensor], None, Optional[torch.Tensor], None]:
        marks, = ctx.saved_tensors
        needs_data, _, needs_bias, _ = ctx.needs_input_grad
        dx = dbias = None
        if torch.is_grad_enabled():  # the gradients will be differentiated themselves
            dout = torch.where(marks == 0, 0, dout) if ctx.relu else dout
            dx = _recorded_gradient(dout, marks, ctx.shape, ctx.window) if needs_data else None
            dbias = dout.sum((0, 2, 3)).to(ctx.bias_type) if needs_bias else None
            return dx, None, dbias, None
        dout = arranged(dout)
        with on(dout.device):
            if needs_bias:
                dbias = bias_gradient(dout, marks if ctx.relu else None, ctx.bias_type)
            if needs_data:
                dx = _backward(dout, marks, ctx.shape, ctx.window)
        return dx, None, dbias, None


def _recorded_gradient(dout: torch.Tensor, marks: torch.Tensor, shape: torch.Size, window: Window) -> torch.Tensor:
    """Return the gradient of the data computed by torch's operators, which can be differentiated again; `dout` is 0 where the marks are."""
    below, right = (torch.arange(n, device=dout.device) * s - p for n, s, p in zip(marks.shape[2:], window.stride, window.pad))
    offset = marks.long() - 1
    place = (offset // window.kernel[1] + below[:, None]) * shape[3] + offset % window.kernel[1] + right
    dx = torch.zeros(*shape[:2], shape[2] * shape[3], dtype=torch.float32, device=dout.device)
    return dx.scatter_add(2, place.clamp(min=0).flatten(2), dout.flatten(2).float()).to(dout.dtype).view(shape)


def _cells(shape: torch.Size, window: Window) -> tuple[int, int, int]:
    """Return the number of cells of an image, and those along its axes; see `max_pooling_triton`."""
    rows, columns = ((size - 1 + p) // s + 1 for size, s, p in zip(shape[2:], window.stride, window.pad))
    return rows * columns, rows, columns


def _tiles(pixels: int, channels: int) -> tuple[tuple[int, int, int], int, int]:
    """Return the grid of programs, and the pixels and channels of a tile."""
    height, width = blocks(channels)
    height //= 2  # twice the programs, as each holds several values of an element
    return (-(-pixels // height) * -(-channels // width), 1, 1), height, width


def _forward(data: torch.Tensor, window: Window, bias: Optional[torch.Tensor] = None, relu: bool = False) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the results and their marks."""
    count, channels, *sizes = data.shape
    counts = window.counts(data.shape[2:])
    out = torch.empty(count, channels, *counts, dtype=data.dtype, device=data.device, memory_format=torch.channels_last)
    marks = torch.empty_like(out, dtype=torch.uint8)
    pixels = count * counts[0] * counts[1]
    grid, *tile = _tiles(pixels, channels)
    kernels.start("max_pool", grid, (data, data if bias is None else bias, out, marks), channels, (channels, pixels, *sizes, *counts),
                  (*window.constants(), *tile, bias is not None, relu))
    return out, marks


def _backward(dout: torch.Tensor, marks: torch.Tensor, shape: torch.Size, window: Window) -> torch.Tensor:
    """Return the gradient of data of this shape."""
    count, channels, *sizes = shape
    dx = torch.empty(shape, dtype=dout.dtype, device=dout.device, memory_format=torch.channels_last)
    cells, rows, columns = _cells(shape, window)
    cells *= count
    grid, *tile = _tiles(cells, channels)
    kernels.start("max_pool_gradient", grid, (dout, marks, dx), channels,
                  (channels, cells, rows, columns, *sizes, *dout.shape[2:]), (*window.constants(), *tile))
    return dx
