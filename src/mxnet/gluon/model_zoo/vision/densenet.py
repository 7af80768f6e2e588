"""DenseNet: Huang et al., 2016 (arXiv:1608.06993)."""
from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ....context import cpu, takes_device
from ... import nn
from ...contrib.nn import Identity
from ..model_store import MODELS_DIR, load_pretrained
from ._blocks import Classifier, chain, named, relu, side_by_side

if TYPE_CHECKING:
    from ...hybrid_block import HybridBlock


__all__ = ["DenseNet", "densenet121", "densenet161", "densenet169", "densenet201"]

# Depth to the width of the first layer, the growth of each further one, and the layers of each block.
densenet_spec = {
    121: (64, 32, (6, 12, 24, 16)),
    161: (96, 48, (6, 12, 36, 24)),
    169: (64, 32, (6, 12, 32, 32)),
    201: (64, 32, (6, 12, 48, 32)),
}


def _norm_relu_conv(channels, kernel_size, padding=0):
    return nn.BatchNorm(), relu(), nn.Conv2D(channels, kernel_size=kernel_size, padding=padding, use_bias=False)


def _dense_layer(growth_rate, bn_size, dropout):
    """Appends `growth_rate` new channels to its input."""
    new = chain(*_norm_relu_conv(bn_size * growth_rate, 1), *_norm_relu_conv(growth_rate, 3, padding=1))
    if dropout:
        new.add(nn.Dropout(dropout))
    return side_by_side(Identity(), new)


def _make_dense_block(num_layers, bn_size, growth_rate, dropout, stage_index):
    block = nn.HybridSequential(prefix=f"stage{stage_index}_")
    with block.name_scope():
        block.add(*(_dense_layer(growth_rate, bn_size, dropout) for _ in range(num_layers)))
    return block


def _make_transition(num_output_features):
    """Between two blocks: fewer channels, and half the height and width."""
    return chain(*_norm_relu_conv(num_output_features, 1), nn.AvgPool2D(pool_size=2, strides=2))


class DenseNet(Classifier):
    """DenseNet-BC, for images of 224 by 224.

    Parameters
    ----------
    num_init_features : int
        Width of the first convolution.
    growth_rate : int
        Channels that each dense layer adds.
    block_config : list of int
        Dense layers of each block.
    bn_size : int
        Width of a layer's bottleneck, in units of `growth_rate`.
    dropout : float
        Dropout rate of the dense layers.
    classes : int
        The number of outputs.

    Example
    -------
    >>> net = mx.gluon.model_zoo.vision.DenseNet(16, 8, [2, 2], classes=10)
    >>> net(mx.sym.var('data')).infer_shape(data=(1, 3, 224, 224))[1]
    [(1, 10)]
    """

    def __init__(self, num_init_features: int, growth_rate: int, block_config: Sequence[int], bn_size: int = 4, dropout: float = 0,
                 classes: int = 1000, **kwargs: Any):
        super().__init__(**kwargs)
        with self.name_scope():
            self.features = chain(
                nn.Conv2D(num_init_features, kernel_size=7, strides=2, padding=3, use_bias=False),
                nn.BatchNorm(), relu(), nn.MaxPool2D(pool_size=3, strides=2, padding=1))
            width = num_init_features
            for i, num_layers in enumerate(block_config, start=1):
                self.features.add(_make_dense_block(num_layers, bn_size, growth_rate, dropout, i))
                width += num_layers * growth_rate
                if i < len(block_config):
                    width //= 2
                    self.features.add(_make_transition(width))
            self.features.add(nn.BatchNorm(), relu(), nn.AvgPool2D(pool_size=7), nn.Flatten())
            self.output = nn.Dense(classes)


@takes_device
def get_densenet(num_layers: int, pretrained: bool = False, ctx: Any = cpu(), root: str = MODELS_DIR, **kwargs: Any) -> HybridBlock:
    """DenseNet by its depth.

    Parameters
    ----------
    num_layers : int
        121, 161, 169 or 201.
    pretrained : bool
        Load the published parameters.
    ctx : Context
        Where to put them.
    root : str
        The folder that keeps downloaded parameters.
    **kwargs
        For `DenseNet`.

    Raises
    ------
    ValueError
        For another depth.
    """
    if num_layers not in densenet_spec:
        raise ValueError(f"get_densenet: num_layers must be one of {sorted(densenet_spec)}, received {num_layers}")
    net = DenseNet(*densenet_spec[num_layers], **kwargs)
    return load_pretrained(net, f"densenet{num_layers}", root, ctx) if pretrained else net


densenet121 = named("densenet121", "DenseNet-BC with 121 layers", get_densenet, 121)
densenet161 = named("densenet161", "DenseNet-BC with 161 layers", get_densenet, 161)
densenet169 = named("densenet169", "DenseNet-BC with 169 layers", get_densenet, 169)
densenet201 = named("densenet201", "DenseNet-BC with 201 layers", get_densenet, 201)
