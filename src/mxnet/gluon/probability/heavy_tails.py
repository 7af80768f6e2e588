"""Continuous heavy-tailed distributions, of which only some moments exist."""
from __future__ import annotations

import math
from typing import Any

from ... import numpy as np
from ... import numpy_extension as npx
from . import constraint
from .continuous import Chi2
from .distribution import EULER, Distribution, in_double, log, log_beta, normal, open_uniform, parameter, parameters, times, where_in

__all__ = ["StudentT", "FisherSnedecor", "Weibull", "Pareto"]


class StudentT(Distribution):
    """Student's t distribution.

    Parameters
    ----------
    df : array or number
        Degrees of freedom.
    loc, scale : array or number
    validate_args : bool, optional
    """

    has_grad = True
    arg_constraints = {"df": constraint.positive, "loc": constraint.real, "scale": constraint.positive}
    _parameters = ("df", "loc", "scale")

    def __init__(self, df: Any, loc: Any = 0.0, scale: Any = 1.0, validate_args: bool | None = None) -> None:
        self.df, self.loc, self.scale = parameters(df, loc, scale)
        super().__init__(validate_args=validate_args)

    def _draw(self, shape: tuple[int, ...]) -> Any:
        return self.loc + self.scale * normal(shape, self._dtype) * np.sqrt(self.df / Chi2(self.df)._draw(shape))

    def log_prob(self, value: Any) -> Any:
        """Return the logarithm of the density at `value`."""
        def compute(x, df, loc, scale):
            half = (df + 1) / 2
            return (npx.gammaln(half) - npx.gammaln(df / 2) - 0.5 * np.log(df * math.pi) - np.log(scale)
                    - half * np.log1p(((x - loc) / scale) ** 2 / df))

        return in_double(compute, self._checked(value), self.df, self.loc, self.scale)

    @property
    def mean(self) -> Any:
        """The mean; NaN for `df` up to 1."""
        return where_in(self.df > 1, self.loc + 0 * self.df * self.scale, math.nan)

    @property
    def variance(self) -> Any:
        """The variance; infinite for `df` from 1 to 2, NaN up to 1."""
        finite = self.scale ** 2 * self.df / np.maximum(self.df - 2, 1e-30) + 0 * self.loc
        return where_in(self.df > 1, where_in(self.df > 2, finite, math.inf), math.nan)

    def entropy(self) -> Any:
        """Return the entropy, in nats."""
        def compute(df, loc, scale):
            half = (df + 1) / 2
            spread = npx.digamma(half) - npx.digamma(df / 2)
            return np.log(scale) + half * spread + 0.5 * np.log(df) + log_beta(df / 2, np.full_like(df, 0.5)) + 0 * loc

        return in_double(compute, self.df, self.loc, self.scale)


class FisherSnedecor(Distribution):
    """Fisher's and Snedecor's F distribution.

    Parameters
    ----------
    df1, df2 : array or number
        Degrees of freedom of numerator and denominator.
    validate_args : bool, optional
    """

    has_grad = True
    arg_constraints = {"df1": constraint.positive, "df2": constraint.positive}
    support = constraint.positive
    _parameters = ("df1", "df2")

    def __init__(self, df1: Any, df2: Any, validate_args: bool | None = None) -> None:
        self.df1, self.df2 = parameters(df1, df2)
        super().__init__(validate_args=validate_args)

    def _draw(self, shape: tuple[int, ...]) -> Any:
        return (Chi2(self.df1)._draw(shape) / self.df1) / (Chi2(self.df2)._draw(shape) / self.df2)

    def log_prob(self, value: Any) -> Any:
        """Return the logarithm of the density at `value`."""
        def compute(x, df1, df2):
            ratio, half = df1 / df2, df1 / 2
            return half * np.log(ratio) + times(half - 1, log(x)) - (df1 + df2) / 2 * np.log1p(ratio * x) - log_beta(half, df2 / 2)

        return in_double(compute, self._checked(value), self.df1, self.df2)

    @property
    def mean(self) -> Any:
        """The mean; NaN for `df2` up to 2."""
        return where_in(self.df2 > 2, self.df2 / np.maximum(self.df2 - 2, 1e-30) + 0 * self.df1, math.nan)

    @property
    def variance(self) -> Any:
        """The variance; NaN for `df2` up to 4."""
        finite = 2 * self.df2 ** 2 * (self.df1 + self.df2 - 2) / (self.df1 * (self.df2 - 2) ** 2 * np.maximum(self.df2 - 4, 1e-30))
        return where_in(self.df2 > 4, finite, math.nan)


class _Powers(Distribution):
    """The base of `Weibull` and `Pareto`: by the inverse of the cdf."""

    has_grad = True
    support = constraint.positive

    def _draw(self, shape: tuple[int, ...]) -> Any:
        return self.icdf(open_uniform(shape, self._dtype))


class Weibull(_Powers):
    """The Weibull distribution.

    Parameters
    ----------
    concentration, scale : array or number
    validate_args : bool, optional
    """

    arg_constraints = {"concentration": constraint.positive, "scale": constraint.positive}
    _parameters = ("concentration", "scale")

    def __init__(self, concentration: Any, scale: Any = 1.0, validate_args: bool | None = None) -> None:
        self.concentration, self.scale = parameters(concentration, scale)
        super().__init__(validate_args=validate_args)

    def log_prob(self, value: Any) -> Any:
        """Return the logarithm of the density at `value`."""
        z = self._checked(value) / self.scale
        return np.log(self.concentration) - np.log(self.scale) + times(self.concentration - 1, log(z)) - z ** self.concentration

    def cdf(self, value: Any) -> Any:
        """Return the probability of at most `value`."""
        return -np.expm1(-(self._checked(value) / self.scale) ** self.concentration)

    def icdf(self, value: Any) -> Any:
        """Where `cdf` is `value`."""
        return self.scale * (-np.log1p(-parameter(value))) ** (1 / self.concentration)

    @property
    def mean(self) -> Any:
        """The mean."""
        return self.scale * np.exp(npx.gammaln(1 + 1 / self.concentration))

    @property
    def variance(self) -> Any:
        """The variance."""
        return self.scale ** 2 * (np.exp(npx.gammaln(1 + 2 / self.concentration)) - np.exp(2 * npx.gammaln(1 + 1 / self.concentration)))

    def entropy(self) -> Any:
        """Return the entropy, in nats."""
        return EULER * (1 - 1 / self.concentration) + np.log(self.scale / self.concentration) + 1


class Pareto(_Powers):
    """The Pareto distribution, of numbers from `scale` on.

    Parameters
    ----------
    alpha, scale : array or number
    validate_args : bool, optional
    """

    arg_constraints = {"alpha": constraint.positive, "scale": constraint.positive}
    _parameters = ("alpha", "scale")

    def __init__(self, alpha: Any, scale: Any = 1.0, validate_args: bool | None = None) -> None:
        self.alpha, self.scale = parameters(alpha, scale)
        super().__init__(validate_args=validate_args)

    def log_prob(self, value: Any) -> Any:
        """Return the logarithm of the density at `value`."""
        value = self._checked(value)
        return where_in(value >= self.scale, np.log(self.alpha) + self.alpha * np.log(self.scale) - (self.alpha + 1) * np.log(value), -math.inf)

    def cdf(self, value: Any) -> Any:
        """Return the probability of at most `value`."""
        value = np.maximum(self._checked(value), self.scale)
        return -np.expm1(self.alpha * np.log(self.scale / value))

    def icdf(self, value: Any) -> Any:
        """Where `cdf` is `value`."""
        return self.scale * np.exp(-np.log1p(-parameter(value)) / self.alpha)

    @property
    def mean(self) -> Any:
        """The mean; infinite for `alpha` up to 1."""
        return where_in(self.alpha > 1, self.alpha * self.scale / np.maximum(self.alpha - 1, 1e-30), math.inf)

    @property
    def variance(self) -> Any:
        """The variance; infinite for `alpha` up to 2."""
        finite = self.scale ** 2 * self.alpha / ((self.alpha - 1) ** 2 * np.maximum(self.alpha - 2, 1e-30))
        return where_in(self.alpha > 2, finite, math.inf)

    def entropy(self) -> Any:
        """Return the entropy, in nats."""
        return np.log(self.scale / self.alpha) + 1 + 1 / self.alpha
