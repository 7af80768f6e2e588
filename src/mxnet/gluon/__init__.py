"""Gluon: networks as objects that run step by step, or as graphs after `hybridize`."""
from __future__ import annotations
from typing import Any as _Any
# ruff: noqa: I001  the block modules come first: all else stands on them
from typing import TYPE_CHECKING

from .block import Block
from .hybrid_block import HybridBlock
from .symbol_block import SymbolBlock
from .parameter import Constant, DeferredInitializationError, Parameter, tensor_types
from .parameter_dict import ParameterDict
from .progress import Progress
from .fully_sharded import FullyShardedParameter, fully_shard
from .sharded_checkpoint import load_shards, save_shards
from .sharded_parameter import ShardedParameter
from .torch_import import from_torch
from .trainer import Trainer
from . import loss, nn, rnn, utils
from ..suggestions import MissingAttributeError as _MissingAttributeError

__all__ = ["Block", "Constant", "DeferredInitializationError", "FullyShardedParameter", "HybridBlock", "Parameter", "ParameterDict", "Progress",
           "ShardedParameter", "SymbolBlock", "Trainer", "from_torch", "fully_shard", "load_shards", "loss", "nn", "rnn", "save_shards",
           "tensor_types", "utils"]


if TYPE_CHECKING:
    from . import contrib as contrib
    from . import data as data
    from . import metric as metric
    from . import model_zoo as model_zoo
    from . import probability as probability
else:
    def __getattr__(name: str) -> _Any:
        if name in ("contrib", "data", "metric", "model_zoo", "probability"):
            from ..lazy_modules import load_module
            return load_module(f"{__name__}.{name}")
        raise _MissingAttributeError(__name__, name)
