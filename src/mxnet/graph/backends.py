"""Backends: who runs a lowered graph.

A backend is an object with

``name``
    What ``hybridize(backend=name)``, ``optimize_for`` and ``MXNET_SUBGRAPH_BACKEND`` call it.
``compile(program, **options)``
    Returns a callable that takes the inputs of the `Program` (its module, and what is known about the values in it) and returns
    the tuple of outputs.
``specializes``
    Whether that callable is good for the shapes and types of ``program.inputs`` only.
``trains``
    Whether torch's autograd can record through it. Where it cannot, `native` trains.
``freezes`` (by default False)
    Whether it builds in the values of weights, ``program.constants``. It is then compiled again after they change.
``devices`` (by default all)
    The types of devices that it runs on.
``available()`` (optional)
    Whether it can work on this machine.

`division.divide` splits a program where a backend knows only some of its operators.
"""
import logging
import os

import torch

from .. import environment
from ..base import MXNetError

_log = logging.getLogger(__name__)
_backends: dict = {}
AUTO = "auto"  # the name that asks for a comparison of all backends at the first call
# MXNet's names for "the best there is on this device".
_DEFAULT_NAMES = {"", "MKLDNN", "ONEDNN", "MKLDNN_QUANTIZE", "ONEDNN_QUANTIZE", "DEFAULT"}


class Unavailable(MXNetError):
    """A backend that is known, but cannot work on this machine."""


class Native:
    """Runs the graph operator by operator on torch, after the passes that help there."""

    name = "native"
    specializes = False
    trains = True

    def compile(self, program):
        """The module, with its convolutions channels last and, for training, batch norms fused with what follows them."""
        program.report += prepare(program.module, program.inputs[0].device if program.inputs else torch.device("cpu"))
        return program.module.forward


def prepare(module, device, fuse=True):
    """Run the passes for torch on a module, which is rewritten; returns their report. A compiler that fuses itself needs no `fuse`."""
    if device.type != "cpu" or not environment.get_bool("MXNET_USE_FUSION"):
        return []
    from . import casts, fusion, layout
    report = casts.apply(module)
    ordered = layout.apply(module)
    report += ordered
    if fuse:
        report += fusion.apply(module) if ordered else fusion.rectify_in_place(module)
        report += fusion.separate_parameters(module)
    if report:
        module.recompile()
    if environment.get_bool("MXNET_FUSION_VERBOSE"):
        _log.warning("graph: %s", "; ".join(report) or "nothing to fuse")
    return report


def register(backend):
    """Add a backend, under ``backend.name``.

    Raises
    ------
    MXNetError
        If it lacks a part of the protocol; see the head of this module.
    """
    for needed in ("name", "compile", "specializes", "trains"):
        if not hasattr(backend, needed):
            raise MXNetError(f"a backend needs `{needed}`; {backend!r} has none")
    _backends[backend.name] = backend
    return backend


def get(name=None):
    """A backend by name; None for the default, which is chosen when a graph proves to be worth compiling, and for `auto`.

    Without a name, the one that ``MXNET_SUBGRAPH_BACKEND`` names.

    Raises
    ------
    MXNetError
        If there is none of that name.
    """
    if name is None:
        name = os.environ.get("MXNET_SUBGRAPH_BACKEND", "")
    if str(name).upper() in _DEFAULT_NAMES:
        return None
    if name == AUTO:
        return None
    if str(name).upper() == "NONE":
        return _backends["native"]
    try:
        return _backends[name]
    except KeyError:
        raise MXNetError(f"no backend is called {name!r}; there are {', '.join(sorted(_backends))}, auto, and MKLDNN or ONEDNN for the "
                         "default") from None


def can_run(backend, device):
    """Whether a backend works on a device of this machine."""
    if device.type not in getattr(backend, "devices", (device.type,)):
        return False
    available = getattr(backend, "available", None)
    return available is None or available()


register(Native())
