"""The functions of ``mx.np``, written once for arrays and Symbols: the first parameter is the front end; see `frontend`."""
from . import creation, elementwise, indexing, joining, linalg, random, reduction, shape
