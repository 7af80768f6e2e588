"""ResNet v1 (He et al., arXiv:1512.03385) and v2 (He et al., arXiv:1603.05027)."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ....context import cpu, takes_device
from ... import nn
from ...hybrid_block import HybridBlock
from ...utils import UsageError
from ..model_store import MODELS_DIR, load_pretrained
from ._blocks import Classifier, activate, chain, conv3x3, named, relu

__all__ = ["ResNetV1", "ResNetV2", "BasicBlockV1", "BasicBlockV2", "BottleneckV1", "BottleneckV2",
           "resnet18_v1", "resnet34_v1", "resnet50_v1", "resnet101_v1", "resnet152_v1",
           "resnet18_v2", "resnet34_v2", "resnet50_v2", "resnet101_v2", "resnet152_v2", "get_resnet"]


class _ResidualV1(HybridBlock):
    """A block that adds its input and activates the sum.

    Parameters
    ----------
    channels : int
        Width of the output.
    stride : int
    downsample : bool
        Project the input to the shape of the output.
    in_channels : int
        Width of the input; 0 waits for the first batch.
    """

    _input_first = False  # exported graphs list their arguments in the order of the sum

    _layers: Callable[..., tuple[HybridBlock, ...]]

    def __init__(self, channels, stride, downsample=False, in_channels=0, **kwargs):
        super().__init__(**kwargs)
        self.body = chain(*self._layers(channels, stride, in_channels))
        self.downsample = chain(
            nn.Conv2D(channels, kernel_size=1, strides=stride, use_bias=False, in_channels=in_channels),
            nn.BatchNorm()) if downsample else None

    def hybrid_forward(self, F, x):
        """Return the activated sum."""
        y = self.body(x)
        x = self.downsample(x) if self.downsample else x
        return activate(F, x + y if self._input_first else y + x)


class BasicBlockV1(_ResidualV1):
    """Two convolutions of 3x3; ResNet v1 with 18 and 34 layers has them.

    Parameters
    ----------
    channels : int
        Width of the output.
    stride : int
    downsample : bool
        Project the input to the shape of the output.
    in_channels : int
        Width of the input; 0 waits for the first batch.

    Example
    -------
    >>> block = mx.gluon.model_zoo.vision.BasicBlockV1(channels=8, stride=2, downsample=True)
    >>> block.initialize()
    >>> block(mx.nd.ones((1, 4, 6, 6))).shape
    (1, 8, 3, 3)
    """

    _input_first = True

    @staticmethod
    def _layers(channels, stride, in_channels):
        return (conv3x3(channels, stride, in_channels), nn.BatchNorm(), relu(),
                conv3x3(channels, 1, channels), nn.BatchNorm())


class BottleneckV1(_ResidualV1):
    """Convolutions of 1x1, 3x3 and 1x1, narrower inside; deeper ResNets v1 have them. Parameters as for `BasicBlockV1`.

    Example
    -------
    >>> block = mx.gluon.model_zoo.vision.BottleneckV1(channels=8, stride=2, downsample=True)
    >>> block.initialize()
    >>> block(mx.nd.ones((1, 4, 6, 6))).shape
    (1, 8, 3, 3)
    """

    @staticmethod
    def _layers(channels, stride, in_channels):
        inner = channels // 4
        return (nn.Conv2D(inner, kernel_size=1, strides=stride), nn.BatchNorm(), relu(),
                conv3x3(inner, 1, inner), nn.BatchNorm(), relu(),
                nn.Conv2D(channels, kernel_size=1, strides=1), nn.BatchNorm())


class _ResidualV2(HybridBlock):
    """A block that normalizes and activates before each convolution, and adds its input as it is."""

    _convolutions: Callable[..., tuple[Callable[[], HybridBlock], ...]]
    bn1: nn.BatchNorm
    conv1: HybridBlock

    def __init__(self, channels, stride, downsample=False, in_channels=0, **kwargs):
        super().__init__(**kwargs)
        # bn1, conv1, bn2, ... are the names in parameter files.
        for i, make in enumerate(self._convolutions(channels, stride, in_channels), start=1):
            setattr(self, f"bn{i}", nn.BatchNorm())
            setattr(self, f"conv{i}", make())
        self._depth = i
        self.downsample = nn.Conv2D(channels, 1, stride, use_bias=False, in_channels=in_channels) if downsample else None

    def hybrid_forward(self, F, x):
        """Return the sum."""
        y = first = activate(F, self.bn1(x))
        y = self.conv1(y)
        for i in range(2, self._depth + 1):
            y = getattr(self, f"conv{i}")(activate(F, getattr(self, f"bn{i}")(y)))
        return y + (self.downsample(first) if self.downsample else x)


class BasicBlockV2(_ResidualV2):
    """Two convolutions of 3x3; ResNet v2 with 18 and 34 layers has them. Parameters as for `BasicBlockV1`.

    Example
    -------
    >>> block = mx.gluon.model_zoo.vision.BasicBlockV2(channels=8, stride=2, downsample=True)
    >>> block.initialize()
    >>> block(mx.nd.ones((1, 4, 6, 6))).shape
    (1, 8, 3, 3)
    """

    @staticmethod
    def _convolutions(channels, stride, in_channels):
        return lambda: conv3x3(channels, stride, in_channels), lambda: conv3x3(channels, 1, channels)


class BottleneckV2(_ResidualV2):
    """Convolutions of 1x1, 3x3 and 1x1, narrower inside; deeper ResNets v2 have them. Parameters as for `BasicBlockV1`.

    Example
    -------
    >>> block = mx.gluon.model_zoo.vision.BottleneckV2(channels=8, stride=2, downsample=True)
    >>> block.initialize()
    >>> block(mx.nd.ones((1, 4, 6, 6))).shape
    (1, 8, 3, 3)
    """

    @staticmethod
    def _convolutions(channels, stride, in_channels):
        inner = channels // 4
        return (lambda: nn.Conv2D(inner, kernel_size=1, strides=1, use_bias=False),
                lambda: conv3x3(inner, stride, inner),
                lambda: nn.Conv2D(channels, kernel_size=1, strides=1, use_bias=False))


class _ResNet(Classifier):
    """The part of both versions up to the last stage."""

    _first_layers: Callable[[], tuple[HybridBlock, ...]]
    _last_layers: Callable[[], tuple[HybridBlock, ...]]

    def __init__(self, block, layers, channels, classes=1000, thumbnail=False, **kwargs):
        super().__init__(**kwargs)
        if len(layers) != len(channels) - 1:
            raise UsageError(f"{type(self).__name__}: `channels` must have one entry more than `layers`, that of the first layer; "
                             f"received {len(channels)} for {len(layers)} stages")
        with self.name_scope():
            self.features = chain(*self._first_layers())
            if thumbnail:
                self.features.add(conv3x3(channels[0], 1, 0))
            else:
                self.features.add(nn.Conv2D(channels[0], 7, 2, 3, use_bias=False), nn.BatchNorm(), relu(), nn.MaxPool2D(3, 2, 1))
            for i, (depth, before, width) in enumerate(zip(layers, channels, channels[1:]), start=1):
                self.features.add(self._make_layer(block, depth, width, 1 if i == 1 else 2, i, in_channels=before))
            self.features.add(*self._last_layers())
            self.output = nn.Dense(classes, in_units=channels[-1])

    @staticmethod
    def _make_layer(block, layers, channels, stride, stage_index, in_channels=0):
        """One stage."""
        stage = nn.HybridSequential(prefix=f"stage{stage_index}_")
        with stage.name_scope():
            stage.add(block(channels, stride, channels != in_channels, in_channels=in_channels, prefix=""),
                      *(block(channels, 1, False, in_channels=channels, prefix="") for _ in range(layers - 1)))
        return stage


class ResNetV1(_ResNet):
    """ResNet v1.

    Parameters
    ----------
    block : type
        `BasicBlockV1` or `BottleneckV1`.
    layers : list of int
        Blocks of each stage.
    channels : list of int
        Width of the first layer and of each stage.
    classes : int
        The number of outputs.
    thumbnail : bool
        Begin with one convolution of 3x3, for small images, instead of shrinking the image by 4.

    Example
    -------
    >>> vision = mx.gluon.model_zoo.vision
    >>> net = vision.ResNetV1(vision.BasicBlockV1, layers=[1, 1], channels=[8, 8, 16], classes=10)
    >>> net(mx.sym.var('data')).infer_shape(data=(1, 3, 224, 224))[1]
    [(1, 10)]
    """

    @staticmethod
    def _first_layers():
        return ()

    @staticmethod
    def _last_layers():
        return (nn.GlobalAvgPool2D(),)


class ResNetV2(_ResNet):
    """ResNet v2, made of `BasicBlockV2` or `BottleneckV2`. Parameters as for `ResNetV1`.

    Example
    -------
    >>> vision = mx.gluon.model_zoo.vision
    >>> net = vision.ResNetV2(vision.BasicBlockV2, layers=[1, 1], channels=[8, 8, 16], classes=10)
    >>> net(mx.sym.var('data')).infer_shape(data=(1, 3, 224, 224))[1]
    [(1, 10)]
    """

    @staticmethod
    def _first_layers():
        return (nn.BatchNorm(scale=False, center=False),)

    @staticmethod
    def _last_layers():
        return nn.BatchNorm(), relu(), nn.GlobalAvgPool2D(), nn.Flatten()


_BASIC, _WIDE = (64, 64, 128, 256, 512), (64, 256, 512, 1024, 2048)
resnet_spec: dict[int, Any] = {
    18: ("basic_block", (2, 2, 2, 2), _BASIC),
    34: ("basic_block", (3, 4, 6, 3), _BASIC),
    50: ("bottle_neck", (3, 4, 6, 3), _WIDE),
    101: ("bottle_neck", (3, 4, 23, 3), _WIDE),
    152: ("bottle_neck", (3, 8, 36, 3), _WIDE),
}
resnet_net_versions: list[Any] = [ResNetV1, ResNetV2]
resnet_block_versions: list[dict[str, Any]] = [
    {"basic_block": BasicBlockV1, "bottle_neck": BottleneckV1}, {"basic_block": BasicBlockV2, "bottle_neck": BottleneckV2}]


@takes_device
def get_resnet(version: int, num_layers: int, pretrained: bool = False, ctx: Any = cpu(), root: str = MODELS_DIR, **kwargs: Any) -> HybridBlock:
    """ResNet by its version and depth.

    Parameters
    ----------
    version : int
        1 or 2.
    num_layers : int
        18, 34, 50, 101 or 152.
    pretrained : bool
        Load the published parameters.
    ctx : Context
        Where to put them.
    root : str
        The folder that keeps downloaded parameters.
    **kwargs
        For `ResNetV1` or `ResNetV2`.

    Raises
    ------
    UsageError
        For another version or depth.

    Example
    -------
    >>> net = mx.gluon.model_zoo.vision.get_resnet(version=2, num_layers=18, classes=10)
    >>> net.output
    Dense(512 -> 10, linear)
    """
    if num_layers not in resnet_spec:
        raise UsageError(f"Invalid number of layers: {num_layers}. Options are {sorted(resnet_spec)}")
    if version not in (1, 2):
        raise UsageError(f"Invalid resnet version: {version}. Options are 1 and 2.")
    kind, layers, channels = resnet_spec[num_layers]
    net = resnet_net_versions[version - 1](resnet_block_versions[version - 1][kind], layers, channels, **kwargs)
    return load_pretrained(net, f"resnet{num_layers}_v{version}", root, ctx) if pretrained else net


resnet18_v1 = named("resnet18_v1", "ResNet v1 with 18 layers", get_resnet, 1, 18)
resnet34_v1 = named("resnet34_v1", "ResNet v1 with 34 layers", get_resnet, 1, 34)
resnet50_v1 = named("resnet50_v1", "ResNet v1 with 50 layers", get_resnet, 1, 50)
resnet101_v1 = named("resnet101_v1", "ResNet v1 with 101 layers", get_resnet, 1, 101)
resnet152_v1 = named("resnet152_v1", "ResNet v1 with 152 layers", get_resnet, 1, 152)
resnet18_v2 = named("resnet18_v2", "ResNet v2 with 18 layers", get_resnet, 2, 18)
resnet34_v2 = named("resnet34_v2", "ResNet v2 with 34 layers", get_resnet, 2, 34)
resnet50_v2 = named("resnet50_v2", "ResNet v2 with 50 layers", get_resnet, 2, 50)
resnet101_v2 = named("resnet101_v2", "ResNet v2 with 101 layers", get_resnet, 2, 101)
resnet152_v2 = named("resnet152_v2", "ResNet v2 with 152 layers", get_resnet, 2, 152)
