"""``mx.nd.random``: random numbers.

Each function takes the parameters of its distribution either as numbers, which gives an array of `shape`, or as arrays of one
shape, which gives `shape` samples for each of their elements. Seed with `mx.random.seed`.
"""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..base import _Null, numeric_types
from ..context import current_context
from ..ops.dtypes import name_of
from ..ops.registry import get
from ..util import is_np_shape
from . import functions
from .dispatch import invoke, mode, wrap
from .ndarray import NDArray

if TYPE_CHECKING:
    from ..base import _NullType
    from ..context import Context
    from .ndarray import DType, Sizes

__all__ = ["uniform", "normal", "randn", "poisson", "exponential", "gamma", "multinomial", "negative_binomial", "generalized_negative_binomial",
           "shuffle", "randint"]

__getattr__, __dir__ = functions.namespace_lookup(__name__, "_random_", functions.operator_function)


def check_parameters(parameters: dict[str, Any], array_type: type) -> bool:
    """True if the parameters of a distribution are arrays, False if they are numbers.

    Raises
    ------
    ValueError
        If they are something else, or some are arrays and some are numbers.
    """
    first, *others = parameters.values()
    for kind in (array_type, numeric_types):
        if isinstance(first, kind):
            for other in others:
                if not isinstance(other, kind):
                    raise ValueError("the parameters of a distribution are either numbers or arrays, received "
                                     f"{type(first)} and {type(other)}")
            return kind is array_type
    raise ValueError(f"the parameters of a distribution are either {array_type.__name__}s or numbers, received {type(first)}")


def _draw(distribution: str, parameters: dict[str, Any], shape: Sizes | _NullType, dtype: DType | _NullType, ctx: Context | None, out: NDArray | None,
          kwargs: dict[str, Any]) -> NDArray:
    attrs = dict(kwargs)
    attrs.pop("name", None)
    if dtype is not _Null:
        attrs["dtype"] = dtype
    if check_parameters(parameters, NDArray):
        if shape is not _Null:
            attrs["shape"] = shape
        return invoke(get("_sample_" + distribution), tuple(parameters.values()), attrs, out)
    operator = get("_random_" + distribution)
    if dtype is _Null and isinstance(out, NDArray) and name_of(out._data.dtype) in operator.attributes["dtype"].choices:  # type: ignore[operator]  # types are choices
        attrs["dtype"] = name_of(out._data.dtype)
    if shape is not _Null:
        attrs["shape"] = shape
    else:
        attrs["shape"] = 1 if out is None else out.shape
    attrs.update(parameters)
    attrs["ctx"] = ctx if ctx is not None else current_context() if out is None else out._ctx
    drawn = invoke(operator, (), attrs, out)
    if shape == () and out is None and is_np_shape() and mode.tracing is None:  # a scalar; without NumPy's shapes, an unknown shape
        return wrap(NDArray, drawn._data.reshape(()), drawn._ctx)
    return drawn


def uniform(low: float | NDArray = 0, high: float | NDArray = 1, shape: Sizes | _NullType = _Null, dtype: DType | _NullType = _Null,
            ctx: Context | None = None, out: NDArray | None = None, **kwargs: Any) -> NDArray:
    """Uniformly distributed samples between `low` and `high`.

    Parameters
    ----------
    low, high : float or NDArray
        The bounds; `low` itself may be drawn, `high` may not.
    shape : int or tuple of int, optional
        The shape of the samples: that of the result, or the axes after the shape of `low`.
    dtype : str or type, optional
        float16, float32 (the default) or float64.
    ctx : Context, optional
        Where to make the result; that of `low` if it is an array.
    out : NDArray, optional
        Receives the result.

    Returns
    -------
    NDArray

    Example
    -------
    >>> import mxnet as mx
    >>> mx.nd.random.uniform(0, 1, shape=(2, 3)).shape
    (2, 3)
    >>> mx.nd.random.uniform(mx.nd.array([0, 10]), mx.nd.array([1, 20]), shape=5).shape
    (2, 5)
    """
    return _draw("uniform", {"low": low, "high": high}, shape, dtype, ctx, out, kwargs)


def normal(loc: float | NDArray = 0, scale: float | NDArray = 1, shape: Sizes | _NullType = _Null, dtype: DType | _NullType = _Null,
           ctx: Context | None = None, out: NDArray | None = None, **kwargs: Any) -> NDArray:
    """Samples of the normal distribution with mean `loc` and standard deviation `scale`; see `uniform` for the rest.

    Example
    -------
    >>> mx.random.seed(7)
    >>> x = mx.nd.random.normal(loc=5, scale=2, shape=10000)
    >>> round(x.mean().asscalar())
    5
    >>> mx.nd.random.normal(mx.nd.array([0, 100]), mx.nd.array([1, 1]), shape=3).shape
    (2, 3)
    """
    return _draw("normal", {"loc": loc, "scale": scale}, shape, dtype, ctx, out, kwargs)


def randn(*shape: int, **kwargs: Any) -> NDArray:
    """Samples of the normal distribution, with the shape as arguments.

    Parameters
    ----------
    *shape : int
    loc, scale : float or NDArray
        Mean and standard deviation, by name; 0 and 1 by default.
    dtype, ctx, out
        As in `uniform`.

    Example
    -------
    >>> import mxnet as mx
    >>> mx.nd.random.randn(2, 3).shape
    (2, 3)
    """
    parameters = {"loc": kwargs.pop("loc", 0), "scale": kwargs.pop("scale", 1)}
    dtype, ctx, out = kwargs.pop("dtype", _Null), kwargs.pop("ctx", None), kwargs.pop("out", None)
    return _draw("normal", parameters, shape, dtype, ctx, out, kwargs)


def poisson(lam: float | NDArray = 1, shape: Sizes | _NullType = _Null, dtype: DType | _NullType = _Null, ctx: Context | None = None,
            out: NDArray | None = None, **kwargs: Any) -> NDArray:
    """Samples of the Poisson distribution with mean `lam`, as floats; see `uniform` for the rest.

    Example
    -------
    >>> mx.random.seed(7)
    >>> x = mx.nd.random.poisson(lam=4, shape=10000)
    >>> round(x.mean().asscalar())
    4
    """
    return _draw("poisson", {"lam": lam}, shape, dtype, ctx, out, kwargs)


def exponential(scale: float | NDArray = 1, shape: Sizes | _NullType = _Null, dtype: DType | _NullType = _Null, ctx: Context | None = None,
                out: NDArray | None = None, **kwargs: Any) -> NDArray:
    """Samples of the exponential distribution with mean `scale`; see `uniform` for the rest.

    Example
    -------
    >>> x = mx.nd.random.exponential(scale=2, shape=(2, 3))
    >>> x.shape, bool((x >= 0).min().asscalar())
    ((2, 3), True)
    """
    return _draw("exponential", {"lam": 1.0 / scale}, shape, dtype, ctx, out, kwargs)


def gamma(alpha: float | NDArray = 1, beta: float | NDArray = 1, shape: Sizes | _NullType = _Null, dtype: DType | _NullType = _Null,
          ctx: Context | None = None, out: NDArray | None = None, **kwargs: Any) -> NDArray:
    """Samples of the gamma distribution with shape `alpha` and scale `beta` (mean ``alpha * beta``); see `uniform` for the rest.

    Example
    -------
    >>> x = mx.nd.random.gamma(alpha=2, beta=1, shape=(2, 3))
    >>> x.shape, bool((x >= 0).min().asscalar())
    ((2, 3), True)
    """
    return _draw("gamma", {"alpha": alpha, "beta": beta}, shape, dtype, ctx, out, kwargs)


def negative_binomial(k: float | NDArray = 1, p: float | NDArray = 1, shape: Sizes | _NullType = _Null, dtype: DType | _NullType = _Null,
                      ctx: Context | None = None, out: NDArray | None = None, **kwargs: Any) -> NDArray:
    """Samples of the number of failures before the `k`-th success of trials with success probability `p`; see `uniform` for the rest.

    Example
    -------
    >>> mx.nd.random.negative_binomial(k=3, p=0.5, shape=(2, 3)).shape
    (2, 3)
    """
    return _draw("negative_binomial", {"k": k, "p": p}, shape, dtype, ctx, out, kwargs)


def generalized_negative_binomial(mu: float | NDArray = 1, alpha: float | NDArray = 1, shape: Sizes | _NullType = _Null,
                                  dtype: DType | _NullType = _Null, ctx: Context | None = None, out: NDArray | None = None, **kwargs: Any) -> NDArray:
    """Samples of the negative binomial distribution with mean `mu` and variance ``mu + alpha * mu**2``; see `uniform` for the rest.

    Example
    -------
    >>> mx.nd.random.generalized_negative_binomial(mu=2, alpha=0.3, shape=(2, 3)).shape
    (2, 3)
    """
    return _draw("generalized_negative_binomial", {"mu": mu, "alpha": alpha}, shape, dtype, ctx, out, kwargs)


def randint(low: float | NDArray, high: float | NDArray, shape: Sizes | _NullType = _Null, dtype: DType | _NullType = _Null,
            ctx: Context | None = None, out: NDArray | None = None, **kwargs: Any) -> NDArray:
    """Uniformly distributed integers from `low` up to, not including, `high`.

    Parameters
    ----------
    low, high : int
    shape, ctx, out
        As in `uniform`.
    dtype : str or type, optional
        int32 (the default) or int64.

    Example
    -------
    >>> x = mx.nd.random.randint(0, 5, shape=(2, 3))
    >>> x.dtype, bool((x < 5).min().asscalar())
    (<class 'numpy.int32'>, True)
    """
    if check_parameters({"low": low, "high": high}, NDArray):
        raise ValueError("randint: `low` and `high` must be numbers, received arrays")
    return _draw("randint", {"low": low, "high": high}, shape, dtype, ctx, out, kwargs)


def multinomial(data: NDArray, shape: Sizes | _NullType = _Null, get_prob: bool = False, out: Any = None, dtype: DType = "int32",
                **kwargs: Any) -> Any:
    """Numbers of classes, drawn with the probabilities that the last axis of `data` holds.

    Parameters
    ----------
    data : NDArray
        One distribution, or several along the other axes; each must sum to 1.
    shape : int or tuple of int, optional
        The number of draws from each distribution; one, without an axis of its own, by default.
    get_prob : bool
        Return ``[samples, log_likelihood]``, whose second array can be differentiated, as policy gradients need it.
    out : NDArray or list of NDArray, optional
        Receives the result.
    dtype : str or type
        The type of the samples.

    Example
    -------
    >>> import mxnet as mx
    >>> mx.nd.random.multinomial(mx.nd.array([[0, 1, 0], [1, 0, 0]]))
    <BLANKLINE>
    [1 0]
    <NDArray 2 @cpu(0)>
    """
    kwargs.pop("name", None)
    attrs = {"get_prob": get_prob, "dtype": dtype, **kwargs}
    if shape is not _Null:
        attrs["shape"] = shape
    return invoke(get("_sample_multinomial"), (data,), attrs, out)


def shuffle(data: NDArray, **kwargs: Any) -> NDArray:
    """Return a copy of `data` whose entries along the first axis are in random order.

    Parameters
    ----------
    data : NDArray
    out : NDArray, optional
        Receives the result.

    Example
    -------
    >>> x = mx.nd.random.shuffle(mx.nd.array([[1, 2], [3, 4], [5, 6]]))
    >>> sorted(x.asnumpy().tolist())
    [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]
    """
    kwargs.pop("name", None)
    out = kwargs.pop("out", None)
    return invoke(get("_shuffle"), (data,), kwargs, out)
