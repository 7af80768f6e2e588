"""Axis numbers as users give them (negative ones count from the end) and the checks on them."""
from typing import TYPE_CHECKING

from ..base import MXNetError

if TYPE_CHECKING:
    import torch


def normalize_axis(operator: str, axis: int, ndim: int, name: str = "axis") -> int:
    """`axis` counted from the front.

    Raises
    ------
    MXNetError
        If an array of `ndim` axes has no such axis.
    """
    if -ndim <= axis < ndim:
        return axis + ndim if axis < 0 else axis
    raise MXNetError(f"{operator}: `{name}` must be in [{-ndim}, {ndim - 1}] for {ndim}-D data, received {axis}")


def require_ndim(operator: str, tensor: "torch.Tensor", *allowed: int, name: str = "data") -> None:
    """Raise a MXNetError unless `tensor` has one of the `allowed` numbers of axes."""
    if tensor.dim() not in allowed:
        wanted = " or ".join(f"{n}-D" for n in allowed)
        raise MXNetError(f"{operator}: `{name}` must be {wanted}, received shape {tuple(tensor.shape)}")
