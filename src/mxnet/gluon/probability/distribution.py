"""`Distribution`, the base class of distributions, and the conversion of parameters to arrays."""
from __future__ import annotations

import math
from typing import Any

import numpy as onp

from ... import numpy as np
from ... import numpy_extension as npx
from ..utils import UsageError
from . import constraint

__all__ = ["Distribution", "ExponentialFamily"]

HALF_LOG_TWO_PI = 0.5 * math.log(2 * math.pi)
EULER = 0.5772156649015329


def parameter(value: Any, dtype: Any = "float32") -> Any:
    """Return a parameter as an array; numbers in a type of their own."""
    return value if isinstance(value, np.ndarray) else np.array(value, dtype=dtype)


def parameters(*values: Any) -> list[Any]:
    """Parameters as arrays, numbers in the type of the arrays among them."""
    dtype = next((value.dtype for value in values if isinstance(value, np.ndarray)), "float32")
    return [parameter(value, dtype) for value in values]


def sum_right(x: Any, axes: int) -> Any:
    """Return the sums over the last axes."""
    return x.sum(axis=tuple(range(-axes, 0))) if axes else x


def softplus(x: Any) -> Any:
    """log(1 + exp(x)) without overflow."""
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


def logsumexp(x: Any) -> Any:
    """log(sum(exp(x))) along the last axis."""
    return (x - npx.log_softmax(x, axis=-1))[..., 0]


def in_double(function: Any, *arrays: Any) -> Any:
    """``function(*arrays)`` in double precision, in the type of the first array: for differences of large numbers that are almost equal."""
    return function(*(array.astype("float64") for array in arrays)).astype(arrays[0].dtype)


def log(x: Any) -> Any:
    """Return the logarithm, -infinite at 0, where its gradient is 0."""
    zero = x == 0
    return np.where(zero, -math.inf, np.log(np.where(zero, 1.0, x)))


def log_rest(x: Any) -> Any:
    """log(1 - x), -infinite at 1, where its gradient is 0."""
    one = x == 1
    return np.where(one, -math.inf, np.log1p(np.where(one, 0.0, -x)))


def times(factor: Any, logarithm: Any) -> Any:
    """``factor * logarithm``, 0 where `factor` is: with an infinite logarithm, too."""
    return factor * np.where(factor == 0, 0.0, logarithm)


def log_beta(a: Any, b: Any) -> Any:
    """Return the logarithm of the beta function."""
    return npx.gammaln(a) + npx.gammaln(b) - npx.gammaln(a + b)


def where_in(inside: Any, value: Any, outside: float) -> Any:
    """`value` where `inside`, else a number."""
    return np.where(inside, value, np.full_like(value, outside))


def uniform(shape: Any, dtype: Any) -> Any:
    """Uniform random numbers from 0 to 1."""
    return np.random.uniform(0.0, 1.0, size=shape, dtype=dtype)


def open_uniform(shape: Any, dtype: Any) -> Any:
    """Uniform random numbers above 0 and below 1: a logarithm of them is finite."""
    return np.random.uniform(1e-7, 1 - 1e-7, size=shape, dtype=dtype)


def normal(shape: Any, dtype: Any) -> Any:
    """Normal random numbers."""
    return np.random.normal(0.0, 1.0, size=shape, dtype=dtype)


def sizes(size: Any) -> tuple[int, ...]:
    """Return a size as a tuple."""
    return () if size is None else (int(size),) if isinstance(size, (int, onp.integer)) else tuple(size)


class Distribution:
    """The base of distributions over arrays of ``mx.np``. Derive from it, and define ``_parameters``, `log_prob` and ``_draw``.

    Its computations are recorded by autograd and traced in hybridized blocks. Parameters broadcast against one another; where `has_grad` is
    True, samples have gradients by them.

    Parameters
    ----------
    event_dim : int
        The number of axes of one value.
    validate_args : bool, optional
        Check parameters, and the values passed to `log_prob` and others; by default as set by `set_default_validate_args`.

    Raises
    ------
    ValueError
        If parameters are checked, and one violates its constraint.
    """

    has_grad = False
    has_enumerate_support = False
    arg_constraints: dict[str, constraint.Constraint] = {}
    support: Any = constraint.real
    event_dim = 0
    _validate_args = False
    _parameters: tuple[str, ...] = ()  # names of the parameters, each with `event_dim` axes of the event unless `_axes_of` differs

    @staticmethod
    def set_default_validate_args(value: bool) -> None:
        """Set the default of `validate_args`: True to check the arguments of distributions."""
        Distribution._validate_args = bool(value)

    def __init__(self, event_dim: int | None = None, validate_args: bool | None = None) -> None:
        if event_dim is not None:
            self.event_dim = event_dim
        if validate_args is not None:
            self._validate_args = validate_args
        if self._validate_args:
            for name, wanted in self.arg_constraints.items():
                try:
                    wanted.check(getattr(self, name))
                except ValueError as error:
                    raise ValueError(f"{type(self).__name__}: {name}: {error}") from None

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}: {getattr(self, name).shape}" for name in self._parameters)
        return f"{type(self).__name__}({shown})"

    @property
    def _dtype(self) -> Any:
        """The type of the parameters, in which it computes."""
        return getattr(self, self._parameters[0]).dtype

    def _checked(self, value: Any) -> Any:
        value = parameter(value)
        if self._parameters and value.dtype != self._dtype:
            value = value.astype(self._dtype)
        return self.support.check(value) if self._validate_args else value

    def _axes_of(self, name: str) -> int:
        """Return the number of event axes of a parameter."""
        return self.event_dim

    @property
    def batch_shape(self) -> tuple[int, ...]:
        """The shape that the parameters broadcast to, without the axes of the event."""
        shapes = []
        for name in self._parameters:
            shape = getattr(self, name).shape
            shapes.append(shape[:len(shape) - self._axes_of(name)])
        return onp.broadcast_shapes(*shapes)

    @property
    def event_shape(self) -> tuple[int, ...]:
        """The shape of one value."""
        if not self.event_dim:
            return ()
        return tuple(getattr(self, self._parameters[0]).shape[-self.event_dim:])

    def _draw(self, shape: tuple[int, ...]) -> Any:
        """Return a sample of that batch shape."""
        raise NotImplementedError(f"{type(self).__name__} cannot be sampled")

    def sample(self, size: Any = None) -> Any:
        """Return a sample of the batch shape `size`, which the parameters broadcast to; of their own shape without one."""
        return self._draw(self.batch_shape if size is None else sizes(size))

    def sample_n(self, size: Any = None) -> Any:
        """`size` samples, an int or a tuple, each of the parameters' shape."""
        return self._draw((*sizes(size), *self.batch_shape))

    def log_prob(self, value: Any) -> Any:
        """Return the logarithm of the density, or probability, at `value`."""
        raise NotImplementedError(f"{type(self).__name__} has no log_prob")

    def pdf(self, value: Any) -> Any:
        """Return the density at `value`."""
        return np.exp(self.log_prob(value))

    def cdf(self, value: Any) -> Any:
        """Return the probability of at most `value`."""
        raise NotImplementedError(f"{type(self).__name__} has no cdf")

    def icdf(self, value: Any) -> Any:
        """Where `cdf` is `value`."""
        raise NotImplementedError(f"{type(self).__name__} has no icdf")

    @property
    def mean(self) -> Any:
        """The mean."""
        raise NotImplementedError(f"{type(self).__name__} has no mean")

    @property
    def variance(self) -> Any:
        """The variance."""
        raise NotImplementedError(f"{type(self).__name__} has no variance")

    @property
    def stddev(self) -> Any:
        """The root of the variance."""
        return np.sqrt(self.variance)

    def entropy(self) -> Any:
        """Return the entropy, in nats."""
        raise NotImplementedError(f"{type(self).__name__} has no entropy")

    def perplexity(self) -> Any:
        """exp(entropy)"""
        return np.exp(self.entropy())

    def enumerate_support(self) -> Any:
        """All values, along a new first axis."""
        raise NotImplementedError(f"{type(self).__name__} cannot count its values")

    def broadcast_to(self, batch_shape: Any) -> Distribution:
        """Return the distribution with parameters broadcast to a batch shape."""
        made = object.__new__(type(self))
        made.__dict__.update(self.__dict__)
        for name in self._parameters:
            value = getattr(self, name)
            axes = self._axes_of(name)
            made.__dict__[name] = np.broadcast_to(value, (*sizes(batch_shape), *value.shape[value.ndim - axes:]))
        return made


class ExponentialFamily(Distribution):
    """The base of distributions with the density exp(<t(x), theta> - F(theta) + k(x))."""


class ByProbability(Distribution):
    """The base of distributions that take a probability, or its logit.

    Raises
    ------
    UsageError
        Unless exactly one of both is given.
    """

    _prob: Any
    _logit: Any
    _several = False  # probabilities along the last axis, rather than of yes and no

    def __init__(self, prob: Any, logit: Any, event_dim: int | None = None, validate_args: bool | None = None) -> None:
        if (prob is None) == (logit is None):
            raise UsageError(f"{type(self).__name__}: either prob or logit expected, received {'none' if prob is None else 'both'}")
        self._given = "logit" if prob is None else "prob"
        self.__dict__[f"_{self._given}"] = parameter(logit if prob is None else prob)
        self._parameters = (f"_{self._given}", *(name for name in self._parameters))
        super().__init__(event_dim, validate_args)

    @property
    def prob(self) -> Any:
        """The probability."""
        if self._given == "prob":
            return self._prob / self._prob.sum(axis=-1, keepdims=True) if self._several else self._prob
        return npx.softmax(self._logit, axis=-1) if self._several else npx.sigmoid(self._logit)

    @property
    def logit(self) -> Any:
        """The logit."""
        if self._given == "logit":
            return npx.log_softmax(self._logit, axis=-1) if self._several else self._logit
        if self._several:
            return np.log(np.maximum(self.prob, 1e-30))
        limits = onp.finfo(self._prob.dtype)
        safe = np.clip(self._prob, float(limits.tiny), 1 - float(limits.eps))
        return np.log(safe) - np.log1p(-safe)

    def _log_likelihood(self, successes: Any, failures: Any) -> Any:
        """``successes * log(prob) + failures * log(1 - prob)``, without rounding a probability to one that has a finite logit."""
        if self._given == "logit":
            return -successes * softplus(-self._logit) - failures * softplus(self._logit)
        return times(successes, log(self._prob)) + times(failures, log_rest(self._prob))

    def _log_classes(self) -> Any:
        """Return the logarithms of the classes' probabilities."""
        return self.logit if self._given == "logit" else log(self.prob)
