"""An optimizer with the states of all weights, which key-value stores and trainers call."""
from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .. import openmp
from ..base import MXNetError
from ..ndarray import NDArray, where
from . import pickles
from .base import Optimizer

if TYPE_CHECKING:
    from ..context import Context

_FEW = 1 << 17  # the total number of elements below which an update runs on one thread, see `openmp`


def _check_shapes(index: int | str, weight: NDArray, state: Any, made: Any) -> None:
    """Refuse a loaded state whose structure differs from a new state of the weight: updates would write out of bounds.

    Raises
    ------
    MXNetError
        If an array of the state has another shape, or the state has other arrays than the optimizer needs.
    """
    if isinstance(made, (list, tuple)):
        if not isinstance(state, (list, tuple)) or len(state) != len(made):
            raise MXNetError(f"the loaded optimizer state of weight {index!r} has {len(state) if isinstance(state, (list, tuple)) else 1} parts, "
                             f"the optimizer keeps {len(made)}. Load the states of the same optimizer")
        for part, own in zip(state, made):
            _check_shapes(index, weight, part, own)
    elif isinstance(made, NDArray) and not isinstance(state, NDArray):
        raise MXNetError(f"the loaded optimizer state of weight {index!r} has {type(state).__name__} where an array is needed. "
                         "Load the states of the same optimizer")
    elif isinstance(state, NDArray) and isinstance(made, NDArray) and state.shape != made.shape:
        raise MXNetError(f"the loaded optimizer state of weight {index!r} has shape {state.shape}; a weight of shape {weight.shape} needs "
                         f"{made.shape}. Load the states that were saved with this network")
    elif isinstance(state, NDArray) and isinstance(made, NDArray) and state.stype != made.stype:
        raise MXNetError(f"the loaded optimizer state of weight {index!r} is {state.stype}, where {made.stype} is needed. "
                         "Load the states that were saved with this network")
    elif isinstance(state, NDArray) and isinstance(made, NDArray) and state.dtype != made.dtype:
        raise MXNetError(f"the loaded optimizer state of weight {index!r} is {state.dtype.__name__}; a weight of type {weight.dtype.__name__} needs "
                         f"{made.dtype.__name__}. Load the states that were saved with this network, and cast it afterwards")


class Updater:
    """Updates weights by their numbers, and keeps the optimizer's states.

    Parameters
    ----------
    optimizer : Optimizer

    Attributes
    ----------
    states : dict of int to state
        The optimizer's state of each weight.

    Example
    -------
    >>> import mxnet as mx
    >>> updater, weight = mx.optimizer.get_updater(mx.optimizer.SGD(learning_rate=0.5)), mx.nd.ones((2,))
    >>> updater(0, mx.nd.ones((2,)), weight)
    >>> weight.asnumpy()
    array([0.5, 0.5], dtype=float32)
    """

    def __init__(self, optimizer: Optimizer):
        self.optimizer = optimizer
        self.states: dict[Any, Any] = {}
        self.states_synced: dict[Any, bool] = {}  # True if a state is known to be on its weight's device
        self.aggregate_updates = optimizer.aggregate_num > 0
        self._numbers = 0  # the number of elements of all weights with states
        self._states_matched = True  # False after `set_states`, until a module has matched them with its weights
        self._loaded = False  # True if states, or also the optimizer, were loaded

    def __call__(self, index: Any, grad: Any, weight: Any) -> None:
        """Update a weight, or several in lists.

        Parameters
        ----------
        index : int or list of int
        grad, weight : NDArray or list of NDArray

        Raises
        ------
        MXNetError
            If loaded states or a loaded optimizer can't update it, for any reason.
        """
        if not self._loaded:
            if self._numbers <= _FEW:
                openmp.alone(self._update, index, grad, weight)
            else:
                self._update(index, grad, weight)
            return
        try:
            self._update(index, grad, weight)
        except MXNetError:
            raise
        except Exception as error:
            raise MXNetError(f"weight {index}: {type(self.optimizer).__name__} fails with the states that were loaded: {error!r}") from error

    def _update(self, index: Any, grad: Any, weight: Any) -> None:
        if isinstance(index, (list, tuple)):
            indices, grads, weights = [i.decode() if isinstance(i, bytes) else i for i in index] if bytes in map(type, index) else index, grad, weight
        else:
            indices, grads, weights = [index.decode() if isinstance(index, bytes) else index], [grad], [weight]
        optimizer, states = self.optimizer, self.states
        if weights:
            optimizer._set_current_context(weights[0]._ctx.device_id)
        if not all(map(states.__contains__, indices)) or not all(map(self.states_synced.get, indices)):
            self._prepare(indices, weights)
        if not self.aggregate_updates:
            optimizer._update_each(indices, weights, grads, [states[i] for i in indices])
            return
        by_type: dict[Any, Any] = {}
        for entry in zip(indices, weights, grads):
            by_type.setdefault(entry[1].dtype, []).append(entry)
        for entries in by_type.values():
            size = int(min(optimizer.aggregate_num, len(entries)))
            for start in range(0, len(entries), size):
                some, ws, gs = zip(*entries[start:start + size])
                optimizer.update_multi_precision(some, ws, gs, [states[i] for i in some])

    def _prepare(self, indices: Sequence[Any], weights: Sequence[NDArray]) -> None:
        """Make the states that are missing, and move loaded ones to the devices of their weights."""
        optimizer, states = self.optimizer, self.states
        for i, w in zip(indices, weights):
            if i not in states:
                states[i] = optimizer.create_state_multi_precision(i, w)
                self.states_synced[i] = True
                self._numbers += w.size
            elif not self.states_synced[i]:
                _check_shapes(i, w, states[i], optimizer.create_state_multi_precision(i, w))
                states[i] = self.sync_state_context(states[i], w.context)
                self.states_synced[i] = True

    def _weight_replaced(self, index: int | str, weight: NDArray) -> None:
        """Copy a half-precision weight that the program has set to the float32 copy, which keeps its digits where both agree."""
        master = self.optimizer._master_of(weight, self.states[index]) if index in self.states else None
        if master is not None:
            value, copied = weight.as_in_context(master.context), master.astype(weight.dtype)
            master[:] = where(copied == value, master, value.astype(master.dtype))

    def sync_state_context(self, state: Any, context: Context) -> Any:
        """Return the state on another device."""
        if isinstance(state, NDArray):
            return state._on(context)
        if isinstance(state, (tuple, list)):
            return type(state)(self.sync_state_context(s, context) for s in state)
        return state

    def set_states(self, states: bytes) -> None:
        """Set the states from a result of `get_states`, of this package or of MXNet.

        Parameters
        ----------
        states : bytes

        Raises
        ------
        MXNetError
            If the bytes are no states, or damaged.
        """
        loaded = pickles.loads(states, "the optimizer states")
        optimizer = self.optimizer
        if isinstance(loaded, tuple) and len(loaded) == 2:
            loaded, optimizer = loaded
            if isinstance(getattr(optimizer, "_all_index_update_counts", None), dict):
                optimizer._carry_counts()
        if not isinstance(loaded, dict) or not isinstance(optimizer, Optimizer):
            raise MXNetError(f"the optimizer states must be a dict, or a dict and an optimizer; received {type(loaded).__name__} and "
                             f"{type(optimizer).__name__}")
        number = getattr(optimizer, "aggregate_num", None)
        if not isinstance(number, int) and number != math.inf:
            raise MXNetError(f"the optimizer states hold a damaged optimizer: {type(optimizer).__name__} without the number aggregate_num")
        self._loaded, self._states_matched = True, False
        self.states, self.optimizer = loaded, optimizer
        self.aggregate_updates = optimizer.aggregate_num > 0
        self.states_synced = dict.fromkeys(loaded, False)

    def get_states(self, dump_optimizer: bool = False) -> bytes:
        """Return the states as bytes for a file; with the optimizer itself if `dump_optimizer`."""
        return pickles.dumps((self.states, self.optimizer) if dump_optimizer else self.states)


def get_updater(optimizer: Optimizer) -> Updater:
    """Return an `Updater` of an optimizer.

    Example
    -------
    >>> update = mx.optimizer.get_updater(mx.optimizer.SGD(learning_rate=0.1))
    >>> weight = mx.nd.ones(2)
    >>> update(0, mx.nd.array([1, -1]), weight)
    >>> weight.asnumpy()
    array([0.9, 1.1], dtype=float32)
    """
    return Updater(optimizer)
