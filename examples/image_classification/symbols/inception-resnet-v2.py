"""Inception-ResNet v2: Szegedy et al., 2016 (arXiv:1602.07261)."""
import mxnet as mx

from .layers import classifier, conv_bn, images, pool, relu

# Layers have no names of their own here, so their order of creation makes the names in checkpoints: keep it.
# A layer is (filters, kernel, stride, pad); a residual block is its towers and the scale of their sum.
RESIDUAL = {
    "35": ([[(32,)], [(32,), (32, 3, 1, 1)], [(32,), (48, 3, 1, 1), (64, 3, 1, 1)]], 0.17),
    # 129 filters and the paddings 1, 2 are slips of MXNet's network; checkpoints are trained with them.
    "17": ([[(192,)], [(129,), (160, (1, 7), 1, (1, 2)), (192, (7, 1), 1, (2, 1))]], 0.1),
    "8": ([[(192,)], [(192,), (224, (1, 3), 1, (0, 1)), (256, (3, 1), 1, (1, 0))]], 0.2),
}


def _tower(x, *layers):
    for layer in layers:
        x = conv_bn(x, *layer)
    return x


def _residual(x, kind, channels, scale=None, activate=True):
    towers, default_scale = RESIDUAL[kind]
    mixed = mx.sym.Concat(*[_tower(x, *layers) for layers in towers])
    x = x + (default_scale if scale is None else scale) * conv_bn(mixed, channels, activation=None)
    return relu(x) if activate else x


def get_symbol(num_classes=1000, dtype="float32", **kwargs):
    """The network, for images around 299 by 299."""
    x = pool(_tower(images(dtype), (32, 3, 2), (32, 3), (64, 3, 1, 1)), "max", 3, stride=2)
    x = pool(_tower(x, (80,), (192, 3)), "max", 3, stride=2)
    branches = [_tower(x, (96,)), _tower(x, (48,), (64, 5, 1, 2)), _tower(x, (64,), (96, 3, 1, 1), (96, 3, 1, 1))]
    x = mx.sym.Concat(*branches, _tower(pool(x, "avg", 3, pad=1), (64,)))
    for _ in range(10):
        x = _residual(x, "35", 320)

    branches = [_tower(x, (384, 3, 2)), _tower(x, (256,), (256, 3, 1, 1), (384, 3, 2))]
    x = mx.sym.Concat(*branches, pool(x, "max", 3, stride=2))
    for _ in range(20):
        x = _residual(x, "17", 1088)

    branches = [_tower(x, (256,), (384, 3, 2)), _tower(x, (256,), (288, 3, 2)), _tower(x, (256,), (288, 3, 1, 1), (320, 3, 2))]
    x = mx.sym.Concat(*branches, pool(x, "max", 3, stride=2))
    for _ in range(9):
        x = _residual(x, "8", 2080)
    x = _residual(x, "8", 2080, scale=1.0, activate=False)

    x = pool(conv_bn(x, 1536), "avg", 1, stride=2, global_pool=True)
    return classifier(mx.sym.Dropout(mx.sym.Flatten(x), p=0.2), num_classes, dtype)
