"""The registry of backends, which compile and run lowered graphs.

A backend is an object with

``name``
    The backend's name for ``hybridize(backend=name)``, ``optimize_for`` and ``MXNET_SUBGRAPH_BACKEND``.
``compile(program, **options)``
    Returns a callable that takes the inputs of the `Program` (a module with known shapes, types and constants) and returns
    the tuple of outputs.
``specializes``
    True if that callable is valid for the shapes and types of ``program.inputs`` only.
``trains``
    True if torch's autograd can record through it. Otherwise `native` trains.
``freezes`` (by default False)
    True if the values of weights, ``program.constants``, are compiled in. The graph is then compiled again after they change.
``devices`` (by default all)
    The supported types of devices.
``available()`` (optional)
    Returns True if the backend works on this machine.

`passes.partitioning.partition` splits a program for a backend that supports only some of its operators.
"""
import copy
import json
import logging
import os
from collections.abc import Callable
from typing import Any

import torch
from torch import fx

from ... import environment
from ...base import MXNetError
from ...suggestions import did_you_mean
from ...symbol import Symbol
from ..passes import amp_casts, attention, cross_entropy, fusion, layout, mlp_training, pooling_order, recurrent_layers
from ..passes.layout import channels_last
from ..program import Program

_log = logging.getLogger(__name__)
BACKENDS: dict = {}
AUTO = "auto"  # the name that asks for a comparison of all backends at the first call
_NAMES_OF_MXNET = {"TENSORRT": "tensorrt"}
# MXNet's names for "the best there is on this device".
_DEFAULT_NAMES = {"", "MKLDNN", "ONEDNN", "MKLDNN_QUANTIZE", "ONEDNN_QUANTIZE", "DEFAULT"}


class Unavailable(MXNetError):
    """Raised for a backend that is not registered, or does not work on this machine."""


class Native:
    """The backend that runs a graph operator by operator on torch, after the passes for torch."""

    name = "native"
    specializes = False
    trains = True

    def compile(self, program: Program) -> Callable:
        """Return the module, with channels-last convolutions and, for training, fused batch norms."""
        device = program.inputs[0].device if program.inputs else torch.device("cpu")
        program.report += prepare(program.module, device, exact=program.exact)
        return program.module.forward


def prepare(module: fx.GraphModule, device: torch.device, fuse: bool = True, exact: bool = False, training: bool = False) -> list[str]:
    """Run the passes for torch on a module in place; return their report. Compilers with fusions of their own pass ``fuse=False``.

    With `exact` convolutions run on the direct kernel only, not on kernels with fewer multiplications, nor on those that split numbers;
    ``MXNET_CONVOLUTION_ALGORITHM=exact`` sets this for all graphs. With `training` fully connected layers and cross entropies are fused for
    their gradients, and on GPUs biases of convolutions; in inference backends do that with constant weights.
    """
    if device.type not in ("cpu", "cuda") or not environment.get_bool("MXNET_USE_FUSION"):
        return []
    report, ordered = arrange(module, device)
    report += ordered
    if device.type == "cuda":
        # Our own convolutions are for CPUs, and cuDNN reads the parameters of recurrent layers from one vector.
        if fuse:
            report += fusion.fuse_batch_norms(module, on_gpu=True) + pooling_order.apply(module)
            report += (fusion.fuse_biases(module) if training else []) + fusion.rectify_in_place(module)
            report += attention.apply(module) + amp_casts.together(module)
    elif fuse:
        report += mlp_training.apply(module) + cross_entropy.apply(module) if training else []
        report += fusion.apply(module, exact or asks_for_exact()) if ordered else fusion.rectify_in_place(module)
        report += recurrent_layers.apply(module) + attention.apply(module)
    if report:
        module.recompile()
    if environment.get_bool("MXNET_FUSION_VERBOSE"):
        _log.warning("graph: %s", "; ".join(report) or "nothing to fuse")
    return report


def arrange(module: fx.GraphModule, device: torch.device) -> tuple[list[str], list[str]]:
    """Run the first passes, for types and memory formats, on a module in place; return the report of each."""
    report, ordered = amp_casts.apply(module), layout.apply(module)
    if device.type == "cuda":
        for node in module.graph.nodes:
            if node.op == "call_function" and node.target is layout.channels_last:
                node.target = channels_last_for_tensor_cores
    return report, ordered


def asks_for_exact() -> bool:
    """Return True if the environment demands direct convolutions for all graphs."""
    return environment.get_choice("MXNET_CONVOLUTION_ALGORITHM", "fastest", "exact") == "exact"


# The oldest GPUs (by compute capability) whose tensor cores multiply these types: float32 as TF32, where that is allowed.
_TENSOR_CORES = {torch.float16: (7, 0), torch.bfloat16: (8, 0), torch.float32: (8, 0)}


def tf32_allowed() -> bool:
    """Return True if float32 convolutions may round their inputs to TF32."""
    return torch.backends.cudnn.conv.fp32_precision == "tf32"  # type: ignore[attr-defined]  # torch makes `conv` at run time


def wants_channels_last(data: torch.Tensor) -> bool:
    """Return True if convolutions of such data are faster with channels last: on GPUs those on tensor cores, on CPUs all."""
    return data.device.type != "cuda" or on_tensor_cores(data.dtype, data.device)


def on_tensor_cores(dtype: torch.dtype, device: torch.device) -> bool:
    """Return True if a GPU convolves data of this type on tensor cores."""
    if dtype not in _TENSOR_CORES or dtype is torch.float32 and not tf32_allowed():
        return False
    return torch.cuda.get_device_capability(device) >= _TENSOR_CORES[dtype]


def channels_last_for_tensor_cores(data: torch.Tensor) -> torch.Tensor:
    """Return the array with channels last, if convolutions are faster so; else unchanged."""
    return channels_last(data) if wants_channels_last(data) else data


def register(backend: Any) -> Any:
    """Add a backend, under ``backend.name``.

    Raises
    ------
    MXNetError
        If it lacks a part of the protocol; see the head of this module.
    """
    for needed in ("name", "compile", "specializes", "trains"):
        if not hasattr(backend, needed):
            raise MXNetError(f"a backend needs `{needed}`; {backend!r} has none")
    BACKENDS[backend.name] = backend
    return backend


def get(name: str | None = None) -> Any:
    """Return a backend by name; None for the default, which is chosen when a graph is compiled, and for `auto`.

    Without a name, the backend is that of ``MXNET_SUBGRAPH_BACKEND``.

    Raises
    ------
    Unavailable
        If there is none of that name.
    """
    if name is None:
        name = os.environ.get("MXNET_SUBGRAPH_BACKEND", "")
    if str(name).upper() in _DEFAULT_NAMES:
        return None
    if name == AUTO:
        return None
    if str(name).upper() == "NONE":
        return BACKENDS["native"]
    try:
        return BACKENDS[_NAMES_OF_MXNET.get(str(name).upper(), name)]
    except KeyError:
        raise Unavailable(f"no backend is called {name!r}; there are {', '.join(sorted(BACKENDS))}, auto, and MKLDNN or ONEDNN for the "
                          f"default{did_you_mean(name, BACKENDS)}") from None


def available(name: str) -> bool:
    """Return True if the named backend works here; otherwise the reason is logged, and graphs run without it, as in MXNet."""
    try:
        require = getattr(get(name), "require", None)
        if require is not None:
            require()
    except Unavailable as error:
        _log.warning("Error optimizing for backend '%s': %s; the graph runs without it", name, error)
        return False
    return True


# The attributes that `mark` sets on the nodes of a Symbol's outputs.
_BACKEND, _OPTIONS = "__subgraph_backend__", "__subgraph_options__"


def mark(symbol: Symbol, name: str, options: dict) -> Symbol:
    """Return a copy of a Symbol that runs on the named backend, with these options (a dict), when it is bound.

    Both are attributes of the outputs' nodes, and are saved in JSON. A Symbol composed of the copy is not marked.
    """
    out = copy.copy(symbol)
    for node, _ in out._outputs:
        node.attrs.update({_BACKEND: name, _OPTIONS: json.dumps(options, default=str)})
    return out


def marked(symbol: Symbol) -> tuple[str | None, dict]:
    """Return the backend's name and the options that `mark` has set on a Symbol, or None and an empty dict."""
    attrs = symbol._outputs[0][0].attrs if symbol._outputs else {}
    name = attrs.get(_BACKEND)
    if name is None or any(node.attrs.get(_BACKEND) != name for node, _ in symbol._outputs):
        return None, {}
    try:
        options = json.loads(attrs.get(_OPTIONS, "{}"))
    except (ValueError, RecursionError) as error:
        raise MXNetError(f"the options for backend {name!r}, kept as attribute {_OPTIONS} of the Symbol, are no JSON: {error}") from None
    if not isinstance(options, dict):
        raise MXNetError(f"the options for backend {name!r}, kept as attribute {_OPTIONS} of the Symbol, are no object: {options!r:.80}")
    return name, options


def check_device(backend: Any, device: torch.device) -> None:
    """Raise an MXNetError if the backend does not run on devices of this type."""
    types = getattr(backend, "devices", (device.type,))
    if device.type not in types:
        names = ["mx.gpu()" if t == "cuda" else f"mx.{t}()" for t in types]
        raise MXNetError(f"backend {backend.name!r} runs on {' and '.join(names)} only, but the graph is on {device}; move the arrays with "
                         f"as_in_context({names[0]}), or take another backend")


def can_run(backend: Any, device: torch.device) -> bool:
    """Return True if a backend works on a device of this machine."""
    if device.type not in getattr(backend, "devices", (device.type,)):
        return False
    available = getattr(backend, "available", None)
    return available is None or available()


register(Native())
