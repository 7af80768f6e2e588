"""``mx.nd``: arrays and the operators on them."""
import sys as _sys
import types as _types
from typing import Any as _Any

from ..base import MXNetError
from .ndarray import NDArray, from_torch
from . import arithmetic as _arithmetic
from . import creation as _creation
from . import functions as _functions
from . import methods as _methods
from . import private_methods as _private_methods
from .creation import (arange, array, concatenate, empty, eye, from_dlpack, from_numpy, full, get_indexing_dispatch_code,
                       get_oshape_of_gather_nd_op, histogram, imdecode, indexing_key_expand_implicit_axes, linspace, moveaxis,
                       onehot_encode, ones, split_v2, to_dlpack_for_read, to_dlpack_for_write, waitall, zeros)
from .serialization import load, load_frombuffer, save

globals().update(_arithmetic.FUNCTIONS)
_methods.attach(NDArray, _functions.operator_function, _functions.call_shared)
NDArray.split_v2 = lambda self, *args, **kwargs: split_v2(self, *args, **kwargs)
NDArray.split_v2.__doc__ = "`split_v2` of this array; see ``mx.nd.split_v2``."

_find_operator, __dir__ = _functions.namespace_lookup(__name__, "", _functions.operator_function, may_hide_builtins=True)
_NUMPY = {"np": "numpy", "numpy": "numpy", "npx": "numpy_extension", "numpy_extension": "numpy_extension"}


def __getattr__(name: str) -> _Any:
    if name in _NUMPY:
        import importlib
        # These are paths of `compat.table`: hybrid_forward(F=mx.nd) finds mx.np and mx.npx by them.
        globals()[name] = importlib.import_module(f"{__name__}.{_NUMPY[name]}")
        return globals()[name]
    return _find_operator(name)


def _namespace(name: str, prefix: str, doc: str, underscored: bool = False) -> _Any:
    module = _types.ModuleType(f"{__name__}.{name}", doc)
    _sys.modules[module.__name__] = module
    module.__getattr__, module.__dir__ = _functions.namespace_lookup(module.__name__, prefix, _functions.operator_function, underscored)
    return module


def _imdecode(mean: NDArray | None = None, index: int = 0, x0: int = 0, y0: int = 0, x1: int = 0, y1: int = 0, c: int = 3, size: int = 0,
              str_img: bytes = b"", out: NDArray | None = None) -> NDArray:
    """`imdecode` by the arguments of MXNet's function of that name: the first `size` bytes of `str_img` are the file."""
    if not isinstance(str_img, bytes) or not all(isinstance(v, int) for v in (index, x0, y0, x1, y1, c, size)) or not 0 < size <= len(str_img):
        raise MXNetError(f"_imdecode: `str_img` must be bytes, `size` how many of them are the file, and other numbers integers, received "
                         f"{str_img!r:.40} and {size!r}")
    return imdecode(str_img[:size], (x0, y0, x1, y1), out=out, index=index, channels=c, mean=mean)


_internal = _namespace("_internal", "", "Operators under their internal names.", underscored=True)
op = _namespace("op", "", "All public operators.")
_functions.replace("_imdecode", _imdecode)
linalg = _namespace("linalg", "_linalg_", "Linear algebra.")
image = _namespace("image", "_image_", "Operators on images.")
from . import contrib, random, sparse
from .sparse import CSRNDArray, RowSparseNDArray
