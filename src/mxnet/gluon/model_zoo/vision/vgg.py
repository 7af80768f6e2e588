"""VGG: Simonyan and Zisserman, 2014 (arXiv:1409.1556)."""
from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ....context import cpu, takes_device
from ....initializer import Xavier
from ... import nn
from ...utils import UsageError
from ..model_store import MODELS_DIR, load_pretrained
from ._blocks import Classifier, chain, named, relu

if TYPE_CHECKING:
    from ...hybrid_block import HybridBlock


__all__ = ["VGG", "vgg11", "vgg13", "vgg16", "vgg19", "vgg11_bn", "vgg13_bn", "vgg16_bn", "vgg19_bn", "get_vgg"]

_FILTERS = (64, 128, 256, 512, 512)
_DEPTHS = {11: (1, 1, 2, 2, 2), 13: (2, 2, 2, 2, 2), 16: (2, 2, 3, 3, 3), 19: (2, 2, 4, 4, 4)}
vgg_spec = {depth: (layers, _FILTERS) for depth, layers in _DEPTHS.items()}


def _dense(units, activation=None):
    return nn.Dense(units, activation=activation, weight_initializer="normal", bias_initializer="zeros")


class VGG(Classifier):
    """VGG, for images of 224 by 224.

    Parameters
    ----------
    layers : list of int
        Convolutions of each stage.
    filters : list of int
        Their width.
    classes : int
        The number of outputs.
    batch_norm : bool
        Normalize after each convolution.

    Example
    -------
    >>> net = mx.gluon.model_zoo.vision.VGG(layers=[1, 1], filters=[8, 16], classes=10)
    >>> net(mx.sym.var('data')).infer_shape(data=(1, 3, 32, 32))[1]
    [(1, 10)]
    """

    def __init__(self, layers: Sequence[int], filters: Sequence[int], classes: int = 1000, batch_norm: bool = False, **kwargs: Any):
        super().__init__(**kwargs)
        if len(layers) != len(filters):
            raise UsageError(f"VGG: `layers` and `filters` must have an entry for each stage, received {len(layers)} and {len(filters)}")
        with self.name_scope():
            self.features = self._make_features(layers, filters, batch_norm)
            for _ in range(2):
                self.features.add(_dense(4096, "relu"), nn.Dropout(rate=0.5))
            self.output = _dense(classes)

    @staticmethod
    def _make_features(layers, filters, batch_norm):
        initializer = Xavier(rnd_type="gaussian", factor_type="out", magnitude=2)
        features = chain()
        for depth, width in zip(layers, filters):
            for _ in range(depth):
                features.add(nn.Conv2D(width, kernel_size=3, padding=1, weight_initializer=initializer, bias_initializer="zeros"))
                if batch_norm:
                    features.add(nn.BatchNorm())
                features.add(relu())
            features.add(nn.MaxPool2D(strides=2))
        return features


@takes_device
def get_vgg(num_layers: int, pretrained: bool = False, ctx: Any = cpu(), root: str = MODELS_DIR, **kwargs: Any) -> HybridBlock:
    """VGG by its depth.

    Parameters
    ----------
    num_layers : int
        11, 13, 16 or 19.
    pretrained : bool
        Load the published parameters.
    ctx : Context
        Where to put them.
    root : str
        The folder that keeps downloaded parameters.
    **kwargs
        For `VGG`.

    Raises
    ------
    ValueError
        For another depth.

    Example
    -------
    >>> net = mx.gluon.model_zoo.vision.get_vgg(11, classes=10)
    >>> net.output
    Dense(None -> 10, linear)
    """
    if num_layers not in vgg_spec:
        raise ValueError(f"get_vgg: num_layers must be one of {sorted(vgg_spec)}, received {num_layers}")
    net = VGG(*vgg_spec[num_layers], **kwargs)
    suffix = "_bn" if kwargs.get("batch_norm") else ""
    return load_pretrained(net, f"vgg{num_layers}{suffix}", root, ctx) if pretrained else net


vgg11 = named("vgg11", "VGG with 11 layers", get_vgg, 11)
vgg13 = named("vgg13", "VGG with 13 layers", get_vgg, 13)
vgg16 = named("vgg16", "VGG with 16 layers", get_vgg, 16)
vgg19 = named("vgg19", "VGG with 19 layers", get_vgg, 19)
vgg11_bn = named("vgg11_bn", "VGG with 11 layers and batch norms", get_vgg, 11, batch_norm=True)
vgg13_bn = named("vgg13_bn", "VGG with 13 layers and batch norms", get_vgg, 13, batch_norm=True)
vgg16_bn = named("vgg16_bn", "VGG with 16 layers and batch norms", get_vgg, 16, batch_norm=True)
vgg19_bn = named("vgg19_bn", "VGG with 19 layers and batch norms", get_vgg, 19, batch_norm=True)
