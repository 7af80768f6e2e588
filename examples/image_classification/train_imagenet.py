"""Train a network on ImageNet, read from record files, or on synthetic images with ``--benchmark 1``.

    python train_imagenet.py --network resnet --num-layers 50 --gpus 0,1 --data-train train.rec --data-val val.rec
    python train_imagenet.py --benchmark 1 --batch-size 32 --num-examples 640 --num-epochs 1
"""
import argparse
import logging

from common import data, fit
from common.util import get_network

IMAGENET_AUGMENTATION = {
    "rgb_mean": "123.68,116.779,103.939", "rgb_std": "58.393,57.12,57.375",
    "random_crop": 0, "random_resized_crop": 1, "random_mirror": 1, "min_random_area": 0.08,
    "max_random_aspect_ratio": 4 / 3, "min_random_aspect_ratio": 3 / 4,
    "brightness": 0.4, "contrast": 0.4, "saturation": 0.4, "pca_noise": 0.1,
}


def main(argv=None):
    """Parse the options and train; the trained Module."""
    parser = argparse.ArgumentParser(description="train imagenet-1k", formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    fit.add_fit_args(parser)
    data.add_data_args(parser)
    data.add_data_aug_args(parser)
    parser.set_defaults(
        network="resnet", num_layers=50, num_classes=1000, num_examples=1281167, image_shape="3,224,224", min_random_scale=1,
        num_epochs=80, lr_step_epochs="30,60", dtype="float32")
    args = parser.parse_args(argv)
    if args.use_imagenet_data_augmentation:
        # Parsed again, so that what the command line says still wins over these.
        parser.set_defaults(**IMAGENET_AUGMENTATION)
        args = parser.parse_args(argv)
    return fit.fit(args, get_network(args), data.get_rec_iter)


if __name__ == "__main__":
    logging.basicConfig(level=logging.DEBUG)
    main()
