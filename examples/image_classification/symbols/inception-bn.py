"""Inception with batch norm: Ioffe, Szegedy, "Batch normalization", arXiv:1502.03167."""
import mxnet as mx

from .layers import classifier, conv_bn, image_size, images, pool, same

NORM = {"fix_gamma": False, "eps": 1e-10 + 1e-5, "momentum": 0.9}

# Filters of: 1x1 (0: the block halves the image and has none); 3x3 and its reduction; double 3x3 and its reduction; then
# the kind of pooling and its projection (0: none).
BLOCKS = {
    "3a": (64, (64, 64), (64, 96), "avg", 32),
    "3b": (64, (64, 96), (64, 96), "avg", 64),
    "3c": (0, (128, 160), (64, 96), "max", 0),
    "4a": (224, (64, 96), (96, 128), "avg", 128),
    "4b": (192, (96, 128), (96, 128), "avg", 128),
    "4c": (160, (128, 160), (128, 160), "avg", 128),
    "4d": (96, (128, 192), (160, 192), "avg", 128),
    "4e": (0, (128, 192), (192, 256), "max", 0),
    "5a": (352, (192, 320), (160, 224), "avg", 128),
    "5b": (352, (192, 320), (192, 224), "max", 128),
}

# The version for small images. Filters of 1x1 (0: the block halves the image) and 3x3.
SMALL_BLOCKS = {
    "in3a": (32, 32), "in3b": (32, 48), "in3c": (0, 80),
    "in4a": (112, 48), "in4b": (96, 64), "in4c": (80, 80), "in4d": (48, 96), "in4e": (0, 96),
    "in5a": (176, 160), "in5b": (176, 160),
}


def _unit(x, filters, kernel, name, stride=1):
    names = [f"{kind}_{name}" for kind in ("conv", "bn", "relu")]
    return conv_bn(x, filters, kernel, stride, pad=same(kernel), names=names, norm=NORM)


def _inception(x, name):
    direct, middle, double, pooling, projection = BLOCKS[name]
    stride = 1 if direct else 2
    branches = [_unit(x, direct, 1, f"{name}_1x1")] if direct else []

    reduced = _unit(x, middle[0], 1, f"{name}_3x3_reduce")
    branches.append(_unit(reduced, middle[1], 3, f"{name}_3x3", stride))

    y = _unit(x, double[0], 1, f"{name}_double_3x3_reduce")
    y = _unit(y, double[1], 3, f"{name}_double_3x3_0")
    branches.append(_unit(y, double[1], 3, f"{name}_double_3x3_1", stride))

    y = pool(x, pooling, 3, stride, pad=1, name=f"{pooling}_pool_{name}_pool")
    branches.append(_unit(y, projection, 1, f"{name}_proj") if projection else y)
    return mx.sym.Concat(*branches, name=f"ch_concat_{name}_chconcat")


def _small_inception(x, name):
    direct, filters = SMALL_BLOCKS[name]
    if direct:
        branches = [_unit(x, direct, 1, f"{name}_1x1"), _unit(x, filters, 3, f"{name}_3x3")]
    else:
        branches = [_unit(x, filters, 3, f"{name}_conv", stride=2), pool(x, "max", 3, stride=2, pad=1, name=f"{name}_pool")]
    return mx.sym.Concat(*branches, name=f"{name}_ch_concat")


def get_symbol(num_classes, image_shape, dtype="float32", **kwargs):
    """The network; a smaller one for images of up to 28 by 28 than for those around 224 by 224."""
    x = images(dtype)
    if image_size(image_shape)[1] <= 28:
        x = _unit(x, 96, 3, "1")
        for name in SMALL_BLOCKS:
            x = _small_inception(x, name)
    else:
        x = pool(_unit(x, 64, 7, "1", stride=2), "max", 3, stride=2, name="pool_1")
        x = _unit(_unit(x, 64, 1, "2_red"), 192, 3, "2")
        x = pool(x, "max", 3, stride=2, name="pool_2")
        for name in BLOCKS:
            x = _inception(x, name)
    x = pool(x, "avg", 7, name="global_pool")
    return classifier(mx.sym.Flatten(x), num_classes, dtype)
