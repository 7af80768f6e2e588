"""``mx.npx``: what ``mx.np`` arrays need beyond NumPy: neural-network operators, and the switches of NumPy semantics."""
import types as _types

from ..base import MXNetError as _MXNetError
from ..base import classproperty  # noqa: F401
from ..context import Context, cpu, cpu_pinned, current_context, gpu, gpu_memory_info, num_gpus  # noqa: F401
from ..ndarray import waitall  # noqa: F401
from ..numpy.multiarray import ndarray as _ndarray
from ..util import get_cuda_compute_capability, is_np_array, is_np_shape, np_array, np_shape, reset_np, set_np, use_np, use_np_array, use_np_shape  # noqa: F401
from . import operators as _operators
from . import random  # noqa: F401
from .io import load, save  # noqa: F401
from .operators import constraint_check, nonzero, reshape  # noqa: F401


def check_call(ret):
    """Raise an error unless `ret`, the result of a call of MXNet's C interface, is 0."""
    if ret != 0:
        raise _MXNetError(f"the call failed with code {ret}")


def with_metaclass(meta, *bases):
    """A base class that makes its subclasses instances of the metaclass `meta`."""
    return _types.new_class("temporary_class", bases, {"metaclass": meta})


def __getattr__(name):
    if name == "image":
        import importlib
        module = importlib.import_module(f"{__name__}.image")
        globals()[name] = module
        return module
    function = _operators.lookup(name, _ndarray)
    if function is None:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    globals()[name] = function
    return function


def __dir__():
    return sorted({*globals(), *_operators.names(), "image"})
