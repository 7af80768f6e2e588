"""Recording computations and taking their gradients.

Torch's autograd differentiates; this module is MXNet's interface to it. It decides which arrays are recorded and where gradients are stored.
"""
from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

import torch

from . import openmp, symbol, threads
from .base import MXNetError
from .ndarray import NDArray, dispatch, explicit_calls, memory_format, sparse
from .ndarray.dispatch import Marked, Scope, TapeNode, mode
from .ndarray.explicit_calls import ExplicitNode
from .ops import differentiation, failures
from .ops.grad_mode import GradMode, enable_grad
from .ops.registry import get as get_operator
from .symbol.indexing import index as index_symbol

_T = TypeVar("_T")


def record(train_mode: bool = True) -> Scope:
    """Record the operators of a ``with`` block for `backward`; they run in training mode if `train_mode` is True.

    Example
    -------
    >>> import mxnet as mx
    >>> x = mx.nd.array([1., 2.])
    >>> x.attach_grad()
    >>> with mx.autograd.record():
    ...     y = (x * x).sum()
    >>> y.backward()
    >>> x.grad.asnumpy()
    array([2., 4.], dtype=float32)
    """
    return Scope(True, train_mode)


def pause(train_mode: bool = False) -> Scope:
    """Suspend the recording of operators in a ``with`` block inside of `record`.

    Example
    -------
    >>> x = mx.nd.array([3])
    >>> x.attach_grad()
    >>> with mx.autograd.record():
    ...     with mx.autograd.pause():
    ...         factor = x * 10        # a constant for the gradient
    ...     y = factor * x
    >>> y.backward()
    >>> x.grad.asnumpy()
    array([30.], dtype=float32)
    """
    return Scope(False, train_mode)


def train_mode() -> Scope:
    """Run operators such as Dropout in training mode in a ``with`` block, without changing recording.

    Example
    -------
    >>> with mx.autograd.train_mode():   # Dropout drops, and nothing is recorded
    ...     y = mx.nd.Dropout(mx.nd.ones(100), p=0.5)
    >>> bool((y == 0).max().asscalar())
    True
    """
    return Scope(None, True)


def predict_mode() -> Scope:
    """Run operators such as Dropout in prediction mode in a ``with`` block, without changing recording.

    Example
    -------
    >>> with mx.autograd.record():
    ...     with mx.autograd.predict_mode():   # recorded, but Dropout passes everything
    ...         y = mx.nd.Dropout(mx.nd.ones(4), p=0.5)
    >>> y.asnumpy()
    array([1., 1., 1., 1.], dtype=float32)
    """
    return Scope(None, False)


def is_recording() -> bool:
    """Return True where operators are being recorded.

    Example
    -------
    >>> with mx.autograd.record():
    ...     print(mx.autograd.is_recording())
    True
    """
    return mode.recording if mode.tracing is None else mode.tracing.read_mode("recording")


def is_training() -> bool:
    """Return True where operators run in training mode.

    Example
    -------
    >>> with mx.autograd.record(train_mode=False):
    ...     print(mx.autograd.is_training())
    False
    """
    return mode.training if mode.tracing is None else mode.tracing.read_mode("training")


def set_recording(is_recording: bool) -> bool:
    """Turn recording on or off for this thread; return the previous value.

    Example
    -------
    >>> before = mx.autograd.set_recording(True)
    >>> before, mx.autograd.set_recording(before)
    (False, True)
    """
    where = mode if mode.tracing is None else mode.tracing.scope(is_recording, None)
    before, where.recording = where.recording, bool(is_recording)
    return before


def set_training(train_mode: bool) -> bool:
    """Turn training mode on or off for this thread; return the previous value.

    Example
    -------
    >>> before = mx.autograd.set_training(True)
    >>> before, mx.autograd.set_training(before)
    (False, True)
    """
    where = mode if mode.tracing is None else mode.tracing.scope(None, train_mode)
    before, where.training = where.training, bool(train_mode)
    return before


def mark_variables(variables: Any, gradients: Any, grad_reqs: str | Sequence[str] = "write") -> None:
    """Mark arrays as variables: later backward passes write their gradients to the given arrays.

    Parameters
    ----------
    variables, gradients : NDArray or list of NDArray
        Of equal number; each gradient has the shape of its variable.
    grad_reqs : str or list of str
        ``'write'``, ``'add'`` or ``'null'``, for all or for each.

    Example
    -------
    >>> x, grad = mx.nd.array([1, 2]), mx.nd.zeros(2)
    >>> mx.autograd.mark_variables([x], [grad])
    >>> with mx.autograd.record():
    ...     y = x * x
    >>> y.backward()
    >>> grad.asnumpy()
    array([2., 4.], dtype=float32)
    """
    if isinstance(variables, NDArray):
        variables, gradients = [variables], [gradients]
    if isinstance(grad_reqs, str):
        grad_reqs = [grad_reqs] * len(variables)
    if not len(variables) == len(gradients) == len(grad_reqs):
        raise MXNetError(f"mark_variables: {len(variables)} variables, {len(gradients)} gradients and {len(grad_reqs)} grad_reqs "
                         "must be of equal number")
    for variable, gradient, req in zip(variables, gradients, grad_reqs):
        if gradient is not None and gradient.shape != variable.shape:
            raise MXNetError(f"mark_variables: a gradient of shape {gradient.shape} for a variable of shape {variable.shape}")
        variable._mark(gradient, req)


def _heads(heads: Any, head_grads: Any, what: str) -> tuple[Sequence[NDArray], list[torch.Tensor], list[torch.Tensor]]:
    """Check the heads and their gradients, and return them with their tensors."""
    if mode.tracing is not None:
        mode.tracing.fail(f"autograd.{what} is called inside of it, and a graph has no place for that")
    if isinstance(heads, NDArray):
        heads = [heads]
        head_grads = [head_grads] if head_grads is None or isinstance(head_grads, NDArray) else head_grads
    if head_grads is None:
        head_grads = [None] * len(heads)
    if len(head_grads) != len(heads):
        raise MXNetError(f"{what}: a gradient (or None) for each of {len(heads)} heads expected, received {len(head_grads)}")
    tensors, seeds = [], []
    for head, seed in zip(heads, head_grads):
        info = head._autograd
        if info is None or (info.node is None and info.grad_req == "null"):
            raise MXNetError(f"{what}: cannot differentiate an array that is not part of a recorded computation; compute it inside "
                             "autograd.record() from arrays that have attach_grad(). If it was differentiated before, that has been freed: "
                             "pass retain_graph=True to the first backward")
        if not head._data.requires_grad:
            continue
        recorded = getattr(head._data, "shadow", head._data)  # of an integer array; see ops/integers.py
        tensors.append(recorded)
        if seed is not None and len(seed.shape) == len(head.shape) > 0 and seed.shape[1:] == head.shape[1:] and seed.shape[0] > head.shape[0]:
            seed = seed[:head.shape[0]]  # MXNet reads only the rows that it needs: a gradient for the longest of several results fits all
        if seed is not None and seed.shape != head.shape and seed.size == head.size and info.node is not None:
            seed = seed.reshape(head.shape)  # MXNet reads the numbers in memory order, regardless of the shape
        if seed is not None and seed.shape != head.shape:
            raise MXNetError(f"{what}: a head gradient of shape {seed.shape} for a head of shape {head.shape}")
        if seed is not None:
            seeds.append(seed._data.to(recorded.device, recorded.dtype))
        elif type(info.node) is ExplicitNode and not recorded.is_cpu:  # a captured graph only reads it
            seeds.append(differentiation.ones(recorded))
        else:
            seeds.append(run_engine(torch.ones_like, recorded))
    return heads, tensors, seeds


def backward(heads: NDArray | Sequence[NDArray], head_grads: NDArray | Sequence[NDArray | None] | None = None, retain_graph: bool = False,
             train_mode: bool = True) -> None:
    """Compute the gradients of all marked arrays that `heads` were computed from, each into its ``.grad``.

    Parameters
    ----------
    heads : NDArray or list of NDArray
    head_grads : NDArray or list of NDArray and None, optional
        The gradients of the heads themselves; ones where None.
    retain_graph : bool
        Keep the recorded calls for another backward.
    train_mode : bool
        Differentiate as in training. Recorded calls keep the mode in which they ran, so that the argument has no effect as long as it equals
        that mode, which MXNet requires.

    Without `retain_graph` all intermediate results that the heads were computed from become constants, such as the state that a recurrent network
    passes to the next sequence.

    Raises
    ------
    MXNetError
        If a head was not recorded, or was freed by an earlier backward.

    Example
    -------
    >>> x = mx.nd.array([1, 2])
    >>> x.attach_grad()
    >>> with mx.autograd.record():
    ...     y, z = x * 2, x * x
    >>> mx.autograd.backward([y, z])
    >>> x.grad.asnumpy()
    array([4., 6.], dtype=float32)
    """
    threads.poll()
    heads, tensors, seeds = _heads(heads, head_grads, "backward")
    start = time.perf_counter_ns() if dispatch.call_observer is not None else 0
    variables, nodes, light = _reachable(heads)
    for v in variables:
        v.reached = False
    training = mode.training
    mode.training = train_mode
    explicit = [node for node in nodes if type(node) is ExplicitNode]
    call: Any = differentiation.backward, tensors, seeds, retain_graph
    if explicit:  # what computed gradients were computed from may be differentiated along another path, see `_free`
        call = explicit_calls.backward, explicit, tensors, seeds, variables, retain_graph or any(node.op is _GRADIENT for node in nodes)
    try:
        if tensors and light:
            run_engine(openmp.alone, *call)
        elif tensors:
            run_engine(*call)
    except BaseException:
        for v in variables:
            v.failed()
        raise
    finally:
        mode.training = training
    for v in variables:
        if not v.reached:  # there is no differentiable path to it: its gradient is zero
            if v.grad_req == "write" and v.grad is not None:
                v.grad[... if v.grad.ndim == 0 else slice(None)] = 0
            v.fresh = v.reached = True
    if start and dispatch.call_observer is not None:
        dispatch.call_observer("MXAutogradBackwardEx", start, time.perf_counter_ns())
    if not retain_graph:
        _free(nodes, heads)


def _reachable(heads: Sequence[NDArray]) -> tuple[set[Marked], set[TapeNode], bool]:
    """Return the marks of all arrays with a gradient that the heads depend on, the calls on the paths, and True if all calls are cheap."""
    variables: set[Marked] = set()
    nodes: set[TapeNode] = set()
    stack, light = [h._autograd for h in heads], True
    while stack:
        info = stack.pop()
        node = info.node
        if node is not None:
            if node not in nodes:
                nodes.add(node)
                light = light and node.light
                stack += node.inputs
        elif info.grad_req != "null":
            variables.add(info)
    return variables, nodes, light


def _free(nodes: Iterable[TapeNode], heads: Sequence[NDArray]) -> None:
    """Turn results of recorded calls that are still in use into constants, as MXNet does once a computation was differentiated.

    The inputs of computed gradients are kept: they may be differentiated along another path.
    """
    for node in nodes:
        if node.op is _GRADIENT:
            nodes = _before_gradients(heads)
            break
    for node in nodes:
        if type(node) is ExplicitNode:
            node.call.free()
        for reference in node.outputs:
            array = reference()
            if array is not None and (info := array._autograd) is not None and info.node is node:
                array._end_history()


def _before_gradients(heads: Sequence[NDArray]) -> set[TapeNode]:
    """Return the calls that the heads were computed from, down to computed gradients, whose own calls are left out."""
    nodes: set[TapeNode] = set()
    stack = [h._autograd.node for h in heads]
    while stack:
        node = stack.pop()
        if node is not None and node not in nodes:
            nodes.add(node)
            stack += [] if node.op is _GRADIENT else [info.node for info in node.inputs]
    return nodes


def run_engine(function: Callable[..., _T], *args: Any) -> _T:
    """Call a function of torch's engine; errors of it, and of the user's code that it runs, are raised as MXNetErrors."""
    try:
        return function(*args)
    except MXNetError:
        raise
    except Exception as error:
        text = failures.in_words(error)
        if "second time" in str(error):
            text = "a part of this computation was differentiated before and has been freed; pass retain_graph=True to the first backward"
        raise MXNetError(f"backward: {text}") from error


def grad(heads: NDArray | Sequence[NDArray], variables: NDArray | Sequence[NDArray], head_grads: NDArray | Sequence[NDArray | None] | None = None,
         retain_graph: bool | None = None, create_graph: bool = False, train_mode: bool = True) -> list[NDArray]:
    """Return the gradients of `heads` with respect to `variables` as a list of new arrays; ``.grad`` is not changed.

    Parameters
    ----------
    heads, variables : NDArray or list of NDArray
    head_grads : NDArray or list of NDArray and None, optional
        Ones where None.
    retain_graph : bool, optional
        Keep the recorded calls; by default if `create_graph`.
    create_graph : bool
        Record the gradients too, so that they can be differentiated again.
    train_mode : bool
        See `backward`.

    Raises
    ------
    MXNetError
        If a variable is not part of the computation of the heads.

    Example
    -------
    >>> import mxnet as mx
    >>> x = mx.nd.array([3.])
    >>> x.attach_grad()
    >>> with mx.autograd.record():
    ...     y = x * x * x
    ...     dy, = mx.autograd.grad(y, [x], create_graph=True)
    >>> dy.backward()
    >>> dy.asscalar(), x.grad.asscalar()
    (np.float32(27.0), np.float32(18.0))
    """
    variables = [variables] if isinstance(variables, NDArray) else variables
    if not variables:
        raise MXNetError(f"grad: at least one variable is needed, received {variables}")
    if not isinstance(retain_graph, bool):
        retain_graph = create_graph
    heads, tensors, seeds = _heads(heads, head_grads, "grad")
    for i, v in enumerate(variables):
        if not _leaf(v).requires_grad:
            raise MXNetError(f"grad: variable {i} is not part of the recorded computation; call attach_grad() on it before recording")
    training = mode.training
    mode.training = train_mode
    nodes = _reachable(heads)[1]
    explicit = [node for node in nodes if type(node) is ExplicitNode]
    grads: Sequence[Any]
    try:
        if tensors and explicit:
            grads = run_engine(explicit_calls.gradients, explicit, tensors, [_leaf(v) for v in variables], seeds, create_graph)
        elif tensors:
            grads = run_engine(differentiation.gradients, tensors, [_leaf(v) for v in variables], seeds, retain_graph, create_graph)
        else:  # heads that are constants, such as the derivative of a linear function
            grads = [torch.zeros_like(v._data) for v in variables]
    finally:
        mode.training = training
    in_use = {seed.untyped_storage().data_ptr() for seed in seeds}
    results = []
    for i, (v, g) in enumerate(zip(variables, grads)):
        if g is None:
            raise MXNetError(f"grad: the heads do not depend on variable {i}, or it was replaced after it was recorded")
        if g.is_sparse and not create_graph:
            results.append(_stored_by_rows(g, v))
            continue
        g = g.to_dense() if g.is_sparse else g
        if not g.is_contiguous() or not memory_format.owned(g) or g.untyped_storage().data_ptr() in in_use:
            with GradMode(create_graph):
                g = g.clone(memory_format=torch.contiguous_format)
        in_use.add(g.untyped_storage().data_ptr())
        out = type(v)._new(g if create_graph else g.detach(), v._ctx) if not v._is_sparse else NDArray._new(g, v._ctx)
        if create_graph:
            dispatch.record(_GRADIENT, {}, heads, (out,))
        results.append(out)
    if not retain_graph:
        _free(nodes, heads)
    return results


def _leaf(array: NDArray) -> torch.Tensor:
    """Return the tensor with respect to which torch differentiates for an array."""
    token = getattr(array, "_token", None)
    return array._data if token is None else token


def _stored_by_rows(gradient: torch.Tensor, variable: NDArray) -> NDArray:
    """Return torch's sparse gradient, which has only some rows, as a row_sparse array."""
    result = sparse.zeros("row_sparse", variable.shape, ctx=variable._ctx, dtype=variable.dtype)
    result._take_dense(gradient.detach())
    return result


class _NamedCall:
    """A placeholder on the tape for a call that no Symbol can express."""

    def __init__(self, name: str) -> None:
        self.name = name


_GRADIENT = _NamedCall("gradient")
_FUNCTION = _NamedCall("Function")
_COPY = dispatch.pseudo_operator("_copyto")


def get_symbol(x: NDArray) -> symbol.Symbol:
    """Return the recorded computation of `x` as a Symbol; its inputs are named ``var0``, ``var1``, ... in the order of first use.

    Raises
    ------
    MXNetError
        If `x` was not recorded and has no gradient, or a step has no counterpart (`Function`, gradients of gradients).

    Example
    -------
    >>> x = mx.nd.array([1, 2])
    >>> x.attach_grad()
    >>> with mx.autograd.record():
    ...     y = x * 2 + 1
    >>> len(mx.autograd.get_symbol(y).list_arguments())
    1
    """
    if not isinstance(x, NDArray):
        raise TypeError(f"get_symbol: an NDArray expected, received {type(x).__name__}")
    if not dispatch.in_graph(x):
        raise MXNetError(f"get_symbol: the array of shape {x.shape} was not computed inside autograd.record()")
    variables: dict[Any, symbol.Symbol] = {}
    done: dict[TapeNode, symbol.Symbol] = {}

    def variable(info: object) -> symbol.Symbol:
        if info not in variables:
            variables[info] = symbol.var(f"var{len(variables)}")
        return variables[info]

    def entry(info: Any) -> symbol.Symbol:
        return variable(info) if info.node is None else done[info.node][info.index]

    def build(node: TapeNode) -> symbol.Symbol:
        if "key" in node.attrs and isinstance(node.op, dispatch.PseudoOperator):
            arrays = [None if isinstance(i, dispatch.Unrecorded) else entry(i) for i in node.inputs[1:]]
            return index_symbol(entry(node.inputs[0]), arrays, lambda: variable(object()), **node.attrs)
        inputs = [entry(i) for i in node.inputs]
        if hasattr(node.op, "as_symbol"):  # a hybridized block: its graph
            return node.op.as_symbol(inputs)
        if hasattr(node.op, "fn"):
            return symbol.compose.create(node.op, inputs, node.attrs)
        if node.op is _COPY:
            return symbol.compose.create(get_operator("_copy"), inputs, {})
        raise MXNetError(f"get_symbol: the recorded step {node.op.name} has no counterpart in a Symbol")

    # Topological order without recursion, since unrolled networks are deep.
    waiting = [x._autograd.node] if x._autograd.node is not None else []
    while waiting:
        node = waiting[-1]
        for info in node.inputs:
            if info.node is None and not (isinstance(info, dispatch.Unrecorded) and "key" in node.attrs):
                variable(info)
            elif info.node is not None and info.node not in done:
                waiting.append(info.node)
                break
        else:
            done[node] = build(waiting.pop())
    return entry(x._autograd)


class Function:
    """A differentiable function with a user-defined gradient.

    Subclasses define ``forward(self, *inputs)`` and ``backward(self, *output_grads)`` over NDArrays; neither is recorded.
    `backward` returns one gradient for each input. One object serves one call.

    Example
    -------
    >>> import mxnet as mx
    >>> class ClippedGradient(mx.autograd.Function):
    ...     def forward(self, x):
    ...         return x * x
    ...     def backward(self, grad):
    ...         return grad.clip(-1, 1)
    >>> x = mx.nd.array([3.])
    >>> x.attach_grad()
    >>> with mx.autograd.record():
    ...     y = 5 * ClippedGradient()(x)
    >>> y.backward()
    >>> y.asscalar(), x.grad.asscalar()
    (np.float32(45.0), np.float32(1.0))
    """

    def __init__(self) -> None:
        self._used = False
        self.saved_tensors: tuple[Any, ...] = ()

    def __call__(self, *inputs: Any) -> Any:
        if self._used:
            raise MXNetError(f"{type(self).__name__}: each Function object can be called once; create a new one for every call")
        self._used = True
        if not mode.recording:
            return self.forward(*inputs)
        call: dict[str, Any] = {}

        def forward() -> tuple[NDArray, ...]:
            with pause(train_mode=mode.training):
                outputs = self.forward(*inputs)
            call["single"] = isinstance(outputs, NDArray)
            call["outputs"] = outputs = (outputs,) if call["single"] else tuple(outputs)
            return outputs

        arrays = [a for a in inputs if isinstance(a, NDArray)]
        if not any(a._data.requires_grad for a in arrays):
            outputs = forward()
            return outputs[0] if call["single"] else list(outputs)
        with enable_grad():
            tensors = _Bridge.apply(self, forward, arrays, *[a._data for a in arrays])
        results = [type(o)._new(t, o._ctx) for t, o in zip(tensors, call["outputs"])]
        dispatch.record(_FUNCTION, {}, arrays, results)
        return results[0] if call["single"] else results

    def save_for_backward(self, *args: Any) -> None:
        """Keep arrays for `backward`, which reads them from ``self.saved_tensors``."""
        self.saved_tensors = args

    def forward(self, *inputs: Any) -> Any:
        """Compute the outputs from the inputs."""
        raise NotImplementedError(f"{type(self).__name__} must define forward(self, *inputs)")

    def backward(self, *output_grads: Any) -> Any:
        """Compute the gradients of the inputs from those of the outputs."""
        raise NotImplementedError(f"{type(self).__name__} must define backward(self, *output_grads)")


class _Bridge(torch.autograd.Function):
    """The torch autograd function that calls a `Function`."""

    @staticmethod
    def forward(ctx: Any, function: Function, forward: Callable[[], tuple[NDArray, ...]], arrays: list[NDArray],
                *tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        outputs = forward()
        ctx.function, ctx.kinds = function, [(type(a) if not a._is_sparse else NDArray, a._ctx) for a in arrays]
        ctx.kind = [(type(o), o._ctx) for o in outputs]
        return tuple(o._data.detach().view_as(o._data) for o in outputs)

    @staticmethod
    def backward(ctx: Any, *out_grads: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        name = type(ctx.function).__name__
        # Torch's gradients may be shared with other branches, or be expanded from one number; the user may write to the copies.
        arrays = [cls._new(g.clone(memory_format=torch.contiguous_format), c) for g, (cls, c) in zip(out_grads, ctx.kind)]
        with pause(train_mode=mode.training):
            grads = ctx.function.backward(*arrays)
        grads = (grads,) if isinstance(grads, NDArray) or grads is None else tuple(grads)
        if len(grads) != len(ctx.kinds):
            raise MXNetError(f"{name}.backward returned {len(grads)} gradients for {len(ctx.kinds)} inputs")
        return (None, None, None, *(g._data.detach() if g is not None else None for g in grads))


__all__ = ["Function", "NDArray", "backward", "get_symbol", "grad", "is_recording", "is_training", "mark_variables", "pause", "predict_mode",
           "record", "set_recording", "set_training", "train_mode"]
