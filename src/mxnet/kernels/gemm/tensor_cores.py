"""Products of float32 matrices on GPUs in TF32, for the operators for which MXNet on CUDA 11 uses it: layers and batches, but not `dot`.

Torch has one switch for the process, which stays off, so that `dot` and ``mx.np`` are exact to float32. It is on only during the calls of these
products, forward and backward.
"""
from collections.abc import Callable
from typing import Any, Optional, TypeVar

import torch

_T = TypeVar("_T")


def suits(*tensors: torch.Tensor) -> bool:
    """Return True if all are float32 on a GPU, and the user has not asked for full precision (``MXNET_CUDA_ALLOW_TENSOR_CORE=0``)."""
    return all(t.is_cuda and t.dtype is torch.float32 for t in tensors) and torch.backends.cudnn.allow_tf32


def switched(function: Callable[..., _T], *arguments: Any, **options: Any) -> _T:
    """Call a function with TF32 products allowed; during the call the same holds for other threads."""
    matmul = torch.backends.cuda.matmul
    if matmul.allow_tf32:
        return function(*arguments, **options)
    matmul.allow_tf32 = True
    try:
        return function(*arguments, **options)
    finally:
        matmul.allow_tf32 = False


def product(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Return ``a @ b`` of matrices, or of batches with the same leading axes."""
    if not suits(a, b):
        return torch.matmul(a, b)
    found: torch.Tensor = _Product.apply(a, b) if torch.is_grad_enabled() else switched(torch.matmul, a, b)
    return found


def linear(data: torch.Tensor, weight: torch.Tensor, bias: Optional[torch.Tensor]) -> torch.Tensor:
    """Return ``data @ weight.T + bias`` over the last axis of `data`."""
    found: torch.Tensor
    if not suits(data, weight):
        found = torch._C._nn.linear(data, weight, bias)
    elif torch.is_grad_enabled():
        found = _Linear.apply(data, weight, bias)
    else:
        found = switched(torch._C._nn.linear, data, weight, bias)
    return found


class _Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(a, b)
        return switched(torch.matmul, a, b)

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[Optional[torch.Tensor], ...]:
        a, b = ctx.saved_tensors
        return (product(gradient, b.mT) if ctx.needs_input_grad[0] else None, product(a.mT, gradient) if ctx.needs_input_grad[1] else None)


class _Linear(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, data: torch.Tensor, weight: torch.Tensor, bias: Optional[torch.Tensor]) -> torch.Tensor:
        ctx.save_for_backward(data, weight)
        return switched(torch._C._nn.linear, data, weight, bias)

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[Optional[torch.Tensor], ...]:
        data, weight = ctx.saved_tensors
        rows = gradient.reshape(-1, gradient.shape[-1])
        return (product(rows, weight).view(data.shape) if ctx.needs_input_grad[0] else None,
                product(rows.mT, data.reshape(-1, data.shape[-1])) if ctx.needs_input_grad[1] else None,
                rows.sum(0) if ctx.needs_input_grad[2] else None)
