"""``mx.nd.np``: ``mx.np`` under the name that ``hybrid_forward(F=mx.nd)`` finds it by."""
from ...numpy import *  # noqa: F403
from ...numpy import linalg, ndarray, random
from . import _internal
