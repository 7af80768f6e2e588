"""``mx.npx.image``: operators on images, and all of ``mx.image``."""
from numbers import Number  # noqa: F401

from ..base import numeric_types  # noqa: F401
from ..image import *  # noqa: F401,F403
from ..ndarray.functions import operator_function as _function
from ..numpy.multiarray import ndarray as _ndarray
from ..ops.registry import OPERATORS as _OPERATORS
from ..util import is_np_array  # noqa: F401

for _name in [n[len("_npx__image_"):] for n in _OPERATORS if n.startswith("_npx__image_")]:
    globals()[_name] = _function(f"_npx__image_{_name}", _ndarray)


def __getattr__(name):
    from .. import image
    return getattr(image, name)
