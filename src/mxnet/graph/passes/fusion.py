"""The fusion passes for torch: batch norm with the addition and the ReLU behind it; the bias of a convolution with ReLU; ReLU in place;
convolutions on our own kernels, which cast their weights while reading them."""

import torch
from torch import fx

from ...ops.elemwise.unary import amp_cast
from ...ops.nn import normalization
from ...ops.nn.convolution import convolution
from ...ops.nn.pooling import pooling
from ...ops.nn.training_layers import ConvolutionLayer, add_bias, batch_norm, max_pool_with_bias
from ..instrumentation import record_origins
from ..program import FxNode, attributes_of, calls, holds, operator_of
from . import pooling_order
from .layout import convolves


def _normalizes(node: FxNode) -> bool:
    if not calls(node, normalization.batch_norm) or len(node.args) != 5:
        return False
    attributes = attributes_of(node)
    return attributes["axis"] == 1 and not attributes["output_mean_var"] and not attributes["use_global_stats"]


def adds(node: FxNode) -> bool:
    """Return True if the node adds two arrays of one shape."""
    op = operator_of(node)
    return op is not None and op.arithmetic == "add" and op.same_shape and len(node.args) == 2


def _only_user(node: FxNode) -> FxNode:
    return next(iter(node.users)) if len(node.users) == 1 else None


def rectify(data: torch.Tensor) -> torch.Tensor:
    """Apply ReLU in place; the input has no other reader."""
    return torch.relu_(data)


def apply(module: fx.GraphModule, exact: bool = False) -> list[str]:
    """Apply the fusion passes; return the lines of a report. `exact` is passed to `direct_convolutions`."""
    return fuse_batch_norms(module) + pooling_order.apply(module) + rectify_in_place(module) + direct_convolutions(module, exact)


def rectify_in_place(module: fx.GraphModule) -> list[str]:
    """Apply ReLU in place if it is the only reader of its input."""
    count = 0
    for node in module.graph.nodes:
        if holds(node, "is_relu") and holds(node.args[0], "inplace_safe") and _only_user(node.args[0]) is node:
            node.target, node.args, node.kwargs = rectify, node.args[:1], {}
            count += 1
    return [f"memory: {count} x relu in place"] if count else []


def direct_convolutions(module: fx.GraphModule, exact: bool = False) -> list[str]:
    """Run two-dimensional convolutions of one group on our own kernels; with `exact` only on the direct one."""
    count = 0
    for node in module.graph.nodes:
        if convolves(node) and attributes_of(node)["num_group"] == 1:
            node.target = ConvolutionLayer(exact)
            for i, source in enumerate(node.args[1:], 1):  # the kernel casts weights as it reads them
                if calls(source, amp_cast):
                    node.update_arg(i, source.args[0])
                    if not source.users:
                        module.graph.erase_node(source)
            count += 1
    return [f"kernels: {count} x convolution{', exact' if exact else ''}"] if count else []


def _bias_before(node: FxNode) -> FxNode:
    """Remove and return the bias of a convolution that only this batch norm reads, over its channels; None if there is none."""
    source = node.args[0]
    if not calls(source, convolution) or len(source.args) != 3 or _only_user(source) is not node:
        return None
    return _without_bias(source) if (attributes_of(source)["layout"] or "NC")[1] == "C" else None


def _without_bias(node: FxNode) -> FxNode:
    """Remove the bias of a convolution, and return it."""
    bias = node.args[2]
    node.args, node.kwargs = node.args[:2], {**node.kwargs, "no_bias": True}
    return bias


def fuse_batch_norms(module: fx.GraphModule, on_gpu: bool = False) -> list[str]:
    """Fuse batch norm, addition and ReLU into one operator; on GPUs for training only, and with the bias of the convolution before."""
    graph = module.graph
    counts = {"": 0, " + relu": 0, " + add + relu": 0}
    biases = 0
    taken = set()  # additions that are part of a fused node already
    for node in reversed(list(graph.nodes)):
        if not _normalizes(node) or on_gpu and not node.kwargs.get("training"):
            continue
        bias = _bias_before(node) if on_gpu else None
        biases += bias is not None
        user, last, residual, relu = _only_user(node), node, None, False
        if user is not None and holds(user, "is_relu"):
            last, relu = user, True
        elif user is not None and adds(user) and user not in taken:
            above = _only_user(user)
            if above is not None and holds(above, "is_relu") and user.args[0] is not user.args[1]:
                residual = user.args[1] if user.args[0] is node else user.args[0]
                last, relu = above, True
                taken.add(user)
        kind = " + add + relu" if residual is not None else " + relu" if relu else ""
        counts[kind] += 1
        with graph.inserting_before(last):
            args = (*node.args, residual) if residual is not None else node.args
            attributes = {k: v for k, v in node.kwargs.items() if k in ("eps", "momentum", "fix_gamma", "training")}
            if bias is not None:
                attributes["bias"] = bias
            fused = graph.call_function(batch_norm, args, {**attributes, "relu": relu})
            record_origins(fused, node, *([user] if residual is not None else []), *([last] if last is not node else []))
        last.replace_all_uses_with(fused)
        for gone in dict.fromkeys((last, user if residual is not None else last, node)):
            if not gone.users:
                graph.erase_node(gone)
    report = [f"fusion: {count} x batch norm{kind}" for kind, count in counts.items() if count]
    return report + [f"fusion: {biases} x bias of a convolution left to the batch norm behind it"] * bool(biases)


def fuse_biases(module: fx.GraphModule) -> list[str]:
    """Add the biases of two-dimensional convolutions by an operator of their own, with the ReLU behind it: for training on GPUs.

    Runs behind `fuse_batch_norms`, which includes biases before batch norms, and `pooling_order`: as a constant for each channel moves no maximum,
    the bias is added behind a maximum pooling, in its operator.
    """
    graph = module.graph
    counts, pooled = {"": 0, " + relu": 0}, 0
    for node in list(graph.nodes):
        if not convolves(node) or len(node.args) != 3:
            continue
        bias, last = _without_bias(node), node
        while _pools_channels(_only_user(last)):
            last = _only_user(last)
        user = _only_user(last)
        relu = user is not None and holds(user, "is_relu")
        joins = last is not node and not attributes_of(last)["global_pool"]  # the pooling adds the bias itself
        with graph.inserting_after(last):
            fused = graph.call_function(max_pool_with_bias if joins else add_bias, (), {**(last.kwargs if joins else {}), "relu": relu})
        replaced = user if relu else last
        replaced.replace_all_uses_with(fused)
        fused.args = (last.args[0] if joins else last, bias)
        record_origins(fused, *[last] * joins, user if relu else node)
        if relu:
            graph.erase_node(user)
        if joins:
            graph.erase_node(last)
        counts[" + relu" if relu else ""] += 1
        pooled += last is not node
    report = [f"fusion: {count} x bias{kind}" for kind, count in counts.items() if count]
    return report + [f"fusion: {pooled} x bias behind the maximum pooling"] * bool(pooled)


def _pools_channels(node: FxNode) -> bool:
    """Return True for a maximum pooling that adding a constant for each channel commutes with."""
    if not calls(node, pooling):
        return False
    attributes = attributes_of(node)
    return attributes["layout"] in (None, "NCHW") and pooling_order.takes_each_maximum(attributes)
