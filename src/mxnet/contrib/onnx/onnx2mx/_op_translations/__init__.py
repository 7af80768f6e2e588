"""What ONNX's operators become, by family; importing this fills `registry.TRANSLATIONS`."""
from .. import folding
from . import activation, creation, dense, elemwise, indexing, normalization, pooling, reduce, resizing, rnn, shape
