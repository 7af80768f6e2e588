"""Layers of training graphs: a kernel computes them, or the operator's own function where the kernel does not fit."""
import abc
import math
from collections.abc import Sequence
from typing import Any, NamedTuple, Optional

import torch

from ...kernels.conv import convolution as direct
from ...kernels.gemm import mlp_training
from ...kernels.nn import batch_norm as fused
from ...kernels.nn import batch_norm_on_gpu as fused_on_gpu
from ...kernels.nn import bias_on_gpu, max_pooling_on_gpu
from ...kernels.nn import softmax as softmax_kernels
from ..indexing import pick
from ..reduce import mean, reduced_axes
from .activation import activation
from .convolution import convolution
from .dense import fully_connected
from .normalization import batch_norm as batch_norm_operator
from .pooling import pooling
from .softmax import log_softmax


class ExplicitLayer(abc.ABC):
    """A layer that also computes its gradients by functions of its own, without torch's autograd.

    Attributes
    ----------
    writes : tuple of int
        The numbers of the inputs to which a call writes.
    recorded_where_unfit : bool
        True if a call that no kernel takes is recorded by torch alone; otherwise the whole graph is.
    """

    writes: tuple[int, ...] = ()
    recorded_where_unfit = False

    @abc.abstractmethod
    def __call__(self, *inputs: Any, **attributes: Any) -> torch.Tensor:
        """Return the result, recorded by torch if torch records."""

    @abc.abstractmethod
    def saving(self, *inputs: Any, **attributes: Any) -> Any:
        """Return the result and what `gradients` needs, recording nothing; None, before anything is written, if no kernel takes these inputs."""

    @abc.abstractmethod
    def gradients(self, saved: Any, dout: torch.Tensor, wanted: Sequence[bool],
                  memory: Sequence[Optional[torch.Tensor]]) -> Optional[Sequence[Optional[torch.Tensor]]]:
        """Return new gradients of the inputs, None for those not wanted; None if no kernel takes `dout`.

        `memory` has a tensor, or None, for each, in which the gradient may be written.
        """


class ConvolutionLayer(direct.Layer, ExplicitLayer):
    """``Convolution`` in two dimensions and one group, by the fastest algorithm for the shapes; the attributes are those of the operator."""

    __name__ = "convolution"  # the name in generated code and profiles
    recorded_where_unfit = True

    def __call__(self, data: torch.Tensor, weight: torch.Tensor, bias: Optional[torch.Tensor] = None,
                 **attributes: Any) -> torch.Tensor:
        out = direct.convolution(data, weight, bias, self, **attributes)
        return convolution.fn(data, direct.cast(weight, data), direct.cast(bias, data), **attributes) if out is None else out

    def saving(self, data: torch.Tensor, weight: torch.Tensor, bias: Optional[torch.Tensor] = None,
               **attributes: Any) -> Any:
        return direct.saving(self, data, weight, bias, **attributes)

    def gradients(self, saved: Any, dout: torch.Tensor, wanted: Sequence[bool],
                  memory: Sequence[Optional[torch.Tensor]]) -> Optional[Sequence[Optional[torch.Tensor]]]:
        return direct.gradients(self, saved, dout, wanted)


class BatchNorm(ExplicitLayer):
    """``relu(BatchNorm(data + bias) + residual)``; `bias` (C,), `residual` and `relu` are optional. Other attributes are those of the operator."""

    __name__ = "batch_norm"  # the name in generated code and profiles
    writes = (3, 4)
    recorded_where_unfit = True

    def __call__(self, data: torch.Tensor, gamma: torch.Tensor, beta: torch.Tensor, moving_mean: torch.Tensor,
                 moving_var: torch.Tensor, residual: Optional[torch.Tensor] = None, *, bias: Optional[torch.Tensor] = None, relu: bool = False,
                 training: bool = False, **attributes: Any) -> torch.Tensor:
        out = None
        if training and data.is_cuda:
            out = fused_on_gpu.batch_norm(data, gamma, beta, moving_mean, moving_var, residual, bias=bias, relu=relu, **attributes)
        if out is None and bias is not None:
            data = data + bias.to(data.dtype).view(data.shape[1], *[1] * (data.dim() - 2))
        if training and not data.is_cuda:
            out = fused.batch_norm(data, gamma, beta, moving_mean, moving_var, residual, relu=relu, **attributes)
        if out is None:
            out = batch_norm_operator.fn(data, gamma, beta, moving_mean, moving_var, training=training, **attributes)
            out = out if residual is None else out + residual
            out = torch.relu_(out) if relu else out  # no gradient reads the overwritten values
        return out

    def saving(self, data: torch.Tensor, gamma: torch.Tensor, beta: torch.Tensor, moving_mean: torch.Tensor,
               moving_var: torch.Tensor, residual: Optional[torch.Tensor] = None, *, training: bool = False, **attributes: Any) -> Any:
        return fused.saving(data, gamma, beta, moving_mean, moving_var, residual, **attributes) if training else None

    def gradients(self, saved: Any, dout: torch.Tensor, wanted: Sequence[bool],
                  memory: Sequence[Optional[torch.Tensor]]) -> Optional[Sequence[Optional[torch.Tensor]]]:
        dx, dgamma, dbeta, dresidual = fused.gradients(saved, dout)
        return (dx, dgamma, dbeta, None, None, dout.clone() if dresidual is dout else dresidual)[:len(wanted)]


batch_norm = BatchNorm()


def add_bias(data: torch.Tensor, bias: torch.Tensor, relu: bool = False) -> torch.Tensor:
    """Overwrite `data` (N, C, ...), which nothing else reads, by ``relu(data + bias)``, and return it; `bias` is (C,), the ReLU is optional."""
    out = bias_on_gpu.add_bias(data, bias, relu) if data.is_cuda else None
    if out is None:
        out = data.add_(bias.view(data.shape[1], *[1] * (data.dim() - 2)))
        out = torch.relu_(out) if relu else out
    return out


def max_pool_with_bias(data: torch.Tensor, bias: torch.Tensor, relu: bool = False, **attributes: Any) -> torch.Tensor:
    """Return ``relu(Pooling(data) + bias)``; the ReLU is optional.

    Parameters
    ----------
    data : torch.Tensor
        (N, C, H, W).
    bias : torch.Tensor
        (C,).
    relu : bool
    **attributes
        Of ``Pooling``: of a maximum pooling without ``global_pool``, each of whose windows contains data.
    """
    if data.is_cuda and torch.is_grad_enabled() and (data.requires_grad or bias.requires_grad):
        window = max_pooling_on_gpu.Window(attributes.get("kernel", ()), attributes.get("stride") or (1, 1), attributes.get("pad") or (0, 0),
                                           attributes.get("pooling_convention") == "full")
        # (Of longer strides and paddings `Pooling` ignores the rest.)
        out = max_pooling_on_gpu.max_pool2d(data, window, bias, relu) if all(len(sizes) == 2 for sizes in window[:3]) else None
        if out is not None:
            return out
    return add_bias(pooling.fn(data, **attributes), bias, relu)


def _in_shape(tensor: torch.Tensor, shape: tuple[int, ...]) -> torch.Tensor:
    return tensor if tensor.shape == shape else tensor.reshape(shape)


class CrossEntropy(ExplicitLayer):
    """``pick(log_softmax(data), index) * scale`` along the last axis, and its mean over some axes.

    Parameters
    ----------
    keepdims : bool
        Of `pick`.
    scale : float
    means : dict, optional
        The attributes of ``mean``; without it there is none.
    copies : bool
        True if `data` may be written to before its gradient is computed.
    """

    __name__ = "cross_entropy"  # the name in generated code and profiles

    def __init__(self, keepdims: bool, scale: float = 1.0, means: Optional[dict[str, Any]] = None, copies: bool = False):
        self.keepdims, self.scale, self.means, self.copies = keepdims, scale, means, copies

    def __call__(self, data: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
        if self.copies and torch.is_grad_enabled() and data.requires_grad:
            data = data.clone()
        lines = self._lines(data, index)
        out = None if lines is None else softmax_kernels.log_likelihood(*lines, self.scale)
        if out is not None:
            shape, reduced = self._shapes(data)
            return _in_shape(out, reduced) if reduced is not None else mean.fn(_in_shape(out, shape), **self.means or {})
        out = pick.fn(log_softmax.fn(data), index, keepdims=self.keepdims)
        out = out if self.scale == 1 else out * self.scale
        return out if self.means is None else mean.fn(out, **self.means)

    def saving(self, data: torch.Tensor, index: torch.Tensor) -> Any:
        lines = self._lines(data.clone() if self.copies else data, index)
        call = None if lines is None else softmax_kernels.log_likelihood_saving(*lines, self.scale)
        if call is None:
            return None
        shape, reduced = self._shapes(data)
        out = _in_shape(call[0], reduced) if reduced is not None else mean.raw(_in_shape(call[0], shape), **self.means or {})
        return out, (call[1], data.shape, None if reduced is not None else shape)

    def gradients(self, saved: Any, dout: torch.Tensor, wanted: Sequence[bool],
                  memory: Sequence[Optional[torch.Tensor]]) -> Optional[Sequence[Optional[torch.Tensor]]]:
        arguments, data, spread = saved  # the kernel's, and the shapes of the data and of what is averaged
        if spread is not None:  # each element of a mean gets the same
            axes = reduced_axes("mean", self._means["axis"], self._means["exclude"], len(spread))
            sizes = [1 if axes is None or i in axes else n for i, n in enumerate(spread)]
            dout = (dout.reshape(sizes) * (math.prod(sizes) / max(math.prod(spread), 1))).expand(spread)
        dx = softmax_kernels.log_likelihood_gradient(arguments, dout if dout.dim() == 1 else dout.reshape(-1))
        return dx if len(data) == 2 else dx.view(data), None

    @staticmethod
    def _lines(data: torch.Tensor, index: torch.Tensor) -> Optional[tuple[torch.Tensor, torch.Tensor]]:
        """Return the scores as (N, W) and the classes as (N), or None if their shapes do not fit."""
        shape = data.shape[:-1]
        if index.shape != shape and index.shape != (*shape, 1):
            return None
        return data if data.dim() == 2 else data.reshape(-1, data.shape[-1]), index if index.dim() == 1 else index.reshape(-1)

    @property
    def _means(self) -> dict[str, Any]:
        return {"axis": None, "keepdims": False, "exclude": False, **(self.means or {})}

    def _shapes(self, data: torch.Tensor) -> tuple[tuple[int, ...], Optional[tuple[int, ...]]]:
        """Return the shape before the mean, and that behind it if each mean is that of one element."""
        shape = (*data.shape[:-1], 1) if self.keepdims else data.shape[:-1]
        if self.means is None:
            return shape, shape
        attributes = self._means
        axes = reduced_axes("mean", attributes["axis"], attributes["exclude"], len(shape))
        if axes is None or any(shape[i] != 1 for i in axes):
            return shape, None
        return shape, shape if attributes["keepdims"] else tuple([n for i, n in enumerate(shape) if i not in axes])


class DenseLayer(NamedTuple):
    """The attributes of ``FullyConnected``, and the ``act_type`` of the activation behind it, or an empty string."""

    attributes: dict[str, Any]
    act_type: str


class DenseLayers(ExplicitLayer):
    """Consecutive ``FullyConnected`` with their activations, called with the data and a tuple each of weights and biases (None where there is none).

    Parameters
    ----------
    layers : list of DenseLayer
        All with the same ``flatten`` as the first, or following one that flattens.
    """

    __name__ = "FullyConnected"  # the name in generated code and profiles

    def __init__(self, layers: Sequence[DenseLayer]):
        self._flatten = layers[0].attributes["flatten"]
        codes = sum(mlp_training.ACTIVATIONS[layer.act_type] << 2 * i for i, layer in enumerate(layers))
        self._own, self._layers = layers, mlp_training.Layers(codes, self.by_operators)

    def __call__(self, data: torch.Tensor, weights: tuple[torch.Tensor, ...], biases: tuple[Optional[torch.Tensor], ...]) -> torch.Tensor:
        rows = self._rows(data)
        if rows is None:
            return self.by_operators(data, weights, biases)
        return self._shaped(mlp_training.forward(self._layers, rows, weights, biases), data)

    def saving(self, data: torch.Tensor, weights: Sequence[torch.Tensor], biases: Sequence[Optional[torch.Tensor]]) -> Any:
        rows = self._rows(data)
        call = None if rows is None else mlp_training.saving(self._layers, rows, weights, biases)
        return None if call is None else (self._shaped(call.results[-1], data), (call, data.shape))

    def gradients(self, saved: Any, dout: torch.Tensor, wanted: Sequence[bool],
                  memory: Sequence[Optional[torch.Tensor]]) -> Optional[list[Optional[torch.Tensor]]]:
        """Return the gradients of the data, the weights and the biases; see `ExplicitLayer`."""
        call, shape = saved
        gradients = mlp_training.gradients(call, _in_shape(dout, call.results[-1].shape), wanted, memory)
        if gradients is not None and gradients[0] is not None:
            gradients[0] = _in_shape(gradients[0], shape)
        return gradients

    def _rows(self, data: torch.Tensor) -> Optional[torch.Tensor]:
        if data.dim() == 2:
            return data
        if not data.numel() or not data.dim():
            return None
        return data.reshape(data.shape[0], -1) if self._flatten else data.reshape(-1, data.shape[-1])

    def _shaped(self, out: torch.Tensor, data: torch.Tensor) -> torch.Tensor:
        return out if self._flatten or data.dim() == 2 else out.view(*data.shape[:-1], out.shape[-1])

    def by_operators(self, out: torch.Tensor, weights: Sequence[torch.Tensor], biases: Sequence[Optional[torch.Tensor]]) -> torch.Tensor:
        for layer, weight, bias in zip(self._own, weights, biases):
            out = fully_connected.fn(out, weight, bias, **layer.attributes)
            out = activation.fn(out, act_type=layer.act_type) if layer.act_type else out
        return out
