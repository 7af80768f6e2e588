"""MobileNet v2: Sandler et al., "Inverted residuals and linear bottlenecks", arXiv:1801.04381."""
import mxnet as mx

from .layers import classifier, conv_bn, images, pool

# Expansion, width, units and stride of each sequence of inverted residuals.
SEQUENCES = [(1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)]
NORM = {"fix_gamma": False, "use_global_stats": False, "eps": 1e-5}


def _relu6(x, name):
    return mx.sym.clip(x, 0, 6, name=name)


def _unit(x, name, filters, kernel=1, stride=1, num_group=1, activation=_relu6):
    names = [f"{name}-{kind}" for kind in ("conv2d", "batchnorm", "relu6")]
    return conv_bn(x, filters, kernel, stride, pad=kernel // 2, names=names, norm=NORM, activation=activation,
                   num_group=num_group, no_bias=True)


def _inverted_residual(x, name, channels, expansion, width, stride, shortcut):
    inner = channels * expansion
    y = _unit(x, f"{name}-exp", inner)
    y = _unit(y, f"{name}-depthwise", inner, 3, stride, num_group=inner)
    y = _unit(y, f"{name}-linear", width, activation=None)
    return mx.sym.elemwise_add(x, y, name=f"{name}-shortcut") if shortcut else y


def get_symbol(num_classes=1000, multiplier=1.0, dtype="float32", **kwargs):
    """The network, for images around 224 by 224.

    Parameters
    ----------
    multiplier : float
        The width, relative to the full network.
    """
    channels = round(32 * multiplier)
    x = _unit(images(dtype), "first-3x3-conv", channels, 3, stride=2)
    for i, (expansion, width, count, stride) in enumerate(SEQUENCES):
        width = round(width * multiplier)
        for j in range(count):
            x = _inverted_residual(x, f"seq-{i}-block{j}", channels, expansion, width, 1 if j else stride, shortcut=j > 0)
            channels = width
    x = _unit(x, "last-1x1-conv", int(1280 * multiplier) if multiplier > 1.0 else 1280)
    x = pool(x, "avg", 7, global_pool=True, name="global_pool")
    return classifier(mx.sym.Flatten(x, name="flatten"), num_classes, dtype, name="fc")
