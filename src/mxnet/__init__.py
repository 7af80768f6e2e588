"""Remex: MXNet programs on today's machines.

The packages, in the order in which a computation passes through them:

``ops``
    The definitions of operators: one decorated function each, over torch tensors.
``ndarray``
    Arrays, and the operators on them: ``mx.nd``.
``symbol``
    Symbolic graphs, which are built first and run later: ``mx.sym``.
``graph``
    The execution of graphs: lowering, passes, backends.
``executor``, ``module``, ``gluon``
    Training and inference.
``io``, ``recordio``, ``image``
    Data loading.
``kvstore``
    Training on several devices.
``profiler``, ``tools``
    Profiling, and programs for the command line.
"""
from __future__ import annotations
from typing import Any as _Any
import sys as _sys

from .compat import finder as _finder
from .lazy_modules import load_module as _load_module
from .suggestions import MissingAttributeError as _MissingAttributeError

_finder.install()

from . import environment as _environment  # noqa: E402
from . import memory as _memory  # noqa: E402
from . import threads as _threads  # noqa: E402

_memory.configure()
_environment.configure()
_threads.policy.begin()

with _memory.without_collection():
    from .base import MXNetError
    from .context import Context, cpu, cpu_pinned, current_context, gpu, gpu_memory_info, num_gpus
    from .device import Device, current_device
    from .libinfo import __version__
    from . import attribute, autograd, base, context, device, name, ndarray, operator, random, symbol, util
    from . import ndarray as nd
    from . import random as rnd
    from . import symbol as sym
    from . import attached as _attached  # noqa: F401  (registers methods whose work is done above arrays and Symbols)
    from .attribute import AttrScope
    from .util import (is_np_array, is_np_shape, np_array, np_shape, set_np_shape, use_np, use_np_array, use_np_shape)

# Modules that many programs do not use are imported at their first access.
_LAZY = {"mod": "module", "mon": "monitor", "kv": "kvstore", "th": "torch", "viz": "visualization", "img": "image", "init": "initializer",
         "np": "numpy", "npx": "numpy_extension", "np_symbol": "symbol.numpy"}
_SUBMODULES = {"amp", "callback", "checkpoint", "compat", "contrib", "engine", "environment", "error", "executor", "gluon",
               "graph", "image", "initializer", "io", "kvstore", "library", "libinfo", "log", "lr_scheduler", "memory", "metric", "model",
               "module", "monitor", "ndarray_doc", "notebook", "numpy", "numpy_dispatch_protocol", "numpy_extension", "numpy_op_fallback",
               "numpy_op_signature", "onnx", "optimizer", "profiler", "recordio", "registry", "rnn", "rtc", "runtime", "symbol_doc",
               "test_utils", "tools", "torch", "visualization"}


def __getattr__(name: str) -> _Any:
    target = _LAZY.get(name, name)
    if target in _SUBMODULES or target in _LAZY.values():
        try:
            module = _load_module(f"{__name__}.{target}")
        except ModuleNotFoundError as error:
            if error.name != f"{__name__}.{target}":
                raise
            raise _MissingAttributeError(__name__, name) from None
        globals()[name] = module
        return module
    raise _MissingAttributeError(__name__, name)


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(_LAZY) | _SUBMODULES)


__all__ = ["AttrScope", "Context", "Device", "MXNetError", "attribute", "autograd", "base", "context", "cpu", "cpu_pinned",
           "current_context", "current_device", "device", "gpu", "gpu_memory_info", "is_np_array", "is_np_shape", "name", "nd",
           "ndarray", "np_array", "np_shape", "num_gpus", "operator", "random", "rnd", "set_np_shape", "sym", "symbol",
           "use_np", "use_np_array", "use_np_shape", "util", "__version__"]

_finder.complete(_sys.modules[__name__])

if _environment.get_bool("MXNET_PROFILER_AUTOSTART"):
    __getattr__("profiler").autostart()

if _environment.get_str("DMLC_ROLE") in ("server", "scheduler"):
    # Launchers also start the program as a server or scheduler; such a process serves the workers and never returns from this import.
    from .kvstore.server import serve as _serve
    _serve({5: lambda body, rank: __getattr__("profiler").serve(body, rank)})  # MXNet's number for the profiler
    _sys.exit()
