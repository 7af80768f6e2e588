"""Quantized arrays: int8 and uint8 numbers with the range of real numbers that they represent.

`arithmetic` says what the integers mean, `conversion` makes them and turns them back, `calibration` chooses their ranges, and `form` registers
an operator on them below the operator on real numbers (``@quantized_form(convolution, ...)`` in ``ops/nn/convolution.py``), from which it
takes attributes, shapes and inputs. Nothing in this family has a gradient.
"""
from . import calibration, conversion
