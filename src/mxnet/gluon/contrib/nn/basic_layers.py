"""Containers side by side, and layers for particular purposes."""
from __future__ import annotations

import warnings
from typing import Any

from .... import ndarray
from ....context import num_gpus
from ...block import Block
from ...hybrid_block import HybridBlock
from ...nn import BatchNorm, HybridSequential, Sequential
from ...utils import UsageError

__all__ = ["Concurrent", "HybridConcurrent", "Identity", "SparseEmbedding", "SyncBatchNorm", "PixelShuffle1D", "PixelShuffle2D",
           "PixelShuffle3D"]


class Concurrent(Sequential):
    """Blocks that all get the same input; their outputs are concatenated.

    Parameters
    ----------
    axis : int
        The axis to concatenate along.
    prefix, params
        As for `Block`.

    Example
    -------
    >>> import mxnet as mx
    >>> net = mx.gluon.contrib.nn.Concurrent()
    >>> net.add(mx.gluon.nn.Dense(2), mx.gluon.nn.Dense(3))
    >>> net.initialize()
    >>> net(mx.nd.ones((4, 1))).shape
    (4, 5)
    """

    def __init__(self, axis: int = -1, prefix: str | None = None, params: Any = None):
        super().__init__(prefix=prefix, params=params)
        self.axis = axis

    def forward(self, x: Any) -> Any:
        """Return the outputs of all blocks, concatenated."""
        return ndarray.concat(*[block(x) for block in self._children.values()], dim=self.axis)


class HybridConcurrent(HybridSequential):
    """HybridBlocks that all get the same input; their outputs are concatenated.

    Parameters
    ----------
    axis : int
        The axis to concatenate along.
    prefix, params
        As for `Block`.

    Example
    -------
    >>> net = mx.gluon.contrib.nn.HybridConcurrent(axis=1)
    >>> net.add(mx.gluon.nn.Activation('relu'), mx.gluon.contrib.nn.Identity())
    >>> net(mx.nd.array([[-1, 2]])).asnumpy()
    array([[ 0.,  2., -1.,  2.]], dtype=float32)
    """

    def __init__(self, axis: int = -1, prefix: str | None = None, params: Any = None):
        super().__init__(prefix=prefix, params=params)
        self.axis = axis

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """Return the outputs of all blocks, concatenated."""
        return F.concat(*[block(x) for block in self._children.values()], dim=self.axis)


class Identity(HybridBlock):
    """Returns its input unchanged, such as beside other branches of `HybridConcurrent`.

    Parameters
    ----------
    prefix, params
        As for `Block`.

    Example
    -------
    >>> mx.gluon.contrib.nn.Identity()(mx.nd.array([1, 2])).asnumpy()
    array([1., 2.], dtype=float32)
    """

    def __init__(self, prefix: str | None = None, params: Any = None):
        super().__init__(prefix=prefix, params=params)

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """Return the input."""
        return x


class SparseEmbedding(Block):
    """`Embedding` whose weight and gradient are row_sparse; a kvstore holds the weight, and only the rows in use are fetched.

    Parameters
    ----------
    input_dim : int
        The number of indices.
    output_dim : int
        The length of the vectors.
    dtype : str or numpy type
    weight_initializer : str or Initializer, optional
    prefix, params
        As for `Block`.

    Example
    -------
    >>> net = mx.gluon.contrib.nn.SparseEmbedding(input_dim=10, output_dim=3)
    >>> net.initialize(mx.init.One())
    >>> trainer = mx.gluon.Trainer(net.collect_params(), 'sgd')
    >>> with mx.autograd.record():
    ...     y = net(mx.nd.array([7, 2]))
    >>> y.backward()
    >>> net.weight.grad().indices.asnumpy()
    array([2, 7])
    """

    def __init__(self, input_dim: int, output_dim: int, dtype: str = "float32", weight_initializer: Any = None, **kwargs: Any):
        super().__init__(**kwargs)
        self._kwargs: dict[str, Any] = {"input_dim": input_dim, "output_dim": output_dim, "dtype": dtype, "sparse_grad": True}
        self.weight = self.params.get("weight", shape=(input_dim, output_dim), init=weight_initializer, dtype=dtype,
                                      grad_stype="row_sparse", stype="row_sparse")

    def forward(self, x: Any) -> Any:
        """Return the vectors, of shape (*x.shape, output_dim)."""
        return ndarray.Embedding(x, self.weight.row_sparse_data(x), name="fwd", **self._kwargs)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._kwargs['input_dim']} -> {self._kwargs['output_dim']}, {self._kwargs['dtype']})"


class SyncBatchNorm(BatchNorm):
    """`BatchNorm` over the batches of several devices together, each of which runs forward and backward in a thread of its own.

    Called for one device after another in one thread, it takes each one's own statistics, and warns.

    Parameters
    ----------
    in_channels : int
        0 waits for the first batch.
    num_devices : int, optional
        All GPUs by default.
    momentum, epsilon, center, scale, use_global_stats, beta_initializer, gamma_initializer, running_mean_initializer, \
running_variance_initializer, prefix, params
        As for `BatchNorm`; the channels are axis 1.

    Example
    -------
    >>> layer = mx.gluon.contrib.nn.SyncBatchNorm(in_channels=1, num_devices=1)
    >>> layer.initialize()
    >>> with mx.autograd.record():
    ...     y = layer(mx.nd.array([[1], [3]]))
    >>> y.asnumpy().round(3)
    array([[-1.],
           [ 1.]], dtype=float32)
    """

    def __init__(self, in_channels: int = 0, num_devices: int | None = None, momentum: float = 0.9, epsilon: float = 1e-5, center: bool = True,
                 scale: bool = True, use_global_stats: bool = False, beta_initializer: Any = "zeros", gamma_initializer: str = "ones",
                 running_mean_initializer: Any = "zeros", running_variance_initializer: str = "ones", **kwargs: Any):
        super().__init__(1, momentum, epsilon, center, scale, use_global_stats, beta_initializer, gamma_initializer,
                         running_mean_initializer, running_variance_initializer, in_channels, **kwargs)
        if num_devices is None:
            num_devices = self._get_num_devices()
        self._kwargs = {"eps": epsilon, "momentum": momentum, "fix_gamma": not scale, "use_global_stats": use_global_stats,
                        "ndev": num_devices, "key": self.prefix}

    def _get_num_devices(self):
        warnings.warn("SyncBatchNorm counts on all GPUs; pass num_devices if you train on fewer", UserWarning, stacklevel=3)
        return max(num_gpus(), 1)

    def hybrid_forward(self, F: Any, x: Any, gamma: Any, beta: Any, running_mean: Any, running_var: Any) -> Any:
        """Return the normalized array."""
        return F.contrib.SyncBatchNorm(x, gamma, beta, running_mean, running_var, name="fwd", **self._kwargs)


class _PixelShuffle(HybridBlock):
    """Pixel shuffle: moves groups of channels into space, (N, C·f₁·…·fₙ, D₁, …, Dₙ) becomes (N, C, D₁·f₁, …, Dₙ·fₙ).

    Parameters
    ----------
    factor : int or tuple of int
        f₁, …, fₙ.
    """

    _ndim = 1

    def __init__(self, factor):
        super().__init__()
        try:
            factors = (int(factor),) * self._ndim
        except TypeError:
            factors = tuple(int(f) for f in factor)
        if len(factors) != self._ndim:
            raise UsageError(f"{type(self).__name__}: `factor` must be a number or {self._ndim} of them, wrong length {len(factors)}")
        self._factors = factors

    def hybrid_forward(self, F, x):
        """Return the larger array."""
        # Reshape codes: -4 splits an axis, -3 joins two, 0 keeps one. The factors come out of the channels one at a time, the
        # last one first, and each joins its axis of space at once, so that no array has more axes than transpose takes.
        n = self._ndim
        for i, factor in reversed(list(enumerate(self._factors))):
            x = F.reshape(x, shape=(0, -4, -1, factor) + (0,) * n)
            axes = list(range(n + 3))
            axes.remove(2)
            axes.insert(axes.index(3 + i) + 1, 2)
            x = F.transpose(x, axes=tuple(axes))
            x = F.reshape(x, shape=(0, 0) + (0,) * i + (-3,) + (0,) * (n - 1 - i))
        return x

    def __repr__(self):
        return f"{type(self).__name__}({self._factors if self._ndim > 1 else self._factors[0]})"


class PixelShuffle1D(_PixelShuffle):
    """Pixel shuffle: moves groups of channels into space, (N, C·f, W) becomes (N, C, W·f).

    Parameters
    ----------
    factor : int
        f.

    Example
    -------
    >>> import mxnet as mx
    >>> mx.gluon.contrib.nn.PixelShuffle1D(2)(mx.nd.array([[[0, 1], [2, 3]]])).asnumpy()
    array([[[0., 2., 1., 3.]]], dtype=float32)
    """


class PixelShuffle2D(_PixelShuffle):
    """Pixel shuffle: moves groups of channels into space, (N, C·f₁·f₂, H, W) becomes (N, C, H·f₁, W·f₂).

    Parameters
    ----------
    factor : int or tuple of 2 int
        f₁ and f₂.

    Example
    -------
    >>> mx.gluon.contrib.nn.PixelShuffle2D((2, 3))(mx.nd.ones((1, 12, 3, 5))).shape
    (1, 2, 6, 15)
    """

    _ndim = 2


class PixelShuffle3D(_PixelShuffle):
    """Pixel shuffle: moves groups of channels into space, (N, C·f₁·f₂·f₃, D, H, W) becomes (N, C, D·f₁, H·f₂, W·f₃).

    Parameters
    ----------
    factor : int or tuple of 3 int
        f₁, f₂ and f₃.

    Example
    -------
    >>> mx.gluon.contrib.nn.PixelShuffle3D(2)(mx.nd.ones((1, 16, 2, 3, 4))).shape
    (1, 2, 4, 6, 8)
    """

    _ndim = 3
