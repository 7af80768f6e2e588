"""All-reduce of compressed gradients: each worker sums one share of all codes, and sends the compressed sums to all workers.

If every worker sent its codes to all others, the traffic would grow with their number: with three workers it would be a tenth of the dense gradients.
Here it stays about that of two workers. The sums are integers from -n to n, most of them 0, so that their Huffman codes are short, as for the inputs.
"""
from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist

from ..base import MXNetError

if TYPE_CHECKING:
    from .group import Group


class Code:
    """The decoding table of a compression: from packed bytes to integers.

    Parameters
    ----------
    values : list of int
        The integers of the codes 0, 1, ..., from -1 to 1; their number is a power of two. The first code is in a byte's highest bits.
    unit : float
        The value of the integer 1.
    """

    def __init__(self, values: torch.Tensor, unit: float):
        bits = (len(values) - 1).bit_length()
        self.unit, self.per_byte = unit, 8 // bits
        shifts = torch.arange(8 - bits, -1, -bits)
        self._table = torch.tensor(values, dtype=torch.int8)[torch.arange(256)[:, None] >> shifts & (len(values) - 1)]

    def numbers(self, packed: torch.Tensor) -> torch.Tensor:
        """Decode bytes to integers, (bytes * per_byte,) int8."""
        return self._table.to(packed.device)[packed.int()].view(-1)


def begin_sum(net: Group, packed: torch.Tensor, code: Code, doing: str) -> Callable[[], Any]:
    """Begin the sum of the workers' codes, decoded to integers.

    Parameters
    ----------
    net : Group
    packed : torch.Tensor of uint8
        The codes; of the same size on all workers.
    code : Code

    Returns
    -------
    function
        Waits for the end, and returns the sums, (bytes * per_byte,) integers.
    """
    count, share = packed.numel(), -(-packed.numel() // net.num_workers)
    mine = [_shortened(part) for part in packed.cpu().split(share)]
    mine += [mine[0][:0]] * (net.num_workers - len(mine))
    sizes = torch.tensor([part.numel() for part in mine])
    told = net.begin_gather(sizes, doing)

    def end():
        coming = told()[:, net.rank].tolist()
        received = torch.empty(sum(coming), dtype=torch.uint8)
        net._count(sum(part.numel() for i, part in enumerate(mine) if i != net.rank))
        net.wait(net.begin(dist.all_to_all_single, received, torch.cat(mine), coming, sizes.tolist(), group=net._gloo), doing)
        own = max(0, min(share, count - net.rank * share))
        total = torch.zeros(own * code.per_byte, dtype=torch.int8 if net.num_workers < 128 else torch.int32)
        for part in received.split(coming) if own else ():
            total += code.numbers(_restored(part, own, doing))
        sums = _shortened(_paired(total, net.num_workers))
        lengths = net.begin_gather(torch.tensor([sums.numel()]), doing)().flatten().tolist()
        found = []
        for i, part in enumerate(net.all_gather_uneven(sums, lengths, doing)):
            numbers = max(0, min(share, count - i * share)) * code.per_byte
            found.append(_unpaired(part, numbers, net.num_workers, doing))
        return torch.cat(found).to(packed.device)
    return end


def _paired(sums, most):
    """Encode sums from ``-most`` to ``most`` as bytes, two in a byte if they fit."""
    levels = 2 * most + 1
    if levels * levels > 256:
        return sums.view(torch.uint8)
    sums = torch.nn.functional.pad(sums + most, (0, len(sums) % 2)).to(torch.uint8).view(-1, 2)
    return sums[:, 0] * levels + sums[:, 1]


def _unpaired(part, count, most, doing):
    """Decode `count` sums that `_paired` and `_shortened` have encoded."""
    levels, wide = 2 * most + 1, torch.int8 if most < 128 else torch.int32
    if levels * levels > 256:
        return _restored(part, count * wide.itemsize, doing).view(wide)
    pairs = _restored(part, -(-count // 2), doing)
    return torch.stack([pairs // levels, pairs % levels], 1).view(-1)[:count].to(wide) - most


def _shortened(tensor):
    """Return bytes compressed with a Huffman code."""
    coder = zlib.compressobj(1, wbits=-15, strategy=zlib.Z_HUFFMAN_ONLY)
    return torch.frombuffer(bytearray(coder.compress(tensor.contiguous().numpy()) + coder.flush()), dtype=torch.uint8)


def _restored(part, count, doing):
    """Decompress `count` bytes that `_shortened` has compressed."""
    decoder = zlib.decompressobj(wbits=-15)
    try:
        found = decoder.decompress(part.numpy(), count + 1)
    except zlib.error as error:
        raise MXNetError(f"{doing}: another worker sent compressed gradients that are damaged ({error})") from error
    if len(found) != count:
        raise MXNetError(f"{doing}: another worker sent compressed gradients of {'more' if len(found) > count else 'fewer'} than {count} bytes")
    return torch.frombuffer(bytearray(found), dtype=torch.uint8) if count else torch.empty(0, dtype=torch.uint8)
