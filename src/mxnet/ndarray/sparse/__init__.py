"""``mx.nd.sparse``: compressed rows (csr), and tensors of which few rows are stored (row_sparse)."""

from ..functions import namespace_lookup as _namespace_lookup
from ..functions import operator_function as _operator_function
from . import graph_sampling, kernels, products, updates  # register kernels with `dispatch`
from .arithmetic import add, divide, multiply, subtract
from .arrays import BaseSparseNDArray, CSRNDArray, RowSparseNDArray, cast_storage, retain
from .creation import array, csr_matrix, empty, row_sparse_array, zeros

gs_retain = retain
for _class in (BaseSparseNDArray, CSRNDArray, RowSparseNDArray):
    _class.__module__ = __name__  # where pickles look for them
__getattr__, __dir__ = _namespace_lookup(__name__, "_sparse_", _operator_function)
