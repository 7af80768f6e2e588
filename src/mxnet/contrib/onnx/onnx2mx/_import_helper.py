"""The table of operators that can be imported, under MXNet's name for it."""
from .registry import TRANSLATIONS

_convert_map = TRANSLATIONS
