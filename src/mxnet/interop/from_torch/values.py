"""`Value`, a tensor of torch's graph as a Symbol of MXNet's, and `Call`, the node that is being converted."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from ... import symbol as sym
from ...base import MXNetError
from ...ops.dtypes import name_of
from ...symbol import Symbol

NUMBERS = (int, float, bool)


class NoCounterpart(MXNetError):
    """An operator of torch's, or a use of it, that no operators of MXNet's compute; the text says which, and what to do."""

    def __init__(self, problem: str) -> None:
        super().__init__(f"{problem}; write this part of the module with other operators (docs/torch.md), or leave it in torch")


class Value:
    """A tensor of torch's graph.

    Attributes
    ----------
    shape : tuple
        The sizes, each an int, or torch's SymInt where it varies.
    dtype : torch.dtype
        Of the array in MXNet: comparisons give numbers there, not truth values.
    truth : bool
        Whether the elements are truth values in torch.
    constant : torch.Tensor or None
        The values, where they depend on no input. Along axes whose size varies it may be of size 1.
    is_literal : bool
        True for a constant that is none of the module's buffers.
    """

    def __init__(self, shape: Sequence[Any], dtype: torch.dtype, symbol: Symbol | None = None, constant: torch.Tensor | None = None,
                 make: Callable[[], Symbol] | None = None) -> None:
        self.shape, self.dtype, self.constant = tuple(shape), dtype, constant
        self._symbol, self._make = symbol, make
        self.truth = self.is_literal = False

    @property
    def symbol(self) -> Symbol:
        """The Symbol; that of a constant is a variable, made when it is first asked for."""
        if self._symbol is None:
            if self._make is None:
                raise NoCounterpart("from_torch: a value that MXNet does not compute is used")
            self._symbol = self._make()
        return self._symbol

    @property
    def number(self) -> Any:
        """The Python number, if it is a constant of one element and no axis; else None."""
        if self.constant is None or self.constant.numel() != 1 or any(size != 1 for size in self.shape):
            return None
        return self.constant.item()

    def of_type(self, dtype: torch.dtype) -> Value:
        """The value, as one whose type in torch is `dtype`."""
        truth = dtype is torch.bool
        if self.truth is truth:
            return self
        other = Value(self.shape, self.dtype, self._symbol, self.constant, lambda: self.symbol)
        other.truth = truth
        return other


class Call:
    """One node of torch's graph while it is translated.

    Attributes
    ----------
    shape : tuple
        Of the (first) result.
    dtype : torch.dtype
        Of the (first) result in torch.
    training : bool
        The mode in which the module was exported.
    """

    def __init__(self, name: str, target: Any, results: Any, graph: Any) -> None:
        first = next((r for r in results if isinstance(r, torch.Tensor)), None) if isinstance(results, (list, tuple)) else results
        self.name, self.target, self.results, self._graph, self.training = name, target, results, graph, graph.training
        self.shape: tuple[Any, ...] = tuple(first.shape) if first is not None else ()
        self.dtype: torch.dtype = first.dtype if first is not None else torch.float32

    @property
    def stored(self) -> torch.dtype:
        """The type in which MXNet holds the result."""
        return torch.float32 if self.dtype is torch.bool else self.dtype

    def refuse(self, why: str) -> NoCounterpart:
        """The error that this use of the operator has no counterpart."""
        return NoCounterpart(f"from_torch: operator {self.target} (node {self.name}{self._graph.place()}) has no counterpart in MXNet where {why}")

    def value(self, symbol: Symbol, dtype: torch.dtype | None = None, shape: Sequence[Any] | None = None) -> Value:
        """The result that a Symbol computes; by default of the type and shape of the (first) result in torch."""
        return Value(self.shape if shape is None else shape, dtype or self.stored, symbol)

    def cast(self, value: Value, dtype: torch.dtype) -> Symbol:
        """The Symbol of a value, in a type."""
        if value.dtype is dtype:
            return value.symbol
        return sym.Cast(value.symbol, dtype=name_of(dtype))

    def constant(self, tensor: torch.Tensor) -> Value:
        """A value that is built into the network."""
        return self._graph.constant(tensor)

    def counted(self, size: Any, start: float) -> Symbol:
        """Numbers from `start` on, as many as a size that varies says."""
        like, axis = self._graph.array_of_size(size, self)
        return sym.contrib.arange_like(like, start=start, axis=axis)

    def ranked(self, value: Value, dtype: torch.dtype, rank: int) -> Symbol:
        """The Symbol of a value, in a type, with axes of size 1 before its own: MXNet adds none."""
        own = value.shape if value.constant is None else tuple(value.constant.shape)
        missing = rank - max(len(own), 1)
        if value.is_literal and (missing > 0 or value.dtype is not dtype):
            return self.constant(value.constant.to(dtype).reshape((1,) * (rank - len(own)) + own)).symbol  # type: ignore[union-attr]
        symbol = self.cast(value, dtype)
        if missing > 0 and sum(not is_static(size) for size in own) <= 1:
            return sym.reshape(symbol, shape=(*[1] * missing, *_codes(own or (1,))))
        for _ in range(missing):
            symbol = sym.expand_dims(symbol, axis=0)
        return symbol

    def broadcast(self, value: Value, shape: Sequence[Any]) -> Symbol:
        """The Symbol of a value, spread to a shape."""
        symbol, own = value.symbol, list(value.shape)
        if value.constant is not None:
            own = list(value.constant.shape)  # which may be of size 1 where the size varies
        if not own:
            own = [1]  # MXNet has no arrays without axes
        if len(own) < len(shape):
            added = len(shape) - len(own)
            symbol, own = sym.reshape(symbol, shape=(*[1] * added, *_codes(own))), [1] * added + own
        axes, sizes = [], []
        for axis, (have, want) in enumerate(zip(own, shape)):
            if same(have, want):
                continue
            if not is_static(want):
                like, of = self._graph.array_of_size(want, self)
                symbol = sym.broadcast_like(symbol, like, lhs_axes=(axis,), rhs_axes=(of,))
            else:
                axes.append(axis)
                sizes.append(int(want))
        return sym.broadcast_axis(symbol, axis=tuple(axes), size=tuple(sizes)) if axes else symbol

    def reshape(self, value: Value, shape: Sequence[Any]) -> Symbol:
        """The Symbol of a value, in another shape."""
        codes = reshape_codes(value.shape, shape)
        if codes is None:
            raise self.refuse(f"the shape {tuple(value.shape)} becomes {tuple(shape)}: more sizes vary than `reshape` has codes for")
        reverse, target = codes
        return sym.reshape(value.symbol, shape=target, reverse=True) if reverse else sym.reshape(value.symbol, shape=target)

    def sizes(self, shape: Sequence[Any], what: str = "a size varies") -> tuple[int, ...]:
        """The sizes, none of which may vary."""
        if not all(map(is_static, shape)):
            raise self.refuse(what)
        return tuple(map(int, shape))


def is_static(size: Any) -> bool:
    """Return True if a size is a number."""
    return isinstance(size, int) and not isinstance(size, torch.SymInt) or isinstance(size, torch.SymInt) and size.node.maybe_as_int() is not None


def key(size: Any) -> str:
    """Return the text that is the same for two equal sizes."""
    if is_static(size):
        return str(int(size))
    return str(size.node.expr)


def same(first: Any, second: Any) -> bool:
    """Return True if two sizes are equal for all inputs."""
    return key(first) == key(second)


def same_shape(first: Sequence[Any], second: Sequence[Any]) -> bool:
    """Return True if two shapes are equal for all inputs."""
    return len(first) == len(second) and all(map(same, first, second))


def reshape_codes(old: Sequence[Any], new: Sequence[Any]) -> tuple[bool, tuple[int, ...]] | None:
    """The shape that ``reshape`` takes, with 0 for a size that stays and -1 for one that follows, and whether it counts from behind.

    None if more than one size would have to follow.
    """
    for reverse in (False, True):
        before, after = list(old), list(new)
        if reverse:
            before, after = before[::-1], after[::-1]
        codes: list[int] = []
        for axis, size in enumerate(after):
            if is_static(size):
                codes.append(int(size))
            elif axis < len(before) and axis == len(codes) and all(map(same, before[:axis + 1], after[:axis + 1])):
                codes.append(0)
            else:
                codes.append(-1)
        if codes.count(-1) <= 1:
            return reverse, tuple(codes[::-1] if reverse else codes) or (1,)
    return None


def _codes(own: Sequence[Any]) -> list[int]:
    """The sizes as `reshape` takes them where at most one varies."""
    return [int(size) if is_static(size) else -1 for size in own]
