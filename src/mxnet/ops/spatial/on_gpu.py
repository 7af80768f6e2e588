"""Parts that the GPU paths of the detection operators share: the choice of the path, and the size of chunks.

These paths are torch operations on the device alone. Nothing is copied from or to the host, and no number is read on the host, since each of
these makes the host wait for the GPU. All loops are over shapes.
"""
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

CHUNK_BYTES = 1 << 28  # temporary memory of one chunk


def on_gpu(tensor: "torch.Tensor") -> bool:
    """Return whether the data is on an accelerator. Shape inference (device "meta") follows the CPU's path."""
    return tensor.device.type not in ("cpu", "meta")


def per_chunk(bytes_each: int) -> int:
    """Return how many items fit into one chunk, at least one."""
    return max(1, CHUNK_BYTES // max(1, bytes_each))
