"""Blocks that may still change."""
import importlib as _importlib

_PARTS = ("cnn", "data", "estimator", "nn", "rnn")


def __getattr__(name):
    if name in _PARTS:
        try:
            return _importlib.import_module(f"{__name__}.{name}")
        except ModuleNotFoundError as error:
            if error.name != f"{__name__}.{name}":
                raise
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
