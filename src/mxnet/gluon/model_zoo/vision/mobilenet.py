"""MobileNet (Howard et al., arXiv:1704.04861) and MobileNet v2 (Sandler et al., arXiv:1801.04381)."""
from __future__ import annotations

from typing import Any

from ....context import cpu, takes_device
from ... import nn
from ...hybrid_block import HybridBlock
from ..model_store import MODELS_DIR, load_pretrained
from ._blocks import Classifier, chain, named, relu

__all__ = ["MobileNet", "MobileNetV2", "mobilenet1_0", "mobilenet_v2_1_0", "mobilenet0_75", "mobilenet_v2_0_75", "mobilenet0_5",
           "mobilenet_v2_0_5", "mobilenet0_25", "mobilenet_v2_0_25", "get_mobilenet", "get_mobilenet_v2"]

# Input width, output width and stride of each pair of a depthwise and a pointwise convolution.
_PAIRS = [(32, 64, 1), (64, 128, 2), (128, 128, 1), (128, 256, 2), (256, 256, 1), (256, 512, 2), *[(512, 512, 1)] * 5,
          (512, 1024, 2), (1024, 1024, 1)]
# Expansion, width, number and first stride of each group of bottlenecks.
_BOTTLENECKS = [(1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)]


class RELU6(HybridBlock):
    """min(max(x, 0), 6)"""

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """Return the clipped input."""
        return F.clip(x, 0, 6, name="relu6")


def _unit(channels, kernel=1, stride=1, groups=1, activation=relu):
    """Return a convolution, its batch norm and activation."""
    layers = [nn.Conv2D(channels, kernel, stride, kernel // 2, groups=groups, use_bias=False), nn.BatchNorm(scale=True)]
    return layers + [activation()] if activation else layers


def _add_conv(out, channels=1, kernel=1, stride=1, pad=0, num_group=1, active=True, relu6=False):
    """Add a convolution, its batch norm and activation to a network."""
    out.add(nn.Conv2D(channels, kernel, stride, pad, groups=num_group, use_bias=False), nn.BatchNorm(scale=True))
    if active:
        out.add(RELU6() if relu6 else relu())


def _add_conv_dw(out, dw_channels, channels, stride, relu6=False):
    """Add a depthwise and a pointwise convolution."""
    _add_conv(out, dw_channels, 3, stride, 1, num_group=dw_channels, relu6=relu6)
    _add_conv(out, channels, relu6=relu6)


class LinearBottleneck(HybridBlock):
    """Widens, filters depthwise and narrows without activation; adds its input where the shape allows.

    Parameters
    ----------
    in_channels, channels : int
        Width of input and output.
    t : int
        The factor by which it is wider inside.
    stride : int
    """

    def __init__(self, in_channels: int, channels: int, t: int, stride: int, **kwargs: Any):
        super().__init__(**kwargs)
        self.use_shortcut = stride == 1 and in_channels == channels
        inner = in_channels * t
        with self.name_scope():
            self.out = nn.HybridSequential()
            self.out.add(*_unit(inner, activation=RELU6), *_unit(inner, 3, stride, groups=inner, activation=RELU6),
                         *_unit(channels, activation=None))

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """Return the bottleneck's output."""
        out = self.out(x)
        return F.elemwise_add(out, x) if self.use_shortcut else out


class MobileNet(Classifier):
    """MobileNet, for images of 224 by 224.

    Parameters
    ----------
    multiplier : float
        The width relative to the full network, at least 0.25.
    classes : int
        The number of outputs.

    Example
    -------
    >>> net = mx.gluon.model_zoo.vision.MobileNet(multiplier=0.25, classes=10)
    >>> net(mx.sym.var('data')).infer_shape(data=(1, 3, 224, 224))[1]
    [(1, 10)]
    """

    def __init__(self, multiplier: float = 1.0, classes: int = 1000, **kwargs: Any):
        super().__init__(**kwargs)
        with self.name_scope():
            self.features = chain(*_unit(int(32 * multiplier), 3, 2))
            for width, channels, stride in _PAIRS:
                width = int(width * multiplier)
                self.features.add(*_unit(width, 3, stride, groups=width), *_unit(int(channels * multiplier)))
            self.features.add(nn.GlobalAvgPool2D(), nn.Flatten())
            self.output = nn.Dense(classes)


class MobileNetV2(Classifier):
    """MobileNet v2, for images of 224 by 224.

    Parameters
    ----------
    multiplier : float
        The width relative to the full network.
    classes : int
        The number of outputs.

    Example
    -------
    >>> net = mx.gluon.model_zoo.vision.MobileNetV2(multiplier=0.25, classes=10)
    >>> net(mx.sym.var('data')).infer_shape(data=(1, 3, 224, 224))[1]
    [(1, 10)]
    """

    def __init__(self, multiplier: float = 1.0, classes: int = 1000, **kwargs: Any):
        super().__init__(**kwargs)
        with self.name_scope():
            self.features = nn.HybridSequential(prefix="features_")
            with self.features.name_scope():
                width = int(32 * multiplier)
                self.features.add(*_unit(width, 3, 2, activation=RELU6))
                for expansion, channels, count, stride in _BOTTLENECKS:
                    for i in range(count):
                        self.features.add(LinearBottleneck(width, int(channels * multiplier), expansion, 1 if i else stride))
                        width = int(channels * multiplier)
                self.features.add(*_unit(int(1280 * multiplier) if multiplier > 1.0 else 1280, activation=RELU6), nn.GlobalAvgPool2D())
            self.output = nn.HybridSequential(prefix="output_")
            with self.output.name_scope():
                self.output.add(nn.Conv2D(classes, 1, use_bias=False, prefix="pred_"), nn.Flatten())


def _published(multiplier):
    """Return a multiplier as it is spelled in the names of published parameters: 1.0, 0.75, 0.5, 0.25."""
    text = f"{multiplier:.2f}"
    return text[:-1] if text in ("1.00", "0.50") else text


@takes_device
def get_mobilenet(multiplier: float, pretrained: bool = False, ctx: Any = cpu(), root: str = MODELS_DIR, **kwargs: Any) -> HybridBlock:
    """MobileNet by its width.

    Parameters
    ----------
    multiplier : float
        The width relative to the full network, at least 0.25.
    pretrained : bool
        Load the published parameters.
    ctx : Context
        Where to put them.
    root : str
        The folder that keeps downloaded parameters.
    **kwargs
        For `MobileNet`.

    Example
    -------
    >>> net = mx.gluon.model_zoo.vision.get_mobilenet(0.25, classes=10)
    >>> net.output
    Dense(None -> 10, linear)
    """
    net = MobileNet(multiplier, **kwargs)
    return load_pretrained(net, f"mobilenet{_published(multiplier)}", root, ctx) if pretrained else net


@takes_device
def get_mobilenet_v2(multiplier: float, pretrained: bool = False, ctx: Any = cpu(), root: str = MODELS_DIR, **kwargs: Any) -> HybridBlock:
    """MobileNet v2 by its width; parameters as for `get_mobilenet`.

    Example
    -------
    >>> net = mx.gluon.model_zoo.vision.get_mobilenet_v2(0.25, classes=10)
    >>> net(mx.sym.var('data')).infer_shape(data=(1, 3, 224, 224))[1]
    [(1, 10)]
    """
    net = MobileNetV2(multiplier, **kwargs)
    return load_pretrained(net, f"mobilenetv2_{_published(multiplier)}", root, ctx) if pretrained else net


mobilenet1_0 = named("mobilenet1_0", "MobileNet", get_mobilenet, 1.0)
mobilenet0_75 = named("mobilenet0_75", "MobileNet at 3/4 of its width", get_mobilenet, 0.75)
mobilenet0_5 = named("mobilenet0_5", "MobileNet at half its width", get_mobilenet, 0.5)
mobilenet0_25 = named("mobilenet0_25", "MobileNet at a quarter of its width", get_mobilenet, 0.25)
mobilenet_v2_1_0 = named("mobilenet_v2_1_0", "MobileNet v2", get_mobilenet_v2, 1.0)
mobilenet_v2_0_75 = named("mobilenet_v2_0_75", "MobileNet v2 at 3/4 of its width", get_mobilenet_v2, 0.75)
mobilenet_v2_0_5 = named("mobilenet_v2_0_5", "MobileNet v2 at half its width", get_mobilenet_v2, 0.5)
mobilenet_v2_0_25 = named("mobilenet_v2_0_25", "MobileNet v2 at a quarter of its width", get_mobilenet_v2, 0.25)
