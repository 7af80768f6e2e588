"""Measure the accuracy of a checkpoint on a record file.

    python score.py --model imagenet1k-resnet-50 --data-val val-5k-256.rec
    python score.py --model digits --load-epoch 10 --data-val digits_val.rec --image-shape 1,28,28 --rgb-std 255,255,255
"""
import argparse
import logging
import os
import time

from common import modelzoo
from common.options import add_options, numbers
from common.util import devices, get_gpus

import mxnet as mx


def _load(model, epoch):
    if isinstance(model, (tuple, list)):
        if len(model) != 3:
            raise ValueError(f"score: `model` must be (symbol, arg_params, aux_params), received {len(model)} items")
        return model
    if not isinstance(model, str):
        raise TypeError(f"score: `model` must be a name, a checkpoint's prefix or (symbol, arg_params, aux_params), received {type(model)}")
    folder = os.path.join(os.path.dirname(os.path.realpath(__file__)), "model")
    prefix, published = modelzoo.download_model(model, folder)
    return mx.model.load_checkpoint(prefix or model, published if prefix else epoch)


def score(model, data_val, metrics, gpus, batch_size, rgb_mean=None, mean_img=None, image_shape="3,224,224", data_nthreads=4,
          label_name="softmax_label", max_num_examples=None, rgb_std=None, load_epoch=0):
    """Feed a network with images and update the metrics.

    Parameters
    ----------
    model : str or tuple
        A name that common/modelzoo.py knows, the prefix of a checkpoint, or (symbol, arg_params, aux_params).
    data_val : str
        The record file.
    metrics : EvalMetric or list
    gpus : str
        Such as '0,1'; '' means the CPU.
    rgb_mean, rgb_std : str, optional
        Subtracted from, and dividing, each channel.
    mean_img : str, optional
        A file with the mean image, instead of `rgb_mean`.
    max_num_examples : int, optional
        Stop after so many images.
    load_epoch : int
        The checkpoint's epoch.

    Returns
    -------
    tuple
        Images per second.
    """
    normalize = {"mean_img": mean_img} if mean_img is not None else {}
    for key, values in (("mean", None if normalize else rgb_mean), ("std", rgb_std)):
        if values is not None:
            normalize.update({f"{key}_{channel}": value for channel, value in zip("rgb", numbers(values))})
    images = mx.io.ImageRecordIter(
        path_imgrec=data_val, label_width=1, preprocess_threads=data_nthreads, batch_size=batch_size,
        data_shape=tuple(numbers(image_shape, int)), label_name=label_name, rand_crop=False, rand_mirror=False, **normalize)

    symbol, arg_params, aux_params = _load(model, load_epoch)
    module = mx.mod.Module(symbol=symbol, context=devices(gpus), label_names=[label_name])
    module.bind(for_training=False, data_shapes=images.provide_data, label_shapes=images.provide_label)
    module.set_params(arg_params, aux_params)
    metrics = metrics if isinstance(metrics, list) else [metrics]
    tic, count = time.time(), 0
    for batch in images:
        module.forward(batch, is_train=False)
        valid = batch_size - (batch.pad or 0)  # the last batch is filled up with images that were counted already
        outputs = [output[:valid] for output in module.get_outputs()]
        labels = [label[:valid] for label in batch.label]
        for metric in metrics:
            metric.update(labels, outputs)
        count += valid
        if max_num_examples is not None and count > max_num_examples:
            break
    return (count / (time.time() - tic),)


def main(argv=None):
    """Parse the options and score; the metrics."""
    parser = argparse.ArgumentParser(description="score a model on a dataset", formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("--model", type=str, required=True, help="prefix of a local checkpoint, or a name that common/modelzoo.py knows")
    parser.add_argument("--data-val", type=str, required=True, help="record file of the images")
    add_options(parser, [
        ("--gpus", str, "0" if len(get_gpus()) else "", "GPUs to use, e.g. 0 or 0,2,5; none means the CPU"),
        ("--batch-size", int, 64, "images in a batch"),
        ("--rgb-mean", str, "0,0,0", "subtracted from each channel"),
        ("--rgb-std", str, "1,1,1", "each channel is divided by it"),
        ("--image-shape", str, "3,224,224", "what the network receives"),
        ("--data-nthreads", int, 4, "threads that decode images"),
        ("--load-epoch", int, 0, "the epoch of a local checkpoint"),
    ])
    args = parser.parse_args(argv)
    metrics = [mx.metric.create("acc"), mx.metric.create("top_k_accuracy", top_k=5)]
    (speed,) = score(metrics=metrics, **vars(args))
    logging.info("Finished with %f images per second", speed)
    for metric in metrics:
        logging.info(metric.get())
    return metrics


if __name__ == "__main__":
    logging.basicConfig(level=logging.DEBUG)
    main()
