"""``mx.image``: reading, changing and iterating over images.

``image``
    Functions on single images.
``augment``
    Augmenters, for classification.
``image_iter``
    The iterator that applies them.
``detection``
    The same for object detection, where boxes change with their images.
"""
from . import detection, image
from .augment import *  # noqa: F403
from .detection import *  # noqa: F403
from .image import *  # noqa: F403
from .image_iter import ImageIter

det = detection
