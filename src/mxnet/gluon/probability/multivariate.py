"""Distributions of vectors, and distributions derived from others."""
from __future__ import annotations

import math
from typing import Any

from ... import numpy as np
from ... import numpy_extension as npx
from ..utils import UsageError
from . import constraint
from .continuous import Gamma
from .distribution import HALF_LOG_TWO_PI, Distribution, ExponentialFamily, in_double, log, normal, parameter, parameters, sum_right, times
from .transformation import ComposeTransform

__all__ = ["Dirichlet", "MultivariateNormal", "Independent", "TransformedDistribution"]


class Dirichlet(ExponentialFamily):
    """The Dirichlet distribution, of shares whose sum is 1.

    Parameters
    ----------
    alpha : array
        With the shares along the last axis.
    validate_args : bool, optional
    """

    has_grad = True
    arg_constraints = {"alpha": constraint.positive}
    support = constraint.simplex
    event_dim = 1
    _parameters = ("alpha",)

    def __init__(self, alpha: Any, validate_args: bool | None = None) -> None:
        self.alpha = parameter(alpha)
        super().__init__(validate_args=validate_args)

    def _draw(self, shape: tuple[int, ...]) -> Any:
        parts = Gamma(self.alpha)._draw((*shape, *self.event_shape))
        return parts / parts.sum(axis=-1, keepdims=True)

    def log_prob(self, value: Any) -> Any:
        """Return the logarithm of the density at `value`."""
        return in_double(lambda x, a: (times(a - 1, log(x)) - npx.gammaln(a)).sum(axis=-1) + npx.gammaln(a.sum(axis=-1)),
                         self._checked(value), self.alpha)

    @property
    def mean(self) -> Any:
        """The mean."""
        return self.alpha / self.alpha.sum(axis=-1, keepdims=True)

    @property
    def variance(self) -> Any:
        """The variance."""
        return self.mean * (1 - self.mean) / (self.alpha.sum(axis=-1, keepdims=True) + 1)

    def entropy(self) -> Any:
        """Return the entropy, in nats."""
        def compute(a):
            total = a.sum(axis=-1)
            return (npx.gammaln(a) - (a - 1) * npx.digamma(a)).sum(axis=-1) - npx.gammaln(total) + (total - a.shape[-1]) * npx.digamma(total)

        return in_double(compute, self.alpha)


class MultivariateNormal(Distribution):
    """The normal distribution of vectors.

    Parameters
    ----------
    loc : array
        (..., n)
    cov, precision, scale_tril : array
        One of them, (..., n, n): the covariance, its inverse, or a lower triangular matrix that it is the square of.
    validate_args : bool, optional

    Raises
    ------
    UsageError
        Unless exactly one of the matrices is given.
    """

    has_grad = True
    arg_constraints = {"loc": constraint.real, "scale_tril": constraint.lower_triangular}
    event_dim = 1
    _parameters = ("loc", "scale_tril")

    def __init__(self, loc: Any, cov: Any = None, precision: Any = None, scale_tril: Any = None, validate_args: bool | None = None) -> None:
        given = [m for m in (cov, precision, scale_tril) if m is not None]
        if len(given) != 1:
            raise UsageError(f"MultivariateNormal: one of cov, precision and scale_tril expected, received {len(given)}")
        self.loc, matrix = parameters(loc, given[0])
        if scale_tril is not None:
            self.scale_tril = matrix
        else:
            if validate_args if validate_args is not None else self._validate_args:
                constraint.positive_definite.check(matrix)
            self.scale_tril = np.linalg.cholesky(np.linalg.inv(matrix) if cov is None else matrix)
        super().__init__(validate_args=validate_args)

    def _axes_of(self, name: str) -> int:
        return 1 if name == "loc" else 2

    @property
    def cov(self) -> Any:
        """The covariance."""
        return np.einsum("...ij,...kj->...ik", self.scale_tril, self.scale_tril)

    @property
    def precision(self) -> Any:
        """The inverse of the covariance."""
        return np.linalg.inv(self.cov)

    def _draw(self, shape: tuple[int, ...]) -> Any:
        noise = normal((*shape, *self.event_shape), self._dtype)
        return self.loc + np.einsum("...ij,...j->...i", self.scale_tril, noise)

    def _whitened(self, difference: Any) -> Any:
        """Return the squared length of a difference in units of the spread."""
        inverse = np.linalg.inv(self.scale_tril)
        return (np.einsum("...ij,...j->...i", inverse, difference) ** 2).sum(axis=-1)

    def _half_log_det(self) -> Any:
        return np.log(np.diagonal(self.scale_tril, axis1=-2, axis2=-1)).sum(axis=-1)

    def log_prob(self, value: Any) -> Any:
        """Return the logarithm of the density at `value`."""
        return -0.5 * self._whitened(self._checked(value) - self.loc) - self._half_log_det() - self.loc.shape[-1] * HALF_LOG_TWO_PI

    @property
    def mean(self) -> Any:
        """The mean."""
        return np.broadcast_to(self.loc, (*self.batch_shape, *self.event_shape))

    @property
    def variance(self) -> Any:
        """The variance of each number."""
        return np.broadcast_to((self.scale_tril ** 2).sum(axis=-1), (*self.batch_shape, *self.event_shape))

    def entropy(self) -> Any:
        """Return the entropy, in nats: of each covariance one number, since it does not depend on `loc`."""
        return self.loc.shape[-1] * (0.5 + HALF_LOG_TWO_PI) + self._half_log_det()


class Independent(Distribution):
    """A distribution that treats some batch axes as event axes: log_probs are summed over them.

    Parameters
    ----------
    base_distribution : Distribution
    reinterpreted_batch_ndims : int
        The number of axes, from the last on.
    validate_args : bool, optional
    """

    def __init__(self, base_distribution: Distribution, reinterpreted_batch_ndims: int, validate_args: bool | None = None) -> None:
        axes = len(base_distribution.batch_shape)
        if reinterpreted_batch_ndims > axes:
            raise ValueError(f"Independent: at most {axes} axes expected, those of the batch, received {reinterpreted_batch_ndims}")
        self.base_dist, self.reinterpreted_batch_ndims = base_distribution, reinterpreted_batch_ndims
        super().__init__(base_distribution.event_dim + reinterpreted_batch_ndims, validate_args)

    @property
    def has_grad(self) -> bool:  # type: ignore[override]  # that of another distribution
        """True if samples have gradients with respect to the parameters."""
        return self.base_dist.has_grad

    @property
    def batch_shape(self) -> tuple[int, ...]:
        """The shape of the batch that is left."""
        shape = self.base_dist.batch_shape
        return shape[:len(shape) - self.reinterpreted_batch_ndims]

    @property
    def event_shape(self) -> tuple[int, ...]:
        """The shape of one value."""
        shape = self.base_dist.batch_shape
        return (*shape[len(shape) - self.reinterpreted_batch_ndims:], *self.base_dist.event_shape)

    def __repr__(self) -> str:
        return f"Independent({self.base_dist}, {self.reinterpreted_batch_ndims})"

    def _draw(self, shape: tuple[int, ...]) -> Any:
        base = self.base_dist.batch_shape
        return self.base_dist._draw((*shape, *base[len(base) - self.reinterpreted_batch_ndims:]))

    def log_prob(self, value: Any) -> Any:
        """Return the logarithm of the density, or probability, at `value`."""
        return sum_right(self.base_dist.log_prob(value), self.reinterpreted_batch_ndims)

    @property
    def mean(self) -> Any:
        """The mean."""
        return self.base_dist.mean

    @property
    def variance(self) -> Any:
        """The variance."""
        return self.base_dist.variance

    def entropy(self) -> Any:
        """Return the entropy, in nats."""
        return sum_right(self.base_dist.entropy(), self.reinterpreted_batch_ndims)

    def broadcast_to(self, batch_shape: Any) -> Distribution:
        """Return the distribution with parameters broadcast to a batch shape."""
        base = self.base_dist.batch_shape
        shape = (*batch_shape, *base[len(base) - self.reinterpreted_batch_ndims:])
        return Independent(self.base_dist.broadcast_to(shape), self.reinterpreted_batch_ndims)


class TransformedDistribution(Distribution):
    """The distribution of transformed random numbers.

    Parameters
    ----------
    base_dist : Distribution
    transforms : Transformation or list of Transformation
        Applied in that order.
    validate_args : bool, optional

    Example
    -------
    >>> from mxnet.gluon import probability as mgp
    >>> import mxnet as mx
    >>> lognormal = mgp.TransformedDistribution(mgp.Normal(0, 1), mgp.ExpTransform())
    >>> lognormal.cdf(mx.np.ones(1))
    array([0.5])
    """

    def __init__(self, base_dist: Distribution, transforms: Any, validate_args: bool | None = None) -> None:
        self._base_dist = base_dist
        self._transforms = list(transforms) if isinstance(transforms, (list, tuple)) else [transforms]
        self._whole = ComposeTransform(self._transforms)
        super().__init__(max([base_dist.event_dim, *(t.event_dim for t in self._transforms)]), validate_args)

    @property
    def has_grad(self) -> bool:  # type: ignore[override]  # that of another distribution
        """True if samples have gradients with respect to the parameters."""
        return self._base_dist.has_grad

    def __repr__(self) -> str:
        return f"TransformedDistribution({self._base_dist}, {self._transforms})"

    @property
    def batch_shape(self) -> tuple[int, ...]:
        """The shape of the batch."""
        shape = (*self._base_dist.batch_shape, *self._base_dist.event_shape)
        return shape[:len(shape) - self.event_dim]

    @property
    def event_shape(self) -> tuple[int, ...]:
        """The shape of one value."""
        shape = (*self._base_dist.batch_shape, *self._base_dist.event_shape)
        return shape[len(shape) - self.event_dim:]

    def _draw(self, shape: tuple[int, ...]) -> Any:
        inner = (*shape, *self.event_shape)
        return self._whole(self._base_dist._draw(inner[:len(inner) - self._base_dist.event_dim]))

    def log_prob(self, value: Any) -> Any:
        """Return the logarithm of the density at `value`."""
        y = self._checked(value)
        total: Any = 0.0
        for transform in reversed(self._transforms):
            x = transform.inv(y)
            total = total - sum_right(transform.log_det_jacobian(x, y), self.event_dim - transform.event_dim)
            y = x
        return sum_right(self._base_dist.log_prob(y), self.event_dim - self._base_dist.event_dim) + total

    def cdf(self, value: Any) -> Any:
        """Return the probability of at most `value`; for transformations that rise or fall throughout."""
        below = self._base_dist.cdf(self._whole.inv(self._checked(value)))
        return self._whole.sign * (below - 0.5) + 0.5

    def icdf(self, value: Any) -> Any:
        """Where `cdf` is `value`."""
        return self._whole(self._base_dist.icdf(self._whole.sign * (parameter(value) - 0.5) + 0.5))

    def entropy(self) -> Any:
        """Return the entropy, in nats, where a transformation only moves and stretches."""
        total = sum_right(self._base_dist.entropy(), self.event_dim - self._base_dist.event_dim)
        for transform in self._transforms:
            stretch = transform.constant_log_det(self._base_dist.batch_shape)
            if stretch is None:
                raise NotImplementedError(f"TransformedDistribution has an entropy behind affine transformations only, not behind {transform}")
            total = total + sum_right(stretch, self.event_dim)
        return total

    @property
    def mean(self) -> Any:
        """The mean, where a transformation only moves and stretches."""
        if any(t.constant_log_det(()) is None for t in self._transforms):
            raise NotImplementedError(f"TransformedDistribution has a mean behind affine transformations only, not behind {self._transforms}")
        return self._whole(self._base_dist.mean)

    @property
    def variance(self) -> Any:
        """The variance, where a transformation only moves and stretches."""
        stretches = [t.constant_log_det(()) for t in self._transforms]
        if any(s is None for s in stretches):
            raise NotImplementedError(f"TransformedDistribution has a variance behind affine transformations only, not behind {self._transforms}")
        return self._base_dist.variance * math.prod(np.exp(2 * s) for s in stretches)
