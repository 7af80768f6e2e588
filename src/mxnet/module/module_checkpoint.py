"""The training of a `Module`, for checkpoints."""
from __future__ import annotations

from typing import Any

import torch

from ..base import MXNetError
from ..optimizer import Optimizer, Updater
from ..training_checkpoint import StatePart, Training, Weight
from ..training_checkpoint.training import DIVIDED, OWN, SHARED


class ModuleTraining(Training):
    """The content of checkpoints of a module.

    Parameters
    ----------
    module : Module
    doing : str
        The name of the call in errors.

    Raises
    ------
    MXNetError
        If the module has no optimizer yet, if parameters are of storage type row_sparse, or if the kvstore is not one in step.
    """

    def __init__(self, module: Any, doing: str) -> None:
        module._require(params=True, optimizer=True)
        self._module, store = module, module._kvstore
        group = module._exec_group
        if store is None and len(module._context) > 1:
            raise MXNetError(f"{doing}: without a kvstore each of the devices {module._context} has weights of its own; use kvstore='device'")
        if store is not None and "async" in store.type:
            raise MXNetError(f"{doing}: the workers of a kvstore of type {store.type!r} are at different batches; use 'dist_sync'")
        self._updater = store._updater if module._update_on_kvstore else module._updater
        if not isinstance(self._updater, Updater):
            raise MXNetError(f"{doing}: the optimizer is an updater of its own, whose states are not known")
        for name, arrays in zip(group.param_names, group.param_arrays):
            if arrays[0].stype != "default":
                raise MXNetError(f"{doing}: parameter '{name}' of storage type {arrays[0].stype} is the kvstore's; use save_checkpoint")
        self.group = getattr(store, "_group", None)  # which divided parameters need, too

    def weights(self) -> dict[str, Weight]:
        """Return parameters and auxiliary states."""
        group, weights = self._module._exec_group, {}
        for name, arrays in zip(group.param_names, group.param_arrays):
            if group.split is not None and name in group.split.parts:
                weights[name] = Weight(group.split.shape(name, arrays), list(zip(self._first_elements(name, arrays), arrays)), DIVIDED)
            else:
                weights[name] = Weight(arrays[0].shape, [(0, array) for array in arrays], SHARED)
        for name, arrays in zip(group.aux_names, group.aux_arrays):
            size = torch.Size(arrays[0].shape).numel()
            weights[name] = Weight(arrays[0].shape, [(i * size, array) for i, array in enumerate(arrays)], OWN)
        return weights

    def _first_elements(self, name: str, arrays: Any) -> list[int]:
        """Return the numbers of the first elements of a divided parameter's parts."""
        return [part.begin * (array.size // array.shape[0]) for part, array in zip(self._module._split.parts[name], arrays)]

    def prepare(self, shapes: dict[str, tuple[int, ...]]) -> None:
        """Do nothing: a bound module has memory for all weights."""

    def state_parts(self, anew: bool = False) -> dict[str, list[StatePart]]:
        """Return the places of the states of all parameters that are updated."""
        module, group, parts = self._module, self._module._exec_group, {}
        numbers = {name: i for i, name in enumerate(module._updated_names)}
        if anew and module._update_on_kvstore:
            module._kvstore._divide_states_anew()
        for name, arrays, gradients in zip(group.param_names, group.param_arrays, group.grad_arrays):
            if gradients[0] is None or name not in numbers:
                continue
            if module._split is not None and name in module._split.parts:
                split = module._split
                parts[name] = [StatePart(split.updater, split.number(part), begin, array.shape, array.ctx, True)
                               for part, begin, array in zip(split.parts[name], self._first_elements(name, arrays), arrays)]
            elif module._update_on_kvstore:
                own = module._kvstore._state_range(name, arrays[0].size)
                begin, shape = (0, arrays[0].shape) if own is None else (own[0], (own[1] - own[0],))
                parts[name] = [StatePart(self._updater, name, begin, shape, arrays[0].ctx, own is not None)]
            else:
                parts[name] = [StatePart(self._updater, numbers[name] * len(arrays) + k, 0, array.shape, array.ctx, False)
                               for k, array in enumerate(arrays)]
        return parts

    def optimizer(self) -> Optimizer:
        """Return the optimizer of the updater."""
        return self._updater.optimizer

    def replaced(self, optimizer: Optimizer) -> None:
        """Take over the optimizer, and copy the weights to a kvstore that updates them."""
        module, before = self._module, self._module._optimizer
        optimizer.rescale_grad, optimizer.idx2name = before.rescale_grad, before.idx2name  # of this number of workers and devices
        module._optimizer, module._params_dirty = optimizer, True
        if module._split is not None:
            module._split.updater.optimizer = optimizer
        if module._update_on_kvstore:
            for name, arrays in zip(module._exec_group.param_names, module._exec_group.param_arrays):
                if module._split is not None and name in module._split.parts:
                    continue
                module._kvstore._replace(name, arrays[0])
