"""Operators that draw numbers of a distribution, all from the generators of `random_state`.

Each distribution serves three operators: ``_random_*`` with numbers for parameters, ``_random_*_like`` with an array that gives the shape, and
``_sample_*`` with arrays of parameters. On a CPU MXNet's numbers come out; elsewhere torch's, by a function ``fill(out, generator, *parameters)``.
"""
from collections.abc import Callable

import torch

from ...base import DelayedError, MXNetError
from .. import dtypes
from ..creation import stated_shape_rule
from ..random_state import generator, source
from ..registry import op
from ..schema import Device, Literal, Optional, Shape
from ..shapes import product, unify

RealType = Optional[Literal["float16", "float32", "float64"]]
IntegerType = Optional[Literal["int32", "int64"]]


def _uniform(out, source, low, high):
    if isinstance(low, float):
        return out.uniform_(low, high, generator=source)
    return out.uniform_(generator=source).mul_(high - low).add_(low)


_MOST = 2147480000  # a count that 32 bits hold, also in float32


def _normal(out, source, loc, scale):
    if isinstance(loc, float):
        return out.normal_(loc, scale, generator=source)
    return out.normal_(generator=source).mul_(scale).add_(loc)


def _exponential(out, source, lam):
    return out.exponential_(generator=source).div_(lam)


def _filled(out, value):
    """Fill `out` with the parameter, as torch's samplers of gamma and Poisson numbers require arrays."""
    return out.copy_(value) if isinstance(value, torch.Tensor) else out.fill_(value)


def _gamma(out, source, alpha, beta):
    alpha = _filled(out, alpha)
    none = ~((alpha > 0) & alpha.isfinite())  # torch would look for such a number without an end
    return torch._standard_gamma(alpha.masked_fill(none, 1), generator=source).masked_fill_(none, float("nan")).mul_(beta)


def _poisson(out, source, lam):
    return _counts(_filled(out, lam), source)


def _counts(rates, source):
    """Draw Poisson numbers; the largest 32-bit count for rates beyond it, 0 for invalid rates."""
    many, none = rates >= _MOST, ~(rates >= 0)
    return torch.poisson(rates.masked_fill(many | none, 0), generator=source).masked_fill_(many, _MOST)


def _negative_binomial(out, source, k, p):
    return _counts(_gamma(out, source, k, (1 - p) / p), source)


def _generalized_negative_binomial(out, source, mu, alpha):
    if not isinstance(alpha, torch.Tensor):
        rates = _gamma(out, source, 1 / alpha, alpha * mu) if alpha else _filled(out, mu)
    else:
        # No dispersion: a Poisson distribution.
        plain = alpha == 0
        safe = alpha.masked_fill(plain, 1)
        rates = torch.where(plain, mu, _gamma(out, source, 1 / safe, safe * mu))
    return _counts(rates, source)


_FILLS: dict[str, Callable] = {
    "uniform": _uniform, "normal": _normal, "exponential": _exponential, "gamma": _gamma, "poisson": _poisson,
    "negative_binomial": _negative_binomial, "generalized_negative_binomial": _generalized_negative_binomial}
_HALF_FROM_DOUBLE = ("uniform", "normal", "exponential")  # what MXNet draws in double precision for float16


def _draw(distribution, shape, dtype, device, *parameters):
    """An array of random numbers; each value of parameters in arrays serves as many neighbours."""
    if device.type == "meta":
        return torch.empty(shape, dtype=dtype, device=device)
    bank = source(device)
    if bank is not None and not bank.draws(distribution):
        bank = None
    wide = dtype is torch.float64 or bank is not None and dtype is torch.float16 and distribution in _HALF_FROM_DOUBLE
    work = torch.float64 if wide else torch.float32
    if bank is not None:
        numbers = bank.draw(distribution, product(shape), work, *parameters).view(shape)
        return numbers if work is dtype else numbers.float().to(dtype)
    out = torch.empty(shape, dtype=work, device=device)
    columns = [p.to(out.dtype).unsqueeze(1) if isinstance(p, torch.Tensor) else p for p in parameters]
    rows = out.view(len(columns[0]), out.numel() // max(1, len(columns[0]))) if isinstance(columns[0], torch.Tensor) else out
    return _FILLS[distribution](rows, generator(device), *columns).view(shape).to(dtype)


def _of_type(name):
    return torch.float32 if name is None else dtypes.NAME_TO_TORCH[name]


def _require(operator, good, what, **received):
    if not good:
        raise DelayedError(f"{operator}: {what}, received {', '.join(f'{k}={v:g}' for k, v in received.items())}",
                           {k: int(k != "low") for k in received})


def _random(name, *aliases):
    """Register a function of attributes as ``_random_<name>``."""
    def register(fn):
        operator = op(f"_random_{name}", aliases=(f"random_{name}", *aliases), stochastic=True, complete_rule="shape")(fn)
        operator.shape_rule(stated_shape_rule)
        return operator
    return register


@_random("uniform", "uniform")
def random_uniform(*, low: float = 0.0, high: float = 1.0, shape: Optional[Shape] = None, dtype: RealType = None, device: Device = None):
    """Uniformly distributed numbers from `low` up to, not including, `high`.

    Raises
    ------
    MXNetError
        If `low` is above `high`.

    Example
    -------
    >>> round(mx.nd.random_uniform(low=2, high=4, shape=10000).mean().asscalar())
    3
    """
    _require("_random_uniform", low <= high, "`low` must not be above `high`", low=low, high=high)
    return _draw("uniform", shape or (1,), _of_type(dtype), device, low, high)


@_random("normal", "normal")
def random_normal(*, loc: float = 0.0, scale: float = 1.0, shape: Optional[Shape] = None, dtype: RealType = None, device: Device = None):
    """Normally distributed numbers with the mean `loc` and the standard deviation `scale`.

    Raises
    ------
    MXNetError
        If `scale` is not above 0.

    Example
    -------
    >>> round(mx.nd.random_normal(loc=5, scale=1, shape=1000).mean().asscalar())
    5
    """
    _require("_random_normal", scale > 0, "`scale` must be above 0", scale=scale)
    return _draw("normal", shape or (1,), _of_type(dtype), device, loc, scale)


@_random("gamma")
def random_gamma(*, alpha: float = 1.0, beta: float = 1.0, shape: Optional[Shape] = None, dtype: RealType = None, device: Device = None):
    """Gamma-distributed numbers of the shape parameter `alpha` and the scale `beta`: their mean is ``alpha * beta``.

    Raises
    ------
    MXNetError
        If a parameter is not positive.

    Example
    -------
    >>> round(mx.nd.random_gamma(alpha=2, beta=3, shape=10000).mean().asscalar())
    6
    """
    _require("_random_gamma", alpha > 0 and beta > 0, "`alpha` and `beta` must be positive", alpha=alpha, beta=beta)
    return _draw("gamma", shape or (1,), _of_type(dtype), device, alpha, beta)


@_random("exponential")
def random_exponential(*, lam: float = 1.0, shape: Optional[Shape] = None, dtype: RealType = None, device: Device = None):
    """Exponentially distributed numbers of the rate `lam`: their mean is ``1 / lam``.

    Raises
    ------
    MXNetError
        If `lam` is not positive.

    Example
    -------
    >>> round(mx.nd.random_exponential(lam=0.5, shape=10000).mean().asscalar())
    2
    """
    _require("_random_exponential", lam > 0, "`lam` must be positive", lam=lam)
    return _draw("exponential", shape or (1,), _of_type(dtype), device, lam)


@_random("poisson")
def random_poisson(*, lam: float = 1.0, shape: Optional[Shape] = None, dtype: RealType = None, device: Device = None):
    """Poisson-distributed counts of the mean `lam`, as floating-point numbers.

    Raises
    ------
    MXNetError
        If `lam` is negative.

    Example
    -------
    >>> round(mx.nd.random_poisson(lam=3, shape=10000).mean().asscalar())
    3
    """
    _require("_random_poisson", lam >= 0, "`lam` must not be negative", lam=lam)
    return _draw("poisson", shape or (1,), _of_type(dtype), device, lam)


@_random("negative_binomial")
def random_negative_binomial(*, k: int = 1, p: float = 1.0, shape: Optional[Shape] = None, dtype: RealType = None, device: Device = None):
    """Draw counts of failures before the `k`-th success of trials with success probability `p`, as floating-point numbers.

    Raises
    ------
    MXNetError
        If `k` is not positive or `p` not a probability above 0.

    Example
    -------
    >>> round(mx.nd.random_negative_binomial(k=2, p=0.25, shape=10000).mean().asscalar())
    6
    """
    _require("_random_negative_binomial", k > 0 and 0 < p <= 1, "`k` must be positive and `p` in (0, 1]", k=k, p=p)
    return _draw("negative_binomial", shape or (1,), _of_type(dtype), device, k, p)


@_random("generalized_negative_binomial")
def random_generalized_negative_binomial(*, mu: float = 1.0, alpha: float = 1.0, shape: Optional[Shape] = None, dtype: RealType = None,
                                         device: Device = None):
    """Counts of the mean `mu` and the variance ``mu + alpha * mu**2``, as floating-point numbers.

    Raises
    ------
    MXNetError
        If a parameter is negative.

    Example
    -------
    >>> round(mx.nd.random_generalized_negative_binomial(mu=3, alpha=0.5, shape=10000).mean().asscalar())
    3
    """
    _require("_random_generalized_negative_binomial", mu >= 0 and alpha >= 0, "`mu` and `alpha` must not be negative", mu=mu, alpha=alpha)
    return _draw("generalized_negative_binomial", shape or (1,), _of_type(dtype), device, mu, alpha)


@op("_random_randint", aliases=("random_randint", "_npi_random_randint"), stochastic=True)
def random_randint(*, low: int, high: int, shape: Optional[Shape] = None, dtype: IntegerType = None, device: Device = None):
    """Uniformly distributed integers from `low` up to, not including, `high`.

    Raises
    ------
    MXNetError
        If there is no integer in between.

    Example
    -------
    >>> sorted(set(mx.nd.random_randint(low=5, high=8, shape=1000).asnumpy().tolist()))
    [5, 6, 7]
    """
    _require("_random_randint", low < high, "`low` must be below `high`", low=low, high=high)
    kind = dtypes.NAME_TO_TORCH[dtype or "int32"]
    shape = (1,) if shape is None else shape
    bank = source(device)
    if bank is None or high - low >= 1 << 63:
        return torch.randint(low, high, shape, generator=generator(device), dtype=kind, device=device)
    return bank.integers(product(shape), kind, low, high).view(shape)


random_randint.shape_rule(stated_shape_rule)


@random_randint.dtype_rule
def _(in_types, out_types, *, dtype, **_):
    return in_types, [dtypes.NAME_TO_TORCH[dtype or "int32"]]


def _like(name):
    return op(f"_random_{name}_like", same_shape=True, stochastic=True)


def _draw_like(distribution, data, *parameters):
    return _draw(distribution, data.shape, data.dtype, data.device, *parameters)


@_like("uniform")
def random_uniform_like(data, *, low: float = 0.0, high: float = 1.0):
    """Uniform random numbers, see `random_uniform`, in the shape and type of `data`.

    Example
    -------
    >>> mx.nd.random.uniform_like(mx.nd.zeros((2, 3)), low=5, high=6).shape
    (2, 3)
    """
    _require("_random_uniform_like", low <= high, "`low` must not be above `high`", low=low, high=high)
    return _draw_like("uniform", data, low, high)


@_like("normal")
def random_normal_like(data, *, loc: float = 0.0, scale: float = 1.0):
    """Normal random numbers, see `random_normal`, in the shape and type of `data`.

    Example
    -------
    >>> mx.nd.random.normal_like(mx.nd.zeros((2, 3)), loc=5).shape
    (2, 3)
    """
    _require("_random_normal_like", scale > 0, "`scale` must be above 0", scale=scale)
    return _draw_like("normal", data, loc, scale)


@_like("gamma")
def random_gamma_like(data, *, alpha: float = 1.0, beta: float = 1.0):
    """Gamma-distributed random numbers, see `random_gamma`, in the shape and type of `data`.

    Example
    -------
    >>> mx.nd.random.gamma_like(mx.nd.zeros((2, 3)), alpha=2, beta=3).shape
    (2, 3)
    """
    _require("_random_gamma_like", alpha > 0 and beta > 0, "`alpha` and `beta` must be positive", alpha=alpha, beta=beta)
    return _draw_like("gamma", data, alpha, beta)


@_like("exponential")
def random_exponential_like(data, *, lam: float = 1.0):
    """Exponentially distributed random numbers, see `random_exponential`, in the shape and type of `data`.

    Example
    -------
    >>> mx.nd.random.exponential_like(mx.nd.zeros((2, 3)), lam=0.5).shape
    (2, 3)
    """
    _require("_random_exponential_like", lam > 0, "`lam` must be positive", lam=lam)
    return _draw_like("exponential", data, lam)


@_like("poisson")
def random_poisson_like(data, *, lam: float = 1.0):
    """Poisson-distributed random counts, see `random_poisson`, in the shape and type of `data`.

    Example
    -------
    >>> mx.nd.random.poisson_like(mx.nd.zeros((2, 3)), lam=3).shape
    (2, 3)
    """
    _require("_random_poisson_like", lam >= 0, "`lam` must not be negative", lam=lam)
    return _draw_like("poisson", data, lam)


@_like("negative_binomial")
def random_negative_binomial_like(data, *, k: int = 1, p: float = 1.0):
    """Random counts of failures, see `random_negative_binomial`, in the shape and type of `data`.

    Example
    -------
    >>> mx.nd.random.negative_binomial_like(mx.nd.zeros((2, 3)), k=4, p=0.5).shape
    (2, 3)
    """
    _require("_random_negative_binomial_like", k > 0 and 0 < p <= 1, "`k` must be positive and `p` in (0, 1]", k=k, p=p)
    return _draw_like("negative_binomial", data, k, p)


@_like("generalized_negative_binomial")
def random_generalized_negative_binomial_like(data, *, mu: float = 1.0, alpha: float = 1.0):
    """Random counts, see `random_generalized_negative_binomial`, in the shape and type of `data`.

    Example
    -------
    >>> mx.nd.random.generalized_negative_binomial_like(mx.nd.zeros((2, 3)), mu=3, alpha=0.5).shape
    (2, 3)
    """
    _require("_random_generalized_negative_binomial_like", mu >= 0 and alpha >= 0, "`mu` and `alpha` must not be negative", mu=mu,
             alpha=alpha)
    return _draw_like("generalized_negative_binomial", data, mu, alpha)


def _sample_rule(in_shapes, out_shapes, *, shape, **_):
    common = None
    for s in in_shapes:
        common = unify(common, s)
    out = out_shapes[0]
    if common is not None:
        out = unify(out, common + shape)
    elif out is not None and len(out) >= len(shape):
        common = out[:len(out) - len(shape)]
    return [common] * len(in_shapes), [out]


def _sample_types(in_types, out_types, *, dtype, **_):
    common = next((t for t in in_types if t is not None), None)
    return [t or common for t in in_types], [_of_type(dtype)]


def _sample(name):
    """Register a function of arrays of parameters as ``_sample_<name>``."""
    def register(fn):
        operator = op(f"_sample_{name}", aliases=(f"sample_{name}",), stochastic=True, complete_rule="shape")(fn)
        operator.shape_rule(_sample_rule)
        operator.dtype_rule(_sample_types)
        return operator
    return register


def _draw_each(distribution, parameters, shape, dtype):
    """`shape` numbers for each entry of the parameters; no gradient flows back to these."""
    first = parameters[0]
    for p in parameters[1:]:
        if p.shape != first.shape:
            raise MXNetError(f"_sample_{distribution}: all parameters must have one shape, "
                             f"received {', '.join(str(tuple(p.shape)) for p in parameters)}")
    exact = torch.float64 if any(p.dtype is torch.float64 for p in parameters) else torch.float32
    flat = [p.detach().to(exact).reshape(-1).contiguous() for p in parameters]
    return _draw(distribution, (*first.shape, *shape), _of_type(dtype), first.device, *flat)


@_sample("uniform")
def sample_uniform(low, high, *, shape: Shape = (), dtype: RealType = None):
    """For each pair of borders `shape` uniform numbers: parameters (s1, ..., sn) give (s1, ..., sn, *shape).

    Example
    -------
    >>> x = mx.nd.sample_uniform(mx.nd.array([0, 10]), mx.nd.array([2, 12]), shape=10000)
    >>> x.shape, x.mean(axis=1).round().asnumpy().tolist()
    ((2, 10000), [1.0, 11.0])
    """
    return _draw_each("uniform", (low, high), shape, dtype)


@_sample("normal")
def sample_normal(mu, sigma, *, shape: Shape = (), dtype: RealType = None):
    """For each mean and standard deviation `shape` normal numbers: parameters (s1, ..., sn) give (s1, ..., sn, *shape).

    Example
    -------
    >>> (mx.nd.sample_normal(mx.nd.array([0, 100]), mx.nd.array([1, 1]), shape=3) > 50).asnumpy()
    array([[0., 0., 0.],
           [1., 1., 1.]], dtype=float32)
    """
    return _draw_each("normal", (mu, sigma), shape, dtype)


@_sample("gamma")
def sample_gamma(alpha, beta, *, shape: Shape = (), dtype: RealType = None):
    """For each shape parameter and scale `shape` gamma-distributed numbers: parameters (s1, ..., sn) give (s1, ..., sn, *shape).

    Example
    -------
    >>> x = mx.nd.sample_gamma(mx.nd.array([2, 1]), mx.nd.array([1, 10]), shape=10000)
    >>> x.shape, x.mean(axis=1).round().asnumpy().tolist()
    ((2, 10000), [2.0, 10.0])
    """
    return _draw_each("gamma", (alpha, beta), shape, dtype)


@_sample("exponential")
def sample_exponential(lam, *, shape: Shape = (), dtype: RealType = None):
    """For each rate `shape` exponentially distributed numbers: rates (s1, ..., sn) give (s1, ..., sn, *shape).

    Example
    -------
    >>> mx.nd.sample_exponential(mx.nd.array([0.1, 1]), shape=(10000,)).mean(axis=1).round().asnumpy()
    array([10.,  1.], dtype=float32)
    """
    return _draw_each("exponential", (lam,), shape, dtype)


@_sample("poisson")
def sample_poisson(lam, *, shape: Shape = (), dtype: RealType = None):
    """For each mean `shape` Poisson-distributed counts: means (s1, ..., sn) give (s1, ..., sn, *shape).

    Example
    -------
    >>> mx.nd.sample_poisson(mx.nd.array([0, 3]), shape=10000).mean(axis=1).round().asnumpy()
    array([0., 3.], dtype=float32)
    """
    return _draw_each("poisson", (lam,), shape, dtype)


@_sample("negative_binomial")
def sample_negative_binomial(k, p, *, shape: Shape = (), dtype: RealType = None):
    """For each number of successes and probability `shape` counts of failures: parameters (s1, ..., sn) give (s1, ..., sn, *shape).

    Example
    -------
    >>> mx.nd.sample_negative_binomial(mx.nd.array([2, 4]), mx.nd.array([0.25, 1]), shape=10000).mean(axis=1).round().asnumpy()
    array([6., 0.], dtype=float32)
    """
    return _draw_each("negative_binomial", (k, p), shape, dtype)


@_sample("generalized_negative_binomial")
def sample_generalized_negative_binomial(mu, alpha, *, shape: Shape = (), dtype: RealType = None):
    """For each mean and dispersion `shape` counts: parameters (s1, ..., sn) give (s1, ..., sn, *shape).

    Example
    -------
    >>> mx.nd.sample_generalized_negative_binomial(mx.nd.array([3, 8]), mx.nd.array([0.5, 0]), shape=10000).mean(axis=1).round().asnumpy()
    array([3., 8.], dtype=float32)
    """
    return _draw_each("generalized_negative_binomial", (mu, alpha), shape, dtype)
