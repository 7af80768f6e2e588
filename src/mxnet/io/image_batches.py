"""Batches of images from records, decoded by threads; the order is deterministic."""
import collections
import concurrent.futures
import dataclasses
import itertools
import logging
import math
import os
import random
from collections.abc import Iterator
from typing import Any, Optional

import numpy as np
import torch

from .. import opencv
from ..base import MXNetError
from ..ndarray import array, load, save
from ..recordio import unpack
from ..threads import usable
from .background import Background
from .decoder import Decoder
from .image_list import read_image_list
from .native import BatchSource, is_count, require
from .normalizer import TORCH_TYPES, Normalizer
from .record_source import IndexedRecords, SequentialRecords

_log = logging.getLogger(__name__)


def read_labels(path: str, label_width: Optional[int]) -> dict[int, np.ndarray]:
    """Return labels by image number from a list file; see `read_image_list`."""
    return {number: np.array(labels, np.float32) for number, labels, _ in read_image_list(path, label_width)}


class _Stream:
    """The stream of records of successive passes over the data, from a given position on."""

    def __init__(self, source: IndexedRecords | SequentialRecords, number: int, used: int) -> None:
        self.source, self.number, self.used = source, number, used
        self._records: Iterator[Any] = source.records(number, used)

    def take(self, count: int) -> list[Any]:
        """Return the next records, fewer at the end."""
        taken = list(itertools.islice(self._records, count))
        self.used += len(taken)
        return taken


class _Batch:
    """A batch in preparation.

    Attributes
    ----------
    size, pad : int
        The number of images, and of padding images among them.
    state : tuple
        See `ImageBatches.epoch`.
    """

    def __init__(self, batches: "ImageBatches", number: int, partial: bool) -> None:
        create = torch.zeros if partial else torch.empty
        self.data = create((batches.batch_size, *batches.out_shape), dtype=TORCH_TYPES[batches.normalize.dtype], pin_memory=batches.pinned)
        self.label = create((batches.batch_size, batches.label_width), dtype=torch.float32, pin_memory=batches.pinned)
        self.labels, self.index = self.label.numpy(), np.zeros(batches.batch_size, np.uint64)
        self.number, self.size, self.pad = number, 0, 0
        self.state: tuple[int, ...] = ()
        self.futures: list[concurrent.futures.Future[list[int]]] = []

    def wait(self) -> list[int]:
        """Wait for the batch; return the positions of images that could not be decoded."""
        futures, self.futures = self.futures, []
        return [i for future in futures for i in future.result()]

    def drop(self, failed: list[int]) -> None:
        """Remove images; later ones move forward."""
        if failed:
            good = sorted(set(range(self.size)) - set(failed))
            self.size = len(good)
            values: Any
            for values in (self.data, self.label, self.index):
                values[:self.size] = values[good]
                values[self.size:] = 0


@dataclasses.dataclass
class ImageBatches(BatchSource):
    """The source of batches of decoded images; see `ImageRecordIter` for the parameters."""

    source: IndexedRecords | SequentialRecords
    decode: Decoder
    augmenters: list
    normalize: Normalizer
    labels: Optional[dict]
    data_shape: tuple
    label_width: int
    batch_size: int
    round_batch: bool
    threads: int
    seed: int
    pinned: bool
    prefetch_buffer: int
    skips: bool = False

    def __post_init__(self) -> None:
        self._random = self.normalize.is_random or any(augmenter.is_random for augmenter in self.augmenters)
        channels, *size = self.data_shape
        self.out_shape = (*size, channels) if self.normalize.layout == "NHWC" else self.data_shape
        self.skipped: dict[str, str] = {}

    def epoch(self, state: Any) -> Iterator[tuple[Any, ...]]:
        """Implement `BatchSource.epoch`; the state has the next pass over the data, the number of its used records, and the number of this
        pass's used records."""
        number, used = (state or (0, 0))[:2]
        return self._epoch(number, used)

    def knows(self, state: Any) -> bool:
        """Implement `BatchSource.knows`."""
        return state is None or isinstance(state, (list, tuple)) and len(state) == 3 and all(map(is_count, state))

    def rest(self, state: Any, last: Any, taken: int) -> Iterator[tuple[Any, ...]]:
        """Implement `BatchSource.rest`, without decoding the skipped images."""
        return self._epoch((state or (0, 0))[0], last[2]) if taken and last else super().rest(state, last, taken)

    def _epoch(self, number: int, used: int) -> Iterator[tuple[Any, ...]]:
        stream = _Stream(self.source, number, used)
        pool = concurrent.futures.ThreadPoolExecutor(self.threads, thread_name_prefix="mxnet-decode")
        # The next batch's images are submitted while those of one batch are decoded, so that no thread is idle.
        waiting: collections.deque[_Batch] = collections.deque()
        try:
            while True:
                batch = self._next(pool, stream)
                if batch is not None:
                    waiting.append(batch)
                if len(waiting) > 1 or waiting and batch is None:
                    yield self._finished(waiting.popleft())
                elif batch is None:
                    return
        finally:
            pool.shutdown(cancel_futures=True)

    @staticmethod
    def _finished(batch: _Batch) -> tuple[Any, ...]:
        batch.wait()
        return batch.data, batch.label[:, 0] if batch.label.shape[1] == 1 else batch.label, batch.pad, batch.index, batch.state

    def _next(self, pool: concurrent.futures.ThreadPoolExecutor, stream: _Stream) -> _Batch | None:
        """Return a batch of the next images, which threads decode in the background."""
        records = stream.take(self.batch_size)
        if not records:
            return None
        batch = _Batch(self, stream.number, self.skips or len(records) < self.batch_size)
        self._fill(pool, batch, stream, records)
        if not batch.size:
            return None
        batch.pad, following = self.batch_size - batch.size, 0
        if batch.pad and self.round_batch:
            start = _Stream(self.source, stream.number + 1, 0)
            self._fill(pool, batch, start, start.take(batch.pad))
            require(batch.size == self.batch_size, f"there are fewer images than batch_size={self.batch_size}; pass round_batch=False "
                                                   "or a smaller batch_size")
            following = start.used
        batch.state = stream.number + 1, following, stream.used
        return batch

    def _fill(self, pool: concurrent.futures.ThreadPoolExecutor, batch: _Batch, stream: _Stream, records: list[Any]) -> None:
        """Submit records; if damaged ones are skipped, wait, and submit others until the batch is full or the pass has ended."""
        while records:
            # One task for each thread, not for each image: submitting a task costs as much as decoding a very small image.
            share = min(self.threads, len(records))
            batch.futures += [pool.submit(self._decode, batch, batch.size + i, records[i::share], share) for i in range(share)]
            batch.size += len(records)
            if not self.skips:
                return
            batch.drop(batch.wait())
            records = stream.take(self.batch_size - batch.size)

    def _decode(self, batch: _Batch, position: int, records: list[Any], step: int) -> list[int]:
        """Decode images to every `step`-th position from `position` on; return the positions of those that can't be decoded."""
        failed = []
        for place, payload in records:
            try:
                self._put(batch, position, place, payload)
            except MXNetError as error:
                if not self.skips:
                    raise
                self._skip(place, error)
                failed.append(position)
            position += step
        return failed

    def _skip(self, place: str, error: MXNetError) -> None:
        if place not in self.skipped:
            _log.warning("skipped: %s", error)
        self.skipped[place] = str(error)

    def _put(self, batch: _Batch, i: int, place: str, payload: Any) -> None:
        cv2 = opencv.load()
        try:
            header, content = unpack(memoryview(payload))
            batch.index[i] = header.id
            # Each image has its own generator, so that the results do not depend on the threads.
            self._put_image(batch, i, header, content, f"{self.seed} {batch.number} {place}")
        except (MXNetError, cv2.error) as error:
            raise MXNetError(f"{place}: {getattr(error, 'err', None) or error}") from error

    def _put_image(self, batch: _Batch, i: int, header: Any, content: memoryview, seed: str) -> None:
        batch.labels[i] = self._labels_of(header)
        rng: Any = random.Random(seed) if self._random else None
        augment, cut = self.augmenters[0], None

        def needed(height: int, width: int) -> tuple[int, int, int, int]:
            nonlocal cut
            cut = augment.cut(height, width, rng)
            return cut.looks_at(*self.data_shape[1:]) if cut is not None else (0, 0, height, width)

        image = self.decode(content, needed if self.normalize.fuses else None)
        if cut is None or (cut.height, cut.width) != image.shape[:2]:
            rng = random.Random(seed) if self._random else None  # a new one: the failed attempt may have drawn numbers
            cut = augment.cut(*image.shape[:2], rng) if self.normalize.fuses else None
        if cut is None:
            rng = random.Random(seed) if self._random else None
            image = augment(image, rng)
        self.normalize(image, batch.data[i], rng, self.decode.flat(image), cut)

    def _labels_of(self, header: Any) -> Any:
        if self.labels is not None:
            require(header.id in self.labels, f"fail to find imagelabel for id {header.id} in path_imglist")
            return self.labels[header.id]
        width = header.flag or 1
        require(width == self.label_width,
                f"a label of label_width={self.label_width} numbers expected, the record file has {width}; pass that as label_width, or the "
                "labels as path_imglist")
        return header.label

    def mean_image(self) -> np.ndarray:
        """Return the mean of all images after augmentation, as float32 (channels, height, width)."""
        plain = dataclasses.replace(self, round_batch=False, normalize=Normalizer(
            "float32", self.data_shape[0], (0,) * 4, (1,) * 4, 1.0, False, False, 0.0, 0.0))
        total, count = torch.zeros(self.data_shape, dtype=torch.float64), 0
        # In a thread, since a Ctrl-C during a wait for another thread may leave a lock acquired.
        for data, _, pad, _, _ in Background(plain.epoch(None), 1):
            total += data[:self.batch_size - pad].sum(0, dtype=torch.float64)
            count += self.batch_size - pad
        require(count, "there are no images to take the mean of")
        return (total / count).float().numpy()


def load_mean_image(path: str, data_shape: tuple[int, ...], batches: ImageBatches, verbose: bool) -> np.ndarray:
    """Return the mean image of a file, which is computed and written if it does not exist."""
    if not os.path.exists(path):
        if verbose:
            _log.info("%s does not exist: computing it from all images", path)
        save(path, {"mean_img": array(batches.mean_image())})
    arrays = load(path)
    arrays = list(arrays.values()) if isinstance(arrays, dict) else arrays
    require(len(arrays) == 1 and arrays[0] is not None, f"{path}: Invalid mean image file format: expected one array, found {len(arrays)}")
    mean = arrays[0].asnumpy().astype(np.float32)
    require(mean.shape == data_shape, f"{path}: the mean image has shape {mean.shape}, data_shape is {data_shape}")
    return mean


def usable_threads(asked: int) -> int:
    """Return the number of decoding threads: the requested one, limited to the usable cores of this process, rounded up."""
    return max(1, min(asked, math.ceil(usable())))
