"""Deferred compute: traces the operators that a function calls on arrays, and makes a Symbol of them.

Inside of `context` operators run on arrays as usual, and every call is recorded on autograd's tape. `get_symbol` converts the recorded calls to a
Symbol. Gluon uses it to trace blocks of MXNet 2's style, which define ``forward`` in terms of ``mx.np``.

Python branches on values of arrays can't be part of a Symbol: reading values that depend on the variables raises `TraceError`. Branches on shapes
are traced as they were taken.
"""
from __future__ import annotations

import functools
import itertools
from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch

from . import interrupts, symbol
from .base import MXNetError, integer_types
from .ndarray import NDArray, indexing
from .ndarray.dispatch import Unrecorded, in_graph, invoke, mode
from .ops import host_arrays
from .ops.registry import get

__all__ = ["Trace", "TraceError", "context", "current", "get_symbol", "is_deferred_compute", "set_variable"]


class TraceError(MXNetError):
    """A computation can't be traced, because it depends on values that are known only when it runs."""


class Leaf:
    """The mark of an array that stands for a variable, until `grad_req` is set to ``'null'``; ``array.grad`` returns `grad`."""

    __slots__ = ("grad", "grad_req")
    fresh = False
    node = None
    index = 0

    def __init__(self, grad: Any = None) -> None:
        self.grad, self.grad_req = grad, "write"


class Trace:
    """The record of one `context`.

    Attributes
    ----------
    variables : dict
        From the marks of arrays to the Symbols that stand for them.
    constants : dict
        The arrays that the computation used and that are no variables, by the names of their Symbols; filled by `get_symbol`.
    leaves : dict
        From marks to arrays that the computation has used and not computed.
    recording, training : bool
        Autograd's modes: initially those outside of the context, then those set by ``autograd.record()`` and the like. They only affect
        queries of the modes.
    """

    def __init__(self) -> None:
        self.variables: dict[Any, symbol.Symbol] = {}
        self.constants: dict[str, NDArray] = {}
        self.leaves: dict[Any, NDArray] = {}
        self.recording, self.training = mode.recording, mode.training
        self._marked: list[tuple[NDArray, str, Any]] = []
        self.forget = functools.partial(deque, itertools.starmap(setattr, self._marked), 0)  # restores the marks, once, in C alone

    def set_variable(self, array: NDArray, variable: symbol.Symbol) -> None:
        """Represent `array` by `variable` until the trace ends."""
        if not in_graph(array):
            self._marked.append((array, "_autograd", array._autograd))
            array._autograd = Leaf()
        self.variables[array._autograd] = variable

    # -- hooks; `gluon.forward_trace` overrides them ------------------------------------------------------------------

    def fail(self, reason: str) -> None:
        """Raise `TraceError` with the reason why the computation can't be traced."""
        raise TraceError(reason)

    def refuse_values(self) -> None:
        """Raise `TraceError`, since values can't be read during a trace."""
        self.fail("values of arrays were read while a block is traced; what depends on values (asnumpy(), item(), if, while, masks) can't be "
                  "part of a graph: compute it with operators (np.where, npx.foreach), or outside of the block")

    def wrote(self) -> None:
        """Handle a write to an array in place."""

    def assigns(self) -> None:
        """Handle the assignment of an attribute of a block."""

    def marks(self, array: NDArray) -> NDArray | None:
        """Handle a request for the gradient of `array`; return the array that it stands for if that is another one, else None."""

    def shape(self, array: NDArray) -> tuple[int, ...]:
        """Return the shape of `array`."""
        return tuple(array._data.shape)

    def read_type(self, array: NDArray) -> None:
        """Handle a read of the type of `array` by Python code."""

    def read_mode(self, name: str) -> bool:
        """Return autograd's mode outside of the trace: `name` is ``'recording'`` or ``'training'``."""
        return getattr(self, name)

    def scope(self, recording: bool | None, training: bool | None) -> Any:
        """Return the object whose mode attributes are set by an autograd scope with these modes."""
        return self

    def parameter(self, parameter: Any, array: NDArray) -> NDArray:
        """Return the array that a gluon Parameter returns in place of its own."""
        return array

    # -- results ------------------------------------------------------------------------------------------------------

    def get_symbol(self, outputs: Sequence[NDArray], constant: str = "constant") -> list[symbol.Symbol]:
        """Return the Symbols of arrays; constants are named with the prefix `constant`."""
        done: dict[Any, symbol.Symbol] = {}

        def build(info: Any) -> symbol.Symbol:
            node = info.node
            if node is None or info in self.variables:
                if info not in self.variables:
                    array = self.leaves.get(info)
                    if array is None and isinstance(info, Unrecorded):
                        array = info.array()
                    if array is None:
                        raise TraceError("an array was recorded before tracing began; detach it, or pass it as an argument")
                    name = f"{constant}{len(self.constants)}"
                    self.constants[name], self.variables[info] = array, symbol.var(name)
                return self.variables[info]
            if node not in done:
                # Topological order without recursion, since unrolled networks are deep.
                waiting = [node]
                while waiting:
                    last = waiting[-1]
                    missing = [i.node for i in last.inputs if i.node is not None and i not in self.variables and i.node not in done]
                    if missing:
                        waiting += missing
                    else:
                        waiting.pop()
                        if last not in done:
                            done[last] = _symbol_of(last, [build(i) for i in last.inputs])
            entry = done[node]
            return entry[info.index] if len(entry.list_outputs()) > 1 else entry

        entry = []
        for out in outputs:
            mark = out._autograd
            if mark is None:  # it depends on no traced call
                mark = Leaf()
                self.leaves[mark] = out
            entry.append(build(mark))
        return entry

    def index(self, array: NDArray, key: Any) -> NDArray:
        """Return ``array[key]``, computed by operators that can be part of a Symbol.

        Raises
        ------
        TraceError
            If the size of the result depends on values, or arrays of indices are not adjacent.
        """
        keys = key if isinstance(key, tuple) else (key,)
        arrays = [isinstance(k, (NDArray, list, range, np.ndarray)) for k in keys]
        if any(_is_mask(k) for k in keys):
            raise TraceError("a traced block can't select by a mask, since the size of the result depends on values; use np.where")
        keys = tuple(_indices(k, array) if is_array else k for k, is_array in zip(keys, arrays))
        keys = indexing.expand(keys, array.ndim)
        places = [i for i, k in enumerate(keys) if isinstance(k, NDArray)]
        array = _basic(array, tuple(slice(None) if isinstance(k, NDArray) else k for k in keys))
        if not places:
            return array
        if any(not isinstance(k, (slice, NDArray)) for k in keys):
            raise TraceError("a traced block can't mix arrays with integers or None between brackets; index twice")
        if len(places) == 1:
            array = _call("take", array, keys[places[0]], axis=places[0], mode="wrap")
        elif places == list(range(len(places))):
            sizes = array.shape
            wrapped = [_call("_npi_mod_scalar", keys[i], scalar=float(sizes[i])) for i in places]
            shape = np.broadcast_shapes(*[w.shape for w in wrapped])
            indices = _call("_npi_stack", *[w if w.shape == shape else _call("_npi_broadcast_to", w, shape=shape) for w in wrapped], axis=0)
            array = _call("gather_nd", array, indices)
        else:
            raise TraceError("a traced block can index with arrays on one axis, or on the first ones; transpose before")
        return array


def _symbol_of(node: Any, inputs: list[symbol.Symbol]) -> symbol.Symbol:
    if hasattr(node.op, "as_symbol"):  # a hybridized block: its graph
        return node.op.as_symbol(inputs)
    if not hasattr(node.op, "fn"):
        raise TraceError(f"{node.op.name} has no counterpart in a Symbol")
    return symbol.create(node.op, inputs, node.attrs)


def _call(name: str, *inputs: NDArray, **attrs: Any) -> Any:
    return invoke(get(name), inputs, attrs, cls=type(inputs[0]))


def _is_mask(k: Any) -> bool:
    return isinstance(k, (bool, np.bool_)) or isinstance(k, (NDArray, np.ndarray)) and k.dtype == np.bool_ or \
        isinstance(k, list) and np.asarray(k).dtype == np.bool_


def _indices(k: Any, array: NDArray) -> NDArray:
    if isinstance(k, NDArray):
        return k
    return type(array)._new(host_arrays.as_tensor(k, torch.int64, copy=True).to(array._data.device), array._ctx)


def _basic(array: NDArray, keys: tuple) -> NDArray:
    """Return the array indexed by integers, slices and None, one for each axis."""
    begin: list[Any] = []
    end: list[Any] = []
    step: list[Any] = []
    codes: list[int] = []  # of npx.reshape: -2 keeps an axis, -3 drops one of size 1, -4 keeps the rest
    new: list[int] = []
    for k in keys:
        if k is None:
            new.append(codes.count(-2) + len(new))
            continue
        if isinstance(k, slice):
            begin.append(k.start)
            end.append(k.stop)
            step.append(k.step)
            codes.append(-2)
        elif isinstance(k, integer_types):
            k = int(k)
            size = array._data.shape[len(begin)]
            if not -size <= k < size:
                raise IndexError(f"axis {len(begin)} has {size} entries, received index {k}")
            begin.append(k)
            end.append(k + 1 if k != -1 else None)
            step.append(None)
            codes.append(-3)
        else:
            raise IndexError(f"arrays cannot be indexed with {k!r} of type {type(k)}; use integers, slices, None, ... or arrays of integers")
    if any(part is not None for parts in (begin, end, step) for part in parts):
        array = _call("_npi_slice", array, begin=tuple(begin), end=tuple(end), step=tuple(step))
    if -3 in codes:
        array = _call("_npx_reshape", array, newshape=(*codes, -4))
    for axis in new:
        array = _call("expand_dims", array, axis=axis)
    return array


@interrupts.scope
def context(state: bool = True) -> Iterator[Trace | None]:
    """Trace the calls of operators on arrays in a ``with`` block; with ``state=False``, suspend tracing in it.

    Example
    -------
    >>> import mxnet as mx
    >>> from mxnet import _deferred_compute as dc
    >>> x = mx.np.ones((2, 3))
    >>> with dc.context():
    ...     dc.set_variable(x, mx.sym.var('x'))
    ...     symbol = dc.get_symbol((x * 2 + 1).sum(axis=0))
    >>> symbol.list_inputs()
    ['x']
    """
    outer = mode.tracing, mode.recording, mode.training
    trace = Trace() if state else None
    try:
        mode.tracing, mode.recording, mode.training = trace, state, mode.training and not state
        yield trace
    finally:
        mode.tracing, mode.recording, mode.training = outer
        if trace is not None:
            trace.forget()


def is_deferred_compute() -> bool:
    """Return True inside of `context`."""
    return mode.tracing is not None


def current(function: str) -> Trace:
    """Return the `Trace` of the enclosing `context`; `function` is the caller's name for the error.

    Raises
    ------
    MXNetError
        Outside of one.
    """
    if mode.tracing is None:
        raise MXNetError(f"{function}: call it inside of `with _deferred_compute.context():`")
    return mode.tracing


def set_variable(arrays: NDArray | Sequence[NDArray], variables: symbol.Symbol | Sequence[symbol.Symbol]) -> None:
    """Represent arrays by Symbols in the current `context`.

    Raises
    ------
    MXNetError
        Outside of a `context`, or if there are not as many of both.
    """
    trace = current("set_variable")
    given = [arrays] if isinstance(arrays, NDArray) else list(arrays)
    symbols = [variables] if isinstance(variables, symbol.Symbol) else list(variables)
    if len(given) != len(symbols):
        raise MXNetError(f"set_variable: as many Symbols as arrays expected, received {len(given)} arrays and {len(symbols)} Symbols")
    for array, variable in zip(given, symbols):
        trace.set_variable(array, variable)


def get_symbol(output_arrays: NDArray | Sequence[NDArray], sym_cls: type[symbol.Symbol] = symbol.Symbol) -> symbol.Symbol:
    """Return the Symbol that computes arrays of the current `context`. Arrays that are no variables become inputs ``constant0``, ....

    Parameters
    ----------
    output_arrays : NDArray or list of NDArray
    sym_cls : type
        ``mx.sym.Symbol``, or that of ``mx.sym.np``.

    Raises
    ------
    MXNetError
        Outside of a `context`, or if a step has no counterpart in a Symbol.
    """
    trace = current("get_symbol")
    outputs = trace.get_symbol([output_arrays] if isinstance(output_arrays, NDArray) else list(output_arrays))
    if sym_cls is not symbol.Symbol:
        outputs = [f.as_np_ndarray() for f in outputs]
    return outputs[0] if len(outputs) == 1 else symbol.Group(outputs)
