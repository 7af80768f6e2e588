"""SqueezeNet: Iandola et al., 2016 (arXiv:1602.07360)."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ....context import cpu, takes_device
from ... import nn
from ...utils import UsageError
from ..model_store import MODELS_DIR, load_pretrained
from ._blocks import Classifier, chain, named, relu, side_by_side

if TYPE_CHECKING:
    from ...hybrid_block import HybridBlock


__all__ = ["SqueezeNet", "squeezenet1_0", "squeezenet1_1"]

# Version to the width, kernel of the first convolution, and the fire modules, None being a pooling.
_SPEC = {
    "1.0": (96, 7, (None, 16, 16, 32, None, 32, 48, 48, 64, None, 64)),
    "1.1": (64, 3, (None, 16, 16, None, 32, 32, None, 48, 48, 64, 64)),
}


def _conv(channels, kernel_size, padding=0):
    return chain(nn.Conv2D(channels, kernel_size, padding=padding), relu())


def _make_fire(squeeze_channels, expand1x1_channels, expand3x3_channels):
    """Narrows, then widens each of two halves."""
    squeezed = _conv(squeeze_channels, 1)
    return chain(squeezed, side_by_side(_conv(expand1x1_channels, 1), _conv(expand3x3_channels, 3, padding=1)))


class SqueezeNet(Classifier):
    """SqueezeNet, for images of 224 by 224.

    Parameters
    ----------
    version : str
        '1.0', or '1.1' that needs 2.4 times less computation.
    classes : int
        The number of outputs.

    Raises
    ------
    UsageError
        For another version.

    Example
    -------
    >>> net = mx.gluon.model_zoo.vision.SqueezeNet('1.1', classes=10)
    >>> net(mx.sym.var('data')).infer_shape(data=(1, 3, 224, 224))[1]
    [(1, 10)]
    """

    def __init__(self, version: str, classes: int = 1000, **kwargs: Any):
        super().__init__(**kwargs)
        if version not in _SPEC:
            raise UsageError(f"Unsupported SqueezeNet version {version}: 1.0 or 1.1 expected")
        width, kernel, modules = _SPEC[version]
        with self.name_scope():
            self.features = chain(nn.Conv2D(width, kernel_size=kernel, strides=2), relu())
            for squeeze in modules:
                self.features.add(_make_fire(squeeze, 4 * squeeze, 4 * squeeze) if squeeze else nn.MaxPool2D(pool_size=3, strides=2, ceil_mode=True))
            self.features.add(nn.Dropout(0.5))
            self.output = chain(nn.Conv2D(classes, kernel_size=1), relu(), nn.AvgPool2D(13), nn.Flatten())


@takes_device
def get_squeezenet(version: str, pretrained: bool = False, ctx: Any = cpu(), root: str = MODELS_DIR, **kwargs: Any) -> HybridBlock:
    """SqueezeNet by its version.

    Parameters
    ----------
    version : str
        '1.0' or '1.1'.
    pretrained : bool
        Load the published parameters.
    ctx : Context
        Where to put them.
    root : str
        The folder that keeps downloaded parameters.
    **kwargs
        For `SqueezeNet`.
    """
    net = SqueezeNet(version, **kwargs)
    return load_pretrained(net, f"squeezenet{version}", root, ctx) if pretrained else net


squeezenet1_0 = named("squeezenet1_0", "SqueezeNet 1.0", get_squeezenet, "1.0")
squeezenet1_1 = named("squeezenet1_1", "SqueezeNet 1.1", get_squeezenet, "1.1")
