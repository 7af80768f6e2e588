"""Distributions over whole numbers and classes, and two that can be differentiated in their place."""
from __future__ import annotations

import math
from typing import Any

from ... import ndarray, util
from ... import numpy as np
from ... import numpy_extension as npx
from . import constraint
from .continuous import Gamma
from .distribution import (
    ByProbability,
    ExponentialFamily,
    in_double,
    log,
    logsumexp,
    open_uniform,
    parameter,
    parameters,
    softplus,
    times,
    uniform,
)

__all__ = ["Bernoulli", "Binomial", "Geometric", "NegativeBinomial", "Poisson", "Categorical", "OneHotCategorical", "Multinomial",
           "RelaxedBernoulli", "RelaxedOneHotCategorical"]


def _log_choose(n: int, k: Any) -> Any:
    return math.lgamma(n + 1) - npx.gammaln(k + 1) - npx.gammaln(n - k + 1)


class Bernoulli(ByProbability, ExponentialFamily):
    """1 with a probability, else 0.

    Parameters
    ----------
    prob, logit : array or number
        One of them.
    validate_args : bool, optional
    """

    has_enumerate_support = True
    support = constraint.boolean
    arg_constraints = {"prob": constraint.unit_interval}

    def __init__(self, prob: Any = None, logit: Any = None, validate_args: bool | None = None) -> None:
        super().__init__(prob, logit, validate_args=validate_args)

    def _draw(self, shape: tuple[int, ...]) -> Any:
        return (uniform(shape, self._dtype) < self.prob).astype(self._dtype)

    def log_prob(self, value: Any) -> Any:
        """Return the logarithm of the probability of `value`."""
        value = self._checked(value)
        return self._log_likelihood(value, 1 - value)

    @property
    def mean(self) -> Any:
        """The mean."""
        return self.prob

    @property
    def variance(self) -> Any:
        """The variance."""
        return self.prob * (1 - self.prob)

    def entropy(self) -> Any:
        """Return the entropy, in nats."""
        return -self._log_likelihood(self.prob, 1 - self.prob)

    def enumerate_support(self) -> Any:
        """0 and 1, along a new first axis."""
        return np.stack([np.zeros(self.batch_shape, dtype=self._dtype), np.ones(self.batch_shape, dtype=self._dtype)])


class Geometric(ByProbability):
    """The geometric distribution: of the number of failures before the first success.

    Parameters
    ----------
    prob, logit : array or number
        One of them: of success.
    validate_args : bool, optional
    """

    support = constraint.nonnegative_integer
    arg_constraints = {"prob": constraint.unit_interval}

    def __init__(self, prob: Any = None, logit: Any = None, validate_args: bool | None = None) -> None:
        super().__init__(prob, logit, validate_args=validate_args)

    def _draw(self, shape: tuple[int, ...]) -> Any:
        return np.floor(np.log(open_uniform(shape, self._dtype)) / -softplus(self.logit))

    def log_prob(self, value: Any) -> Any:
        """Return the logarithm of the probability of `value`."""
        value = self._checked(value)
        return self._log_likelihood(np.ones_like(value), value)

    @property
    def mean(self) -> Any:
        """The mean."""
        return 1 / self.prob - 1

    @property
    def variance(self) -> Any:
        """The variance."""
        return (1 / self.prob - 1) / self.prob

    def entropy(self) -> Any:
        """Return the entropy, in nats."""
        return -self._log_likelihood(self.prob, 1 - self.prob) / self.prob


class Binomial(ByProbability):
    """The binomial distribution: of the number of successes in `n` trials.

    Parameters
    ----------
    n : int
    prob, logit : array or number
        One of them: of success.
    validate_args : bool, optional
    """

    arg_constraints = {"prob": constraint.unit_interval}

    def __init__(self, n: int = 1, prob: Any = None, logit: Any = None, validate_args: bool | None = None) -> None:
        self.n = n
        super().__init__(prob, logit, validate_args=validate_args)

    @property
    def support(self) -> Any:  # type: ignore[override]  # depends on the parameters
        """Whole numbers up to `n`."""
        return constraint.interval(0, self.n, whole=True)

    @property
    def has_enumerate_support(self) -> bool:  # type: ignore[override]  # the same
        """True."""
        return True

    def _draw(self, shape: tuple[int, ...]) -> Any:
        return (uniform((self.n, *shape), self._dtype) < self.prob).astype(self._dtype).sum(axis=0)

    def log_prob(self, value: Any) -> Any:
        """Return the logarithm of the probability of `value`."""
        value = self._checked(value)
        within = np.minimum(value, self.n)
        result = in_double(lambda k: _log_choose(self.n, k), within) + self._log_likelihood(within, self.n - within)
        return np.where(value > self.n, -math.inf, result)

    @property
    def mean(self) -> Any:
        """The mean."""
        return self.n * self.prob

    @property
    def variance(self) -> Any:
        """The variance."""
        return self.n * self.prob * (1 - self.prob)

    def enumerate_support(self) -> Any:
        """0 to `n`, along a new first axis."""
        numbers = np.arange(self.n + 1, dtype=self._dtype).reshape((-1,) + (1,) * len(self.batch_shape))
        return np.broadcast_to(numbers, (self.n + 1, *self.batch_shape))


class Poisson(ExponentialFamily):
    """The Poisson distribution.

    Parameters
    ----------
    rate : array or number
    validate_args : bool, optional
    """

    arg_constraints = {"rate": constraint.positive}
    support = constraint.nonnegative_integer
    _parameters = ("rate",)

    def __init__(self, rate: Any = 1.0, validate_args: bool | None = None) -> None:
        self.rate = parameter(rate)
        super().__init__(validate_args=validate_args)

    def _draw(self, shape: tuple[int, ...]) -> Any:
        rate = np.broadcast_to(self.rate, shape)
        drawn = ndarray.random.poisson(rate.reshape(-1).as_nd_ndarray())
        return drawn.as_np_ndarray().reshape(shape).astype(self._dtype)

    def log_prob(self, value: Any) -> Any:
        """Return the logarithm of the probability of `value`."""
        value = self._checked(value)
        return in_double(lambda k, rate: times(k, log(rate)) - rate - npx.gammaln(k + 1), value, self.rate)

    @property
    def mean(self) -> Any:
        """The mean."""
        return self.rate

    @property
    def variance(self) -> Any:
        """The variance."""
        return self.rate


class NegativeBinomial(ByProbability):
    """The negative binomial distribution: of the number of successes before failure number `n`.

    `log_prob`, `mean`, `variance` and samples are those of ``scipy.stats.nbinom(n, 1 - prob)``. After ``mx.util.set_version('2.0')`` `log_prob` takes
    `prob` for the probability of failure, as in MXNet 2, where it contradicts the others.

    Parameters
    ----------
    n : array or number
    prob, logit : array or number
        One of them: of success.
    validate_args : bool, optional
    """

    support = constraint.nonnegative_integer
    arg_constraints = {"prob": constraint.unit_interval, "n": constraint.positive}
    _parameters = ("n",)

    def __init__(self, n: Any, prob: Any = None, logit: Any = None, validate_args: bool | None = None) -> None:
        self.n, _ = parameters(n, logit if prob is None else prob)
        super().__init__(prob, logit, validate_args=validate_args)

    def _draw(self, shape: tuple[int, ...]) -> Any:
        return Poisson(Gamma(self.n, np.exp(self.logit))._draw(shape))._draw(shape)

    def log_prob(self, value: Any) -> Any:
        """Return the logarithm of the probability of `value`."""
        value = self._checked(value)
        ways = in_double(lambda k, n: npx.gammaln(n + k) - npx.gammaln(k + 1) - npx.gammaln(n), value, self.n)
        return ways + (self._log_likelihood(self.n, value) if util.version() == "2.0" else self._log_likelihood(value, self.n))

    @property
    def mean(self) -> Any:
        """The mean."""
        return self.n * self._odds

    @property
    def variance(self) -> Any:
        """The variance."""
        return self.mean * (1 + self._odds)

    @property
    def _odds(self) -> Any:
        return np.exp(self._logit) if self._given == "logit" else self._prob / (1 - self._prob)


class _Classes(ByProbability):
    """The base of distributions over classes, whose probabilities lie along the last axis."""

    _several = True
    arg_constraints = {"prob": constraint.simplex}

    def __init__(self, num_events: int, prob: Any = None, logit: Any = None, event_dim: int = 0, validate_args: bool | None = None) -> None:
        self.num_events = num_events
        super().__init__(prob, logit, event_dim, validate_args)
        sizes = getattr(self, self._parameters[0]).shape[-1:]
        if sizes != (num_events,):
            raise ValueError(f"{type(self).__name__}: probabilities of {num_events} classes along the last axis expected, received {sizes}")

    def _axes_of(self, name: str) -> int:
        return 1

    def _class(self, shape: tuple[int, ...]) -> Any:
        """Numbers of classes, by Gumbel's trick."""
        noise = -np.log(-np.log(open_uniform((*shape, self.num_events), self._dtype)))
        return np.argmax(self.logit + noise, axis=-1)


class Categorical(_Classes):
    """The number of a class.

    Parameters
    ----------
    num_events : int
        The number of classes.
    prob, logit : array
        One of them, with the classes along the last axis.
    validate_args : bool, optional
    """

    has_enumerate_support = True

    def __init__(self, num_events: int, prob: Any = None, logit: Any = None, validate_args: bool | None = None) -> None:
        super().__init__(num_events, prob, logit, validate_args=validate_args)

    @property
    def support(self) -> Any:  # type: ignore[override]  # depends on the parameters
        """Whole numbers below `num_events`."""
        return constraint.interval(0, self.num_events - 1, whole=True)

    def _draw(self, shape: tuple[int, ...]) -> Any:
        return self._class(shape).astype(self._dtype)

    def log_prob(self, value: Any) -> Any:
        """Return the logarithm of the probability of `value`."""
        value = self._checked(value)
        return times(npx.one_hot(value, self.num_events).astype(self._dtype), self._log_classes()).sum(axis=-1)

    def entropy(self) -> Any:
        """Return the entropy, in nats."""
        return -times(self.prob, self._log_classes()).sum(axis=-1)

    def enumerate_support(self) -> Any:
        """Return the numbers of all classes, along a new first axis."""
        numbers = np.arange(self.num_events, dtype=self._dtype).reshape((-1,) + (1,) * len(self.batch_shape))
        return np.broadcast_to(numbers, (self.num_events, *self.batch_shape))


class OneHotCategorical(_Classes):
    """A class as an array of zeros with a 1 in its place.

    Parameters
    ----------
    num_events : int
        The number of classes.
    prob, logit : array
        One of them, with the classes along the last axis.
    validate_args : bool, optional
    """

    support = constraint.one_hot
    has_enumerate_support = True

    def __init__(self, num_events: int, prob: Any = None, logit: Any = None, validate_args: bool | None = None) -> None:
        super().__init__(num_events, prob, logit, 1, validate_args)

    def _draw(self, shape: tuple[int, ...]) -> Any:
        return npx.one_hot(self._class(shape), self.num_events).astype(self._dtype)

    def log_prob(self, value: Any) -> Any:
        """Return the logarithm of the probability of `value`."""
        return times(self._checked(value), self._log_classes()).sum(axis=-1)

    @property
    def mean(self) -> Any:
        """The probabilities."""
        return self.prob

    @property
    def variance(self) -> Any:
        """The variance."""
        return self.prob * (1 - self.prob)

    def entropy(self) -> Any:
        """Return the entropy, in nats."""
        return -times(self.prob, self._log_classes()).sum(axis=-1)

    def enumerate_support(self) -> Any:
        """All classes, along a new first axis."""
        rows = np.eye(self.num_events, dtype=self._dtype).reshape((self.num_events,) + (1,) * len(self.batch_shape) + (self.num_events,))
        return np.broadcast_to(rows, (self.num_events, *self.batch_shape, self.num_events))


class Multinomial(_Classes):
    """The multinomial distribution: of the counts of classes in `total_count` draws.

    Parameters
    ----------
    num_events : int
        The number of classes.
    prob, logit : array
        One of them, with the classes along the last axis.
    total_count : int
        The number of draws.
    validate_args : bool, optional
    """

    def __init__(self, num_events: int, prob: Any = None, logit: Any = None, total_count: int = 1, validate_args: bool | None = None) -> None:
        self.total_count = total_count
        super().__init__(num_events, prob, logit, 1, validate_args)

    @property
    def support(self) -> Any:  # type: ignore[override]  # depends on the parameters
        """Whole numbers up to `total_count`."""
        return constraint.interval(0, self.total_count, whole=True)

    def _draw(self, shape: tuple[int, ...]) -> Any:
        return npx.one_hot(self._class((self.total_count, *shape)), self.num_events).astype(self._dtype).sum(axis=0)

    def log_prob(self, value: Any) -> Any:
        """Return the logarithm of the probability of `value`."""
        value = self._checked(value)
        ways = in_double(lambda k: npx.gammaln(k.sum(axis=-1) + 1) - npx.gammaln(k + 1).sum(axis=-1), value)
        return ways + times(value, self._log_classes()).sum(axis=-1)

    @property
    def mean(self) -> Any:
        """The mean."""
        return self.total_count * self.prob

    @property
    def variance(self) -> Any:
        """The variance."""
        return self.total_count * self.prob * (1 - self.prob)


class RelaxedBernoulli(ByProbability):
    """A number from 0 to 1 in place of `Bernoulli`, with gradients (Maddison et al., 2016; Jang et al., 2016).

    Parameters
    ----------
    T : array or number
        The temperature: the lower, the closer to 0 and 1.
    prob, logit : array or number
        One of them.
    validate_args : bool, optional
    """

    has_grad = True
    support = constraint.unit_interval
    arg_constraints = {"prob": constraint.unit_interval}

    def __init__(self, T: Any, prob: Any = None, logit: Any = None, validate_args: bool | None = None) -> None:
        self.T, _ = parameters(T, logit if prob is None else prob)
        super().__init__(prob, logit, validate_args=validate_args)

    def _draw(self, shape: tuple[int, ...]) -> Any:
        noise = open_uniform(shape, self._dtype)
        return npx.sigmoid((self.logit + np.log(noise) - np.log1p(-noise)) / self.T)

    def log_prob(self, value: Any) -> Any:
        """Return the logarithm of the density at `value`."""
        value = self._checked(value)
        log, log_rest = np.log(value), np.log1p(-value)
        difference = self.logit - self.T * (log - log_rest)
        return np.log(self.T) + difference - 2 * softplus(difference) - log - log_rest


class RelaxedOneHotCategorical(_Classes):
    """Shares of classes in place of `OneHotCategorical`, with gradients (Maddison et al., 2016; Jang et al., 2016).

    Parameters
    ----------
    T : array or number
        The temperature: the lower, the closer to 0 and 1.
    num_events : int
        The number of classes.
    prob, logit : array
        One of them, with the classes along the last axis.
    validate_args : bool, optional
    """

    has_grad = True
    support = constraint.simplex

    def __init__(self, T: Any, num_events: int, prob: Any = None, logit: Any = None, validate_args: bool | None = None) -> None:
        self.T, _ = parameters(T, logit if prob is None else prob)
        super().__init__(num_events, prob, logit, 1, validate_args)

    def _draw(self, shape: tuple[int, ...]) -> Any:
        noise = -np.log(-np.log(open_uniform((*shape, self.num_events), self._dtype)))
        return npx.softmax((self.logit + noise) / self.T, axis=-1)

    def log_prob(self, value: Any) -> Any:
        """Return the logarithm of the density at `value`."""
        value = self._checked(value)
        score = self.logit - self.T * np.log(value)
        count = self.num_events
        density = (score - np.log(value)).sum(axis=-1) - count * logsumexp(score)
        return density + math.lgamma(count) + (count - 1) * np.log(self.T)
