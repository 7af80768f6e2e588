"""`ForwardTrace`: a recording of one run of a block's `forward`, from which a graph is built."""
from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from types import SimpleNamespace
from typing import Any

from .. import interrupts
from .._deferred_compute import Leaf, Trace, TraceError
from ..ndarray import NDArray, writes
from ..ndarray.dispatch import Recorded, in_graph, is_differentiable, mode, record, share_history, traces, wrap
from ..ops.registry import get
from ..symbol import Symbol
from .parameter import Parameter


class Reads:
    """The properties of one array that Python has read.

    Attributes
    ----------
    shape, dtype
        Those of the array.
    axes : set of int
        The axes whose sizes were read. Reading a shape includes reading the number of axes.
    by_shape, by_type : bool
    """

    __slots__ = ("shape", "dtype", "axes", "by_shape", "by_type")

    def __init__(self, array: NDArray) -> None:
        self.shape, self.dtype = tuple(array._data.shape), array._data.dtype
        self.axes: set[int] = set()
        self.by_shape = self.by_type = False

    def agree(self, shape: Sequence[int], dtype: Any) -> bool:
        """Return True if an array of this shape and type has the same values of the properties that were read."""
        if self.by_type and dtype is not self.dtype:
            return False
        return not self.by_shape or len(shape) == len(self.shape) and all(shape[k] == self.shape[k] for k in self.axes)


class ReadShape(tuple):
    """The shape of a traced array; records which axes are read by index, and all of them after any other use."""

    _axes: set[int]

    def __new__(cls, sizes: tuple[int, ...], axes: set[int]) -> ReadShape:
        self = super().__new__(cls, sizes)
        self._axes = axes
        return self

    def _plain(self) -> tuple[int, ...]:
        self._axes.update(range(tuple.__len__(self)))
        return tuple(tuple.__iter__(self))

    def __getitem__(self, key: Any) -> Any:
        value = tuple.__getitem__(self, key)
        chosen = tuple.__getitem__(tuple(range(tuple.__len__(self))), key)
        self._axes.update(chosen if isinstance(chosen, tuple) else (chosen,))
        return value

    def __reduce__(self) -> Any:
        return tuple, (self._plain(),)


def _as_tuple(name: str) -> Callable[..., Any]:
    def method(self: ReadShape, *args: Any) -> Any:
        return getattr(self._plain(), name)(*args)

    method.__name__ = name
    return method


for _name in ("__iter__", "__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__", "__hash__", "__add__", "__mul__", "__rmul__", "__contains__",
              "__repr__", "__str__", "__format__", "index", "count"):
    setattr(ReadShape, _name, _as_tuple(_name))
ReadShape.__radd__ = lambda self, other: other + self._plain()  # type: ignore[attr-defined]


class ForwardTrace(Trace):
    """Records the operators of a `forward` while it runs: its results, gradients and side effects are those of an eager call.

    Where `forward` does what no graph can represent, the trace fails, and the run continues unrecorded.

    Attributes
    ----------
    failure : str
        The reason why there is no graph; empty if there is one.
    assigned : bool
        It has given an attribute of a block another number or text.
    left : bool
        It has set an attribute of a block of the user's to arrays, or to another container.
    reads : dict
        The properties of arrays that Python has read (`Reads`), keyed by the arrays' marks.
    modes : dict
        The modes of autograd that Python has read, by their names.
    parameters : dict
        The Parameters whose arrays were used, by their names.
    """

    def __init__(self) -> None:
        super().__init__()
        self.failure = ""
        self.assigned = self.left = False
        self.reads: dict[Any, Reads] = {}
        self.modes: dict[str, bool] = {}
        self.parameters: dict[str, Parameter] = {}
        self._leaves: list[Leaf] = []
        self._stand_ins: dict[int, tuple[NDArray, NDArray]] = {}  # by the id of a parameter's array
        self._originals: dict[int, tuple[NDArray, NDArray]] = {}  # by the id of the stand-in
        self._inputs: set[Any] = set()  # marks

    # -- stand-ins for arrays -------------------------------------------------------------------------------------------

    def input(self, array: NDArray, variable: Symbol) -> NDArray:
        """Return the stand-in for an argument."""
        if self.recording and in_graph(array):
            given = array
            if array._autograd in self.variables:  # the same array twice: they may be two another time
                given = wrap(type(array), array._data, array._ctx)
                record(get("_copy"), {}, (array,), (given,))
                self._originals[id(given)] = given, array
        else:
            given = self._stand_in(array)
        self.variables[given._autograd] = variable
        self._inputs.add(given._autograd)
        return given

    def parameter(self, parameter: Any, array: NDArray) -> NDArray:
        """Return the array that stands for a Parameter's."""
        known = self._stand_ins.get(id(array))
        if known is not None:
            return known[1]
        if self.parameters.setdefault(parameter.name, parameter) is not parameter:
            self.fail(f"it uses two Parameters of the name {parameter.name}")
            return array
        given = array if self.recording and in_graph(array) else self._stand_in(array)
        self.variables[given._autograd] = parameter.var()
        self._stand_ins[id(array)] = array, given
        return given

    def _stand_in(self, array: NDArray) -> NDArray:
        given = wrap(type(array), array._data.detach() if array._data.requires_grad else array._data, array._ctx)
        given._autograd = leaf = Leaf(array.grad)
        self._leaves.append(leaf)
        self._originals[id(given)] = given, array
        return given

    def original(self, array: NDArray) -> NDArray:
        """Return the array whose stand-in `array` is, or `array` itself."""
        return self._originals.get(id(array), (None, array))[1]

    # -- callbacks from the run ------------------------------------------------------------------------------------------

    def fail(self, reason: str) -> None:
        """Give up the graph and continue unrecorded; only the first reason is kept."""
        if not self.failure:
            self.failure = reason
        if mode.tracing is self:
            mode.tracing, mode.recording = None, self.recording
            for leaf in self._leaves:
                leaf.grad_req = "null"

    def wrote(self) -> None:
        """Give up the graph, because graphs cannot represent writes to arrays."""
        self.fail("it writes to an array in place; compute a new one (np.where, np.concatenate), or write outside of the block")

    def assigns(self) -> None:
        """Record that `forward` sets an attribute."""
        self.assigned = True

    def leaves_behind(self) -> None:
        """Record that `forward` stores arrays or containers, which may differ between calls, in an attribute."""
        self.left = True

    def marks(self, array: NDArray) -> NDArray | None:
        """Give up the graph, because `attach_grad` is called; return the argument whose stand-in `array` is, or None."""
        self.fail("it calls attach_grad(), for which a graph has no place")
        original = self.original(array)
        return None if original is array else original

    def shape(self, array: NDArray) -> tuple[int, ...]:
        """Return a shape that records which axes are read."""
        reads = self._reads_of(array)
        if reads is None:
            return super().shape(array)
        reads.by_shape = True
        return ReadShape(tuple(array._data.shape), reads.axes)

    def read_type(self, array: NDArray) -> None:
        """Record that the type of an array is read."""
        reads = self._reads_of(array)
        if reads is not None:
            reads.by_type = True

    def _reads_of(self, array: NDArray) -> Reads | None:
        mark = array._autograd
        if mark is None or mark.node is None and mark not in self._inputs:
            return None  # a constant or a parameter, which has the shape that it has
        return self.reads.setdefault(mark, Reads(array))

    def read_mode(self, name: str) -> bool:
        """Record that a mode of autograd is read; return its value."""
        return self.modes.setdefault(name, getattr(self, name))

    def scope(self, recording: bool | None, training: bool | None) -> Any:
        """Return a scope for an autograd mode; the trace fails if the scope changes the mode."""
        for name, wanted in (("recording", recording), ("training", training)):
            if wanted is not None and bool(wanted) is not self.read_mode(name):
                self.fail(f"it changes autograd's mode by a scope ({name}={wanted}), for which a graph has no place")
                return mode
        return self

    def index(self, array: NDArray, key: Any) -> NDArray:
        """Return ``array[key]``, recorded as operators; it shares memory where an eager call does."""
        mode.tracing, mode.recording = None, self.recording
        try:
            result = (array if self.recording else wrap(type(array), array._data, array._ctx))[key]
        finally:
            mode.tracing, mode.recording = self, True
        try:
            share_history(result, super().index(array, key)._autograd)
        except TraceError as error:
            self.fail(str(error))
        return result

    # -- the run and its end ---------------------------------------------------------------------------------------------

    def noting(self) -> Any:
        """Return the context manager for the run."""
        return _noting(self)

    def group(self, marks: Sequence[Any]) -> list[Symbol]:
        """Return the Symbols of marks."""
        return self.get_symbol([SimpleNamespace(_autograd=mark) for mark in marks])  # type: ignore[misc]  # no other attribute is used

    def adopt(self, parameters: Iterable[Parameter]) -> None:
        """Add those arrays of a block's Parameters to the variables that were used without a call of the Parameters' methods."""
        for parameter in parameters:
            for array in parameter._data or ():
                if array._autograd is not None and array._autograd not in self.variables:
                    self.variables[array._autograd] = parameter.var()
                    self.parameters.setdefault(parameter.name, parameter)

    def end(self) -> None:
        """Remove the trace's marks, except from arrays that autograd records outside of it."""
        for leaf in self._leaves:
            leaf.grad_req = "null"
        if not self.recording:
            for mark, array in self.leaves.items():
                if array._autograd is mark:
                    array._autograd = None

    def release(self, array: NDArray) -> NDArray:
        """Return a result in the form an eager call gives it, once the trace has ended."""
        array = self.original(array)
        if isinstance(array._autograd, Recorded) and not is_differentiable(array):
            array._autograd = None
        if not self.recording and not self.failure and isinstance(array._autograd, Recorded):
            array = wrap(type(array), array._data.detach(), array._ctx)
        return array


@interrupts.scope
def _noting(trace: ForwardTrace) -> Iterator[ForwardTrace]:
    outer = mode.tracing, mode.recording, mode.training
    # Writers check `writes.watched` first, so that writing costs nothing where there are no watchers.
    try:
        writes.watched[_NOWHERE] = [weakref.ref(trace)]
        traces.append(trace)
        mode.tracing, mode.recording = trace, True
        yield trace
    finally:
        mode.tracing, mode.recording, mode.training = outer
        writes.watched.pop(_NOWHERE, None)
        traces.clear()


_NOWHERE = -1  # no storage has this address
