"""``mx.nd.sparse``: compressed rows (csr), and tensors of which few rows are stored (row_sparse)."""
import importlib as _importlib
from typing import Any as _Any

from .. import dispatch as _dispatch
from ..functions import namespace_lookup as _namespace_lookup
from ..functions import operator_function as _operator_function
from .arithmetic import add, divide, multiply, subtract
from .arrays import BaseSparseNDArray, CSRNDArray, RowSparseNDArray, cast_storage, retain
from .creation import array, csr_matrix, empty, row_sparse_array, zeros


def _first_call(op: _Any, arrays: _Any, attrs: _Any, out: _Any, cls: _Any) -> _Any:
    """Import the kernels when an operator first gets a sparse array. They register with `sparse.dispatch`, which is called from then on."""
    for module in ("graph_sampling", "kernels", "products", "updates"):
        _importlib.import_module(f"{__name__}.{module}")
    _dispatch.invoke_sparse = _importlib.import_module(f"{__name__}.dispatch").invoke_sparse
    return _dispatch.invoke_sparse(op, arrays, attrs, out, cls)


_dispatch.invoke_sparse = _first_call
gs_retain = retain
for _class in (BaseSparseNDArray, CSRNDArray, RowSparseNDArray):
    _class.__module__ = __name__  # where pickles look for them
__getattr__, __dir__ = _namespace_lookup(__name__, "_sparse_", _operator_function)
