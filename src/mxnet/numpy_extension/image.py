"""``mx.npx.image``: operators on images, and all of ``mx.image``."""
from __future__ import annotations

from typing import Any

from ..image import *  # noqa: F403
from ..ndarray.functions import operator_function as _function
from ..numpy.multiarray import ndarray as _ndarray
from ..ops.registry import OPERATORS as _OPERATORS

for _name in [n[len("_npx__image_"):] for n in _OPERATORS if n.startswith("_npx__image_")]:
    globals()[_name] = _function(f"_npx__image_{_name}", _ndarray)


def __getattr__(name: str) -> Any:
    from .. import image
    return getattr(image, name)
