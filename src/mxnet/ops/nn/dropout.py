"""Dropout."""
from typing import Literal, Optional

import torch

from ...base import MXNetError
from .. import random_state
from ..registry import op
from ..schema import Fraction, Shape, Training


@op("Dropout", aliases=("_npx_dropout",), same_shape=True, draws=lambda a: a["p"] > 0 and (a["training"] or a["mode"] == "always"),
    keeps_layout=True, result_type="data", complete_rule=True, names_input=True, names_output=True)
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
        return data * torch.nan  # nothing is left that could be scaled up; MXNet's test_dropout asks for NaN
    shape = list(data.shape)
    for axis in axes:
        shape[axis] = 1
    mask = torch.empty(shape, dtype=data.dtype, device=data.device)
    return data * _keep(mask, 1 - p).mul_(1 / (1 - p))


def _keep(mask, chance):
    """Set each element of `mask` to 1 with this chance, else to 0."""
    generator = random_state.generator(mask.device)
    if mask.device.type != "cpu" or mask.numel() < 4096 or torch.compiler.is_compiling():
        return mask.bernoulli_(chance, generator=generator)
    # `bernoulli_` takes six times as long on a CPU as comparing 32 random bits, of which a draw gives twice as many.
    bits = torch.empty((mask.numel() + 1) // 2, dtype=torch.int64).random_(-1 << 63, None, generator=generator).view(torch.int32)
    torch.lt(bits[:mask.numel()].view(mask.shape), round(chance * (1 << 32)) - (1 << 31), out=mask)
    return mask
