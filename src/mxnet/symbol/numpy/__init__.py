"""``mx.sym.np``: the functions of ``mx.np`` on Symbols."""
from ...numpy import functions as _functions
from ...numpy.frontend import TABLE as _TABLE
from ...numpy.frontend import bind as _bind
from . import _internal, linalg, random
from .frontend import symbols as _symbols
from .symbol import _Symbol

for _name, _function in _TABLE[""].items():
    globals()[_name] = _bind(_function, _symbols, _name, __name__)
__all__ = sorted([*_TABLE[""], "_Symbol", "linalg", "random"])
