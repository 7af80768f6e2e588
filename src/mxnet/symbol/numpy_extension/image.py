"""``mx.sym.npx.image``: operators on images."""
from ...ops.registry import OPERATORS
from ..numpy.frontend import npx_function

__all__ = sorted(name.removeprefix("_npx__image_") for name in OPERATORS if name.startswith("_npx__image_"))

globals().update({name: npx_function(f"_npx__image_{name}") for name in __all__})
