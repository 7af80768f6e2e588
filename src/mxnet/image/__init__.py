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
from numbers import Number  # noqa: F401

from ..base import numeric_types  # noqa: F401
from ..util import is_np_array  # noqa: F401
from . import detection, image  # noqa: F401
from .augment import *  # noqa: F403
from .detection import *  # noqa: F403
from .image import *  # noqa: F403
from .image_iter import ImageIter  # noqa: F401

det = detection
