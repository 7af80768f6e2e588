"""``mx.nd.sparse``: compressed rows (csr), and tensors of which few rows are stored (row_sparse)."""

from .. import dispatch as _dispatch
from ..functions import namespace_lookup as _namespace_lookup
from ..functions import operator_function as _operator_function
from . import graph_sampling, kernels, products, updates  # register kernels with `dispatch`
from .arithmetic import add, divide, multiply, subtract
from .arrays import BaseSparseNDArray, CSRNDArray, RowSparseNDArray, cast_storage, retain
from .creation import array, csr_matrix, empty, row_sparse_array, zeros


def _first_call(op, arrays, attrs, out, cls):
    """Import the kernels at the first call of an operator on a sparse array; `dispatch` then calls them directly."""
    from .dispatch import invoke_sparse
    return invoke_sparse(op, arrays, attrs, out, cls)


_dispatch.invoke_sparse = _first_call
gs_retain = retain
for _class in (BaseSparseNDArray, CSRNDArray, RowSparseNDArray):
    _class.__module__ = __name__  # where pickles look for them
__getattr__, __dir__ = _namespace_lookup(__name__, "_sparse_", _operator_function)
