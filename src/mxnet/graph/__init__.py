"""How a graph runs: lowering to torch.fx, passes, backends, and the cache of what they made."""
from typing import Any

from ..symbol import Symbol
from . import backends
from .backends import register as register_backend
from .inductor import Inductor
from .lower import lower
from .openvino import OpenVINO
from .runner import GraphRunner
from .tensorrt import TensorRT

register_backend(OpenVINO())
register_backend(Inductor())
register_backend(TensorRT())


def partition(symbol: Symbol, backend: str) -> Symbol:
    """The graph as `backend` divides it between itself and `native`; `native` takes it whole."""
    chosen = backends.get(backend)
    divide = getattr(chosen, "partition", None)
    return divide(symbol) if divide is not None else symbol


def optimize(symbol: Symbol, backend: str, **options: Any) -> Symbol:
    """The graph prepared for `backend`; see `Symbol.optimize_for`."""
    chosen = backends.get(backend)
    prepare = getattr(chosen, "optimize", None)
    return prepare(symbol, **options) if prepare is not None else symbol
