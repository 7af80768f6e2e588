"""Backends: who runs a lowered graph.

A backend is an object with a `name` and `compile(module, inputs, **options)`, which returns a callable that takes the inputs and
returns the tuple of outputs. ``specializes`` says whether what it returns is good for other shapes than those of `inputs`;
``trains`` whether torch's autograd can record through it.
"""
import os

from ..base import MXNetError

_backends: dict = {}
# MXNet's names for "the best there is on this device".
_DEFAULT_NAMES = {"", "NONE", "MKLDNN", "ONEDNN", "MKLDNN_QUANTIZE", "DEFAULT"}


class Native:
    """Runs the graph as it is, operator by operator, on torch."""

    name = "native"
    specializes = False
    trains = True

    def compile(self, module, inputs, **options):
        """The module itself; takes no options."""
        if options:
            raise MXNetError(f"backend 'native' takes no options, received {sorted(options)}")
        return module.forward


def register(backend):
    """Add a backend, under ``backend.name``."""
    for needed in ("name", "compile", "specializes", "trains"):
        if not hasattr(backend, needed):
            raise MXNetError(f"a backend needs `{needed}`; {backend!r} has none")
    _backends[backend.name] = backend
    return backend


def get(name=None):
    """A backend by name; by default the one that ``MXNET_SUBGRAPH_BACKEND`` names, else `native`.

    Raises
    ------
    MXNetError
        If there is none of that name.
    """
    if name is None:
        name = os.environ.get("MXNET_SUBGRAPH_BACKEND", "")
    if str(name).upper() in _DEFAULT_NAMES:
        return _backends["native"]
    try:
        return _backends[name]
    except KeyError:
        raise MXNetError(f"no backend is called {name!r}; there are {', '.join(sorted(_backends))} (and MKLDNN or ONEDNN for the default)") from None


register(Native())
