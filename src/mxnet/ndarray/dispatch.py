"""Dispatch of operators on arrays: unwrap, run, record, wrap.

This is the hot path. `invoke` does the work common to all calls; most calls take the shorter path of `fast_calls` instead. Work that only
some calls need (sparse inputs, `out=`, profiling, errors) is in separate branches.
"""
import functools
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, NoReturn

import torch

from .. import interrupts
from ..base import DelayedError, MXNetError
from ..context import Context, current_context, intern_context
from ..ops import failures
from ..ops.dtypes import name_of
from ..ops.registry import Operator
from ..ops.schema import to_string
from ..suggestions import shortened
from . import memory_format, mutation_tracking


class Mode(threading.local):
    """The autograd state of a thread: True in `recording` while it records, and in `training` while operators run in training mode."""

    recording = False
    training = False
    custom_operator: str | None = None  # the name of the operator defined in Python that is running, for the profiler
    node: str = ""  # that of the graph that runs operator by operator, likewise
    tracing: Any = None  # the `_deferred_compute.Trace` that records the calls of this thread


mode = Mode()
traces: list[Any] = []  # the runs of blocks being traced, in any thread: only during these are Python's reads of arrays recorded


class Scope(interrupts.Scope):
    """Sets recording and training for a ``with`` block; None leaves one as it is. Ctrl-C does not prevent their restoration."""

    __slots__ = ("_recording", "_training")
    _blocks = interrupts.Blocks()

    def __init__(self, recording: bool | None, training: bool | None) -> None:
        self._recording, self._training = recording, training

    def __enter__(self) -> "Scope":
        # A trace records everything, and reports the scope's mode to callers that read it.
        where = mode if mode.tracing is None else mode.tracing.scope(self._recording, self._training)
        back = functools.partial(where.__dict__.update, recording=where.recording, training=where.training)
        backs = self._blocks.backs
        try:  # where an interrupt is raised after a call; assignments are followed by none
            backs.append(back)
            if self._recording is not None:
                where.recording = self._recording
            if self._training is not None:
                where.training = self._training
        except BaseException:
            if backs and backs[-1] is back:
                backs.pop()
            raise
        return self


class Call(NamedTuple):
    """The argument of a graph's observer: a node, several nodes fused into one kernel, or a whole graph that another library runs."""

    name: str  # of the operator, or those of several with "+" between them
    node: str = ""  # likewise
    note: str = ""
    graph: bool = False


graph_observer: Callable | None = None  # the same for the operators of graphs, with a `Call` instead of the name
call_observer: Callable | None = None  # the same for calls that span several operators: call_observer(name, start ns, end ns)
observer: Callable | None = None  # set by the profiler: observer(operator name, start ns, end ns, tensors, results)
enclose: Callable | None = None  # likewise, for tools that wrap the call: enclose(name, function, args, kwargs) calls the function


_ref = weakref.ref


class TapeNode:
    """One recorded call: the operator, its attributes and its inputs' marks. The values are kept by torch, or by an `ExplicitNode`."""

    __slots__ = ("op", "attrs", "inputs", "outputs")
    light = False  # True if its gradient is too small to be computed by several threads

    def __init__(self, op: Any, attrs: dict[str, Any], inputs: list) -> None:
        self.op, self.attrs, self.inputs = op, attrs, inputs
        self.outputs: tuple[weakref.ref, ...] = ()  # the arrays that become constants when the call is freed


class NodeRecord(TapeNode):
    """A recorded call of a graph so small that it ran on one thread."""

    __slots__ = ()
    light = True


class Recorded:
    """Marks an array as output `index` of a recorded call."""

    __slots__ = ("node", "index")
    grad = None
    grad_req = "null"
    fresh = False

    def __init__(self, node: TapeNode, index: int) -> None:
        self.node, self.index = node, index


class Unrecorded:
    """Marks an array that was an input of a recorded call without being part of the graph."""

    __slots__ = ("array",)
    grad = None
    grad_req = "null"
    fresh = False
    node = None
    index = 0

    def __init__(self, array: Any) -> None:
        self.array = weakref.ref(array)  # for `get_symbol`, which makes a Symbol of the call


class Marked:
    """Marks an array whose gradient is requested: the array to write it to, and ``grad_req``.

    `reached` is False from the start of a backward that writes gradients until it has this one. While `partial` is True, what comes after that is
    another part of the same gradient. `expected` counts the parts to come from explicit calls where something waits for the gradient.
    """

    __slots__ = ("grad", "grad_req", "fresh", "reached", "lent", "partial", "expected", "finished", "__weakref__")
    node = None
    index = 0

    def __init__(self, grad: Any, grad_req: str) -> None:
        self.grad, self.grad_req, self.fresh, self.reached, self.lent, self.partial = grad, grad_req, False, True, False, False
        self.expected = 0
        self.finished: Callable[[], None] | None = None  # called as soon as a backward has the gradient
        if grad_req == "add" and grad is not None:
            memory_format.keep(grad)

    def lend(self) -> torch.Tensor | None:
        """Return the memory of the last gradient, in which the backward that runs computes the next one.

        None if something else uses it, or another gradient of this backward has it already, or the last gradient must stay.
        """
        buffer = self.grad
        if self.reached or self.lent or self.grad_req != "write" or buffer._is_sparse:
            return None
        memory = buffer._data
        if memory._is_view() or not memory_format.owned(memory) or not memory.is_contiguous():
            return None
        mutation_tracking.written(memory)
        buffer._rebind(memory.new_zeros(()).expand(memory.shape))  # without memory, until the gradient is there
        self.lent = True
        return memory

    def failed(self) -> None:
        """End a backward that has not come to this gradient: it is zero if its memory was lent."""
        self.reached = True
        if self.lent:
            self.lent = False
            self.grad._rebind(self.grad._data.contiguous())

    def deliver(self, leaf: torch.Tensor) -> None:
        """Take a finished gradient from torch's leaf tensor."""
        gradient, leaf.grad = leaf.grad, None
        self.take(torch.zeros_like(leaf) if gradient is None else gradient)  # None: nothing depends on it, a torch operator found
        if self.finished is not None and not self.expected:
            self.finished()

    def take(self, gradient: torch.Tensor) -> None:
        """Write or add a gradient tensor. It becomes the array's own where nothing else uses the memory of either: torch hands out views."""
        buffer = self.grad
        if gradient.is_sparse and not buffer._is_sparse:
            gradient = gradient.to_dense()
        if self.partial and memory_format.lent and gradient.data_ptr() not in memory_format.lent:
            memory_format.keep(buffer)  # a captured graph writes another part of the gradient there in this backward
        if buffer._is_sparse:
            buffer._take_dense(gradient.detach(), self.grad_req == "add" or self.partial and self.reached)
        elif self.grad_req == "add" or self.partial and self.reached:
            buffer._writable().add_(gradient if gradient.dtype is buffer._data.dtype else gradient.to(buffer._data.dtype))
        elif memory_format.lent and gradient.data_ptr() in memory_format.lent and buffer._data.dtype is gradient.dtype:
            self._take_lent(buffer, gradient)
        elif (buffer._data.dtype is gradient.dtype and (self.lent or memory_format.owned(buffer._data)) and memory_format.owned(gradient)
              and (gradient.is_contiguous() or memory_format.same(gradient))):
            buffer._rebind(gradient.detach() if gradient.requires_grad else gradient)
        else:
            if self.lent:
                buffer._rebind(buffer._data.contiguous())
            buffer._writable().copy_(gradient)
        self.lent, self.fresh, self.reached = False, True, True

    def receive(self, gradient: torch.Tensor) -> None:
        """Take a gradient that may have been computed in the memory of the array for it."""
        if gradient is self.grad._data:
            self.grad._writable()  # it is there already
            self.fresh = self.reached = True
        else:
            self.take(gradient)
        if self.finished is not None:
            self.passed()

    def passed(self) -> None:
        """Count one expected part, which has come or will not come; the gradient is finished with the last."""
        self.expected -= 1
        if not self.expected and self.reached and self.finished is not None:
            self.finished()

    @staticmethod
    def _take_lent(buffer: Any, gradient: torch.Tensor) -> None:
        """Take a gradient in the memory of a captured graph, whose next run overwrites it."""
        place = buffer._data.data_ptr()
        if place == gradient.data_ptr() and buffer._data.stride() == gradient.stride():
            buffer._writable()  # it is there already
        elif place in memory_format.lent or memory_format.owned(buffer._data):
            buffer._rebind(gradient.detach())
        else:
            buffer._writable().copy_(gradient)


class PseudoOperator:
    """A name for error texts, profiles and the tape, for a call of a function that is no registered operator."""

    variadic, inputs = False, ("data",)
    attributes: dict[str, Any] = {}

    def __init__(self, name: str) -> None:
        self.name = name


_pseudo: dict[str, PseudoOperator] = {}


def pseudo_operator(name: str) -> PseudoOperator:
    """Return the `PseudoOperator` of that name."""
    operator = _pseudo.get(name)
    if operator is None:
        operator = _pseudo[name] = PseudoOperator(name)
    return operator


def entry_of(array: Any) -> Any:
    """Return the mark of `array` on the tape, adding one if there is none."""
    info = array._autograd
    if info is None:
        info = array._autograd = Unrecorded(array)
        if mode.tracing is not None:
            mode.tracing.leaves[info] = array
    return info


def record(op: Any, attrs: dict[str, Any], inputs: Sequence[Any], outputs: Sequence[Any], kind: Callable[..., TapeNode] = TapeNode) -> None:
    """Record a call on the tape, and mark `outputs` as its results."""
    node = kind(op, attrs, [a._autograd or entry_of(a) for a in inputs if a is not None])
    for i, array in enumerate(outputs):
        array._autograd = Recorded(node, i)
    node.outputs = tuple(map(_ref, outputs))


def record_one(op: Any, attrs: dict[str, Any], inputs: Sequence[Any], output: Any) -> None:
    """Record a call with one result, in half the time of `record`."""
    node = TapeNode(op, attrs, [a._autograd or entry_of(a) for a in inputs if a is not None])
    output._autograd = Recorded(node, 0)
    node.outputs = (_ref(output),)


def share_history(array: Any, info: Any) -> None:
    """Make `array` share the tape entry `info` of another array."""
    array._autograd = info
    if info is not None and info.node is not None:
        info.node.outputs += (weakref.ref(array),)


def in_graph(array: Any) -> bool:
    """True if a gradient may flow through `array`, so that its values must not be replaced while recording."""
    info = array._autograd
    return info is not None and (info.node is not None or info.grad_req != "null")


def is_differentiable(array: Any) -> bool:
    """True if a gradient can reach an array with ``attach_grad()`` from this one; marks that only a trace has set do not count."""
    if array._is_sparse or array._data.requires_grad:
        return in_graph(array)
    seen: set[int] = set()
    stack = [array._autograd]
    while stack:
        info = stack.pop()
        if info is None:
            continue
        if info.node is None:
            if info.grad_req != "null":
                return True
        elif id(info.node) not in seen:
            seen.add(id(info.node))
            stack.extend(info.node.inputs)
    return False


def refuse_inplace(*arrays: Any) -> None:
    """Raise an error because arrays that take part in the recorded computation are to be written to, or to be written.

    In a traced block the trace is notified instead: if autograd records nothing outside of the trace, the write is allowed.
    """
    if mode.tracing is not None:
        mode.tracing.wrote()
    if mode.tracing is None and not (mode.recording and any(map(is_differentiable, arrays))):
        for array in arrays:
            array._autograd = None
        return
    raise MXNetError("Inplace operations (+=, -=, x[:]=, etc) are not supported when recording with arrays that take part in the computation; "
                     "write into a new array, or do it outside of autograd.record()")


allocate = object.__new__


def wrap(cls: type[Any], tensor: torch.Tensor, ctx: Context) -> Any:
    """Return an array of the class `cls` that holds a tensor."""
    array: Any = allocate(cls)
    array._data = tensor
    array._ctx = ctx
    array._autograd = None
    return array


def invoke(op: Operator, arrays: Sequence[Any], attrs: dict[str, Any], out: Any = None, cls: type[Any] | None = None,
           fn: Callable | None = None) -> Any:
    """Call an operator on arrays.

    Parameters
    ----------
    op : mxnet.ops.Operator
    arrays : sequence of NDArray or None
    attrs : dict
        Attributes as the user gave them.
    out : NDArray or list of NDArray, optional
        Receive the results.
    cls : type
        The class of the results.
    fn : callable, optional
        The function to call in place of the operator's own: its `view`, where the result is to share memory.

    Returns
    -------
    NDArray or list of NDArray
    """
    cls = cls or NDArray
    ctx = None
    tensors: list[Any] = []
    for a in arrays:
        if a is None:
            tensors.append(None)
            continue
        if not isinstance(a, NDArray):
            refuse_input(op, arrays)
        if a._is_sparse:
            return invoke_other(op, arrays, attrs, out, cls)
        tensors.append(a._data)
        if ctx is not a._ctx:
            if ctx is None:
                ctx = a._ctx
            elif ctx.device_type == "gpu" or a._ctx.device_type == "gpu":  # host memory is one, whatever its name
                _refuse_mixed_contexts(op, arrays)
    kwargs = op.parse_cached(attrs) if attrs or op.attributes else attrs
    if op.wants_training:
        kwargs = {**kwargs, op.wants_training: mode.training}
    if op.wants_device:
        ctx = ctx or _creation_context(attrs.get("ctx"), out)
        kwargs = {**kwargs, op.wants_device: ctx.torch_device}
        if isinstance(out, NDArray) and "shape" in op.attributes and "shape" not in kwargs:
            kwargs["shape"] = out.shape
    elif ctx is None:
        ctx = current_context()
    if op.mutates:
        for i in op.mutated_indices:
            if i < len(tensors) and tensors[i] is not None:
                if mutation_tracking.watched:
                    mutation_tracking.written(tensors[i])
                tensors[i] = tensors[i].data
    try:
        result, recorded = run(op, fn, tensors, kwargs, ctx)
    except DelayedError as error:
        return failed[1](op, error, arrays, attrs, out, cls)
    if mode.recording and not recorded:  # a constant may still be part of the graph: its variables then have zero gradients
        recorded = mode.tracing is not None or any(a is not None and in_graph(a) for a in arrays)
    if type(result) is tuple or type(result) is list:
        if len(result) != 1:  # 0 where an operator only writes to its inputs
            results = [wrap(cls, t, ctx) for t in result]
            if recorded:
                record(op, attrs, arrays, results)
            return results if out is None else _write_all(out, results)
        result = result[0]
    array = wrap(cls, result, ctx)
    if recorded:
        record_one(op, attrs, arrays, array)
    return array if out is None else _write(out, array)


def _creation_context(given: Context | str | None, out: Any) -> Context:
    """Return the context of an operator without inputs: that of the array for its results, else that of its attribute ``ctx``."""
    if isinstance(out, (list, tuple)) and out:
        out = out[0]
    if isinstance(out, NDArray):
        return out._ctx
    if not given:
        return current_context()
    if not isinstance(given, (Context, str)):
        raise MXNetError(f"`ctx` must be a device such as mx.cpu() or 'gpu(0)', received {shortened(given)}")
    return intern_context(given)


def run(op: Any, fn: Callable | None, tensors: Sequence[Any], kwargs: dict[str, Any], ctx: Context) -> tuple[Any, bool]:
    """Run a call in the grad mode of this thread's recording; return its results, and True if it was recorded.

    `fn` is the function to call, by default the operator; without its own gradient, which costs a little, where nothing is recorded.
    """
    recorded = False
    for t in tensors:
        if t is not None and t.requires_grad:
            recorded = True
            break
    if fn is None:
        fn = op.fn if recorded else op.raw
    start = time.perf_counter_ns() if observer is not None else 0
    switch = recorded and torch.is_grad_enabled() is not mode.recording
    try:
        if switch:
            torch._C._set_grad_enabled(mode.recording)
        result = fn(*tensors, **kwargs)
    except MXNetError as error:
        if str(error).startswith(op.name):
            raise
        raise type(error)(explain(op, error, tensors, kwargs)) from None
    except Exception as error:
        raise MXNetError(explain(op, error, tensors, kwargs)) from error
    finally:
        if switch:
            torch._C._set_grad_enabled(not mode.recording)
    if start and observer is not None:
        observer(op.name, start, time.perf_counter_ns(), tensors, result)
    return result, recorded and mode.recording


def explain(op: Any, error: Exception, tensors: Sequence[Any], kwargs: dict[str, Any]) -> str:
    """Return the text of a failed call's error: the operator, why it failed, its inputs and attributes."""
    names = op.inputs if not op.variadic else [f"input {i}" for i in range(len(tensors))]
    inputs = ", ".join(f"{n}: {name_of(t.dtype)}{tuple(t.shape)}" if t is not None else f"{n}: none" for n, t in zip(names, tensors))
    kwargs = {k: v for k, v in kwargs.items() if k not in (op.wants_training, op.wants_device)}
    texts = {k: to_string(v) for k, v in kwargs.items() if k in op.attributes}
    attributes = ", ".join(f"{k}={v if len(v) <= 80 else v[:77] + '...'}" for k, v in texts.items())
    shapes, types = [None if t is None else tuple(t.shape) for t in tensors], [None if t is None else t.dtype for t in tensors]
    reason = failures.reason(op, error, shapes, types, kwargs)
    return f"{op.name}: {reason} [inputs: {inputs or 'none'}; attributes: {attributes or 'none'}]"


def refuse_input(op: Operator, arrays: Sequence[Any]) -> None:
    for i, a in enumerate(arrays):
        if a is not None and not isinstance(a, NDArray):
            name = op.inputs[min(i, len(op.inputs) - 1)]
            raise MXNetError(f"{op.name}: input `{name}` must be an NDArray, received {shortened(a)} of type {type(a).__name__}; "
                             "convert with mx.nd.array(...)")


def _refuse_mixed_contexts(op: Operator, arrays: Sequence[Any]) -> NoReturn:
    where = ", ".join(str(a._ctx) for a in arrays if a is not None)
    raise MXNetError(f"{op.name}: all inputs must be on one device, received {where}; move them with x.as_in_context(ctx)")


def _write(out: Any, array: Any) -> Any:
    if isinstance(out, (list, tuple)):
        if len(out) != 1:
            raise MXNetError(f"`out` holds {len(out)} arrays, the operator returns 1")
        out = out[0]
    if not isinstance(out, NDArray):
        raise TypeError(f"`out` must be an NDArray, received {type(out).__name__}")
    if mode.recording and (in_graph(out) or array._autograd is not None):
        if in_graph(out):
            refuse_inplace(out)
        if mode.recording and out.shape == array.shape:  # the graph must go through `out` itself
            out._rebind(array._data.to(out._data.dtype))
            share_history(out, array._autograd)
            return out
    if out.shape != array.shape:
        raise MXNetError(f"`out` has shape {out.shape}, the result has {array.shape}")
    out._set_values(array._data)
    return out


def _write_all(out: Any, results: list) -> Any:
    if not isinstance(out, (list, tuple)) or len(out) > len(results):
        raise MXNetError(f"the operator returns {len(results)} arrays; `out` must be a list of as many NDArrays")
    for o, r in zip(out, results):
        _write(o, r)
    return out


def kind_of(arrays: Sequence[Any]) -> type[Any]:
    """Return the class of a legacy operator's results: that of ``mx.np`` where Gluon's layers are run on its arrays."""
    if numpy_array is not None:
        for a in arrays:
            if type(a) is numpy_array:
                return numpy_array
    return NDArray


def invoke_other(op: Operator, arrays: Sequence[Any], attrs: dict[str, Any], out: Any, cls: type[Any]) -> Any:
    """Call an operator with an input that is sparse, or that holds an error instead of values (`Failed`)."""
    kind, _, go_on = failed
    return (go_on if any(isinstance(a, kind) for a in arrays) else invoke_sparse)(op, arrays, attrs, out, cls)


invoke_sparse: Any = None  # from the package for sparse arrays
failed: Any = None  # the class `Failed` and the functions `begin` and `go_on` of failed.py
numpy_array: type[Any] | None = None  # the class of mx.np, once that is imported


class _Late:
    """A placeholder for NDArray until ndarray.py, which imports this module, has defined it."""


NDArray: Any = _Late
