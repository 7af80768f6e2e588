"""NumPy operators that draw random numbers, on a CPU those that MXNet draws: most begin with uniform or normal numbers in single precision,
whatever type is asked for.

The parameters of a distribution are numbers (attributes) or arrays (inputs), which broadcast; the gradient flows to them through the
formula that turns uniform or normal numbers into those wanted.
"""
import math
from typing import Annotated, Literal

import numpy as np
import torch

from ...base import MXNetError
from .. import dtypes
from ..docstrings import with_example
from ..random_state import generator, source
from ..registry import op
from ..schema import Between, Device, Floats, Optional, Shape
from ..shapes import product, unify
from .common import InvalidValueError, broadcast, result_is, shape_of_inputs

_Real = Literal["float16", "float32", "float64"]
_TINY = torch.finfo(torch.float32).tiny
_MOST = 1 << 24  # more numbers than this are not drawn to be like MXNet's


def _parameters(inputs, numbers, device):
    """The parameters in order: the next input where the number is None."""
    given = [t for t in inputs if t is not None]
    out = []
    for name, number in numbers.items():
        if number is None:
            if not given:
                raise MXNetError(f"random: `{name}` must be a number or an array, received None")
            out.append(given.pop(0))
        else:
            out.append(_single(number))
    return out


def _where(parameters, device):
    return next((p.device for p in parameters if isinstance(p, torch.Tensor)), device)


def _shape(size, parameters, batch=False):
    return _drawn_shape(size, [tuple(p.shape) for p in parameters if isinstance(p, torch.Tensor)], batch)


def _drawn_shape(size, shapes, batch=False):
    """The shape of the numbers for arrays of parameters of these partial shapes. (`torch.broadcast_shapes` would import torch's compilers.)"""
    common = broadcast(*shapes)
    if size is None:
        return common
    if batch:
        return (*size, *common)
    if shapes:
        try:
            unify(broadcast(common, size), tuple(size))
        except MXNetError:
            raise MXNetError(f"random: parameters of shape {common} do not broadcast to `size` {tuple(size)}") from None
    return size


_drawn = shape_of_inputs(lambda *shapes, size, **_: _drawn_shape(size, shapes))
_drawn_in_batches = shape_of_inputs(lambda *shapes, size, **_: _drawn_shape(size, shapes, batch=True))


def _uniform_numbers(shape, device, dtype=torch.float32):
    bank = None if device.type == "meta" else source(device)
    if bank is None:
        return torch.empty(shape, device=device, dtype=dtype).uniform_(generator=generator(device))
    return bank.numbers(product(shape), dtype).view(shape)


def _normal_numbers(shape, device, dtype=torch.float32):
    bank = None if device.type == "meta" else source(device)
    if bank is None:
        return torch.empty(shape, device=device, dtype=dtype).normal_(generator=generator(device))
    return bank.numbers(product(shape), dtype, normal=True).view(shape)


def _log(numbers):
    """The logarithm in double precision of uniform numbers, of which 0 counts as a little more."""
    return numbers.clamp_min(_TINY).double().log()


def _log_uniform(shape, device):
    return _log(_uniform_numbers(shape, device))


def _rounded_log(numbers):
    """The logarithm in single precision of uniform numbers."""
    bank = None if numbers.device.type == "meta" else source(numbers.device)
    return _log(numbers).float() if bank is None else bank.log(numbers.clamp_min(_TINY))


def _power(numbers, inverse):
    """Numbers to the power of 1 over a parameter, in single precision."""
    if isinstance(inverse, torch.Tensor):
        return torch.pow(numbers.double(), (1.0 / inverse.double()).float().double())
    bank = None if numbers.device.type == "meta" else source(numbers.device)
    return torch.pow(numbers, 1.0 / inverse) if bank is None else bank.pow(numbers, 1.0 / inverse)


def _single(number):
    """A parameter as MXNet holds it: numbers in single precision."""
    return number if isinstance(number, torch.Tensor) else float(np.float32(number))


def _inputs_where_none(*names):
    def rule(attributes):
        missing = sum(attributes[n] is None for n in names)
        return ("input1", "input2")[:missing]
    return rule


def _require_range(name, what, value, low=0.0, high=None, strict=False):
    """Raise an InvalidValueError unless all values of a parameter are in range."""
    if isinstance(value, torch.Tensor):
        if value.device.type == "meta" or not value.numel():
            return
        least, most = (v.item() for v in value.detach().aminmax())
    else:
        least = most = value
    if not (least > low if strict else least >= low) or high is not None and most > high:
        limits = f"{'above' if strict else 'at least'} {low:g}" + (f" and at most {high:g}" if high is not None else "")
        raise InvalidValueError(f"{name}: `{what}` must be {limits}, received {least if least < low or high is None else most:g}")


def _with_mean(doc, call, mean):
    """`doc` with an example: the mean of many numbers, rounded to a whole one or to one place."""
    return with_example(doc, f"round(float(mx.np.random.{call[:-1]}, size=10000).mean()){', 1' if '.' in mean else ''}) -> {mean}")


def _two_parameters(name, first, second, compute, doc, batch=False, check=None):
    """Register a distribution of two parameters and a `dtype`; its parameters' names are its attributes."""
    def fn(parameters, size, dtype, device):
        if check is not None:
            check(*parameters)
        device = _where(parameters, device)
        target = dtypes.NAME_TO_TORCH[dtype]
        return compute(_shape(size, parameters, batch), device, *parameters).to(target)

    if first == "low":
        def operator(input1=None, input2=None, *, low: Optional[float] = 0.0, high: Optional[float] = 1.0, size: Optional[Shape] = None,
                     dtype: _Real = "float32", device: Device = None):
            return fn(_parameters((input1, input2), {"low": low, "high": high}, device), size, dtype, device)
    else:
        def operator(  # type: ignore[misc]  # a signature is what the schema is read from, and this is another
                     input1=None, input2=None, *, loc: Optional[float] = 0.0, scale: Optional[float] = 1.0, size: Optional[Shape] = None,
                     dtype: _Real = "float32", device: Device = None):
            return fn(_parameters((input1, input2), {"loc": loc, "scale": scale}, device), size, dtype, device)
    operator.__name__ = operator.__qualname__ = name
    operator.__doc__ = doc
    operator = op(f"_npi_{name}", inputs_rule=_inputs_where_none(first, second), stochastic=True, complete_rule="shape")(operator)
    operator.shape_rule(_drawn_in_batches if batch else _drawn)

    @operator.dtype_rule
    def _(in_types, out_types, *, dtype, **_):
        return [t or torch.float32 for t in in_types], [dtypes.NAME_TO_TORCH[dtype]]


def _uniform(shape, device, low, high):
    return _uniform_numbers(shape, device) * _single(high - low) + low


def _normal(shape, device, loc, scale):
    return _normal_numbers(shape, device) * scale + loc


_two_parameters("uniform", "low", "high", _uniform,
                _with_mean("Uniformly distributed numbers from `low` to `high`, whose mean is in the middle.", "uniform(2, 4)", "3"))
_two_parameters("uniform_n", "low", "high", _uniform,
                with_example("As ``mx.np.random.uniform``, with `size` before the shape of the parameters.",
                             "mx.npx.random.uniform_n(mx.np.zeros(2), mx.np.ones(2), batch_shape=(3,)).shape -> (3, 2)"), batch=True)
_two_parameters("normal", "loc", "scale", _normal,
                _with_mean("Normally distributed numbers of the mean `loc` and the standard deviation `scale`.", "normal(5, 2)", "5"),
                check=lambda loc, scale: _require_range("normal", "scale", scale))
_two_parameters("normal_n", "loc", "scale", _normal,
                with_example("As ``mx.np.random.normal``, with `size` before the shape of the parameters.",
                             "mx.npx.random.normal_n(mx.np.zeros(2), mx.np.ones(2), batch_shape=(3,)).shape -> (3, 2)"), batch=True,
                check=lambda loc, scale: _require_range("normal_n", "scale", scale))


def _laplace(shape, device, loc, scale):
    """The logarithm of a uniform number on either side of the mean."""
    u = _uniform_numbers(shape, device) * 2 - 1
    return -torch.sign(u) * torch.log1p(-u.abs()) * scale + loc


_two_parameters("laplace", "loc", "scale", _laplace,
                _with_mean("Numbers of the Laplace distribution of the mean `loc` and the decay `scale`.", "laplace(5, 2)", "5"),
                check=lambda loc, scale: _require_range("laplace", "scale", scale))


def _register_single(name, fn, *parameters):
    operator = op(f"_npi_{name}", inputs_rule=_inputs_where_none(*parameters), stochastic=True, complete_rule="shape")(fn)
    operator.dtype_rule(result_is(torch.float32))
    operator.shape_rule(_drawn)


def _location_scale(name, noise, doc):
    """Register ``loc + scale * noise(uniform numbers)``."""
    def fn(input1=None, input2=None, *, loc: Optional[float] = None, scale: Optional[float] = None, size: Optional[Shape] = None,
           device: Device = None):
        loc, scale = _parameters((input1, input2), {"loc": loc, "scale": scale}, device)
        _require_range(name, "scale", scale)
        device = _where((loc, scale), device)
        return (noise(_shape(size, (loc, scale)), device) * scale + loc).to(torch.float32)

    fn.__name__ = fn.__qualname__ = name
    fn.__doc__ = doc
    _register_single(name, fn, "loc", "scale")


def _logistic(shape, device):
    u = _uniform_numbers(shape, device)
    return (_log(u) - _log(1 - u)).float()


_location_scale("logistic", _logistic,
                _with_mean("Numbers of the logistic distribution of the mean `loc`.", "logistic(5, 2)", "5"))
_location_scale("gumbel", lambda shape, device: -torch.log(-_log_uniform(shape, device)).float(),
                _with_mean("Numbers of the Gumbel distribution, that of the largest of many. The mean is about ``loc + 0.577 * scale``.",
                           "gumbel(5, 2)", "6"))


def _scaled(name, noise, doc):
    def fn(input1=None, *, scale: Optional[float] = 1.0, size: Optional[Shape] = None, device: Device = None):
        scale, = _parameters((input1,), {"scale": scale}, device)
        _require_range(name, "scale", scale)
        return (noise(_shape(size, (scale,)), _where((scale,), device), scale) * scale).to(torch.float32)

    fn.__name__ = fn.__qualname__ = name
    fn.__doc__ = doc
    _register_single(name, fn, "scale")


def _exponential(shape, device, scale):
    u = _uniform_numbers(shape, device)
    return -_rounded_log(u) if isinstance(scale, torch.Tensor) else -_log(u)  # for a number MXNet multiplies before it rounds


_scaled("exponential", _exponential, _with_mean("Exponentially distributed numbers with the mean `scale`.", "exponential(2)", "2"))
_scaled("rayleigh", lambda shape, device, scale: torch.sqrt(-2 * _log_uniform(shape, device)).float(),
        _with_mean("Numbers of the Rayleigh distribution. The mean is about ``1.253 * scale``.", "rayleigh(4)", "5"))


def _shaped(name, compute, doc, spare=0):
    """Register ``compute(uniform numbers, a)``; MXNet draws `spare` numbers more."""
    def fn(input1=None, *, a: Optional[float] = None, size: Optional[Shape] = None, device: Device = None):
        a, = _parameters((input1,), {"a": a}, device)
        _require_range(name, "a", a, strict=True)
        shape, device = _shape(size, (a,)), _where((a,), device)
        numbers = compute(_uniform_numbers(shape, device), a).to(torch.float32)
        _uniform_numbers((spare,), device)
        return numbers

    fn.__name__ = fn.__qualname__ = name
    fn.__doc__ = doc
    _register_single(name, fn, "a")


def _pareto(u, a):
    """Rounded once more, before it is divided, where the parameter is an array."""
    return torch.exp((-_rounded_log(u) / a).double() if isinstance(a, torch.Tensor) else -_log(u) / a) - 1


_shaped("weibull", lambda u, a: _power(-_rounded_log(u), a),
        _with_mean("Numbers of the Weibull distribution with the shape `a`. The mean is ``gamma(1 + 1 / a)``.", "weibull(0.5)", "2"))
_shaped("pareto", _pareto,
        _with_mean("Numbers of the Pareto II (Lomax) distribution with the shape `a`. The mean is ``1 / (a - 1)``.", "pareto(6)", "0.2"))
_shaped("powerd", lambda u, a: _power(1 - u, a),
        _with_mean("Numbers in [0, 1] with the density ``a * x**(a - 1)``. The mean is ``a / (a + 1)``.", "power(4)", "0.8"), spare=1)


@op("_npi_gamma", inputs_rule=_inputs_where_none("shape", "scale"), stochastic=True, complete_rule="shape")
def gamma(input1=None, input2=None, *, shape: Optional[float] = None, scale: Optional[float] = None, size: Optional[Shape] = None,
          dtype: _Real = "float32", device: Device = None):
    """Numbers of the gamma distribution; its mean is ``shape * scale``.

    Example
    -------
    >>> round(float(mx.np.random.gamma(2, 3, size=10000).mean()))
    6
    """
    shape, scale = _parameters((input1, input2), {"shape": shape, "scale": scale}, device)
    _require_range("gamma", "shape", shape, strict=True)
    _require_range("gamma", "scale", scale, strict=True)
    device = _where((shape, scale), device)
    target = dtypes.NAME_TO_TORCH[dtype]
    sizes = _shape(size, (shape, scale))
    if device.type == "meta":
        return torch.empty(sizes, dtype=target, device=device)
    if source(device) is None:
        work = torch.float64 if target is torch.float64 else torch.float32
        alpha = shape.to(work).expand(sizes) if isinstance(shape, torch.Tensor) else torch.full(sizes, shape, dtype=work, device=device)
        return (torch._standard_gamma(alpha.contiguous(), generator=generator(device)) * scale).to(target)
    plain: list = [p.detach().double() if isinstance(p, torch.Tensor) else p for p in (shape, scale)]
    drawn = _gamma_numbers(sizes, device, *plain)
    standard = drawn / plain[1]
    if isinstance(shape, torch.Tensor) and shape.requires_grad:  # how a number moves with its parameters (Figurnov et al., arXiv:1805.08498)
        slope = torch._standard_gamma_grad(plain[0].expand(sizes).contiguous(), standard)
        drawn = drawn + slope * plain[1] * (shape.double() - plain[0])
    if isinstance(scale, torch.Tensor) and scale.requires_grad:
        drawn = drawn + standard * (scale.double() - plain[1])
    return drawn.to(target)


def _gamma_numbers(sizes, device, shape, scale):
    """Doubles by the method of Marsaglia and Tsang, which rejects few; all are drawn anew until none is missing, as in MXNet."""
    shape = torch.as_tensor(shape, dtype=torch.float64).expand(sizes)
    d = torch.where(shape < 1, shape + 2.0 / 3.0, shape - 1.0 / 3.0)
    c = 1.0 / torch.sqrt(9.0 * d)
    missing = torch.isfinite(shape)  # of others none would ever be accepted
    out = torch.full(sizes, math.nan, dtype=torch.float64)
    while bool(missing.any()):
        u = _uniform_numbers((*sizes, 2), device, torch.float64)
        normal = _normal_numbers((*sizes, 2), device, torch.float64)[..., 0]
        first = u[..., 0].float()
        v = (1 + c * normal) ** 3
        good = (v > 0) & (torch.log(first) < 0.5 * (normal * normal) + d * (1 - v + torch.log(v.float())))
        drawn = torch.where(shape < 1, d * v * scale * torch.pow(u[..., 1].float().double(), (1.0 / shape).float().double()).float(), d * v * scale)
        out, missing = torch.where(missing & good, drawn, out), missing & ~good
    return out


gamma.shape_rule(_drawn)


@gamma.dtype_rule
def _(in_types, out_types, *, dtype, **_):
    return [t or torch.float32 for t in in_types], [dtypes.NAME_TO_TORCH[dtype]]


@op("_npi_bernoulli", no_gradient=True, stochastic=True, complete_rule="shape",
    inputs_rule=lambda attributes: ("input1",) if attributes["prob"] is None and attributes["logit"] is None else ())
def bernoulli(input1=None, *, prob: Optional[float] = None, logit: Optional[float] = None, size: Optional[Shape] = None,
              dtype: Literal["bool", "float16", "float32", "float64", "int32", "uint8"] = "float32", is_logit: bool = False,
              device: Device = None):
    """1 with the given probability (or logit), 0 otherwise. A number for either counts, as `is_logit` applies to arrays only.

    Example
    -------
    >>> mx.npx.random.bernoulli(prob=mx.np.array([0, 1, 1]))
    array([0., 1., 1.])
    """
    if input1 is None:
        is_logit = prob is None
    value = input1 if input1 is not None else logit if is_logit else prob
    device = _where((value,), device)
    if not is_logit:
        _require_range("bernoulli", "prob", value, high=1.0)
    u = _uniform_numbers(_shape(size, (value,)), device)
    if is_logit:
        u = (_log(u) - _log(1 - u)).float()
    return (_single(value) > u).to(dtypes.NAME_TO_TORCH[dtype])


bernoulli.shape_rule(_drawn)


@bernoulli.dtype_rule
def _(in_types, out_types, *, dtype, **_):
    return [t or torch.float32 for t in in_types], [dtypes.NAME_TO_TORCH[dtype]]


@op("_npi_multinomial", no_gradient=True, inputs_rule=lambda attributes: ("a",) if attributes["pvals"] is None else (), stochastic=True)
def multinomial(a=None, *, n: Annotated[int, Between(0, 1 << 53)], pvals: Optional[Floats] = None, size: Optional[Shape] = None,
                device: Device = None):
    """Draw the counts of each outcome in `n` experiments, as int64; the last axis holds the outcomes.

    Example
    -------
    >>> mx.np.random.multinomial(5, [0, 1, 0])
    array([0, 5, 0], dtype=int64)
    """
    p = a.double() if a is not None else torch.tensor(pvals or (), dtype=torch.float64)
    if p.dim() != 1:
        raise MXNetError(f"multinomial: the probabilities must have one axis, received shape {tuple(p.shape)}")
    sizes = size or ()
    device = a.device if a is not None else device or p.device
    if device.type == "meta" or not p.numel():
        return torch.empty((*sizes, p.numel()), dtype=torch.int64, device=device)
    p = p.cpu()  # the shares are computed on the host
    if not (p[:-1].sum().item() <= 1 + 1e-6 and p.min().item() >= 0):
        raise MXNetError("multinomial: the probabilities must not be negative, and sum(pvals[:-1]) must not be above 1; received a smallest one of "
                         f"{p.min().item():g} and a sum of {p[:-1].sum().item():g}")
    bank = source(device)
    count = product(sizes)
    if bank is None or count * n > _MOST:
        # Each outcome gets a binomial share of the remaining experiments, and the last outcome the rest, as in NumPy.
        left, mass, counts = torch.full(sizes, n, dtype=torch.float64, device=device), 1.0, []
        for probability in p[:-1].tolist():
            share = min(1.0, probability / mass) if mass > 0 else 0.0
            counts.append(torch.binomial(left, torch.full_like(left, share), generator=generator(device)))
            left, mass = left - counts[-1], mass - probability
        return torch.stack([*counts, left], -1).long()
    drawn = torch.bucketize(bank.numbers(count * n, torch.float64), torch.cumsum(p[:-1], 0), right=True).view(count, n)
    if a is None:
        bank.numbers(p.numel(), torch.float64)  # MXNet draws into the memory for given numbers, too
    return torch.zeros((count, p.numel()), dtype=torch.int64).scatter_add_(1, drawn, torch.ones_like(drawn)).view(*sizes, p.numel())


multinomial.dtype_rule(result_is(torch.int64))


@op("_npx__random_multinomial", no_gradient=True, stochastic=True)
def multinomial_of_each(n, p, *, shape: Shape = (), dtype: Optional[Literal["uint8", "int32", "float16", "float32", "float64"]] = None):
    """Draw the counts of k outcomes: `n` (...) has the numbers of experiments, `p` (..., k) the probabilities.

    The result has the shape ``(..., *shape, k)``, and the type of `n` unless `dtype` names another.

    Raises
    ------
    MXNetError
        If `p` does not have the axes of `n` and one more.

    Example
    -------
    >>> mx.npx.random.multinomial(mx.np.array([2, 3]), mx.np.array([[0, 1], [1, 0]]))
    array([[0., 2.],
           [3., 0.]])
    """
    if tuple(p.shape[:-1]) != tuple(n.shape) or not p.dim():
        raise MXNetError(f"multinomial: `p` must have the axes of `n`, and one more, received shapes {tuple(n.shape)} and {tuple(p.shape)}")
    target = n.dtype if dtype is None else dtypes.NAME_TO_TORCH[dtype]
    if p.device.type == "meta" or not p.numel():
        return torch.zeros((*n.shape, *shape, p.shape[-1]), dtype=target, device=p.device)
    left = n.double().reshape(*n.shape, *[1] * len(shape)).expand(*n.shape, *shape)
    # Each outcome gets a binomial share of the remaining experiments, and the last outcome the rest.
    chances, counts = p.double(), []
    rest = chances.flip(-1).cumsum(-1).flip(-1)
    shares = torch.where(rest > 0, chances / rest, 0).clamp(0, 1)
    for outcome in range(p.shape[-1] - 1):
        share = shares[..., outcome].reshape(*n.shape, *[1] * len(shape)).expand(left.shape)
        counts.append(torch.binomial(left.contiguous(), share.contiguous(), generator=generator(p.device)))
        left = left - counts[-1]
    return torch.stack([*counts, left], -1).to(target)


@multinomial_of_each.shape_rule
def _(in_shapes, out_shapes, *, shape, **_):
    n, p = in_shapes
    if p is None or not p:
        return in_shapes, out_shapes
    return [unify(n, p[:-1]), p], [unify(out_shapes[0], (*p[:-1], *shape, p[-1]))]


@multinomial_of_each.dtype_rule
def _(in_types, out_types, *, dtype, **_):
    return in_types, [in_types[0] if dtype is None else dtypes.NAME_TO_TORCH[dtype]]


@op("_npi_choice", no_gradient=True,
    inputs_rule=lambda attributes: ("input1", "input2")[:(attributes["a"] is None) + attributes["weighted"]], stochastic=True)
def choice(input1=None, input2=None, *, a: Optional[int] = None, size: Optional[Shape] = None, replace: bool = True, weighted: bool = False,
           device: Device = None):
    """Random indices below `a`, or of the first axis of the array in its place; `weighted` by the following probabilities.

    Example
    -------
    >>> sorted(mx.np.random.choice(3, size=3, replace=False).tolist())
    [0, 1, 2]
    """
    arrays = [t for t in (input1, input2) if t is not None]
    if a is not None:
        population = a
    else:
        array = arrays.pop(0)
        if not array.dim() or not array.shape[0]:
            raise MXNetError(f"choice: an array with entries along its first axis expected, received shape {tuple(array.shape)}")
        population = array.shape[0]
    weights = arrays.pop(0) if weighted else None
    device = input1.device if input1 is not None else device
    sizes = size or ()
    count = 1
    for s in sizes:
        count *= s
    if not replace and count > population:
        raise MXNetError(f"choice: cannot take {count} different ones out of {population} when replace=False")
    if device is not None and device.type == "meta":
        return torch.empty(sizes, dtype=torch.int64, device=device)
    if weights is not None and weights.numel() != population:
        raise MXNetError(f"choice: `a` has {population} elements, `p` {weights.numel()}")
    bank = source(device or torch.device("cpu"))
    if bank is None or not replace and population > _MOST:
        chosen = _torch_choice(population, count, replace, weights, device)
    elif weights is None:
        chosen = _plain_choice(bank, population, count, replace)
    else:
        chosen = _weighted_choice(bank, weights.detach().float(), count, replace)
    return chosen.reshape(sizes)


def _torch_choice(population, count, replace, weights, device):
    if weights is not None:
        return torch.multinomial(weights.float(), count, replace, generator=generator(device)) if count else torch.empty(0, dtype=torch.int64)
    if replace:
        return torch.randint(population, (count,), generator=generator(device), device=device)
    return _distinct(population, count, generator(device), device)


def _plain_choice(bank, population, count, replace):
    if replace:
        return torch.from_numpy((bank.words(count) % np.uint64(population)).astype(np.int64))
    reservoir = bank.reservoir(population, min(count, population - count))
    chosen = reservoir[population - count:] if 2 * count < population else reservoir[:count]
    # MXNet stops here: all of a population would come sorted, and 2 of 5 never begin with 4.
    return chosen[bank.order(count, backwards=False)]


def _weighted_choice(bank, weights, count, replace):
    if replace:
        # Summed in single precision, one after the other.
        sums = torch.from_numpy(np.cumsum(weights.numpy(), dtype=np.float32))
        return torch.searchsorted(sums, bank.numbers(count)).clamp_(max=len(weights) - 1)
    keys = -torch.log(-torch.log(bank.numbers(len(weights)))) + torch.log(weights)
    return keys.argsort(descending=True, stable=True)[:count]


choice.dtype_rule(result_is(torch.int64))


@choice.shape_rule
def _(in_shapes, out_shapes, *, size, **_):
    return in_shapes, [unify(out_shapes[0], size or ())]


def _distinct(population, count, source, device):
    """`count` different numbers below `population`; few out of many take the memory of few."""
    if population <= max(1 << 16, 4 * count):
        return torch.randperm(population, generator=source, device=device)[:count]
    numbers = torch.empty(0, dtype=torch.int64, device=device)
    while numbers.numel() < count:
        numbers = torch.cat([numbers, torch.randint(population, (count,), generator=source, device=device)])
        order = torch.argsort(numbers, stable=True)
        ranked = numbers[order]
        first = torch.ones_like(numbers, dtype=torch.bool)
        first[order[1:]] = ranked[1:] != ranked[:-1]
        numbers = numbers[first]
    return numbers[:count]


@op("_npi_mvn_fallback", no_gradient=True, stochastic=True)
def multivariate_normal(mean, cov, *, size: Optional[Shape] = None):
    """Normally distributed vectors: means (..., N), covariances (..., N, N); `size` stands before the axes these broadcast to."""
    batch = broadcast(mean.shape[:-1], cov.shape[:-2])
    noise = torch.empty((*(size or ()), *batch, mean.shape[-1]), dtype=mean.dtype, device=mean.device)
    if noise.device.type == "meta":
        return noise
    noise.normal_(generator=generator(mean.device))  # MXNet uses NumPy's generator
    root = torch.linalg.cholesky(cov.float() if cov.dtype is torch.float16 else cov).to(mean.dtype)
    return mean + (root @ noise.unsqueeze(-1)).squeeze(-1)
