"""Vector norms that neither overflow nor underflow on the way."""
import torch

_EXACT = 2.0 ** -40  # a norm in single precision above this has lost nothing to squares that are too small
_EXACT_DOUBLE = 2.0 ** -450


def vector_norm(data: torch.Tensor, ord: float = 2.0, axes: list[int] | None = None, keepdim: bool = False) -> torch.Tensor:
    """The norm over `axes` of floating-point data, None for all of them.

    A result that is infinite, zero or tiny may come of powers that the type cannot hold: it is computed again, in double precision and with the
    largest magnitude divided out. Half precision is summed in single by torch, which holds its squares.
    """
    out = torch.linalg.vector_norm(data, ord, axes, keepdim=keepdim)
    if ord in (0, 1, torch.inf, -torch.inf) or type(data) is not torch.Tensor or not data.is_cpu or torch.compiler.is_compiling():
        return out
    if data.dtype is torch.float16 and ord == 2 or not data.numel():
        return out
    least = _EXACT_DOUBLE if data.dtype is torch.float64 else _EXACT
    if ord != 2:
        least = least ** (2 / abs(ord))
    plain = out.detach()
    low, high = [plain.item()] * 2 if plain.numel() == 1 else [end.item() for end in torch.aminmax(plain)]
    if least <= low and high < torch.inf:  # false for NaN
        return out
    return _again(data, ord, axes, keepdim, out, least)


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
