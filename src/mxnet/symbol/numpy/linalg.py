"""``mx.sym.np.linalg``."""
from ...numpy import functions as _functions  # noqa: F401  (fills the table)
from ...numpy.frontend import TABLE, bind
from .frontend import symbols

for _name, _function in TABLE["linalg"].items():
    globals()[_name] = bind(_function, symbols, _name, __name__)
__all__ = sorted(TABLE["linalg"])
