"""A fully connected layer whose units are divided among devices, and among the ranks of a job."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from ...base import MXNetError
from ...kernels.gemm.matmul import linear
from ..dtypes import name_of, same_type
from ..registry import Operator, get
from ..shapes import product
from ..traits import Attributes
from .common import assign


class DividedDense(Operator):
    """A divided layer. Its inputs are the data, the weight (one array, or one for each part), and as many of the bias, if there is one.

    Parameters
    ----------
    label : str
        The layer's name, for messages.
    parsed : dict
        The attributes of ``FullyConnected``.
    devices : list of torch.device
        Those of the parts.
    ranks : Ranks or None
        See `kvstore.ranks`; None for a process alone.
    separate : bool
        Each part has arrays of its own.

    Raises
    ------
    MXNetError
        If there are fewer units than parts.
    """

    names_inputs = True

    def __init__(self, label: str, parsed: Attributes, devices: Sequence[torch.device], ranks: Any, separate: bool) -> None:
        dense = get("FullyConnected")
        attributes = dense.with_defaults(parsed)
        self.units, self.flattens, self.has_bias = attributes["num_hidden"], attributes["flatten"], not attributes["no_bias"]
        self.devices, self.ranks, self.separate, self.label = list(devices), ranks, separate, label
        count, rank = (ranks.count, ranks.rank) if ranks is not None else (1, 0)
        if self.units < count * len(devices):
            raise MXNetError(f"{label}: its {self.units} units can't be divided among {count} ranks with {len(devices)} contexts each; use "
                             "fewer, or leave the layer out of the group that is divided")
        self.of_ranks = [self.units * i // count for i in range(count + 1)]
        begin, end = self.of_ranks[rank:rank + 2]
        self.edges = [begin + (end - begin) * i // len(devices) for i in range(len(devices) + 1)]

        def run(data: torch.Tensor, *arrays: torch.Tensor) -> Any:
            return _Product.apply(self, data, *arrays)

        run.__doc__ = dense.__doc__
        super().__init__("FullyConnected (divided)", run, complete_rule=True, compute_bound=True, amp=("low", "low"))
        self.shape_inference, self.dtype_inference = self._shapes, same_type

    weights = property(lambda self: self.input_names({})[1:], doc="The inputs that hold the network's parameters.")

    def input_names(self, parsed: dict[str, Any], count: int | None = None) -> tuple[str, ...]:
        parts = range(len(self.devices) if self.separate else 1)
        return "data", *(f"weight{k}" for k in parts), *(f"bias{k}" for k in parts if self.has_bias)

    def with_defaults(self, parsed: dict[str, Any]) -> dict[str, Any]:
        return {}

    def _shapes(self, in_shapes: list, out_shapes: list) -> tuple[list, list]:
        data = in_shapes[0]
        if data is not None:
            rows = [end - begin for begin, end in zip(self.edges, self.edges[1:])] if self.separate else [self.units]
            width = product(data[1:]) if self.flattens else data[-1]
            for k, count in enumerate(rows):
                assign(in_shapes, 1 + k, (count, width), f"the weight of {self.label}")
                assign(in_shapes, 1 + len(rows) + k, (count,), f"the bias of {self.label}")
            assign(out_shapes, 0, (data[0], self.units) if self.flattens else (*data[:-1], self.units), f"the output of {self.label}")
        return in_shapes, out_shapes

    def rows(self, arrays: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """Return the rows of each part, out of a weight or a bias."""
        if self.separate:
            return list(arrays)
        return [arrays[0][begin:end] for begin, end in zip(self.edges, self.edges[1:])]


class _Product(torch.autograd.Function):
    """The product of a batch with all parts; over ranks, each computes that of its rows with the samples of all."""

    @staticmethod
    def forward(ctx: Any, layer: DividedDense, data: torch.Tensor, *arrays: torch.Tensor) -> torch.Tensor:
        count = len(layer.devices) if layer.separate else 1
        own = data.reshape(len(data), -1) if layer.flattens else data.reshape(-1, data.shape[-1])
        ctx.layer, ctx.shape, ctx.sizes, batch = layer, data.shape, [len(own)], own
        ranks, doing = layer.ranks, f"the product of {layer.label}"
        if ranks is not None:
            about = {"units": layer.units, "features": own.shape[1], "dtype": name_of(own.dtype), "bias": layer.has_bias}
            ctx.sizes = [size for size, in ranks.agree(doing, len(own), about=about)]
            batch = ranks.gather(own, ctx.sizes, doing)
        weights, biases = layer.rows(arrays[:count]), layer.rows(arrays[count:]) if layer.has_bias else [None] * len(layer.devices)
        out = torch.cat([linear(batch.to(weight.device), weight, bias).to(data.device) for weight, bias in zip(weights, biases)], 1)
        ctx.save_for_backward(batch, *arrays)
        if ranks is not None:  # each rank's samples go to it
            widths = [end - begin for begin, end in zip(layer.of_ranks, layer.of_ranks[1:])]
            received = [len(own) * width for width in widths]
            flat = ranks.exchange(out.view(-1), [size * out.shape[1] for size in ctx.sizes], received, doing)
            out = torch.cat([part.view(len(own), width) for part, width in zip(flat.split(received), widths)], 1)
        return out if layer.flattens else out.view(*data.shape[:-1], layer.units)

    @staticmethod
    def backward(ctx: Any, *heads: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        layer, (batch, *arrays) = ctx.layer, ctx.saved_tensors
        ranks, doing, (needs_data, *needs) = layer.ranks, f"the gradient of {layer.label}", ctx.needs_input_grad[1:]
        head = heads[0].reshape(-1, layer.units)
        if ranks is not None:  # each rank's classes go to it
            ranks.agree(doing)
            width = layer.edges[-1] - layer.edges[0]
            columns = [part.reshape(-1) for part in head.split([end - begin for begin, end in zip(layer.of_ranks, layer.of_ranks[1:])], 1)]
            head = ranks.exchange(torch.cat(columns), [len(part) for part in columns], [size * width for size in ctx.sizes], doing).view(-1, width)
        count = len(layer.devices) if layer.separate else 1
        weights, of_data = layer.rows(arrays[:count]), batch.new_zeros(batch.shape if needs_data else ())
        of_weights: list[Any] = []
        of_biases: list[Any] = []
        for weight, begin, end in zip(weights, layer.edges, layer.edges[1:]):
            part = head[:, begin - layer.edges[0]:end - layer.edges[0]].to(weight.device)
            if needs_data:
                of_data += (part @ weight).to(batch.device)
            of_weights.append(part.t() @ batch.to(weight.device) if any(needs[:count]) else None)
            of_biases.append(part.sum(0) if any(needs[count:]) else None)
        if needs_data and ranks is not None:
            of_data = ranks.begin_scatter(of_data, ctx.sizes, doing)()
        if not layer.separate:
            of_weights, of_biases = ([torch.cat(parts) if parts[0] is not None else None] for parts in (of_weights, of_biases))
        gradients = [*of_weights, *of_biases] if layer.has_bias else of_weights
        return (None, of_data.view(ctx.shape) if needs_data else None, *(g if need else None for g, need in zip(gradients, needs)))
