"""Train a network on CIFAR-10, read from record files.

    python train_cifar10.py --gpus 0,1 --network resnet --num-layers 110

Without ``--data-train`` the files are looked for in ``data/`` and downloaded if they are missing.
"""
import argparse
import logging
import os

from common import data, fit
from common.util import download_file, get_network

URL = "http://data.mxnet.io/data/cifar10/"


def download_cifar10(folder="data"):
    """The paths of the training and the validation records, which are fetched if they are missing."""
    return [download_file(URL + name, os.path.join(folder, name)) for name in ("cifar10_train.rec", "cifar10_val.rec")]


def main(argv=None):
    """Parse the options and train; the trained Module."""
    parser = argparse.ArgumentParser(description="train cifar10", formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    fit.add_fit_args(parser)
    data.add_data_args(parser)
    data.add_data_aug_args(parser)
    parser.set_defaults(
        network="resnet", num_layers=110, num_classes=10, num_examples=50000, image_shape="3,28,28", pad_size=4,
        batch_size=128, num_epochs=300, lr=0.05, lr_step_epochs="200,250")
    args = parser.parse_args(argv)
    if not args.data_train and not args.benchmark:
        args.data_train, val = download_cifar10()
        args.data_val = args.data_val or val
    return fit.fit(args, get_network(args), data.get_rec_iter)


if __name__ == "__main__":
    logging.basicConfig(level=logging.DEBUG)
    main()
