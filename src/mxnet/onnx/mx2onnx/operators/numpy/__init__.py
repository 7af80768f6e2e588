"""The converters of the operators of ``mx.np`` that differ from the classic ones: in types, in arrays without axes, or in their arguments."""
from . import creation, elemwise, products, reduce, shape
