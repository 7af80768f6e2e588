"""Train a network on MNIST, or on record files of small grey images.

    python train_mnist.py --network lenet
    python train_mnist.py --network lenet --data-train digits_train.rec --data-val digits_val.rec --num-examples 1500

Without ``--data-train`` it reads MNIST's own four files, packed or not, from ``--data-dir`` and downloads those that are missing.
"""
import argparse
import gzip
import logging
import os

import numpy as np
from common import data, fit
from common.util import download_file, get_network

import mxnet as mx
from mxnet.gluon.utils import _get_repo_file_url

MAGIC = {1: 2049, 3: 2051}  # labels and images


def read_idx(name, ndim, folder="data"):
    """One of MNIST's files as a uint8 array.

    Parameters
    ----------
    name : str
        Without the ending ``.gz``.
    ndim : int
        1 for labels, 3 for images.

    Raises
    ------
    MXNetError
        If the file is missing and cannot be downloaded, or is no such file.
    """
    path = os.path.join(folder, name)
    if not os.path.exists(path):
        path = download_file(_get_repo_file_url("gluon/dataset/mnist", f"{name}.gz"), f"{path}.gz")
    try:
        with (gzip.open if path.endswith(".gz") else open)(path, "rb") as f:
            header = np.frombuffer(f.read(4 + 4 * ndim), ">u4")
            if len(header) != 1 + ndim or header[0] != MAGIC[ndim]:
                kind = "labels" if ndim == 1 else "images"
                raise mx.MXNetError(f"{path} is not an MNIST file of {kind}: it must start with {MAGIC[ndim]}")
            content = np.frombuffer(bytearray(f.read()), np.uint8)
    except (OSError, EOFError, ValueError) as error:
        raise mx.MXNetError(f"cannot read {path}: {error}; delete it to download it again") from error
    shape = tuple(int(n) for n in header[1:])
    if content.size != int(np.prod(shape, dtype=object)):
        raise mx.MXNetError(f"{path} announces {shape} but holds {content.size} bytes; delete it to download it again")
    return content.reshape(shape)


def get_mnist_iter(args, kv):
    """Iterators over MNIST, its pixels from 0 to 1."""

    def images(part, shuffle):
        labels = read_idx(f"{part}-labels-idx1-ubyte", 1, args.data_dir)
        pixels = read_idx(f"{part}-images-idx3-ubyte", 3, args.data_dir)
        return mx.io.NDArrayIter(pixels[:, None].astype(np.float32) / 255, labels, args.batch_size, shuffle=shuffle)

    return images("train", True), images("t10k", False)


def get_iter(args, kv):
    """Iterators over the record files if there are any, else over MNIST."""
    return data.get_rec_iter(args, kv) if args.data_train or args.benchmark else get_mnist_iter(args, kv)


def main(argv=None):
    """Parse the options and train; the trained Module."""
    parser = argparse.ArgumentParser(description="train mnist", formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("--add_stn", action="store_true", help="straighten the images with a spatial transformer (lenet only)")
    parser.add_argument("--data-dir", default="data", help="folder of MNIST's files")
    fit.add_fit_args(parser)
    group = data.add_data_args(parser)
    group.add_argument("--image_shape", dest="image_shape", help="the same as --image-shape")
    data.add_data_aug_args(parser)
    parser.set_defaults(
        network="mlp", num_classes=10, num_examples=60000, image_shape="1, 28, 28", rgb_mean="0,0,0", rgb_std="255,255,255",
        batch_size=64, disp_batches=100, num_epochs=20, lr=0.05, lr_step_epochs="10")
    args = parser.parse_args(argv)
    return fit.fit(args, get_network(args), get_iter)


if __name__ == "__main__":
    logging.basicConfig(level=logging.DEBUG)
    main()
