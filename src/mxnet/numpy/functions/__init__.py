"""The functions of ``mx.np``, written once for arrays and Symbols: the first parameter says which; see `frontend`."""
from . import creation, elementwise, indexing, joining, linalg, random, reduction, shape
