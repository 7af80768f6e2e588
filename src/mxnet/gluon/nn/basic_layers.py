"""Containers and the basic layers."""
from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ... import ndarray, symbol
from ...util import version
from ..block import Block, describe_blocks
from ..hybrid_block import HybridBlock
from ..utils import UsageError
from .activations import Activation
from .normalization import BatchNorm, BatchNormReLU, GroupNorm, InstanceNorm, LayerNorm

if TYPE_CHECKING:
    from ...initializer import Initializer
    from ..parameter_dict import ParameterDict

__all__ = ["Sequential", "HybridSequential", "Dense", "Dropout", "Embedding", "BatchNorm", "BatchNormReLU", "InstanceNorm", "LayerNorm",
           "GroupNorm", "Flatten", "Lambda", "HybridLambda"]


class _Stack(Block):
    """The base of `Sequential` and `HybridSequential`: children that run one after the other."""

    _has_row = False

    def add(self, *blocks: Block) -> None:
        """Append blocks."""
        for block in blocks:
            self.register_child(block)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(\n{describe_blocks(self._children)}\n)"

    def __getitem__(self, key: int | slice) -> Any:
        children = list(self._children.values())[key]
        if not isinstance(children, list):
            return children
        part = type(self)(prefix=self._prefix)
        with part.name_scope():
            part.add(*children)
        return part

    def __len__(self) -> int:
        return len(self._children)

    def _chain(self, x: Any):
        for block in self._children.values():
            x = block(x)
        return x


class Sequential(_Stack, Block):
    """Blocks that pass on their output to the next; the blocks may be of any kind.

    Parameters
    ----------
    prefix, params
        As for `Block`.

    Example
    -------
    >>> import mxnet as mx
    >>> nn = mx.gluon.nn
    >>> net = nn.Sequential()
    >>> net.add(nn.Dense(10, activation='relu'), nn.Dense(2))
    >>> len(net), net[1]
    (2, Dense(None -> 2, linear))
    """

    def __init__(self, prefix: str | None = None, params: ParameterDict | None = None) -> None:
        super().__init__(prefix=prefix, params=params)

    def forward(self, x: Any) -> Any:
        """Return the output of the last block."""
        return self._chain(x)

    def hybridize(self, active: bool = True, **kwargs: Any) -> None:
        """Hybridize the children that are HybridBlocks; see `HybridBlock.hybridize`."""
        if self._children and all(isinstance(child, HybridBlock) for child in self._children.values()):
            warnings.warn(f"Sequential '{self.prefix}' has only HybridBlocks: as a HybridSequential it runs faster, as one graph", stacklevel=2)
        super().hybridize(active, **kwargs)


class HybridSequential(_Stack, HybridBlock):
    """Blocks that pass on their output to the next, all of them HybridBlocks.

    Parameters
    ----------
    prefix, params
        As for `Block`.
    """

    def __init__(self, prefix: str | None = None, params: ParameterDict | None = None) -> None:
        super().__init__(prefix=prefix, params=params)

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """Return the output of the last block."""
        return self._chain(x)


class Dense(HybridBlock):
    """A fully connected layer: activation(x · weightᵀ + bias).

    Parameters
    ----------
    units : int
        The number of outputs.
    activation : str, optional
        See `Activation`; none by default.
    use_bias : bool
    flatten : bool
        Take all axes but the first as one; otherwise the layer works on the last axis.
    dtype : str or numpy type
        Of the parameters.
    weight_initializer, bias_initializer : str or Initializer, optional
    in_units : int
        The number of inputs; 0 waits for the first batch.
    prefix, params
        As for `Block`.

    Example
    -------
    >>> import mxnet as mx
    >>> layer = mx.gluon.nn.Dense(2)
    >>> layer.initialize()
    >>> layer(mx.nd.ones((4, 3, 5))).shape, layer.weight.shape
    ((4, 2), (2, 15))
    """

    def __init__(self, units: int, activation: str | None = None, use_bias: bool = True, flatten: bool = True, dtype: str | type = "float32",
                 weight_initializer: str | Initializer | None = None, bias_initializer: str | Initializer | None = "zeros", in_units: int = 0,
                 **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._units, self._in_units, self._flatten = units, in_units, flatten
        with self.name_scope():
            self.weight = self.params.get("weight", shape=(units, in_units), init=weight_initializer, dtype=dtype, allow_deferred_init=True)
            self.bias = self.params.get("bias", shape=(units,), init=bias_initializer, dtype=dtype,
                                        allow_deferred_init=True) if use_bias else None
            self.act = Activation(activation, prefix=f"{activation}_") if activation is not None else None

    def hybrid_forward(self, F: Any, x: Any, weight: Any, bias: Any = None) -> Any:
        """Return the outputs, of shape (batch, units), or (..., units) without `flatten`."""
        out = F.FullyConnected(x, weight, bias, no_bias=bias is None, num_hidden=self._units, flatten=self._flatten, name="fwd")
        return self.act(out) if self.act is not None else out

    def __repr__(self) -> str:
        units, in_units = self.weight.shape
        return f"{type(self).__name__}({in_units or None} -> {units}, {self.act or 'linear'})"


class Dropout(HybridBlock):
    """Sets elements to 0 at random in training, and scales up the others.

    Parameters
    ----------
    rate : float
        The fraction of elements to drop.
    axes : tuple of int
        Axes along which all elements share one fate.
    prefix, params
        As for `Block`.
    """

    def __init__(self, rate: float, axes: tuple[int, ...] = (), **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._rate, self._axes = rate, axes

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """Return an array of the same shape."""
        return F.Dropout(x, p=self._rate, axes=self._axes, name="fwd", cudnn_off=False) if self._rate > 0 else F.identity(x)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(p = {self._rate}, axes={self._axes})"


class Embedding(HybridBlock):
    """A vector for each index.

    Parameters
    ----------
    input_dim : int
        The number of indices.
    output_dim : int
        The length of the vectors.
    dtype : str or numpy type
    weight_initializer : str or Initializer, optional
    sparse_grad : bool
        Make the gradient row_sparse, holding the rows that were looked up.
    prefix, params
        As for `Block`.
    """

    def __init__(self, input_dim: int, output_dim: int, dtype: str | type = "float32", weight_initializer: str | Initializer | None = None,
                 sparse_grad: bool = False, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._kwargs = {"input_dim": input_dim, "output_dim": output_dim, "dtype": dtype, "sparse_grad": sparse_grad}
        self.weight = self.params.get("weight", shape=(input_dim, output_dim), init=weight_initializer, dtype=dtype,
                                      allow_deferred_init=True, grad_stype="row_sparse" if sparse_grad else "default")

    def hybrid_forward(self, F: Any, x: Any, weight: Any) -> Any:
        """Return the vectors, of shape (*x.shape, output_dim)."""
        return F.Embedding(x, weight, name="fwd", **self._kwargs)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._kwargs['input_dim']} -> {self._kwargs['output_dim']}, {self._kwargs['dtype']})"


class Flatten(HybridBlock):
    """Joins all axes but the first into one.

    Parameters
    ----------
    prefix, params
        As for `Block`.
    """

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """Return an array of two axes."""
        return F.flatten(x)

    def __repr__(self) -> str:
        return type(self).__name__


class Lambda(Block):
    """A function as a block.

    Parameters
    ----------
    function : str or callable
        The name of an operator of ``mx.nd``, or a function of arrays.
    prefix : str, optional

    Raises
    ------
    UsageError
        If there is no operator of that name.
    ValueError
        If `function` is neither.

    Example
    -------
    >>> import mxnet as mx
    >>> mx.gluon.nn.Lambda(lambda x: x * 2)(mx.nd.ones((1,))).asscalar()
    np.float32(2.0)
    """

    def __init__(self, function: str | Callable[..., Any], prefix: str | None = None) -> None:
        super().__init__(prefix=prefix)
        if isinstance(function, str):
            if not hasattr(ndarray, function):
                raise UsageError(f"Function name {function} is not found in ndarray.")
            function = getattr(ndarray, function)
        elif not callable(function):
            raise ValueError(f"Unrecognized function in lambda: {function} of type {type(function)}")
        self._func_impl: Any = function

    def forward(self, *args: Any) -> Any:
        """Return the function's result."""
        return self._func_impl(*args)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._func_impl.__name__})"


class HybridLambda(HybridBlock):
    """A function as a block that can be hybridized.

    Parameters
    ----------
    function : str or callable
        The name of an operator, or a function ``function(F, x, *args)`` as in `hybrid_forward`. After ``mx.util.set_version('2.0')`` a function whose
        first parameter is not called F is called as ``function(x, *args)``, as in MXNet 2.
    prefix : str, optional

    Raises
    ------
    UsageError
        If there is no operator of that name.
    ValueError
        If `function` is neither.
    """

    def __init__(self, function: str | Callable[..., Any], prefix: str | None = None) -> None:
        super().__init__(prefix=prefix)
        self._plain = callable(function) and version() == "2.0" and next(iter(inspect.signature(function).parameters), "") != "F"
        if isinstance(function, str):
            if not (hasattr(ndarray, function) and hasattr(symbol, function)):
                raise UsageError(f"Function name {function} is not found in symbol/ndarray.")
            self._func, self._func_name = lambda F, *args: getattr(F, function)(*args), function
        elif callable(function):
            self._func, self._func_name = function, function.__name__
        else:
            raise ValueError(f"Unrecognized function in lambda: {function} of type {type(function)}")

    def _is_plain(self) -> bool:
        return self._plain

    def forward(self, x: Any, *args: Any) -> Any:
        """Return the function's result."""
        return self._func(x, *args) if self._plain else super().forward(x, *args)

    def hybrid_forward(self, F: Any, x: Any, *args: Any) -> Any:
        """Return the function's result."""
        return self._func(F, x, *args)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._func_name})"
