"""`TraceCache`: the traces of a block with a `forward` of its own, each with the calls for which it is valid.

A trace is valid for calls in which Python reads the same shapes and types of arrays, and the same modes of autograd, as during tracing. The
first two calls of a trace run `forward` itself and record it (`ForwardTrace`). If the two graphs differ, another input changes the result of
`forward`, and the block runs step by step from then on. Differences set up by the very first run (``if self.state is None``) are allowed.
"""
from __future__ import annotations

import contextlib
import random
import threading
import warnings
from collections.abc import Iterator, Mapping, Sequence, Set
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from .. import symbol
from .._deferred_compute import TraceError
from ..base import MXNetError
from ..context import current_context
from ..ndarray import NDArray
from ..ndarray.dispatch import mode
from ..symbol import inference
from ..symbol.node import topological
from ..util import ByArgument, is_np_shape
from .fast_path import FastPath, Gathered
from .forward_trace import ForwardTrace, Reads, ReadShape
from .nested import flatten
from .parameter import Parameter
from .python_state import PythonState

if TYPE_CHECKING:
    from ..symbol import Symbol

# Tracing is rare and changes the block; calling a traced block is neither.
tracing_lock = threading.RLock()
_MOST_TRACES = 16  # of one block
_MOST_DOUBTS = 16  # how often in a row Python values may change before the block runs step by step
_MOST_LEVELS = 3  # of containers in attributes that `forward` sets
_MOST_CALLS = 4096  # kinds of calls whose traces are remembered
_CHANGES = "what it computes changes from call to call: {}. Pass such values as arguments, or draw random numbers by mx.np.random"
_EFFECTS = "it changes Python values (attributes, lists, globals) or leaves arrays there, which a graph would do only once. Return such values"
# Attributes that the library's own blocks set when they are called; they have no influence on a graph, or the graph shows it.
VOLATILE = {"_version", "_versions", "_counter", "_init_counter", "_modified", "_collected", "_losses", "_losscache"}


class Version:
    """A counter of assignments to the attributes of a tree of blocks, all of which share the root's."""

    def __init__(self) -> None:
        self.number = 0


# -- arguments and results -------------------------------------------------------------------------------------------------

def describe(value: Any, arrays: list[NDArray]) -> Any:
    """Return the structure of arguments or results, which is hashable; their arrays are appended to `arrays`.

    Raises
    ------
    TraceError
        If there is anything else than dense arrays, None, and lists and tuples of them.
    """
    if isinstance(value, NDArray) and not value._is_sparse:
        arrays.append(value)
        return type(value)
    if value is None:
        return None
    if isinstance(value, (list, tuple)) and (type(value) in (list, tuple) or hasattr(value, "_fields")):
        return (type(value), *[describe(item, arrays) for item in value])
    shown = "a sparse array" if isinstance(value, NDArray) else f"{value!r:.80} of type {type(value).__name__}"
    raise TraceError(f"a graph takes and returns dense arrays, None, and (nested) lists and tuples of them, received {shown}")


def rebuild(structure: Any, arrays: Iterator[Any]) -> Any:
    """Rebuild arguments or results from the structure that `describe` returned."""
    if structure is None:
        return None
    if not isinstance(structure, tuple):
        return next(arrays)
    kind, *items = structure
    values = [rebuild(item, arrays) for item in items]
    return kind(*values) if hasattr(kind, "_fields") else values if kind is list else kind(values)


def _released(value: Any, trace: ForwardTrace, level: int = 0) -> Any:
    """Replace stand-ins by arrays in a result of `forward`, or an attribute that it set, once the trace has ended."""
    if isinstance(value, NDArray):
        return trace.release(value)
    if isinstance(value, ReadShape):
        return tuple(value)
    if type(value) not in (dict, list, tuple) and not (isinstance(value, tuple) and hasattr(value, "_fields")) or level > _MOST_LEVELS:
        return value
    if isinstance(value, tuple):
        items = [_released(item, trace, level + 1) for item in value]
        if all(a is b for a, b in zip(items, value)):
            return value
        return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
    for key, item in list(value.items() if isinstance(value, dict) else enumerate(value)):
        if (released := _released(item, trace, level + 1)) is not item:
            value[key] = released
    return value


def _arrays_in(blocks: Sequence[Any], ignored: Set[str]) -> dict[int, NDArray]:
    """Return the arrays in attributes of blocks, by their ids."""
    arrays: dict[int, NDArray] = {}
    waiting = [(value, 0) for block in blocks for name, value in vars(block).items() if name not in ignored]
    while waiting:
        value, level = waiting.pop()
        if isinstance(value, NDArray):
            arrays[id(value)] = value
        elif isinstance(value, (dict, list, tuple)) and level < _MOST_LEVELS:
            waiting += [(item, level + 1) for item in (value.values() if isinstance(value, dict) else value)]
    return arrays


def _tree(block: Any) -> list[Any]:
    """Return a block and its descendants."""
    blocks, waiting = [], [block]
    while waiting:
        blocks.append(waiting.pop())
        waiting += blocks[-1]._children.values()
    return blocks


def require_np(outputs: Any) -> None:
    """Raise a TypeError unless all outputs are ``mx.np`` arrays or Symbols of ``mx.sym.np``.

    All may be classic where only an argument is an ``mx.np`` array: MXNet 1.9 has no such rule there.
    """
    classic = [out for out in outputs if type(out) in (NDArray, symbol.Symbol)]
    if classic and not (ByArgument.in_force() and len(classic) == sum(out is not None for out in outputs)):
        raise TypeError("With NumPy semantics a block returns arrays of mx.np or Symbols of mx.sym.np, "
                        f"received {type(classic[0])}: call as_np_ndarray() on it")


# -- traces ------------------------------------------------------------------------------------------------------------------

class CachedTrace:
    """A graph, its executor, and the calls for which it is valid.

    Attributes
    ----------
    verified : bool
        A second run of `forward` has made the same graph.
    doubted : bool
        An attribute of a block, or another Python value, has changed since the trace was made.
    held : set of str
        The names of those constants that are in attributes of blocks.
    results
        The structure of the result of `forward`.
    handed_on : list of (int, int)
        Results that are arguments: the numbers of both.
    op, inputs, gathered
        The executor of the graph and its inputs; see `HybridBlock`.
    """

    def __init__(self, call: Any, shapes: list[Any], marks: list[Any], variables: list[Any], outputs: list[Any], results: Any,
                 handed_on: list[tuple[int, int]], held: Mapping[int, NDArray], trace: ForwardTrace) -> None:
        self.verified = self.doubted = False
        self.call, self.results, self.variables = call, results, variables
        self.graph = symbol.Group([o.as_np_ndarray() for o in outputs])
        self.constants = dict(trace.constants)
        self.held = {name for name, array in self.constants.items() if id(array) in held}
        self.parameters = trace.parameters
        self.handed_on = handed_on
        self.op: Any = None
        self.inputs: list[tuple[bool, Any]] = []
        self.gathered: Any = None
        self.in_format: Any = None
        self.out_format: Any = None
        self._take_reads(shapes, marks, trace)

    def _take_reads(self, shapes: list[Any], marks: list[Any], trace: ForwardTrace) -> None:
        self._shapes, self._modes = shapes, trace.modes
        self._inputs = [(i, trace.reads[mark]) for i, mark in enumerate(marks) if mark in trace.reads]
        between = {mark: reads for mark, reads in trace.reads.items() if mark not in marks}
        self._between: list[Reads] = list(between.values())
        self._read: Symbol | None = None  # the graph that computes the arrays of `_between`
        if between:
            try:
                self._read = symbol.Group(trace.group(list(between)))
            except TraceError:  # then only calls of the very same shapes and types are sure to agree
                pass
            sized = any(reads.axes for reads in self._between) and self._read is not None and \
                next((node.op.name for node in topological(self._read._outputs) if node.op is not None and node.op.data_dependent_shape), None)
            if sized:
                raise TraceError(f"it reads a shape that depends on values, those of the inputs of {sized}")
        self._known = {name: tuple(array.shape) for name, array in trace.constants.items()}
        self._known.update((name, tuple(p.shape)) for name, p in trace.parameters.items() if p.shape is not None)

    def take_reads(self, other: CachedTrace) -> None:
        """Take over the conditions of validity from a later trace of the same graph."""
        for name in ("_shapes", "_modes", "_inputs", "_between", "_read", "_known"):
            setattr(self, name, getattr(other, name))

    @property
    def by_shape(self) -> bool:
        """True if the graph depends on shapes that were read."""
        return any(reads.by_shape for _, reads in self._inputs) or any(reads.by_shape for reads in self._between)

    def holds(self, call: Any, shapes: list[Any], modes: Mapping[str, bool]) -> bool:
        """Return True if the trace is valid for a call of this kind, with arguments of these shapes and types, in these modes of autograd."""
        if call != self.call or any(modes[name] is not value for name, value in self._modes.items()):
            return False
        if not all(reads.agree(*shapes[i]) for i, reads in self._inputs):
            return False
        return not self._between or shapes == self._shapes or self._between_agree(shapes)

    def _between_agree(self, shapes: list[Any]) -> bool:
        """Return True if intermediate arrays whose shapes or types were read would have the same ones for these arguments."""
        if self._read is None or any(r.by_type for r in self._between) and [t for _, t in shapes] != [t for _, t in self._shapes]:
            return False
        entries = self._read._outputs
        given = {**self._known, **{v.name: tuple(shape) for v, (shape, _) in zip(self.variables, shapes)}}
        try:
            inferred, _ = inference.infer_shapes(entries, given)
        except MXNetError:
            return False
        return all((shape := inferred[id(node), i]) is not None and reads.agree(shape, reads.dtype)
                   for reads, (node, i) in zip(self._between, entries))

    def difference(self, other: CachedTrace) -> str:
        """Return the first difference from the graph of `other`, in words; empty if there is none."""
        if self.results != other.results:
            return "its results have another structure"
        mine, theirs = topological(self.graph._outputs), topological(other.graph._outputs)
        places: dict[int, int] = {}
        for nodes in (mine, theirs):
            places.update((id(node), i) for i, node in enumerate(nodes))
        if len(mine) != len(theirs):
            return f"it has {len(mine)} steps, then {len(theirs)}"

        def entries(pairs: Any) -> list[tuple[int, int]]:
            return [(places[id(node)], i) for node, i in pairs]

        for a, b in zip(mine, theirs):
            if a.op is not b.op or entries(a.inputs) != entries(b.inputs) or a.op is None and a.name != b.name:
                return f"{a.op.name if a.op else a.name} is computed, then {b.op.name if b.op else b.name}"
            if a.attrs != b.attrs and a.op is not None or len(a.subgraphs) != len(b.subgraphs):
                return f"{a.op.name} has the attributes {a.attrs}, then {b.attrs}"
            if a.op is None and a.name in self.constants:
                before, now = self.constants[a.name], other.constants[b.name]
                if before is not now and (a.name in self.held | other.held or not _equal(before, now)):
                    return "an array that it takes from elsewhere is another, or has other values"
        return "" if entries(self.graph._outputs) == entries(other.graph._outputs) else "it returns another step's result"


def _equal(a: NDArray, b: NDArray) -> bool:
    s, t = a._data, b._data
    return s is t or s.shape == t.shape and s.dtype is t.dtype and bool(torch.allclose(s, t, 0, 0, equal_nan=True))


def _random_states() -> tuple[Any, Any]:
    name, keys, *rest = np.random.get_state()
    return random.getstate(), (name, np.asarray(keys).tobytes(), *rest)


# -- the cache ---------------------------------------------------------------------------------------------------------------

class TraceCache:
    """The traces of a block. Called with the block's arguments, it returns the result of `forward`.

    Copying or pickling it with its block yields None.

    Parameters
    ----------
    block : HybridBlock
    """

    def __init__(self, block: Any) -> None:
        self.block = block
        self._traces: list[CachedTrace] = []
        self._by_call: dict[Any, CachedTrace] = {}
        # With the types of nested arguments, the structure of nested results, and `_epoch` when its trace was chosen.
        self._fast: tuple[FastPath, Any, Any, int] | None = None
        self._epoch = 0  # the number of times all traces were doubted
        self._state: PythonState | None = None
        self._version = block.__dict__.setdefault("_version", Version())
        self._seen = self._version.number
        self._current: CachedTrace | None = None
        self._doubts, self._full = 0, False
        self._settled = False  # the one allowed difference of its first run has occurred

    def __reduce__(self) -> Any:
        return type(None), ()

    @property
    def begun(self) -> bool:
        """True if there is a trace already."""
        return bool(self._traces)

    def __call__(self, args: tuple) -> Any:
        fast = self._fast
        if fast is not None and self._version.number == self._seen and self.block._callback is None and fast[3] == self._epoch:
            shortcut, kinds, results, _ = fast
            if (kinds is None or kinds == tuple(map(type, args))) and is_np_shape() and (self._state is None or not self._state.changed()):
                out = shortcut(args)
                if out is not None:
                    return out if results is None else rebuild(results, iter(out))
        return self._call(args)

    def _call(self, args: tuple) -> Any:
        arrays: list[NDArray] = []
        try:
            structure = describe(args, arrays)
        except TraceError as error:
            self._give_up(str(error), 6)
            return self._step_by_step(args)
        ctx = arrays[0]._ctx if arrays else current_context()
        if any(a._ctx is not ctx for a in arrays):
            return self._step_by_step(args)
        if self._version.number != self._seen or self._state is not None and self._state.changed():
            self._doubt()
        epoch = self._epoch
        call = structure, ctx, is_np_shape()
        shapes = [(a._data.shape, a._data.dtype) for a in arrays]
        key = (call, mode.recording, mode.training, *shapes)
        trace = self._by_call.get(key)
        with contextlib.nullcontext() if ctx is current_context() else ctx:
            if trace is None or not trace.verified:
                with tracing_lock:
                    if self.block._traces is not self:  # another thread has given it up
                        return self._step_by_step(args)
                    trace, modes = self._by_call.get(key), {"recording": mode.recording, "training": mode.training}
                    if trace not in self._traces:
                        trace = next((t for t in self._traces if t.holds(call, shapes, modes)), None)
                    if trace is None and len(self._traces) >= _MOST_TRACES:
                        return self._beyond(args)
                    if trace is None or not trace.verified:
                        trace, out = self._run(args, arrays, call, shapes, trace)
                        if trace is not None:
                            self._remember(key, trace)
                        return out
                    self._remember(key, trace)
            return self._replay(trace, args, arrays, epoch)

    def _remember(self, key: Any, trace: CachedTrace) -> None:
        if len(self._by_call) >= _MOST_CALLS:
            self._by_call.clear()
        self._by_call[key] = trace

    def prepare(self, args: tuple) -> None:
        """Trace the block, and prepare for its backend, without a result.

        Raises
        ------
        TraceError
            If it can't be traced.
        """
        arrays: list[NDArray] = []
        structure = describe(args, arrays)
        ctx = arrays[0]._ctx if arrays else current_context()
        with tracing_lock, ctx:
            shapes = [(a._data.shape, a._data.dtype) for a in arrays]
            if self._run(args, arrays, (structure, ctx, is_np_shape()), shapes, None)[0] is None:
                raise TraceError(self.block._untraceable)

    # -- running ---------------------------------------------------------------------------------------------------------

    def _replay(self, trace: CachedTrace, args: tuple, arrays: list[NDArray], epoch: int) -> Any:
        """Run the graph."""
        block, op, gathered = self.block, trace.op, trace.gathered
        if trace is not self._current:
            self._show(trace)
        callback = block._callback
        if callback is not None or op._hook is not None:
            op._register_op_hook(callback, block._monitor_all)
        inputs, replaced = gathered.with_data(arrays)
        out = op(*inputs)
        self._doubts, self._fast = 0, None
        single = type(trace.results) is not tuple
        if callback is None and gathered.plain:
            nested = any(type(a) is list or isinstance(a, tuple) for a in args)
            deep = nested and any(isinstance(b, (list, tuple)) for a in args if isinstance(a, (list, tuple)) for b in a)
            shortcut = None if deep else FastPath.after(op, inputs, gathered.places, trace.in_format, trace.out_format, replaced, out)
            if shortcut is not None:
                self._fast = shortcut, tuple(map(type, args)) if nested else None, None if single else trace.results, epoch
        if single and not trace.handed_on:
            return out
        outs = [out] if isinstance(out, NDArray) else list(out)
        for place, number in trace.handed_on:
            outs[place] = arrays[number]
        return rebuild(trace.results, iter(outs))

    def _step_by_step(self, args: tuple) -> Any:
        """Run `forward` as if the block were not hybridized."""
        block = self.block
        if block._is_plain():
            return block.forward(*args)
        arrays: list[NDArray] = []
        with contextlib.suppress(TraceError):
            describe(args, arrays)
        ctx = arrays[0]._ctx if arrays else current_context()
        with ctx:
            return block._call_eagerly(ctx, *args)

    def _beyond(self, args: tuple) -> Any:
        if not self._full:
            self._full = True
            warnings.warn(f"{type(self.block).__name__} was traced {_MOST_TRACES} times, since the shapes, types or modes that it reads differ from "
                          "call to call; calls that need another trace run step by step", stacklevel=5)
        before = self._version.number
        try:
            return self._step_by_step(args)
        finally:
            if self._seen == before:  # attributes that `forward` itself sets cause no verification
                self._seen = self._version.number

    # -- tracing ---------------------------------------------------------------------------------------------------------

    def _run(self, args: tuple, arrays: list[NDArray], call: Any, shapes: list[Any], known: CachedTrace | None) -> tuple[CachedTrace | None, Any]:
        """Run and record `forward`: for a new trace, or to verify `known`.

        Returns
        -------
        trace : CachedTrace or None
            None if the block can't be traced.
        out
            The result of `forward`.
        """
        block = self.block
        tree = _tree(block)
        random_before, state = (None, None) if known is None else (_random_states(), PythonState(tree, block._ignored_attributes()))
        attribute_arrays = _arrays_in(tree, block._ignored_attributes())
        names = ["data"] if len(arrays) == 1 else [f"data{i}" for i in range(len(arrays))]
        variables = [symbol.var(name).as_np_ndarray() for name in names]
        trace = ForwardTrace()
        given = [trace.input(array, variable) for array, variable in zip(arrays, variables)]
        marks = [array._autograd for array in given]
        new = None
        try:
            with trace.noting():
                out = block._run_plain(rebuild(call[0], iter(given)))
            if not trace.failure:
                try:
                    new = self._graph(trace, call, shapes, marks, variables, out, attribute_arrays)
                except MXNetError as error:  # a step has no counterpart in a Symbol, or one that takes other attributes
                    trace.fail(str(error))
        finally:
            trace.end()
        out = _released(out, trace)
        for values in (b.__dict__ for b in tree):
            for name in values.keys() - block._ignored_attributes():
                values[name] = _released(values[name], trace)
        if new is None:
            self._give_up(trace.failure)
        elif known is None:
            self._add(new, args, out)
        else:
            effects = trace.assigned or trace.left or state is not None and state.changed()
            new = self._verify(known, new, trace, random_before, args, out, effects)
        if new is not None and block._callback is not None and not mode.training:
            self._replay(new, args, arrays, self._epoch)  # for observers of the graph
        return new, out

    def _graph(self, trace: ForwardTrace, call: Any, shapes: list[Any], marks: list[Any], variables: list[Any], out: Any,
               held: Mapping[int, NDArray]) -> CachedTrace:
        results: list[NDArray] = []
        structure = describe(out, results)
        require_np(results)
        if any(type(array) is NDArray for array in results):
            raise TraceError("it returns arrays of mx.nd outside of np_array()")
        if not results:
            raise TraceError("it returns no array, and a graph without results can't be run")
        trace.adopt(self.block.collect_params().values())
        outputs = trace.get_symbol(results, f"{self.block.prefix}constant")
        handed_on = [(i, marks.index(array._autograd)) for i, array in enumerate(results) if array._autograd in marks]
        still = _arrays_in(_tree(self.block), self.block._ignored_attributes())
        if any(id(array) in held and id(array) not in still for array in trace.constants.values()):
            raise TraceError("it replaces an array in an attribute that it reads, so that each call depends on the one before; pass it as an "
                             "argument, and return it")
        return CachedTrace(call, shapes, marks, variables, outputs, structure, handed_on, held, trace)

    def _verify(self, known: CachedTrace, new: CachedTrace, trace: ForwardTrace, random_before: Any, args: tuple, out: Any,
                effects: bool) -> CachedTrace | None:
        """Compare a recorded run of `forward` with the trace `known`; return the trace to use from now on, or None."""
        drawn = _random_states() != random_before
        difference = "it draws numbers from Python's or NumPy's generator" if drawn else known.difference(new)
        if not difference and effects:
            self._give_up(_EFFECTS)
            return None
        if not difference:
            known.take_reads(new)
            known.verified, known.doubted = True, False
            self._by_call.clear()  # it may be valid for other calls now
            self._watch()
            return known
        first_only = not trace.assigned and not drawn and not self._settled  # its first run has set up something
        if known.doubted or first_only:
            self._settled = True
            for old in self._traces:
                old.verified = False
            self._traces.clear()
            self._by_call.clear()
            self._add(new, args, out)
            return new
        self._give_up(_CHANGES.format(difference))
        return None

    def _add(self, trace: CachedTrace, args: tuple, out: Any) -> None:
        """Add a new trace and build its CachedOp."""
        block = self.block
        block._cached_op, block._cached_op_args = None, []
        block._cached_graph = trace.variables, trace.graph
        block._in_format, block._out_format = flatten(args, "input")[1], flatten(out, "output")[1]
        own = block._by_name()
        block._constants = {name: p for name, p in trace.parameters.items() if name not in own}
        for name, array in trace.constants.items():
            # The array itself, so that later writes to it take effect.
            block._constants[name] = Parameter(name, grad_req="null", dtype=array.dtype, shape=array.shape)
            block._constants[name]._init_impl(array, [trace.call[1]], own=True)
        block._build_cache(*args)
        trace.op, trace.inputs, trace.gathered = block._cached_op, block._cached_op_args, Gathered(block._cached_op_args)
        trace.in_format = block._in_format
        trace.out_format = 0 if type(trace.results) is not tuple else [0] * len(trace.graph.list_outputs())
        trace.graph = block._cached_graph[1]  # which a backend may have changed
        self._traces.append(trace)
        self._current = trace
        self._watch()

    def _show(self, trace: CachedTrace) -> None:
        """Make `trace` the one that the block exports, explains and saves."""
        block = self.block
        block._cached_op, block._cached_op_args, block._cached_graph = trace.op, trace.inputs, (trace.variables, trace.graph)
        block._in_format, self._current = trace.in_format, trace

    # -- changes ---------------------------------------------------------------------------------------------------------

    def _watch(self) -> None:
        """Start to watch the Python values that `forward` can read."""
        blocks = _tree(self.block)
        for block in blocks:
            if self._version not in block._versions:
                block.__dict__["_versions"] = (*block._versions, self._version)
        self._state = PythonState(blocks, self.block._ignored_attributes()) or None
        self._fast = None

    def _doubt(self) -> None:
        """Mark all traces for verification, since an attribute or another Python value has changed."""
        with tracing_lock:
            self._seen, self._fast, self._state = self._version.number, None, None
            self._epoch += 1
            self._doubts += 1
            for trace in self._traces:
                trace.verified, trace.doubted = False, True
            if self._doubts > _MOST_DOUBTS and self.block._traces is self:
                self._give_up(_CHANGES.format(f"{_MOST_DOUBTS} times in a row, an attribute or a global value was set between two calls"))

    def _give_up(self, reason: str, level: int = 7) -> None:
        """Run the block step by step from now on, and warn with the reason."""
        block = self.block
        if block._traces is self:
            block._traces = None
        block._clear_cached_op()
        block._runs_traced, block._untraceable = False, reason
        if not block._is_plain():
            block._active = False
        warnings.warn(f"{type(block).__name__} is hybridized and runs step by step all the same: {reason}", stacklevel=level)
