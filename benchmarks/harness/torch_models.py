"""The networks of `networks.py` and `train_models.py` as torch modules: from the symbol's JSON, by hand for LSTM and Transformer."""
import ast
import json
import operator
import os

import numpy as np
import torch
from torch import fx, nn
from torch.nn import functional as F
from torch.nn.utils.fusion import fuse_conv_bn_eval

from harness import inputs, workloads


def load(name, folder):
    """Return the network of that name with the parameters in `folder`."""
    values = np.load(os.path.join(folder, name + ".npz"))
    if inputs.is_recurrent(name):
        return Recurrent(name, values)
    if name.startswith("lm"):
        return LanguageModel(values)
    if name.startswith("deepar"):
        return Forecaster(values)
    if name.startswith("encoder"):
        return _encoder(name, values)
    if name == "transformer":
        return nn.Sequential(*(EncoderLayer(group) for group in _groups(values, 12)))
    with open(os.path.join(folder, name + "-symbol.json")) as file:
        return from_symbol(json.load(file), values)


def from_symbol(graph, values):
    """A `GraphModule` of torch's own layers from a symbol's JSON and the arrays by argument name."""
    modules, fx_graph, outputs = nn.ModuleDict(), fx.Graph(), []
    for index, node in enumerate(graph["nodes"]):
        inputs = [graph["nodes"][i] for i, *_ in node["inputs"]]
        if node["op"] == "null":
            outputs.append(fx_graph.placeholder("data") if node["name"] == "data" else None)
            continue
        data = [outputs[i] for i, *_ in node["inputs"] if outputs[i] is not None]
        attrs = {key: _value(text) for key, text in node.get("attrs", {}).items()}
        if node["op"] == "Concat":
            outputs.append(fx_graph.call_function(torch.cat, (data, attrs["dim"])))
        elif node["op"] == "elemwise_add":
            outputs.append(fx_graph.call_function(operator.add, tuple(data)))
        else:
            weights = [torch.from_numpy(values[i["name"]]) for i in inputs if i["name"] in values]
            modules[f"layer{index}"] = _LAYERS[node["op"]](attrs, *weights)
            outputs.append(fx_graph.call_module(f"layer{index}", tuple(data)))
    fx_graph.output(outputs[graph["heads"][0][0]])
    return fx.GraphModule(modules, fx_graph)


def _value(text):
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def _fill(layer, weight, bias=None):
    layer.weight = nn.Parameter(weight)
    if bias is not None:
        layer.bias = nn.Parameter(bias)
    return layer


def _convolution(attrs, weight, bias=None):
    groups = attrs.get("num_group", 1)
    layer = nn.Conv2d(weight.shape[1] * groups, weight.shape[0], attrs["kernel"], attrs.get("stride", 1), attrs.get("pad", 0),
                      attrs.get("dilate", 1), groups, bias is not None, device="meta")
    return _fill(layer, weight, bias)


def _dense(attrs, weight, bias=None):
    layer = _fill(nn.Linear(weight.shape[1], weight.shape[0], bias is not None, device="meta"), weight, bias)
    return nn.Sequential(nn.Flatten(), layer) if attrs.get("flatten", True) else layer


class _BatchNorm(nn.BatchNorm2d):
    """Batch normalization of images or vectors, as MXNet's operator: a symbol does not distinguish them."""

    def _check_input_dim(self, input):
        pass


def _batch_norm(attrs, gamma, beta, mean, variance):
    layer = _fill(_BatchNorm(len(gamma), attrs["eps"], 1 - attrs.get("momentum", 0.9)), gamma, beta)
    if attrs.get("fix_gamma", True):
        layer.weight = nn.Parameter(torch.ones_like(gamma), requires_grad=False)
    layer.running_mean, layer.running_var = mean, variance
    return layer


def _pooling(attrs):
    if attrs.get("global_pool"):
        return nn.AdaptiveAvgPool2d(1) if attrs["pool_type"] == "avg" else nn.AdaptiveMaxPool2d(1)
    window = attrs["kernel"], attrs.get("stride", 1), attrs.get("pad", 0)
    full = attrs.get("pooling_convention") == "full"
    return nn.AvgPool2d(*window, ceil_mode=full) if attrs["pool_type"] == "avg" else nn.MaxPool2d(*window, ceil_mode=full)


_LAYERS = {"Convolution": _convolution, "FullyConnected": _dense, "BatchNorm": _batch_norm, "Pooling": _pooling,
           "Activation": lambda attrs: {"relu": nn.ReLU, "tanh": nn.Tanh}[attrs["act_type"]](),
           "Flatten": lambda attrs: nn.Flatten(), "Dropout": lambda attrs: nn.Dropout(attrs["p"]),
           "LeakyReLU": lambda attrs, gamma: _fill(nn.PReLU(len(gamma), device="meta"), gamma), "clip": lambda attrs: nn.ReLU6()}


def fold_batch_norm(module):
    """Fold each batch normalization into the weights of the convolution before it, for inference; return the module."""
    layers = dict(module.named_modules())
    for node in module.graph.nodes:
        before = node.args[0] if node.args else None
        if node.op == "call_module" and isinstance(layers[node.target], nn.BatchNorm2d) and before.op == "call_module" \
                and isinstance(layers[before.target], nn.Conv2d) and len(before.users) == 1:
            setattr(module, before.target, fuse_conv_bn_eval(layers[before.target], layers[node.target]))
            node.replace_all_uses_with(before)
            module.graph.erase_node(node)
    module.delete_all_unused_submodules()
    module.recompile()
    return module


class Recurrent(nn.Module):
    """torch's own LSTM or GRU over (time, batch, channels), whose gates are ordered as MXNet's."""

    def __init__(self, name, values):
        super().__init__()
        kind = name.rstrip("0123456789x")
        layers, channels = map(int, name[len(kind):].split("x"))
        self.layers = _recurrent(kind, channels, layers, values)

    def forward(self, data):
        return self.layers(data)[0]


def _recurrent(kind, channels, layers, values):
    module = getattr(nn, kind.upper())(channels, channels, layers)
    with torch.no_grad():
        for key in values:
            layer, part, kind = key.rsplit("_", 3)[-3:]
            target = f"{kind}_{'ih' if part == 'i2h' else 'hh'}_l{layer.lstrip('l')}"
            getattr(module, target).copy_(torch.from_numpy(values[key]))
    return module


class LanguageModel(nn.Module):
    """Embedding, LSTM and decoder; the first array is the embedding's, the last two are the decoder's."""

    def __init__(self, values):
        super().__init__()
        arrays = {key: values[key] for key in values}
        first, *middle, weight, bias = arrays
        words, width = arrays[first].shape
        self.embedding = nn.Embedding.from_pretrained(torch.from_numpy(arrays[first]), freeze=False)
        self.lstm = _recurrent("lstm", width, len(middle) // 4, {key: arrays[key] for key in middle})
        self.decoder = _linear(arrays[weight], arrays[bias])

    def forward(self, words):
        return self.decoder(self.lstm(self.embedding(words.long()))[0])


class Forecaster(nn.Module):
    """LSTM cells, called step by step, and a linear head, to which the last two arrays belong."""

    def __init__(self, values):
        super().__init__()
        *cells, weight, bias = (values[key] for key in values)
        self.cells = nn.ModuleList()
        for group in zip(*[iter(cells)] * 4, strict=True):
            cell = nn.LSTMCell(group[0].shape[1], group[1].shape[1])
            for name, array in zip(("weight_ih", "weight_hh", "bias_ih", "bias_hh"), group, strict=True):
                setattr(cell, name, nn.Parameter(torch.from_numpy(array)))
            self.cells.append(cell)
        self.head = _linear(weight, bias)

    def forward(self, data):
        states, outputs = [None] * len(self.cells), []
        for x in data.unbind(1):
            for i, cell in enumerate(self.cells):
                states[i] = cell(x, states[i])
                x = states[i][0]
            outputs.append(x)
        return self.head(torch.stack(outputs, 1))


class _FloatIndexEmbedding(nn.Embedding):
    """An embedding whose indices are floats, as MXNet's."""

    def forward(self, words):
        return super().forward(words.long())


def _encoder(name, values):
    _, layers, width = workloads.size(name)
    first, *middle, weight, bias = (values[key] for key in values)
    groups = zip(*[iter(middle)] * (len(middle) // layers), strict=True)
    return nn.Sequential(_FloatIndexEmbedding.from_pretrained(torch.from_numpy(first), freeze=False),
                         *(EncoderLayer(group, workloads.heads(width)) for group in groups), _linear(weight, bias))


def _linear(weight, bias):
    return _fill(nn.Linear(weight.shape[1], weight.shape[0], device="meta"), torch.from_numpy(weight), torch.from_numpy(bias))


class EncoderLayer(nn.Module):
    """As `networks.EncoderLayer`, with torch's fused attention."""

    def __init__(self, arrays, heads=12):
        super().__init__()
        self.heads = heads
        pairs = [(torch.from_numpy(w), torch.from_numpy(b)) for w, b in zip(arrays[::2], arrays[1::2], strict=True)]
        for name, (weight, bias) in zip(("qkv", "project", "norm1", "expand", "shrink", "norm2"), pairs, strict=True):
            if name == "qkv":  # MXNet's operators take queries, keys and values of each head side by side
                weight, bias = (t.unflatten(0, (heads, 3, -1)).transpose(0, 1).flatten(0, 2) for t in (weight, bias))
            layer = nn.LayerNorm(len(weight)) if name.startswith("norm") else nn.Linear(weight.shape[1], weight.shape[0], device="meta")
            setattr(self, name, _fill(layer, weight, bias))

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = (part.reshape(batch, length, self.heads, -1).transpose(1, 2) for part in self.qkv(x).chunk(3, dim=2))
        mixed = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(batch, length, width)
        x = self.norm1(x + self.project(mixed))
        return self.norm2(x + self.shrink(F.gelu(self.expand(x))))


def _groups(values, count):
    arrays = [values[key] for key in values]
    size = len(arrays) // count
    return [arrays[i * size:(i + 1) * size] for i in range(count)]
