"""Documentation of operators on Symbols, separate from their definitions."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .symbol import Symbol


class SymbolDoc:
    """The base class of separate documentation: a subclass ``<operator>Doc`` has the additional docstring of an operator."""

    @staticmethod
    def get_output_shape(sym: Symbol, **input_shapes: tuple[int, ...]) -> dict[str, Any]:
        """Return the shape of each output by name.

        Example
        -------
        >>> import mxnet as mx
        >>> mx.symbol_doc.SymbolDoc.get_output_shape(mx.sym.FullyConnected(mx.sym.var('x'), num_hidden=3, name='fc'), x=(2, 5))
        {'fc_output': (2, 3)}
        """
        return dict(zip(sym.list_outputs(), sym.infer_shape(**input_shapes)[1]))
