"""`ImageDetRecordIter`: batches of images with boxes of objects out of RecordIO files."""
import dataclasses
import random
from typing import Any, Literal

import numpy as np
import torch

from .. import opencv
from ..base import MXNetError
from ..ops.image.geometry import shorter_side
from ..ops.schema import Floats, Shape
from ..recordio import unpack
from .augment import resize_image, shift_hls
from .boxes import areas, areas_within, split_label
from .decoder import Decoder
from .image_batches import ImageBatches, load_mean_image, read_labels, usable_threads
from .native import BatchSource, Dtype, LoaderContext, native_iterator, require
from .normalizer import TORCH_TYPES, Normalizer, warn_ignored
from .record_source import SequentialRecords

__all__ = ["ImageDetRecordIter"]

# Smaller enlargements are not padded.
_LEAST_PAD = 1.05


def _project(objects: np.ndarray, window: tuple[float, ...]) -> np.ndarray:
    """Transform objects to the coordinates of the window (left, top, right, bottom)."""
    left, top, right, bottom = window
    size = np.array([right - left, bottom - top], np.float32)
    out = objects.copy()
    out[:, 1:3] = np.maximum(0, (objects[:, 1:3] - (left, top)) / size)
    out[:, 3:5] = np.minimum(1, (objects[:, 3:5] - (left, top)) / size)
    return out


@dataclasses.dataclass
class Cropper:
    """A crop sampler: the ranges of its random windows, and the constraints on the objects in them."""

    scale: tuple
    aspect_ratio: tuple
    overlap: tuple
    sample_coverage: tuple
    object_coverage: tuple
    trials: int

    def window(self, image_ratio: float, rng: random.Random) -> tuple[float, ...]:
        """Return a random window (left, top, right, bottom)."""
        scale = rng.uniform(*self.scale) + 1e-12
        least = max(self.aspect_ratio[0] / image_ratio, scale * scale)
        most = min(self.aspect_ratio[1] / image_ratio, 1 / (scale * scale))
        ratio = rng.uniform(least, most) ** 0.5
        width, height = min(1.0, scale * ratio), min(1.0, scale / ratio)
        left, top = rng.uniform(0, 1 - width), rng.uniform(0, 1 - height)
        return left, top, left + width, top + height

    def accepts(self, window: tuple[float, ...], boxes: np.ndarray) -> bool:
        """Return True if at least one box meets all the constraints."""
        left, top, right, bottom = window
        common, area, own = areas_within(boxes, window), (right - left) * (bottom - top), areas(boxes)
        good = np.ones(len(boxes), bool)
        for (least, most), value in ((self.overlap, common / (area + own - common)), (self.sample_coverage, common / area),
                                     (self.object_coverage, common / own)):
            if least > 0 or most < 1:
                good &= (value >= least) & (value <= most)
        return bool(good.any())


@dataclasses.dataclass
class DetectionAugmenter:
    """The augmentation `det_aug_default` of an image and its objects. The fields are parameters of `ImageDetRecordIter`."""

    data_shape: tuple
    croppers: list
    resize: int
    rand_crop_prob: float
    crop_emit_mode: str
    emit_overlap_thresh: float
    rand_pad_prob: float
    max_pad_scale: float
    hls: tuple
    hls_probs: tuple
    max_random_contrast: float
    random_contrast_prob: float
    rand_mirror_prob: float
    fill_value: int
    inter_method: int
    resize_mode: str

    is_random = True

    def __call__(self, image: np.ndarray, objects: np.ndarray, rng: random.Random) -> tuple[np.ndarray, np.ndarray]:
        cv2 = opencv.load()
        if self.resize != -1:
            image = resize_image(image, *shorter_side(image.shape[0], image.shape[1], self.resize), self.inter_method, rng)
        if any(prob > 0 for prob in self.hls_probs) or self.random_contrast_prob > 0:
            image = self._jitter_color(image, rng)
        if self.rand_mirror_prob > 0 and rng.random() < self.rand_mirror_prob:
            image = cv2.flip(image, 1)
            objects = objects.copy()
            objects[:, [1, 3]] = 1 - objects[:, [3, 1]]
        if self.rand_pad_prob > 0 and self.max_pad_scale > 1 and rng.random() < self.rand_pad_prob:
            image, objects = self._pad(image, objects, rng)
        if self.croppers and self.rand_crop_prob > 0 and rng.random() < self.rand_crop_prob:
            image, objects = self._crop(image, objects, rng)
        return self._fit(image, rng), objects

    def _jitter_color(self, image: np.ndarray, rng: random.Random) -> np.ndarray:
        changes = [int(rng.uniform(-1, 1) * limit) for limit in self.hls]
        contrast = rng.uniform(-1, 1) * self.max_random_contrast
        changes = [change if rng.random() < prob else 0 for change, prob in zip(changes, self.hls_probs, strict=True)]
        contrast = contrast if rng.random() < self.random_contrast_prob else 0.0
        if any(changes):
            image = shift_hls(image, *changes)
        if abs(contrast) > 1e-3:
            image = np.clip(np.rint(image * np.float32(1 + contrast)), 0, 255).astype(np.uint8)
        return image

    def _pad(self, image: np.ndarray, objects: np.ndarray, rng: random.Random) -> tuple[np.ndarray, np.ndarray]:
        cv2 = opencv.load()
        scale = rng.uniform(1, self.max_pad_scale)
        if scale < _LEAST_PAD:
            return image, objects
        left, top = rng.uniform(0, scale - 1), rng.uniform(0, scale - 1)
        rows, columns = image.shape[:2]
        image = cv2.copyMakeBorder(image, int(top * rows), int((scale - top - 1) * rows), int(left * columns), int((scale - left - 1) * columns),
                                   cv2.BORDER_CONSTANT, value=(self.fill_value,) * 4)
        return image, _project(objects, (-left, -top, scale - left, scale - top))

    def _crop(self, image: np.ndarray, objects: np.ndarray, rng: random.Random) -> tuple[np.ndarray, np.ndarray]:
        rows, columns = image.shape[:2]
        for cropper in rng.sample(self.croppers, len(self.croppers)):
            for _ in range(cropper.trials):
                window = cropper.window(columns / rows, rng)
                left, top = int(window[0] * columns), int(window[1] * rows)
                width, height = int((window[2] - window[0]) * columns), int((window[3] - window[1]) * rows)
                surviving = self._surviving(cropper, window, objects)
                if surviving is not None and width and height:
                    return image[top:top + height, left:left + width], surviving
        return image, objects

    def _surviving(self, cropper: "Cropper", window: tuple[float, ...], objects: np.ndarray) -> np.ndarray | None:
        """Return the objects that remain in the window, or None if the window does not meet the constraints."""
        if not len(objects):
            return objects
        boxes = objects[:, 1:5]
        if not cropper.accepts(window, boxes):
            return None
        left, top, right, bottom = window
        if self.crop_emit_mode == "center":
            x, y = (boxes[:, 0] + boxes[:, 2]) / 2, (boxes[:, 1] + boxes[:, 3]) / 2
            inside = (left <= x) & (x < right) & (top <= y) & (y < bottom)
        else:
            inside = areas_within(boxes, window) / areas(boxes) > self.emit_overlap_thresh
        return _project(objects[inside], window) if inside.any() else None

    def _fit(self, image: np.ndarray, rng: random.Random) -> np.ndarray:
        rows, columns = image.shape[:2]
        height, width = self.data_shape[1:]
        if self.resize_mode != "force":
            ratio = min(height / rows, width / columns)
            if self.resize_mode == "shrink" and ratio >= 1:
                return image
            height, width = max(1, int(np.float32(ratio) * rows)), max(1, int(np.float32(ratio) * columns))
        return resize_image(image, height, width, self.inter_method, rng)


@dataclasses.dataclass
class DetectionBatches(ImageBatches):
    """The source of batches of images with boxes; see `ImageDetRecordIter` for the parameters."""

    label_pad_value: float = -1.0

    def _labels_of(self, header: Any) -> Any:
        """Return the raw label of an image."""
        if self.labels is not None:
            require(header.id in self.labels, f"fail to find imagelabel for id {header.id} in path_imglist")
            return self.labels[header.id]
        require(header.flag > 0, f"image {header.id} has a single number as its label: detection needs an array of labels for each image")
        return header.label

    def _put_image(self, batch: Any, i: int, header: Any, content: memoryview, seed: str) -> None:
        head, objects = split_label(self._labels_of(header))
        rng = random.Random(seed)
        image, objects = self.augmenters[0](self.decode(content), objects, rng)
        rows, columns = image.shape[:2]
        channels, *size = self.data_shape
        pixels = self.normalize.layout == "NHWC"
        if [rows, columns] == size:
            part = batch.data[i]
        else:
            part = torch.empty((rows, columns, channels) if pixels else (channels, rows, columns), dtype=batch.data.dtype)
        self.normalize(image, part, rng, self.decode.flat(image))
        if [rows, columns] != size:
            batch.data[i] = 0
            (batch.data[i, :rows, :columns] if pixels else batch.data[i, :, :rows, :columns])[:] = part
        raw = np.concatenate([head, objects.ravel()])
        batch.labels[i] = self.label_pad_value
        batch.labels[i, :4] = self.data_shape[0], rows, columns, raw.size
        batch.labels[i, 4:4 + raw.size] = raw


def _widest_label(source: Any, label_width: int, skips: bool) -> int:
    widest = 0
    for place, payload in source.records(0):
        try:
            header, _ = unpack(memoryview(payload))
            require(header.flag > 0, "the label is a single number: detection needs an array of labels for each image")
            require(label_width <= 0 or header.flag == label_width, f"a label of label_width={label_width} numbers expected, received {header.flag}")
        except MXNetError as error:
            if not skips:
                raise MXNetError(f"{place}: {error}") from None
        else:
            widest = max(widest, header.flag)
    return widest


def _per_cropper(name: str, values: tuple[float, ...], count: int) -> Any:
    require(len(values) in (1, count), f"ImageDetRecordIter: # of parameters/crop_samplers mismatch: {name} has {len(values)} values, "
                                       f"num_crop_sampler is {count}")
    return values * count if len(values) == 1 else values


def _make_croppers(given: dict[str, Any]) -> list["Cropper"]:
    count = given["num_crop_sampler"]
    if count <= 0:
        return []
    ranges: dict[str, list[tuple[float, float]]] = {}
    for name in ("crop_scales", "crop_aspect_ratios", "crop_overlaps", "crop_sample_coverages", "crop_object_coverages"):
        least, most = (_per_cropper(f"{end}_{name}", given[f"{end}_{name}"], count) for end in ("min", "max"))
        for low, high in zip(least, most, strict=True):
            require(low <= high, f"ImageDetRecordIter: min_{name}={low} is above max_{name}={high}")
        ranges[name] = list(zip(least, most, strict=True))
    require(all(0 <= low < high <= 1 for low, high in ranges["crop_scales"]),
            f"ImageDetRecordIter: crop scales must be from 0 to 1 and ascend, received {ranges['crop_scales']}")
    trials = _per_cropper("max_crop_trials", given["max_crop_trials"], count)
    scales, ratios, overlaps, samples, objects = ranges.values()
    return [Cropper(*fields) for fields in zip(scales, ratios, overlaps, samples, objects, trials, strict=True)]


@native_iterator
def ImageDetRecordIter(*, path_imglist: str = "", path_imgrec: str = "./data/imgrec.rec", aug_seq: str = "det_aug_default", label_width: int = -1,
                       data_shape: Shape, preprocess_threads: int = 4, verbose: bool = True, num_parts: int = 1, part_index: int = 0,
                       shuffle_chunk_size: int = 0, shuffle_chunk_seed: int = 0, label_pad_width: int = 0, label_pad_value: float = -1.0,
                       shuffle: bool = False, seed: int = 0, batch_size: int, round_batch: bool = True, prefetch_buffer: int = 4,
                       ctx: LoaderContext = "gpu", dtype: Dtype = None, resize: int = -1, rand_crop_prob: float = 0.0,
                       min_crop_scales: Floats = (0.0,), max_crop_scales: Floats = (1.0,), min_crop_aspect_ratios: Floats = (1.0,),
                       max_crop_aspect_ratios: Floats = (1.0,), min_crop_overlaps: Floats = (0.0,), max_crop_overlaps: Floats = (1.0,),
                       min_crop_sample_coverages: Floats = (0.0,), max_crop_sample_coverages: Floats = (1.0,),
                       min_crop_object_coverages: Floats = (0.0,), max_crop_object_coverages: Floats = (1.0,), num_crop_sampler: int = 1,
                       crop_emit_mode: Literal["center", "overlap"] = "center", emit_overlap_thresh: float = 0.3, max_crop_trials: Shape = (25,),
                       rand_pad_prob: float = 0.0, max_pad_scale: float = 1.0, max_random_hue: int = 0, random_hue_prob: float = 0.0,
                       max_random_saturation: int = 0, random_saturation_prob: float = 0.0, max_random_illumination: int = 0,
                       random_illumination_prob: float = 0.0, max_random_contrast: float = 0.0, random_contrast_prob: float = 0.0,
                       rand_mirror_prob: float = 0.0, fill_value: int = 127, inter_method: int = 1,
                       resize_mode: Literal["force", "shrink", "fit"] = "force", mean_img: str = "", mean_r: float = 0.0, mean_g: float = 0.0,
                       mean_b: float = 0.0, mean_a: float = 0.0, std_r: float = 0.0, std_g: float = 0.0, std_b: float = 0.0, std_a: float = 0.0,
                       scale: float = 1.0, layout: Literal["NCHW", "NHWC"] = "NCHW",
                       on_error: Literal["raise", "skip"] = "raise") -> BatchSource:
    """Iterate over batches of images with boxes of objects from RecordIO files, packed with ``im2rec --pack-label``.

    The label of an image is ``header width, object width, ..., objects``, an object ``class, left, top, right, bottom, ...`` with
    sides as fractions of the image's. A batch's labels are (N, 4 + `label_pad_width`): channels, rows and columns of the image, the
    length of its label, the label, and `label_pad_value` for the rest.

    Parameters
    ----------
    path_imgrec, path_imglist, data_shape, batch_size, preprocess_threads, verbose, num_parts, part_index, shuffle, seed, shuffle_chunk_size,\
 shuffle_chunk_seed, round_batch, prefetch_buffer, ctx, dtype, resize, fill_value, inter_method, mean_img, scale, layout, on_error
        As in `ImageRecordIter`.
    aug_seq : str
        Only ``'det_aug_default'``.
    label_width : int
        The length of each label; not above 0 for any length.
    label_pad_width : int
        The padded length of labels; by default that of the longest one.
    label_pad_value : float
    rand_crop_prob : float
        Probability of cropping, by one of `num_crop_sampler` samplers. Each tries windows within its ranges of scale and aspect
        ratio until one shows an object whose overlap (intersection over union), sample coverage (share of the window) and object
        coverage (share of the object) are within its ranges, at most `max_crop_trials` times. Ranges have one value, or one for
        each sampler.
    crop_emit_mode : str
        The objects to keep: ``'center'`` those whose center is in the window, ``'overlap'`` those of which a fraction of more than
        `emit_overlap_thresh` is inside.
    rand_pad_prob, max_pad_scale : float
        Probability of padding, and the maximal factor of the sides.
    max_random_hue, max_random_saturation, max_random_illumination, max_random_contrast : int, int, int, float
        Largest changes of colour, each with its probability (``random_..._prob``).
    rand_mirror_prob : float
        Probability of mirroring.
    resize_mode : str
        ``'force'`` resizes the image to `data_shape`, ``'fit'`` fits it into that shape, ``'shrink'`` does so only if it is larger; the
        last two keep the aspect ratio, and the rest of the data is 0.
    mean_r, mean_g, mean_b, mean_a, std_r, std_g, std_b, std_a : float
        Means and deviations; a deviation of 0 disables the division.

    Raises
    ------
    MXNetError
        As for `ImageRecordIter`, and if a label has another format.
    """
    given = dict(locals())
    require(len(data_shape) == 3 and min(data_shape) > 0, f"ImageDetRecordIter: data_shape must be (channels, height, width), received {data_shape}")
    require(aug_seq == "det_aug_default", f"ImageDetRecordIter: the only augmenter is 'det_aug_default', received aug_seq={aug_seq!r}")
    require(dtype in (None, *TORCH_TYPES), f"unknown dtype for ImageDetRecordIter: expected float32, float16, uint8 or int8, received {dtype}")
    dtype = dtype or "float32"
    warn_ignored("ImageDetRecordIter", dtype, given, applied=("max_random_contrast", "max_random_illumination"))
    require(batch_size >= 1 and preprocess_threads >= 1, f"ImageDetRecordIter: batch_size and preprocess_threads must be at least 1, received "
                                                         f"{batch_size} and {preprocess_threads}")
    require(inter_method in (0, 1, 2, 3, 4, 9, 10), f"ImageDetRecordIter: inter_method must be 0 to 4, 9 or 10, received {inter_method}")
    source = SequentialRecords(path_imgrec, part_index, num_parts, shuffle, seed, shuffle_chunk_size, shuffle_chunk_seed)
    labels = read_labels(path_imglist, label_width if label_width > 0 else None) if path_imglist else None
    widest = max(map(len, labels.values()), default=0) if labels is not None else _widest_label(source, label_width, on_error == "skip")
    require(label_pad_width <= 0 or widest <= label_pad_width,
            f"ImageDetRecordIter: label_pad_width must be at least {widest}, the longest label; received {label_pad_width}")
    channels = data_shape[0]
    augmenter = DetectionAugmenter(
        data_shape, _make_croppers(given), resize, rand_crop_prob, crop_emit_mode, emit_overlap_thresh, rand_pad_prob, max_pad_scale,
        (max_random_hue, max_random_illumination, max_random_saturation),
        (random_hue_prob, random_illumination_prob, random_saturation_prob), max_random_contrast, random_contrast_prob, rand_mirror_prob,
        fill_value, inter_method, resize_mode)
    require(channels == 3 or not any(augmenter.hls_probs),
            f"random hue, saturation and illumination need images of 3 channels, received {data_shape}")
    means, stds = (mean_r, mean_g, mean_b, mean_a), (std_r, std_g, std_b, std_a)
    # MXNet ignores the means unless one is above 0; they have precedence over the mean image.
    use_means = any(mean > 0 for mean in means)
    normalizer = Normalizer(dtype, channels, means if use_means else (0.0,) * 4, tuple(std if std > 0 else 1.0 for std in stds), scale,
                            False, False, 0.0, 0.0, layout)
    batches = DetectionBatches(
        source=source, decode=Decoder(channels), augmenters=[augmenter], normalize=normalizer, labels=labels, data_shape=data_shape,
        label_width=4 + max(label_pad_width, widest), batch_size=batch_size, round_batch=round_batch, threads=usable_threads(preprocess_threads),
        seed=seed, pinned=torch.cuda.is_available(), prefetch_buffer=max(1, prefetch_buffer), label_pad_value=label_pad_value,
        skips=on_error == "skip")
    if mean_img and not use_means and dtype != "uint8":
        require(resize_mode == "force", "ImageDetRecordIter: mean_img needs resize_mode='force', which gives all images one size")
        normalizer.mean_image = load_mean_image(mean_img, data_shape, batches, verbose)
    return batches
