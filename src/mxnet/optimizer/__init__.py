"""Optimizers: update rules of weights by gradients.

``base``
    `Optimizer`: learning rates, weight decay, update counts, the registry.
``updater``
    `Updater`: an optimizer with the states of all weights, for key-value stores and trainers.
``pickles``
    The safe reader of pickles: arrays, optimizers and schedulers; ``numpy_pickles``: NumPy's arrays in them.
``steps``
    The arithmetic, in place on torch tensors.
``sgd``, ``adaptive``, ``leader``, ``large_batch``, ``later``, ``contrib``
    The optimizers.

All of them are in ``mx.optimizer`` and, under the path in MXNet's pickles, in ``mxnet.optimizer.optimizer``.
"""
from . import contrib, optimizer
from .optimizer import *  # noqa: F403

__all__ = [*optimizer.__all__, "contrib"]
