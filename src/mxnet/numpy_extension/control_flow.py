"""Loops and branches over ``mx.np`` arrays; in a hybridized `forward` each call is traced as it runs."""
from collections.abc import Callable
from typing import Any

from ..ndarray import contrib
from ..suggestions import shortened

__all__ = ["cond", "foreach", "while_loop"]


def foreach(body: Callable[[Any, Any], Any], data: Any, init_states: Any) -> tuple[Any, Any]:
    """Run a function over the first axis of `data`, carrying states along. It is recorded as any computation is.

    Parameters
    ----------
    body : callable
        ``body(row, states)`` returns ``(outputs, new_states)``. A HybridBlock, or a function.
    data : ndarray or list of ndarray
    init_states : ndarray or nested list of ndarray

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
    >>> mx.npx.foreach(lambda row, s: (row + s, row + s), mx.np.array([1, 2, 3]), mx.np.array(0))
    (array([1., 3., 6.]), array(6.))
    """
    return contrib.foreach(body, data, init_states)


def while_loop(cond: Callable[..., Any], func: Callable[..., Any], loop_vars: Any, max_iterations: int | None = None) -> tuple[Any, Any]:
    """Run a function as long as a condition holds. It is recorded as any computation is.

    Parameters
    ----------
    cond : callable
        ``cond(*loop_vars)`` returns a single value.
    func : callable
        ``func(*loop_vars)`` returns ``(outputs, new_loop_vars)``.
    loop_vars : ndarray or list of ndarray
    max_iterations : int
        The most steps; also the length of the outputs' first axis. Rows of steps that did not happen are 0.

    Returns
    -------
    outputs, loop_vars
        The outputs of all steps stacked along a new first axis, empty if there was none, and the last loop variables.

    Raises
    ------
    ValueError
        As in `mx.nd.contrib.while_loop`.

    Example
    -------
    >>> outputs, (n,) = mx.npx.while_loop(lambda n: n < 3, lambda n: (n * 10, [n + 1]), [mx.np.array(1)], max_iterations=4)
    >>> outputs, n
    (array([10., 20.,  0.,  0.]), array(3.))
    """
    return contrib.while_loop(cond, func, loop_vars, max_iterations)


def cond(pred: Any, then_func: Callable[..., Any], else_func: Callable[..., Any], inputs: Any = ()) -> Any:
    """Run one of two functions: `then_func` if a single value is not zero, else `else_func`.

    Parameters
    ----------
    pred : array or callable
        The value, or ``pred(*inputs)`` returns it.
    then_func, else_func : callable
        Get `inputs`.
    inputs : ndarray or list of ndarray
        None by default: the functions may use other arrays without listing them.

    Raises
    ------
    ValueError
        If `pred` is not a single value.
    TypeError
        If a function is not callable.

    Example
    -------
    >>> a = mx.np.array(3.)
    >>> mx.npx.cond(lambda x: x < 5, lambda x: x + 1, lambda x: x - 1, a)
    array(4.)
    """
    for function in (then_func, else_func):
        if not callable(function):
            raise TypeError(f"cond: functions expected as then_func and else_func, received {shortened(function)}")
    arguments = list(inputs) if isinstance(inputs, (list, tuple)) else [inputs]
    value = pred(*arguments) if callable(pred) else pred
    return contrib.cond(value, lambda: then_func(*arguments), lambda: else_func(*arguments))
