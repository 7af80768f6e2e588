"""Hugging Face's format of named arrays, ``.safetensors``, by the package safetensors (extra ``safetensors``)."""
from __future__ import annotations

from typing import IO, Any

import torch

from ..base import MXNetError
from ..context import cpu
from ..ops import dtypes
from .ndarray import NDArray

SUFFIX = ".safetensors"


def _package() -> Any:
    try:
        import safetensors.torch
    except ImportError as error:
        raise ImportError("files called .safetensors take the package safetensors; install it with: pip install 'remexnet[safetensors]'") from error
    return safetensors


def dump(arrays: dict[str, NDArray]) -> bytes:
    """Return the content of a file of named arrays.

    Raises
    ------
    MXNetError
        If an array is sparse.
    ImportError
        Without the package safetensors.
    """
    package, tensors = _package(), {}
    memory: set[int] = set()  # the package refuses arrays that share any
    for name, array in arrays.items():
        if array._is_sparse:
            raise MXNetError(f"{SUFFIX} files hold dense arrays, received {name!r} of storage type {array.stype}; save to a file called .params")
        tensor = array._raw().detach().cpu().contiguous()
        pointer = tensor.untyped_storage().data_ptr()
        tensors[name] = tensor.clone() if pointer in memory else tensor
        memory.add(pointer)
    return package.torch.save(tensors)


def read(file: IO[bytes], source: str) -> dict[str, NDArray]:
    """Read the arrays of a file by name.

    Raises
    ------
    MXNetError
        If the file is damaged, or has elements of a type that MXNet does not know.
    ImportError
        Without the package safetensors.
    """
    package = _package()
    try:
        tensors = package.torch.load(file.read())
    except (package.SafetensorError, ValueError, KeyError, TypeError, RuntimeError, OverflowError) as error:
        raise MXNetError(f"{source}: not a valid {SUFFIX} file: {error}") from None
    for name, tensor in tensors.items():
        if tensor.dtype not in dtypes.TORCH_TO_NAME:
            raise MXNetError(f"{source}: {name!r} has elements of type {str(tensor.dtype).removeprefix('torch.')}; known are "
                             f"{', '.join(dtypes.NAME_TO_TORCH)}")
    return {name: NDArray._new(_aligned(tensor), cpu()) for name, tensor in tensors.items()}


def _aligned(tensor: torch.Tensor) -> torch.Tensor:
    """Return the tensor, copied if its memory is not aligned for its elements."""
    return tensor if tensor.data_ptr() % tensor.element_size() == 0 else tensor.clone()
