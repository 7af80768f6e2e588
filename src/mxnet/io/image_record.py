"""`ImageRecordIter`: batches of images out of RecordIO files, decoded and augmented by several threads."""
import collections
import concurrent.futures
import dataclasses
import inspect
import itertools
import logging
import os
import random
import warnings
from collections.abc import Callable, Iterator
from typing import Any, Optional

import numpy as np
import torch

from ..base import MXNetError
from ..image_header import decode, require_decodable
from ..ndarray import array, load, save
from ..ops.image.geometry import shorter_side
from ..ops.schema import Shape
from ..recordio import unpack
from .augment import DefaultAugmenter
from .image_list import read_image_list
from .native import BatchSource, Dtype, LoaderContext, MXDataIter, native_iterator, require
from .record_source import IndexedRecords, SequentialRecords

__all__ = ["ImageRecordInt8Iter", "ImageRecordIter", "ImageRecordIter_v1", "ImageRecordUInt8Iter", "ImageRecordUInt8Iter_v1"]
_log = logging.getLogger(__name__)

_TORCH = {"float32": torch.float32, "uint8": torch.uint8, "int8": torch.int8}



def read_labels(path: str, label_width: Optional[int]) -> dict[int, np.ndarray]:
    """Labels by image number out of a list file; see `read_image_list`."""
    return {number: np.array(labels, np.float32) for number, labels, _ in read_image_list(path, label_width)}


class Decoder:
    """Decodes images for a number of channels: 1 gray, 3 colour (blue first), 4 with alpha.

    With `scaled_to`, a JPEG whose sides are at least twice as long as needed is decoded to a fraction of its size, which is several
    times faster.
    """

    def __init__(self, channels: int, scaled_to: int = 0) -> None:
        require(channels in (1, 3, 4), f"Invalid output shape: data_shape must have 1, 3 or 4 channels, received {channels}")
        self.channels, self.scaled_to = channels, scaled_to

    def __call__(self, buffer: np.ndarray) -> np.ndarray:
        """The image in a uint8 array of file content.

        Raises
        ------
        MXNetError
            If there is none, or it has not the channels.
        """
        import cv2
        require_decodable(buffer, f"{buffer.size} bytes")
        if self.scaled_to and buffer[:2].tobytes() == b"\xff\xd8" and self.channels != 4:
            image = self._scaled(buffer)
            if image is not None:
                return image
        image = decode(buffer, {1: cv2.IMREAD_GRAYSCALE, 3: cv2.IMREAD_COLOR, 4: cv2.IMREAD_UNCHANGED}[self.channels], f"{buffer.size} bytes")
        if image is None:
            raise MXNetError(f"{buffer.size} bytes that are no image")
        if self.channels == 4:
            channels = image.shape[2] if image.ndim == 3 else 1
            require(channels == 4, f"Invalid image: Expected 4 channels, got {channels}")
        return image

    def _scaled(self, buffer: np.ndarray) -> np.ndarray | None:
        import simplejpeg
        try:
            height, width = simplejpeg.decode_jpeg_header(buffer, strict=False)[:2]
            if min(height, width) < 2 * self.scaled_to:
                return None
            height, width = shorter_side(height, width, self.scaled_to)
            image = simplejpeg.decode_jpeg(buffer, "BGR" if self.channels == 3 else "GRAY", min_height=height, min_width=width, min_factor=1,
                                           strict=False)
        except ValueError:
            return None
        return image if self.channels == 3 else image[:, :, 0]


@dataclasses.dataclass
class Normalizer:
    """Turns an augmented image into an output array: mirroring, mean, deviation, scale, and the type.

    The fields are parameters of `ImageRecordIter`; `mean`, `std` are (r, g, b, a).
    """

    dtype: str
    channels: int
    mean: tuple
    std: tuple
    scale: float
    mirror: bool
    rand_mirror: bool
    max_random_contrast: float
    max_random_illumination: float
    mean_image: Optional[np.ndarray] = None

    def __post_init__(self) -> None:
        # OpenCV has blue first, the output red.
        self._channel_of = (0,) if self.channels == 1 else (2, 1, 0, 3)[:self.channels]
        self._varying = self.dtype == "float32" and bool(self.max_random_contrast or self.max_random_illumination)
        self._tables = [] if self._varying or self.dtype == "uint8" else self._make_tables(1.0, 0.0)

    @property
    def is_random(self) -> bool:
        """Whether an image may come out differently each time."""
        return self.rand_mirror or self._varying

    def _factors(self, contrast: float, illumination: float) -> list[tuple[np.floating, np.floating]]:
        f = np.float32
        return [(f(contrast * self.scale) / f(std), f(illumination * self.scale) / f(std)) for std in self.std[:self.channels]]

    def _make_tables(self, contrast: float, illumination: float) -> list[np.ndarray]:
        """For each channel the output for each of the 256 values of a pixel."""
        values = np.arange(256, dtype=np.float32)
        if self.dtype == "int8":
            # Half away from zero, as C rounds.
            means = [np.sign(mean) * np.floor(abs(mean) + 0.5) for mean in self.mean[:self.channels]]
            return [np.clip(values - mean, -128, 127).astype(np.int8) for mean in means]
        return [((values - np.float32(mean)) * factor + offset).astype(np.float32)
                for mean, (factor, offset) in zip(self.mean, self._factors(contrast, illumination), strict=False)]

    def __call__(self, image: np.ndarray, out: np.ndarray, rng: random.Random) -> None:
        """Write `image` into `out`, (channels, height, width)."""
        import cv2
        mirrored = (self.rand_mirror and rng.random() < 0.5) or self.mirror
        contrast, illumination = 1.0, 0.0
        if self._varying:
            contrast = 1 + rng.uniform(-self.max_random_contrast, self.max_random_contrast)
            illumination = rng.uniform(-self.max_random_illumination, self.max_random_illumination)
        if self.mean_image is not None and self.dtype != "uint8":
            self._subtract_mean_image(image, self.mean_image, out, contrast, illumination)
            if mirrored:
                out[:] = out[:, :, ::-1].copy()
            return
        if mirrored:
            image = cv2.flip(image, 1)
        planes: Any = [image] if image.ndim == 2 else cv2.split(image)
        if self.dtype == "uint8":
            for channel, source in enumerate(self._channel_of):
                out[channel] = planes[source]
            return
        tables = self._make_tables(contrast, illumination) if self._varying else self._tables
        for channel, source in enumerate(self._channel_of):
            if self.dtype == "float32":
                cv2.LUT(planes[source], tables[channel], dst=out[channel])
            else:
                np.take(tables[channel], planes[source], out=out[channel], mode="clip")

    def _subtract_mean_image(self, image: np.ndarray, mean: np.ndarray, out: np.ndarray, contrast: float, illumination: float) -> None:
        planes = image[None] if image.ndim == 2 else image.transpose(2, 0, 1)[list(self._channel_of)]
        if self.dtype == "int8":
            np.clip(planes.astype(np.int16) - np.rint(mean), -128, 127, out=out, casting="unsafe")
            return
        np.subtract(planes, mean, out=out)
        for channel, (factor, offset) in enumerate(self._factors(contrast, illumination)):
            out[channel] *= factor
            out[channel] += offset


@dataclasses.dataclass
class ImageBatches(BatchSource):
    """Batches of decoded images; see `ImageRecordIter` for the parameters."""

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

    def __post_init__(self) -> None:
        self._random = self.normalize.is_random or any(augmenter.is_random for augmenter in self.augmenters)

    def epoch(self, state: Any) -> Iterator[tuple[Any, ...]]:
        """See `BatchSource.epoch`; the state is the number of the pass over the data and how many of its records are used up."""
        number, used = state or (0, 0)
        records = itertools.islice(self.source.records(number), used, None)
        pool = concurrent.futures.ThreadPoolExecutor(self.threads, thread_name_prefix="mxnet-decode")
        # While the images of a batch are decoded, those of the next one are handed out already, so that no thread idles.
        waiting: collections.deque[tuple[Any, ...]] = collections.deque()
        try:
            for batch in self._grouped(records, number):
                waiting.append(self._submit(pool, *batch))
                if len(waiting) > 1:
                    yield self._finish(*waiting.popleft())
            while waiting:
                yield self._finish(*waiting.popleft())
        finally:
            pool.shutdown(cancel_futures=True)

    def _grouped(self, records: Iterator[Any], number: int) -> Iterator[tuple[Any, ...]]:
        """Yield (records, pass, pad, state after it) of each batch."""
        while True:
            batch = list(itertools.islice(records, self.batch_size))
            if not batch:
                return
            pad = self.batch_size - len(batch)
            if pad and self.round_batch:
                batch += itertools.islice(self.source.records(number + 1), pad)
                require(len(batch) == self.batch_size, f"there are fewer images than batch_size={self.batch_size}; pass round_batch=False "
                                                       "or a smaller batch_size")
                yield batch, number, pad, (number + 1, pad)
                return
            yield batch, number, pad, (number + 1, 0)

    def _submit(self, pool: concurrent.futures.ThreadPoolExecutor, records: Any, number: int, pad: int, state: Any) -> tuple[Any, ...]:
        create = torch.zeros if len(records) < self.batch_size else torch.empty
        data = create((self.batch_size, *self.data_shape), dtype=_TORCH[self.normalize.dtype], pin_memory=self.pinned)
        label = create((self.batch_size, self.label_width), dtype=torch.float32, pin_memory=self.pinned)
        index = np.zeros(self.batch_size, np.uint64)
        arrays = data.numpy(), label.numpy(), index
        # One task for each thread, not for each image: handing a task over costs as much as decoding a very small image.
        futures = [pool.submit(self._fill, records, range(i, len(records), self.threads), number, arrays)
                   for i in range(min(self.threads, len(records)))]
        return data, label, pad, index, state, futures

    @staticmethod
    def _finish(data: torch.Tensor, label: torch.Tensor, pad: int, index: np.ndarray, state: Any,
                futures: list[concurrent.futures.Future[None]]) -> tuple[Any, ...]:
        for future in futures:
            future.result()
        return data, label[:, 0] if label.shape[1] == 1 else label, pad, index, state

    def _fill(self, records: Any, positions: Any, number: int, arrays: tuple[np.ndarray, np.ndarray, np.ndarray]) -> None:
        for i in positions:
            place, payload = records[i]
            self._fill_one(place, payload, i, number, arrays)

    def _fill_one(self, place: str, payload: Any, i: int, number: int, arrays: tuple[np.ndarray, np.ndarray, np.ndarray]) -> None:
        import cv2
        data, label, index = arrays
        try:
            header, content = unpack(memoryview(payload))
            index[i] = header.id
            label[i] = self._labels_of(header)
            # Each image has its own generator: which thread decodes it makes no difference.
            rng: Any = random.Random(f"{self.seed} {number} {place}") if self._random else None
            image = self.decode(np.frombuffer(content, np.uint8))
            for augment in self.augmenters:
                image = augment(image, rng)
            self.normalize(image, data[i], rng)
        except (MXNetError, cv2.error) as error:
            raise MXNetError(f"{place}: {getattr(error, 'err', None) or error}") from error

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
        """The mean of all images, after augmentation, as float32 (channels, height, width)."""
        plain = dataclasses.replace(self, round_batch=False, normalize=Normalizer(
            "float32", self.data_shape[0], (0,) * 4, (1,) * 4, 1.0, False, False, 0.0, 0.0))
        total, count = torch.zeros(self.data_shape, dtype=torch.float64), 0
        for data, _, pad, _, _ in plain.epoch(None):
            total += data[:self.batch_size - pad].sum(0, dtype=torch.float64)
            count += self.batch_size - pad
        require(count, "there are no images to take the mean of")
        return (total / count).float().numpy()


def load_mean_image(path: str, data_shape: tuple[int, ...], batches: "ImageBatches", verbose: bool) -> np.ndarray:
    """The mean image in a file, which is made if it does not exist."""
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
    try:
        return max(1, min(asked, len(os.sched_getaffinity(0))))
    except AttributeError:
        return max(1, min(asked, os.cpu_count() or 1))


def _parse_angles(value: str) -> tuple[int, ...]:
    """MXNet takes ``rotate_list`` as text, numbers separated by commas."""
    try:
        return tuple(int(angle) for angle in value.strip("()[] ").split(",") if angle.strip())
    except ValueError:
        raise MXNetError(f"rotate_list: expected angles in degrees separated by commas, received {value!r}") from None


@native_iterator
def ImageRecordIter(*, path_imglist: str = "", path_imgrec: str = "", path_imgidx: str = "", aug_seq: str = "aug_default", label_width: int = 1,
                    data_shape: Shape, preprocess_threads: int = 4, verbose: bool = True, num_parts: int = 1, part_index: int = 0,
                    device_id: int = 0, shuffle_chunk_size: int = 0, shuffle_chunk_seed: int = 0, seed_aug: Optional[int] = None,
                    shuffle: bool = False, seed: int = 0, batch_size: int, round_batch: bool = True, prefetch_buffer: int = 4,
                    ctx: LoaderContext = "gpu", dtype: Dtype = None, resize: int = -1, rand_crop: bool = False, random_resized_crop: bool = False,
                    max_rotate_angle: int = 0, max_aspect_ratio: float = 0.0, min_aspect_ratio: Optional[float] = None, max_shear_ratio: float = 0.0,
                    max_crop_size: int = -1, min_crop_size: int = -1, max_random_scale: float = 1.0, min_random_scale: float = 1.0,
                    max_random_area: float = 1.0, min_random_area: float = 1.0, max_img_size: float = 1e10, min_img_size: float = 0.0,
                    brightness: float = 0.0, contrast: float = 0.0, saturation: float = 0.0, pca_noise: float = 0.0, random_h: int = 0,
                    random_s: int = 0, random_l: int = 0, rotate: int = -1, fill_value: int = 255, inter_method: int = 1, pad: int = 0,
                    mirror: bool = False, rand_mirror: bool = False, mean_img: str = "", mean_r: float = 0.0, mean_g: float = 0.0,
                    mean_b: float = 0.0, mean_a: float = 0.0, std_r: float = 1.0, std_g: float = 1.0, std_b: float = 1.0, std_a: float = 1.0,
                    scale: float = 1.0, max_random_contrast: float = 0.0, max_random_illumination: float = 0.0, rotate_list: str = "",
                    scaled_decode: bool = False) -> BatchSource:
    """Batches of images out of RecordIO files, as im2rec makes them: decoded, augmented and normalized by several threads.

    Images go through these steps, each of which is skipped unless asked for: resize the shorter side; rotate, shear, scale;
    pad; crop to `data_shape` (by default from the middle); change colours; mirror; subtract the mean, divide by the deviation.
    The data are (N, channels, height, width) with red first; the labels (N,), or (N, label_width).

    The same seed gives the same images in the same order, whatever the number of threads.

    Parameters
    ----------
    path_imgrec : str
        The ``.rec`` file, a folder of them, or several separated by semicolons.
    path_imgidx : str
        Its index. With it parts are even, and `shuffle` shuffles all records.
    path_imglist : str
        A list file whose labels replace those in the records.
    data_shape : tuple of int
        (channels, height, width) of an output image; 1 channel is gray, 3 are colour, 4 have alpha.
    batch_size : int
    label_width : int
        How many labels an image has.
    aug_seq : str
        Only ``'aug_default'``.
    preprocess_threads : int
        Threads that decode and augment; not more than there are processors.
    verbose : bool
        Log (level INFO) what is read.
    num_parts, part_index : int
        Cut the data into so many parts and take this one.
    device_id : int
        -1 keeps the batches out of page-locked memory, from which copies to a GPU are fast.
    shuffle : bool
        Take the records in another random order in each epoch; without an index only among 64 MB at a time.
    shuffle_chunk_size, shuffle_chunk_seed : int
        Shuffling without an index: the size of a chunk in MB; chunks are read in random order.
    seed, seed_aug : int
        Of shuffling, and of augmentation (by default the same).
    round_batch : bool
        Fill the last batch from the beginning of the data; the next epoch starts behind that. Otherwise the rest of the last
        batch is 0.
    prefetch_buffer : int
        How many batches are read ahead.
    ctx : str
        ``'cpu'`` or ``'gpu'``; makes no difference.
    dtype : str
        ``'float32'`` (the default); ``'uint8'``, without mean, deviation and scale; ``'int8'``, with the mean only.
    resize : int
        Length of the shorter side in pixels.
    rand_crop : bool
        Crop anywhere instead of from the middle.
    random_resized_crop : bool
        Crop a part of random area (`min_random_area` to `max_random_area`, of 1) and aspect ratio, and resize it.
    max_rotate_angle, rotate, rotate_list : int, int, str
        Rotate by up to so many degrees either way; by just so many; by one of several, separated by commas.
    max_aspect_ratio, min_aspect_ratio : float
        Range of width/height; with the maximum alone it is the distance from 1 either way.
    max_shear_ratio : float
    max_crop_size, min_crop_size : int
        Crop a square of random size and resize it.
    max_random_scale, min_random_scale : float
    max_img_size, min_img_size : float
        Limits of the size after rotation and scaling.
    brightness, contrast, saturation : float
        Each a largest change as a fraction of 1, in random order.
    pca_noise : float
        Standard deviation of noise along the principal components of colour.
    random_h, random_s, random_l : int
        Largest changes of hue, saturation and lightness.
    fill_value : int
        Value of pixels outside the image.
    inter_method : int
        0 nearest, 1 linear, 2 cubic, 3 area, 4 Lanczos, 9 by the sizes, 10 random.
    pad : int
        Pixels to add on each side.
    mirror, rand_mirror : bool
        Flip the images left to right; flip half of them.
    mean_img : str
        File of a mean image to subtract; it is made if it does not exist.
    mean_r, mean_g, mean_b, mean_a, std_r, std_g, std_b, std_a : float
    scale : float
        Factor after subtraction of the mean.
    max_random_contrast, max_random_illumination : float
        Largest changes of the contrast as a fraction of 1, and of all values.
    scaled_decode : bool
        With `resize`: decode JPEG files that are at least twice too large to a fraction of their size. Much faster for large
        photographs, and smoother than MXNet's results rather than equal to them.

    Raises
    ------
    MXNetError
        If a parameter does not fit, a file is missing or damaged, or a record holds no image; the text names the record.

    Example
    -------
    >>> import mxnet as mx, numpy as np, os, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), 'gray.rec')
    >>> record = mx.recordio.MXRecordIO(path, 'w')
    >>> for i in range(4):
    ...     image = np.full((10, 12, 3), 50 * i, np.uint8)
    ...     record.write(mx.recordio.pack_img((0, i, i, 0), image, img_fmt='.png'))
    >>> record.close()
    >>> batch = next(mx.io.ImageRecordIter(path_imgrec=path, data_shape=(3, 8, 8), batch_size=4))
    >>> batch.data[0].shape, batch.label[0].asnumpy()
    ((4, 3, 8, 8), array([0., 1., 2., 3.], dtype=float32))
    """
    given = dict(locals())
    require(path_imgrec, "ImageRecordIter: must specify path_imgrec")
    require(len(data_shape) == 3 and min(data_shape) > 0, f"ImageRecordIter: data_shape must be (channels, height, width), received {data_shape}")
    require(aug_seq == "aug_default", f"ImageRecordIter: the only augmenter is 'aug_default', received aug_seq={aug_seq!r}")
    require(dtype in (None, *_TORCH), f"unknown dtype for ImageRecordIter: expected float32, uint8 or int8, received {dtype}")
    for name, least in (("batch_size", 1), ("label_width", 1), ("preprocess_threads", 1)):
        require(given[name] >= least, f"ImageRecordIter: {name} must be at least {least}, received {given[name]}")
    dtype = dtype or "float32"
    std = (std_r, std_g, std_b, std_a)
    require(all(std[:data_shape[0]]), f"ImageRecordIter: std_r, std_g, std_b and std_a must not be 0, received {std}")
    _warn_ignored(dtype, given)
    if path_imgidx:
        source: IndexedRecords | SequentialRecords = IndexedRecords(path_imgrec, path_imgidx, part_index, num_parts, shuffle, seed)
    else:
        source = SequentialRecords(path_imgrec, part_index, num_parts, shuffle, seed, shuffle_chunk_size, shuffle_chunk_seed)
    fields = {field.name for field in dataclasses.fields(DefaultAugmenter)}
    augmenter = DefaultAugmenter(**{**{key: value for key, value in given.items() if key in fields}, "rotate_list": _parse_angles(rotate_list)})
    threads = usable_threads(preprocess_threads)
    normalizer = Normalizer(dtype, data_shape[0], (mean_r, mean_g, mean_b, mean_a), std, scale, mirror, rand_mirror, max_random_contrast,
                            max_random_illumination)
    batches = ImageBatches(
        source=source, decode=Decoder(data_shape[0], resize if scaled_decode and resize > 0 else 0), augmenters=[augmenter], normalize=normalizer,
        labels=read_labels(path_imglist, label_width) if path_imglist else None, data_shape=data_shape, label_width=label_width,
        batch_size=batch_size, round_batch=round_batch, threads=threads, seed=seed if seed_aug is None else seed_aug,
        prefetch_buffer=max(1, prefetch_buffer), pinned=device_id != -1 and torch.cuda.is_available())
    if mean_img and dtype != "uint8":
        normalizer.mean_image = load_mean_image(mean_img, data_shape, batches, verbose)
    if verbose:
        _log.info("ImageRecordIter: %s, use %d threads for decoding..", path_imgrec, threads)
    return batches


def _warn_ignored(dtype: str, given: dict[str, Any]) -> None:
    """Say which normalization the output type leaves out, as MXNet does without saying."""
    unused = {"float32": (), "int8": ("std_r", "std_g", "std_b", "std_a", "scale", "max_random_contrast", "max_random_illumination")}.get(
        dtype, ("mean_img", "mean_r", "mean_g", "mean_b", "mean_a", "std_r", "std_g", "std_b", "std_a", "scale", "max_random_contrast",
                "max_random_illumination"))
    named = [name for name in unused if given[name] not in ("", 1.0 if name.startswith(("std", "scale")) else 0.0)]
    if named:
        warnings.warn(f"ImageRecordIter with dtype={dtype} does not apply {', '.join(named)}", stacklevel=5)


def _of_type(name: str, dtype: str | None) -> Callable[..., MXDataIter]:
    def create(*args: Any, **kwargs: Any) -> MXDataIter:
        return ImageRecordIter(*args, **(kwargs if dtype is None else {**kwargs, "dtype": dtype}))

    create.__name__ = create.__qualname__ = name
    create.__doc__ = "`ImageRecordIter`" + (f" with ``dtype='{dtype}'``" if dtype else "") + ", under an old name."
    vars(create)["__signature__"] = inspect.signature(ImageRecordIter)
    return create


ImageRecordUInt8Iter = _of_type("ImageRecordUInt8Iter", "uint8")
ImageRecordInt8Iter = _of_type("ImageRecordInt8Iter", "int8")
# The first version of MXNet's iterator took the same parameters.
ImageRecordIter_v1 = _of_type("ImageRecordIter_v1", None)
ImageRecordUInt8Iter_v1 = _of_type("ImageRecordUInt8Iter_v1", "uint8")
