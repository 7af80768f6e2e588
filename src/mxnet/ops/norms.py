"""Vector norms that neither overflow nor underflow on the way."""
import math

import torch

_vector_norm = torch.linalg.vector_norm
_INFINITE = math.inf
_ADDED = (0, 1, math.inf, -math.inf)  # orders that multiply nothing
_FEW = 16  # results whose values are compared faster by Python than by torch
_EXACT = 2.0 ** -40  # a norm in single precision above this has lost nothing to squares that are too small
_LEAST = {torch.float16: 0.0, torch.float64: 2.0 ** -450}  # half precision is summed in single, which holds its squares


def vector_norm(data: torch.Tensor, ord: float = 2.0, axes: list[int] | None = None, keepdim: bool = False) -> torch.Tensor:
    """The norm over `axes` of floating-point data, None for all of them.

    A result that is infinite, zero or tiny may come of powers that the type cannot hold: it is computed again, in double precision and with the
    largest magnitude divided out.
    """
    out = _vector_norm(data, ord, axes, keepdim)
    count = out.numel()
    if type(data) is not torch.Tensor or not data.is_cpu or not count or ord in _ADDED or torch.compiler.is_compiling():
        return out
    least = _LEAST.get(data.dtype, _EXACT) if ord == 2 else _LEAST.get(data.dtype, _EXACT) ** (2 / abs(ord))
    if count <= _FEW:
        for value in (out if out.dim() == 1 else out.reshape(-1)).tolist():
            if not least <= value < _INFINITE:
                break
        else:
            return out
    else:
        low, high = torch.aminmax(out.detach())
        if least <= low.item() and high.item() < _INFINITE:  # false for NaN
            return out
    return _again(data, ord, axes, keepdim, out, least) if data.numel() else out


def _again(data: torch.Tensor, ord: float, axes: list[int] | None, keepdim: bool, out: torch.Tensor, least: float) -> torch.Tensor:
    """`out` with what is not finite, or less than `least`, computed anew."""
    dims = list(range(data.dim())) if axes is None else axes
    if not dims:  # a scalar, or no axes
        return torch.abs(data) if data.dim() == out.dim() else out
    rest = [i for i in range(data.dim()) if i not in dims]
    flat = out.reshape(-1)
    rows = data.permute(*rest, *dims).reshape(flat.numel(), -1)
    wrong = ~((flat >= least) & (flat < torch.inf))
    chosen = rows[wrong].double()
    largest = chosen.detach().abs().amax(-1, keepdim=True)
    scale = torch.where((largest > 0) & (largest < torch.inf), largest, 1)
    exact = torch.linalg.vector_norm(chosen / scale, ord, -1) * scale.squeeze(-1)
    return flat.index_put((wrong,), exact.to(out.dtype)).reshape(out.shape)
