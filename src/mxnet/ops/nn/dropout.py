"""Dropout."""
import functools
from typing import Literal, Optional

import numpy as np
import torch

from ...base import MXNetError
from .. import random_state
from ..registry import op
from ..schema import Fraction, Shape, Training
from ..shapes import product


@op("Dropout", aliases=("_npx_dropout",), same_shape=True, stochastic=lambda a: a["p"] > 0 and (a["training"] or a["mode"] == "always"),
    layout_agnostic=True, result_type="data", complete_rule=True, names_input=True, names_output=True)
def dropout(data, *, p: Fraction = 0.5, mode: Literal["always", "training"] = "training", axes: Shape = (), cudnn_off: Optional[bool] = False,
            training: Training = False):
    """Set a fraction `p` of the elements to zero and scale the others by ``1 / (1 - p)``; outside training nothing changes (Srivastava et al. 2014).

    `mode` ``always`` drops outside training, too. The elements along each of `axes` are dropped together. `cudnn_off` is a hint that nothing
    needs here.

    Raises
    ------
    MXNetError
        If `data` has no such axis.

    Example
    -------
    >>> x = mx.nd.ones(100)
    >>> with mx.autograd.train_mode():
    ...     y = mx.nd.Dropout(x, p=0.75)
    >>> sorted(set(y.asnumpy().tolist()))
    [0.0, 4.0]
    >>> bool((mx.nd.Dropout(x, p=0.75) == x).min())
    True
    """
    if axes and not 0 <= min(axes) <= max(axes) < data.dim():
        raise MXNetError(f"Dropout: `axes` must be from 0 to {data.dim() - 1} for {data.dim()}-D data, received {axes}")
    if p == 0 or not (training or mode == "always"):
        return data.clone()
    if p == 1:
        return data * torch.nan  # all elements are dropped; MXNet's test_dropout expects NaN
    shape = list(data.shape)
    for axis in axes:
        shape[axis] = 1
    if data.is_cuda and data.is_floating_point() and not axes:  # a mask of one byte, and one pass over the data instead of four
        chance, scale = chance_and_scale(p)
        mask = torch.empty_like(data, dtype=torch.bool).bernoulli_(chance, generator=random_state.generator(data.device))
        return torch.ops.aten.native_dropout_backward(data, mask, scale)  # data * mask * scale, with a gradient
    return data * _mask(shape, data.dtype, data.device, p, inclusive=not axes)


def _mask(shape, dtype, device, p, inclusive):
    """Return the dropout mask: 0 for dropped elements, else the scale."""
    chance, scale = chance_and_scale(p)
    bank = None if device.type == "meta" else random_state.source(device)
    if bank is None:
        return torch.empty(shape, dtype=dtype, device=device).bernoulli_(chance, generator=random_state.generator(device)).mul_(scale)
    wide = dtype in (torch.float16, torch.float64)  # MXNet draws doubles for both
    if dtype in (torch.float32, torch.float64):
        return bank.bernoulli(product(shape), dtype, chance, scale, wide, inclusive).view(shape)
    return bank.bernoulli(product(shape), torch.uint8, chance, wide=wide, inclusive=inclusive).to(dtype).mul_(scale).view(shape)


@functools.cache
def chance_and_scale(p: float) -> tuple[float, float]:
    """Return the probability of keeping an element and the scale of the kept ones, with MXNet's rounding."""
    chance = np.float32(1) - np.float32(p)
    return float(chance), float(np.float32(1) / chance)
