"""``mx.nd.np``: ``mx.np`` under the name that ``hybrid_forward(F=mx.nd)`` finds it by."""
from ...numpy import *  # noqa: F401,F403
from ...numpy import linalg, ndarray, random  # noqa: F401
from . import _internal  # noqa: F401
