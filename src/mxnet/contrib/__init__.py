"""``mx.contrib``: the experimental parts of MXNet. Each is imported at its first use."""
from __future__ import annotations

from typing import Any as _Any

from ..lazy_modules import load_module as _load_module
from ..suggestions import MissingAttributeError as _MissingAttributeError

_SUBMODULES = ("amp", "autograd", "horovod", "io", "onnx", "quantization", "svrg_optimization", "tensorboard", "text")
_ELSEWHERE = {"nd": "mxnet.ndarray.contrib", "ndarray": "mxnet.ndarray.contrib", "quant": "mxnet.contrib.quantization",
              "sym": "mxnet.symbol.contrib", "symbol": "mxnet.symbol.contrib",
              "tb": "mxnet.contrib.tensorboard"}


def __getattr__(name: str) -> _Any:
    target = _ELSEWHERE.get(name) or (f"{__name__}.{name}" if name in _SUBMODULES else None)
    if target is None:
        raise _MissingAttributeError(__name__, name)
    globals()[name] = _load_module(target)
    return globals()[name]


def __dir__() -> list[str]:
    return sorted({*globals(), *_SUBMODULES, *_ELSEWHERE})
