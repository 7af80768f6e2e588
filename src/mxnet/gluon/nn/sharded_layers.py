"""Layers whose weights are split over the ranks of a job, and over the contexts of a process."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from ... import ndarray
from ...ops.dtypes import to_torch
from ...suggestions import shortened
from ..block import Block
from ..sharded_inputs import is_number, parts_of, require_count, require_dtype, require_features
from ..sharded_lookup import lookup, product
from ..sharded_parameter import ShardedParameter, ranks
from ..sharded_softmax import ShardedLogits
from ..utils import UsageError

if TYPE_CHECKING:
    from ...initializer import Initializer

__all__ = ["ShardedDense", "ShardedEmbedding"]


class ShardedDense(Block):
    """A fully connected output layer whose units, the classes, are divided among all ranks of the job and all contexts of each.

    A call does not compute: it returns `ShardedLogits` for `mxnet.gluon.loss.ShardedSoftmaxCELoss`, which gathers the features of all ranks and has
    each part compute the logits of its classes. All ranks call the layer's loss, and its backward, alike; batches may differ in size. Without a
    launcher the process is one rank. See ``docs/sharded.md``.

    Parameters
    ----------
    units : int
        The number of classes, at least one for each context of all ranks.
    use_bias : bool
    flatten : bool
        Take all axes but the first as one; otherwise batches must be of two axes.
    dtype : str or numpy type
        Of the parameters: float16, bfloat16, float32 or float64. Logits are float32 at least.
    weight_initializer, bias_initializer : str or Initializer, optional
        Of those that draw or set all elements alike (not `Orthogonal`).
    in_units : int
        The number of inputs; 0 waits for the first batch.
    normalize : bool
        Make logits the cosines of the angles between features and rows of the weight; needs ``use_bias=False``.
    sampled : float
        In training, the fraction of each part's classes that the softmax sums over, above 0 and at most 1: those of the labels, and others drawn at
        random in each call, by the generators that `mxnet.random.seed` sets. Gradients are row_sparse then, so that optimizers with
        ``lazy_update`` change the rows of these classes alone.
    prefix, params
        As for `Block`.

    Raises
    ------
    UsageError
        If an argument is out of range, or a bias meets ``normalize=True``; at a call, if the inputs have another type than the layer, or another
        number of features than the first ones. In a job of several ranks the logits raise this where they are used, so that all ranks get an error.

    Example
    -------
    >>> import mxnet as mx
    >>> layer = mx.gluon.nn.ShardedDense(4, in_units=2, weight_initializer='ones')
    >>> layer.initialize()
    >>> logits = layer(mx.nd.array([[1., 2.]]))
    >>> logits.gather().asnumpy()
    array([[3., 3., 3., 3.]], dtype=float32)
    >>> mx.gluon.loss.ShardedSoftmaxCELoss()(logits, mx.nd.array([1])).asnumpy().round(3)
    array([1.386], dtype=float32)
    """

    _exchanges_rows = True

    def __init__(self, units: int, use_bias: bool = True, flatten: bool = True, dtype: str | type = "float32",
                 weight_initializer: str | Initializer | None = None, bias_initializer: str | Initializer | None = "zeros", in_units: int = 0,
                 normalize: bool = False, sampled: float = 1.0, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        units, in_units = require_count("ShardedDense", "units", units), require_count("ShardedDense", "in_units", in_units, -1)
        require_dtype("ShardedDense", dtype)
        if not is_number(sampled) or not 0 < sampled <= 1:
            raise UsageError(f"ShardedDense: sampled is a fraction above 0 and at most 1, received {shortened(sampled)}")
        if normalize and use_bias:
            raise UsageError("ShardedDense: cosines have no bias; pass use_bias=False with normalize=True")
        self._units, self._flatten, self.normalizes, self.sampled = units, flatten, normalize, float(sampled)
        with self.name_scope():
            self.weight: Any = self.params._get_or_make(ShardedParameter, "weight", {
                "shape": (units, in_units), "init": weight_initializer, "dtype": dtype, "allow_deferred_init": True,
                "grad_stype": "row_sparse" if sampled < 1 else "default"})
            self.bias: Any = self.params._get_or_make(ShardedParameter, "bias", {
                "shape": (units,), "init": bias_initializer, "dtype": dtype, "allow_deferred_init": True}) if use_bias else None

    def forward(self, x: Any) -> ShardedLogits:
        """Return the logits of a batch.

        Parameters
        ----------
        x : NDArray or list of NDArray
            Features of this rank's samples, of shape (batch, in_units), or with more axes for ``flatten=True``, and of the parameters' type; a list
            for parts of the batch on several contexts.
        """
        single, deferred = isinstance(x, ndarray.NDArray), bool(self.weight._deferred_init)
        try:
            parts = self._parts(x)
        except UsageError as error:
            members = ranks()
            if deferred or members.count == 1:  # the others wait in the initialization
                members.fail(f"initialize of {self.weight.name}", error)
            return ShardedLogits(self, [], single, error)
        if deferred:
            self.weight.shape = (self._units, parts[0].shape[1])
            for parameter in (self.weight, *([self.bias] if self.bias is not None else [])):
                parameter._finish_deferred_init()
        if self.normalizes:
            parts = [_unit_length(part) for part in parts]
        return ShardedLogits(self, parts, single)

    def _parts(self, x: Any) -> list[Any]:
        """Return the features, an array of two axes for each part of the batch."""
        parts: list[Any] = []
        for part in parts_of(self.name, x):
            require_features(self.name, part, self.weight.dtype)
            part = part.reshape((part.shape[0], -1)) if self._flatten and part.ndim not in (0, 2) else part
            width = self.weight.shape[1] if self.weight.shape[1] > 0 else parts[0].shape[1] if parts else None
            if part.ndim != 2 or width not in (None, part.shape[1]):
                raise UsageError(f"{self.name}: features of shape (batch, {width or 'in_units'}) expected, received {part.shape}")
            parts.append(part)
        return parts

    def __repr__(self) -> str:
        units, in_units = self.weight.shape
        return f"{type(self).__name__}({in_units or None} -> {units}, split by units)"


def _unit_length(features: Any) -> Any:
    """Return features divided by their norms."""
    if to_torch(features.dtype) != torch.float16:
        return ndarray.L2Normalization(features, eps=1e-24)
    # 1e-24 is 0 in float16, and the gradient of a sample of zeros is as large as its inverse root: those are divided by 1 instead.
    wide = features.astype("float32")
    squares = (wide * wide).sum(axis=1, keepdims=True)
    return (wide / (squares + (squares == 0)) ** 0.5).astype("float16")


class ShardedEmbedding(Block):
    """A vector for each index, or the product of csr batches with the table, whose rows are divided among all ranks and contexts.

    For indices each rank fetches the rows that its batch needs, each once. For csr batches the ranks gather these, multiply each with its rows, and
    add up: this is a first layer for sparse features. Gradients go to the ranks that have the rows, and stay there. All ranks call it, and
    backward, alike.

    Parameters
    ----------
    input_dim : int
        The number of indices, or of features; at least one for each context of all ranks.
    output_dim : int
        The length of the vectors.
    dtype : str or numpy type
    weight_initializer : str or Initializer, optional
        Of those that draw or set all elements alike (not `Orthogonal`).
    sparse_grad : bool
        Make the gradient row_sparse, holding the rows that were used.
    prefix, params
        As for `Block`.

    Raises
    ------
    UsageError
        If an argument is out of range; at a call, if an index is none of the table's, or a csr batch has another number of columns.
    MXNetError
        At a call, on all ranks: if one has another table or kind of batch, or fails.

    Example
    -------
    >>> import mxnet as mx
    >>> layer = mx.gluon.nn.ShardedEmbedding(3, 2)
    >>> layer.initialize()
    >>> layer.weight.set_data(mx.nd.array([[1, 2], [3, 4], [5, 6]]))
    >>> layer(mx.nd.array([2, 0])).asnumpy()
    array([[5., 6.],
           [1., 2.]], dtype=float32)
    >>> layer(mx.nd.sparse.csr_matrix(([1, 1], [0, 2], [0, 2]), shape=(1, 3))).asnumpy()
    array([[6., 8.]], dtype=float32)
    """

    _exchanges_rows = True

    def __init__(self, input_dim: int, output_dim: int, dtype: str | type = "float32", weight_initializer: str | Initializer | None = None,
                 sparse_grad: bool = True, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        input_dim, output_dim = require_count("ShardedEmbedding", "input_dim", input_dim), require_count("ShardedEmbedding", "output_dim", output_dim)
        require_dtype("ShardedEmbedding", dtype, computes=False)
        with self.name_scope():
            self.weight: Any = self.params._get_or_make(ShardedParameter, "weight", {
                "shape": (input_dim, output_dim), "init": weight_initializer, "dtype": dtype,
                "grad_stype": "row_sparse" if sparse_grad else "default"})

    def forward(self, x: Any) -> Any:
        """Return the vectors of indices, of shape (*x.shape, output_dim), or the products of csr rows, of shape (batch, output_dim).

        Parameters
        ----------
        x : NDArray, CSRNDArray, or list of them
            Of this rank's samples: whole numbers of any type and shape, or csr batches of shape (batch, input_dim). A list, for parts of the batch on
            several contexts, gives a list.
        """
        try:
            parts = parts_of(self.name, x)
            sparse = [part.stype == "csr" for part in parts]
            if any(sparse) and not all(sparse):
                raise UsageError(f"{self.name}: the parts of a batch are all csr, or all dense, received {[part.stype for part in parts]}")
        except UsageError as error:
            ranks().fail(f"call of {self.name}", error)
        results = (product if all(sparse) else lookup)(self.weight, parts)
        return results[0] if isinstance(x, ndarray.NDArray) else results

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.weight.shape[0]} -> {self.weight.shape[1]}, split by rows)"
