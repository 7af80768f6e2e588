"""CUDA kernels compiled while a program runs, by NVRTC through torch."""
from __future__ import annotations

import re
import struct
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from .base import MXNetError, numeric_types
from .ndarray import NDArray

if TYPE_CHECKING:
    from .context import Context

_TYPES = {"float": np.float32, "double": np.float64, "__half": np.float16, "uint8_t": np.uint8, "int": np.int32, "int32_t": np.int32,
          "int8_t": np.int8, "char": np.int8, "int64_t": np.int64}
_ARGUMENT = re.compile(r"^(const)?\s?([\w_]+)\s?(\*)?\s?([\w_]+)?$")


class CudaModule:
    """A module of CUDA source code with kernels.

    Parameters
    ----------
    source : str
    options : str or tuple of str
        Flags for the compiler, such as ``-I/usr/local/cuda/include``.
    exports : str or tuple of str
        The kernels to export, such as ``axpy<float>``; by default those declared ``extern "C"``.

    Raises
    ------
    MXNetError
        If there is no GPU, or this torch can't compile kernels.

    Example
    -------
    .. code-block:: python

        module = mx.rtc.CudaModule('extern "C" __global__ void scale(float *x, float a) { x[threadIdx.x] *= a; }')
        kernel = module.get_kernel("scale", "float *x, float a")
        x = mx.nd.ones((10,), ctx=mx.gpu(0))
        kernel.launch([x, 3.0], mx.gpu(0), (1, 1, 1), (10, 1, 1))
    """

    def __init__(self, source: str, options: Sequence[str] = (), exports: Sequence[str] = ()):
        self._source = source
        self._options = [options] if isinstance(options, str) else list(options)
        self._exports = [exports] if isinstance(exports, str) else list(exports)
        self._compiled = {}
        if not torch.cuda.is_available():
            raise MXNetError("rtc.CudaModule: there is no GPU that torch can use on this machine; kernels in CUDA need one")
        if not hasattr(torch.cuda, "_compile_kernel"):  # private, and so far torch's only interface to NVRTC
            raise MXNetError(f"rtc.CudaModule: torch {torch.__version__} can't compile kernels; update torch to 2.9 or later")

    def get_kernel(self, name: str, signature: str) -> CudaKernel:
        """Return a kernel of the module.

        Parameters
        ----------
        name : str
            One of the exports, or the name of an ``extern "C"`` function.
        signature : str
            The parameters as they are declared, ``const float *x, double *y, int alpha``; names may be left out. Arrays are marked by ``*``,
            those that are only read by ``const``.

        Raises
        ------
        ValueError, TypeError
            If the signature can't be read, or has another type than float, double, __half, char, int and the sized integers.
        MXNetError
            If the kernel is not exported, or does not compile.
        """
        parsed = parse_signature(signature)
        if self._exports and name not in self._exports:
            raise MXNetError(f"rtc: {name} is not among the exports of the module, which are {', '.join(self._exports)}")
        return CudaKernel(self._compile(name), name, [array for array, _ in parsed], [dtype for _, dtype in parsed])

    def _compile(self, name):
        """Return a function from a torch device to the kernel compiled for it."""
        def compiled(device):
            if (name, device) not in self._compiled:
                try:
                    with torch.cuda.device(device):
                        self._compiled[name, device] = torch.cuda._compile_kernel(self._source, name, nvcc_options=self._options or None)
                except (RuntimeError, OSError) as error:
                    raise MXNetError(f"rtc: kernel {name} does not compile: {error}") from error
            return self._compiled[name, device]

        return compiled


def parse_signature(signature: str) -> list[Any]:
    """Return (is_array, NumPy type) for each parameter of a kernel."""
    parameters = []
    for argument in re.sub(r"\s+", " ", signature).split(","):
        match = _ARGUMENT.match(argument.strip())
        if not match or match.group(2) == "const":
            raise ValueError(f"Invalid function prototype: arguments like 'const float *x' or 'int n' expected, received {argument.strip()!r}")
        if match.group(2) not in _TYPES:
            raise TypeError(f"Unsupported kernel argument type {argument.strip()}. Supported types are: {', '.join(_TYPES)}.")
        parameters.append((bool(match.group(3)), _TYPES[match.group(2)]))
    return parameters


def as_passed(number: Any, dtype: np.dtype[Any]) -> Any:
    """Return the int or float that torch's launcher passes as the bytes of `number` in the type `dtype`; it supports C's int and double only."""
    data = np.array(number, dtype=dtype).tobytes()
    return struct.unpack("<d", data)[0] if len(data) == 8 else struct.unpack("<i", data.ljust(4, b"\0"))[0]


class CudaKernel:
    """A kernel; `CudaModule.get_kernel` makes them."""

    def __init__(self, handle: Any, name: str, is_ndarray: Sequence[bool], dtypes: Sequence[Any]):
        self.handle, self._name, self._is_ndarray, self._dtypes = handle, name, list(is_ndarray), list(dtypes)

    def launch(self, args: Sequence[Any], ctx: Context, grid_dims: tuple[int, int, int], block_dims: tuple[int, int, int],
               shared_mem: int = 0) -> None:
        """Run the kernel.

        Parameters
        ----------
        args : list of NDArray or numbers
            Arrays for pointers, numbers for everything else.
        ctx : Context
            The GPU that holds the arrays.
        grid_dims, block_dims : tuple of 3 int
        shared_mem : int
            Bytes of dynamic shared memory.

        Raises
        ------
        MXNetError
            If an argument does not fit the signature.
        """
        self._check(args, ctx, grid_dims, block_dims)
        values = []
        for argument, is_array, dtype in zip(args, self._is_ndarray, self._dtypes):
            values.append(argument._writable() if is_array else as_passed(argument, dtype))
        with torch.cuda.device(ctx.device_id):
            kernel = self.handle(ctx.torch_device)
            if shared_mem >= 48 << 10:
                kernel.set_shared_memory_config(shared_mem)
            kernel(grid=tuple(grid_dims), block=tuple(block_dims), args=values, shared_mem=shared_mem)

    def _check(self, args, ctx, grid_dims, block_dims):
        if ctx.device_type != "gpu":
            raise MXNetError(f"rtc: kernels run on GPUs, received {ctx}")
        if len(grid_dims) != 3 or len(block_dims) != 3:
            raise MXNetError(f"rtc: grid_dims and block_dims must be tuples of 3 integers, received {grid_dims} and {block_dims}")
        if len(args) != len(self._dtypes):
            raise MXNetError(f"rtc: kernel {self._name} expects {len(self._dtypes)} arguments, received {len(args)}")
        for i, (argument, is_array, dtype) in enumerate(zip(args, self._is_ndarray, self._dtypes)):
            if not isinstance(argument, NDArray if is_array else numeric_types):
                raise MXNetError(f"rtc: argument {i} of kernel {self._name} must be {'an NDArray' if is_array else 'a number'}, received "
                                 f"{type(argument).__name__}")
            if is_array and (argument.dtype != dtype or argument.context != ctx or not argument._data.is_contiguous()):
                raise MXNetError(f"rtc: argument {i} of kernel {self._name} must be an array of {np.dtype(dtype)} on {ctx}, received "
                                 f"{np.dtype(argument.dtype)} on {argument.context}")
