"""The types of errors, and the names under which they are registered."""
from __future__ import annotations

from .base import MXNetError, register_error

__all__ = ["MXNetError", "register"]

register = register_error


@register
class InternalError(MXNetError):
    """A fault of this library rather than of the program that uses it."""

    def __init__(self, msg: str):
        super().__init__(msg if "MXNet hint:" in msg else f"{msg}\nMXNet hint: this is an error in the library itself; please report it.")


for _error in (ValueError, TypeError, AttributeError, IndexError, NotImplementedError):
    register(_error)
