"""Rows of a split table: looked up by indices, and multiplied with csr batches."""
from __future__ import annotations

from typing import Any

import torch

from ..context import cpu
from ..ndarray import dispatch
from ..ndarray.sparse.dispatch import coordinates, csr_from_coordinates
from ..ndarray.sparse.rows import by_rows, times, transposed_times
from ..ops.dtypes import name_of
from .sharded_inputs import as_integers, first_outside, require_inside
from .sharded_parameter import ranks
from .sharded_softmax import recorded
from .utils import UsageError

__all__: list[str] = []

_LOOKUP, _PRODUCT = (dispatch.pseudo_operator(f"ShardedEmbedding ({kind})") for kind in ("indices", "csr"))


class _Table(torch.autograd.Function):
    """A call of `_Lookup` or `_Product` on the parts of the table."""

    @staticmethod
    def forward(ctx: Any, step: Any, *tables: torch.Tensor) -> tuple[torch.Tensor, ...]:
        ctx.step = step
        ctx.shapes = [(table.shape, table.device) for table in tables]
        return step.forward(tables)

    @staticmethod
    def backward(ctx: Any, *heads: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        return None, *ctx.step.backward(heads, ctx.shapes)


class _Step:
    """The parts of a table, and of this rank's batch."""

    def __init__(self, weight: Any, sizes: list[int], places: list[torch.device]) -> None:
        self.ranks, self.name, self.edges, self.rows, self.sizes, self.places = ranks(), weight.name, weight.edges(), weight.shape[0], sizes, places
        self.shape = weight.shape

    def about(self, table: torch.Tensor) -> dict[str, Any]:
        """Return what must be the same on all ranks, whose rows travel."""
        return {"the table's shape": self.shape, "its dtype": name_of(table.dtype)}

    def out(self, rows: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Return the rows of the batch's parts, each on its device."""
        return tuple(part.to(place) if part.device != place else part.clone() if len(self.sizes) > 1 else part
                     for part, place in zip(rows.split(self.sizes), self.places))

    def cat(self, heads: tuple[torch.Tensor, ...]) -> torch.Tensor:
        return torch.cat([head.to(self.places[0]) for head in heads])


class _Lookup(_Step):
    """Rows by indices: each rank asks the others for those that its batch needs, each once."""

    def __init__(self, weight: Any, indices: list[torch.Tensor]) -> None:
        super().__init__(weight, [index.numel() for index in indices], [index.device for index in indices])
        self.needed, self.inverse = torch.cat([as_integers(index).to(self.places[0]) for index in indices]).unique(return_inverse=True)
        self.indices = indices

    def forward(self, tables: tuple[torch.Tensor, ...]) -> tuple[torch.Tensor, ...]:
        doing, needed = f"lookup in {self.name}", self.needed
        limits = torch.tensor(self.ranks.edges(self.rows), device=needed.device)
        counts = torch.searchsorted(needed, limits).diff().tolist()
        # Those outside of the table are in no rank's rows.
        wrong = first_outside(self.indices, self.rows) if sum(counts) < len(needed) else (0, 0)
        del self.indices
        answers = self.ranks.agree(doing, *wrong, *counts, about=self.about(tables[0]))
        require_inside(f"{doing}: indices are from 0 to {self.rows - 1}", answers)
        self.sent = counts
        self.received = [answer[2 + self.ranks.rank] for answer in answers]
        self.wanted = self.ranks.exchange(needed, self.sent, self.received, doing)
        rows = self.ranks.exchange(self._take(tables), self.received, self.sent, doing)
        return self.out(rows.index_select(0, self.inverse))

    def _take(self, tables: tuple[torch.Tensor, ...]) -> torch.Tensor:
        if len(tables) == 1:
            return tables[0].index_select(0, (self.wanted - self.edges[0]).to(tables[0].device)).to(self.places[0])
        out = tables[0].new_empty((len(self.wanted), tables[0].shape[1]), device=self.places[0])
        for begin, end, table in zip(self.edges, self.edges[1:], tables):
            mine = ((self.wanted >= begin) & (self.wanted < end)).nonzero().view(-1)
            out[mine] = table.index_select(0, (self.wanted[mine] - begin).to(table.device)).to(out.device)
        return out

    def backward(self, heads: tuple[torch.Tensor, ...], tables: list[tuple[torch.Size, torch.device]]) -> list[torch.Tensor]:
        doing, head = f"gradients of {self.name}", self.cat(heads)
        own = head.new_zeros((len(self.needed), head.shape[1])).index_add_(0, self.inverse, head)
        values = self.ranks.exchange(own, self.sent, self.received, doing)
        found = []
        for begin, end, (shape, device) in zip(self.edges, self.edges[1:], tables):
            mine = ((self.wanted >= begin) & (self.wanted < end)).nonzero().view(-1)
            rows, number = self.wanted[mine].unique(return_inverse=True)
            total = values.new_zeros((len(rows), values.shape[1])).index_add_(0, number, values.index_select(0, mine))
            found.append(by_rows((rows - begin).to(device), total.to(device), shape))
        return found


class _Product(_Step):
    """Products of csr batches: the batches of all ranks are multiplied with each part of the table, and the results added up."""

    def __init__(self, weight: Any, batches: list[Any]) -> None:
        super().__init__(weight, [batch.shape[0] for batch in batches], [batch._values.device for batch in batches])
        home, first, entries = self.places[0], 0, []
        for batch in batches:
            if batch.shape[1] != self.rows:
                doing = f"product with {self.name}"
                self.ranks.fail(doing, UsageError(f"{doing}: csr batches of {self.rows} columns expected, received shape {batch.shape}"))
            rows, columns = coordinates(batch)
            entries.append((batch._values.to(home), (rows + first).to(home), columns.to(home)))
            first += batch.shape[0]
        self.values, self.numbers, self.columns = (torch.cat(part) for part in zip(*entries))

    def forward(self, tables: tuple[torch.Tensor, ...]) -> tuple[torch.Tensor, ...]:
        doing, found = f"product with {self.name}", self.ranks
        own = sum(self.sizes)
        self.batches, stored = map(list, zip(*found.agree(doing, own, len(self.values), about=self.about(tables[0]))))
        first = sum(self.batches[:found.rank])
        values = found.gather(self.values.to(tables[0].dtype), stored, doing)
        places = found.gather(torch.stack([self.numbers + first, self.columns], 1), stored, doing)
        outside = (places[:, 1] < 0) | (places[:, 1] >= self.rows)
        if outside.any():  # all ranks have the same places, and fail together
            raise UsageError(f"{doing}: columns are from 0 to {self.rows - 1}, received {int(places[outside][0, 1])}")
        self.parts, total = [], None
        for begin, end, table in zip(self.edges, self.edges[1:], tables):
            mine = ((places[:, 1] >= begin) & (places[:, 1] < end)).nonzero().view(-1)
            rows, columns = places[mine].t().contiguous().to(table.device)
            needed, number = (columns - begin).unique(return_inverse=True)
            shape = sum(self.batches), len(needed)
            matrix = csr_from_coordinates(values[mine].to(table.device), rows, number, shape, cpu())  # its device is the tensors'
            self.parts.append((matrix, needed, number))
            part = times(matrix, number, table.index_select(0, needed)) if len(needed) else table.new_zeros((matrix.shape[0], table.shape[1]))
            part = part.to(self.places[0])
            total = part if total is None else total + part
        return self.out(found.begin_scatter(total, self.batches, doing)())

    def backward(self, heads: tuple[torch.Tensor, ...], tables: list[tuple[torch.Size, torch.device]]) -> list[torch.Tensor]:
        head = self.ranks.gather(self.cat(heads), self.batches, f"gradients of {self.name}")
        return [by_rows(needed, transposed_times(matrix, number, len(needed), head.to(device)) if len(needed) else head[:0].to(device), shape)
                for (matrix, needed, number), (shape, device) in zip(self.parts, tables)]


def lookup(weight: Any, parts: list[Any]) -> list[Any]:
    """Return the rows of a split weight that indices, in arrays of any shape, name."""
    step = _Lookup(weight, [part._raw() for part in parts])
    found = recorded(_Table, _LOOKUP, weight.list_data(), step, [(type(part), part.ctx) for part in parts])
    return [array.reshape((*part.shape, weight.shape[1])) for array, part in zip(found, parts)]


def product(weight: Any, parts: list[Any]) -> list[Any]:
    """Return the products of csr batches with a split weight."""
    tables = weight.list_data()
    return recorded(_Table, _PRODUCT, tables, _Product(weight, parts), [(type(tables[0]), part.ctx) for part in parts])
