"""``mx.npx.random``: further random numbers, and the seed."""
from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .. import random as _random
from ..context import takes_device as _takes_device
from ..numpy import functions  # noqa: F401  (fills the table)
from ..numpy.frontend import TABLE, arrays
from ..numpy.frontend import bind as _bind

if TYPE_CHECKING:
    from ..context import Context

__all__ = sorted([*TABLE["npx.random"], "categorical", "multinomial", "seed"])

for _name, _function in TABLE["npx.random"].items():
    globals()[_name] = _bind(_function, arrays, _name, __name__)


@_takes_device
def seed(seed: int, ctx: Context | str = "all") -> None:
    """Start the random numbers of a device, or of all, anew.

    Example
    -------
    >>> mx.npx.random.seed(7)
    >>> first = mx.np.random.uniform(size=3)
    >>> mx.npx.random.seed(7)
    >>> bool((mx.np.random.uniform(size=3) == first).all())
    True
    """
    _random.seed(seed, ctx)


def categorical(data: Any, shape: int | Sequence[int] = (), get_prob: bool = False, dtype: str = "int32") -> Any:
    """Indices drawn with the probabilities in the last axis of `data`; with `get_prob` also the logarithms of their probabilities.

    Example
    -------
    >>> mx.npx.random.categorical(mx.np.array([[0, 1], [1, 0]]))
    array([1, 0], dtype=int32)
    """
    return arrays.call("_npx__random_categorical", data, shape=shape, get_prob=get_prob, dtype=dtype)


def multinomial(n: Any, p: Any, shape: int | Sequence[int] = (), dtype: Any = None) -> Any:
    """Draw the counts of each outcome in experiments, for many distributions at once.

    Parameters
    ----------
    n : ndarray
        (...), how many experiments.
    p : ndarray
        (..., k), the probabilities of the outcomes.
    shape : int or tuple of int
        The axes between those of `n` and that of the outcomes.
    dtype : str, optional
        By default the type of `n`.

    Example
    -------
    >>> mx.npx.random.multinomial(mx.np.array([2, 3]), mx.np.array([[0, 1], [1, 0]]), shape=2).shape
    (2, 2, 2)
    """
    return arrays.call("_npx__random_multinomial", n, p, shape=shape, dtype=dtype)
