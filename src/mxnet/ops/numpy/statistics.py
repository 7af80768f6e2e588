"""NumPy operators of statistics: percentiles and polynomials."""
from typing import Literal

import torch

from ...base import MXNetError
from ..axes import normalize_axis
from ..elemwise.common import quotient
from ..registry import op
from ..schema import Axes, Optional
from .common import InvalidValueError, reduced, require_one_type, shape_of_inputs


@op("_npi_percentile", no_gradient=True, complete_rule="shape",
    inputs_rule=lambda attributes: ("a", "q") if attributes["q_scalar"] is None else ("a",))
def percentile(a, q=None, *, axis: Axes = None, interpolation: Literal["linear", "lower", "higher", "midpoint", "nearest"] = "linear",
               keepdims: bool = False, q_scalar: Optional[float] = None):
    """The values below which `q` percent of the elements over the axes lie.

    Parameters
    ----------
    q, q_scalar : array or float
        From 0 to 100; the axes of an array stand before those of the result.
    interpolation : str
        The value to take between two elements.

    Example
    -------
    >>> mx.np.percentile(mx.np.array([1, 2, 3, 4]), 50), mx.np.percentile(mx.np.array([1, 2, 3, 4]), 50, interpolation='lower')
    (array(2.5), array(2.))
    """
    values = a if a.dtype in (torch.float32, torch.float64) else a.float()
    axes = _axes(axis, a.dim())
    other_axes = [i for i in range(a.dim()) if i not in axes]
    ordered = values.permute((*other_axes, *axes)).reshape(*[a.shape[i] for i in other_axes], -1).sort(-1).values
    if not ordered.shape[-1]:
        raise MXNetError(f"_npi_percentile: the array holds no elements, received shape {tuple(a.shape)}")
    wanted = q.double() if q is not None else torch.tensor(q_scalar, dtype=torch.float64)
    if a.device.type != "meta" and not bool(((wanted >= 0) & (wanted <= 100)).all()):
        raise InvalidValueError(f"_npi_percentile: percentiles must be in the range [0, 100], received {wanted.min().item():g} to "
                                f"{wanted.max().item():g}")
    wanted = wanted.to(a.device, non_blocking=True)  # a single number was checked on the host
    place = quotient(wanted, 100) * (ordered.shape[-1] - 1)
    low, high = place.floor(), place.ceil()
    if interpolation == "lower":
        out = _at(ordered, low)
    elif interpolation == "higher":
        out = _at(ordered, high)
    elif interpolation == "nearest":
        out = _at(ordered, (place + 0.5).floor())  # halves go up
    else:
        share = (place - low if interpolation == "linear" else (high - low) / 2).to(values.dtype)
        share = share.reshape((*share.shape, *[1] * len(other_axes)))
        below, above = _at(ordered, low), _at(ordered, high)
        out = below + (above - below) * share
    return out.reshape((*wanted.shape, *reduced(a.shape, axes, keepdims)))


def _axes(axis, ndim):
    """The axes of which percentiles are taken, in order; one may be named twice."""
    if axis is None:
        return range(ndim)
    return sorted({normalize_axis("_npi_percentile", i, ndim) for i in ((axis,) if isinstance(axis, int) else axis)})


@percentile.shape_rule
@shape_of_inputs
def _(shape, q=(), *, axis, keepdims, **_):
    axes = _axes(axis, len(shape))
    return None if 0 in shape else (*q, *reduced(shape, axes, keepdims))  # of no elements there are none


def _at(ordered, place):
    """The elements at these places of the last axis; the axes of `place` come first."""
    values_at = ordered.index_select(-1, place.long().reshape(-1))
    return values_at.movedim(-1, 0).reshape((*place.shape, *ordered.shape[:-1]))


@percentile.dtype_rule
def _(in_types, out_types, **_):
    given = in_types[0]
    return in_types, [given if given in (None, torch.float32, torch.float64) else torch.float32]


@op("_npi_polyval", complete_rule="shape")
def polyval(p, x):
    """The polynomial with the coefficients `p`, that of the highest power first, at the points `x`.

    Example
    -------
    >>> mx.np.polyval(mx.np.array([3, 0, 1]), mx.np.array([0, 5]))
    array([ 1., 76.])
    """
    require_one_type("_npi_polyval", p, x)
    if p.dim() != 1:
        raise InvalidValueError(f"_npi_polyval: `p` must have one axis, received shape {tuple(p.shape)}")
    out = torch.zeros_like(x)
    for coefficient in p:
        out = out * x + coefficient
    return out


@polyval.shape_rule
def _(in_shapes, out_shapes):
    p, x = in_shapes
    return in_shapes, [x] if p is None or len(p) == 1 else out_shapes
