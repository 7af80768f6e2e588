"""Optimizers: how gradients change weights.

``base``
    `Optimizer`: learning rates, weight decay, counts, the registry.
``updater``
    `Updater`: an optimizer with the states of all weights, as key-value stores and trainers use it.
``pickles``
    What is read of pickles: arrays, optimizers and schedulers; ``numpy_pickles``: NumPy's arrays among these.
``steps``
    The arithmetic, in place on torch tensors.
``sgd``, ``adaptive``, ``leader``, ``large_batch``, ``later``, ``contrib``
    The optimizers.

All of them are in ``mx.optimizer`` and, under the path that pickles of MXNet name, in ``mxnet.optimizer.optimizer``.
"""
from . import contrib, optimizer
from .optimizer import *  # noqa: F403

__all__ = [*optimizer.__all__, "contrib"]
