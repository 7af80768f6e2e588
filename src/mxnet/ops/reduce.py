"""Operators that reduce axes: sums, products, extremes and where they are, norms, moments; cumulative sums."""
from typing import Any

import numpy as np
import torch

from ..base import MXNetError
from ..kernels.memory import gather_scatter
from .axes import normalize_axis
from .docstrings import with_sample
from .integers import convert
from .norms import vector_norm
from .registry import op
from .schema import Axes, DType, Optional
from .shapes import product, unify


def reduced_axes(operator: str, axis: Any, exclude: bool, ndim: int, name: str = "axis") -> Any:
    """The axes to reduce, in order; None for all of them.

    Raises
    ------
    MXNetError
        If an axis is out of range or named twice.
    """
    if axis is None or axis == ():
        return None
    if type(axis) is int:
        axes = [normalize_axis(operator, axis, ndim, name)]
    else:
        axes = sorted(normalize_axis(operator, a, ndim, name) for a in axis)
        if len(set(axes)) < len(axes):
            raise MXNetError(f"{operator}: `{name}` must not name an axis twice, received {tuple(axis)}")
    if exclude:
        axes = [a for a in range(ndim) if a not in axes]
    return axes if len(axes) < ndim else None


def _finish(out, data, axes, keepdims):
    # MXNet's legacy operators have no scalars: all axes reduced leave the shape (1,).
    if axes is None:
        return out.reshape((1,) * data.dim()) if keepdims else out.view(1)
    return out


def _reduced_shape(operator):
    def rule(in_shapes, out_shapes, *, axis, keepdims, exclude=False, **_):
        data = in_shapes[0]
        if data is None:
            return in_shapes, out_shapes
        axes = reduced_axes(operator, axis, exclude, len(data))
        if axes is None:
            out = (1,) * len(data) if keepdims else (1,)
        else:
            out = tuple(1 if i in axes else n for i, n in enumerate(data) if keepdims or i not in axes)
        return in_shapes, [unify(out_shapes[0], out)]
    return rule


def _reduction(name, compute, doc, sample=None, aliases=(), of_floats=None, **traits):
    """Register ``compute(data, axes, keepdims)``, where `axes` is a number, a list, or None for all, as a reduction; see `with_sample`.

    `of_floats` is torch's function that computes the same of floating-point numbers over one axis.
    """
    of_floats = of_floats or compute

    def fn(data, *, axis: Axes = None, keepdims: bool = False, exclude: bool = False):
        n = data.dim()
        if n > 1 and type(axis) is int and not exclude:  # the usual case; torch takes 0.2 us longer for a list, and for an argument by name
            try:
                return (of_floats if data.is_floating_point() else compute)(data, axis, keepdims)
            except IndexError:  # there is no such axis
                pass
        if n == 1 and (axis is None or axis == ()) and not exclude:  # all axes leave the shape (1,), as this one does with `keepdims`
            return compute(data, 0, True)
        axes = None if axis is None else reduced_axes(name, axis, exclude, n)
        if axes == []:
            return compute(data.unsqueeze(-1), [-1], False)
        return _finish(compute(data, axes, keepdims and axes is not None), data, axes, keepdims)

    fn.__name__ = fn.__qualname__ = name
    fn.__doc__ = f"""{doc}

    `axis` is a number, several, or None for all of them; with `exclude` all others than these are reduced. With `keepdims` a reduced
    axis stays with size 1. The result keeps the type of `data`; that of all axes has the shape (1,).

    Raises
    ------
    MXNetError
        If `data` has no such axis, or one is named twice.
    """
    if sample is not None:
        fn.__doc__ = with_sample(fn.__doc__.rstrip(), f"mx.nd.{name}", sample)
    operator = op(name, aliases=aliases, complete_rule=True, **traits)(fn)
    operator.shape_rule(_reduced_shape(name))
    return operator


def _gradient_shape(tensor, data, axis, keepdims, exclude, operator):
    """`tensor`, of the shape of a reduction's output, so that it broadcasts to `data`."""
    if axis is None or axis == ():
        return tensor.reshape((1,) * data.dim())
    axes = reduced_axes(operator, axis, exclude, data.dim())
    if axes is None:
        return tensor.reshape((1,) * data.dim())
    return tensor if keepdims else tensor.reshape([1 if i in axes else n for i, n in enumerate(data.shape)])


def _sum(data, axes, keepdims):
    if data.is_floating_point():
        return torch.sum(data, axes, keepdims)
    return torch.sum(data, axes, keepdims, dtype=data.dtype)


def _mean(data, axes, keepdims):
    if data.is_floating_point():
        return torch.mean(data, axes, keepdims)
    if data.dtype is torch.bool:  # any part of True is True
        return _sum(data, axes, keepdims)
    count = product(data.shape) if axes is None else data.shape[axes] if type(axes) is int else product(data.shape[a] for a in axes)
    return torch.div(_sum(data, axes, keepdims), count, rounding_mode="trunc")


def _prod(data, axes, keepdims):
    if axes is None:
        return torch.prod(data, dtype=data.dtype)
    if type(axes) is int:
        return torch.prod(data, axes, keepdims, dtype=data.dtype)
    # Products over one of several axes may leave the range of a type that holds the product over all.
    dtype = torch.float64 if data.is_floating_point() and len(axes) > 1 else data.dtype
    out = data
    for axis in axes:
        out = torch.prod(out, axis, keepdim=True, dtype=dtype)
    return (out if keepdims else out.squeeze(axes)).to(data.dtype)


def _nanprod(data, axes, keepdims):
    return _prod(torch.where(torch.isnan(data), 1, data) if data.is_floating_point() else data, axes, keepdims)


def _nansum(data, axes, keepdims):
    return torch.nansum(data, axes, keepdims, dtype=data.dtype)


_reduction("sum", _sum, "The sum over axes.", "[[1, 2], [3, 4]]; axis=1 -> [3., 7.]", ("sum_axis", "_sparse_sum"), torch.sum,
           method=True, amp="float32")
mean = _reduction("mean", _mean, "The mean over axes; of integers truncated.", "[[1, 2], [3, 4]]; axis=0 -> [2., 3.]", ("_sparse_mean",), torch.mean,
                  method=True, amp="float32")
_reduction("prod", _prod, "The product over axes.", "[[1, 2], [3, 4]]; axis=1 -> [ 2., 12.]", (), torch.prod, method=True,
           amp="float32")
_reduction("nansum", _nansum, "The sum over axes of what is not nan.", "[[1, float('nan')], [3, 4]]; axis=1 -> [1., 7.]", (), torch.nansum,
           method=True, amp="float32")
_reduction("nanprod", _nanprod, "The product over axes of what is not nan.", "[[2, float('nan')], [3, 4]]; axis=1 -> [ 2., 12.]",
           method=True, amp="float32")
_max = _reduction("max", lambda data, axes, keepdims: torch.amax(data, () if axes is None else axes, keepdims),
                  "The largest value over axes. All that are equally large get the whole gradient.",
                  "[[1, 9], [3, 4]]; axis=1, keepdims=True -> [[9.], [4.]]", ("max_axis",), torch.amax, method=True)
_min = _reduction("min", lambda data, axes, keepdims: torch.amin(data, () if axes is None else axes, keepdims),
                  "The smallest value over axes. All that are equally small get the whole gradient.",
                  "[[1, 9], [3, 4]]; axis=0, exclude=True -> [1., 3.]", ("min_axis",), torch.amin, method=True)
_reduction("_square_sum", lambda data, axes, keepdims: _sum(torch.square(data), axes, keepdims), "The sum of the squares over axes.", amp="float32")


@_max.gradient
@_min.gradient
def _(out_grads, inputs, outputs, *, axis=None, keepdims=False, exclude=False):
    data = inputs[0]
    extreme, gradient = (_gradient_shape(t, data, axis, keepdims, exclude, "max") for t in (outputs[0], out_grads[0]))
    return (data == extreme) * gradient


@op("norm", aliases=("_sparse_norm", "_npx_norm"), complete_rule="shape", method=True, amp="float32")
def norm(data, *, ord: int = 2, axis: Axes = None, out_dtype: Optional[DType] = None, keepdims: bool = False):
    """The norm over axes: the root of the sum of squares (`ord` 2) or the sum of absolute values (`ord` 1).

    `axis` is a number, several, or None for all of them, which gives the shape (1,). `out_dtype` is the type of the result and of the
    sum, by default that of `data`.

    Raises
    ------
    MXNetError
        If `ord` is neither 1 nor 2, or `data` has no such axis.

    Example
    -------
    >>> mx.nd.norm(mx.nd.array([[3, 4], [6, 8]]), axis=1).asnumpy()
    array([ 5., 10.], dtype=float32)
    """
    if ord not in (1, 2):
        raise MXNetError(f"norm: `ord` must be 1 or 2, received {ord}")
    axes = reduced_axes("norm", axis, False, data.dim())
    dtype = out_dtype or data.dtype
    if not data.is_floating_point():
        data = data.double()
    elif dtype.itemsize > data.dtype.itemsize:
        data = data.to(dtype)
    out = vector_norm(data, ord, axes, keepdims and axes is not None).to(dtype)
    return _finish(out, data, axes, keepdims)


norm.shape_rule(_reduced_shape("norm"))


@norm.dtype_rule
def _(in_types, out_types, *, out_dtype, **_):
    if out_dtype is not None:
        return in_types, [out_dtype]
    common = in_types[0] or out_types[0]
    return [common], [common]


@op("moments", num_outputs=2, complete_rule="shape", output_names=("output0", "output1"), amp="float32")
def moments(data, *, axes: Axes = None, keepdims: bool = False):
    """The mean and the variance over axes, two arrays.

    Raises
    ------
    MXNetError
        If `axes` is not given, or `data` has no such axis.

    Example
    -------
    >>> mean, variance = mx.nd.moments(mx.nd.array([[1, 2, 3], [4, 5, 6]]), axes=0)
    >>> mean.asnumpy(), variance.asnumpy()
    (array([2.5, 3.5, 4.5], dtype=float32), array([2.25, 2.25, 2.25], dtype=float32))
    """
    if axes is None or axes == ():
        raise MXNetError(f"moments: `axes` must name the axes to reduce, received {axes}; for global moments name all of them")
    chosen = reduced_axes("moments", axes, False, data.dim(), "axes")
    dims = list(range(data.dim())) if chosen is None else chosen
    if data.is_floating_point():
        variance, mean = torch.var_mean(data, dims, correction=0, keepdim=keepdims)
    else:
        mean = _mean(data, dims, True)
        variance = _mean(torch.square(data - mean), dims, keepdims)
        mean = mean if keepdims else mean.squeeze(dims)
    return _finish(mean, data, chosen, keepdims), _finish(variance, data, chosen, keepdims)


@moments.shape_rule
def _(in_shapes, out_shapes, *, axes, keepdims):
    if axes is None or axes == ():
        return in_shapes, out_shapes
    in_shapes, outs = _reduced_shape("moments")(in_shapes, out_shapes[:1], axis=axes, keepdims=keepdims)
    return in_shapes, [unify(o, outs[0]) for o in out_shapes]


def _arg_extreme(name, function, doc, sample):
    def fn(data, *, axis: Optional[int] = None, keepdims: bool = False):
        if axis is None:
            return function(data.reshape(-1), 0).reshape((1,) * data.dim() if keepdims else (1,)).to(data.dtype)
        n = data.dim()
        if n > 1 and -n <= axis < n:  # the usual case
            return function(data, axis, keepdims).to(data.dtype)
        axis = normalize_axis(name, axis, n)
        out = function(data, axis, keepdims).to(data.dtype)
        return out if out.dim() else out.reshape(1)

    fn.__name__ = fn.__qualname__ = name
    fn.__doc__ = with_sample(f"""{doc}

    Of several equal values the first counts. The result has the type of `data` (floating-point numbers for such data, as in MXNet).
    With `axis` None the array counts as one vector. With `keepdims` the axis stays with size 1.

    Raises
    ------
    MXNetError
        If `data` has no such axis.""", f"mx.nd.{name}", sample)
    operator = op(name, complete_rule="shape", method=True)(fn)
    operator.shape_rule(_reduced_shape(name))
    return operator


_arg_extreme("argmax", torch.argmax, "The index of the largest value along an axis.", "[[1, 9, 9], [3, 4, 2]]; axis=1 -> [1., 1.]")
_arg_extreme("argmin", torch.argmin, "The index of the smallest value along an axis.", "[[1, 9, 1], [3, 4, 2]]; axis=1 -> [0., 2.]")


@op("argmax_channel", complete_rule="shape", no_gradient=True, method=True)
def argmax_channel(data):
    """The index of the largest value along axis 1, as a number of the type of `data`: of scores (N, C) the best class of each row.

    Example
    -------
    >>> mx.nd.argmax_channel(mx.nd.array([[0.1, 0.7, 0.2], [0.5, 0.2, 0.3]])).asnumpy()
    array([1., 0.], dtype=float32)
    """
    return torch.argmax(data, 1).to(data.dtype)


@argmax_channel.shape_rule
def _(in_shapes, out_shapes):
    data = in_shapes[0]
    if data is None or len(data) < 2 or not data[1]:
        return in_shapes, out_shapes
    return in_shapes, [unify(out_shapes[0], (data[0], *data[2:]))]


@op("_np_cumsum", aliases=("cumsum",), complete_rule="shape")
def cumsum(a, *, axis: Optional[int] = None, dtype: Optional[DType] = None):
    """Cumulative sums along `axis`, or over the flattened array if it is None; `dtype` is the type to add in, by default that of `a`.

    Raises
    ------
    MXNetError
        If `a` has no such axis.

    Example
    -------
    >>> mx.nd.cumsum(mx.nd.array([[1, 2], [3, 4]]), axis=0).asnumpy()
    array([[1., 2.],
           [4., 6.]], dtype=float32)
    """
    if axis is None:
        a, axis = a.reshape(-1), 0
    else:
        axis = normalize_axis("cumsum", axis, a.dim())
    dtype = dtype or (torch.int64 if a.dtype is torch.bool else a.dtype)
    if dtype is torch.float16 and type(a) is torch.Tensor and a.device.type == "cpu":  # neither a tracer's tensor nor recorded integers
        return _HalfSums.apply(a.to(dtype), axis)
    a = a if a.dtype is dtype else convert(a, dtype)
    return gather_scatter.summed(a, axis) if dtype is torch.float32 else a.cumsum(axis, dtype=dtype)


class _HalfSums(torch.autograd.Function):
    """Cumulative sums in float16, each rounded before the next number is added, as MXNet and NumPy do; torch adds in float32."""

    @staticmethod
    def forward(ctx, a, axis):
        ctx.axis = axis
        return torch.from_numpy(np.add.accumulate(a.numpy(), axis))

    @staticmethod
    def backward(ctx, gradient):
        return cumsum(gradient.flip(ctx.axis), axis=ctx.axis).flip(ctx.axis), None


@cumsum.shape_rule
def _(in_shapes, out_shapes, *, axis, dtype):
    data, out = in_shapes[0], out_shapes[0]
    if data is not None:
        out = unify(out, data if axis is not None else (product(data),))
    return [data], [out]


@cumsum.dtype_rule
def _(in_types, out_types, *, axis, dtype):
    return in_types, [dtype or in_types[0] or out_types[0]]


__all__ = ["reduced_axes"]
