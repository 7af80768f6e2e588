"""Operators that update a weight: one weight each (`single`), many in a call (`multi`), and checks for large-batch training (`checks`).

All write their states in place and return the new weight, which the caller usually directs back with ``out=weight``. The
arithmetic is in `rules`.
"""
from . import checks, multi, single
