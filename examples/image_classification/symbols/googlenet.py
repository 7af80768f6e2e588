"""GoogLeNet: Szegedy et al., "Going deeper with convolutions", arXiv:1409.4842."""
import mxnet as mx

from .layers import classifier, conv, images, pool, relu

# Filters of: 1x1; 3x3 and its reduction; 5x5 and its reduction; projection after the pooling.
BLOCKS = {
    "in3a": (64, (96, 128), (16, 32), 32),
    "in3b": (128, (128, 192), (32, 96), 64),
    "in4a": (192, (96, 208), (16, 48), 64),
    "in4b": (160, (112, 224), (24, 64), 64),
    "in4c": (128, (128, 256), (24, 64), 64),
    "in4d": (112, (144, 288), (32, 64), 64),
    "in4e": (256, (160, 320), (32, 128), 128),
    "in5a": (256, (160, 320), (32, 128), 128),
    "in5b": (384, (192, 384), (48, 128), 128),
}


def _unit(x, filters, kernel, name, stride=1):
    x = conv(x, filters, kernel, stride, pad=kernel // 2, name=f"conv_{name}")
    return relu(x, name=f"relu_{name}")


def _reduced(x, filters, kernel, name):
    x = _unit(x, filters[0], 1, f"{name}_reduce")
    return _unit(x, filters[1], kernel, name)


def _inception(x, name):
    direct, middle, large, projection = BLOCKS[name]
    pooled = pool(x, "max", 3, pad=1, name=f"max_pool_{name}_pool")
    return mx.sym.Concat(
        _unit(x, direct, 1, f"{name}_1x1"),
        _reduced(x, middle, 3, f"{name}_3x3"),
        _reduced(x, large, 5, f"{name}_5x5"),
        _unit(pooled, projection, 1, f"{name}_proj"),
        name=f"ch_concat_{name}_chconcat")


def get_symbol(num_classes=1000, dtype="float32", **kwargs):
    """The network, for images of 224 by 224."""
    x = pool(_unit(images(dtype), 64, 7, "conv1", stride=2), "max", 3, stride=2)
    x = _unit(_unit(x, 64, 1, "conv2"), 192, 3, "conv3")
    stage = None
    for name in BLOCKS:
        if name[:3] != stage:
            x, stage = pool(x, "max", 3, stride=2), name[:3]
        x = _inception(x, name)
    x = pool(x, "avg", 7, global_pool=True)
    return classifier(mx.sym.Flatten(x), num_classes, dtype)
