"""Checkpoints of the training of a `Module`."""
from __future__ import annotations

import os
from typing import Any

import torch

from ..base import MXNetError
from ..optimizer import Optimizer, Updater
from ..training_checkpoint import PendingSave, Resumed, StatePart, Training, Weight
from ..training_checkpoint.training import OWN, SHARED, folder_of


class ModuleTraining(Training):
    """What checkpoints hold of a module.

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
        if store is not None and "async" in store.type:
            raise MXNetError(f"{doing}: the workers of a kvstore of type {store.type!r} are at different batches; use 'dist_sync'")
        self._updater = store._updater if module._update_on_kvstore else module._updater
        if not isinstance(self._updater, Updater):
            raise MXNetError(f"{doing}: the optimizer is an updater of its own, whose states are not known")
        for name, arrays in zip(group.param_names, group.param_arrays):
            if arrays[0].stype != "default":
                raise MXNetError(f"{doing}: parameter '{name}' of storage type {arrays[0].stype} is the kvstore's; use save_checkpoint")
        self.group = getattr(store, "_group", None)

    def weights(self) -> dict[str, Weight]:
        """Return parameters and auxiliary states."""
        group, found = self._module._exec_group, {}
        for name, arrays in zip(group.param_names, group.param_arrays):
            found[name] = Weight(arrays[0].shape, [(0, array) for array in arrays], SHARED)
        for name, arrays in zip(group.aux_names, group.aux_arrays):
            size = torch.Size(arrays[0].shape).numel()
            found[name] = Weight(arrays[0].shape, [(i * size, array) for i, array in enumerate(arrays)], OWN)
        return found

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
            if module._update_on_kvstore:
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
        if module._update_on_kvstore:
            for name, arrays in zip(module._exec_group.param_names, module._exec_group.param_arrays):
                module._kvstore._replace(name, arrays[0])


class TrainingCheckpoints:
    """A mixin of `Module`: checkpoints that are written while the training goes on."""

    def save_training(self, folder: str | os.PathLike[str], data: Any = None, epoch: int = 0, batch: int = 0,
                      epoch_over: bool = False) -> PendingSave:
        """Begin to write a checkpoint of the training; it goes on meanwhile. All workers call it after the same batch.

        It has parameters, auxiliary states, the optimizer with its states and counters, the random generators, and the position of `data`. Each
        worker writes a part; the checkpoint appears in the folder in one step, when all parts are there. The two newest are kept.

        Parameters
        ----------
        folder : str
            One that all workers share; made if it is not there.
        data : iterator, optional
            With ``state()`` and ``load_state()``.
        epoch, batch : int
            What `resume_training` is to return.
        epoch_over : bool
            True if `data` is at the end of an epoch, and not reset.

        Returns
        -------
        PendingSave
            ``wait()`` waits until it is complete, as the next call and the end of the program do.

        Raises
        ------
        MXNetError
            If there is no optimizer yet, or the kvstore is ``dist_async``; if the previous checkpoint could not be written.

        Example
        -------
        >>> import mxnet as mx, tempfile
        >>> folder, net = tempfile.mkdtemp(), mx.sym.LinearRegressionOutput(mx.sym.FullyConnected(mx.sym.var('data'), num_hidden=1), name='lro')
        >>> def module():
        ...     made = mx.mod.Module(net, label_names=['lro_label'])
        ...     made.bind([('data', (2, 3))], [('lro_label', (2, 1))])
        ...     made.init_params()
        ...     made.init_optimizer()
        ...     return made
        >>> module().save_training(folder, epoch=4).wait()
        >>> module().resume_training(folder)
        Resumed(epoch=4, batch=0, exact=True)
        """
        training = ModuleTraining(self, "save_training")
        return training.save(folder_of(self, folder, training.group), data, epoch, batch, epoch_over)

    def resume_training(self, folder: str | os.PathLike[str], data: Any = None) -> Resumed | None:
        """Continue from the newest checkpoint of `save_training`. All workers call it after `init_optimizer`.

        Parameters
        ----------
        folder : str
        data : iterator, optional
            Made with the arguments of the one that was saved.

        Returns
        -------
        Resumed or None
            ``epoch``, ``batch``, and ``exact``: False if the number of workers has changed. Then random generators and `data` are left alone,
            auxiliary states are those of worker 0, and with `data` the batch is 0: the epoch begins anew. None if there is no checkpoint.

        Raises
        ------
        MXNetError
            If the checkpoint is damaged, or belongs to another network or other data.
        """
        training = ModuleTraining(self, "resume_training")
        return training.resume(folder_of(self, folder, training.group), data)
