"""Pooling over windows, and global pooling."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..builder import Unsupported, lowest
from ..registry import exports
from .layers import as_laid_out, channels_first

if TYPE_CHECKING:
    from ..builder import Builder, Value


@exports("Pooling", "Pooling_v1", ignores=("cudnn_off",))
def pooling(on: Builder, x: Value, *, kernel: Any, pool_type: str, global_pool: bool, pooling_convention: str, stride: Any, pad: Any,
            p_value: Any = None, count_include_pad: bool | None = None, layout: str | None = None) -> Value:
    data = channels_first(on, x, layout)
    if global_pool:
        out = _global(on, data, pool_type, p_value)
    else:
        out = _windows(on, data, list(kernel), list(stride or (1,) * len(kernel))[:len(kernel)], list(pad or (0,) * len(kernel))[:len(kernel)],
                       pool_type, pooling_convention, p_value, count_include_pad is not False)
    return as_laid_out(on, out, layout, x.ndim)


def _global(on, x, pool_type, p_value):
    if pool_type == "sum":
        return on.sum(x, range(2, x.ndim), True)
    if pool_type == "lp":
        return _global_lp(on, x, p_value)
    return {"max": on.GlobalMaxPool, "avg": on.GlobalAveragePool}[pool_type](x)


def _global_lp(on, x, p):
    """Write global Lp pooling of MXNet, which takes powers of signed numbers, where ONNX takes powers of magnitudes."""
    if p == 2 and on.opset < 22:  # ONNX Runtime has no kernel for the newer one
        return on.GlobalLpPool(x, p=p)
    axes = list(range(2, x.ndim))
    if p == 2:
        return on.ReduceL2(x, axes=axes, keepdims=1)
    if p == 1:
        return on.sum(x, axes, True)
    cubes = on.sum(on.Mul(x, on.Mul(x, x)), axes, True)
    return on.Mul(on.Sign(cubes), on.Pow(on.Abs(cubes), 1 / 3))


def _windows(on, x, kernel, stride, pad, pool_type, convention, p_value, count_padding):
    n = len(kernel)
    # Rounded up, there are as many windows as with a little more padding behind, rounded down.
    extra = [s - 1 if convention == "full" else 0 for s in stride]
    if convention == "same":
        if x.shape is None or None in x.shape[2:]:
            raise Unsupported("pooling_convention='same' needs the size of the input, which may vary")
        extra = [max((-(-size // s) - 1) * s + k - size, 0) for size, k, s in zip(x.shape[2:], kernel, stride)]
    behind = [p + e for p, e in zip(pad, extra)]
    window = {"kernel_shape": kernel, "strides": stride}
    # Runtimes want less padding than a kernel is long.
    fits = all(b < k for b, k in zip(behind, kernel))
    pads = {"pads": pad + behind} if fits else {}
    if pool_type == "max":
        return on.MaxPool(x if fits else _padded(on, x, pad, behind, lowest(x.dtype)), **window, **pads)
    if pool_type == "lp":
        return on.LpPool(x if fits else _padded(on, x, pad, behind, 0), p=p_value, **window, **pads)
    if pool_type == "sum":
        averages = on.AveragePool(x if fits else _padded(on, x, pad, behind, 0), count_include_pad=1, **window, **pads)
        return on.Mul(averages, float(np.prod(kernel)))
    if fits and not count_padding:
        return on.AveragePool(x, count_include_pad=0, **window, **pads)
    if fits and not any(extra):
        return on.AveragePool(x, count_include_pad=1, **window, **pads)
    # Only a part of the padding is counted: averages of the values, over averages of a 1 for each counted value.
    averages = on.AveragePool(_padded(on, x, pad, behind, 0), **window)
    ones = on.ConstantOfShape(on.sizes([1, 1, *on.dims(x)[2:]]), value=np.ones(1, x.dtype), dtype=x.dtype)
    ones = _padded(on, ones, pad, pad, 1 if count_padding else 0, n)
    shares = on.AveragePool(_padded(on, ones, [0] * n, extra, 0, n), **window)
    return on.Div(averages, on.Max(shares, 0.5 / float(np.prod(kernel))))  # a window of padding only averages to 0


def _padded(on, x, before, behind, value, n=None):
    n = n or len(before)
    if not any(before) and not any(behind):
        return x
    return on.Pad(x, [0, 0, *before, 0, 0, *behind], on.const(value, x.dtype), mode="constant")
