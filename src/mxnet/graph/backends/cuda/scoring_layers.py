"""Layers for inference on GPUs with a choice of algorithms: the first call measures which one is the fastest.

An algorithm is a candidate if it works on this machine and gives the results of torch's operators one by one.
"""
import abc
import functools
import math
from collections.abc import Callable
from typing import Any

import torch

from ....kernels.nn import scoring_on_gpu
from ....kernels.runtime import tuning
from ....kernels.runtime.measurement import GPU_LAYER, benchmark, gpu_milliseconds
from ....kernels.runtime.strided_output import ANY

cuda: Any = torch.cuda  # replaced in tests
FUSED, WIDENED, PRODUCT = "one call of cuDNN's", "one call of cuDNN's, on more channels", "a product of matrices"
KERNEL, PARTS = "a kernel in Triton", "torch's operators"
_WIDE = 8  # channels that tensor cores process at once in half precision
TYPES = (torch.float16, torch.bfloat16, torch.float32)
_CLOSE = 0.05  # largest difference relative to the largest element, due to TF32 and half precision; wrong results differ more


class Layer(abc.ABC):
    """A layer of a graph, called with images (N, C, H, W) and further arguments.

    Attributes
    ----------
    algorithm : str or None
        The chosen algorithm; None before the choice. There is a choice only for channels-last images in a GPU's memory.
    """

    def __init__(self) -> None:
        self.algorithm: str | None = None

    @abc.abstractmethod
    def algorithms(self, data: torch.Tensor, *others: Any) -> list[str]:
        """Return the algorithms for data of such a shape, the most promising first, `PARTS` last."""

    @abc.abstractmethod
    def run(self, algorithm: str, data: torch.Tensor, *others: Any) -> torch.Tensor:
        """Return the result, computed by one algorithm."""

    def __call__(self, data: torch.Tensor, *others: Any) -> torch.Tensor:
        """Return the result, in newly allocated memory. The first call must not be captured."""
        algorithm = self.algorithm
        if algorithm is not PARTS and not (data.is_cuda and data.dtype in TYPES and data.is_contiguous(memory_format=torch.channels_last)):
            algorithm = PARTS
        if algorithm is None and not cuda.is_current_stream_capturing():
            algorithm = self.algorithm = self._fastest(data, *others)
        return self.run(algorithm or PARTS, data, *others)

    def _fastest(self, *arguments: Any) -> str:
        """Return the fastest algorithm that works here; the first one if timing is not allowed."""
        algorithms = self.algorithms(*arguments)
        if len(algorithms) == 1:
            return algorithms[0]
        expected = self.run(PARTS, *arguments)  # cuDNN also selects its algorithm here
        runs: dict[str, functools.partial[torch.Tensor]] = {}
        for algorithm in algorithms:
            run: functools.partial[torch.Tensor] = functools.partial(self.run, algorithm, *arguments)
            # Operators behind a convolution are free in cuDNN's call: no kernel has to be compiled for them.
            if (algorithm != KERNEL or FUSED not in runs) and _works(run, expected):
                runs[algorithm] = run
        if len(runs) < 2 or not (tuning.allowed() and torch.backends.cudnn.benchmark):  # a choice by time makes results vary between runs
            return next(iter(runs), PARTS)
        return GPU_LAYER.fastest(benchmark(runs, lambda run: [gpu_milliseconds(run)], GPU_LAYER).times)


def _works(run: Callable[[], torch.Tensor], expected: torch.Tensor) -> bool:
    """Return True if an algorithm works, and gives the expected result."""
    try:
        result = run()
    except torch.OutOfMemoryError:
        raise
    except Exception:  # cuDNN has no engine for such shapes, or a compiler fails
        return False
    if result.shape != expected.shape or result.dtype is not expected.dtype:
        return False
    return not result.numel() or bool((result.float() - expected.float()).abs().max() <= _CLOSE * expected.float().abs().max())


def _rectified(data: torch.Tensor, ceiling: float) -> torch.Tensor:
    """Apply ReLU in place, with an upper limit; a negative limit means none of both."""
    return data if ceiling < 0 else torch.relu_(data) if ceiling == math.inf else data.clamp_(0, ceiling)


class Convolution(Layer):
    """A two-dimensional convolution and the operators behind it: ``rectified(convolution(data, weight) + bias + residual)``.

    It is called with data, weight (K, C / groups, R, S), bias (K,) or None, and the residual, of the result's shape and type, or None.

    Parameters
    ----------
    stride, padding, dilation : tuple of two int
    groups : int
    ceiling : float
        The upper limit of rectified results; `strided_output.ANY` without rectification.
    """

    __name__ = "convolution"  # in generated code and profiles

    def __init__(self, stride: tuple[int, ...], padding: tuple[int, ...], dilation: tuple[int, ...], groups: int, ceiling: float = ANY):
        super().__init__()
        self._steps, self._ceiling = (stride, padding, dilation, groups), ceiling

    def __call__(self, data: torch.Tensor, weight: Any, bias: Any = None, residual: Any = None) -> torch.Tensor:  # type: ignore[override]
        return super().__call__(data, weight, bias, residual)

    def algorithms(self, data: torch.Tensor, weight: Any, bias: Any, residual: Any) -> list[str]:  # type: ignore[override]
        if bias is None:
            return [PARTS]
        behind = [KERNEL, PARTS] if scoring_on_gpu.available(data.device) else [PARTS]
        if self._steps[3] > 1:  # depthwise and grouped convolutions have separate kernels, without ReLU
            return behind
        half = data.dtype is not torch.float32
        algorithms = [] if self._ceiling < 0 else [FUSED, WIDENED] if half and data.shape[1] < _WIDE else [FUSED]
        single = weight.shape[2:] == (1, 1) and self._steps[:2] == ((1, 1), (0, 0))
        # Products of float32 matrices may round differently from convolutions.
        if residual is None and single and self._ceiling in (ANY, math.inf) and half:
            algorithms.append(PRODUCT)
        return algorithms + behind

    def run(self, algorithm: str, data: torch.Tensor, weight: Any, bias: Any, residual: Any) -> torch.Tensor:  # type: ignore[override]
        if algorithm == PRODUCT:
            return self._product(data, weight, bias)
        if algorithm == KERNEL:
            out = torch.conv2d(data, weight, None, *self._steps)
            if not scoring_on_gpu.fits(out):
                raise RuntimeError("the channels of the result are not last")
            return scoring_on_gpu.finish(out, bias, None, residual, self._ceiling, in_place=True)
        if algorithm == PARTS:
            out = torch.conv2d(data, weight, bias, *self._steps)
            return _rectified(out if residual is None else out.add_(residual), self._ceiling)
        if algorithm == WIDENED:
            data, weight = _widened(data), _widened(weight)
        if residual is None:
            out = torch.cudnn_convolution_relu(data, weight, bias, *self._steps)
        else:
            out = torch.cudnn_convolution_add_relu(data, weight, residual, 1.0, bias, *self._steps)
        return out if self._ceiling == math.inf else out.clamp_(max=self._ceiling)

    def _product(self, data: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        count, _, height, width = data.shape
        pixels, filters = data.permute(0, 2, 3, 1).reshape(-1, data.shape[1]), weight.reshape(weight.shape[:2]).t()
        out = torch.addmm(bias, pixels, filters) if self._ceiling < 0 else torch._addmm_activation(bias, pixels, filters)
        return out.view(count, height, width, -1).permute(0, 3, 1, 2)


def _widened(data: torch.Tensor) -> torch.Tensor:
    """Return images or filters padded with channels of zeros to the number that tensor cores process at once."""
    return torch.constant_pad_nd(data, (0, 0, 0, 0, 0, _WIDE - data.shape[1])).contiguous(memory_format=torch.channels_last)


class Normalization(Layer):
    """A batch norm with known parameters, and the ReLU behind it: ``rectified(data * scale + shift)``. It is called with data, scale and shift (C,).

    Parameters
    ----------
    ceiling : float
        As in `Convolution`.
    """

    __name__ = "batch_norm"

    def __init__(self, ceiling: float = ANY):
        super().__init__()
        self._ceiling = ceiling

    def algorithms(self, data: torch.Tensor, scale: Any, shift: Any) -> list[str]:  # type: ignore[override]
        return [KERNEL, PARTS] if scoring_on_gpu.fits(data) else [PARTS]

    def run(self, algorithm: str, data: torch.Tensor, scale: Any, shift: Any) -> torch.Tensor:  # type: ignore[override]
        if algorithm == KERNEL:
            return scoring_on_gpu.finish(data, shift, scale, None, self._ceiling)
        out = torch.addcmul(shift.view(-1, 1, 1), data, scale.view(-1, 1, 1)).to(data.dtype)
        return _rectified(out, self._ceiling)


class MaxPool(Layer):
    """Maximum pooling.

    Parameters
    ----------
    operator : callable
        The operator on torch.
    size : tuple of two int
        The result's height and width.
    kernel, stride, pad : tuple of two int
        No window may lie entirely in the padding.
    """

    __name__ = "max_pool"

    def __init__(self, operator: Callable[[torch.Tensor], torch.Tensor], size: tuple[int, int], kernel: tuple[int, int], stride: tuple[int, int],
                 pad: tuple[int, int]):
        super().__init__()
        self._operator, self._window = operator, (size, kernel, stride, pad)

    def algorithms(self, data: torch.Tensor) -> list[str]:  # type: ignore[override]
        return [KERNEL, PARTS] if scoring_on_gpu.fits(data) and scoring_on_gpu.fits_window(self._window[1]) else [PARTS]

    def run(self, algorithm: str, data: torch.Tensor) -> torch.Tensor:  # type: ignore[override]
        return scoring_on_gpu.max_pool(data, *self._window) if algorithm == KERNEL else self._operator(data)
