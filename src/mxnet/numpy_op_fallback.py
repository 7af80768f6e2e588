"""Operators of ``mx.np`` that are implemented with NumPy, as `mx.operator.CustomOp`."""
from __future__ import annotations

import ast
import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from . import numpy as mx_np
from . import operator
from .numpy import _internal as _arrays
from .numpy.official import TYPES
from .symbol.numpy import _internal as _symbols
from .util import np_array

if TYPE_CHECKING:
    from .context import Context
    from .operator import CustomOp


def register(op_name: str, imperative: bool = True, symbolic: bool = True) -> Callable[[Any], Any]:
    """Return a decorator that registers a `CustomOpProp` as ``mx.nd.np._internal.<op_name>`` and ``mx.sym.np._internal.<op_name>``.

    Parameters
    ----------
    op_name : str
    imperative, symbolic : bool
        Register the operator for arrays, and for Symbols.

    Raises
    ------
    ValueError
        If the name is taken there.
    """
    def offer(prop):
        places = [m for m, wanted in ((_arrays, imperative), (_symbols, symbolic)) if wanted]
        for module in places:
            if hasattr(module, op_name):
                raise ValueError(f"numpy_op_fallback: {module.__name__} has an operator {op_name} already")
        with np_array():
            prop = operator.register(op_name)(prop)
        for module in places:
            setattr(module, op_name, functools.partial(module.Custom, op_type=op_name))
        return prop

    return offer


class _Official(operator.CustomOp):
    """An operator without a gradient; `compute` returns the output, an ``mx.np`` array, for the inputs."""

    def compute(self, out_shape, *inputs):
        """Return the output."""
        raise NotImplementedError(f"{type(self).__name__} must define compute(out_shape, *inputs)")

    def forward(self, is_train, req, in_data, out_data, aux):
        """Write the output."""
        self.assign(out_data[0], req[0], self.compute(out_data[0].shape, *in_data))

    def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
        """Raise an error: there is no gradient."""
        raise NotImplementedError(f"{type(self).__name__} is computed by NumPy and has no gradient")


class EmptyLike(_Official):
    """An uninitialized array with the shape of another one."""

    def __init__(self, dtype: Any, order: str, subok: Any, shape: Any):
        super().__init__()
        self._dtype, self._order, self._subok, self._shape = dtype, order, subok, shape

    def compute(self, out_shape: Any, prototype: Any) -> Any:
        """Return the array."""
        return mx_np.array(np.empty_like(prototype.asnumpy(), dtype=self._dtype, order=self._order, subok=self._subok), ctx=prototype.ctx)


class EmptyLikeProp(operator.CustomOpProp):
    """``empty_like_fallback``, the operator of `mx.np.empty_like` in saved MXNet networks."""

    def __init__(self, dtype: Any = "None", order: str = "C", subok: Any = "True", shape: Any = "None"):
        super().__init__(need_top_grad=True)
        self._dtype = None if dtype == "None" else dtype
        self._order, self._subok, self._shape = order, ast.literal_eval(subok), ast.literal_eval(shape)

    def list_arguments(self) -> list[str]:
        """Return the input's name."""
        return ["prototype"]

    def infer_shape(self, in_shape: Any) -> Any:
        """Return the input's shape."""
        return (in_shape[0],), (in_shape[0],), ()

    def infer_type(self, in_type: Any) -> Any:
        """Return the requested type, or the input's."""
        return (in_type[0],), (in_type[0] if self._dtype is None else TYPES[self._dtype],), ()

    def create_operator(self, ctx: Context, in_shapes: list[Any], in_dtypes: list[Any]) -> CustomOp:
        """Return the operator."""
        return EmptyLike(self._dtype, self._order, self._subok, self._shape)


class Resize(_Official):
    """An array in another shape, whose values are repeated as often as necessary."""

    def __init__(self, new_shape: Any):
        super().__init__()
        self._new_shape = new_shape

    def compute(self, out_shape: Any, a: Any) -> Any:
        """Return the array."""
        values = np.resize(a.asnumpy(), self._new_shape)
        return mx_np.array(values, dtype=values.dtype, ctx=a.ctx)


class ResizeProp(operator.CustomOpProp):
    """``resize_fallback``, the operator of `mx.np.resize` in saved MXNet networks."""

    def __init__(self, new_shape: Any):
        super().__init__(need_top_grad=True)
        self._new_shape = ast.literal_eval(new_shape)

    def list_arguments(self) -> list[str]:
        """Return the input's name."""
        return ["a"]

    def infer_shape(self, in_shape: Any) -> Any:
        """Return the new shape."""
        return (in_shape[0],), ((self._new_shape,) if np.isscalar(self._new_shape) else self._new_shape,), ()

    def create_operator(self, ctx: Context, in_shapes: list[Any], in_dtypes: list[Any]) -> CustomOp:
        """Return the operator."""
        return Resize(self._new_shape)


class Unravel_index(_Official):
    """Flat indices converted to an index for each axis, which are stacked along axis 0."""

    def __init__(self, shape: Any):
        super().__init__()
        self._shape = shape

    def compute(self, out_shape: Any, indices: Any) -> Any:
        """Return the indices."""
        values = np.stack(np.unravel_index(indices.asnumpy(), self._shape))
        return mx_np.array(values, dtype=values.dtype, ctx=indices.ctx)


class Unravel_indexProp(operator.CustomOpProp):
    """``unravel_index_fallback``, the operator of `mx.np.unravel_index` in saved MXNet networks."""

    def __init__(self, shape: Any):
        super().__init__(need_top_grad=True)
        self._shape = ast.literal_eval(shape)

    def list_arguments(self) -> list[str]:
        """Return the input's name."""
        return ["indices"]

    def infer_shape(self, in_shape: Any) -> Any:
        """Return the number of axes followed by the input's shape."""
        return (in_shape[0],), ((1 if np.isscalar(self._shape) else len(self._shape), *in_shape[0]),), ()

    def create_operator(self, ctx: Context, in_shapes: list[Any], in_dtypes: list[Any]) -> CustomOp:
        """Return the operator."""
        return Unravel_index(self._shape)


class MultivariateNormal(_Official):
    """Normal random numbers with a mean and a covariance matrix."""

    def __init__(self, size: Any = None):
        super().__init__()
        self._size = size

    def compute(self, out_shape: Any, mean: Any, cov: Any) -> Any:
        """Return the random numbers."""
        scale = mx_np.linalg.cholesky(cov.astype("float32")).astype(cov.dtype) if cov.dtype == np.float16 else mx_np.linalg.cholesky(cov)
        return mean + mx_np.einsum("...jk,...k->...j", scale, mx_np.random.normal(size=out_shape, dtype=mean.dtype, ctx=mean.ctx))


class MultivariateNormalProp(operator.CustomOpProp):
    """``mvn_fallback``, the operator of `mx.np.random.multivariate_normal` in saved MXNet networks."""

    def __init__(self, size: Any = "None"):
        super().__init__(need_top_grad=True)
        self._size = ast.literal_eval(size)

    def list_arguments(self) -> list[str]:
        """Return the inputs' names."""
        return ["mean", "cov"]

    def infer_shape(self, in_shape: Any) -> Any:
        """Return the size followed by the shape of the mean, broadcast with the matrices' rows.

        Raises
        ------
        ValueError
            If the matrices do not fit the mean.
        """
        mean, cov = in_shape
        if len(mean) < 1 or len(cov) < 2 or cov[-1] != cov[-2] or cov[-1] != mean[-1]:
            raise ValueError(f"a mean (..., n) and a covariance (..., n, n) expected, received shapes {tuple(mean)} and {tuple(cov)}")
        size = () if self._size is None else (self._size,) if np.isscalar(self._size) else tuple(self._size)
        return in_shape, ((*size, *np.broadcast_shapes(tuple(mean), tuple(cov[:-1]))),), ()

    def create_operator(self, ctx: Context, in_shapes: list[Any], in_dtypes: list[Any]) -> CustomOp:
        """Return the operator."""
        return MultivariateNormal(self._size)


with np_array():
    for _op_name, _prop in (("empty_like", EmptyLikeProp), ("resize", ResizeProp), ("unravel_index", Unravel_indexProp),
                            ("mvn", MultivariateNormalProp)):
        operator.register(f"{_op_name}_fallback")(_prop)

empty_like_of_arrays, unravel_index_of_arrays = (functools.partial(_arrays.Custom, op_type=f"{n}_fallback") for n in ("empty_like", "unravel_index"))
empty_like_of_symbols, unravel_index_of_symbols = (functools.partial(_symbols.Custom, op_type=f"{n}_fallback")
                                                   for n in ("empty_like", "unravel_index"))
