"""Image classifiers.

With ``pretrained=True`` they come with parameters trained on ImageNet. These expect RGB images of at least 224 by 224 (Inception: 299),
(N, 3, H, W), with values from 0 to 1 from which ``[0.485, 0.456, 0.406]`` was subtracted and that were divided by
``[0.229, 0.224, 0.225]``.

Example
-------
>>> from mxnet.gluon.model_zoo import vision
>>> net = vision.get_model('resnet18_v1', classes=10)
>>> net.output
Dense(512 -> 10, linear)
"""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ....suggestions import did_you_mean
from . import alexnet as _alexnet
from . import densenet, inception, mobilenet, resnet, squeezenet, vgg
from .alexnet import *  # noqa: F403
from .densenet import *  # noqa: F403
from .inception import *  # noqa: F403
from .mobilenet import *  # noqa: F403
from .resnet import *  # noqa: F403
from .squeezenet import *  # noqa: F403
from .vgg import *  # noqa: F403

if TYPE_CHECKING:
    from ....gluon import HybridBlock

_FAMILIES = (_alexnet, densenet, inception, mobilenet, resnet, squeezenet, vgg)


def _published_name(constructor):
    """Return the name of a constructor for `get_model`: mobilenet0_75 is mobilenet0.75."""
    name = constructor.replace("_v2_", "v2_").replace("inception_v3", "inceptionv3")
    head, _, tail = name.rpartition("_")
    return f"{head}.{tail}" if name.startswith(("mobilenet", "squeezenet")) else name


_models = {_published_name(name): getattr(family, name)
           for family in _FAMILIES for name in family.__all__ if name.islower() and not name.startswith("get_")}


def get_model(name: str, **kwargs: Any) -> HybridBlock:
    """Return a network by its name.

    Parameters
    ----------
    name : str
        Such as ``'resnet50_v1'``, ``'vgg16_bn'``, ``'mobilenetv2_0.5'``; any case.
    **kwargs
        ``pretrained``, ``classes``, ``ctx``, ``root`` and others that the network takes.

    Raises
    ------
    ValueError
        If there is no such network; the text lists those there are.

    Example
    -------
    >>> net = mx.gluon.model_zoo.vision.get_model('resnet18_v1', classes=10)
    >>> net.output
    Dense(512 -> 10, linear)
    """
    if name.lower() not in _models:
        options = "\n\t".join(sorted(_models))
        hint = did_you_mean(name, _models)
        raise ValueError(f"There is no model {name.lower()!r}{f'{hint} The' if hint else '; the'} names are\n\t{options}")
    return _models[name.lower()](**kwargs)
