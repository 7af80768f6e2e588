"""Row_sparse arrays of which only the rows that somebody asks for are computed, for graphs: a product with a csr matrix asks for few."""
from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import torch

from .. import dispatch
from .arrays import RowSparseNDArray

if TYPE_CHECKING:
    from ...context import Context
    from ...ops.registry import Operator


class RowsOnDemand(RowSparseNDArray):
    """What an operator makes of a row_sparse array, each row of that row.

    Parameters
    ----------
    source : RowSparseNDArray
        Must stay as it is.
    op : Operator
    attributes : dict
        The operator's, parsed.
    shape : tuple of int
    """

    __slots__ = ("_source", "_op", "_attributes", "_all")
    _all: torch.Tensor | None

    def __init__(self, source: RowSparseNDArray, op: Operator, attributes: dict[str, Any], shape: tuple[int, ...]) -> None:
        self._source, self._op, self._attributes, self._all = source, op, attributes, None
        self._full_shape, self._ctx, self._autograd, self._leaf, self._token = shape, source._ctx, None, None, None
        self._complete = None, None

    @classmethod
    def _make(cls, values: torch.Tensor, aux: Iterable[torch.Tensor], shape: Sequence[int], ctx: Context) -> Any:
        return RowSparseNDArray._make(values, aux, shape, ctx)  # what is made of it is an ordinary array

    @property
    def _values(self) -> torch.Tensor:  # type: ignore[override]  # nobody sets it
        if self._all is None:
            self._all = self._op.raw(self._source._values, **self._attributes)
        return self._all

    @property
    def _aux(self) -> list[torch.Tensor]:  # type: ignore[override]  # nobody sets it
        return self._source._aux

    def _has_all_rows(self) -> bool:
        return self._source._has_all_rows()

    def _rows(self, wanted: torch.Tensor) -> torch.Tensor:
        return self._op.raw(self._source._rows(wanted), **self._attributes) if self._all is None else super()._rows(wanted)


def computed(array: Any) -> Any:
    """An array that does not depend on another: this one, unless its rows are computed on demand."""
    if not isinstance(array, RowsOnDemand):
        return array
    found = RowSparseNDArray._make(array._values.clone(), [a.clone() for a in array._aux], array.shape, array._ctx)
    found._leaf, found._token = array._leaf, array._token
    dispatch.share_history(found, array._autograd)
    return found
