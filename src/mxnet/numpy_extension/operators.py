"""The operators of ``mx.npx``: those registered as ``_npx_*``."""
from __future__ import annotations

from typing import Any

from ..ndarray import from_numpy as _from_numpy
from ..ndarray.functions import operator_function
from ..numpy.frontend import arrays
from ..numpy.multiarray import ndarray
from ..ops import numpy as _register  # noqa: F401  (registers them)
from ..ops.registry import OPERATORS


def names() -> list[str]:
    """Return the public names of the operators."""
    return sorted(n[5:] for n in OPERATORS if n.startswith("_npx_") and not n.startswith("_npx__"))


def lookup(name: str, cls: Any) -> Any:
    """Return the function ``npx.<name>`` on arrays of the class `cls`; None if there is no such operator."""
    if name.startswith("_") or f"_npx_{name}" not in OPERATORS:
        return None
    return operator_function(f"_npx_{name}", cls)


def from_numpy(ndarray: Any, zero_copy: bool = True) -> Any:
    """Return an ``mx.np`` array with the values of a NumPy array; with `zero_copy` in its memory.

    Raises
    ------
    ValueError
        If the memory is to be shared, and is not contiguous.

    Example
    -------
    >>> import numpy
    >>> mx.npx.from_numpy(numpy.ones((2,), 'float32'))
    array([1., 1.])
    """
    return _from_numpy(ndarray, zero_copy).as_np_ndarray()


def reshape(a: Any, newshape: Any, reverse: bool = False, order: str = "C") -> ndarray:
    """Another shape for the same elements, with codes that refer to the old one.

    ``-1`` is inferred, ``-2`` keeps a size, ``-3`` drops an axis of size 1, ``-4`` keeps all remaining sizes, ``-5`` joins two axes,
    ``-6`` splits one into the two sizes that follow. With `reverse` sizes are matched from the right.

    Example
    -------
    >>> mx.npx.reshape(mx.np.zeros((2, 3, 4)), (-2, -1)).shape
    (2, 12)
    """
    return arrays.call("_npx_reshape", a, newshape=newshape, reverse=reverse, order=order)


def deconvolution(data: Any = None, weight: Any = None, bias: Any = None, kernel: Any = None, stride: Any = None, dilate: Any = None,
                  pad: Any = None, adj: Any = None, target_shape: Any = None, num_filter: int = 1, num_group: int = 1, workspace: int = 512,
                  no_bias: bool | None = None, cudnn_tune: str | None = None, cudnn_off: bool = False, layout: str | None = None,
                  out: Any = None, **kwargs: Any) -> ndarray:
    """Compute the transposed convolution; see `mx.nd.Deconvolution`. A `bias` is added if it is given, whatever `no_bias` is by default.

    Example
    -------
    >>> x, w, b = mx.np.ones((1, 1, 2)), mx.np.ones((1, 1, 2)), mx.np.array([0.5])
    >>> mx.npx.deconvolution(x, w, b, kernel=(2,))
    array([[[1.5, 2.5, 1.5]]])
    """
    given = {"kernel": kernel, "stride": stride, "dilate": dilate, "pad": pad, "adj": adj, "target_shape": target_shape, "cudnn_tune": cudnn_tune,
             "layout": layout, "out": out, **kwargs}
    return arrays.call("_npx_deconvolution", data, weight, *[] if bias is None else [bias], num_filter=num_filter, num_group=num_group,
                       workspace=workspace, no_bias=bias is None if no_bias is None else no_bias, cudnn_off=cudnn_off,
                       **{name: value for name, value in given.items() if value is not None})


def nonzero(a: Any) -> ndarray:
    """Return the indices of the elements other than 0: one row for each, one column for each axis, as int64.

    Example
    -------
    >>> mx.npx.nonzero(mx.np.array([[1, 0], [0, 2]]))
    array([[0, 0],
           [1, 1]], dtype=int64)
    """
    return arrays.call("_npx_nonzero", a)


def constraint_check(x: Any, msg: str) -> Any:
    """True if all elements of a boolean array are.

    Raises
    ------
    ValueError
        With the text `msg`, if one is not.

    Example
    -------
    >>> mx.npx.constraint_check(mx.np.array([1, 2]) > 0, 'all must hold')
    array(True)
    """
    return arrays.call("_npx_constraint_check", x, msg=msg)

