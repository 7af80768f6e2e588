"""Activation layers."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ... import initializer
from ...suggestions import shortened
from ..hybrid_block import HybridBlock
from ..utils import UsageError

if TYPE_CHECKING:
    from ...initializer import Initializer

__all__ = ["Activation", "LeakyReLU", "PReLU", "ELU", "SELU", "Swish", "SiLU", "GELU"]


class Activation(HybridBlock):
    """An activation function by name.

    Parameters
    ----------
    activation : {'relu', 'sigmoid', 'tanh', 'softrelu', 'softsign', 'log_sigmoid', 'mish'}
    prefix, params
        As for `Block`.

    Example
    -------
    >>> mx.gluon.nn.Activation('relu')(mx.nd.array([-1, 0, 2])).asnumpy()
    array([0., 0., 2.], dtype=float32)
    """

    def __init__(self, activation: str, **kwargs: Any) -> None:
        self._act_type = activation
        super().__init__(**kwargs)

    def _alias(self) -> str:
        return self._act_type

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """Return the activation of every element."""
        return F.Activation(x, act_type=self._act_type, name="fwd")

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._act_type})"


class LeakyReLU(HybridBlock):
    """x where x > 0, otherwise alpha · x.

    Parameters
    ----------
    alpha : float
        At least 0.
    prefix, params
        As for `Block`.

    Raises
    ------
    UsageError
        If `alpha` is negative.

    Example
    -------
    >>> mx.gluon.nn.LeakyReLU(alpha=0.1)(mx.nd.array([-1, 0, 2])).asnumpy()
    array([-0.1,  0. ,  2. ], dtype=float32)
    """

    def __init__(self, alpha: float, **kwargs: Any) -> None:
        if alpha < 0:
            raise UsageError(f"LeakyReLU: alpha must be at least 0, received {alpha}")
        super().__init__(**kwargs)
        self._alpha = alpha

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """Return the activation of every element."""
        return F.LeakyReLU(x, act_type="leaky", slope=self._alpha, name="fwd")

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._alpha})"


class PReLU(HybridBlock):
    """`LeakyReLU` with a slope that is learned.

    Parameters
    ----------
    alpha_initializer : Initializer
    in_channels : int
        One slope for all, or as many as axis 1 has channels.
    prefix, params
        As for `Block`.

    Example
    -------
    >>> layer = mx.gluon.nn.PReLU()
    >>> layer.initialize()
    >>> layer(mx.nd.array([[-1, 0, 2]])).asnumpy()
    array([[-0.25,  0.  ,  2.  ]], dtype=float32)
    """

    def __init__(self, alpha_initializer: Initializer = initializer.Constant(0.25), in_channels: int = 1, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        with self.name_scope():
            self.alpha = self.params.get("alpha", shape=(in_channels,), init=alpha_initializer)

    def hybrid_forward(self, F: Any, x: Any, alpha: Any) -> Any:
        """Return the activation of every element."""
        return F.LeakyReLU(x, gamma=alpha, act_type="prelu", name="fwd")


class ELU(HybridBlock):
    """x where x > 0, otherwise alpha · (exp(x) - 1).

    Parameters
    ----------
    alpha : float
    prefix, params
        As for `Block`.

    Example
    -------
    >>> mx.gluon.nn.ELU(alpha=1)(mx.nd.array([-1, 0, 2])).asnumpy().round(3)
    array([-0.632,  0.   ,  2.   ], dtype=float32)
    """

    def __init__(self, alpha: float = 1.0, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._alpha = alpha

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """Return the activation of every element."""
        return F.LeakyReLU(x, act_type="elu", slope=self._alpha)


class SELU(HybridBlock):
    """The scaled exponential unit of self-normalizing networks (arXiv:1706.02515).

    Parameters
    ----------
    prefix, params
        As for `Block`.

    Example
    -------
    >>> mx.gluon.nn.SELU()(mx.nd.array([-1, 0, 2])).asnumpy().round(3)
    array([-1.111,  0.   ,  2.101], dtype=float32)
    """

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """Return the activation of every element."""
        return F.LeakyReLU(x, act_type="selu", name="fwd")


class GELU(HybridBlock):
    """x times the probability that a standard normal number is below it (arXiv:1606.08415).

    Parameters
    ----------
    approximation : {'erf', 'tanh'}
        The exact function, or ``x · (1 + tanh(sqrt(2 / pi) · (x + 0.044715 · x³))) / 2``.
    prefix, params
        As for `Block`.

    Raises
    ------
    UsageError
        If `approximation` is something else.

    Example
    -------
    >>> mx.gluon.nn.GELU()(mx.nd.array([-1, 0, 2])).asnumpy().round(3)
    array([-0.159,  0.   ,  1.954], dtype=float32)
    """

    def __init__(self, approximation: str = "erf", **kwargs: Any) -> None:
        if approximation not in ("erf", "tanh"):
            raise UsageError(f"GELU: approximation must be 'erf' or 'tanh', received {shortened(approximation)}")
        super().__init__(**kwargs)
        self._act_type = "gelu" if approximation == "erf" else "gelu_tanh"

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """Return the activation of every element."""
        return F.LeakyReLU(x, act_type=self._act_type, name="fwd")


class Swish(HybridBlock):
    """x · sigmoid(beta · x).

    Parameters
    ----------
    beta : float
    prefix, params
        As for `Block`.

    Example
    -------
    >>> mx.gluon.nn.Swish()(mx.nd.array([-1, 0, 2])).asnumpy().round(3)
    array([-0.269,  0.   ,  1.762], dtype=float32)
    """

    def __init__(self, beta: float = 1.0, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._beta = beta

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """Return the activation of every element."""
        return x * F.sigmoid(self._beta * x, name="fwd")


class SiLU(HybridBlock):
    """x · sigmoid(x): `Swish` with a beta of 1.

    Parameters
    ----------
    prefix, params
        As for `Block`.

    Example
    -------
    >>> import mxnet as mx
    >>> mx.gluon.nn.SiLU()(mx.nd.array([0, 100])).asnumpy()
    array([  0., 100.], dtype=float32)
    """

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """Return the activation of every element."""
        return x * F.sigmoid(x, name="fwd")
