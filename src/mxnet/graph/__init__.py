"""How a graph runs: lowering to torch.fx, passes, backends, and the cache of what they made."""
from typing import Any

from ..symbol import Symbol
from . import backends, onednn
from .backends import register as register_backend
from .inductor import Inductor
from .kernels import Kernels
from .lower import lower
from .openvino import OpenVINO
from .runner import GraphRunner
from .tensorrt import TensorRT

register_backend(OpenVINO())
register_backend(Inductor())
register_backend(Kernels())
register_backend(TensorRT())


_FUSING = {"MKLDNN": False, "ONEDNN": False, "MKLDNN_QUANTIZE": True, "ONEDNN_QUANTIZE": True}


def _fused(symbol: Symbol, backend: str) -> Symbol | None:
    quantize = _FUSING.get(str(backend).upper())
    return None if quantize is None else type(symbol)(onednn.partition(symbol._outputs, quantize))


def partition(symbol: Symbol, backend: str) -> Symbol:
    """The graph as `backend` divides it between itself and `native`; `native` takes it whole.

    ``MKLDNN``, ``MKLDNN_QUANTIZE`` and the same names with ``ONEDNN`` fuse layers, see `onednn`.
    """
    fused = _fused(symbol, backend)
    if fused is not None:
        return fused
    chosen = backends.get(backend)
    divide = getattr(chosen, "partition", None)
    return divide(symbol) if divide is not None else symbol


def optimize(symbol: Symbol, backend: str, **options: Any) -> Symbol:
    """The graph prepared for `backend`, as it is if that is not available; see `Symbol.optimize_for`."""
    fused = _fused(symbol, backend)
    if fused is not None:
        return fused
    if not backends.available(backend):
        return symbol
    chosen = backends.get(backend)
    prepare = getattr(chosen, "optimize", None)
    return prepare(symbol, **options) if prepare is not None else symbol
