"""Triangular products, triangular solves and inverses for small matrices, where the call overhead of torch's libraries dominates."""
from typing import Optional

import torch

from ..memory.transpose import permute_copy
from ..runtime.contract import Kernel

_LARGEST = 256  # rows; from there on libraries, which work in blocks, are as fast
_WORTHWHILE = 1 << 15  # multiplications below which torch is done before a kernel would have been called
_COLUMNS = 8  # of the right side: fewer leave most lanes of a vector empty
_MATRICES, _RIGHT = "float32 (count, n, n)", "float32 (count, n, columns)"
_solve, _multiply = (Kernel("gemm/triangular_solve", entry, {"a": _MATRICES, "b": _RIGHT}, {"x": _RIGHT}, integers=("upper",),
                            preconditions=(f"1 <= n <= {_LARGEST}",),
                            sizes=("count", "n", "columns", "upper"), work="count * n * n * columns") for entry in ("solve", "multiply"))
_invert = Kernel("gemm/triangular_solve", "invert", {"a": _MATRICES}, {"inverse": _MATRICES, "done": "uint8 (count)"},
                 preconditions=(f"1 <= n <= {_LARGEST}",),
                 sizes=("count", "n"), work="count * n * n * n")


def solve_triangular(A: torch.Tensor, B: torch.Tensor, *, upper: bool, left: bool = True) -> torch.Tensor:
    """Solve ``A X = B`` (``X A = B`` unless `left`) for X; only one triangle of A (..., n, n) is read, and B has the same leading axes.

    Example
    -------
    >>> import torch
    >>> solve_triangular(torch.tensor([[2., 9], [1, 1]]), torch.tensor([[4.], [5]]), upper=False)
    tensor([[2.],
            [3.]])
    """
    if torch.is_grad_enabled() and (A.requires_grad or B.requires_grad) and A.is_cpu and A.dtype is torch.float32 and A.shape[:-2] == B.shape[:-2]:
        return _Solution.apply(A, B, upper, left)
    found = _run(_solve, A, B, upper, left)
    return torch.linalg.solve_triangular(A, B, upper=upper, left=left) if found is None else found


def multiply_triangular(A: torch.Tensor, B: torch.Tensor, *, upper: bool, left: bool = True) -> Optional[torch.Tensor]:
    """Return ``A B`` (``B A`` unless `left`), reading one triangle of A; None where no kernel fits, or a gradient is recorded.

    Example
    -------
    >>> import torch
    >>> multiply_triangular(torch.eye(64) + 1, torch.ones(64, 64), upper=False)[:3, 0]
    tensor([2., 3., 4.])
    """
    return None if torch.is_grad_enabled() and (A.requires_grad or B.requires_grad) else _run(_multiply, A, B, upper, left)


def _run(kernel: Kernel, A: torch.Tensor, B: torch.Tensor, upper: bool, left: bool) -> Optional[torch.Tensor]:
    if torch.compiler.is_compiling() or not A.is_cpu or A.shape[:-2] != B.shape[:-2]:
        return None
    if B.numel() * A.shape[-1] < _WORTHWHILE or B.shape[-1 if left else -2] < _COLUMNS:
        return None
    a, b = A.reshape(-1, *A.shape[-2:]), B.reshape(-1, *B.shape[-2:])
    if not left:
        a, b, upper = a.mT, b.mT, not upper
    a, b = _in_order(a), _in_order(b)
    plan = kernel.plan((a, b), (int(upper),))
    if plan is None:
        return None
    x, = plan((a, b))
    return (x if left else _in_order(x.mT)).reshape(B.shape)


def _in_order(matrices: torch.Tensor) -> torch.Tensor:
    return matrices if matrices.is_contiguous() else permute_copy(matrices.mT, (0, 2, 1)) if matrices.mT.is_contiguous() else matrices.contiguous()


class _Solution(torch.autograd.Function):
    @staticmethod
    def forward(ctx, A, B, upper, left):
        X = solve_triangular(A, B, upper=upper, left=left)
        ctx.upper, ctx.left = upper, left
        ctx.save_for_backward(A, X)
        return X

    @staticmethod
    def backward(ctx, dX):
        A, X = ctx.saved_tensors
        dB = solve_triangular(A.mT, dX, upper=not ctx.upper, left=ctx.left)
        dA = None
        if ctx.needs_input_grad[0]:
            product = torch.matmul(dB, X.mT) if ctx.left else torch.matmul(X.mT, dB)
            dA = -(torch.triu(product) if ctx.upper else torch.tril(product))
        return dA, dB if ctx.needs_input_grad[1] else None, None, None


def inverse(A: torch.Tensor) -> torch.Tensor:
    """Return the inverses of matrices (..., n, n).

    Raises
    ------
    torch.linalg.LinAlgError
        If a matrix is singular.

    Example
    -------
    >>> import torch
    >>> inverse(torch.tensor([[2., 0], [0, 4]]))
    tensor([[0.5000, 0.0000],
            [0.0000, 0.2500]])
    """
    single = A.dtype is torch.float32 and A.is_cpu and not torch.compiler.is_compiling()
    if single and A.shape[-1] <= _LARGEST and A.numel() * A.shape[-1] >= _WORTHWHILE:
        return _Inverse.apply(A) if torch.is_grad_enabled() and A.requires_grad else _inverted(A)
    return torch.linalg.inv(A)


def _inverted(A: torch.Tensor) -> torch.Tensor:
    matrices = A.reshape(-1, *A.shape[-2:]).contiguous()
    plan = _invert.plan((matrices,))
    if plan is not None:
        found, done = plan((matrices,))
        if done.all():
            return found.reshape(A.shape)
    return torch.linalg.inv(A)  # its error names the singular matrix


class _Inverse(torch.autograd.Function):
    @staticmethod
    def forward(ctx, A):
        found = _inverted(A)
        ctx.save_for_backward(found)
        return found

    @staticmethod
    def backward(ctx, gradient):
        transposed = ctx.saved_tensors[0].mT
        return -torch.matmul(torch.matmul(transposed, gradient), transposed)
