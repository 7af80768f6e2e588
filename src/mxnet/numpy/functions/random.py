"""``mx.np.random`` and ``mx.npx.random``."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..frontend import function

if TYPE_CHECKING:
    from ..argument_types import ContextLike, DTypeLike, Sizes
    from ..frontend import Array


def _size(size):
    return None if size is None or size == () else (size,) if isinstance(size, int) else tuple(size)


def _draw(F, operator, parameters, size, ctx, out, **attrs):
    """Call an operator whose parameters are numbers (attributes) or arrays (inputs, in order; their attributes are None)."""
    inputs = [v for v in parameters.values() if F.is_array(v)]
    numbers = {k: "None" if F.is_array(v) else v for k, v in parameters.items()}
    return F.call(operator, *inputs, size=_size(size), ctx=F.context(ctx), out=out, **numbers, **attrs)


@function("random")
def uniform(F: Any, low: Any = 0.0, high: Any = 1.0, size: Sizes | None = None, dtype: DTypeLike | None = None, ctx: ContextLike | None = None,
            out: Array | None = None) -> Array:
    """Uniformly distributed numbers from `low` to `high`, float32 by default."""
    return _draw(F, "_npi_uniform", {"low": low, "high": high}, size, ctx, out, dtype="float32" if dtype is None else dtype)


@function("random")
def normal(F: Any, loc: Any = 0.0, scale: Any = 1.0, size: Sizes | None = None, dtype: DTypeLike | None = None, ctx: ContextLike | None = None,
           out: Array | None = None) -> Array:
    """Normally distributed numbers with the mean `loc` and the standard deviation `scale`, float32 by default."""
    return _draw(F, "_npi_normal", {"loc": loc, "scale": scale}, size, ctx, out, dtype="float32" if dtype is None else dtype)


@function("random")
def laplace(F: Any, loc: Any = 0.0, scale: Any = 1.0, size: Sizes | None = None, dtype: DTypeLike | None = None, ctx: ContextLike | None = None,
            out: Array | None = None) -> Array:
    """Numbers of the Laplace distribution with the mean `loc` and the decay `scale`, float32 by default."""
    return _draw(F, "_npi_laplace", {"loc": loc, "scale": scale}, size, ctx, out, dtype="float32" if dtype is None else dtype)


@function("random")
def lognormal(F: Any, mean: Any = 0.0, sigma: Any = 1.0, size: Sizes | None = None, dtype: DTypeLike | None = None, ctx: ContextLike | None = None,
              out: Array | None = None) -> Array:
    """Log-normally distributed numbers.

    Example
    -------
    >>> round(float(mx.np.log(mx.np.random.lognormal(5, 2, size=10000)).mean()))
    5
    """
    return F.call("_npi_exp", normal(F, mean, sigma, size, dtype, ctx, out), out=out)


@function("random")
def logistic(F: Any, loc: Any = 0.0, scale: Any = 1.0, size: Sizes | None = None, ctx: ContextLike | None = None, out: Array | None = None) -> Array:
    """Numbers of the logistic distribution."""
    return _draw(F, "_npi_logistic", {"loc": loc, "scale": scale}, size, ctx, out)


@function("random")
def gumbel(F: Any, loc: Any = 0.0, scale: Any = 1.0, size: Sizes | None = None, ctx: ContextLike | None = None, out: Array | None = None) -> Array:
    """Numbers of the Gumbel distribution."""
    return _draw(F, "_npi_gumbel", {"loc": loc, "scale": scale}, size, ctx, out)


@function("random")
def exponential(F: Any, scale: Any = 1.0, size: Sizes | None = None, ctx: ContextLike | None = None, out: Array | None = None) -> Array:
    """Exponentially distributed numbers with the mean `scale`."""
    return _draw(F, "_npi_exponential", {"scale": scale}, size, ctx, out)


@function("random")
def rayleigh(F: Any, scale: Any = 1.0, size: Sizes | None = None, ctx: ContextLike | None = None, out: Array | None = None) -> Array:
    """Numbers of the Rayleigh distribution."""
    return _draw(F, "_npi_rayleigh", {"scale": scale}, size, ctx, out)


@function("random")
def weibull(F: Any, a: Any, size: Sizes | None = None, ctx: ContextLike | None = None, out: Array | None = None) -> Array:
    """Numbers of the Weibull distribution with the shape `a`."""
    return _draw(F, "_npi_weibull", {"a": a}, size, ctx, out)


@function("random")
def pareto(F: Any, a: Any, size: Sizes | None = None, ctx: ContextLike | None = None, out: Array | None = None) -> Array:
    """Numbers of the Pareto II (Lomax) distribution with the shape `a`."""
    return _draw(F, "_npi_pareto", {"a": a}, size, ctx, out)


@function("random")
def power(F: Any, a: Any, size: Sizes | None = None, ctx: ContextLike | None = None, out: Array | None = None) -> Array:
    """Numbers in [0, 1] with the density ``a * x**(a - 1)``.

    Example
    -------
    >>> round(float(mx.np.random.power(4, size=10000).mean()), 1)
    0.8
    """
    return _draw(F, "_npi_powerd", {"a": a}, size, ctx, out)


@function("random")
def gamma(F: Any, shape: Any, scale: Any = 1.0, size: Sizes | None = None, dtype: DTypeLike | None = None, ctx: ContextLike | None = None,
          out: Array | None = None) -> Array:
    """Numbers of the gamma distribution; its mean is ``shape * scale``."""
    if out is not None:
        size = out.shape
    return _draw(F, "_npi_gamma", {"shape": shape, "scale": scale}, size, ctx, out, dtype="float32" if dtype is None else dtype)


@function("random")
def beta(F: Any, a: Any, b: Any, size: Sizes | None = None, dtype: DTypeLike | None = None, ctx: ContextLike | None = None) -> Array:
    """Numbers of the beta distribution.

    Example
    -------
    >>> round(float(mx.np.random.beta(8, 2, size=10000).mean()), 1)
    0.8
    """
    x = gamma(F, a, 1, size, "float64", ctx)  # in float64, or small numbers lose their quotient
    y = gamma(F, b, 1, size, "float64", ctx)
    return (x / (x + y)).astype("float32" if dtype is None else dtype)


@function("random")
def chisquare(F: Any, df: Any, size: Sizes | None = None, dtype: DTypeLike | None = None, ctx: ContextLike | None = None) -> Array:
    """Numbers of the chi-square distribution with `df` degrees of freedom.

    Example
    -------
    >>> round(float(mx.np.random.chisquare(3, size=10000).mean()))
    3
    """
    return gamma(F, df / 2, 2, size, dtype, ctx)


@function("random")
def f(F: Any, dfnum: Any, dfden: Any, size: Sizes | None = None, ctx: ContextLike | None = None) -> Array:
    """Numbers of the F distribution with `dfnum` and `dfden` degrees of freedom; its mean is ``dfden / (dfden - 2)``.

    Example
    -------
    >>> round(float(mx.np.random.f(4, 40, size=10000).mean()))
    1
    """
    return (chisquare(F, dfnum, size, None, ctx) * dfden) / (chisquare(F, dfden, size, None, ctx) * dfnum)


@function("random")
def randint(F: Any, low: Any, high: Any = None, size: Sizes | None = None, dtype: DTypeLike | None = None, ctx: ContextLike | None = None,
            out: Array | None = None) -> Array:
    """Integers from `low` up to, not including, `high`; from 0 to `low` if that is the only limit. int64 by default.

    Example
    -------
    >>> sorted(set(mx.np.random.randint(5, 8, size=1000).tolist()))
    [5, 6, 7]
    """
    if high is None:
        low, high = 0, low
    size = () if size is None else (size,) if isinstance(size, int) else tuple(size)
    if dtype is None or dtype is int or isinstance(dtype, str) and dtype == "int":
        dtype = "int64"
    return F.call("_npi_random_randint", low=low, high=high, shape=size, dtype=dtype, ctx=F.context(ctx), out=out)


@function("random")
def choice(F: Any, a: Any, size: Sizes | None = None, replace: bool = True, p: Any = None, ctx: ContextLike | None = None,
           out: Array | None = None) -> Array:
    """Random elements of an array, or integers below `a`; with the probabilities `p`, if given."""
    weights = [] if p is None else [p]
    if not F.is_array(a):
        return F.call("_npi_choice", *weights, a=a, size=_size(size), replace=replace, weighted=p is not None, ctx=F.context(ctx), out=out)
    indices = F.call("_npi_choice", a, *weights, size=_size(size), replace=replace, weighted=p is not None)
    return F.call("_npi_take", a, indices, out=out)


@function("random")
def multinomial(F: Any, n: int, pvals: Any, size: Sizes | None = None, **kwargs: Any) -> Array:
    """Draw the counts of outcomes in `n` experiments, as int64."""
    import numpy as onp
    if kwargs:
        raise TypeError(f"multinomial got unexpected arguments {sorted(kwargs)}")
    if F.is_array(pvals):
        return F.call("_npi_multinomial", pvals, n=n, size=_size(size))
    if isinstance(pvals, onp.ndarray):
        raise ValueError(f"multinomial: a list or an array of mx.np expected as pvals, received a numpy.ndarray of shape {pvals.shape}; call "
                         "mx.np.array on it")
    if any(isinstance(p, (list, tuple)) for p in pvals):
        raise ValueError("multinomial: pvals must be a vector, received nested lists")
    return F.call("_npi_multinomial", n=n, pvals=tuple(pvals), size=_size(size))


@function("random")
def rand(F: Any, *size: int, **kwargs: Any) -> Array:
    """Uniform numbers in [0, 1) of the given shape.

    Example
    -------
    >>> mx.np.random.rand(2, 3).shape
    (2, 3)
    """
    return uniform(F, 0.0, 1.0, size=tuple(size), **_placed(kwargs))


@function("random")
def randn(F: Any, *size: int, **kwargs: Any) -> Array:
    """Standard normal numbers of the given shape.

    Example
    -------
    >>> mx.np.random.randn(2, 3).shape
    (2, 3)
    """
    return normal(F, 0.0, 1.0, size=tuple(size), **_placed(kwargs))


def _placed(options):
    """Return the options with `ctx` for `device`, the name that MXNet 2 has for it."""
    return {"ctx" if name == "device" else name: value for name, value in options.items()}


@function("random")
def multivariate_normal(F: Any, mean: Any, cov: Any, size: Sizes | None = None, check_valid: Any = None, tol: Any = None) -> Array:
    """Normally distributed vectors.

    Parameters
    ----------
    mean : ndarray
        (..., N)
    cov : ndarray
        (..., N, N), symmetric and positive definite.
    size : int or tuple of int, optional
        The axes before those that `mean` and `cov` broadcast to.

    Raises
    ------
    NotImplementedError
        If `check_valid` or `tol` is given.

    Example
    -------
    >>> mx.np.random.multivariate_normal(mx.np.zeros(2), mx.np.eye(2), size=3).shape
    (3, 2)
    """
    for name, value in (("check_valid", check_valid), ("tol", tol)):
        if value is not None:
            raise NotImplementedError(f"Parameter `{name}` is not supported")
    return F.call("_npi_mvn_fallback", mean, cov, size=_size(size))


@function("npx.random")
def uniform_n(F: Any, low: Any = 0.0, high: Any = 1.0, batch_shape: Any = None, dtype: DTypeLike | None = None,
              ctx: ContextLike | None = None) -> Array:
    """As ``np.random.uniform``, with `batch_shape` before the shape of the parameters."""
    return _draw(F, "_npi_uniform_n", {"low": low, "high": high}, batch_shape, ctx, None, dtype="float32" if dtype is None else dtype)


@function("npx.random")
def normal_n(F: Any, loc: Any = 0.0, scale: Any = 1.0, batch_shape: Any = None, dtype: DTypeLike | None = None,
             ctx: ContextLike | None = None) -> Array:
    """As ``np.random.normal``, with `batch_shape` before the shape of the parameters."""
    return _draw(F, "_npi_normal_n", {"loc": loc, "scale": scale}, batch_shape, ctx, None, dtype="float32" if dtype is None else dtype)


@function("npx.random")
def bernoulli(F: Any, prob: Any = None, logit: Any = None, size: Sizes | None = None, dtype: DTypeLike | None = None, ctx: ContextLike | None = None,
              out: Array | None = None) -> Array:
    """1 with the probability `prob`, or the one of which `logit` is the logarithm of the odds; 0 otherwise.

    Raises
    ------
    ValueError
        If both or neither are given.
    """
    if (prob is None) == (logit is None):
        raise ValueError(f"exactly one of prob and logit expected, received prob={prob}, logit={logit}")
    name, value = ("prob", prob) if logit is None else ("logit", logit)
    return _draw(F, "_npi_bernoulli", {name: value}, size, ctx, out, is_logit=prob is None, dtype="float32" if dtype is None else dtype)
