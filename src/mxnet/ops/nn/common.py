"""Rules shared by several layers: shapes of optional inputs, the position of the channel axis, types of parameters."""
from typing import Any

import torch

from ...base import MXNetError
from ..shapes import unify

HALF = (torch.float16, torch.bfloat16)
_FEW = 1 << 13  # elements below which the overhead of a torch call exceeds its computation
LAYOUTS = {1: "NCW", 2: "NCHW", 3: "NCDHW"}


def assign(shapes: Any, index: Any, shape: Any, what: str) -> None:
    """Unify the list's entry for one input or output with new knowledge.

    Raises
    ------
    MXNetError
        If it contradicts the entry.
    """
    if index >= len(shapes):
        return
    try:
        shapes[index] = unify(shapes[index], shape)
    except MXNetError:
        raise MXNetError(f"{what}: expected shape {shape}, received {shapes[index]}") from None


def channels_last(layout: str | None) -> bool:
    """True for NWC, NHWC and NDHWC."""
    return layout is not None and layout[-1] == "C"


def to_channels_first(tensor: torch.Tensor) -> torch.Tensor:
    """Return a view with the channel axis second."""
    return tensor.movedim(-1, 1)


def to_channels_last(tensor: torch.Tensor) -> torch.Tensor:
    """Return the array with the channel axis last, contiguous; most convolutions have written it so, which costs nothing."""
    return tensor.movedim(1, -1).contiguous()


def shape_to_channels_first(shape: tuple[int, ...]) -> tuple[int, ...]:
    """The same for a shape."""
    return (shape[0], shape[-1], *shape[1:-1])


def shape_to_channels_last(shape: tuple[int, ...]) -> tuple[int, ...]:
    """The same for a shape."""
    return (shape[0], *shape[2:], shape[1])


def minus_one_hot(probabilities: torch.Tensor, index: torch.Tensor, axis: int, amount: float = -1.0) -> torch.Tensor:
    """`probabilities` with `amount` added to that of each instance's class; a class out of range is none. `index` has size 1 on `axis`."""
    classes = probabilities.shape[axis]
    if probabilities.numel() <= _FEW and axis == probabilities.dim() - 1:  # fewer calls: there are hardly any numbers to go over
        return torch.add(probabilities, index == torch.arange(classes, device=index.device), alpha=amount)
    inside = (index >= 0) & (index < classes)
    return probabilities.scatter_add(axis, index.clamp(0, classes - 1), inside.to(probabilities.dtype) * amount)


def bias_inputs(attributes: Any) -> tuple[str, ...]:
    """Return the inputs of a layer with an optional bias."""
    return ("data", "weight") if attributes["no_bias"] else ("data", "weight", "bias")


def check_bias(name: str, bias: Any, no_bias: bool) -> None:
    """Raise an error for a bias beside ``no_bias=True``, or for a missing bias.

    Raises
    ------
    MXNetError
    """
    if (bias is None) is not no_bias:
        raise MXNetError(f"{name}: expected {'no bias' if no_bias else 'a bias'} with no_bias={no_bias}, received "
                         f"{'none' if bias is None else 'one of shape ' + str(tuple(bias.shape))}")


def param_type(dtype: Any) -> Any:
    """The type of a normalization's parameters: half-precision data keep theirs in float32."""
    return torch.float32 if dtype in HALF else dtype


def norm_types(in_types: Any, out_types: Any, **_: Any) -> Any:
    """Batch normalization's rule: the first input and output are alike, everything else has the parameters' type."""
    data = in_types[0] or out_types[0]
    if data is None:
        return in_types, out_types
    param = param_type(data)
    return [data, *(t or param for t in in_types[1:])], [data, *[param] * (len(out_types) - 1)]


def check_axis(axis: int, ndim: int, operator: str) -> int:
    """The axis as a number from 0 on.

    Raises
    ------
    MXNetError
        If there is no such axis.
    """
    if not -ndim <= axis < ndim:
        raise MXNetError(f"{operator}: axis {axis} is out of range for data with {ndim} axes")
    return axis % ndim
