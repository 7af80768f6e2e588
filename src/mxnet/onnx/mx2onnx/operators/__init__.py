"""The converters, by family: the files are those of `mxnet.ops`."""
from . import elemwise, layers, normalization, pooling, shape
