"""``mx.np.random``: random numbers. Seed with ``mx.random.seed`` or ``npx.random.seed``."""
from . import functions  # noqa: F401  (fills the table)
from .frontend import TABLE, arrays, bind

for _name, _function in TABLE["random"].items():
    globals()[_name] = bind(_function, arrays, _name, __name__)


def shuffle(x):
    """Put the entries of the first axis in random order, in place."""
    arrays.call("_npi_shuffle", x, out=x)


__all__ = sorted([*TABLE["random"], "shuffle"])
