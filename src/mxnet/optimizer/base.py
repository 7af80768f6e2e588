"""The base class of optimizers."""
from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NoReturn

import numpy

from .. import util
from ..base import MXNetError
from ..ndarray import NDArray
from ..ops.dtypes import NAME_TO_TORCH, to_torch
from ..suggestions import did_you_mean, shortened, suggests_arguments
from . import multi_tensor

if TYPE_CHECKING:
    from ..lr_scheduler import LRScheduler
    from ..symbol import Symbol

_HALF = (NAME_TO_TORCH["float16"], NAME_TO_TORCH["bfloat16"])


class Optimizer:
    """The base class of optimizers. Derive from it with the decorator `register`; define ``create_state``, and ``update`` or (MXNet 2) ``step``.

    Parameters
    ----------
    rescale_grad : float
        A factor for all gradients, such as 1 / batch size.
    param_idx2name : dict of int to str, optional
        The names of the weights. Weight decay applies to those that end in ``_weight`` or ``_gamma``.
    wd : float
        The weight decay.
    clip_gradient : float, optional
        Gradients are clipped to between minus this and this.
    learning_rate : float, optional
        0.01 if there is no scheduler either.
    lr_scheduler : LRScheduler, optional
        Changes the learning rate with the number of updates.
    sym : Symbol, optional
        The network, whose variables' ``__lr_mult__`` and ``__wd_mult__`` are used.
    begin_num_update : int
        The initial number of updates.
    multi_precision : bool
        Keep a float32 copy of each half-precision weight and update that.
    param_dict : dict of int to Parameter, optional
        Gluon parameters, whose ``lr_mult`` and ``wd_mult`` are used.
    aggregate_num : int or inf, optional
        The maximal number of weights of one update, which are passed in lists; 0 for single weights without lists. By default 0, or
        ``MXNET_OPTIMIZER_AGGREGATION_SIZE`` for optimizers that are faster with lists.
    use_fused_step : bool, optional
        If True, `update` calls `fused_step` instead of `step` for classes that define them, as in MXNet 2. The optimizers here compute the same
        in both.

    Example
    -------
    >>> import mxnet as mx
    >>> @mx.optimizer.register
    ... class Plain(mx.optimizer.Optimizer):
    ...     def update(self, index, weight, grad, state):
    ...         self._update_count(index)
    ...         weight[:] -= self._get_lr(index) * grad
    >>> weight = mx.nd.ones((2,))
    >>> mx.optimizer.create('plain', learning_rate=0.5).update(0, weight, mx.nd.ones((2,)), None)
    >>> weight.asnumpy()
    array([0.5, 0.5], dtype=float32)
    """

    opt_registry: dict[str, type[Any]] = {}  # lower-case name -> class
    use_fused_step = False
    _scales_by_norms = False  # True if the step of an element depends on the norms of the weight: parts of it can't be updated alone
    _has_kernel = False  # True if `_update_one` passes a rule to `steps.apply`: the updates of a step are collected on a GPU
    _as_mxnet2 = False  # True if made after set_version("2.0"), for a class with other defaults or rules in MXNet 2

    @suggests_arguments
    def __init__(self, rescale_grad: float = 1.0, param_idx2name: dict[int, str] | None = None, wd: float = 0.0, clip_gradient: float | None = None,
                 learning_rate: float | None = None, lr_scheduler: LRScheduler | None = None, sym: Symbol | None = None, begin_num_update: int = 0,
                 multi_precision: bool = False, param_dict: dict[int, Any] | None = None, aggregate_num: int | None = None,
                 use_fused_step: bool | None = None):
        if not isinstance(param_idx2name, (dict, type(None))):
            raise TypeError(f"param_idx2name should be a dict of param indexes to names, received {type(param_idx2name).__name__}")
        if lr_scheduler is None:
            learning_rate = 0.01 if learning_rate is None else learning_rate
        elif learning_rate is not None and lr_scheduler.base_lr != learning_rate:
            warnings.warn(f"the schedule's learning rate, {lr_scheduler.base_lr}, has been overwritten by the optimizer's, {learning_rate}",
                          UserWarning, stacklevel=3)
            lr_scheduler.base_lr = learning_rate
        self.rescale_grad, self.wd, self.clip_gradient, self.multi_precision = rescale_grad, wd, clip_gradient, multi_precision
        self.lr: Any = learning_rate  # None where a scheduler came without one
        self.lr_scheduler = lr_scheduler
        self.begin_num_update = self.num_update = begin_num_update
        self._all_index_update_counts: dict[int, dict[Any, int]] = {0: {}}  # device -> {index: count}
        self._index_update_count = self._all_index_update_counts[0]
        self.aggregate_num = 0 if aggregate_num is None else _checked_count(aggregate_num)
        if use_fused_step is not None:
            self.use_fused_step = bool(use_fused_step)
        self.idx2name: dict[Any, str] = dict(param_idx2name or {})
        self.sym_info = (sym.attr_dict(), sym.list_arguments()) if sym is not None else ()
        self.param_dict = param_dict or {}
        self.allow_np_array = util.is_np_array()
        self.set_lr_mult({})
        self.set_wd_mult({})

    @staticmethod
    def register(klass: type[Any]) -> type[Any]:
        """Register an optimizer class under its name in lower case; for use as a decorator.

        Example
        -------
        >>> @mx.optimizer.register
        ... class SignDescent(mx.optimizer.Optimizer):
        ...     def update(self, index, weight, grad, state):
        ...         weight -= self._get_lr(index) * mx.nd.sign(grad)
        >>> weight = mx.nd.ones(2)
        >>> mx.optimizer.create('signdescent', learning_rate=0.1).update(0, weight, mx.nd.array([5, -5]), None)
        >>> weight.asnumpy()
        array([0.9, 1.1], dtype=float32)
        """
        if not isinstance(klass, type):
            raise TypeError(f"register: expected an optimizer class, received {shortened(klass)}")
        name = klass.__name__.lower()
        known = Optimizer.opt_registry.get(name)
        if known is not None:
            warnings.warn(f"WARNING: New optimizer {klass.__module__}.{klass.__name__} is overriding existing optimizer "
                          f"{known.__module__}.{known.__name__}", stacklevel=2)
        Optimizer.opt_registry[name] = klass
        return klass

    @staticmethod
    def create_optimizer(name: str, **kwargs: Any) -> Optimizer:
        """Create an optimizer by its case-insensitive name.

        Raises
        ------
        ValueError
            If no optimizer has that name.

        Example
        -------
        >>> import mxnet as mx
        >>> mx.optimizer.create('sgd', learning_rate=0.1).learning_rate
        0.1
        """
        klass = Optimizer.opt_registry.get(name.lower())
        if klass is None:
            raise ValueError(f"Cannot find optimizer {name}; registered are {', '.join(sorted(Optimizer.opt_registry))}"
                             f"{did_you_mean(name, Optimizer.opt_registry)}")
        return klass(**kwargs)

    # -- updates ---------------------------------------------------------------------------------------------------------

    def create_state(self, index: int | str, weight: NDArray) -> Any:
        """Return the initial state of the optimizer for a weight: None, an NDArray, or a tuple of them."""

    def _wants_master(self, weight: NDArray) -> bool:
        """Return True if a weight is updated through a float32 copy; warn about half-precision weights without one."""
        half = is_half(weight)
        if half and not self.multi_precision:
            warnings.warn(f"{type(self).__name__}: weights of half precision lose small updates; multi_precision=True updates a float32 copy",
                          stacklevel=4)
        return half and self.multi_precision

    def _master_of(self, weight: NDArray, state: Any) -> NDArray | None:
        """Return the float32 copy of a half-precision weight in its state, or None."""
        position = getattr(type(self).create_state_multi_precision, "master_position", None)
        position = 0 if position is not None and self._as_mxnet2 else position
        return state[position] if position is not None and self.multi_precision and is_half(weight) else None

    def create_state_multi_precision(self, index: int | str, weight: NDArray) -> Any:
        """Return `create_state`'s result; with `multi_precision` for half-precision weights ``(float32 copy, state)``."""
        if self._wants_master(weight):
            master = weight.astype(numpy.float32)
            return master, self.create_state(index, master)
        return self.create_state(index, weight)

    create_state_multi_precision.master_position = 0  # type: ignore[attr-defined]  # another class's method has none

    def update(self, index: Any, weight: Any, grad: Any, state: Any) -> None:
        """Update a weight in place, or several.

        Parameters
        ----------
        index : int, or list of int
            The number of the weight.
        weight, grad : NDArray, or list of NDArray
        state
            The result of `create_state`, or a list of such results; it is updated in place.
        """
        if isinstance(index, (list, tuple)):
            for w, g in zip(weight, grad):
                check_arrays(w, g)
            (self.fused_step if self.use_fused_step else self.step)(index, weight, grad, state)
        elif type(self).step is not Optimizer.step or type(self).fused_step is not Optimizer.fused_step:
            check_arrays(weight, grad)
            (self.fused_step if self.use_fused_step else self.step)([index], [weight], [grad], [state])
        else:
            self._update_one(index, weight, grad, state)

    def _follows_rule(self, index: int | str, grad: NDArray) -> bool:
        """Return True if MXNet 2's rule has another result than `_update_one` for this weight."""
        return True

    def _update_one(self, index: int | str, weight: NDArray, grad: NDArray, state: Any) -> None:
        raise NotImplementedError(f"{type(self).__name__} must define update(index, weight, grad, state)")

    def step(self, indices: Sequence[int | str], weights: Sequence[NDArray], grads: Sequence[NDArray], states: Sequence[Any]) -> None:
        """Update several weights in place; a class in the style of MXNet 2 defines this instead of `update`.

        Parameters
        ----------
        indices : list of int
            The numbers of the weights.
        weights, grads : list of NDArray
        states : list
            The result of `create_state` for each.
        """
        for index, weight, grad, state in zip(indices, weights, grads, states):
            self._update_one(index, weight, grad, state)

    def fused_step(self, indices: Sequence[int | str], weights: Sequence[NDArray], grads: Sequence[NDArray], states: Sequence[Any]) -> None:
        """Do the same as `step`; a class may override this with fewer or faster operations."""
        self.step(indices, weights, grads, states)

    def update_multi_precision(self, index: Any, weight: Any, grad: Any, state: Any) -> None:
        """Update a weight as `update` does; with `multi_precision`, half-precision weights through their float32 copy."""
        if isinstance(index, (list, tuple)):
            self._update_several(index, weight, grad, state)
        elif self.multi_precision and is_half(weight):
            master, own_state = state
            if multi_tensor.takes_half(weight, grad, master):
                multi_tensor.through_master(weight, master, lambda: self.update(index, master, grad, own_state))
                return
            self.update(index, master, grad.astype(numpy.float32), own_state)
            weight[:] = master
        else:
            self.update(index, weight, grad, state)

    def _update_several(self, indices: Sequence[int | str], weights: Sequence[NDArray], grads: Sequence[NDArray], states: Sequence[Any]) -> None:
        """Run `update_multi_precision` for weights in lists, with one call of `update`."""
        through = [self.multi_precision and is_half(weight) for weight in weights]
        masters, gradients, own = zip(*((state[0], grad.astype(numpy.float32), state[1]) if half else (weight, grad, state)
                                        for half, weight, grad, state in zip(through, weights, grads, states)))
        self.update(list(indices), list(masters), list(gradients), list(own))
        for half, weight, master in zip(through, weights, masters):
            if half:
                weight[:] = master

    def _update_each(self, indices: Sequence[int | str], weights: Sequence[NDArray], grads: Sequence[NDArray], states: Sequence[Any]) -> None:
        """Run `update_multi_precision` for several weights, one by one; an optimizer may override this with fewer calls of torch."""
        if self._has_kernel and multi_tensor.applies(self, weights):
            with multi_tensor.collected():
                for index, weight, grad, state in zip(indices, weights, grads, states):
                    self.update_multi_precision(index, weight, grad, state)
            return
        for index, weight, grad, state in zip(indices, weights, grads, states):
            self.update_multi_precision(index, weight, grad, state)

    def _begin(self, index: int | str, weight: NDArray, grad: NDArray) -> tuple[float, float, int]:
        """Count an update; return its learning rate, weight decay and number (from 1)."""
        check_arrays(weight, grad)
        self._update_count(index)
        return self._get_lr(index), self._get_wd(index), self._index_update_count[index]

    def _begin_each(self, indices: Sequence[int | str], weights: Sequence[NDArray], grads: Sequence[NDArray]) -> list[tuple[float, float, int]]:
        """Return the results of `_begin` for several weights; a learning rate that is computed for all at once is the same if their numbers are."""
        kind, counts = type(self), self._index_update_count
        numbers = {counts.get(index) for index in indices}
        if len(numbers) > 1 or None in numbers or kind._get_lr is not Optimizer._get_lr or kind._get_wd is not Optimizer._get_wd:
            return [self._begin(index, weight, grad) for index, weight, grad in zip(indices, weights, grads)]
        if not all([isinstance(array, NDArray) for array in (*weights, *grads)]):
            for weight, grad in zip(weights, grads):
                check_arrays(weight, grad)
        self._update_count(indices)
        number = counts[indices[0]]
        return [(lr, wd, number) for lr, wd in zip(self._get_lrs(indices), self._get_wds(indices))]

    # -- learning rates and weight decays --------------------------------------------------------------------------------

    @property
    def learning_rate(self) -> float:
        """The current learning rate."""
        return self.lr if self.lr_scheduler is None else self.lr_scheduler(self.num_update)

    def set_learning_rate(self, lr: float) -> None:
        """Set the learning rate.

        Raises
        ------
        UserWarning
            If there is a scheduler, which sets it.
        """
        if self.lr_scheduler is not None:
            raise UserWarning("set_learning_rate: this optimizer has an lr_scheduler, which sets the learning rate")
        self.lr = lr

    def set_lr_scale(self, args_lrscale: Any) -> NoReturn:
        """Raise an error: removed; use `set_lr_mult`."""
        raise DeprecationWarning("set_lr_scale is gone; use set_lr_mult")

    def _multipliers_of_symbol(self, key: str) -> dict[str, float]:
        if not self.sym_info:
            return {}
        attributes, arguments = self.sym_info
        texts = {name: attributes[name][key] for name in arguments if key in attributes.get(name, ())}
        try:
            return {name: float(value) for name, value in texts.items()}
        except ValueError as error:
            raise MXNetError(f"{key} of the Symbol's variables must be numbers: {error}") from None

    def set_lr_mult(self, args_lr_mult: dict[Any, float]) -> None:
        """Set the factors of the learning rate.

        Parameters
        ----------
        args_lr_mult : dict of int or str to float
            By number or name; these override the Symbol's ``__lr_mult__`` attributes. The others are 1.
        """
        self.lr_mult = {**self._multipliers_of_symbol("__lr_mult__"), **args_lr_mult}

    _decaying: tuple[str, ...] = ("_weight", "_gamma")  # the suffixes of weights with weight decay

    def set_wd_mult(self, args_wd_mult: dict[Any, float]) -> None:
        """Set the factors of the weight decay.

        Parameters
        ----------
        args_wd_mult : dict of int or str to float
            By number or name; these override the Symbol's ``__wd_mult__`` attributes. The others are 1 for weights and gammas, else 0.
        """
        self.wd_mult = {name: 0.0 for name in self.idx2name.values() if not name.endswith(self._decaying)}
        self.wd_mult.update(self._multipliers_of_symbol("__wd_mult__"))
        self.wd_mult.update(args_wd_mult)

    def _set_current_context(self, device_id: int) -> None:
        # Each device has counts of its own, so that one step of several devices with a shared optimizer counts once.
        self._index_update_count = self._all_index_update_counts.setdefault(device_id, {})

    _carried_counts: dict = {}  # index -> the initial count of devices that have not updated that weight

    def _carry_counts(self) -> None:
        """Set the initial counts of all devices to the highest ones, since weights move between devices."""
        carried: dict = {}
        for counts in self._all_index_update_counts.values():
            for i, count in counts.items():
                carried[i] = max(count, carried.get(i, 0))
        for counts in self._all_index_update_counts.values():
            counts.update(carried)
        self._carried_counts = carried

    def _update_count(self, index: Any) -> None:
        counts = self._index_update_count
        for i in index if isinstance(index, (list, tuple)) else (index,):
            counts[i] = number = (counts[i] if i in counts else self._carried_counts.get(i, self.begin_num_update)) + 1
            if number > self.num_update:
                self.num_update = number

    def _scaled(self, value: float, indices: Sequence[int | str], multipliers: dict[Any, float], attribute: str) -> list[float]:
        values, parameters = [], self.param_dict
        for index in indices:
            if index in parameters:
                factor = getattr(parameters[index], attribute)
            elif index in multipliers:
                factor = multipliers[index]
            elif index in self.idx2name:
                factor = multipliers.get(self.idx2name[index], 1.0)
            else:
                factor = 1.0
            values.append(value * factor)
        return values

    def _get_lrs(self, indices: Sequence[int | str]) -> list[float]:
        """Return the learning rates of the weights with these numbers."""
        return self._scaled(self.learning_rate, indices, self.lr_mult, "lr_mult")

    def _get_lr(self, index: int | str) -> float:
        return self._get_lrs([index])[0]

    def _get_wds(self, indices: Sequence[int | str]) -> list[float]:
        """Return the weight decays of the weights with these numbers."""
        return self._scaled(self.wd, indices, self.wd_mult, "wd_mult")

    def _get_wd(self, index: int | str) -> float:
        return self._get_wds([index])[0]

    def __getstate__(self) -> dict[str, Any]:
        state = self.__dict__.copy()
        del state["param_dict"]  # the weights themselves
        state.pop("_carried_counts", None)  # derived from the other counts
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        state.pop("_carried_counts", None)
        self.__dict__ = state
        self.param_dict = {}


def _checked_count(number: Any) -> float:
    """Check the maximal number of weights of one update, and return it."""
    if number == math.inf:
        return math.inf
    if isinstance(number, bool) or not isinstance(number, (int, numpy.integer)) or number < 0:
        raise MXNetError(f"aggregate_num must be a number of weights, 0 or more, or inf for all; received {shortened(number)}")
    return int(number)


def is_half(weight: NDArray) -> bool:
    return to_torch(weight.dtype) in _HALF


def check_arrays(weight: NDArray, grad: NDArray) -> None:
    """Raise an MXNetError unless both are NDArrays."""
    for name, array in (("weight", weight), ("grad", grad)):
        if not isinstance(array, NDArray):
            raise MXNetError(f"an optimizer updates NDArrays; `{name}` is {type(array).__name__}")


register = Optimizer.register
create = Optimizer.create_optimizer
