"""``mx.random``: seeds, and the functions of `mx.nd.random`."""
from __future__ import annotations

from typing import TYPE_CHECKING

from .base import integer_types  # noqa: I001
from .context import intern_context, takes_device
from .ndarray.dispatch import mode
from .ndarray.random import (
    exponential,
    gamma,
    generalized_negative_binomial,
    multinomial,
    negative_binomial,
    normal,
    poisson,
    randint,
    randn,
    shuffle,
    uniform,
)
from .ops import random_state
from .suggestions import shortened

if TYPE_CHECKING:
    from .context import Context

__all__ = ["exponential", "gamma", "generalized_negative_binomial", "multinomial", "negative_binomial", "normal", "poisson", "randint", "randn",
           "seed", "shuffle", "uniform"]


@takes_device
def seed(seed_state: int, ctx: Context | str = "all") -> None:
    """Seed the random generators for reproducible numbers; on a CPU they are those that MXNet 1.9.1 draws.

    The devices ``cpu(0)``, ``cpu(1)``, ... share their generators; each thread has its own, with the initial seed 0.

    Parameters
    ----------
    seed_state : int
    ctx : Context or 'all'
        The device to seed; the processors are always seeded as well. By default all devices are seeded, and each GPU draws different
        numbers; GPUs that are seeded one by one draw the same.

    Raises
    ------
    ValueError
        If `seed_state` is not an integer.

    Example
    -------
    >>> import mxnet as mx
    >>> mx.random.seed(128)
    >>> a = mx.nd.random.normal(shape=3)
    >>> mx.random.seed(128)
    >>> bool((mx.nd.random.normal(shape=3) == a).asnumpy().all())
    True
    """
    if not isinstance(seed_state, integer_types):
        raise ValueError(f"seed_state must be int, received {shortened(seed_state)}")
    if mode.tracing is not None:
        mode.tracing.fail("it calls mx.random.seed, for which a graph has no place")
    value = int(seed_state)
    if isinstance(ctx, str) and ctx == "all":
        random_state.seed(value)
    else:
        ctx = intern_context(ctx)
        random_state.seed(value, ctx.torch_device.type, ctx.device_id)
