"""Gluon: networks as objects that run step by step, or as graphs after `hybridize`."""
from .block import Block, HybridBlock, SymbolBlock
from .parameter import Constant, DeferredInitializationError, Parameter, ParameterDict, tensor_types
from .trainer import Trainer
from . import loss, nn, rnn, utils  # isort: skip  these stand on the names above

__all__ = ["Block", "Constant", "DeferredInitializationError", "HybridBlock", "Parameter", "ParameterDict", "SymbolBlock", "Trainer",
           "loss", "nn", "rnn", "tensor_types", "utils"]


def __getattr__(name):
    if name in ("contrib", "data", "model_zoo"):
        import importlib
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
