"""``mx.npx``: functions of ``mx.np`` arrays beyond NumPy: neural-network operators, and the switches of NumPy semantics."""
from __future__ import annotations

from typing import Any as _Any

from ..context import Context, cpu, cpu_pinned, current_context, gpu, gpu_memory_info, num_gpus
from ..device import Device, current_device
from ..ndarray import waitall
from ..numpy.multiarray import ndarray as _ndarray
from ..suggestions import MissingAttributeError as _MissingAttributeError
from ..util import get_cuda_compute_capability, is_np_array, is_np_shape, np_array, np_shape, reset_np, set_np, use_np, use_np_array, use_np_shape
from . import operators as _operators
from . import random
from .control_flow import cond, foreach, while_loop
from .dlpack import from_dlpack, to_dlpack_for_read, to_dlpack_for_write
from .io import load, save, savez
from .operators import constraint_check, deconvolution, from_numpy, nonzero, reshape


def __getattr__(name: str) -> _Any:
    if name == "image":
        from ..lazy_modules import load_module
        module = load_module(f"{__name__}.image")
        globals()[name] = module
        return module
    function = _operators.lookup(name, _ndarray)
    if function is None:
        raise _MissingAttributeError(__name__, name)
    globals()[name] = function
    return function


def __dir__() -> list[str]:
    return sorted({*globals(), *_operators.names(), "image"})
