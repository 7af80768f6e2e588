# Made by scripts/make_stubs.py; do not edit.
# mypy: disable-error-code="override, misc"
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal, TypeAlias, TypedDict, overload

from ...context import Context as Context
from ...numpy.argument_types import ContextLike as ContextLike
from ...numpy.argument_types import DTypeLike as DTypeLike
from ...numpy.argument_types import Sizes as Sizes
from ..numpy.symbol import _Symbol as _Symbol


def bernoulli(prob: Any = ..., logit: Any = ..., size: Sizes | None = ..., dtype: DTypeLike | None = ..., ctx: ContextLike | None = ..., out: _Symbol | None = ...) -> _Symbol: ...
def normal_n(loc: Any = ..., scale: Any = ..., batch_shape: Any = ..., dtype: DTypeLike | None = ..., ctx: ContextLike | None = ...) -> _Symbol: ...
def uniform_n(low: Any = ..., high: Any = ..., batch_shape: Any = ..., dtype: DTypeLike | None = ..., ctx: ContextLike | None = ...) -> _Symbol: ...
