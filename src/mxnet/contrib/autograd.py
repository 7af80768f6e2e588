"""The interface to gradients that preceded `mxnet.autograd`, for old programs."""
from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from .. import autograd as _autograd
from ..autograd import mark_variables
from ..ndarray import NDArray, zeros_like
from ..ndarray.dispatch import Scope


def set_is_training(is_train: bool) -> bool:
    """Turn recording and training mode on or off together; returns whether it recorded before."""
    _autograd.set_training(is_train)
    return _autograd.set_recording(is_train)


class TrainingStateScope(Scope):
    """A ``with`` block that records and trains, or does neither."""

    def __init__(self, enter_state: bool):
        super().__init__(enter_state, enter_state)


def train_section() -> TrainingStateScope:
    """Return a ``with`` block whose operators are recorded and run as in training."""
    return TrainingStateScope(True)


def test_section() -> TrainingStateScope:
    """Return a ``with`` block inside of `train_section` whose operators are not recorded and run as in prediction."""
    return TrainingStateScope(False)


def backward(outputs: list[NDArray], out_grads: list[NDArray] | None = None, retain_graph: bool = False) -> None:
    """Compute the gradients of all marked arrays that `outputs` (a list) were computed from.

    Raises
    ------
    AssertionError
        If `outputs` is no list, or `out_grads` is not as long.
    """
    if not isinstance(outputs, (list, tuple)):
        raise AssertionError(f"outputs must be a list or tuple of NDArrays, received {type(outputs).__name__}")
    if out_grads is not None and len(out_grads) != len(outputs):
        raise AssertionError(f"one of out_grads expected for each of {len(outputs)} outputs, received {len(out_grads)}")
    _autograd.backward(list(outputs), out_grads, retain_graph)


def compute_gradient(outputs: list[NDArray]) -> None:
    """Deprecated: use `backward`."""
    backward(outputs)


def grad_and_loss(func: Callable[..., Any], argnum: Any = None) -> Callable[..., Any]:
    """Return a function that returns the list of gradients of its arguments, and the result of `func`.

    Parameters
    ----------
    func : callable
        From arrays to arrays.
    argnum : int or list of int, optional
        Which arguments to differentiate by; by default all.

    Example
    -------
    >>> import mxnet as mx
    >>> (grad,), loss = mx.contrib.autograd.grad_and_loss(lambda x: x * x)(mx.nd.array([3.]))
    >>> grad.asscalar(), loss.asscalar()
    (np.float32(6.0), np.float32(9.0))
    """
    @functools.wraps(func)
    def wrapped(*args):
        positions = range(len(args)) if argnum is None else argnum if isinstance(argnum, list) else [argnum]
        variables = [args[i] for i in positions]
        for x in variables:
            if not isinstance(x, NDArray):
                raise AssertionError(f"type of autograd input should be NDArray, received {type(x).__name__}")
        grads = [zeros_like(x) for x in variables]
        mark_variables(variables, grads)
        with train_section():
            outputs = func(*args)
        backward([outputs] if isinstance(outputs, NDArray) else outputs)
        return grads, outputs
    return wrapped


def grad(func: Callable[..., Any], argnum: Any = None) -> Callable[..., Any]:
    """Return a function that returns the gradients of its arguments, a list; parameters as for `grad_and_loss`."""
    both = grad_and_loss(func, argnum)

    @functools.wraps(func)
    def wrapped(*args):
        return both(*args)[0]
    return wrapped


__all__ = ["NDArray", "TrainingStateScope", "backward", "compute_gradient", "grad", "grad_and_loss", "mark_variables", "set_is_training",
           "test_section", "train_section", "zeros_like"]
