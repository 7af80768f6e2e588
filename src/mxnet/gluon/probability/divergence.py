"""The Kullback-Leibler divergence between distributions."""
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ... import numpy as np
from ... import numpy_extension as npx
from .continuous import Beta, Cauchy, Exponential, Gamma, Gumbel, HalfNormal, Laplace, Normal, Uniform
from .discrete import Bernoulli, Binomial, Categorical, Geometric, OneHotCategorical, Poisson
from .distribution import EULER, HALF_LOG_TWO_PI, Distribution, in_double, log, log_beta, sum_right, times, where_in
from .heavy_tails import Pareto
from .multivariate import Dirichlet, Independent, MultivariateNormal

__all__ = ["register_kl", "kl_divergence", "empirical_kl"]

_known: dict[tuple[type, type], Callable[[Any, Any], Any]] = {}


def register_kl(typeP: type, typeQ: type) -> Callable[[Callable[[Any, Any], Any]], Callable[[Any, Any], Any]]:
    """A decorator: the function ``(p, q)`` gives the divergence between distributions of these classes, and of classes derived from them."""
    def decorator(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
        _known[typeP, typeQ] = function
        return function

    return decorator


def kl_divergence(p: Distribution, q: Distribution) -> Any:
    """Return the divergence of `q` from `p`, the mean of ``p.log_prob(x) - q.log_prob(x)`` over `p`.

    Raises
    ------
    NotImplementedError
        If no formula is registered for them; `empirical_kl` draws samples.

    Example
    -------
    >>> from mxnet.gluon import probability as mgp
    >>> mgp.kl_divergence(mgp.Normal([0.], 1), mgp.Normal(1, 1))
    array([0.5])
    """
    for first in type(p).__mro__:
        for second in type(q).__mro__:
            if (first, second) in _known:
                return _known[first, second](p, q)
    raise NotImplementedError(f"no divergence is known between {type(p).__name__} and {type(q).__name__}: register_kl adds a formula, and "
                              "empirical_kl draws samples")


def empirical_kl(p: Distribution, q: Distribution, n_samples: int = 1) -> Any:
    """Return the divergence by the mean over samples of `p`."""
    x = p.sample_n(n_samples)
    return (p.log_prob(x) - q.log_prob(x)).mean(axis=0)


@register_kl(Normal, Normal)
def _(p, q):
    ratio = (p.scale / q.scale) ** 2
    return 0.5 * (ratio + ((p.loc - q.loc) / q.scale) ** 2 - 1 - np.log(ratio))


@register_kl(HalfNormal, HalfNormal)
def _(p, q):
    ratio = (p.scale / q.scale) ** 2
    return 0.5 * (ratio - 1 - np.log(ratio))


@register_kl(Laplace, Laplace)
def _(p, q):
    distance = np.abs(p.loc - q.loc)
    return np.log(q.scale / p.scale) + (p.scale * np.exp(-distance / p.scale) + distance) / q.scale - 1


@register_kl(Cauchy, Cauchy)
def _(p, q):
    return np.log(((p.scale + q.scale) ** 2 + (p.loc - q.loc) ** 2) / (4 * p.scale * q.scale))


@register_kl(Gumbel, Gumbel)
def _(p, q):
    ratio, distance = p.scale / q.scale, (p.loc - q.loc) / q.scale
    return -np.log(ratio) + EULER * (ratio - 1) + distance + np.exp(-distance + npx.gammaln(1 + ratio)) - 1


@register_kl(Uniform, Uniform)
def _(p, q):
    inside = (q.low <= p.low) * (q.high >= p.high)
    return where_in(inside, np.log((q.high - q.low) / (p.high - p.low)), math.inf)


@register_kl(Uniform, Normal)
def _(p, q):
    middle, width = (p.low + p.high) / 2, p.high - p.low
    return np.log(q.scale / width) + HALF_LOG_TWO_PI + (width ** 2 / 12 + (middle - q.loc) ** 2) / (2 * q.scale ** 2)


@register_kl(Uniform, Gumbel)
def _(p, q):
    low, high, width = (p.low - q.loc) / q.scale, (p.high - q.loc) / q.scale, (p.high - p.low) / q.scale
    return -np.log(width) + (low + high) / 2 + (np.exp(-low) - np.exp(-high)) / width


@register_kl(Exponential, Exponential)
def _(p, q):
    ratio = p.scale / q.scale
    return ratio - 1 - np.log(ratio)


@register_kl(Exponential, Normal)
def _(p, q):
    return np.log(q.scale / p.scale) + HALF_LOG_TWO_PI - 1 + (p.scale ** 2 + (p.scale - q.loc) ** 2) / (2 * q.scale ** 2)


@register_kl(Exponential, Gumbel)
def _(p, q):
    ratio = p.scale / q.scale
    return ratio - q.loc / q.scale - np.log(ratio) - 1 + np.exp(q.loc / q.scale) / (1 + ratio)


@register_kl(Gamma, Gamma)
def _(p, q):
    return in_double(lambda a, b, c, d: c * np.log(d / b) + npx.gammaln(c) - npx.gammaln(a) + (a - c) * npx.digamma(a) + a * (b / d - 1),
                     p.shape, p.scale, q.shape, q.scale)


@register_kl(Beta, Beta)
def _(p, q):
    def compute(a, b, c, d):
        return (log_beta(c, d) - log_beta(a, b) + (a - c) * npx.digamma(a) + (b - d) * npx.digamma(b)
                - (a - c + b - d) * npx.digamma(a + b))

    return in_double(compute, p.alpha, p.beta, q.alpha, q.beta)


@register_kl(Pareto, Pareto)
def _(p, q):
    ratio = q.alpha / p.alpha
    return where_in(p.scale >= q.scale, q.alpha * np.log(p.scale / q.scale) - np.log(ratio) + ratio - 1, math.inf)


@register_kl(Bernoulli, Bernoulli)
def _(p, q):
    return _kl_of_trials(p, q)


def _kl_of_trials(p, q):
    """Return the divergence of one trial."""
    rest = 1 - p.prob
    return p._log_likelihood(p.prob, rest) - q._log_likelihood(p.prob, rest)


@register_kl(Binomial, Binomial)
def _(p, q):
    if p.n > q.n:
        return np.full_like(p.prob * q.prob, math.inf)
    if p.n < q.n:
        raise NotImplementedError(f"the divergence between Binomials of one number of trials is known, received {p.n} and {q.n}")
    return p.n * _kl_of_trials(p, q)


@register_kl(Geometric, Geometric)
def _(p, q):
    return -p.entropy() - q._log_likelihood(np.ones_like(p.mean), p.mean)


@register_kl(Poisson, Poisson)
def _(p, q):
    return in_double(lambda a, b: times(a, log(a / b)) - a + b, p.rate, q.rate)


@register_kl(Categorical, Categorical)
@register_kl(OneHotCategorical, OneHotCategorical)
def _(p, q):
    return times(p.prob, p._log_classes() - q._log_classes()).sum(axis=-1)


@register_kl(Dirichlet, Dirichlet)
def _(p, q):
    def compute(a, b):
        total = a.sum(axis=-1)
        each = npx.gammaln(b) - npx.gammaln(a) + (a - b) * (npx.digamma(a) - np.expand_dims(npx.digamma(total), -1))
        return npx.gammaln(total) - npx.gammaln(b.sum(axis=-1)) + each.sum(axis=-1)

    return in_double(compute, p.alpha, q.alpha)


@register_kl(MultivariateNormal, MultivariateNormal)
def _(p, q):
    spread = np.einsum("...ij,...jk->...ik", np.linalg.inv(q.scale_tril), p.scale_tril)
    trace = (spread ** 2).sum(axis=(-2, -1))
    return q._half_log_det() - p._half_log_det() + 0.5 * (trace + q._whitened(p.loc - q.loc) - p.loc.shape[-1])


@register_kl(Independent, Independent)
def _(p, q):
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise NotImplementedError(f"the divergence between Independents of one number of axes is known, received {p.reinterpreted_batch_ndims} and "
                                  f"{q.reinterpreted_batch_ndims}")
    return sum_right(kl_divergence(p.base_dist, q.base_dist), p.reinterpreted_batch_ndims)
