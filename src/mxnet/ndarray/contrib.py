"""``mx.nd.contrib``: operators outside MXNet's stability promise, and loops and branches over arrays."""
from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import torch

from ..base import MXNetError
from ..context import current_context
from ..ops import differentiation
from ..ops.grad_mode import enable_grad
from ..ops.registry import get
from . import nested
from .creation import full
from .dispatch import explain
from .functions import namespace_lookup as _namespace_lookup
from .functions import operator_function as _operator_function
from .ndarray import NDArray

if TYPE_CHECKING:
    from ..context import Context
    from ..ops.registry import Operator

_lookup, __dir__ = _namespace_lookup(__name__, "_contrib_", _operator_function)


def __getattr__(name: str) -> Any:
    if name == "uniform":
        return _operator_function("uniform")
    return _lookup(name)


def _differentiated(op: Operator, out_grads: Sequence[NDArray], inputs: Sequence[NDArray], attrs: dict[str, Any]) -> list[NDArray]:
    """Return the gradients of an operator's array inputs, zeros for inputs without a gradient."""
    leaves = [a._data.detach() for a in inputs]
    wanted = [t.requires_grad_() for t in leaves if t.is_floating_point()]
    parsed = op.parse(attrs)
    try:
        with enable_grad():
            results = op.fn(*leaves, **parsed)
        results = (results,) if isinstance(results, torch.Tensor) else results
        derivatives = iter(differentiation.gradients(results, wanted, [g._data for g in out_grads]))
    except Exception as error:
        raise MXNetError(explain(op, error, leaves, parsed)) from error
    gradients = [next(derivatives) if t.requires_grad else None for t in leaves]
    return [NDArray._new(torch.zeros_like(t) if g is None else g, a._ctx) for g, t, a in zip(gradients, leaves, inputs)]


def _gradient_function(name: str, outputs: int = 1) -> Callable:
    def backward(*data: NDArray, out: Any = None, name: str | None = None, **kwargs: Any) -> Any:
        if len(data) <= outputs or not all(isinstance(a, NDArray) for a in data):
            raise MXNetError(f"{backward.__name__} takes NDArrays: {outputs} for the gradients of the outputs, then the inputs; "
                             f"received {len(data)} arguments")
        gradients = _differentiated(forward, data[:outputs], data[outputs:], kwargs)
        if out is None:
            return gradients
        for o, g in zip(out if isinstance(out, (list, tuple)) else [out], gradients):
            g.copyto(o)
        return out

    forward = get(f"_contrib_{name}")
    backward.__name__ = backward.__qualname__ = f"backward_{name}"
    backward.__doc__ = f"The gradients of `{name}`'s inputs: takes those of its outputs, then its inputs, and its attributes by name."
    return backward


backward_hawkesll, backward_index_copy = _gradient_function("hawkesll", outputs=2), _gradient_function("index_copy")
backward_quadratic = _gradient_function("quadratic")


def rand_zipfian(true_classes: NDArray, num_sampled: int, range_max: int, ctx: Context | None = None) -> tuple[NDArray, NDArray, NDArray]:
    """Draw classes from an approximately Zipfian distribution, P(class) = log((class + 2) / (class + 1)) / log(range_max + 1).

    Parameters
    ----------
    true_classes : NDArray
        The target classes, in one axis.
    num_sampled, range_max : int
        The number of draws, and the number of classes.
    ctx : Context, optional
        Where the results live; by default the current context.

    Returns
    -------
    samples, expected_count_true, expected_count_sampled : NDArray
        The drawn classes (int64), and how often the targets and they are expected (float64).

    Example
    -------
    >>> import mxnet as mx
    >>> samples, true_count, _ = mx.nd.contrib.rand_zipfian(mx.nd.array([3]), 4, 5)
    >>> samples.shape, round(true_count.asscalar(), 4)
    ((4,), np.float64(0.4982))
    """
    from .random import uniform
    ctx = ctx or current_context()
    log_range = math.log(range_max + 1)
    samples = (uniform(0, log_range, shape=(num_sampled,), dtype="float64", ctx=ctx).exp() - 1).astype("int64") % range_max

    def expected(classes: NDArray) -> NDArray:
        classes = classes.astype("float64")
        return ((classes + 2.0) / (classes + 1.0)).log() / log_range * num_sampled

    return samples, expected(true_classes.as_in_context(ctx)), expected(samples)


def isinf(data: NDArray) -> NDArray:
    """1 where an element is infinite, 0 elsewhere."""
    return data.abs() == math.inf


def isnan(data: NDArray) -> NDArray:
    """1 where an element is not a number, 0 elsewhere."""
    return data != data


def isfinite(data: NDArray) -> NDArray:
    """1 where an element is neither infinite nor NaN, 0 elsewhere."""
    return _operator_function("_logical_and")(data.abs() != math.inf, data == data)


# -- optimizer steps -----------------------------------------------------------------------------------------------------------


def _rescale(value: float | NDArray, like: NDArray) -> NDArray:
    return value.as_in_context(like.context) if isinstance(value, NDArray) else full((1,), value, ctx=like.context)


def adamw_update(weight: NDArray, grad: NDArray, mean: NDArray, var: NDArray, rescale_grad: float | NDArray, lr: float, eta: float,
                 beta1: float = 0.9, beta2: float = 0.999, epsilon: float = 1e-8, wd: float = 0, clip_gradient: float = -1,
                 out: NDArray | None = None, name: str | None = None,
                 **kwargs: Any) -> NDArray:
    """One step of AdamW. `rescale_grad` may be a number or an array; where it is 0, NaN or infinite nothing changes."""
    return _operator_function("_adamw_update")(weight, grad, mean, var, _rescale(rescale_grad, weight), lr=lr, eta=eta, beta1=beta1, beta2=beta2,
                                               epsilon=epsilon, wd=wd, clip_gradient=clip_gradient, out=out, name=name, **kwargs)


def mp_adamw_update(weight: NDArray, grad: NDArray, mean: NDArray, var: NDArray, weight32: NDArray, rescale_grad: float | NDArray, lr: float,
                    eta: float, beta1: float = 0.9, beta2: float = 0.999, epsilon: float = 1e-8, wd: float = 0, clip_gradient: float = -1,
                    out: NDArray | None = None,
                    name: str | None = None, **kwargs: Any) -> NDArray:
    """One step of AdamW for a float16 weight with a float32 copy; see `adamw_update`."""
    return _operator_function("_mp_adamw_update")(weight, grad, mean, var, weight32, _rescale(rescale_grad, weight), lr=lr, eta=eta, beta1=beta1,
                                                  beta2=beta2, epsilon=epsilon, wd=wd, clip_gradient=clip_gradient, out=out, name=name, **kwargs)


def _interleaved(*groups: Sequence[NDArray]) -> list[NDArray]:
    return [a for each in zip(*groups) for a in each]


def multi_adamw_update(weights: Sequence[NDArray], grads: Sequence[NDArray], mean: Sequence[NDArray], var: Sequence[NDArray],
                       rescale_grad: float | NDArray, lrs: Sequence[float], wds: Sequence[float], etas: Sequence[float], out: Any = None,
                       name: str | None = None, size: int = 0, **kwargs: Any) -> Any:
    """One step of AdamW for several weights (lists of arrays and of numbers); see `adamw_update`."""
    arrays = [*_interleaved(weights, grads, mean, var), _rescale(rescale_grad, weights[0])]
    return _operator_function("_multi_adamw_update")(*arrays, num_weights=size or len(weights), lrs=lrs, wds=wds, etas=etas, out=out, name=name,
                                                     **kwargs)


def multi_mp_adamw_update(weights: Sequence[NDArray], grads: Sequence[NDArray], mean: Sequence[NDArray], var: Sequence[NDArray],
                          weights32: Sequence[NDArray], rescale_grad: float | NDArray, lrs: Sequence[float], wds: Sequence[float],
                          etas: Sequence[float], out: Any = None, name: str | None = None, size: int = 0, **kwargs: Any) -> Any:
    """One step of AdamW for several float16 weights with float32 copies; see `adamw_update`."""
    arrays = [*_interleaved(weights, grads, mean, var, weights32), _rescale(rescale_grad, weights[0])]
    return _operator_function("_multi_mp_adamw_update")(*arrays, num_weights=size or len(weights), lrs=lrs, wds=wds, etas=etas, out=out, name=name,
                                                        **kwargs)


def multi_lamb_update(weights: Sequence[NDArray], grads: Sequence[NDArray], mean: Sequence[NDArray], var: Sequence[NDArray],
                      step_count: Sequence[int], lrs: Sequence[float], wds: Sequence[float], out: Any = None, num_tensors: int = 0,
                      **kwargs: Any) -> Any:
    """One step of LAMB for several weights: lists of arrays, and of numbers for `step_count`, `lrs` and `wds`."""
    return _operator_function("_multi_lamb_update")(*_interleaved(weights, grads, mean, var), num_tensors=num_tensors or len(weights),
                                                    step_count=step_count, learning_rates=lrs, wds=wds, out=out, **kwargs)


def multi_mp_lamb_update(weights: Sequence[NDArray], grads: Sequence[NDArray], mean: Sequence[NDArray], var: Sequence[NDArray],
                         weights32: Sequence[NDArray], step_count: Sequence[int], lrs: Sequence[float], wds: Sequence[float], out: Any = None,
                         num_tensors: int = 0, **kwargs: Any) -> Any:
    """One step of LAMB for several float16 weights with float32 copies; see `multi_lamb_update`."""
    return _operator_function("_multi_mp_lamb_update")(*_interleaved(weights, grads, mean, var, weights32), num_tensors=num_tensors or len(weights),
                                                       step_count=step_count, learning_rates=lrs, wds=wds, out=out, **kwargs)


# -- loops and branches ---------------------------------------------------------------------------------------------------------


def foreach(body: Callable[[Any, Any], Any], data: Any, init_states: Any) -> tuple[Any, Any]:
    """Run a function over the first axis of `data`, carrying states along. Autograd records it like any other computation.

    Parameters
    ----------
    body : callable
        ``body(row, states)`` returns ``(outputs, new_states)``.
    data : NDArray or list of NDArray
    init_states : NDArray or nested list of NDArray

    Returns
    -------
    outputs, states
        The outputs of all steps stacked along a new first axis, and the last states; structured as `body` returns them.

    Raises
    ------
    AssertionError
        If arguments or results are no arrays.

    Example
    -------
    >>> import mxnet as mx
    >>> outs, total = mx.nd.contrib.foreach(lambda row, s: (row + s, row + s), mx.nd.array([1, 2, 3]), mx.nd.array([0]))
    >>> outs.asnumpy().T, total.asscalar()
    (array([[1., 3., 6.]], dtype=float32), np.float32(6.0))
    """
    flat, structure = nested.flatten(data, NDArray, "data should be an NDArray or a nested list of NDArrays")
    nested.flatten(init_states, NDArray, "init_states should be an NDArray or a nested list of NDArrays")
    states, steps, out_structure = init_states, [], []
    for i in range(flat[0].shape[0]):
        outputs, states = body(nested.regroup([d[i] for d in flat], structure), states)
        outputs, out_structure = nested.flatten(outputs, NDArray, "the output should be an NDArray or a nested list of NDArrays")
        steps.append(outputs)
    stack = _operator_function("stack", type(flat[0]))
    return nested.regroup([stack(*column) for column in zip(*steps)], out_structure), states


def while_loop(cond: Callable[..., Any], func: Callable[..., Any], loop_vars: Any, max_iterations: int | None = None) -> tuple[Any, Any]:
    """Run a function as long as a condition holds. Autograd records it like any other computation.

    Parameters
    ----------
    cond : callable
        ``cond(*loop_vars)`` returns a single value.
    func : callable
        ``func(*loop_vars)`` returns ``(outputs, new_loop_vars)``.
    loop_vars : NDArray or list of NDArray
    max_iterations : int
        The most steps; also the length of the outputs' first axis. Rows of steps that did not happen are 0.

    Returns
    -------
    outputs, loop_vars
        The outputs of all steps stacked along a new first axis, empty if there was none, and the last loop variables.

    Raises
    ------
    ValueError
        If `max_iterations` is missing or no number, or the loop variables are empty or change in number, or outputs change in number or shape.
    """
    if max_iterations is None:
        raise ValueError("while_loop: max_iterations should be specified, received None")
    max_iterations = nested.to_python(max_iterations, int, "max_iteration")
    if len(loop_vars) == 0:
        raise ValueError("while_loop: at least one of loop_vars expected, received none")
    single = isinstance(loop_vars, NDArray)
    loop_vars = [loop_vars] if single else list(loop_vars)
    steps, structure = [], []
    while len(steps) < max_iterations and nested.to_python(cond(*loop_vars), bool, "Return value of cond"):
        outputs, new_vars = func(*loop_vars)
        new_vars = [] if new_vars is None else [new_vars] if isinstance(new_vars, NDArray) else list(new_vars)
        if len(new_vars) != len(loop_vars):
            raise ValueError(f"while_loop: func must return as many loop_vars as it receives, {len(loop_vars)}; received {len(new_vars)}")
        loop_vars = new_vars
        outputs = [] if outputs is None else outputs
        outputs, structure = nested.flatten(outputs, NDArray, "step_output should be an NDArray or a nested list of NDArrays")
        if steps and len(outputs) != len(steps[0]):
            raise ValueError(f"while_loop: each step must give as many outputs as the first, {len(steps[0])}; received {len(outputs)}")
        steps.append(outputs)
    stacked = []
    for i, column in enumerate(zip(*steps), 1):
        shapes = [a.shape for a in column]
        if len(set(shapes)) > 1:
            raise ValueError("\n".join([f"while_loop: output {i} must have the same shape in all steps, received:"]
                                       + [f"  Step {n}, shape is {s}" for n, s in enumerate(shapes)]))
        first = column[0]
        rows = [_operator_function("stack", type(first))(*column)]
        if len(column) < max_iterations:
            rows.append(type(first)._new(first._data.new_zeros((max_iterations - len(column), *first.shape)), first._ctx))
        stacked.append(_operator_function("Concat", type(first))(*rows, dim=0) if len(rows) > 1 else rows[0])
    return nested.regroup(stacked, structure), loop_vars[0] if single else loop_vars


def cond(pred: Any, then_func: Callable[[], Any], else_func: Callable[[], Any]) -> Any:
    """Run one of two functions, each without arguments: `then_func` if the single value `pred` is not zero, else `else_func`.

    Raises
    ------
    ValueError
        If `pred` is not a single value.

    Example
    -------
    >>> import mxnet as mx
    >>> a = mx.nd.array([3.])
    >>> mx.nd.contrib.cond(a < 5, lambda: a + 1, lambda: a - 1).asscalar()
    np.float32(4.0)
    """
    return then_func() if nested.to_python(pred, bool, "pred") else else_func()
