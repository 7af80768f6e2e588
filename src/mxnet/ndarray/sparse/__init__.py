"""``mx.nd.sparse``: compressed rows (csr), and tensors of which few rows are stored (row_sparse)."""
import numpy as np  # noqa: F401

from ...base import MXNetError, NotSupportedForSparseNDArray, c_array_buf, check_call, integer_types, numeric_types  # noqa: F401
from ...context import Context, current_context  # noqa: F401
from ..functions import namespace_lookup as _namespace_lookup
from ..functions import operator_function as _operator_function
from ..ndarray import NDArray  # noqa: F401
from .arithmetic import add, divide, multiply, subtract  # noqa: F401
from .arrays import BaseSparseNDArray, CSRNDArray, RowSparseNDArray, cast_storage, retain  # noqa: F401
from .creation import array, csr_matrix, empty, row_sparse_array, zeros  # noqa: F401

gs_retain = retain
for _class in (BaseSparseNDArray, CSRNDArray, RowSparseNDArray):
    _class.__module__ = __name__  # where pickles look for them
__getattr__, __dir__ = _namespace_lookup(__name__, "_sparse_", _operator_function)
