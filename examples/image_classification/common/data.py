"""Options for the input images, and the iterators made from them."""
import numpy as np

import mxnet as mx

from .options import add_options, numbers


def add_data_args(parser):
    """Add the options that say which images to read."""
    return add_options(parser.add_argument_group("Data", "the input images"), [
        ("--data-train", str, None, "record file of the training images"),
        ("--data-train-idx", str, "", "index of that file"),
        ("--data-val", str, None, "record file of the validation images"),
        ("--data-val-idx", str, "", "index of that file"),
        ("--rgb-mean", str, "123.68,116.779,103.939", "subtracted from each channel"),
        ("--rgb-std", str, "1,1,1", "each channel is divided by it"),
        ("--pad-size", int, 0, "pixels to add on each side"),
        ("--fill-value", int, 127, "the value of added pixels"),
        ("--image-shape", str, None, "what the network receives, e.g. 3,224,224"),
        ("--num-classes", int, None, "how many classes there are"),
        ("--num-examples", int, None, "how many training images there are"),
        ("--data-nthreads", int, 4, "threads that decode images"),
        ("--benchmark", int, 0, "1 feeds the network with synthetic images"),
    ])


def add_data_aug_args(parser):
    """Add the options that say how to vary the training images."""
    return add_options(parser.add_argument_group("Image augmentations", "how ImageRecordIter varies the training images"), [
        ("--random-crop", int, 0, "1 crops at a random place"),
        ("--random-mirror", int, 0, "1 mirrors images at random, left to right"),
        ("--max-random-h", int, 0, "largest change of hue, 0 to 180"),
        ("--max-random-s", int, 0, "largest change of saturation, 0 to 255"),
        ("--max-random-l", int, 0, "largest change of lightness, 0 to 255"),
        ("--min-random-aspect-ratio", float, None, "smallest aspect ratio; without it, 1 - MAX_RANDOM_ASPECT_RATIO"),
        ("--max-random-aspect-ratio", float, 0, "largest aspect ratio; without the smallest one, how far it may be from 1"),
        ("--max-random-rotate-angle", int, 0, "largest rotation, 0 to 360 degrees"),
        ("--max-random-shear-ratio", float, 0, "largest shear, 0 to 1"),
        ("--max-random-scale", float, 1, "largest scale"),
        ("--min-random-scale", float, 1, "smallest scale; the image must not become smaller than IMAGE_SHAPE, else use --pad-size"),
        ("--max-random-area", float, 1, "largest fraction of the image that a random resized crop takes"),
        ("--min-random-area", float, 1, "smallest fraction of the image that a random resized crop takes"),
        ("--min-crop-size", int, -1, "smallest side of a random crop that is resized"),
        ("--max-crop-size", int, -1, "largest side of a random crop that is resized"),
        ("--brightness", float, 0, "jitter of the brightness, 0 to 1"),
        ("--contrast", float, 0, "jitter of the contrast, 0 to 1"),
        ("--saturation", float, 0, "jitter of the saturation, 0 to 1"),
        ("--pca-noise", float, 0, "noise along the principal components of colour, 0 to 1"),
        ("--random-resized-crop", int, 0, "1 crops a random area at a random aspect ratio and resizes it"),
    ])


class SyntheticDataIter(mx.io.DataIter):
    """The same random batch again and again, so that only the network's speed counts.

    Parameters
    ----------
    num_classes : int
    data_shape : tuple
        The batch, (N, C, H, W).
    max_iter : int
        Batches in an epoch.
    dtype : str or numpy type
    ctx : Context, optional
        Where the batch is.
    """

    def __init__(self, num_classes, data_shape, max_iter, dtype, ctx=None):
        super().__init__(data_shape[0])
        self.dtype, self.max_iter, self.cur_iter = dtype, max_iter, 0
        self.data = mx.nd.array(np.random.uniform(-1, 1, data_shape), ctx=ctx, dtype=dtype)
        self.label = mx.nd.array(np.random.randint(0, num_classes, data_shape[:1]), ctx=ctx, dtype=dtype)

    @property
    def provide_data(self):
        return [mx.io.DataDesc("data", self.data.shape, self.dtype)]

    @property
    def provide_label(self):
        return [mx.io.DataDesc("softmax_label", self.label.shape, self.dtype)]

    def next(self):
        if self.cur_iter >= self.max_iter:
            raise StopIteration
        self.cur_iter += 1
        return mx.io.DataBatch([self.data], [self.label], pad=0, provide_data=self.provide_data, provide_label=self.provide_label)

    def reset(self):
        self.cur_iter = 0


# Option to the parameter of ImageRecordIter, where their names differ.
_AUGMENTATIONS = {
    "random_crop": "rand_crop", "random_mirror": "rand_mirror", "pad_size": "pad",
    "max_random_h": "random_h", "max_random_s": "random_s", "max_random_l": "random_l",
    "max_random_aspect_ratio": "max_aspect_ratio", "min_random_aspect_ratio": "min_aspect_ratio",
    "max_random_rotate_angle": "max_rotate_angle", "max_random_shear_ratio": "max_shear_ratio",
    **{name: name for name in (
        "fill_value", "max_random_scale", "min_random_scale", "max_random_area", "min_random_area", "min_crop_size",
        "max_crop_size", "brightness", "contrast", "saturation", "pca_noise", "random_resized_crop")},
}


def get_rec_iter(args, kv=None):
    """The iterators over the training and validation images; the second is None without ``--data-val``.

    Raises
    ------
    ValueError
        If no training images are named.
    """
    image_shape = tuple(numbers(args.image_shape, int))
    if getattr(args, "benchmark", 0):
        pinned = mx.cpu_pinned() if args.gpus else None
        shape = (args.batch_size, *image_shape)
        return SyntheticDataIter(args.num_classes, shape, args.num_examples // args.batch_size, "float32", pinned), None
    if not args.data_train:
        raise ValueError("--data-train is missing: name a record file of training images, or use --benchmark 1")
    normalize = dict(zip(("mean_r", "mean_g", "mean_b"), numbers(args.rgb_mean)))
    normalize.update(zip(("std_r", "std_g", "std_b"), numbers(args.rgb_std)))

    def records(path, index, **options):
        return mx.io.ImageRecordIter(
            path_imgrec=path, path_imgidx=index, label_width=1, data_name="data", label_name="softmax_label", data_shape=image_shape,
            batch_size=args.batch_size, preprocess_threads=args.data_nthreads, num_parts=kv.num_workers if kv else 1,
            part_index=kv.rank if kv else 0, **normalize, **options)

    augment = {parameter: getattr(args, option) for option, parameter in _AUGMENTATIONS.items() if getattr(args, option) is not None}
    train = records(args.data_train, args.data_train_idx, shuffle=True, **augment)
    return train, records(args.data_val, args.data_val_idx) if args.data_val else None
