"""The output of a split layer, and the softmax loss over its parts: no rank, and no context, ever has all logits of a sample."""
from __future__ import annotations

import math
import numbers
from collections.abc import Sequence
from typing import Any

import torch

from ..base import MXNetError
from ..ndarray import NDArray, dispatch
from ..ndarray.dispatch import mode
from ..ndarray.sparse.rows import by_rows
from ..ops import random_state
from ..ops.dtypes import name_of
from ..ops.grad_mode import GradMode
from ..suggestions import shortened
from .sharded_inputs import as_integers, first_outside, parts_of, require_inside
from .sharded_parameter import ranks
from .utils import UsageError

__all__ = ["ShardedLogits"]

_LOSS = dispatch.pseudo_operator("ShardedSoftmaxCELoss")
_ROWS = 1 << 13  # of a weight whose gradients are computed at a time
_NEAR = 1e-7  # cosines this close to 1 and -1 count as that far from them: the angle has no derivative there


def recorded(function: Any, operator: Any, arrays: list[Any], step: Any, like: list[tuple[Any, Any]]) -> list[Any]:
    """Return the results of a ``torch.autograd.Function`` of a step and arrays, recorded if any of the arrays needs a gradient.

    `like` has the class and the context of each result.
    """
    record = mode.recording and any(array._data.requires_grad for array in arrays)
    with GradMode(record):
        tensors = function.apply(step, *[array._data for array in arrays])
    results = [kind._new(tensor, ctx) for tensor, (kind, ctx) in zip(tensors, like)]
    if record:
        dispatch.record(operator, {}, arrays, results)
    return results


class Margin:
    """The change of a sample's own logit: ``scale * (cos(angle + angular) - cosine)``, and its derivative.

    Beyond an angle of ``pi - angular``, where the cosine would rise again, a straight line goes on: ``cos(angle) - angular * sin(angular)``.
    """

    def __init__(self, scale: float, angular: float, cosine: float) -> None:
        self.scale, self.angular, self.cosine = scale, angular, cosine

    def apply(self, target: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the logits, not scaled yet, in place of these, and their derivatives."""
        if not self.angular:
            return target - self.cosine, torch.ones_like(target)
        cos = target.clamp(-1 + _NEAR, 1 - _NEAR)
        sin = (1 - cos * cos).sqrt()
        near = cos > math.cos(math.pi - self.angular)
        turned = torch.where(near, cos * math.cos(self.angular) - sin * math.sin(self.angular), target - self.angular * math.sin(self.angular))
        slope = torch.where(near, math.cos(self.angular) + cos / sin * math.sin(self.angular), torch.ones_like(cos))
        return turned - self.cosine, slope


class ShardedLogits:
    """The output of a `ShardedDense`: the logits of a batch, computed where they are needed, each part on its rank and context.

    A `ShardedSoftmaxCELoss` takes it. `topk`, `argmax` and `gather` are for predictions; all ranks call them.

    Parameters
    ----------
    layer : ShardedDense
    features : list of NDArray
        Of shape (batch, in_units), one for each part of this rank's batch.
    single : bool
        The batch has one part, and results are single arrays instead of lists of them.
    error : UsageError, optional
        What is wrong with the features. The call of the layer sends nothing, so that the next one tells all ranks, and raises it.
    """

    def __init__(self, layer: Any, features: list[Any], single: bool, error: UsageError | None = None) -> None:
        self.layer, self._features, self._single, self._error = layer, features, single, error

    def _of_parts(self, doing: str, **more: Any) -> tuple[list[int], torch.Tensor, list[tuple[int, torch.Tensor]]]:
        """Return the batch sizes of all ranks, the features of all, and the first class and the logits of each part of this rank."""
        found, layer = ranks(), self.layer
        if self._error is not None:
            found.fail(doing, self._error)
        if mode.recording:
            found.fail(doing, MXNetError(f"{doing} has no gradient: call it outside of autograd.record(), or pass the logits to "
                                         "ShardedSoftmaxCELoss"))
        own = torch.cat([array._raw().to(self._features[0]._raw().device) for array in self._features])
        sizes = [size for size, in found.agree(doing, len(own), about={**_about(layer, own), **more})]
        batch = found.gather(own, sizes, doing)
        edges = layer.weight.edges()
        parts = []
        for i, (begin, weight) in enumerate(zip(edges, layer.weight.list_data())):
            bias = layer.bias.list_data()[i]._raw() if layer.bias is not None else None
            parts.append((begin, _logits(batch.to(weight._raw().device), weight._raw(), bias, layer.normalizes)[0]))
        return sizes, batch, parts

    def _result(self, tensor: torch.Tensor) -> Any:
        parts = tensor.split([len(array) for array in self._features])
        arrays = [NDArray._new(part.to(array._raw().device), array.ctx) for part, array in zip(parts, self._features)]
        return arrays[0] if self._single else arrays

    def topk(self, k: int) -> Any:
        """Return the `k` largest logits of each sample of this rank, and their classes.

        Parameters
        ----------
        k : int
            From 1 to the number of classes.

        Returns
        -------
        tuple of NDArray
            The logits, of the type of the features, and the classes, int64: both of shape (batch, k), largest first; lists of arrays for a batch in
            a list.

        Raises
        ------
        UsageError
            For another `k`.
        MXNetError
            While calls are recorded.
        """
        units, found, doing = self.layer.weight.shape[0], ranks(), "ShardedLogits.topk"
        if not isinstance(k, numbers.Integral) or not 1 <= k <= units:
            found.fail(doing, UsageError(f"topk: k must be from 1 to {units}, the number of classes, received {shortened(k)}"))
        sizes, batch, parts = self._of_parts(doing, k=int(k))
        values, classes = [], []
        for begin, logits in parts:
            best = logits.topk(min(k, logits.shape[1]))
            values.append(best.values.to(batch.device))
            classes.append((best.indices + begin).to(batch.device))
        value, number = torch.cat(values, 1), torch.cat(classes, 1)
        # Each rank sends every other rank what belongs to the samples of that one.
        widths = [width for width, in found.agree(doing, value.shape[1])]
        value, number = (_to_owners(found, tensor, sizes, widths, doing) for tensor in (value, number))
        best = value.topk(k)
        return self._result(best.values.to(self._features[0]._raw().dtype)), self._result(number.gather(1, best.indices))

    def argmax(self) -> Any:
        """Return the class of the largest logit of each sample of this rank, int64, of shape (batch,); see `topk`."""
        classes = self.topk(1)[1]
        return classes.reshape((-1,)) if self._single else [part.reshape((-1,)) for part in classes]

    def gather(self) -> Any:
        """Return all logits of this rank's samples, of shape (batch, units), float32 for 16-bit features; a list for a batch in a list.

        Raises
        ------
        MXNetError
            While calls are recorded.
        """
        found, doing = ranks(), "ShardedLogits.gather"
        sizes, batch, parts = self._of_parts(doing)
        own = torch.cat([logits.to(batch.device) for _, logits in parts], 1)
        widths = [width for width, in found.agree(doing, own.shape[1])]
        return self._result(_to_owners(found, own, sizes, widths, doing))


def _about(layer: Any, features: torch.Tensor) -> dict[str, Any]:
    """Return what must be the same on all ranks that compute parts of the same logits."""
    return {"layer": layer.weight.name, "units": layer.weight.shape[0], "in_units": features.shape[1],
            "dtype": name_of(features.dtype), "use_bias": layer.bias is not None, "normalize": layer.normalizes}


def _to_owners(found: Any, tensor: torch.Tensor, sizes: list[int], widths: list[int], doing: str) -> torch.Tensor:
    """Return the columns of all ranks for this rank's samples; `tensor` has this rank's for the samples of all.

    `widths` are the numbers of columns of all ranks, `sizes` those of their samples.
    """
    own = sizes[found.rank]
    received = found.exchange(tensor.reshape(-1), [size * tensor.shape[1] for size in sizes], [own * width for width in widths], doing)
    parts = received.split([own * width for width in widths])
    return torch.cat([part.view(own, width) for part, width in zip(parts, widths)], 1)


def _logits(batch: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, normalizes: bool) -> tuple[torch.Tensor, torch.Tensor | None]:
    """Return the logits, in 32 bits at least, and one over the norms of the rows of the weight if they are to be of length 1."""
    logits = batch @ weight.t()
    logits = logits.float() if logits.element_size() < 4 else logits
    if bias is not None:
        logits += bias
    if not normalizes:
        return logits, None
    norms = torch.linalg.vector_norm(weight, dim=1, dtype=logits.dtype)
    # The gradient of a row of zeros is as large as one over this number, and float16 has none that is so large.
    norms = norms.masked_fill_(norms == 0, 1) if weight.dtype == torch.float16 else norms.clamp_(min=1e-12)
    inverse = norms.reciprocal_()
    return logits.mul_(inverse), inverse


class _Part:
    """The classes of one context: their logits in the forward pass, and the gradients in the backward pass, in the same memory."""

    def __init__(self, weight: torch.Tensor, bias: torch.Tensor | None, layer: Any, chosen: torch.Tensor | None) -> None:
        self.all_weight, self.all_bias, self.chosen, self.normalizes = weight, bias, chosen, layer.normalizes
        self.weight = weight if chosen is None else weight.index_select(0, chosen)
        self.bias = bias if bias is None or chosen is None else bias.index_select(0, chosen)

    def forward(self, batch: torch.Tensor, target: torch.Tensor, margin: Margin) -> torch.Tensor:
        """Compute the logits; return the largest of each sample. `target` are the labels, counted from the first class of this part."""
        self.batch = batch
        self.logits, self.inverse = _logits(batch, self.weight, self.bias, self.normalizes)
        self.rows = ((target >= 0) & (target < len(self.all_weight))).nonzero().view(-1)
        columns = target[self.rows]
        self.columns = columns if self.chosen is None else torch.searchsorted(self.chosen, columns)
        own, self.slope = margin.apply(self.logits[self.rows, self.columns])
        self.logits[self.rows, self.columns] = own
        self.scale = margin.scale
        if margin.scale != 1:
            self.logits *= margin.scale
        return self.logits.amax(1)

    def sums(self, largest: torch.Tensor) -> torch.Tensor:
        """Return the sums of the exponentials, which take the place of the logits, and the logits of the labels, 0 where they are elsewhere."""
        self.logits -= largest.unsqueeze(1)
        own = torch.zeros_like(largest)
        own[self.rows] = self.logits[self.rows, self.columns]
        return torch.stack([self.logits.exp_().sum(1), own])

    def of_features(self, heads: torch.Tensor, total: torch.Tensor) -> torch.Tensor:
        """Return the gradient of the features. The logits are replaced by their gradients."""
        slopes = self.logits.mul_((heads / total).unsqueeze(1))
        slopes[self.rows, self.columns] -= heads[self.rows]
        slopes[self.rows, self.columns] *= self.slope
        if self.scale != 1:
            slopes *= self.scale
        self.of_bias = slopes.sum(0) if self.bias is not None else None
        if self.inverse is not None:
            slopes *= self.inverse
        self.slopes = slopes.to(self.weight.dtype)
        return self.slopes @ self.weight

    def of_weights(self, mark: Any) -> tuple[torch.Tensor, torch.Tensor | None]:
        """Return the gradients of weight and bias.

        That of chosen rows takes the memory of their copies, that of a whole weight the one of its last gradient, if `mark` lends that.
        """
        weight, memory = self.weight, self.weight
        if self.chosen is None:
            lent = mark.lend() if isinstance(mark, dispatch.Marked) else None
            memory = torch.empty_like(weight) if lent is None else lent
        for begin in range(0, len(weight), _ROWS):  # intermediate results are small, and stay in caches
            rows = slice(begin, begin + _ROWS)
            if self.inverse is None:
                torch.mm(self.slopes[:, rows].t(), self.batch, out=memory[rows])
                continue
            found = self.slopes[:, rows].t() @ self.batch  # less what changes only the length of a row
            along = torch.linalg.vecdot(found, weight[rows]).to(self.inverse.dtype).mul_(self.inverse[rows].square()).to(found.dtype)
            torch.addcmul(found, weight[rows], along.unsqueeze(1), value=-1, out=memory[rows])
        bias = None if self.of_bias is None or self.all_bias is None else self.of_bias.to(self.all_bias.dtype)
        del self.logits, self.slopes, self.weight  # backward comes here once
        if self.chosen is None:
            return memory, bias
        if bias is not None and self.all_bias is not None:
            bias = torch.zeros_like(self.all_bias).index_copy_(0, self.chosen, bias)
        return by_rows(self.chosen, memory, self.all_weight.shape), bias


def sample(classes: int, fraction: float, wanted: torch.Tensor) -> torch.Tensor:
    """Return the numbers of ``ceil(fraction * classes)`` classes in order, drawn without repetition: all `wanted` ones, and others at random.

    There are more of them if more are wanted.
    """
    wanted = wanted.unique()
    count = max(len(wanted), math.ceil(fraction * classes))
    order = torch.rand(classes, generator=random_state.generator(wanted.device), device=wanted.device)
    order[wanted] = 2
    return order.topk(count, sorted=False).indices.sort().values


class _SoftmaxLoss(torch.autograd.Function):
    """The loss of each sample, of features, weights and biases."""

    @staticmethod
    def forward(ctx: Any, step: _Step, *tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        ctx.step = step
        return step.forward(tensors)

    @staticmethod
    def backward(ctx: Any, *heads: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        return None, *ctx.step.backward(heads, ctx.needs_input_grad[1:])


class _Step:
    """A call of the loss: forward, and one backward."""

    def __init__(self, layer: Any, labels: list[torch.Tensor], margin: Margin, marks: list[Any]) -> None:
        self.layer, self.margin, self.marks, self.ranks = layer, margin, marks, ranks()
        self.labels = torch.cat([as_integers(label).to(labels[0].device) for label in labels])
        units = layer.weight.shape[0]
        self.wrong = first_outside(labels, units) if ((self.labels < 0) | (self.labels >= units)).any() else (0, 0)
        self.counts = [label.numel() for label in labels]
        self.sampled = float(layer.sampled) if mode.training else 1.0
        self.over = False

    def forward(self, tensors: tuple[torch.Tensor, ...]) -> tuple[torch.Tensor, ...]:
        layer, doing, found, margin = self.layer, loss_name(self.layer), self.ranks, self.margin
        features, weights = tensors[:len(self.counts)], tensors[len(self.counts):]
        width = len(layer.weight.list_ctx())
        biases = weights[width:] or (None,) * width
        self.devices = [feature.device for feature in features]
        own = torch.cat([feature.to(self.devices[0]) for feature in features])
        about = {**_about(layer, own), "sampled (1 outside of training)": self.sampled, "scale": margin.scale, "angular_margin": margin.angular,
                 "cosine_margin": margin.cosine}
        answers = found.agree(doing, *self.wrong, len(own), about=about)
        require_inside(f"{doing}: labels are classes from 0 to {layer.weight.shape[0] - 1}", answers)
        self.sizes = [size for *_, size in answers]
        labels = found.gather(self.labels.to(own.device), self.sizes, doing)
        batch = found.gather(own, self.sizes, doing)
        self.parts, largest = [], []
        for begin, weight, bias in zip(layer.weight.edges(), weights[:width], biases):
            target = labels.to(weight.device) - begin
            inside = target[(target >= 0) & (target < len(weight))]
            part = _Part(weight, bias, layer, sample(len(weight), self.sampled, inside) if self.sampled < 1 else None)
            largest.append(part.forward(batch.to(weight.device), target, self.margin).to(own.device))
            self.parts.append(part)
        top = torch.stack(largest).amax(0)
        found.max(top, doing)
        sums = torch.stack([part.sums(top.to(part.batch.device)).to(own.device) for part in self.parts]).sum(0)
        found.sum(sums, doing)
        self.total, target_logits = sums
        losses = (self.total.log() - target_logits).split(self.sizes)[found.rank].split(self.counts)
        return tuple(loss.to(dtype=own.dtype, device=device).clone() for loss, device in zip(losses, self.devices))

    def backward(self, heads: tuple[torch.Tensor, ...], needed: tuple[bool, ...]) -> list[torch.Tensor | None]:
        layer, doing, found = self.layer, f"the gradient of the loss of {self.layer.weight.name}", self.ranks
        if self.over:
            raise MXNetError(f"{doing}: it is computed once, in the memory of the logits; call the loss again for another backward")
        self.over = True
        home = self.total.device
        own = torch.cat([head.to(home, self.total.dtype) for head in heads])
        scale = found.gather(own, self.sizes, doing)
        partial = [part.of_features(scale.to(part.batch.device), self.total.to(part.batch.device)).to(home) for part in self.parts]
        end = found.begin_scatter(partial[0] if len(partial) == 1 else torch.stack(partial).sum(0), self.sizes, doing)
        marks = [mark if need else None for mark, need in zip(self.marks, needed[len(self.counts):])]
        weights, biases = zip(*[part.of_weights(mark) for part, mark in zip(self.parts, marks)])  # while the gradients of features travel
        features = [part.to(device) for part, device in zip(end().split(self.counts), self.devices)]
        gradients: list[torch.Tensor | None] = [*features, *weights, *(biases if layer.bias is not None else ())]
        return [gradient if need else None for gradient, need in zip(gradients, needed)]


def loss_name(layer: Any) -> str:
    """Return the name of a layer's loss for errors."""
    return f"the loss of {layer.weight.name}"


def labels_of(logits: ShardedLogits, labels: Any) -> list[NDArray]:
    """Return the labels, an array for each part of the batch.

    Raises
    ------
    UsageError
        If they are no arrays, there is not one for each sample, or the features of the logits are not valid.
    """
    if logits._error is not None:
        raise logits._error
    parts, counts = parts_of("labels of a ShardedSoftmaxCELoss", labels), [len(array) for array in logits._features]
    if [part.size for part in parts] != counts:
        raise UsageError(f"ShardedSoftmaxCELoss: a label for each of {counts} samples expected, received arrays of shape "
                         f"{[part.shape for part in parts]}")
    return parts


def softmax_loss(logits: ShardedLogits, labels: Sequence[NDArray], margin: Margin) -> list[NDArray]:
    """Return the loss of each sample, an array for each part of the batch."""
    layer, features = logits.layer, logits._features
    weights = layer.weight.list_data()
    biases = layer.bias.list_data() if layer.bias is not None else []
    step = _Step(layer, [label._raw() for label in labels], margin, [weight._autograd for weight in weights])
    return recorded(_SoftmaxLoss, _LOSS, [*features, *weights, *biases], step, [(type(array), array.ctx) for array in features])
