"""``mx.sym.np.random``."""
from ...numpy import functions as _functions  # noqa: F401  (fills the table)
from ...numpy.frontend import TABLE, bind
from .frontend import symbols
from .symbol import _Symbol

for _name, _function in TABLE["random"].items():
    globals()[_name] = bind(_function, symbols, _name, __name__)


def shuffle(x: _Symbol) -> _Symbol:
    """Return the entries of the first axis in random order; a Symbol cannot be changed in place, so the result is a new one."""
    return symbols.call("_npi_shuffle", x)


__all__ = sorted([*TABLE["random"], "shuffle"])
