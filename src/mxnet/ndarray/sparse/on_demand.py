"""Row_sparse arrays whose rows are computed on demand: a product with a csr matrix reads few rows of a graph's result."""
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
    """The lazy result of an operator that computes each row from the same row of a row_sparse array.

    Parameters
    ----------
    source : RowSparseNDArray
        Must not be changed.
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
        return RowSparseNDArray._make(values, aux, shape, ctx)  # results derived from it are ordinary arrays

    @property
    def _values(self) -> torch.Tensor:  # type: ignore[override]  # it has no setter
        if self._all is None:
            self._all = self._op.raw(self._source._values, **self._attributes)
        return self._all

    @property
    def _aux(self) -> list[torch.Tensor]:  # type: ignore[override]  # it has no setter
        return self._source._aux

    def _has_all_rows(self) -> bool:
        return self._source._has_all_rows()

    def _rows(self, wanted: torch.Tensor) -> torch.Tensor:
        return self._op.raw(self._source._rows(wanted), **self._attributes) if self._all is None else super()._rows(wanted)


def computed(array: Any) -> Any:
    """Return an array that does not depend on another: this one, unless its rows are computed on demand."""
    if not isinstance(array, RowsOnDemand):
        return array
    result = RowSparseNDArray._make(array._values.clone(), [a.clone() for a in array._aux], array.shape, array._ctx)
    result._leaf, result._token = array._leaf, array._token
    dispatch.share_history(result, array._autograd)
    return result
