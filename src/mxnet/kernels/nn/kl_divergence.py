"""What clipping and quantizing a histogram loses."""
from ..runtime.contract import Kernel

_divergences = Kernel("nn/kl_divergence", "divergences", {"hist": "float32 (n)"}, {"losses": "float64 (count)"}, integers=("bins",),
                      where={"count": "n // 2 - bins // 2 + 1"}, demands=("bins >= 1", "n >= bins"), sizes=("n", "bins"))


def of_all_thresholds(hist, bins):
    """The divergences (n // 2 - bins // 2 + 1,), float64, of `hist` (n,), float32 counts, clipped to ever more bins around its middle and quantized
    to `bins` levels. None without a kernel."""
    plan = _divergences.plan((hist,), (bins,))
    return None if plan is None else plan((hist,))[0]
