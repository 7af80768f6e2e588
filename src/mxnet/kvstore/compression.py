"""Gradient compression: one or two bits for each number, with error feedback, or 16-bit floats."""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from ..base import MXNetError
from ..suggestions import shortened
from .compressed_allreduce import Code


class TwoBitCompression:
    """Sends +threshold, 0 or -threshold for each number, four numbers in a byte.

    The difference stays in a residual for each sender and is added to its next gradient (error feedback).

    Parameters
    ----------
    threshold : float
        Above 0.
    """

    def __init__(self, threshold: float = 0.5):
        if not threshold > 0:
            raise MXNetError(f"gradient compression: threshold must be greater than 0, received {threshold}")
        self.threshold, self.code = threshold, Code([0, 0, -1, 1], threshold)

    def __repr__(self) -> str:
        return f"2bit({self.threshold!r})"

    def compress(self, gradient: torch.Tensor, residual: torch.Tensor) -> torch.Tensor:
        """Compress a gradient to two bits a number; the error is stored in `residual`, in place.

        Parameters
        ----------
        gradient, residual : torch.Tensor
            Of the same shape.

        Returns
        -------
        torch.Tensor of uint8
            In MXNet's layout: the first number of a byte in its highest bits; 3 stands for +threshold, 2 for -threshold.
        """
        residual.add_(gradient.to(residual.dtype))
        high, low = residual >= self.threshold, residual <= -self.threshold
        residual.sub_(high.to(residual.dtype) - low.to(residual.dtype), alpha=self.threshold)
        codes = (high.to(torch.uint8) * 3 + low.to(torch.uint8) * 2).flatten()
        # MXNet's buffers pack a block of 16 numbers into one float32; the last block is padded.
        codes = torch.nn.functional.pad(codes, (0, -codes.numel() % 16)).view(-1, 4)
        return codes[:, 0] << 6 | codes[:, 1] << 4 | codes[:, 2] << 2 | codes[:, 3]

    def decompress(self, packed: torch.Tensor, shape: torch.Size, dtype: torch.dtype = torch.float32) -> torch.Tensor:
        """Decompress the numbers of `compress` to a tensor of this shape."""
        shifts = torch.tensor([6, 4, 2, 0], dtype=torch.uint8, device=packed.device)
        codes = packed[:, None] >> shifts & 3
        values = torch.tensor([0.0, 0.0, -self.threshold, self.threshold], dtype=dtype, device=packed.device)
        return values[codes.flatten()[:shape.numel()].int()].view(shape)


class OneBitCompression:
    """Sends +1 where gradient plus residual is above the threshold, else -1, eight numbers in a byte; with error feedback as for two bits.

    Parameters
    ----------
    threshold : float
    """

    def __init__(self, threshold: float = 0.5):
        self.threshold, self.code = threshold, Code([-1, 1], 1)

    def __repr__(self) -> str:
        return f"1bit({self.threshold!r})"

    def compress(self, gradient: torch.Tensor, residual: torch.Tensor) -> torch.Tensor:
        """Compress a gradient to one bit a number, the first in a byte's highest bit; the error is stored in `residual`, in place."""
        residual.add_(gradient.to(residual.dtype))
        high = residual > self.threshold
        residual.sub_(high.to(residual.dtype).mul_(2).sub_(1))
        bits = torch.nn.functional.pad(high.flatten().to(torch.uint8), (0, -high.numel() % 32)).view(-1, 8)
        return (bits << torch.arange(7, -1, -1, dtype=torch.uint8, device=bits.device)).sum(1, dtype=torch.uint8)

    def decompress(self, packed: torch.Tensor, shape: torch.Size, dtype: torch.dtype = torch.float32) -> torch.Tensor:
        """Decompress the numbers of `compress` to a tensor of this shape."""
        bits = packed[:, None] >> torch.arange(7, -1, -1, dtype=torch.uint8, device=packed.device) & 1
        return bits.flatten()[:shape.numel()].to(dtype).mul_(2).sub_(1).view(shape)


class HalfCompression:
    """Sends numbers as 16-bit floats, and sums them in 32 bits.

    Parameters
    ----------
    dtype : torch.float16 or torch.bfloat16
    """

    def __init__(self, dtype: torch.dtype):
        self.dtype = dtype

    def __repr__(self) -> str:
        return str(self.dtype)

    def compress(self, gradient: torch.Tensor, residual: torch.Tensor) -> torch.Tensor:
        """Compress a gradient to 16 bits a number; `residual` is not changed."""
        return gradient.to(self.dtype)

    def decompress(self, packed: torch.Tensor, shape: torch.Size, dtype: torch.dtype = torch.float32) -> torch.Tensor:
        """Decompress the numbers of `compress` to a tensor of this shape."""
        return packed.to(dtype).view(shape)


_KINDS = {"2bit": TwoBitCompression, "1bit": OneBitCompression, "fp16": torch.float16, "bf16": torch.bfloat16}


def make_compression(params: Mapping[str, Any]) -> Any:
    """Return the compression for ``{'type': '2bit', 'threshold': 0.5}``; the other types are ``1bit``, ``fp16`` and ``bf16``.

    Raises
    ------
    MXNetError
        If the type is unknown, or the threshold is no number, not above 0 for ``2bit``, or given for a type without one.
    """
    if not isinstance(params, dict):
        raise MXNetError(f"gradient compression: expected a dict such as {{'type': '2bit', 'threshold': 0.5}}, received {shortened(params)}")
    kind = _KINDS.get(params.get("type"))
    if kind is None:
        raise MXNetError(f"Unknown type for gradient compression {params.get('type')!r}; expected {', '.join(map(repr, _KINDS))}")
    unknown = set(params) - {"type"} - ({"threshold"} if isinstance(kind, type) else set())
    if unknown:
        raise MXNetError(f"gradient compression of type {params['type']!r} has no {', '.join(sorted(map(str, unknown)))}")
    if not isinstance(kind, type):
        return HalfCompression(kind)
    try:
        threshold = float(params.get("threshold", 0.5))
    except (TypeError, ValueError):
        raise MXNetError(f"gradient compression: threshold must be a number, received {shortened(params['threshold'])}") from None
    return kind(threshold)
