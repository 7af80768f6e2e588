"""The ranks over which layers are split, and their collectives on rows of tensors. One process alone is a rank, which sends nothing."""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

import torch
import torch.distributed as dist

from ..base import MXNetError
from . import group, rendezvous


class Ranks:
    """The workers of this process's job.

    All ranks make the same calls in the same order; `doing` names the call in errors.
    """

    def __init__(self) -> None:
        where = rendezvous.place()
        self._group = group.joined("dist_sync") if where is not None and where.num_workers > 1 else None
        self.rank, self.count = (self._group.rank, self._group.num_workers) if self._group else (0, 1)

    def edges(self, rows: int) -> list[int]:
        """Return ``count + 1`` numbers: rank i has the rows from edge i to edge i + 1."""
        return [rows * i // self.count for i in range(self.count + 1)]

    def agree(self, doing: str, *numbers: int, about: Mapping[str, Any] | None = None) -> list[list[int]]:
        """Return the numbers of all ranks, a list for each rank.

        `about` are properties that the call must have on all ranks, such as types and sizes of what they exchange next; errors name those that
        differ.

        Raises
        ------
        MXNetError
            If the ranks do not call it for the same thing, or have another count of numbers. All ranks raise it.
        """
        if self._group is None:
            return [list(numbers)]
        return self._group.numbers_of_all(doing, *numbers, about=about)

    def fail(self, doing: str, error: MXNetError) -> NoReturn:
        """Raise an error of this rank, in place of a call of `agree`, from which the other ranks then raise one that quotes it.

        Without this they would wait until this process ends.
        """
        if self._group is not None:
            self._group.announce(doing, str(error))
        raise error

    def gather(self, tensor: torch.Tensor, sizes: Sequence[int], doing: str) -> torch.Tensor:
        """Return the rows of all ranks, which have as many as `sizes` says, one rank after the other."""
        if self._group is None:
            return tensor
        if len(set(sizes)) == 1:
            return self._group.begin_gather(tensor, doing)().flatten(0, 1)
        return torch.cat(self._group.all_gather_uneven(tensor, sizes, doing))

    def begin_scatter(self, tensor: torch.Tensor, sizes: Sequence[int], doing: str) -> Callable[[], torch.Tensor]:
        """Begin to add up the tensors of all ranks; return a function that waits for this rank's rows of the sum, as many as `sizes` says."""
        if self._group is None:
            return lambda: tensor
        joined = tensor.contiguous().view(-1)
        end = self._group.begin_sum_parts([part.view(-1) for part in joined.view(tensor.shape).split(sizes)], doing, joined)
        return lambda: end().to(tensor.dtype).view(sizes[self.rank], *tensor.shape[1:])

    def exchange(self, tensor: torch.Tensor, sent: Sequence[int], received: Sequence[int], doing: str) -> torch.Tensor:
        """Send ``sent[i]`` rows to rank i, in order, and return the ``received[i]`` rows of each rank i, in order."""
        if self._group is None:
            return tensor
        out = tensor.new_empty((sum(received), *tensor.shape[1:]))
        self._group._count(tensor.nbytes * (len(tensor) - sent[self.rank]) // max(len(tensor), 1))
        work = self._group.begin(dist.all_to_all_single, out, tensor.contiguous(), list(received), list(sent), group=self._group._group_for(tensor))
        self._group.wait(work, doing)
        return out

    def sum(self, tensor: torch.Tensor, doing: str) -> None:
        """Add up a tensor over all ranks, in place."""
        self._reduce(tensor, dist.ReduceOp.SUM, doing)

    def max(self, tensor: torch.Tensor, doing: str) -> None:
        """Take the maximum of each element over all ranks, in place."""
        self._reduce(tensor, dist.ReduceOp.MAX, doing)

    def _reduce(self, tensor, operation, doing):
        if self._group is not None:
            self._group.wait(self._group.all_reduce(tensor, operation), doing)

    def from_first(self, number: int, doing: str, about: Mapping[str, Any] | None = None) -> int:
        """Return the number of rank 0; `about` and errors as in `agree`."""
        return self.agree(doing, number, about=about)[0][0]

    def require_rows(self, rows: Any, parts: Any, name: str) -> None:
        """Raise an error if there is not a row for each part of each rank."""
        if rows < self.count * parts:
            raise MXNetError(f"{name}: {rows} rows can't be divided among {self.count} ranks with {parts} contexts each; use fewer, or a layer that "
                             "is not split")


def ranks() -> Ranks:
    """Return the `Ranks` of this process; the first call joins the job."""
    return Ranks()
