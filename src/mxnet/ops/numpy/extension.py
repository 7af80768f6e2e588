"""Operators of ``mx.npx`` that MXNet 2.0 added, and its names of operators that ``mx.nd`` has had."""
from ...base import MXNetError
from .. import bounds
from ..dtypes import name_of
from ..registry import alias, op
from ..schema import Optional, Shape
from .common import shape_of_inputs
from .shape import reshape_with_codes, transpose

_NAMES = {
    "broadcast_greater": "broadcast_greater", "contrib_calibrate_entropy": "_contrib_calibrate_entropy", "contrib_quantize": "_contrib_quantize",
    "contrib_quantize_v2": "_contrib_quantize_v2", "contrib_quantized_rnn": "_contrib_quantized_rnn", "quantized_act": "_contrib_quantized_act",
    "quantized_conv": "_contrib_quantized_conv", "quantized_elemwise_add": "_contrib_quantized_elemwise_add",
    "quantized_elemwise_mul": "_contrib_quantized_elemwise_mul", "quantized_embedding": "_contrib_quantized_embedding",
    "quantized_flatten": "_contrib_quantized_flatten", "quantized_fully_connected": "_contrib_quantized_fully_connected",
    "quantized_npi_add": "_contrib_quantized_elemwise_add", "quantized_pooling": "_contrib_quantized_pooling", "requantize": "_contrib_requantize",
    "scalar_poisson": "_random_poisson", "softsign": "softsign", "tensor_poisson": "_sample_poisson", "_random_categorical": "_sample_multinomial"}
for _name, _of in _NAMES.items():
    alias(f"_npx_{_name}", of=_of)


# -- writing to a copy -----------------------------------------------------------------------------------------------------

def _places(operator, a, ind):
    """Return the rows of indices, one for each of the leading axes; a vector of indices applies to the first axis."""
    if ind.is_floating_point() and not ind.is_meta:
        raise MXNetError(f"{operator}: `ind` must hold integers, received {name_of(ind.dtype)}; convert with astype('int64')")
    rows = ind.reshape(1, -1) if ind.dim() < 2 else ind
    if rows.shape[0] > a.dim():
        raise MXNetError(f"{operator}: at most {a.dim()} rows of indices expected, one an axis of `a`; received shape {tuple(ind.shape)}")
    return bounds.within(operator, rows.long().unbind(0), a.shape)


@op("_npx_index_add", complete_rule="shape")
def index_add(a, ind, val):
    """A copy of `a` with `val` added at the places that the rows of `ind` name, one row an axis; a place named twice receives both.

    Raises
    ------
    MXNetError
        If `ind` holds no integers, or has more rows than `a` has axes.

    Example
    -------
    >>> mx.npx.index_add(mx.np.zeros(3), mx.np.array([[0, 2, 0]], dtype='int32'), mx.np.array([1, 2, 3]))
    array([4., 0., 2.])
    """
    return a.index_put(_places("_npx_index_add", a, ind), val, accumulate=True)


@op("_npx_index_update", complete_rule="shape")
def index_update(a, ind, val):
    """A copy of `a` with `val` at the places that the rows of `ind` name, one row an axis.

    Raises
    ------
    MXNetError
        If `ind` holds no integers, or has more rows than `a` has axes.

    Example
    -------
    >>> mx.npx.index_update(mx.np.zeros(3), mx.np.array([[0, 2]], dtype='int32'), mx.np.array([1, 2]))
    array([1., 0., 2.])
    """
    return a.index_put(_places("_npx_index_update", a, ind), val)


def _written(a, ind, val):
    """The shape of `a`, unless `val` does not fit what `ind` selects, or sizes are open."""
    rows, places = (1, ind) if len(ind) < 2 else (ind[0], ind[1:])
    if -1 in (*a, *ind, *val) or rows > len(a):
        return None
    selected = (*(places or (1,)), *a[rows:])
    fits = len(val) <= len(selected) and all(m in (1, n) for m, n in zip(reversed(val), reversed(selected)))
    return a if fits else None


for _operator in (index_add, index_update):
    _operator.shape_rule(shape_of_inputs(_written))


# -- quantized arrays, reshaped like others; the range stays ------------------------------------------------------------------

@op("_npx_quantized_reshape", num_outputs=3, output_names=("output", "min_output", "max_output"), no_gradient=True)
def quantized_reshape(data, min_data, max_data, *, newshape: Shape, reverse: bool = False, order: str = "C"):
    """`npx.reshape` of int8 or uint8 `data`; the range stays.

    Example
    -------
    >>> low, high = mx.np.array([-1]), mx.np.array([1])
    >>> mx.npx.quantized_reshape(mx.np.array([[1, 2]], dtype='int8'), low, high, newshape=(-1,))[0]
    array([1, 2], dtype=int8)
    """
    return reshape_with_codes.fn(data, newshape=newshape, reverse=reverse, order=order), min_data.clone(), max_data.clone()


@op("_npx_quantized_transpose", num_outputs=3, output_names=("output", "min_output", "max_output"), no_gradient=True)
def quantized_transpose(data, min_data, max_data, *, axes: Optional[Shape] = None):
    """`np.transpose` of int8 or uint8 `data`; the range stays.

    Example
    -------
    >>> low, high = mx.np.array([-1]), mx.np.array([1])
    >>> mx.npx.quantized_transpose(mx.np.array([[1, 2]], dtype='int8'), low, high)[0]
    array([[1],
           [2]], dtype=int8)
    """
    return transpose.fn(data, axes=axes), min_data.clone(), max_data.clone()


for _operator in (quantized_reshape, quantized_transpose):
    _operator.dtype_rule(lambda in_types, out_types, **_: (in_types, [*in_types]))
