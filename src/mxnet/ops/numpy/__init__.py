"""The operators behind ``mx.np`` and ``mx.npx``: NumPy's semantics on the same registry.

Where they differ from the legacy operators: scalars are arrays without axes, comparisons give booleans, and types mix as in MXNet's
NumPy interface. `registry.get` imports this package when a name that starts with ``_np`` is not known yet.
"""
from . import contraction, creation, elemwise, extension, indexing, joining, linalg, matrices, pairs, random, reduce, scalar, shape, statistics
