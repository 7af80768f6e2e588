"""AlexNet, in the form of Krizhevsky, 2014 (arXiv:1404.5997)."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ....context import cpu, takes_device
from ... import nn
from ..model_store import MODELS_DIR, load_pretrained
from ._blocks import Classifier, chain

if TYPE_CHECKING:
    from ...hybrid_block import HybridBlock


__all__ = ["AlexNet", "alexnet"]


class AlexNet(Classifier):
    """AlexNet, for images of 224 by 224.

    Parameters
    ----------
    classes : int
        The number of outputs.

    Example
    -------
    >>> net = mx.gluon.model_zoo.vision.AlexNet(classes=10)
    >>> net(mx.sym.var('data')).infer_shape(data=(1, 3, 224, 224))[1]
    [(1, 10)]
    """

    def __init__(self, classes: int = 1000, **kwargs: Any):
        super().__init__(**kwargs)
        with self.name_scope():
            self.features = chain(
                nn.Conv2D(64, 11, strides=4, padding=2, activation="relu"),
                nn.MaxPool2D(3, strides=2),
                nn.Conv2D(192, 5, padding=2, activation="relu"),
                nn.MaxPool2D(3, strides=2),
                *(nn.Conv2D(channels, 3, padding=1, activation="relu") for channels in (384, 256, 256)),
                nn.MaxPool2D(3, strides=2),
                nn.Flatten())
            for _ in range(2):
                self.features.add(nn.Dense(4096, activation="relu"), nn.Dropout(0.5))
            self.output = nn.Dense(classes)


@takes_device
def alexnet(pretrained: bool = False, ctx: Any = cpu(), root: str = MODELS_DIR, **kwargs: Any) -> HybridBlock:
    """AlexNet.

    Parameters
    ----------
    pretrained : bool
        Load the published parameters.
    ctx : Context
        Where to put them.
    root : str
        The folder that keeps downloaded parameters.
    **kwargs
        For `AlexNet`.

    Example
    -------
    >>> net = mx.gluon.model_zoo.vision.alexnet(classes=10)
    >>> net(mx.sym.var('data')).infer_shape(data=(1, 3, 224, 224))[1]
    [(1, 10)]
    """
    net = AlexNet(**kwargs)
    return load_pretrained(net, "alexnet", root, ctx) if pretrained else net
