"""The types of arguments of ``mx.np`` functions, for annotations: nothing imports this module at run time."""
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as onp

from ..context import Context

ContextLike: TypeAlias = Context | str
DTypeLike: TypeAlias = str | type | onp.dtype[Any]
Sizes: TypeAlias = int | onp.integer[Any] | onp.ndarray | Sequence[int | None] | Sequence[int | onp.integer[Any]]
