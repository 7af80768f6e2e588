"""Blocks that may still change."""
import importlib as _importlib

_PARTS = ("cnn", "data", "nn", "rnn")


def __getattr__(name):
    if name in _PARTS:
        return _importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
