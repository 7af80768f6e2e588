"""``mx.sym.contrib``: operators outside MXNet's stability promise."""
from .functions import namespace_lookup as _namespace_lookup
from .functions import operator_function as _operator_function

__getattr__, __dir__ = _namespace_lookup(__name__, "_contrib_", _operator_function)
