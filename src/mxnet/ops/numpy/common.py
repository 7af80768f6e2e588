"""Parts that the families of NumPy operators share: types and shapes of results, checks on axes."""
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ...base import MXNetError
from ..axes import normalize_axis
from ..dtypes import name_of
from ..elemwise.common import broadcast_rule
from ..shapes import unify
from .promotion import common_type

if TYPE_CHECKING:
    import torch


class InvalidValueError(MXNetError, ValueError):
    """An input or attribute has a value that the operator cannot use, such as a negative scale; the message lists the allowed ones."""


def result_is(dtype: Any) -> Callable[..., Any]:
    """A type rule: the inputs share a type, the result has `dtype`."""
    def rule(in_types, out_types, **_):
        common = next((t for t in in_types if t is not None), None)
        return [t or common for t in in_types], [dtype] * len(out_types)
    return rule


def promoted(in_types: Any, out_types: Any, **_: Any) -> Any:
    """A type rule: the result has the common type of the inputs."""
    known = [t for t in in_types if t is not None]
    if not known:
        return [out_types[0]] * len(in_types), out_types
    common = known[0]
    for t in known[1:]:
        common = common_type("mx.np", common, t)
    return [t or known[0] for t in in_types], [common] * len(out_types)


def from_dtype_or_input(in_types: Any, out_types: Any, *, dtype: Any = None, **_: Any) -> Any:
    """A type rule: the attribute `dtype`, otherwise that of the first input."""
    return in_types, [dtype or in_types[0]] * len(out_types)


def axes_of(operator: str, axis: Any, ndim: int) -> Any:
    """The axes to reduce, in order, counted from the front; None for all of them.

    Raises
    ------
    MXNetError
        If an axis is out of range or named twice.
    """
    if axis is None:
        return None
    if ndim and type(axis) is int:
        return [normalize_axis(operator, axis, ndim)]
    if not ndim and axis in (0, -1, (0,), (-1,)):
        return []  # NumPy lets scalars have these two
    axis = (axis,) if type(axis) is int else axis
    axes = sorted(normalize_axis(operator, a, ndim) for a in axis)
    if len(set(axes)) < len(axes):
        raise MXNetError(f"{operator}: `axis` must not name an axis twice, received {tuple(axis)}")
    return axes


def shape_of_inputs(compute: Callable[..., Any]) -> Callable[..., Any]:
    """A shape rule: ``compute(*in_shapes, **attributes)`` is the shape of the result, or a list of these.

    It is asked once all inputs have a number of axes; sizes that are not known are -1. None leaves a shape to the call, and with it the error
    where there is none.
    """
    def rule(in_shapes, out_shapes, **attributes):
        if None in in_shapes:
            return in_shapes, out_shapes
        shapes = compute(*in_shapes, **attributes)
        return in_shapes, [unify(a, b) for a, b in zip(out_shapes, shapes if type(shapes) is list else [shapes] * len(out_shapes))]
    return rule


def broadcast(*shapes: Any) -> Any:
    """The partial shape that arrays of these partial shapes broadcast to.

    Raises
    ------
    MXNetError
        If they don't.
    """
    out = ()
    for shape in shapes:
        out = broadcast_rule([out, tuple(shape)], [None])[1][0]
    return out


def agree(*sizes: Any) -> bool:
    """True if sizes may be equal; those below 0 are not known."""
    return len({n for n in sizes if n >= 0}) < 2


def reduced(shape: Any, axes: Any, keepdims: bool = False) -> Any:
    """The shape without these axes (None for all), or with size 1 there."""
    axes = range(len(shape)) if axes is None else axes
    return tuple(1 if i in axes else n for i, n in enumerate(shape) if keepdims or i not in axes)


def reduced_shape(operator: str) -> Callable[..., Any]:
    """A shape rule: the axes in the attribute `axis` are gone, or have size 1 with `keepdims`."""
    return shape_of_inputs(lambda shape, *, axis, keepdims, **_: reduced(shape, axes_of(operator, axis, len(shape)), keepdims))


def require_one_type(operator: str, *tensors: "torch.Tensor") -> None:
    """Raise a MXNetError unless all tensors have one type."""
    first = tensors[0].dtype
    for t in tensors[1:]:
        if t.dtype is not first:
            raise MXNetError(f"{operator}: all inputs must have one data type, received {name_of(first)} and {name_of(t.dtype)}; convert with astype")


def require_float(operator: str, *tensors: "torch.Tensor") -> None:
    """Raise a MXNetError unless all tensors hold floating-point numbers."""
    for t in tensors:
        if not t.is_floating_point():
            raise MXNetError(f"{operator}: inputs must be floating-point arrays, received {name_of(t.dtype)}; convert with astype('float32')")
