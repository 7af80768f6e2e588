"""``mx.sym.random``: random numbers, drawn anew at every run of the graph.

As in `mx.nd.random`, the parameters of a distribution are either numbers or Symbols.
"""
from collections.abc import Sequence
from typing import Any

from ..base import _Null
from ..ndarray.random import check_parameters
from ..ops.registry import get
from . import functions
from .compose import create
from .symbol import Symbol

__all__ = ["uniform", "normal", "randn", "poisson", "exponential", "gamma", "multinomial", "negative_binomial", "generalized_negative_binomial",
           "shuffle", "randint"]

__getattr__, __dir__ = functions.namespace_lookup(__name__, "_random_", functions.operator_function)


def _draw(distribution: str, parameters: dict[str, Any], shape: Any, dtype: Any, kwargs: dict[str, Any]) -> Symbol:
    attrs = {k: v for k, v in {"shape": shape, "dtype": dtype, **kwargs}.items() if v is not _Null}
    if check_parameters(parameters, Symbol):
        return _node("_sample_" + distribution, list(parameters.values()), attrs)
    # These operators have no inputs; MXNet lets programs hand them some all the same.
    attrs = {k: v for k, v in attrs.items() if not isinstance(v, Symbol)}
    return _node("_random_" + distribution, [], {**parameters, **attrs})


def _node(operator: str, inputs: Sequence[Symbol], attrs: dict[str, Any]) -> Symbol:
    name, annotations = attrs.pop("name", None), attrs.pop("attr", None)
    return create(get(operator), inputs, attrs, name, operator, annotations)


def uniform(low: float | Symbol = 0, high: float | Symbol = 1, shape: Any = _Null, dtype: Any = _Null, **kwargs: Any) -> Symbol:
    """Uniformly distributed samples between `low` and `high`.

    Parameters
    ----------
    low, high : float or Symbol
        The bounds; `low` itself may be drawn, `high` may not.
    shape : int or tuple of int, optional
        The shape of the samples: that of the result, or the axes after the shape of `low`.
    dtype : str or type, optional
        float16, float32 (the default) or float64.
    **kwargs
        ``name`` and ``attr`` of the Symbol.

    Returns
    -------
    Symbol

    Example
    -------
    >>> import mxnet as mx
    >>> mx.sym.random.uniform(0, 1, shape=(2, 3)).infer_shape()[1]
    [(2, 3)]
    """
    return _draw("uniform", {"low": low, "high": high}, shape, dtype, kwargs)


def normal(loc: float | Symbol = 0, scale: float | Symbol = 1, shape: Any = _Null, dtype: Any = _Null, **kwargs: Any) -> Symbol:
    """Samples of the normal distribution with mean `loc` and standard deviation `scale`; see `uniform` for the rest."""
    return _draw("normal", {"loc": loc, "scale": scale}, shape, dtype, kwargs)


def randn(*shape: int, **kwargs: Any) -> Symbol:
    """Samples of the normal distribution, with the shape as arguments; ``loc``, ``scale`` and ``dtype`` by name."""
    parameters = {"loc": kwargs.pop("loc", 0), "scale": kwargs.pop("scale", 1)}
    return _draw("normal", parameters, shape, kwargs.pop("dtype", _Null), kwargs)


def poisson(lam: float | Symbol = 1, shape: Any = _Null, dtype: Any = _Null, **kwargs: Any) -> Symbol:
    """Samples of the Poisson distribution with mean `lam`, as floats; see `uniform` for the rest."""
    return _draw("poisson", {"lam": lam}, shape, dtype, kwargs)


def exponential(scale: float | Symbol = 1, shape: Any = _Null, dtype: Any = _Null, **kwargs: Any) -> Symbol:
    """Samples of the exponential distribution with mean `scale`; see `uniform` for the rest."""
    return _draw("exponential", {"lam": 1.0 / scale}, shape, dtype, kwargs)


def gamma(alpha: float | Symbol = 1, beta: float | Symbol = 1, shape: Any = _Null, dtype: Any = _Null, **kwargs: Any) -> Symbol:
    """Samples of the gamma distribution with shape `alpha` and scale `beta`; see `uniform` for the rest."""
    return _draw("gamma", {"alpha": alpha, "beta": beta}, shape, dtype, kwargs)


def negative_binomial(k: int | Symbol = 1, p: float | Symbol = 1, shape: Any = _Null, dtype: Any = _Null, **kwargs: Any) -> Symbol:
    """Samples of the number of failures before the `k`-th success of trials with success probability `p`; see `uniform` for the rest."""
    return _draw("negative_binomial", {"k": k, "p": p}, shape, dtype, kwargs)


def generalized_negative_binomial(mu: float | Symbol = 1, alpha: float | Symbol = 1, shape: Any = _Null, dtype: Any = _Null, **kwargs: Any) -> Symbol:
    """Samples of the negative binomial distribution with mean `mu` and variance ``mu + alpha * mu**2``; see `uniform` for the rest."""
    return _draw("generalized_negative_binomial", {"mu": mu, "alpha": alpha}, shape, dtype, kwargs)


def randint(low: int, high: int, shape: Any = _Null, dtype: Any = _Null, **kwargs: Any) -> Symbol:
    """Integers from `low` up to but not including `high`, of type int32 (the default) or int64."""
    if check_parameters({"low": low, "high": high}, Symbol):
        raise ValueError("randint: `low` and `high` must be numbers, received Symbols")
    return _draw("randint", {"low": low, "high": high}, shape, dtype, kwargs)


def multinomial(data: Symbol, shape: Any = _Null, get_prob: bool = True, dtype: Any = "int32", **kwargs: Any) -> Symbol:
    """Numbers of classes, drawn with the probabilities that the last axis of `data` holds; see `mx.nd.random.multinomial`.

    Unlike there, `get_prob` is True by default: the Symbol has two outputs, the samples and their log likelihood.
    """
    attrs = {"get_prob": get_prob, "dtype": dtype, **kwargs}
    if shape is not _Null:
        attrs["shape"] = shape
    return _node("_sample_multinomial", [data], attrs)


def shuffle(data: Symbol, **kwargs: Any) -> Symbol:
    """`data` with its entries along the first axis in random order."""
    return _node("_shuffle", [data], kwargs)
