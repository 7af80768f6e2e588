"""``mx.model``: checkpoints, what callbacks receive, and the old `FeedForward`, each written elsewhere."""
from .callback import BatchEndParam, LogValidationMetricsCallback
from .checkpoint import load_checkpoint, load_params, save_checkpoint
from .legacy.feedforward import FeedForward

__all__ = ["BatchEndParam", "FeedForward", "LogValidationMetricsCallback", "load_checkpoint", "load_params", "save_checkpoint"]
