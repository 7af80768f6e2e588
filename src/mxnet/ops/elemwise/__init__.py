"""Operators that work element by element: on one array, on two, on an array and a number, and comparisons."""
from . import binary, logic, scalar, unary
