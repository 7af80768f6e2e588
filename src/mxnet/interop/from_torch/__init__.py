"""Modules of torch as Symbols: `exporting` has torch.export make a graph, `walking` goes through its nodes, the other modules say what each becomes.

`registry` is the table from torch's operators to functions that compose MXNet's; these stand by family in `arithmetic`, `layers`, `shapes`,
`reductions` and `attention`. `values` holds what they get and return.
"""
from . import arithmetic, attention, layers, reductions, shapes
from .walking import Translation, translate

__all__ = ["Translation", "translate"]
