"""The fusion passes for torch: batch normalization with the addition and the ReLU behind it; ReLU in place; convolutions that
take their weights as they are."""
import torch

from ..ops.kernels.batch_norm import batch_norm
from ..ops.kernels.convolution import convolution
from ..ops.nn.rnn import rnn_of_parts
from .layout import convolves
from .program import name_of


def _rectifies(node):
    return name_of(node) == "relu" or name_of(node) == "Activation" and node.kwargs.get("act_type") == "relu"


def _normalizes(node):
    return (name_of(node) == "BatchNorm" and node.kwargs.get("axis", 1) == 1 and not node.kwargs.get("output_mean_var")
            and not node.kwargs.get("use_global_stats") and len(node.args) == 5)


def _only_user(node):
    return next(iter(node.users)) if len(node.users) == 1 else None


# Operators that make a new array which their own gradient does not need.
_FREE_RESULT = {"Convolution", "Deconvolution", "FullyConnected", "elemwise_add", "BatchNorm"}


def rectify(data):
    """ReLU, in the memory of its input, which nothing else needs."""
    return torch.relu_(data)


def apply(module):
    """Rewrite the graph; returns what was done, as lines of a report."""
    return fuse_batch_norms(module) + rectify_in_place(module) + direct_convolutions(module)


def rectify_in_place(module):
    """Let ReLU overwrite what only it reads."""
    count = 0
    for node in module.graph.nodes:
        if node.op == "call_function" and _rectifies(node) and name_of(node.args[0]) in _FREE_RESULT and _only_user(node.args[0]) is node:
            if name_of(node.args[0]) == "BatchNorm" and node.args[0].kwargs.get("output_mean_var"):
                continue
            node.target, node.args, node.kwargs = rectify, node.args[:1], {}
            count += 1
    return [f"memory: {count} x relu in place"] if count else []


def direct_convolutions(module):
    """Let two-dimensional convolutions of one group run on our own kernel."""
    count = 0
    for node in module.graph.nodes:
        if node.op == "call_function" and convolves(node) and node.kwargs.get("num_group", 1) == 1:
            node.target = convolution
            for i, source in enumerate(node.args[1:], 1):  # the kernel casts weights while it reads them
                if name_of(source) == "amp_cast":
                    node.update_arg(i, source.args[0])
                    if not source.users:
                        module.graph.erase_node(source)
            count += 1
    return [f"kernels: {count} x convolution"] if count else []


def separate_parameters(module):
    """Let recurrent layers read their parameters where they are, not from a vector that each step puts together and takes apart."""
    count = 0
    for node in module.graph.nodes:
        if node.op != "call_function" or name_of(node) != "RNN":
            continue
        vector = node.args[1]
        if name_of(vector) == "_rnn_param_concat" and _only_user(vector) is node:
            node.target, node.args = rnn_of_parts, (node.args[0], vector.args, *node.args[2:])
            module.graph.erase_node(vector)
            count += 1
    return [f"memory: {count} x recurrent layers without a copy of their parameters"] if count else []


def fuse_batch_norms(module):
    """Let batch norm, addition and ReLU be one operator."""
    graph = module.graph
    counts = {"": 0, " + relu": 0, " + add + relu": 0}
    taken = set()  # additions that are part of a fused node already
    for node in reversed(list(graph.nodes)):
        if node.op != "call_function" or not _normalizes(node):
            continue
        user, last, residual, relu = _only_user(node), node, None, False
        if user is not None and _rectifies(user):
            last, relu = user, True
        elif user is not None and name_of(user) == "elemwise_add" and user not in taken:
            above = _only_user(user)
            if above is not None and _rectifies(above) and user.args[0] is not user.args[1]:
                residual = user.args[1] if user.args[0] is node else user.args[0]
                last, relu = above, True
                taken.add(user)
        kind = " + add + relu" if residual is not None else " + relu" if relu else ""
        counts[kind] += 1
        with graph.inserting_before(last):
            args = (*node.args, residual) if residual is not None else node.args
            attributes = {k: v for k, v in node.kwargs.items() if k in ("eps", "momentum", "fix_gamma", "training")}
            fused = graph.call_function(batch_norm, args, {**attributes, "relu": relu})
        last.replace_all_uses_with(fused)
        for gone in dict.fromkeys((last, user if residual is not None else last, node)):
            if not gone.users:
                graph.erase_node(gone)
    return [f"fusion: {count} x batch norm{kind}" for kind, count in counts.items() if count]
