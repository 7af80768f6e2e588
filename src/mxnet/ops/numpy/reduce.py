"""NumPy operators that reduce axes."""
import torch

from ...base import MXNetError
from ..axes import normalize_axis
from ..docstrings import with_sample
from ..integers import convert
from ..registry import op
from ..schema import Axes, DType, Optional
from .common import agree, axes_of, from_dtype_or_input, reduced, reduced_shape, result_is, shape_of_inputs


def _sum_type(dtype, given):
    return dtype or (torch.int64 if given is torch.bool else given)


def _sum_type_rule(in_types, out_types, *, dtype=None, **_):
    given = in_types[0]
    return [given], [_sum_type(dtype, given) if given is not None or dtype else out_types[0]]


_REAL = (torch.float32, torch.float64)
_HALVES = (torch.float16, torch.bfloat16)
_WHOLE = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)


def _refuse_initial(operator, initial):
    if initial is not None:
        raise MXNetError(f"{operator}: initial is not supported yet, received {initial}; leave it out")


def _all_axes(data, axes):
    return list(range(data.dim())) if axes is None else axes


def _work_type(a, target):
    """Return the type of the accumulation: the result's, except that fractions are truncated at the end only."""
    if a.is_floating_point() and (target in _HALVES or not target.is_floating_point):
        return a.dtype
    return torch.float64 if target is torch.bool else target


@op("_np_sum", complete_rule="shape")
def sum(a, *, axis: Axes = None, dtype: Optional[DType] = None, keepdims: bool = False, initial: Optional[float] = None):
    """The sum over axes, plus `initial`; booleans are counted in int64.

    Example
    -------
    >>> mx.np.sum(mx.np.array([[1, 2], [3, 4]]), axis=1, initial=10)
    array([13., 17.])
    """
    plain = dtype is None and initial is None and a.dtype in _REAL
    if plain and axis is None and not keepdims:
        return torch.sum(a)
    axes = axes_of("_np_sum", axis, a.dim())
    if plain and axes:
        return torch.sum(a, axes, keepdim=keepdims)
    target = _sum_type(dtype, a.dtype)
    if axes == [] or not a.dim():
        out = convert(a, target)
    else:
        out = torch.sum(a, _all_axes(a, axes), keepdim=keepdims, dtype=_work_type(a, target))
        out = out if out.dtype is target else convert(out, target)
    return out + initial if initial is not None else out


sum.dtype_rule(_sum_type_rule)
sum.shape_rule(reduced_shape("_np_sum"))


@op("_np_prod", complete_rule="shape", aliases=("_np_product",))
def prod(a, *, axis: Axes = None, dtype: Optional[DType] = None, keepdims: bool = False, initial: Optional[float] = None):
    """The product over axes, times `initial`; booleans are multiplied in int64.

    Example
    -------
    >>> mx.np.prod(mx.np.array([[1, 2], [3, 4]]), axis=1)
    array([ 2., 12.])
    """
    if axis is None and dtype is None and initial is None and not keepdims and a.dtype in _REAL:
        return torch.prod(a)
    axes = axes_of("_np_prod", axis, a.dim())
    target = _sum_type(dtype, a.dtype)
    work = _work_type(a, target)
    out = a if a.dtype is work else convert(a, work)
    if axes is None and not keepdims:
        out = torch.prod(out, dtype=work)
    else:
        axes = _all_axes(a, axes)
        # Products over one of several axes may leave the range of a type that holds the product over all.
        work = torch.float64 if work.is_floating_point and len(axes) > 1 else work
        for i in axes:
            out = torch.prod(out, i, keepdim=True, dtype=work)
        if not keepdims and axes:
            out = out.squeeze(axes)
    out = out if out.dtype is target else convert(out, target)
    out = out * initial if initial is not None else out
    return out if out is not a else a.clone()


prod.dtype_rule(_sum_type_rule)
prod.shape_rule(reduced_shape("_np_prod"))


@op("_npi_mean", complete_rule="shape")
def mean(a, *, axis: Axes = None, dtype: Optional[DType] = None, keepdims: bool = False, initial: Optional[float] = None):
    """The mean over axes, for integers in float32; with an integer `dtype` they are added as integers and the result is truncated.

    Example
    -------
    >>> mx.np.mean(mx.np.array([[1, 2], [4, 4]], dtype='int32'), axis=0)
    array([2.5, 3. ])
    """
    _refuse_initial("_npi_mean", initial)
    axes = axes_of("_npi_mean", axis, a.dim())
    if axes == []:
        out = a if a.is_floating_point() else a.to(torch.float32)
    elif a.is_floating_point() and dtype is None:
        return torch.mean(a, axes, keepdim=keepdims)
    elif not a.is_floating_point() and dtype in _WHOLE:  # the sum wraps around as `dtype` does
        total = torch.sum(a, _all_axes(a, axes), keepdim=keepdims, dtype=dtype)
        out = total.double() / (a.numel() / max(total.numel(), 1))
    else:
        out = torch.mean(a if a.is_floating_point() else a.double(), axes, keepdim=keepdims)
    return convert(out, dtype or (a.dtype if a.is_floating_point() else torch.float32))


mean.shape_rule(reduced_shape("_npi_mean"))


@mean.dtype_rule
def _(in_types, out_types, *, dtype=None, **_):
    given = in_types[0]
    return [given], [dtype or (torch.float32 if given is not None and not given.is_floating_point else given)]


def _root(x):
    """The square root, whose gradient at 0 is 0 instead of infinite: equal numbers have no direction in which they differ most."""
    flat = x == 0
    return torch.sqrt(x.masked_fill(flat, 1)).masked_fill(flat, 0)


def _moment(name, doc, sample):
    def fn(a, *, axis: Axes = None, dtype: Optional[DType] = None, ddof: int = 0, keepdims: bool = False):
        axes = axes_of(f"_npi_{name}", axis, a.dim())
        values = a if a.is_floating_point() else a.double()
        if axes == []:  # nothing is reduced: each element is a sample of its own
            values, axes, keepdims = values.unsqueeze(-1), [-1], False
        if dtype is not None and dtype.is_floating_point and dtype.itemsize > values.dtype.itemsize:
            values = values.to(dtype)
        recorded = values.requires_grad and torch.is_grad_enabled()
        out = (torch.std if name == "std" and not recorded else torch.var)(values, axes, correction=ddof, keepdim=keepdims)
        if name == "std" and recorded:
            out = _root(out)
        return convert(out, dtype or a.dtype)

    fn.__name__ = fn.__qualname__ = name
    fn.__doc__ = with_sample(doc, f"mx.np.{name}", sample)
    operator = op(f"_npi_{name}", complete_rule="shape")(fn)
    operator.dtype_rule(from_dtype_or_input)
    operator.shape_rule(reduced_shape(f"_npi_{name}"))


_moment("var", "The variance over axes: the sum of squared distances from the mean, divided by the count less `ddof`.",
        "[[1, 3], [2, 6]]; axis=1 -> [1., 4.]")
_moment("std", "The standard deviation over axes: the root of the variance.", "[[1, 3], [2, 6]]; axis=1 -> [1., 2.]")


def _extreme(name, function, of_all, doc, alias, sample):
    full = f"_np_{name}"

    def fn(a, *, axis: Axes = None, keepdims: bool = False, initial: Optional[float] = None):
        if axis is None and initial is None and not keepdims and a.numel():
            return of_all(a)
        _refuse_initial(full, initial)
        axes = axes_of(full, axis, a.dim())
        if axes == []:
            return a.clone()
        sizes = a.shape if axes is None else [a.shape[i] for i in axes]
        if 0 in sizes:
            raise MXNetError(f"{name} of no elements is undefined: the array has shape {tuple(a.shape)}")
        return function(a, axes if axes is not None else (), keepdims)

    fn.__name__ = fn.__qualname__ = name
    fn.__doc__ = with_sample(f"{doc} All that are equally extreme get the whole gradient.", f"mx.np.{name}", sample)
    operator = op(full, aliases=(alias,), complete_rule="shape")(fn)
    operator.shape_rule(reduced_shape(full))

    @operator.gradient
    def _(out_grads, inputs, outputs, *, axis=None, keepdims=False, initial=None):
        data = inputs[0]
        axes = axes_of(full, axis, data.dim())
        gradient, extreme = out_grads[0], outputs[0]
        if not keepdims:
            with_axes = [1 if axes is None or i in axes else n for i, n in enumerate(data.shape)]
            gradient, extreme = gradient.reshape(with_axes), extreme.reshape(with_axes)
        return (data == extreme) * gradient


_extreme("max", torch.amax, torch.max, "The largest value over axes.", "_np_amax", "[[1, 9], [3, 4]]; axis=1 -> [9., 4.]")
_extreme("min", torch.amin, torch.min, "The smallest value over axes.", "_np_amin", "[[1, 9], [3, 4]]; axis=0 -> [1., 4.]")


def _logical(name, function, doc, sample, aliases=()):
    def fn(data, *, axis: Axes = None, keepdims: bool = False):
        axes = axes_of(f"_np_{name}", axis, data.dim())
        data = data != 0 if data.dtype is not torch.bool else data
        for i in reversed(_all_axes(data, axes)):
            data = function(data, i, keepdims)
        return data

    fn.__name__ = fn.__qualname__ = name
    fn.__doc__ = with_sample(doc, f"mx.np.{name}", sample)
    operator = op(f"_np_{name}", aliases=aliases, no_gradient=True, complete_rule="shape")(fn)
    operator.dtype_rule(result_is(torch.bool))
    operator.shape_rule(reduced_shape(f"_np_{name}"))


_logical("all", torch.all, "True where all elements over the axes are other than 0.",
         "[[1, 0], [3, 4]]; axis=1 -> [False, True]")
_logical("any", torch.any, "True where an element over the axes is other than 0.", "[[1, 0], [0, 0]]; axis=1 -> [ True, False]", ("_np_sometrue",))


def _position(name, function, doc, sample):
    def fn(data, *, axis: Optional[int] = None, keepdims: bool = False):
        if data.dtype is torch.bool:
            data = data.to(torch.uint8)
        if axis is None:
            out = function(data)
            return out.reshape((1,) * data.dim()) if keepdims else out
        return function(data, normalize_axis(f"_npi_{name}", axis, max(data.dim(), 1)), keepdims)

    fn.__name__ = fn.__qualname__ = name
    fn.__doc__ = with_sample(f"{doc} Of several equal ones the first counts.", f"mx.np.{name}", sample)
    operator = op(f"_npi_{name}", no_gradient=True, complete_rule="shape")(fn)
    operator.dtype_rule(result_is(torch.int64))

    @operator.shape_rule
    @shape_of_inputs
    def _(shape, *, axis, keepdims):
        axes = None if axis is None else [normalize_axis(f"_npi_{name}", axis, max(len(shape), 1))]
        return None if 0 in shape else reduced(shape, axes, keepdims)  # an axis may have to hold an element


_position("argmax", torch.argmax, "The index of the largest value along `axis`, or in the flattened array.",
          "[[1, 9, 9], [3, 4, 2]]; axis=1 -> [1, 1], dtype=int64")
_position("argmin", torch.argmin, "The index of the smallest value along `axis`, or in the flattened array.",
          "[[1, 9, 1], [3, 4, 2]]; axis=1 -> [0, 2], dtype=int64")


@op("_npi_average", num_outputs=lambda attributes: 1 + attributes["returned"],
    inputs_rule=lambda attributes: ("a", "weights") if attributes["weighted"] else ("a",), complete_rule="shape")
def average(a, weights=None, *, axis: Axes = None, returned: bool = False, weighted: bool = True):
    """The weighted mean over axes; with `returned` also the sum of the weights, one number if all places share them.

    Raises
    ------
    MXNetError
        If `weights` is neither of the shape of `a` nor a vector as long as the one axis.

    Example
    -------
    >>> mx.np.average(mx.np.array([[1, 2], [3, 6]]), axis=1, weights=mx.np.array([3, 1]))
    array([1.25, 3.75])
    """
    axes = axes_of("_npi_average", axis, a.dim())
    if not weighted or weights is None:
        out = a.clone() if axes == [] else torch.mean(a if a.is_floating_point() else a.double(), axes).to(a.dtype)
        return (out, out.new_full((), a.numel() / max(out.numel(), 1))) if returned else out
    if weights.shape != a.shape:
        if axes is None:
            raise MXNetError(f"average: weights of shape {tuple(a.shape)}, or an axis for them, expected; received {tuple(weights.shape)} and no "
                             "axis")
        if weights.dim() != 1 or len(axes) != 1 or weights.shape[0] != a.shape[axes[0]]:
            raise MXNetError(f"average: 1D weights as long as the one axis expected when shapes of a and weights differ, received "
                             f"{tuple(weights.shape)} for axis {axis} of {tuple(a.shape)}")
        vector, weights = weights, weights.reshape([-1 if i == axes[0] else 1 for i in range(a.dim())])
        total = torch.sum(vector, dtype=a.dtype)
    else:
        total = weights.clone() if axes == [] else torch.sum(weights, _all_axes(a, axes), dtype=a.dtype)
    out = a * weights
    out = out if axes == [] else torch.sum(out, _all_axes(a, axes), dtype=a.dtype)
    out = torch.div(out, total, rounding_mode=None if a.is_floating_point() else "trunc")
    return (out, total) if returned else out


@average.shape_rule
@shape_of_inputs
def _(shape, weights=None, *, axis, **_):
    axes = axes_of("_npi_average", axis, len(shape))
    out = reduced(shape, axes)
    if weights is None:
        return [out, ()]
    if len(weights) == len(shape) and all(map(agree, weights, shape)):
        return [out, out]
    return [out, ()] if axes is not None and len(weights) == len(axes) == 1 and agree(weights[0], shape[axes[0]]) else None
