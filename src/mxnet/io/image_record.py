"""`ImageRecordIter`: batches of images from RecordIO files, decoded and augmented by several threads."""
import dataclasses
import inspect
import logging
from collections.abc import Callable
from typing import Any, Literal, Optional

import torch

from ..base import MXNetError
from ..ops.schema import Shape
from ..suggestions import shortened
from .augment import DefaultAugmenter
from .decoder import Decoder
from .image_batches import ImageBatches, load_mean_image, read_labels, usable_threads
from .native import BatchSource, Dtype, LoaderContext, MXDataIter, native_iterator, require
from .normalizer import TORCH_TYPES, Normalizer, warn_ignored
from .record_source import IndexedRecords, SequentialRecords

__all__ = ["ImageRecordInt8Iter", "ImageRecordIter", "ImageRecordIter_v1", "ImageRecordUInt8Iter", "ImageRecordUInt8Iter_v1"]
_log = logging.getLogger(__name__)


def _parse_angles(value: str) -> tuple[int, ...]:
    """Parse ``rotate_list``, which is a text of numbers separated by commas in MXNet."""
    try:
        return tuple(int(angle) for angle in value.strip("()[] ").split(",") if angle.strip())
    except ValueError:
        raise MXNetError(f"rotate_list: expected angles in degrees separated by commas, received {shortened(value)}") from None


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
                    scaled_decode: bool = False, layout: Literal["NCHW", "NHWC"] = "NCHW",
                    on_error: Literal["raise", "skip"] = "raise") -> BatchSource:
    """Iterate over batches of images from RecordIO files of im2rec, decoded, augmented and normalized by several threads.

    Images are processed in these steps, each of which is skipped unless enabled: resize the shorter side; rotate, shear, scale;
    pad; crop to `data_shape` (by default at the center); change colours; mirror; subtract the mean, divide by the deviation.
    The data are (N, channels, height, width) in RGB order; the labels (N,), or (N, label_width). Batches share no memory.

    The same seed gives the same images in the same order, for any number of threads; ``state()`` and ``load_state()`` of the iterator resume
    in the middle of an epoch.

    Parameters
    ----------
    path_imgrec : str
        The ``.rec`` file, a folder of them, or several separated by semicolons.
    path_imgidx : str
        The index. With it parts have equal sizes, and `shuffle` shuffles all records.
    path_imglist : str
        A list file whose labels replace those in the records.
    data_shape : tuple of int
        (channels, height, width) of an output image; 1 channel is gray, 3 are colour, 4 have alpha.
    batch_size : int
    label_width : int
        The number of labels of an image.
    aug_seq : str
        Only ``'aug_default'``.
    preprocess_threads : int
        The number of decoding and augmenting threads; at most the number of processors.
    verbose : bool
        Log the source of the data (level INFO).
    num_parts, part_index : int
        Divide the data into `num_parts` parts and use part `part_index`.
    device_id : int
        -1 disables page-locked memory for batches, from which copies to a GPU are fast.
    shuffle : bool
        Read the records in a new random order in each epoch; without an index only within 64 MB at a time.
    shuffle_chunk_size, shuffle_chunk_seed : int
        Shuffling without an index: the size of a chunk in MB; chunks are read in random order.
    seed, seed_aug : int
        The seeds of shuffling, and of augmentation (by default the same).
    round_batch : bool
        Fill the last batch from the beginning of the data; the next epoch starts after these records. Otherwise the rest of the
        last batch is 0.
    prefetch_buffer : int
        The number of prefetched batches.
    ctx : str
        ``'cpu'`` or ``'gpu'``; has no effect.
    dtype : str
        ``'float32'`` (the default); ``'float16'``; ``'uint8'``, without mean, deviation and scale; ``'int8'``, with the mean only.
    resize : int
        Length of the shorter side in pixels.
    rand_crop : bool
        Crop at a random position instead of the center.
    random_resized_crop : bool
        Crop a window of random area (`min_random_area` to `max_random_area`, as a fraction) and aspect ratio, and resize it.
    max_rotate_angle, rotate, rotate_list : int, int, str
        Rotate by a random angle of up to this many degrees in both directions; by exactly this angle; by one of several, separated by commas.
    max_aspect_ratio, min_aspect_ratio : float
        Range of width/height; the maximum alone is the distance from 1 in both directions.
    max_shear_ratio : float
    max_crop_size, min_crop_size : int
        Crop a square of random size and resize it.
    max_random_scale, min_random_scale : float
    max_img_size, min_img_size : float
        Limits of the size after rotation and scaling.
    brightness, contrast, saturation : float
        The maximal changes as fractions of 1, applied in random order.
    pca_noise : float
        Standard deviation of noise along the principal components of colour.
    random_h, random_s, random_l : int
        The maximal changes of hue, saturation and lightness.
    fill_value : int
        Value of pixels outside the image.
    inter_method : int
        0 nearest, 1 linear, 2 cubic, 3 area, 4 Lanczos, 9 by the sizes, 10 random.
    pad : int
        Pixels to add on each side.
    mirror, rand_mirror : bool
        Flip all images horizontally; flip a random half of them.
    mean_img : str
        File of a mean image to subtract; it is computed and written if it does not exist.
    mean_r, mean_g, mean_b, mean_a, std_r, std_g, std_b, std_a : float
    scale : float
        Factor after subtraction of the mean.
    max_random_contrast, max_random_illumination : float
        The maximal changes of the contrast as a fraction of 1, and of all values.
    scaled_decode : bool
        With `resize`: decode JPEG files that are at least twice too large to a fraction of their size. This is much faster for large
        photographs; the results are smoother than MXNet's, not equal.
    layout : str
        ``'NHWC'`` puts the channels last.
    on_error : str
        ``'skip'`` skips images that cannot be decoded, or have wrong labels, with a warning in the log; ``handle.skipped`` of the iterator
        lists them with the reasons. A damaged file whose further records cannot be found always raises an error.

    Raises
    ------
    MXNetError
        If a parameter is invalid, a file is missing or damaged, or a record contains no image; the text names the record.

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
    require(dtype in (None, *TORCH_TYPES), f"unknown dtype for ImageRecordIter: expected float32, float16, uint8 or int8, received {dtype}")
    for name, least in (("batch_size", 1), ("label_width", 1), ("preprocess_threads", 1)):
        require(given[name] >= least, f"ImageRecordIter: {name} must be at least {least}, received {given[name]}")
    dtype = dtype or "float32"
    std = (std_r, std_g, std_b, std_a)
    require(all(std[:data_shape[0]]), f"ImageRecordIter: std_r, std_g, std_b and std_a must not be 0, received {std}")
    warn_ignored("ImageRecordIter", dtype, given)
    if path_imgidx:
        source: IndexedRecords | SequentialRecords = IndexedRecords(path_imgrec, path_imgidx, part_index, num_parts, shuffle, seed)
    else:
        source = SequentialRecords(path_imgrec, part_index, num_parts, shuffle, seed, shuffle_chunk_size, shuffle_chunk_seed)
    fields = {field.name for field in dataclasses.fields(DefaultAugmenter)}
    augmenter = DefaultAugmenter(**{**{key: value for key, value in given.items() if key in fields}, "rotate_list": _parse_angles(rotate_list)})
    threads = usable_threads(preprocess_threads)
    normalizer = Normalizer(dtype, data_shape[0], (mean_r, mean_g, mean_b, mean_a), std, scale, mirror, rand_mirror, max_random_contrast,
                            max_random_illumination, layout)
    batches = ImageBatches(
        source=source, decode=Decoder(data_shape[0], resize if scaled_decode and resize > 0 else 0), augmenters=[augmenter], normalize=normalizer,
        labels=read_labels(path_imglist, label_width) if path_imglist else None, data_shape=data_shape, label_width=label_width,
        batch_size=batch_size, round_batch=round_batch, threads=threads, seed=seed if seed_aug is None else seed_aug,
        prefetch_buffer=max(1, prefetch_buffer), pinned=device_id != -1 and torch.cuda.is_available(), skips=on_error == "skip")
    if mean_img and dtype != "uint8":
        normalizer.mean_image = load_mean_image(mean_img, data_shape, batches, verbose)
    if verbose:
        _log.info("ImageRecordIter: %s, use %d threads for decoding..", path_imgrec, threads)
    return batches


def _of_type(name: str, dtype: str | None) -> Callable[..., MXDataIter]:
    def create(*args: Any, **kwargs: Any) -> MXDataIter:
        return ImageRecordIter(*args, **(kwargs if dtype is None else {**kwargs, "dtype": dtype}))

    create.__name__ = create.__qualname__ = name
    create.__doc__ = f"""`ImageRecordIter`{f" with ``dtype='{dtype}'``" if dtype else ""}, under an old name.

    Example
    -------
    >>> import numpy as np, os, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), 'one.rec')
    >>> with mx.recordio.MXRecordIO(path, 'w') as file:
    ...     file.write(mx.recordio.pack_img(mx.recordio.IRHeader(0, 7.0, 0, 0), np.zeros((8, 8, 3), np.uint8), img_fmt='.png'))
    >>> batch = next(mx.io.{name}(path_imgrec=path, data_shape=(3, 8, 8), batch_size=1))
    >>> batch.data[0].shape, batch.data[0].dtype.__name__
    ((1, 3, 8, 8), '{dtype or "float32"}')
    """
    vars(create)["__signature__"] = inspect.signature(ImageRecordIter)
    return create


ImageRecordUInt8Iter = _of_type("ImageRecordUInt8Iter", "uint8")
ImageRecordInt8Iter = _of_type("ImageRecordInt8Iter", "int8")
# The first version of MXNet's iterator has the same parameters.
ImageRecordIter_v1 = _of_type("ImageRecordIter_v1", None)
ImageRecordUInt8Iter_v1 = _of_type("ImageRecordUInt8Iter_v1", "uint8")
