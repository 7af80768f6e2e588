"""Probability distributions over arrays of ``mx.np``, as MXNet 2 has them; switch NumPy's semantics on first (`mx.npx.set_np`).

``distribution``
    The base; ``constraint``: conditions on parameters and values.
``continuous``, ``heavy_tails``, ``discrete``, ``multivariate``
    The distributions.
``transformation``
    Functions of random numbers; ``divergence``: the difference of two distributions.
``stochastic_block``
    Blocks that add such losses.
"""
from functools import cached_property

from . import constraint, continuous, discrete, distribution, divergence, heavy_tails, multivariate, stochastic_block, transformation
from .continuous import *  # noqa: F403
from .discrete import *  # noqa: F403
from .distribution import *  # noqa: F403
from .divergence import *  # noqa: F403
from .heavy_tails import *  # noqa: F403
from .multivariate import *  # noqa: F403
from .stochastic_block import *  # noqa: F403
from .transformation import *  # noqa: F403

__all__ = ["cached_property", "constraint", *continuous.__all__, *discrete.__all__, *distribution.__all__, *divergence.__all__, *heavy_tails.__all__,
           *multivariate.__all__,
           *stochastic_block.__all__, *transformation.__all__]
