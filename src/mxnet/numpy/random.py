"""``mx.np.random``: random numbers. Seed with ``mx.random.seed`` or `seed`."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..lazy_modules import load_module as _load_module
from . import functions  # noqa: F401  (fills the table)
from .frontend import TABLE, arrays
from .frontend import bind as _bind

if TYPE_CHECKING:
    from ..context import Context

for _name, _function in TABLE["random"].items():
    globals()[_name] = _bind(_function, arrays, _name, __name__)


def shuffle(x: Any) -> None:
    """Put the entries of the first axis in random order, in place.

    Example
    -------
    >>> x = mx.np.arange(4)
    >>> mx.np.random.shuffle(x)
    >>> mx.np.sort(x)
    array([0., 1., 2., 3.])
    """
    arrays.call("_npi_shuffle", x, out=x)


def seed(seed: int, ctx: Context | str = "all") -> None:
    """Start the random numbers of a device, or of all, anew; see ``mx.random.seed``.

    Example
    -------
    >>> mx.np.random.seed(7)
    >>> first = mx.np.random.uniform(size=3)
    >>> mx.np.random.seed(7)
    >>> bool((mx.np.random.uniform(size=3) == first).all())
    True
    """
    _load_module("mxnet.random").seed(seed, ctx)


__all__ = sorted([*TABLE["random"], "seed", "shuffle"])
