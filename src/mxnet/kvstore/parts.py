"""The placement of keys on servers: small keys on one, by a hash of their name; large ones are divided evenly among all."""
from __future__ import annotations

import math
import zlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from .. import environment

if TYPE_CHECKING:
    import torch


class Part(NamedTuple):
    """Rows `begin` to `end` of a value on a server; of its elements if the value is `flat`."""

    server: int
    begin: int
    end: int
    flat: bool


def divide(key: int | str, shape: Sequence[int], servers: int, sparse: bool = False) -> list[Part]:
    """Return the `Part`s of a value, in order.

    Values of ``MXNET_KVSTORE_BIGARRAY_BOUND`` elements and more are divided among all servers: by rows, or by elements if there are fewer rows than
    servers.

    Example
    -------
    >>> from mxnet.kvstore.parts import divide
    >>> [tuple(part) for part in divide('w', (3, 2), 4)]
    [(1, 0, 3, False)]
    >>> [tuple(part) for part in divide('w', (5, 1000000), 2)]
    [(0, 0, 2, False), (1, 2, 5, False)]
    """
    rows, size = (shape[0] if shape else 1), math.prod(shape)
    if servers == 1 or size < environment.get_int("MXNET_KVSTORE_BIGARRAY_BOUND") or (sparse and rows < servers):
        # Not Python's hash, which differs between processes.
        return [Part(zlib.crc32(repr(key).encode()) % servers, 0, rows, False)]
    flat = rows < servers
    count = size if flat else rows
    edges = [count * i // servers for i in range(servers + 1)]
    return [Part(i, begin, end, flat) for i, (begin, end) in enumerate(zip(edges, edges[1:]))]


def cut(tensor: torch.Tensor, part: Part) -> torch.Tensor:
    """Return a part of a tensor as a view."""
    if part.flat:
        return tensor.reshape(-1)[part.begin:part.end]
    return tensor[part.begin:part.end] if tensor.dim() else tensor
