"""Inception v3: Szegedy et al., 2015 (arXiv:1512.00567)."""
from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ....context import cpu, takes_device
from ... import nn
from ...contrib.nn import HybridConcurrent
from ..model_store import MODELS_DIR, load_pretrained
from ._blocks import Classifier, chain, relu, side_by_side

if TYPE_CHECKING:
    from ....gluon import HybridBlock

__all__ = ["Inception3", "inception_v3"]

# A layer is channels, kernel, and optionally stride and padding, by default 1 and none.
ROW = {"kernel_size": (1, 7), "padding": (0, 3)}
COLUMN = {"kernel_size": (7, 1), "padding": (3, 0)}
SHORT_ROW = {"kernel_size": (1, 3), "padding": (0, 1)}
SHORT_COLUMN = {"kernel_size": (3, 1), "padding": (1, 0)}
POINT = {"kernel_size": 1}
SQUARE = {"kernel_size": 3, "padding": 1}
WIDE = {"kernel_size": 5, "padding": 2}
HALVE = {"kernel_size": 3, "strides": 2}
VALID = {"kernel_size": 3}


def _make_basic_conv(**kwargs):
    """Return a convolution, its batch norm and activation."""
    return chain(nn.Conv2D(use_bias=False, **kwargs), nn.BatchNorm(epsilon=0.001), relu())


def _unit(channels, shape):
    return _make_basic_conv(channels=channels, **shape)


def _branch(*layers, pool=None):
    """Return a pooling that keeps the size of the image (avg) or halves it (max), if asked for, then units."""
    row = chain()
    if pool == "avg":
        row.add(nn.AvgPool2D(pool_size=3, strides=1, padding=1))
    elif pool == "max":
        row.add(nn.MaxPool2D(pool_size=3, strides=2))
    row.add(*(_unit(*layer) for layer in layers))
    return row


def _block_a(pool_features):
    return (_branch((64, POINT)),
            _branch((48, POINT), (64, WIDE)),
            _branch((64, POINT), (96, SQUARE), (96, SQUARE)),
            _branch((pool_features, POINT), pool="avg"))


def _block_b():
    return _branch((384, HALVE)), _branch((64, POINT), (96, SQUARE), (96, HALVE)), _branch(pool="max")


def _block_c(width):
    return (_branch((192, POINT)),
            _branch((width, POINT), (width, ROW), (192, COLUMN)),
            _branch((width, POINT), (width, COLUMN), (width, ROW), (width, COLUMN), (192, ROW)),
            _branch((192, POINT), pool="avg"))


def _block_d():
    return (_branch((192, POINT), (320, HALVE)),
            _branch((192, POINT), (192, ROW), (192, COLUMN), (192, HALVE)),
            _branch(pool="max"))


def _block_e():
    def split(*layers):
        return chain(_branch(*layers), side_by_side(_branch((384, SHORT_ROW)), _branch((384, SHORT_COLUMN))))

    return (_branch((320, POINT)), split((384, POINT)), split((448, POINT), (384, SQUARE)), _branch((192, POINT), pool="avg"))


def _concurrent(prefix, make, *sizes):
    """Return the branches of a block side by side."""
    block = HybridConcurrent(axis=1, prefix=prefix)
    with block.name_scope():
        block.add(*make(*sizes))
    return block


def _make_branch(use_pool, *conv_settings):
    """Return a branch of a pooling ('avg', 'max' or None) and convolutions, given by channels, kernel, stride and padding; None for the default."""
    names = "kernel_size", "strides", "padding"
    return _branch(*((channels, {n: v for n, v in zip(names, shape) if v is not None}) for channels, *shape in conv_settings), pool=use_pool)


def _make_A(pool_features, prefix):
    return _concurrent(prefix, _block_a, pool_features)


def _make_B(prefix):
    return _concurrent(prefix, _block_b)


def _make_C(channels_7x7, prefix):
    return _concurrent(prefix, _block_c, channels_7x7)


def _make_D(prefix):
    return _concurrent(prefix, _block_d)


def _make_E(prefix):
    return _concurrent(prefix, _block_e)


def make_aux(classes: int) -> HybridBlock:
    """Return the auxiliary classifier that Inception v3 is trained with, behind its blocks of 17 by 17."""
    return chain(nn.AvgPool2D(pool_size=5, strides=3), _unit(128, POINT), _unit(768, {"kernel_size": 5}), nn.Flatten(), nn.Dense(classes))


_BLOCKS: list[tuple[str, Callable, tuple[int, ...]]] = [
    ("A1_", _block_a, (32,)), ("A2_", _block_a, (64,)), ("A3_", _block_a, (64,)), ("B_", _block_b, ()),
    ("C1_", _block_c, (128,)), ("C2_", _block_c, (160,)), ("C3_", _block_c, (160,)), ("C4_", _block_c, (192,)), ("D_", _block_d, ()),
    ("E1_", _block_e, ()), ("E2_", _block_e, ()),
]


class Inception3(Classifier):
    """Inception v3, for images of 299 by 299.

    Parameters
    ----------
    classes : int
        The number of outputs.

    Example
    -------
    >>> net = mx.gluon.model_zoo.vision.Inception3(classes=10)
    >>> net(mx.sym.var('data')).infer_shape(data=(1, 3, 299, 299))[1]
    [(1, 10)]
    """

    def __init__(self, classes: int = 1000, **kwargs: Any):
        super().__init__(**kwargs)
        with self.name_scope():
            self.features = chain(
                _unit(32, HALVE), _unit(32, VALID), _unit(64, SQUARE), nn.MaxPool2D(pool_size=3, strides=2),
                _unit(80, POINT), _unit(192, VALID), nn.MaxPool2D(pool_size=3, strides=2))
            for prefix, make, sizes in _BLOCKS:
                self.features.add(_concurrent(prefix, make, *sizes))
            self.features.add(nn.AvgPool2D(pool_size=8), nn.Dropout(0.5))
            self.output = nn.Dense(classes)


@takes_device
def inception_v3(pretrained: bool = False, ctx: Any = cpu(), root: str = MODELS_DIR, **kwargs: Any) -> HybridBlock:
    """Inception v3.

    Parameters
    ----------
    pretrained : bool
        Load the published parameters.
    ctx : Context
        Where to put them.
    root : str
        The folder that keeps downloaded parameters.
    **kwargs
        For `Inception3`.

    Example
    -------
    >>> net = mx.gluon.model_zoo.vision.inception_v3(classes=10)
    >>> net(mx.sym.var('data')).infer_shape(data=(1, 3, 299, 299))[1]
    [(1, 10)]
    """
    net = Inception3(**kwargs)
    return load_pretrained(net, "inceptionv3", root, ctx) if pretrained else net
