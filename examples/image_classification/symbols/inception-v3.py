"""Inception v3: Szegedy et al., 2015 (arXiv:1512.00567)."""
import mxnet as mx

from .layers import classifier, conv_bn, images, pool, same

ROW, COLUMN = (1, 7), (7, 1)


def _unit(x, name, filters, kernel=1, stride=1, pad=None):
    """Padded so that the image keeps its size, unless it shrinks by the stride."""
    if pad is None:
        pad = same(kernel) if stride == 1 else 0
    names = [f"{name}_{kind}" for kind in ("conv2d", "batchnorm", "relu")]
    return conv_bn(x, filters, kernel, stride, pad, names=names, norm={"fix_gamma": True}, no_bias=True)


def _tower(x, name, layers):
    for i, layer in enumerate(layers):
        x = _unit(x, f"{name}_conv_{i}" if i else f"{name}_conv", *layer)
    return x


def _mixed(x, name, direct, towers, pooling, projection=None, split=False):
    """Branches side by side: one convolution, towers of several, a pooling and its projection.

    Parameters
    ----------
    direct : tuple, optional
        Filters, kernel and stride of the lone convolution.
    towers : list of list of tuple
        The same for each layer of each tower.
    pooling : str
        'avg' or 'max'.
    projection : int, optional
        Filters after the pooling; without it the block halves the image.
    split : bool
        End the towers in two convolutions side by side, a row and a column.
    """
    branches = [_unit(x, f"{name}_conv", *direct)] if direct else []
    for i, layers in enumerate(towers):
        prefix = f"{name}_tower_{i}" if i else f"{name}_tower"
        y = _tower(x, prefix, layers)
        if split:
            branches += [_unit(y, f"{prefix}_mixed_conv", 384, (1, 3)), _unit(y, f"{prefix}_mixed_conv_1", 384, (3, 1))]
        else:
            branches.append(y)
    halves = projection is None
    y = pool(x, pooling, 3, stride=2 if halves else 1, pad=0 if halves else 1, name=f"{pooling}_pool_{name}_pool")
    branches.append(y if halves else _unit(y, f"{name}_tower_2_conv", projection))
    return mx.sym.Concat(*branches, name=f"ch_concat_{name}_chconcat")


def _factorized(x, name, width):
    """Convolutions of 7x7, each made of a row and a column."""
    return _mixed(x, name, (192,), [
        [(width,), (width, ROW), (192, COLUMN)],
        [(width,), (width, COLUMN), (width, ROW), (width, COLUMN), (192, ROW)]], "avg", 192)


def get_symbol(num_classes=1000, dtype="float32", **kwargs):
    """The network, for images around 299 by 299."""
    x = _unit(images(dtype, identity=True), "conv", 32, 3, 2)
    x = _unit(x, "conv_1", 32, 3, pad=0)
    x = pool(_unit(x, "conv_2", 64, 3), "max", 3, stride=2, name="pool")
    x = _unit(_unit(x, "conv_3", 80), "conv_4", 192, 3, pad=0)
    x = pool(x, "max", 3, stride=2, name="pool1")

    double = [(64,), (96, 3), (96, 3)]
    for name, projection in (("mixed", 32), ("mixed_1", 64), ("mixed_2", 64)):
        x = _mixed(x, name, (64,), [[(48,), (64, 5)], double], "avg", projection)
    x = _mixed(x, "mixed_3", (384, 3, 2), [[(64,), (96, 3), (96, 3, 2)]], "max")
    for i, width in enumerate((128, 160, 160, 192), start=4):
        x = _factorized(x, f"mixed_{i}", width)
    x = _mixed(x, "mixed_8", None, [[(192,), (320, 3, 2)], [(192,), (192, ROW), (192, COLUMN), (192, 3, 2)]], "max")
    for name, pooling in (("mixed_9", "avg"), ("mixed_10", "max")):
        x = _mixed(x, name, (320,), [[(384,)], [(448,), (384, 3)]], pooling, 192, split=True)

    x = pool(x, "avg", 8, name="global_pool")
    return classifier(mx.sym.Flatten(x, name="flatten"), num_classes, dtype, name="fc1")
