"""``mx.sym.npx.random``."""
from ...numpy import functions as _functions  # noqa: F401  (fills the table)
from ...numpy.frontend import TABLE, bind
from ..numpy.frontend import symbols

for _name, _function in TABLE["npx.random"].items():
    globals()[_name] = bind(_function, symbols, _name, __name__)
__all__ = sorted(TABLE["npx.random"])
