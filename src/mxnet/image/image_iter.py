"""`ImageIter`: batches of images from RecordIO files or from a list of files, with augmenters written in Python."""
from __future__ import annotations

import logging
import os
import random
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from ..base import MXNetError, numeric_types
from ..context import cpu
from ..files import open_stream, reported
from ..io.base import DataBatch, DataDesc, DataIter
from ..io.image_list import read_image_list
from ..ndarray import NDArray, array
from ..ops import host_arrays
from ..recordio import MXIndexedRecordIO, MXRecordIO, unpack
from ..suggestions import shortened
from ..util import is_np_array
from .augment import CreateAugmenter
from .image import imdecode

__all__ = ["ImageIter"]

_LABEL_TYPES = ("int32", "float32", "int64", "float64")
_HANDLINGS = ("pad", "discard", "roll_over")


def _listed(imglist, dtype):
    """Return {number: (labels, path)} for a Python list of ``[label, ..., path]``; the keys count from '1'."""
    entries = {}
    for number, (*labels, path) in enumerate(imglist, 1):
        if len(labels) == 1 and not isinstance(labels[0], numeric_types):
            labels = labels[0]
        entries[str(number)] = np.array(labels, dtype), path
    return entries


class ImageIter(DataIter):
    """Iterates over batches of images from a ``.rec`` file, or from the image files of a list.

    It is slower than `mx.io.ImageRecordIter`, and extensible: augmenters are Python objects, and every step can be overridden.

    Parameters
    ----------
    batch_size : int
    data_shape : tuple of int
        (3, height, width).
    label_width : int
        The number of labels of an image.
    path_imgrec : str, optional
        The ``.rec`` file.
    path_imglist : str, optional
        A list file: ``number<TAB>label<TAB>...<TAB>path`` in each line.
    path_root : str, optional
        The base folder of relative paths in lists.
    path_imgidx : str, optional
        The index of `path_imgrec`; needed for `shuffle` and `num_parts`.
    shuffle : bool
        Use a random order in each epoch.
    part_index, num_parts : int
        Divide the data into `num_parts` parts and use part `part_index`.
    aug_list : list of Augmenter, optional
        By default that of `CreateAugmenter`.
    imglist : list, optional
        Instead of `path_imglist`: ``[label, path]`` or ``[[label, label], path]`` for each image.
    data_name, label_name : str
    dtype : str
        Type of the labels of lists: int32, int64, float32 or float64.
    last_batch_handle : str
        ``'pad'`` fills the last batch from the beginning, ``'discard'`` drops it, ``'roll_over'`` moves it to the next epoch.
    **kwargs
        For `CreateAugmenter`.

    Raises
    ------
    MXNetError
        If the sources are inconsistent, a file cannot be read, or (while iterating) an image is damaged; the text names it.
    ValueError
        If `data_shape` is not (3, height, width).

    Example
    -------
    >>> import mxnet as mx, numpy as np, cv2, os, tempfile
    >>> folder = tempfile.mkdtemp()
    >>> for i in range(4):
    ...     _ = cv2.imwrite(os.path.join(folder, f'{i}.png'), np.full((10, 12, 3), 50 * i, np.uint8))
    >>> it = mx.image.ImageIter(2, (3, 8, 8), imglist=[[i, f'{i}.png'] for i in range(4)], path_root=folder)
    >>> for batch in it:
    ...     print(batch.data[0].shape, batch.label[0].asnumpy())
    (2, 3, 8, 8) [0. 1.]
    (2, 3, 8, 8) [2. 3.]
    """

    def __init__(self, batch_size: int, data_shape: Sequence[int], label_width: int = 1, path_imgrec: str | None = None,
                 path_imglist: str | None = None, path_root: str | None = None, path_imgidx: str | None = None, shuffle: bool = False,
                 part_index: int = 0, num_parts: int = 1, aug_list: list[Any] | None = None, imglist: list[Any] | None = None,
                 data_name: str = "data", label_name: str = "softmax_label", dtype: str = "float32", last_batch_handle: str = "pad", **kwargs: Any):
        super().__init__(batch_size)
        name = type(self).__name__
        if not (path_imgrec or path_imglist or isinstance(imglist, list)):
            raise MXNetError(f"{name} needs path_imgrec, path_imglist or imglist, received none of them")
        if dtype not in _LABEL_TYPES:
            raise MXNetError(f"{name}: {dtype} label not supported; use one of {_LABEL_TYPES}")
        if last_batch_handle not in _HANDLINGS:
            raise MXNetError(f"{name}: last_batch_handle must be one of {_HANDLINGS}, received {shortened(last_batch_handle)}")
        self.check_data_shape(data_shape)
        data_shape = tuple(data_shape)
        self.imgrec, self.imgidx = self._open_records(path_imgrec, path_imgidx)
        if path_imglist:
            logging.info("%s: loading image list %s...", name, path_imglist)
            self.imglist = {number: (np.array(labels, dtype), path) for number, labels, path in read_image_list(path_imglist)}
        else:
            self.imglist = _listed(imglist, dtype) if isinstance(imglist, list) else None
        self.path_root = path_root
        self.provide_data = [DataDesc(data_name, (batch_size, *data_shape))]
        self.provide_label = [DataDesc(label_name, (batch_size, label_width) if label_width > 1 else (batch_size,))]
        self.data_shape, self.label_width, self.shuffle, self.last_batch_handle = data_shape, label_width, shuffle, last_batch_handle
        self.seq = self._sequence(shuffle, part_index, num_parts)
        self.num_image = None if self.seq is None else len(self.seq)
        self.auglist = CreateAugmenter(data_shape, **kwargs) if aug_list is None else aug_list
        self.cur = 0
        self._allow_read = True
        self._rolled = None  # (data, label, number of examples) of a partial batch for the next epoch
        self._sample = None  # the current image's name in errors
        self.reset()

    def _open_records(self, path, index):
        if not path:
            return None, None
        logging.info("%s: loading recordio %s...", type(self).__name__, path)
        if not index:
            return MXRecordIO(path, "r"), None
        records = MXIndexedRecordIO(index, path, "r")
        return records, list(records.keys)

    def _sequence(self, shuffle, part_index, num_parts):
        """Return the keys of the images to read, or None for all records in the order of the file."""
        if self.imgrec is None:
            keys = list(self.imglist)
        elif self.imgidx is not None:
            keys = self.imgidx
        elif shuffle or num_parts > 1:
            raise MXNetError(f"{type(self).__name__}: shuffle and num_parts need path_imgidx, the index of the .rec file")
        else:
            return None
        if num_parts > 1:
            if not 0 <= part_index < num_parts:
                raise MXNetError(f"{type(self).__name__}: part_index must be from 0 to num_parts - 1, received part_index={part_index} "
                                 f"and num_parts={num_parts}")
            size = len(keys) // num_parts
            keys = keys[part_index * size:(part_index + 1) * size]
        return keys

    def _rewind(self):
        if self.imgrec is not None:
            self.imgrec.reset()
        self.cur = 0
        self._allow_read = True

    def reset(self) -> None:
        """Start the next epoch."""
        if self.seq is not None and self.shuffle:
            random.shuffle(self.seq)
        if self._rolled is None:
            self._rewind()

    def hard_reset(self) -> None:
        """Start the next epoch and drop the partial batch of ``'roll_over'``."""
        if self.seq is not None and self.shuffle:
            random.shuffle(self.seq)
        self._rolled = None
        self._rewind()

    def next_sample(self) -> tuple[Any, bytes]:
        """Return the next (label, content of the image file).

        Raises
        ------
        StopIteration
            At the end of the data; unless the rest is discarded, the next call returns the first image again.
        """
        if not self._allow_read:
            raise StopIteration
        if self.seq is None:
            return self._next_record()
        if self.cur >= self.num_image:
            if self.last_batch_handle != "discard":
                self.cur = 0
            raise StopIteration
        key = self.seq[self.cur]
        self.cur += 1
        if self.imgrec is None:
            label, path = self.imglist[key]
            self._sample = f"filename: {path}"
            return array(label, dtype=label.dtype), self.read_image(path)
        self._sample = f"index: {key}"
        header, content = unpack(self.imgrec.read_idx(key))
        if self.imglist is None:
            return header.label, content
        if key not in self.imglist:
            raise MXNetError(f"the image list has no entry for the record with key {key}")
        label = self.imglist[key][0]
        return array(label, dtype=label.dtype), content

    def _next_record(self):
        record = self.imgrec.read()
        if record is None:
            if self.last_batch_handle != "discard":
                self.imgrec.reset()
                self.cur = 0
            raise StopIteration
        self._sample = f"number {self.cur} of {self.imgrec.uri}"
        self.cur += 1
        header, content = unpack(record)
        return header.label, content

    def _new_batch(self):
        """Return empty tensors for data and labels."""
        return torch.zeros(self.provide_data[0].shape), torch.zeros(self.provide_label[0].shape)

    def _store(self, data, label, i, sample):
        """Decode and augment a sample and store it at position `i`; return True if it is valid."""
        values, content = sample
        image = self.imdecode(content)
        try:
            self.check_valid_image(image)
        except RuntimeError as error:
            logging.debug("Invalid image, skipping:  %s", error)
            return False
        image = self.postprocess_data(self.augmentation_transform(image))._data
        values = values._data if isinstance(values, NDArray) else host_arrays.as_tensor(values)
        if tuple(image.shape) != self.data_shape:
            raise MXNetError(f"image {self._sample}: the augmenters give shape {tuple(image.shape)}, data_shape is {self.data_shape}")
        if values.numel() != label[i].numel():
            raise MXNetError(f"image {self._sample} has {values.numel()} labels, label_width is {self.label_width}")
        data[i] = image
        label[i] = values.reshape(label[i].shape)
        return True

    def _fill(self, data, label, start):
        """Store samples in a batch from position `start` on; return the end position."""
        i = start
        while i < self.batch_size:
            try:
                sample = self.next_sample()
            except StopIteration:
                break
            i += self._store(data, label, i, sample)
        return i

    def next(self) -> DataBatch:
        """Return the next batch."""
        rolled = self._rolled
        if rolled is None:
            data, label = self._new_batch()
            count = self._fill(data, label, 0)
            if not count:
                raise StopIteration
        else:
            data, label, count = rolled
        pad = self.batch_size - count
        if pad:
            if self.last_batch_handle == "discard":
                raise StopIteration
            if self.last_batch_handle == "roll_over" and rolled is None:
                self._rolled = data, label, count
                raise StopIteration
            self._fill(data, label, count)
            self._rolled = None
            # Padded with images from the beginning, the batch ends the epoch.
            self._allow_read = self.last_batch_handle != "pad"
        arrays = [NDArray._new(x, cpu(0)) for x in (data, label)]
        if is_np_array():
            arrays = [x.as_np_ndarray() for x in arrays]
        return DataBatch([arrays[0]], [arrays[1]], pad=pad)

    def check_data_shape(self, data_shape: Sequence[int]) -> None:
        """Raise an error for a `data_shape` that images cannot have."""
        if len(data_shape) != 3:
            raise ValueError(f"data_shape must be (channels, height, width), received {data_shape}")
        if data_shape[0] != 3:
            raise ValueError(f"data_shape must begin with 3, for the colours, received {data_shape}")

    def check_valid_image(self, data: Sequence[NDArray]) -> None:
        """Raise a RuntimeError for an image that should be skipped."""
        if len(data[0].shape) == 0:
            raise RuntimeError(f"Data shape is wrong: an image with axes expected, received shape {data[0].shape}")

    def imdecode(self, s: bytes) -> NDArray:
        """Decode the content of an image file."""
        try:
            return imdecode(s)
        except MXNetError as error:
            raise MXNetError(f"Broken image {self._sample}, {error}") from error

    def read_image(self, fname: str) -> bytes:
        """Return the content of an image file of a list."""
        path = os.path.join(self.path_root or "", fname)
        with open_stream(path) as stream, reported(path):
            return stream.read()

    def augmentation_transform(self, data: NDArray) -> NDArray:
        """Apply the augmenters to an image."""
        for augmenter in self.auglist:
            data = augmenter(data)
        return data

    def postprocess_data(self, datum: NDArray) -> NDArray:
        """Move the channels to the first axis."""
        return datum.transpose((2, 0, 1))
