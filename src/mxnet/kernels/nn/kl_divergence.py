"""KL divergences of a histogram from its clipped and quantized versions, for the calibration of int8 networks."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..runtime.contract import Kernel

if TYPE_CHECKING:
    import torch

_divergences = Kernel("nn/kl_divergence", "divergences", {"hist": "float32 (n)"}, {"losses": "float64 (count)"}, integers=("bins",),
                      where={"count": "n // 2 - bins // 2 + 1"}, preconditions=("bins >= 1", "n >= bins"), sizes=("n", "bins"))


def of_all_thresholds(hist: torch.Tensor, bins: Any) -> torch.Tensor | None:
    """Return the divergences (n // 2 - bins // 2 + 1,), float64, for all thresholds; None without a kernel.

    `hist` (n,) has float32 counts; it is clipped to ever more bins around its middle and quantized to `bins` levels.
    """
    plan = _divergences.plan((hist,), (bins,))
    return None if plan is None else plan((hist,))[0]
