"""Graph execution: lowering to torch.fx, passes, backends, and the caches of lowered and compiled graphs."""
from typing import Any

from ..symbol import Symbol
from .backends import registry
from .backends.cpu.backend import Kernels
from .backends.inductor import Inductor
from .backends.openvino import OpenVINO
from .backends.registry import register as register_backend
from .backends.tensorrt import TensorRT
from .int8 import onednn
from .lower import lower
from .runtime.runner import GraphRunner

register_backend(OpenVINO())
register_backend(Inductor())
register_backend(Kernels())
register_backend(TensorRT())


_FUSING = {"MKLDNN": False, "ONEDNN": False, "MKLDNN_QUANTIZE": True, "ONEDNN_QUANTIZE": True}


def _fused(symbol: Symbol, backend: str) -> Symbol | None:
    quantize = _FUSING.get(str(backend).upper())
    return None if quantize is None else type(symbol)(onednn.partition(symbol._outputs, quantize))


def partition(symbol: Symbol, backend: str) -> Symbol:
    """Return the graph partitioned between `backend` and `native`; `native` takes all of it.

    ``MKLDNN``, ``MKLDNN_QUANTIZE`` and the same names with ``ONEDNN`` fuse layers, see `int8.onednn`.
    """
    fused = _fused(symbol, backend)
    if fused is not None:
        return fused
    chosen = registry.get(backend)
    divide = getattr(chosen, "partition", None)
    return divide(symbol) if divide is not None else symbol


def optimize(symbol: Symbol, backend: str, **options: Any) -> Symbol:
    """Return the graph prepared for `backend`; unchanged if the backend is not available. See `Symbol.optimize_for`."""
    fused = _fused(symbol, backend)
    if fused is not None:
        return fused
    if not registry.available(backend):
        return symbol
    chosen = registry.get(backend)
    prepare = getattr(chosen, "optimize", None)
    return prepare(symbol, **options) if prepare is not None else symbol
