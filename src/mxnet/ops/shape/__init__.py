"""Operators that change an array's shape or move its elements: reshaping, slicing, joining, repeating."""
from . import joining, repeating, reshaping, slicing
