"""What MXNet calls experimental: ``mx.contrib``. Each part is imported when it is first asked for."""
import importlib as _importlib

_SUBMODULES = ("svrg_optimization",)


def __getattr__(name):
    if name in _SUBMODULES:
        return _importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")


def __dir__():
    return sorted({*globals(), *_SUBMODULES})
