"""Blocks that may still change."""
from __future__ import annotations

from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

from ...lazy_modules import load_module as _load_module
from ...suggestions import MissingAttributeError as _MissingAttributeError

_PARTS = ("cnn", "data", "estimator", "nn", "rnn")

if _TYPE_CHECKING:
    from . import cnn as cnn
    from . import data as data
    from . import estimator as estimator
    from . import nn as nn
    from . import rnn as rnn
else:
    def __getattr__(name: str) -> _Any:
        if name in _PARTS:
            return _load_module(f"{__name__}.{name}")
        raise _MissingAttributeError(__name__, name)
