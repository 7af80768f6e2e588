"""Transformations of random numbers, their inverses, and their log-determinants."""
from __future__ import annotations

import math
from typing import Any

from ... import numpy as np
from ... import numpy_extension as npx
from ...suggestions import shortened
from ..hybrid_block import HybridBlock
from . import constraint
from .distribution import parameter, softplus, sum_right

__all__ = ["Transformation", "TransformBlock", "ComposeTransform", "ExpTransform", "AffineTransform", "PowerTransform", "AbsTransform",
           "SigmoidTransform", "SoftmaxTransform", "domain_map", "biject_to", "transform_to"]


class Transformation:
    """The base. Derive from it, and define ``_forward_compute``, ``_inverse_compute`` and `log_det_jacobian`."""

    bijective = False
    event_dim = 0
    _sign: Any = None

    def __call__(self, x: Any) -> Any:
        return self._forward_compute(parameter(x))

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"

    @property
    def inv(self) -> Transformation:
        """The inverse."""
        return _Inverse(self)

    @property
    def sign(self) -> Any:
        """1 where the transformation rises, -1 where it falls."""
        if self._sign is None:
            raise NotImplementedError(f"{self} neither rises nor falls throughout")
        return self._sign

    def _forward_compute(self, x: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__} must define _forward_compute")

    def _inverse_compute(self, y: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__} has no inverse")

    def log_det_jacobian(self, x: Any, y: Any) -> Any:
        """Return the log of the absolute derivative (the Jacobian determinant) at `x`; `y` is the transformed `x`."""
        raise NotImplementedError(f"{type(self).__name__} has no log_det_jacobian")

    def constant_log_det(self, shape: Any) -> Any:
        """`log_det_jacobian` if it is the same everywhere, else None."""
        return None


class _Inverse(Transformation):
    def __init__(self, forward: Transformation) -> None:
        self._forward = forward
        self.bijective, self.event_dim = forward.bijective, forward.event_dim

    def __repr__(self) -> str:
        return f"{self._forward}.inv"

    @property
    def inv(self) -> Transformation:
        return self._forward

    @property
    def sign(self) -> Any:
        return self._forward.sign

    def _forward_compute(self, x: Any) -> Any:
        return self._forward._inverse_compute(x)

    def _inverse_compute(self, y: Any) -> Any:
        return self._forward._forward_compute(y)

    def log_det_jacobian(self, x: Any, y: Any) -> Any:
        return -self._forward.log_det_jacobian(y, x)

    def constant_log_det(self, shape: Any) -> Any:
        stretch = self._forward.constant_log_det(shape)
        return None if stretch is None else -stretch


class TransformBlock(Transformation, HybridBlock):
    """A transformation with parameters to be trained: a layer of a normalizing flow."""

    def forward(self, x: Any) -> Any:
        """Return the transformed array."""
        return self._forward_compute(x)

    __call__ = HybridBlock.__call__  # type: ignore[assignment]  # the block runs `forward`


class ComposeTransform(Transformation):
    """Transformations one after the other.

    Parameters
    ----------
    parts : list of Transformation
    """

    def __init__(self, parts: list[Transformation]) -> None:
        self._parts = list(parts)
        self.bijective = all(part.bijective for part in self._parts)
        self.event_dim = max((part.event_dim for part in self._parts), default=0)

    def __repr__(self) -> str:
        return f"ComposeTransform({self._parts})"

    @property
    def inv(self) -> Transformation:
        """The inverse."""
        return ComposeTransform([part.inv for part in reversed(self._parts)])

    @property
    def sign(self) -> Any:
        """1 where the transformation rises, -1 where it falls."""
        return math.prod(part.sign for part in self._parts)

    def _forward_compute(self, x: Any) -> Any:
        for part in self._parts:
            x = part(x)
        return x

    def _inverse_compute(self, y: Any) -> Any:
        return self.inv(y)

    def log_det_jacobian(self, x: Any, y: Any) -> Any:
        """Return the log of the absolute derivative (the Jacobian determinant) at `x`; `y` is the transformed `x`."""
        total: Any = 0.0
        for part in self._parts:
            out = part(x)
            total = total + sum_right(part.log_det_jacobian(x, out), self.event_dim - part.event_dim)
            x = out
        return total

    def constant_log_det(self, shape: Any) -> Any:
        """`log_det_jacobian` if it is the same everywhere, else None."""
        stretches = [part.constant_log_det(shape) for part in self._parts]
        return None if any(s is None for s in stretches) else sum(stretches, np.zeros(shape))


class ExpTransform(Transformation):
    """exp(x)"""

    bijective = True
    _sign = 1

    def _forward_compute(self, x: Any) -> Any:
        return np.exp(x)

    def _inverse_compute(self, y: Any) -> Any:
        return np.log(y)

    def log_det_jacobian(self, x: Any, y: Any) -> Any:
        """x"""
        return x


class AffineTransform(Transformation):
    """loc + scale * x

    Parameters
    ----------
    loc, scale : array or number
    event_dim : int
        The number of axes of one value.
    """

    bijective = True

    def __init__(self, loc: Any, scale: Any, event_dim: int = 0) -> None:
        self._loc, self._scale, self.event_dim = parameter(loc), parameter(scale), event_dim

    @property
    def sign(self) -> Any:
        """1 where the transformation rises, -1 where it falls."""
        return np.sign(self._scale)

    def _forward_compute(self, x: Any) -> Any:
        return self._loc + self._scale * x

    def _inverse_compute(self, y: Any) -> Any:
        return (y - self._loc) / self._scale

    def log_det_jacobian(self, x: Any, y: Any) -> Any:
        """log(abs(scale)) in the shape of the batch."""
        return sum_right(np.broadcast_to(np.log(np.abs(self._scale)), x.shape), self.event_dim)

    def constant_log_det(self, shape: Any) -> Any:
        """log(abs(scale))"""
        return np.log(np.abs(self._scale)) + np.zeros(shape)


class PowerTransform(Transformation):
    """x ** exponent, for x above 0.

    Parameters
    ----------
    exponent : array or number
    """

    bijective = True

    def __init__(self, exponent: Any) -> None:
        self._exponent = parameter(exponent)

    @property
    def sign(self) -> Any:
        """1 where the transformation rises, -1 where it falls."""
        return np.sign(self._exponent)

    def _forward_compute(self, x: Any) -> Any:
        return x ** self._exponent

    def _inverse_compute(self, y: Any) -> Any:
        return y ** (1 / self._exponent)

    def log_det_jacobian(self, x: Any, y: Any) -> Any:
        """log(abs(exponent * y / x))"""
        return np.log(np.abs(self._exponent * y / x))


class SigmoidTransform(Transformation):
    """1 / (1 + exp(-x))"""

    bijective = True
    _sign = 1

    def _forward_compute(self, x: Any) -> Any:
        return npx.sigmoid(x)

    def _inverse_compute(self, y: Any) -> Any:
        return np.log(y) - np.log1p(-y)

    def log_det_jacobian(self, x: Any, y: Any) -> Any:
        """Return the logarithm of the derivative."""
        return -softplus(-x) - softplus(x)


class SoftmaxTransform(Transformation):
    """softmax(x) along the last axis; the inverse is one of its preimages."""

    event_dim = 1

    def _forward_compute(self, x: Any) -> Any:
        return npx.softmax(x, axis=-1)

    def _inverse_compute(self, y: Any) -> Any:
        return np.log(y)


class AbsTransform(Transformation):
    """abs(x); the inverse is the positive one."""

    def _forward_compute(self, x: Any) -> Any:
        return np.abs(x)

    def _inverse_compute(self, y: Any) -> Any:
        return y


class domain_map:
    """A registry of transformations from the real numbers to the set that a constraint describes.

    Example
    -------
    >>> import mxnet as mx
    >>> from mxnet.gluon.probability import biject_to, constraint
    >>> biject_to(constraint.positive)(mx.np.zeros(1))
    array([1.])
    """

    def __init__(self) -> None:
        self._factories: dict[type, Any] = {}

    def register(self, wanted: constraint.Constraint | type[constraint.Constraint], factory: Any = None) -> Any:
        """Register the factory of the transformation for a class of constraints: ``factory(constraint)``. A decorator without `factory`.

        Raises
        ------
        TypeError
            If `wanted` is no Constraint, and no class of them.
        """
        if factory is None:
            return lambda made: self.register(wanted, made)
        kind = type(wanted) if isinstance(wanted, constraint.Constraint) else wanted
        if not isinstance(kind, type) or not issubclass(kind, constraint.Constraint):
            raise TypeError(f"register: a Constraint, or a class of them, expected, received {shortened(wanted)}")
        self._factories[kind] = factory
        return factory

    def __call__(self, wanted: constraint.Constraint) -> Transformation:
        """Return the transformation for a constraint.

        Raises
        ------
        NotImplementedError
            If none is registered.
        """
        if type(wanted) not in self._factories:
            raise NotImplementedError(f"no transformation is registered for {wanted}; register(constraint, factory) adds one")
        return self._factories[type(wanted)](wanted)


def _above(wanted: Any) -> Transformation:
    return ComposeTransform([ExpTransform(), AffineTransform(wanted._lower_bound, 1)])


def _below(wanted: Any) -> Transformation:
    return ComposeTransform([ExpTransform(), AffineTransform(wanted._upper_bound, -1)])


def _between(wanted: Any) -> Transformation:
    low, high = wanted._lower_bound, wanted._upper_bound
    return ComposeTransform([SigmoidTransform(), AffineTransform(low, high - low)])


_FACTORIES: dict[type[constraint.Constraint], Any] = {
    constraint.Real: lambda wanted: ComposeTransform([]), constraint.UnitInterval: lambda wanted: SigmoidTransform(),
    **dict.fromkeys((constraint.Positive, constraint.NonNegative), lambda wanted: ExpTransform()),
    **dict.fromkeys((constraint.GreaterThan, constraint.GreaterThanEq), _above),
    **dict.fromkeys((constraint.LessThan, constraint.LessThanEq), _below),
    **dict.fromkeys((constraint.Interval, constraint.HalfOpenInterval, constraint.OpenInterval), _between)}
biject_to, transform_to = domain_map(), domain_map()
for _kind, _factory in _FACTORIES.items():
    biject_to.register(_kind, _factory)
    transform_to.register(_kind, _factory)
transform_to.register(constraint.Simplex, lambda wanted: SoftmaxTransform())
