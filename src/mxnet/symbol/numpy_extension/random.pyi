# Made by scripts/make_stubs.py; do not edit.
# mypy: disable-error-code="override, misc"
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal, TypeAlias, TypedDict, overload
import numpy as _numpy

from ...context import Context as Context
from ..numpy.symbol import _Symbol as _Symbol

_DType: TypeAlias = str | type | _numpy.dtype[Any]
_Sizes: TypeAlias = int | _numpy.integer[Any] | _numpy.ndarray | Sequence[int | None] | Sequence[int | _numpy.integer[Any]]
_Context: TypeAlias = Context | str

def bernoulli(prob: Any = ..., logit: Any = ..., size: _Sizes | None = ..., dtype: _DType | None = ..., ctx: _Context | None = ..., out: _Symbol | None = ...) -> _Symbol: ...
def normal_n(loc: Any = ..., scale: Any = ..., batch_shape: Any = ..., dtype: _DType | None = ..., ctx: _Context | None = ...) -> _Symbol: ...
def uniform_n(low: Any = ..., high: Any = ..., batch_shape: Any = ..., dtype: _DType | None = ..., ctx: _Context | None = ...) -> _Symbol: ...
