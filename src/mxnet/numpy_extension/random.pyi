# Made by scripts/make_stubs.py; do not edit.
# mypy: disable-error-code="override, misc"
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal, TypeAlias, TypedDict, overload

from ..context import Context as Context
from ..numpy.argument_types import ContextLike as ContextLike
from ..numpy.argument_types import DTypeLike as DTypeLike
from ..numpy.argument_types import Sizes as Sizes
from ..numpy.multiarray import ndarray as ndarray
from collections.abc import Sequence as Sequence
from typing import Any as Any


TYPE_CHECKING: bool
def categorical(data: Any, shape: int | Sequence[int] = ..., get_prob: bool = ..., dtype: str = ...) -> Any: ...
def multinomial(n: Any, p: Any, shape: int | Sequence[int] = ..., dtype: Any = ...) -> Any: ...
def seed(*args: Any, **kwargs: Any) -> Any: ...
def bernoulli(prob: Any = ..., logit: Any = ..., size: Sizes | None = ..., dtype: DTypeLike | None = ..., ctx: ContextLike | None = ..., out: ndarray | None = ...) -> ndarray: ...
def normal_n(loc: Any = ..., scale: Any = ..., batch_shape: Any = ..., dtype: DTypeLike | None = ..., ctx: ContextLike | None = ...) -> ndarray: ...
def uniform_n(low: Any = ..., high: Any = ..., batch_shape: Any = ..., dtype: DTypeLike | None = ..., ctx: ContextLike | None = ...) -> ndarray: ...
