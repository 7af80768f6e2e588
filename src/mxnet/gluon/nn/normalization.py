"""Normalization layers."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...util import version
from ..hybrid_block import HybridBlock

if TYPE_CHECKING:
    from ...initializer import Initializer
    from ..parameter import Parameter
    from ..parameter_dict import ParameterDict

__all__ = ["BatchNorm", "BatchNormReLU", "InstanceNorm", "LayerNorm", "GroupNorm"]


def _options(kwargs: dict[str, Any]) -> str:
    """Return a layer's options as its repr shows them."""
    return ", ".join(f"{name}={value!r}" for name, value in kwargs.items())


class _Normalization(HybridBlock):
    """The base of the layers: a factor `gamma` and an offset `beta`, with a number for each channel."""

    _kwargs: dict[str, Any]
    gamma: Parameter
    beta: Parameter

    def _scale_and_offset(self, size: int, gamma_initializer: str | Initializer, beta_initializer: str | Initializer, scale: bool, center: bool,
                          fixed: bool = False) -> None:
        """Make `gamma` and `beta`. Where one is not wanted its `grad_req` is ``'null'``, for good if `fixed`."""
        for name, init, learned in (("gamma", gamma_initializer, scale), ("beta", beta_initializer, center)):
            setattr(self, name, self.params.get(name, grad_req="write" if learned else "null", shape=(size,), init=init,
                                                allow_deferred_init=True, differentiable=learned or not fixed))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({_options(self._kwargs)}, in_channels={self.gamma.shape[0]})"


class _BatchNorm(_Normalization):
    def __init__(self, axis: int = 1, momentum: float = 0.9, epsilon: Any = 1e-5, center: bool = True, scale: Any = True,
                 use_global_stats: bool = False, fuse_relu: bool = False, beta_initializer: str | Initializer = "zeros",
                 gamma_initializer: str | Initializer = "ones", running_mean_initializer: str | Initializer = "zeros",
                 running_variance_initializer: str | Initializer = "ones", in_channels: int = 0, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._kwargs = {"axis": axis, "eps": epsilon, "momentum": momentum, "fix_gamma": not scale, "use_global_stats": use_global_stats}
        self.fuse_relu = fuse_relu
        if in_channels:
            self.in_channels = in_channels
        self._scale_and_offset(in_channels, gamma_initializer, beta_initializer, scale, center, fixed=True)
        self.running_mean = self.params.get("running_mean", grad_req="null", shape=(in_channels,), init=running_mean_initializer,
                                            allow_deferred_init=True, differentiable=False)
        self.running_var = self.params.get("running_var", grad_req="null", shape=(in_channels,), init=running_variance_initializer,
                                           allow_deferred_init=True, differentiable=False)

    def cast(self, dtype: Any) -> None:
        """Convert all parameters to another type; to float32 where half precision is asked for, which is not accurate enough."""
        super().cast("float32" if str(getattr(dtype, "__name__", dtype)) in ("float16", "bfloat16") else dtype)

    def hybrid_forward(self, F: Any, x: Any, gamma: Any, beta: Any, running_mean: Any, running_var: Any) -> Any:
        """Return the normalized array."""
        normalize = F.contrib.BatchNormWithReLU if self.fuse_relu else F.BatchNorm
        return normalize(x, gamma, beta, running_mean, running_var, name="fwd", **self._kwargs)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({_options(self._kwargs)}, in_channels={self.gamma.shape[0] or None})"


class BatchNorm(_BatchNorm):
    """Normalizes each channel to mean 0 and variance 1 over the batch; outside of training by the running mean and variance.

    Parameters
    ----------
    axis : int
        The axis of the channels.
    momentum : float
        The share of the running mean and variance that a training step keeps.
    epsilon : float
        Added to the variance.
    center, scale : bool
        Add `beta`; multiply by `gamma`.
    use_global_stats : bool
        Use the running mean and variance in training too.
    beta_initializer, gamma_initializer, running_mean_initializer, running_variance_initializer : str or Initializer
    in_channels : int
        0 waits for the first batch.
    prefix, params
        As for `Block`.

    Example
    -------
    >>> layer = mx.gluon.nn.BatchNorm()
    >>> layer.initialize()
    >>> with mx.autograd.record():
    ...     y = layer(mx.nd.array([[1], [3]]))
    >>> y.asnumpy().round(3)
    array([[-1.],
           [ 1.]], dtype=float32)
    """

    def __init__(self, axis: int = 1, momentum: float = 0.9, epsilon: float = 1e-5, center: bool = True, scale: bool = True,
                 use_global_stats: bool = False, beta_initializer: str | Initializer = "zeros", gamma_initializer: str | Initializer = "ones",
                 running_mean_initializer: str | Initializer = "zeros", running_variance_initializer: str | Initializer = "ones",
                 in_channels: int = 0, **kwargs: Any) -> None:
        super().__init__(axis, momentum, epsilon, center, scale, use_global_stats, False, beta_initializer, gamma_initializer,
                         running_mean_initializer, running_variance_initializer, in_channels, **kwargs)


class BatchNormReLU(_BatchNorm):
    """`BatchNorm` followed by ReLU.

    Parameters
    ----------
    axis, momentum, epsilon, center, scale, use_global_stats, beta_initializer, gamma_initializer, running_mean_initializer, \
running_variance_initializer, in_channels, prefix, params
        As for `BatchNorm`.

    Example
    -------
    >>> layer = mx.gluon.nn.BatchNormReLU()
    >>> layer.initialize()
    >>> with mx.autograd.record():
    ...     y = layer(mx.nd.array([[1], [3]]))
    >>> y.asnumpy().round(3)
    array([[0.],
           [1.]], dtype=float32)
    """

    def __init__(self, axis: int = 1, momentum: float = 0.9, epsilon: Any = 1e-5, center: bool = True, scale: Any = True,
                 use_global_stats: bool = False, beta_initializer: str = "zeros", gamma_initializer: str = "ones",
                 running_mean_initializer: str = "zeros", running_variance_initializer: str = "ones", in_channels: int = 0, **kwargs: Any) -> None:
        super().__init__(axis, momentum, epsilon, center, scale, use_global_stats, True, beta_initializer, gamma_initializer,
                         running_mean_initializer, running_variance_initializer, in_channels, **kwargs)


class InstanceNorm(_Normalization):
    """Normalizes each channel of each sample to mean 0 and variance 1.

    Parameters
    ----------
    axis : int
        The axis of the channels.
    epsilon : float
        Added to the variance.
    center, scale : bool
        True to learn `beta` and `gamma`.
    beta_initializer, gamma_initializer : str or Initializer
    in_channels : int
        0 waits for the first batch.
    prefix, params
        As for `Block`.

    Example
    -------
    >>> layer = mx.gluon.nn.InstanceNorm()
    >>> layer.initialize()
    >>> layer(mx.nd.array([[[1, 3], [10, 20]]])).asnumpy().round(2)
    array([[[-1.,  1.],
            [-1.,  1.]]], dtype=float32)
    """

    def __init__(self, axis: int = 1, epsilon: float = 1e-5, center: bool = True, scale: bool = False, beta_initializer: str | Initializer = "zeros",
                 gamma_initializer: str | Initializer = "ones", in_channels: int = 0, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._kwargs = {"eps": epsilon, "axis": axis, "center": center, "scale": scale}
        self._axis, self._epsilon = axis, epsilon
        self._scale_and_offset(in_channels, gamma_initializer, beta_initializer, scale, center)

    def hybrid_forward(self, F: Any, x: Any, gamma: Any, beta: Any) -> Any:
        """Return the normalized array."""
        if self._axis == 1:
            return F.InstanceNorm(x, gamma, beta, name="fwd", eps=self._epsilon)
        out = F.InstanceNorm(F.swapaxes(x, dim1=1, dim2=self._axis), gamma, beta, name="fwd", eps=self._epsilon)
        return F.swapaxes(out, dim1=1, dim2=self._axis)


class LayerNorm(_Normalization):
    """Normalizes along one axis to mean 0 and variance 1.

    Parameters
    ----------
    axis : int
    epsilon : float
        Added to the variance.
    center, scale : bool
        True to learn `beta` and `gamma`.
    beta_initializer, gamma_initializer : str or Initializer
    in_channels : int
        0 waits for the first batch.
    prefix, params
        As for `Block`.

    Example
    -------
    >>> layer = mx.gluon.nn.LayerNorm()
    >>> layer.initialize()
    >>> layer(mx.nd.array([[1, 3], [10, 20]])).asnumpy().round(2)
    array([[-1.,  1.],
           [-1.,  1.]], dtype=float32)
    """

    def __init__(self, axis: int = -1, epsilon: float = 1e-5, center: bool = True, scale: bool = True, beta_initializer: str | Initializer = "zeros",
                 gamma_initializer: str | Initializer = "ones", in_channels: int = 0, prefix: str | None = None,
                 params: ParameterDict | None = None) -> None:
        super().__init__(prefix=prefix, params=params)
        self._kwargs = {"eps": epsilon, "axis": axis, "center": center, "scale": scale}
        self._axis, self._epsilon, self._center, self._scale = axis, epsilon, center, scale
        self._scale_and_offset(in_channels, gamma_initializer, beta_initializer, scale, center)

    def hybrid_forward(self, F: Any, data: Any, gamma: Any, beta: Any) -> Any:
        """Return the normalized array."""
        return F.LayerNorm(data, gamma=gamma, beta=beta, axis=self._axis, eps=self._epsilon)


class GroupNorm(_Normalization):
    """Normalizes each group of channels of each sample to mean 0 and variance 1; channels are axis 1.

    Parameters
    ----------
    num_groups : int
    epsilon : float
        Added to the variance.
    center, scale : bool
        True to learn `beta` and `gamma`; they have a number for each group, or with `in_channels` for each channel.
    beta_initializer, gamma_initializer : str or Initializer
    in_channels : int, optional
        The number of channels, 0 to infer it from the first batch: then, as in MXNet 2, each has a factor of its own. This is the default after
        ``mx.util.set_version('2.0')``.
    prefix, params
        As for `Block`.

    Example
    -------
    >>> layer = mx.gluon.nn.GroupNorm(num_groups=2)
    >>> layer.initialize()
    >>> layer(mx.nd.array([[[1, 3], [1, 3], [10, 20], [10, 20]]])).asnumpy().round(2)
    array([[[-1.,  1.],
            [-1.,  1.],
            [-1.,  1.],
            [-1.,  1.]]], dtype=float32)
    """

    def __init__(self, num_groups: int = 1, epsilon: float = 1e-5, center: bool = True, scale: bool = True,
                 beta_initializer: str | Initializer = "zeros", gamma_initializer: str | Initializer = "ones", prefix: str | None = None,
                 params: ParameterDict | None = None, in_channels: int | None = None) -> None:
        super().__init__(prefix=prefix, params=params)
        self._kwargs = {"eps": epsilon, "num_groups": num_groups, "center": center, "scale": scale}
        self._num_groups, self._epsilon, self._center, self._scale = num_groups, epsilon, center, scale
        if in_channels is None and version() == "2.0":
            in_channels = 0
        self._by_channel = in_channels is not None
        self._scale_and_offset(num_groups if in_channels is None else in_channels, gamma_initializer, beta_initializer, scale, center)

    def hybrid_forward(self, F: Any, data: Any, gamma: Any, beta: Any) -> Any:
        """Return the normalized array."""
        if self._by_channel:
            return F.contrib.group_norm(data, gamma=gamma, beta=beta, num_groups=self._num_groups, eps=self._epsilon)
        return F.GroupNorm(data, gamma=gamma, beta=beta, num_groups=self._num_groups, eps=self._epsilon)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({_options(self._kwargs)})"
