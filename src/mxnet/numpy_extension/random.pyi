# Made by scripts/make_stubs.py; do not edit.
# mypy: disable-error-code="override, misc"
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal, TypeAlias, TypedDict, overload
import numpy as _numpy

from ..context import Context as Context
from ..numpy.multiarray import ndarray as ndarray

_DType: TypeAlias = str | type | _numpy.dtype[Any]
_Sizes: TypeAlias = int | _numpy.integer[Any] | _numpy.ndarray | Sequence[int | None] | Sequence[int | _numpy.integer[Any]]
_Context: TypeAlias = Context | str

def categorical(data: Any, shape: Any = ..., get_prob: bool = ..., dtype: Any = ...) -> Any: ...
def seed(*args: Any, **kwargs: Any) -> Any: ...
def bernoulli(prob: Any = ..., logit: Any = ..., size: _Sizes | None = ..., dtype: _DType | None = ..., ctx: _Context | None = ..., out: ndarray | None = ...) -> ndarray: ...
def normal_n(loc: Any = ..., scale: Any = ..., batch_shape: Any = ..., dtype: _DType | None = ..., ctx: _Context | None = ...) -> ndarray: ...
def uniform_n(low: Any = ..., high: Any = ..., batch_shape: Any = ..., dtype: _DType | None = ..., ctx: _Context | None = ...) -> ndarray: ...
