"""Loops and branches over ``mx.np`` arrays; a hybridized block's trace takes them as they ran."""
from collections.abc import Callable
from typing import Any

from ..ndarray import NDArray
from ..ndarray.contrib import cond as _cond
from ..ndarray.contrib import foreach as _foreach
from ..ndarray.contrib import while_loop as _while_loop
from ..numpy.multiarray import ndarray


def _as_np(value: Any) -> Any:
    if isinstance(value, NDArray):
        return value.as_np_ndarray()
    return type(value)(_as_np(v) for v in value) if isinstance(value, (list, tuple)) else value


def foreach(body: Callable[[Any, Any], Any], data: Any, init_states: Any) -> tuple[Any, Any]:
    """Run ``body(row, states) -> (outputs, new_states)`` over the first axis of `data`, carrying states along.

    Returns
    -------
    outputs, states
        The outputs of all steps stacked along a new first axis, and the last states; structured as `body` returns them.

    Example
    -------
    >>> outs, total = mx.npx.foreach(lambda row, s: (row + s, row + s), mx.np.array([1, 2, 3]), mx.np.array(0))
    >>> outs, total
    (array([1., 3., 6.]), array(6.))
    """
    return _as_np(_foreach(body, data, init_states))


def while_loop(cond: Callable[..., Any], func: Callable[..., Any], loop_vars: Any, max_iterations: int | None = None) -> tuple[Any, Any]:
    """Run ``func(*loop_vars) -> (outputs, new_loop_vars)`` as long as ``cond(*loop_vars)`` holds, at most `max_iterations` times.

    Returns
    -------
    outputs, loop_vars
        The outputs of all steps stacked along a new first axis, with rows of 0 for steps that did not happen, and the last loop variables.

    Example
    -------
    >>> outs, last = mx.npx.while_loop(lambda i: i < 3, lambda i: (i * 10, i + 1), [mx.np.array(1)], max_iterations=3)
    >>> outs, last
    (array([10., 20.,  0.]), [array(3.)])
    """
    return _as_np(_while_loop(cond, func, loop_vars, max_iterations))


def cond(pred: Any, then_func: Callable[..., Any], else_func: Callable[..., Any], inputs: Any = (), name: str = "cond") -> Any:
    """Run one of two functions on `inputs`: `then_func` if `pred` is not zero, else `else_func`. `pred` is a single value, or a function of `inputs`.

    Example
    -------
    >>> a = mx.np.array(3)
    >>> mx.npx.cond(lambda x: x < 5, lambda x: x + 1, lambda x: x - 1, [a])
    array(4.)
    """
    given = [inputs] if isinstance(inputs, ndarray) else list(inputs)
    chosen = pred(*given) if callable(pred) else pred
    return _as_np(_cond(chosen, lambda: then_func(*given), lambda: else_func(*given)))
