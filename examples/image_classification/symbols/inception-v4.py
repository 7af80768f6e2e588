"""Inception v4: Szegedy et al., 2016 (arXiv:1602.07261)."""
import mxnet as mx

from .layers import classifier, conv_bn, images, pool, same

# A branch is its layers: (filters, kernel, name), with the stride as fourth where it halves the image, or the kind of a
# pooling. Layer names are those of published checkpoints, even where these transpose the kernel.
BLOCKS = {
    "A": [
        ["avg", (96, 1, "conv1_1*1")],
        [(96, 1, "conv2_1*1")],
        [(64, 1, "conv3_1*1"), (96, 3, "conv4_3*3")],
        [(64, 1, "conv5_1*1"), (96, 3, "conv6_3*3"), (96, 3, "conv7_3*3")],
    ],
    "reduce A": [
        ["max"],
        [(384, 3, "conv1_3*3", 2)],
        [(192, 1, "conv2_1*1"), (224, 3, "conv3_3*3"), (256, 3, "conv4_3*3", 2)],
    ],
    "B": [
        ["avg", (128, 1, "conv1_1*1")],
        [(384, 1, "conv2_1*1")],
        [(192, 1, "conv3_1*1"), (224, (1, 7), "conv4_1*7"), (256, (7, 1), "conv5_1*7")],
        [(192, 1, "conv6_1*1"), (192, (1, 7), "conv7_1*7"), (224, (7, 1), "conv8_7*1"), (224, (1, 7), "conv9_1*7"),
         (256, (7, 1), "conv10_7*1")],
    ],
    "reduce B": [
        ["max"],
        [(192, 1, "conv1_1*1"), (192, 3, "conv2_3*3", 2)],
        [(256, 1, "conv3_1*1"), (256, (1, 7), "conv4_1*7"), (320, (7, 1), "conv5_7*1"), (320, 3, "conv6_3*3", 2)],
    ],
}


def _unit(x, prefix, filters, kernel, name, stride=1, pad=None):
    if pad is None:
        pad = same(kernel) if stride == 1 else 0
    names = [f"{prefix}_{name}_{kind}" for kind in ("conv2d", "batchnorm", "relu")]
    return conv_bn(x, filters, kernel, stride, pad, names=names, norm={"fix_gamma": True}, no_bias=True)


def _branch(x, prefix, layers):
    for layer in layers:
        if layer == "avg":
            x = pool(x, "avg", 3, pad=1, name=f"{prefix}_avgpool_1")
        elif layer == "max":
            x = pool(x, "max", 3, stride=2, name=f"{prefix}_maxpool_1")
        else:
            x = _unit(x, prefix, *layer)
    return x


def _block(x, prefix, kind):
    return mx.sym.Concat(*(_branch(x, prefix, layers) for layers in BLOCKS[kind]), name=f"{prefix}_concat_1")


def _stem(x, prefix):
    x = _unit(x, prefix, 32, 3, "conv1_3*3", 2)
    x = _unit(x, prefix, 32, 3, "conv2_3*3", pad=0)
    x = _unit(x, prefix, 64, 3, "conv3_3*3")
    x = mx.sym.Concat(
        pool(x, "max", 3, stride=2, name=f"{prefix}_maxpool_1"),
        _unit(x, prefix, 96, 3, "conv4_3*3", 2), name=f"{prefix}_concat_1")
    left = _unit(_unit(x, prefix, 64, 1, "conv5_1*1"), prefix, 96, 3, "conv6_3*3", pad=0)
    right = _branch(x, prefix, [(64, 1, "conv7_1*1"), (64, (7, 1), "conv8_7*1"), (64, (1, 7), "conv9_1*7")])
    right = _unit(right, prefix, 96, 3, "conv10_3*3", pad=0)
    x = mx.sym.Concat(left, right, name=f"{prefix}_concat_2")
    return mx.sym.Concat(
        _unit(x, prefix, 192, 3, "conv11_3*3", 2),
        pool(x, "max", 3, stride=2, name=f"{prefix}_maxpool_2"), name=f"{prefix}_concat_3")


def _last_block(x, prefix):
    """Its towers end in two convolutions side by side, a row and a column."""
    branches = [_branch(x, prefix, ["avg", (256, 1, "conv1_1*1")]), _unit(x, prefix, 256, 1, "conv2_1*1")]
    y = _unit(x, prefix, 384, 1, "conv3_1*1")
    branches += [_unit(y, prefix, 256, (1, 3), "conv4_3*1"), _unit(y, prefix, 256, (3, 1), "conv5_1*3")]
    y = _branch(x, prefix, [(384, 1, "conv6_1*1"), (448, (1, 3), "conv7_1*3"), (512, (3, 1), "conv8_3*1")])
    branches += [_unit(y, prefix, 256, (3, 1), "conv9_1*3"), _unit(y, prefix, 256, (1, 3), "conv10_3*1")]
    return mx.sym.Concat(*branches, name=f"{prefix}_concat")


def get_symbol(num_classes=1000, dtype="float32", **kwargs):
    """The network, for images around 299 by 299."""
    x = _stem(images(dtype, identity=True), "in_stem")
    for i in range(1, 5):
        x = _block(x, f"in{i}A", "A")
    x = _block(x, "re1A", "reduce A")
    for i in range(1, 8):
        x = _block(x, f"in{i}B", "B")
    x = _block(x, "re1B", "reduce B")
    for i in range(1, 4):
        x = _last_block(x, f"in{i}C")
    x = mx.sym.Dropout(pool(x, "avg", 8, pad=1, name="global_avgpool"), p=0.2)
    return classifier(mx.sym.Flatten(x, name="flatten"), num_classes, dtype, name="fc1")
