"""Functions that reduce axes, and those of statistics."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..frontend import NUMBERS, Array, function, reduces

if TYPE_CHECKING:
    from ..argument_types import DTypeLike, Sizes


@function()
@reduces("_np_sum")
def sum(F: Any, a: Any, axis: Sizes | None = None, dtype: DTypeLike | None = None, keepdims: bool = False, initial: Any = None,
        out: Array | None = None, where: Any = None) -> Array:
    """The sum over axes, plus `initial`; booleans are counted in int64. `where` is a mask of the elements to add, which broadcasts."""
    if where is not None:
        a = F.call("_npi_where_rscalar", where, a, scalar=0.0)
    return F.call("_np_sum", a, axis=axis, dtype=dtype, keepdims=keepdims, initial=initial, out=out)


@function("", "prod", "product")
@reduces("_np_prod")
def prod(F: Any, a: Any, axis: Sizes | None = None, dtype: DTypeLike | None = None, out: Array | None = None, keepdims: bool = False,
         initial: Any = None) -> Array:
    """The product over axes, times `initial`."""
    return F.call("_np_prod", a, axis=axis, dtype=dtype, keepdims=keepdims, initial=initial, out=out)


@function()
@reduces("_npi_mean")
def mean(F: Any, a: Any, axis: Sizes | None = None, dtype: DTypeLike | None = None, out: Array | None = None, keepdims: bool = False) -> Array:
    """The mean over axes, of integers in float32."""
    return F.call("_npi_mean", a, axis=axis, dtype=dtype, keepdims=keepdims, out=out)


@function()
@reduces("_npi_std")
def std(F: Any, a: Any, axis: Sizes | None = None, dtype: DTypeLike | None = None, out: Array | None = None, ddof: int = 0, keepdims: bool = False,
        correction: Any = None) -> Array:
    """The standard deviation over axes; `correction` is another name of `ddof`."""
    return F.call("_npi_std", a, axis=axis, dtype=dtype, ddof=_divided_less(ddof, correction), keepdims=keepdims, out=out)


@function()
@reduces("_npi_var")
def var(F: Any, a: Any, axis: Sizes | None = None, dtype: DTypeLike | None = None, out: Array | None = None, ddof: int = 0, keepdims: bool = False,
        correction: Any = None) -> Array:
    """The variance over axes: the sum of squared distances from the mean, divided by the count less `ddof`, or `correction`."""
    return F.call("_npi_var", a, axis=axis, dtype=dtype, ddof=_divided_less(ddof, correction), keepdims=keepdims, out=out)


def _divided_less(ddof, correction):
    if ddof and correction is not None:
        raise ValueError(f"one of ddof and correction expected, received ddof={ddof} and correction={correction}")
    return ddof if correction is None else correction


@function("", "max", "amax")
@reduces("_np_max")
def max(F: Any, a: Any, axis: Sizes | None = None, keepdims: bool = False, out: Array | None = None) -> Array:
    """The largest value over axes."""
    return F.call("_np_max", a, axis=axis, keepdims=keepdims, out=out)


@function("", "min", "amin")
@reduces("_np_min")
def min(F: Any, a: Any, axis: Sizes | None = None, keepdims: bool = False, out: Array | None = None) -> Array:
    """The smallest value over axes."""
    return F.call("_np_min", a, axis=axis, keepdims=keepdims, out=out)


@function()
@reduces("_np_all")
def all(F: Any, a: Any, axis: Sizes | None = None, keepdims: bool = False, out: Array | None = None) -> Array:
    """True where all elements over the axes are other than 0."""
    return F.call("_np_all", a, axis=axis, keepdims=keepdims, out=out)


@function("", "any", "sometrue")
@reduces("_np_any")
def any(F: Any, a: Any, axis: Sizes | None = None, keepdims: bool = False, out: Array | None = None) -> Array:
    """True where an element over the axes is other than 0."""
    return F.call("_np_any", a, axis=axis, keepdims=keepdims, out=out)


@function()
@reduces("_npi_argmax")
def argmax(F: Any, a: Any, axis: Sizes | None = None, out: Array | None = None, keepdims: bool = False) -> Array:
    """The index of the largest value along `axis`, or in the flattened array, as int64."""
    return F.call("_npi_argmax", a, axis=axis, keepdims=keepdims, out=out)


@function()
@reduces("_npi_argmin")
def argmin(F: Any, a: Any, axis: Sizes | None = None, out: Array | None = None, keepdims: bool = False) -> Array:
    """The index of the smallest value along `axis`, or in the flattened array, as int64."""
    return F.call("_npi_argmin", a, axis=axis, keepdims=keepdims, out=out)


@function()
def average(F: Any, a: Any, axis: Sizes | None = None, weights: Any = None, returned: Any = False, out: Array | None = None) -> Any:
    """The weighted mean over axes; with `returned` also the sums of the weights."""
    inputs = (a,) if weights is None else (a, weights)
    if not returned:
        return F.call("_npi_average", *inputs, axis=axis, weighted=weights is not None, out=out)
    result, total = F.call("_npi_average", *inputs, axis=axis, returned=True, weighted=weights is not None)
    if out is not None:
        result.copyto(out)
        result = out
    return [result, total]


@function()
def cumsum(F: Any, a: Any, axis: Sizes | None = None, dtype: DTypeLike | None = None, out: Array | None = None) -> Array:
    """Cumulative sums along `axis`, or over the flattened array.

    Example
    -------
    >>> mx.np.cumsum(mx.np.array([[1, 2], [3, 4]]), axis=0)
    array([[1., 2.],
           [4., 6.]])
    """
    return F.call("_np_cumsum", a, axis=axis, dtype=dtype, out=out)


@function()
def cumprod(F: Any, a: Any, axis: Sizes | None = None, dtype: DTypeLike | None = None, out: Array | None = None) -> Array:
    """Cumulative products along `axis`, or over the flattened array."""
    return F.call("_npi_cumprod", a, axis=axis, dtype=dtype, out=out)


@function()
def median(F: Any, a: Any, axis: Sizes | None = None, out: Array | None = None, overwrite_input: Any = None, keepdims: bool = False) -> Array:
    """The middle of the sorted values over the axes: the mean of both middle ones where their number is even.

    Example
    -------
    >>> mx.np.median(mx.np.array([[1, 5, 2], [4, 0, 9]]), axis=1)
    array([2., 4.])
    """
    return percentile(F, a, 50, axis, out, overwrite_input, "midpoint", keepdims)


@function()
def percentile(F: Any, a: Any, q: Any, axis: Sizes | None = None, out: Array | None = None, overwrite_input: Any = None,
               interpolation: str = "linear", keepdims: bool = False) -> Array:
    """The values below which `q` percent of the elements over the axes lie.

    Raises
    ------
    NotImplementedError
        If `overwrite_input` is given.
    """
    if overwrite_input is not None:
        raise NotImplementedError(f"percentile: overwrite_input must be None, received {overwrite_input}")
    if isinstance(q, NUMBERS):
        return F.call("_npi_percentile", a, axis=axis, interpolation=interpolation, keepdims=keepdims, q_scalar=q, out=out)
    return F.call("_npi_percentile", a, q, axis=axis, interpolation=interpolation, keepdims=keepdims, out=out)


@function()
def quantile(F: Any, a: Any, q: Any, axis: Sizes | None = None, out: Array | None = None, overwrite_input: Any = None, interpolation: str = "linear",
             keepdims: bool = False) -> Array:
    """As `percentile`, with `q` from 0 to 1.

    Example
    -------
    >>> mx.np.quantile(mx.np.array([1, 2, 3, 4]), 0.5)
    array(2.5)
    """
    return percentile(F, a, q * 100, axis, out, overwrite_input, interpolation, keepdims)


@function()
def histogram(F: Any, a: Any, bins: Any = 10, range: Any = None, normed: Any = None, weights: Any = None, density: Any = None) -> list[Array]:
    """Count the values between neighbouring edges: (counts as int64, edges).

    Parameters
    ----------
    bins : int or array
        The number of equal bins, which needs a `range`, or their edges.

    Raises
    ------
    NotImplementedError
        If `normed`, `weights`, `density`, or a kind of `bins` that MXNet does not have is given.

    Example
    -------
    >>> counts, edges = mx.np.histogram(mx.np.array([1, 2, 2, 5]), bins=2, range=(1, 5))
    >>> counts, edges
    (array([3, 1], dtype=int64), array([1., 3., 5.]))
    """
    for name, value in (("normed", normed), ("weights", weights), ("density", density)):
        if value is not None and value is not False:
            raise NotImplementedError(f"{name} is not supported yet...")
    if isinstance(bins, NUMBERS):
        if range is None:
            raise NotImplementedError("histogram: range=(low, high) expected with a number of bins, received none")
        return F.call("_npi_histogram", a, bin_cnt=bins, range=range)
    if isinstance(bins, (list, tuple, str)):
        raise NotImplementedError(f"{'string' if isinstance(bins, str) else 'array_like'} bins is not supported yet...")
    return F.call("_npi_histogram", a, bins)


@function()
def bincount(F: Any, x: Any, weights: Any = None, minlength: int = 0) -> Array:
    """Count the occurrences of 0, 1, 2, ... in `x`, or sum the weights at each."""
    if minlength < 0:
        raise ValueError(f"bincount: minlength must be at least 0, received {minlength}")
    inputs = (x,) if weights is None else (x, weights)
    return F.call("_npi_bincount", *inputs, minlength=minlength, has_weights=weights is not None)
