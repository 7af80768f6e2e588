"""The MNIST data set in its own file format."""
import gzip
import logging
import struct
import zlib
from collections.abc import Iterator
from typing import IO, Any

import numpy as np
import torch

from ..base import MXNetError
from ..files import open_stream
from ..ops import dtypes
from .native import BatchSource, Dtype, LoaderContext, native_iterator, require

__all__ = ["MNISTIter"]
_log = logging.getLogger(__name__)

_PIECE = 1 << 20


def _read_at_most(stream: IO[bytes], length: int) -> bytes:
    pieces = []
    while length:
        piece = stream.read(min(length, _PIECE))
        if not piece:
            break
        pieces.append(piece)
        length -= len(piece)
    return b"".join(pieces)


def read_idx(path: str, ndim: int) -> np.ndarray:
    """Read the array of an IDX file of unsigned bytes, which may be compressed with gzip.

    Parameters
    ----------
    path : str
    ndim : int
        The required number of axes.

    Raises
    ------
    MXNetError
        If the file is not an IDX file or is truncated.
    """
    try:
        with open_stream(path) as raw:
            packed = raw.read(2) == b"\x1f\x8b"
            raw.seek(0)
            stream: Any = gzip.GzipFile(fileobj=raw) if packed else raw
            head = stream.read(4 + 4 * ndim)
            require(len(head) == 4 + 4 * ndim and head[:4] == bytes((0, 0, 8, ndim)),
                    f"{path}: invalid mnist format: expected an idx file of unsigned bytes with {ndim} axes, which starts with "
                    f"{bytes((0, 0, 8, ndim)).hex()}, found {head[:4].hex()}")
            shape = struct.unpack(f">{ndim}I", head[4:])
            length = int(np.prod(shape, dtype=object))
            content = _read_at_most(stream, length)
    except (OSError, EOFError, zlib.error) as error:
        raise MXNetError(f"{path}: cannot be decompressed: {error}") from error
    require(len(content) == length, f"{path}: truncated: shape {shape} needs {length} bytes after the header, the file has {len(content)}")
    try:
        return np.frombuffer(content, np.uint8).reshape(shape)
    except ValueError:  # a size of 0 beside others whose product exceeds 64 bits
        raise MXNetError(f"{path}: no array has the shape {shape}") from None


class _Arrays(BatchSource):
    def __init__(self, data: torch.Tensor, label: torch.Tensor, batch_size: int) -> None:
        self.data, self.label, self.batch_size = data, label, batch_size

    def epoch(self, state: Any) -> Iterator[tuple[Any, ...]]:
        for start in range(0, len(self.data) - self.batch_size + 1, self.batch_size):
            stop = start + self.batch_size
            index = np.arange(start, stop, dtype=np.uint64)
            yield self.data[start:stop].clone(), self.label[start:stop].clone(), 0, index, None


def shuffled(count: int, seed: int) -> list[int]:
    """Return the numbers below `count` in the order of ``std::shuffle`` with ``std::mt19937(seed)`` of MXNet's C++ library."""
    numbers = np.random.RandomState(seed % 2**32)
    drawn: Iterator[int] = iter(())
    order = list(range(count))
    for last in range(1, count):
        buckets = last + 1
        width = 0xFFFFFFFF // buckets
        place = buckets
        while place >= buckets:  # numbers in the remainder of the range, which would cause a bias, are drawn again
            number = next(drawn, None)
            if number is None:
                drawn = iter(numbers.randint(0, 2**32, 4096, dtype="uint32").tolist())
                number = next(drawn)
            place = number // width
        order[last], order[place] = order[place], order[last]
    return order


@native_iterator
def MNISTIter(*, image: str = "./train-images-idx3-ubyte", label: str = "./train-labels-idx1-ubyte", batch_size: int = 128, shuffle: bool = True,
              flat: bool = False, seed: int = 0, silent: bool = False, num_parts: int = 1, part_index: int = 0, prefetch_buffer: int = 4,
              ctx: LoaderContext = "gpu", dtype: Dtype = None) -> BatchSource:
    """Iterate over batches of MNIST images, with values from 0 to 255/256.

    A rest of fewer than `batch_size` images is dropped. All images are in memory, so that `prefetch_buffer` and `ctx` have no
    effect.

    Parameters
    ----------
    image, label : str
        The files, which may be compressed (``.gz``).
    batch_size : int
    shuffle : bool
        Use a random order, the same in each epoch.
    flat : bool
        Return images of shape (784,) instead of (1, 28, 28).
    seed : int
        The seed of the random order.
    silent : bool
        Disable the log message about the data.
    num_parts, part_index : int
        Divide the data into `num_parts` parts and use part `part_index`.
    dtype : str
        Type of the arrays, float32 by default.

    Raises
    ------
    MXNetError
        If a file is missing, damaged, or the two have different numbers of entries.
    """
    require(batch_size >= 1, f"MNISTIter: batch_size must be at least 1, received {batch_size}")
    require(num_parts > 0 and 0 <= part_index < num_parts,
            f"MNISTIter: part_index must be from 0 to num_parts - 1, received part_index={part_index} and num_parts={num_parts}")
    images, labels = read_idx(image, 3), read_idx(label, 1)
    require(len(images) == len(labels), f"MNISTIter: {image} has {len(images)} images and {label} has {len(labels)} labels")
    count = len(images)
    part = slice(int(count / num_parts * part_index), int(count / num_parts * (part_index + 1)))
    images, labels = images[part], labels[part]
    require(len(images) >= batch_size, f"MNISTIter: {len(images)} images are fewer than batch_size={batch_size}")
    if shuffle:
        order = shuffled(len(images), seed)
        images, labels = images[order], labels[order]
    data = torch.from_numpy(images * np.float32(1 / 256)).reshape(len(images), *((-1,) if flat else (1, *images.shape[1:])))
    numbers = torch.from_numpy(labels.astype(np.float32))
    if not silent:
        _log.info("MNISTIter: load %d images, shuffle=%d, shape=%s", len(images), shuffle, (batch_size, *data.shape[1:]))
    if dtype is not None:
        data, numbers = data.to(dtypes.to_torch(dtype)), numbers.to(dtypes.to_torch(dtype))
    return _Arrays(data, numbers, batch_size)
