"""``mx.nd.contrib``: operators outside MXNet's stability promise."""
from ..context import current_context  # noqa: F401
from .functions import namespace_lookup as _namespace_lookup
from .functions import operator_function as _operator_function

__getattr__, __dir__ = _namespace_lookup(__name__, "_contrib_", _operator_function)
