"""Distributions over the real numbers, or a part of them."""
from __future__ import annotations

import math
from typing import Any

from ... import numpy as np
from ... import numpy_extension as npx
from . import constraint
from .distribution import (
    EULER,
    HALF_LOG_TWO_PI,
    Distribution,
    ExponentialFamily,
    in_double,
    log,
    log_beta,
    log_rest,
    normal,
    open_uniform,
    parameter,
    parameters,
    times,
    uniform,
    where_in,
)

__all__ = ["Normal", "Laplace", "Cauchy", "HalfNormal", "HalfCauchy", "Uniform", "Exponential", "Gamma", "Chi2", "Beta",
           "Gumbel"]


class _LocScale(Distribution):
    """The base of location-scale families: its density, cdf, ... at 0 and 1, of ``z = (value - loc) / scale``.

    Parameters
    ----------
    loc, scale : array or number
    validate_args : bool, optional
    """

    has_grad = True
    arg_constraints = {"loc": constraint.real, "scale": constraint.positive}
    _parameters = ("loc", "scale")

    def __init__(self, loc: Any = 0.0, scale: Any = 1.0, validate_args: bool | None = None) -> None:
        self.loc, self.scale = parameters(loc, scale)
        super().__init__(validate_args=validate_args)

    def _log_prob(self, z: Any) -> Any:
        raise NotImplementedError

    def _cdf(self, z: Any) -> Any:
        raise NotImplementedError

    def _icdf(self, p: Any) -> Any:
        raise NotImplementedError

    def _standard(self, shape: tuple[int, ...]) -> Any:
        return self._icdf(open_uniform(shape, self._dtype))

    def _draw(self, shape: tuple[int, ...]) -> Any:
        return self.loc + self.scale * self._standard(shape)

    def log_prob(self, value: Any) -> Any:
        """Return the logarithm of the density at `value`."""
        return self._log_prob((self._checked(value) - self.loc) / self.scale) - np.log(self.scale)

    def cdf(self, value: Any) -> Any:
        """Return the probability of at most `value`."""
        return self._cdf((self._checked(value) - self.loc) / self.scale)

    def icdf(self, value: Any) -> Any:
        """Where `cdf` is `value`."""
        return self.loc + self.scale * self._icdf(parameter(value, self._dtype))

    @property
    def mean(self) -> Any:
        """The mean."""
        return np.broadcast_to(self.loc, self.batch_shape)


class Normal(_LocScale, ExponentialFamily):
    """The normal distribution.

    Parameters
    ----------
    loc, scale : array or number
        Mean and standard deviation.
    validate_args : bool, optional

    Example
    -------
    >>> import mxnet as mx
    >>> mx.gluon.probability.Normal(0, 1).log_prob(mx.np.zeros(1))
    array([-0.9189385])
    """

    def _log_prob(self, z):
        return -0.5 * z ** 2 - HALF_LOG_TWO_PI

    def _cdf(self, z):
        return 0.5 * (1 + npx.erf(z / math.sqrt(2)))

    def _icdf(self, p):
        return math.sqrt(2) * in_double(lambda p: npx.erfinv(2 * p - 1), p)

    def _standard(self, shape):
        return normal(shape, self._dtype)

    @property
    def variance(self) -> Any:
        """The variance."""
        return np.broadcast_to(self.scale ** 2, self.batch_shape)

    def entropy(self) -> Any:
        """Return the entropy, in nats."""
        return np.broadcast_to(0.5 + HALF_LOG_TWO_PI + np.log(self.scale), self.batch_shape)


class Laplace(_LocScale):
    """The Laplace distribution, exp(-abs(x - loc) / scale) / (2 * scale).

    Parameters
    ----------
    loc, scale : array or number
    validate_args : bool, optional
    """

    def _log_prob(self, z):
        return -np.abs(z) - math.log(2)

    def _cdf(self, z):
        return 0.5 - 0.5 * np.sign(z) * np.expm1(-np.abs(z))

    def _icdf(self, p):
        return np.sign(0.5 - p) * np.log(2 * np.minimum(p, 1 - p))

    @property
    def variance(self) -> Any:
        """The variance."""
        return np.broadcast_to(2 * self.scale ** 2, self.batch_shape)

    def entropy(self) -> Any:
        """Return the entropy, in nats."""
        return np.broadcast_to(1 + np.log(2 * self.scale), self.batch_shape)


class Cauchy(_LocScale):
    """The Cauchy distribution; its mean and variance are NaN.

    Parameters
    ----------
    loc, scale : array or number
    validate_args : bool, optional
    """

    def _log_prob(self, z):
        return -math.log(math.pi) - np.log1p(z ** 2)

    def _cdf(self, z):
        return np.arctan(z) / math.pi + 0.5

    def _icdf(self, p):
        return np.sign(p - 0.5) / np.tan(math.pi * np.minimum(p, 1 - p))

    @property
    def mean(self) -> Any:
        """NaN"""
        return np.full(self.batch_shape, math.nan, dtype=self._dtype)

    variance = mean

    def entropy(self) -> Any:
        """Return the entropy, in nats."""
        return np.broadcast_to(np.log(4 * math.pi * self.scale), self.batch_shape)


class Gumbel(_LocScale):
    """The Gumbel distribution: of the largest of many numbers.

    Parameters
    ----------
    loc, scale : array or number
    validate_args : bool, optional
    """

    def _log_prob(self, z):
        return -z - np.exp(-z)

    def _cdf(self, z):
        return np.exp(-np.exp(-z))

    def _icdf(self, p):
        return -np.log(-np.log(p))

    @property
    def mean(self) -> Any:
        """The mean."""
        return self.loc + EULER * self.scale

    @property
    def variance(self) -> Any:
        """The variance."""
        return np.broadcast_to(math.pi ** 2 / 6 * self.scale ** 2, self.batch_shape)

    def entropy(self) -> Any:
        """Return the entropy, in nats."""
        return np.broadcast_to(1 + EULER + np.log(self.scale), self.batch_shape)


class _Half(Distribution):
    """The base of folded distributions: the absolute values of a distribution around 0."""

    has_grad = True
    arg_constraints = {"scale": constraint.positive}
    support = constraint.nonnegative
    _parameters = ("scale",)
    _whole: type[_LocScale]

    def __init__(self, scale: Any = 1.0, validate_args: bool | None = None) -> None:
        self.scale = parameter(scale)
        super().__init__(validate_args=validate_args)

    @property
    def _both(self) -> _LocScale:
        return self._whole(0.0, self.scale)

    def _draw(self, shape: tuple[int, ...]) -> Any:
        return np.abs(self._both._draw(shape))

    def log_prob(self, value: Any) -> Any:
        """Return the logarithm of the density at `value`."""
        value = self._checked(value)
        return where_in(value >= 0, self._both.log_prob(value) + math.log(2), -math.inf)

    def cdf(self, value: Any) -> Any:
        """Return the probability of at most `value`."""
        return self._cdf(np.maximum(self._checked(value), 0) / self.scale)

    def icdf(self, value: Any) -> Any:
        """Where `cdf` is `value`."""
        return self.scale * self._icdf(parameter(value, self._dtype))

    def _cdf(self, z: Any) -> Any:
        raise NotImplementedError

    def _icdf(self, p: Any) -> Any:
        raise NotImplementedError

    def entropy(self) -> Any:
        """Return the entropy, in nats."""
        return self._both.entropy() - math.log(2)


class HalfNormal(_Half):
    """The distribution of the absolute value of a normal variable of mean 0.

    Parameters
    ----------
    scale : array or number
    validate_args : bool, optional
    """

    _whole = Normal

    def _cdf(self, z):
        return npx.erf(z / math.sqrt(2))

    def _icdf(self, p):
        return math.sqrt(2) * npx.erfinv(p)

    @property
    def mean(self) -> Any:
        """The mean."""
        return self.scale * math.sqrt(2 / math.pi)

    @property
    def variance(self) -> Any:
        """The variance."""
        return self.scale ** 2 * (1 - 2 / math.pi)


class HalfCauchy(_Half):
    """The distribution of the absolute value of a Cauchy variable around 0; its mean and variance are infinite.

    Parameters
    ----------
    scale : array or number
    validate_args : bool, optional
    """

    _whole = Cauchy

    def _cdf(self, z):
        return np.arctan(z) * (2 / math.pi)

    def _icdf(self, p):
        tangent = np.tan(math.pi / 2 * np.minimum(p, 1 - p))
        return np.where(p <= 0.5, tangent, 1 / tangent)

    @property
    def mean(self) -> Any:
        """Infinite."""
        return np.full(self.batch_shape, math.inf, dtype=self._dtype)

    variance = mean


class Uniform(Distribution):
    """The uniform distribution from `low` to `high`.

    Parameters
    ----------
    low, high : array or number
    validate_args : bool, optional
    """

    has_grad = True
    arg_constraints = {"low": constraint.real, "high": constraint.real}
    _parameters = ("low", "high")

    def __init__(self, low: Any = 0.0, high: Any = 1.0, validate_args: bool | None = None) -> None:
        self.low, self.high = parameters(low, high)
        super().__init__(validate_args=validate_args)

    @property
    def support(self) -> Any:  # type: ignore[override]  # depends on the parameters
        """From `low` to `high`."""
        return constraint.interval(self.low, self.high)

    def _draw(self, shape: tuple[int, ...]) -> Any:
        return self.low + (self.high - self.low) * uniform(shape, self._dtype)

    def log_prob(self, value: Any) -> Any:
        """Return the logarithm of the density at `value`."""
        value = self._checked(value)
        return where_in((value >= self.low) * (value <= self.high), -np.log(self.high - self.low) + 0 * value, -math.inf)

    def cdf(self, value: Any) -> Any:
        """Return the probability of at most `value`."""
        return np.clip((self._checked(value) - self.low) / (self.high - self.low), 0, 1)

    def icdf(self, value: Any) -> Any:
        """Where `cdf` is `value`."""
        return self.low + parameter(value) * (self.high - self.low)

    @property
    def mean(self) -> Any:
        """The mean."""
        return (self.low + self.high) / 2

    @property
    def variance(self) -> Any:
        """The variance."""
        return (self.high - self.low) ** 2 / 12

    def entropy(self) -> Any:
        """Return the entropy, in nats."""
        return np.log(self.high - self.low)


class Gamma(ExponentialFamily):
    """The gamma distribution.

    Parameters
    ----------
    shape, scale : array or number
    validate_args : bool, optional
    """

    has_grad = True
    arg_constraints = {"shape": constraint.positive, "scale": constraint.positive}
    support: Any = constraint.positive
    _parameters: tuple[str, ...] = ("shape", "scale")

    def __init__(self, shape: Any, scale: Any = 1.0, validate_args: bool | None = None) -> None:
        self.shape, self.scale = parameters(shape, scale)
        super().__init__(validate_args=validate_args)

    def _draw(self, shape: tuple[int, ...]) -> Any:
        return np.random.gamma(np.broadcast_to(self.shape, shape), 1.0, dtype=self._dtype) * self.scale

    def log_prob(self, value: Any) -> Any:
        """Return the logarithm of the density at `value`."""
        value = self._checked(value)
        return in_double(lambda x, a, b: times(a - 1, log(x / b)) - x / b - npx.gammaln(a) - np.log(b), value, self.shape, self.scale)

    @property
    def mean(self) -> Any:
        """The mean."""
        return self.shape * self.scale

    @property
    def variance(self) -> Any:
        """The variance."""
        return self.shape * self.scale ** 2

    def entropy(self) -> Any:
        """Return the entropy, in nats."""
        return in_double(lambda a, b: a + np.log(b) + npx.gammaln(a) + (1 - a) * npx.digamma(a), self.shape, self.scale)


class Exponential(Gamma):
    """The exponential distribution.

    Parameters
    ----------
    scale : array or number
        The mean: one over the rate.
    validate_args : bool, optional
    """

    support = constraint.nonnegative
    _parameters = ("scale",)
    arg_constraints = {"scale": constraint.positive}

    def __init__(self, scale: Any = 1.0, validate_args: bool | None = None) -> None:
        super().__init__(1.0, scale, validate_args)

    def _draw(self, shape: tuple[int, ...]) -> Any:
        return -np.log(open_uniform(shape, self._dtype)) * self.scale

    def log_prob(self, value: Any) -> Any:
        """Return the logarithm of the density at `value`."""
        return -np.log(self.scale) - self._checked(value) / self.scale

    def cdf(self, value: Any) -> Any:
        """Return the probability of at most `value`."""
        return -np.expm1(-self._checked(value) / self.scale)

    def icdf(self, value: Any) -> Any:
        """Where `cdf` is `value`."""
        return -self.scale * np.log1p(-parameter(value))

    def entropy(self) -> Any:
        """Return the entropy, in nats."""
        return 1 + np.log(self.scale)


class Chi2(Gamma):
    """The chi-squared distribution.

    Parameters
    ----------
    df : array or number
        Degrees of freedom.
    validate_args : bool, optional
    """

    def __init__(self, df: Any, validate_args: bool | None = None) -> None:
        self.df = parameter(df)
        super().__init__(self.df / 2, 2.0, validate_args)


class Beta(ExponentialFamily):
    """The beta distribution.

    Parameters
    ----------
    alpha, beta : array or number
    validate_args : bool, optional
    """

    has_grad = True
    arg_constraints = {"alpha": constraint.positive, "beta": constraint.positive}
    support = constraint.unit_interval
    _parameters = ("alpha", "beta")

    def __init__(self, alpha: Any, beta: Any, validate_args: bool | None = None) -> None:
        self.alpha, self.beta = parameters(alpha, beta)
        super().__init__(validate_args=validate_args)

    def _draw(self, shape: tuple[int, ...]) -> Any:
        a, b = Gamma(self.alpha)._draw(shape), Gamma(self.beta)._draw(shape)
        return a / (a + b)

    def log_prob(self, value: Any) -> Any:
        """Return the logarithm of the density at `value`."""
        value = self._checked(value)
        return in_double(lambda x, a, b: times(a - 1, log(x)) + times(b - 1, log_rest(x)) - log_beta(a, b), value, self.alpha, self.beta)

    @property
    def mean(self) -> Any:
        """The mean."""
        return self.alpha / (self.alpha + self.beta)

    @property
    def variance(self) -> Any:
        """The variance."""
        total = self.alpha + self.beta
        return self.alpha * self.beta / (total ** 2 * (total + 1))

    def entropy(self) -> Any:
        """Return the entropy, in nats."""
        return in_double(lambda a, b: log_beta(a, b) - (a - 1) * npx.digamma(a) - (b - 1) * npx.digamma(b) + (a + b - 2) * npx.digamma(a + b),
                         self.alpha, self.beta)
