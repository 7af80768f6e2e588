"""The arrays of a checkpoint: flat ranges of elements, so that a part of any division can be read into a part of any other."""
from __future__ import annotations

import dataclasses

import torch

_LARGE = 1 << 20  # bytes: equal arrays of this size and more are divided among all ranks, smaller ones go to one rank each


@dataclasses.dataclass
class Entry:
    """An array, of which this process has, or needs, some pieces.

    Attributes
    ----------
    shape : tuple of int
        The shape of the whole array.
    dtype : torch.dtype
    pieces : list of (int, torch.Tensor)
        The number of a piece's first element, and a flat tensor of its elements.
    """

    shape: tuple[int, ...]
    dtype: torch.dtype
    pieces: list[tuple[int, torch.Tensor]]

    @property
    def size(self) -> int:
        """The number of elements of the whole array."""
        return torch.Size(self.shape).numel()


def share_of(entries: dict[str, Entry], rank: int, count: int) -> dict[str, Entry]:
    """Return the pieces that a rank writes of arrays which all ranks have alike."""
    share, load = {}, [0] * count
    for name, entry in entries.items():
        nbytes = entry.size * entry.dtype.itemsize
        if nbytes >= _LARGE:
            begin, end = entry.size * rank // count, entry.size * (rank + 1) // count
            share[name] = dataclasses.replace(entry, pieces=[(begin, entry.pieces[0][1][begin:end])])
            continue
        owner = load.index(min(load))
        load[owner] += nbytes
        if owner == rank:
            share[name] = entry
    return share
