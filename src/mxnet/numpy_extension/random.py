"""``mx.npx.random``: further random numbers, and the seed."""
from .. import random as _random
from ..context import takes_device as _takes_device
from ..numpy import functions  # noqa: F401  (fills the table)
from ..numpy.frontend import TABLE, arrays, bind

__all__ = sorted([*TABLE["npx.random"], "seed"])

for _name, _function in TABLE["npx.random"].items():
    globals()[_name] = bind(_function, arrays, _name, __name__)


@_takes_device
def seed(seed, ctx="all"):
    """Start the random numbers of a device, or of all, anew."""
    _random.seed(seed, ctx)
