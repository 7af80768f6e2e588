"""Deferred errors: for faults that MXNet detects only during computation, the error is raised when a program waits for the values.

The call that fails returns arrays of the right shape that hold the error, and so do all later ones that read these. `wait_to_read`, `asnumpy` and
all other readers of the values raise it, and so does `waitall`. As in MXNet an error is raised once; afterwards the arrays' values are undefined.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import torch

from ..base import DelayedError, MXNetError
from . import dispatch
from .ndarray import NDArray

if TYPE_CHECKING:
    from ..context import Context
    from ..ops.registry import Operator

_waiting: list[Failure] = []


class Failure:
    """An error that has not been raised yet; None afterwards. All that draw random numbers share one, since each waits for the one before."""

    __slots__ = ("error", "stochastic")

    def __init__(self, error: MXNetError, stochastic: bool) -> None:
        self.error: MXNetError | None = error
        self.stochastic = stochastic

    def throw(self) -> None:
        error, self.error = self.error, None
        if error is not None:
            raise error


class Failed(NDArray):
    """An array that holds an error instead of values.

    Its tensor is a placeholder of the right shape and type, the input of later operators. `_is_sparse` is True so that dispatch sends these here.
    """

    __slots__ = ("_placeholder", "_failure")
    _is_sparse = True
    _placeholder: torch.Tensor
    _failure: Failure

    @classmethod
    def _of(cls, array: Any, failure: Failure) -> Failed:
        self = cls.__new__(cls)
        self._placeholder, self._ctx, self._failure = array._data, array._ctx, failure
        dispatch.share_history(self, array._autograd)
        return self

    def _end_history(self) -> None:
        self._placeholder, self._autograd = self._placeholder.detach(), None

    def _plain(self) -> NDArray:
        array = NDArray._new(self._placeholder, self._ctx)
        dispatch.share_history(array, self._autograd)
        return array

    @property
    def _data(self) -> torch.Tensor:  # type: ignore[override]  # a slot there
        self._failure.throw()
        return self._placeholder

    @_data.setter
    def _data(self, tensor: torch.Tensor) -> None:
        self._placeholder = tensor

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self._placeholder.shape)

    @property
    def size(self) -> int:
        return self._placeholder.numel()

    @property
    def ndim(self) -> int:
        return self._placeholder.dim()

    @property
    def dtype(self) -> Any:
        return self._plain().dtype

    def __getitem__(self, key: Any) -> NDArray:
        return self._of(self._plain()[key], self._failure)

    def _recorded_call(self, fn: Callable, name: str, ctx: Context, keys: Sequence[Any] = ()) -> NDArray:
        return self._of(self._plain()._recorded_call(fn, name, ctx, keys), self._failure)

    def __repr__(self) -> str:
        return repr(self.asnumpy()) if self._failure.error is not None else repr(self._plain())


def begin(op: Operator, error: DelayedError, arrays: Sequence[Any], attrs: dict[str, Any], out: Any, cls: type[Any]) -> Any:
    """Return the failed arrays for a call that detected `error`. With `out`, or on ``mx.np`` arrays, raise the error now."""
    if out is not None or cls is not NDArray:
        raise MXNetError(str(error)) from error
    return _references(dispatch.invoke(op, arrays, {**attrs, **error.instead}, None, cls), _noted(error, bool(op.stochastic)))


def results(arrays: list[Any], error: DelayedError) -> list[Any]:
    """Arrays that hold the error of a graph, of the shapes and types of `arrays`."""
    return _references(arrays, _noted(error, False))


def is_failed(array: Any) -> bool:
    """Return True if an array holds an error instead of values."""
    return isinstance(array, Failed)


def _noted(error: DelayedError, stochastic: bool) -> Failure:
    _waiting[:] = [f for f in _waiting if f.error is not None]
    failure = next((f for f in _waiting if f.stochastic), None) if stochastic else None
    if failure is None:
        failure = Failure(MXNetError(str(error)), stochastic)
        _waiting.append(failure)
    return failure


def go_on(op: Operator, arrays: Sequence[Any], attrs: dict[str, Any], out: Any, cls: type[Any]) -> Any:
    """Call an operator on arrays some of which have failed."""
    failure = next(a._failure for a in arrays if isinstance(a, Failed))
    plain = [a._plain() if isinstance(a, Failed) else a for a in arrays]
    if out is None:
        return _references(dispatch.invoke(op, plain, attrs, None, NDArray if cls is Failed else cls), failure)
    if not isinstance(out, Failed):
        failure.throw()
        return dispatch.invoke(op, plain, attrs, out, cls)
    out._placeholder, out._failure = dispatch.invoke(op, plain, attrs, None, NDArray)._data, failure
    return out


def _references(result: Any, failure: Failure) -> Any:
    return [Failed._of(r, failure) for r in result] if isinstance(result, list) else Failed._of(result, failure)


def throw_all() -> None:
    """Raise the first deferred error and discard the others, as in MXNet."""
    errors = [f.error for f in _waiting if f.error is not None]
    for failure in _waiting:
        failure.error = None
    _waiting.clear()
    if errors:
        raise errors[0]


dispatch.failed = Failed, begin, go_on
