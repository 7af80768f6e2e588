"""``mx.model``: checkpoints, the arguments of callbacks, and the old `FeedForward`, imported from their modules."""
from .callback import BatchEndParam, LogValidationMetricsCallback
from .checkpoint import load_checkpoint, load_params, save_checkpoint
from .compat.feedforward import FeedForward

__all__ = ["BatchEndParam", "FeedForward", "LogValidationMetricsCallback", "load_checkpoint", "load_params", "save_checkpoint"]
