"""The training of a `Trainer` and its network, for checkpoints."""
from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from ..kvstore.updates import joined_store
from ..optimizer import Optimizer, Updater
from ..training_checkpoint import StatePart, Training, Weight
from ..training_checkpoint.training import DIVIDED, OWN, SHARED
from .parameter import Parameter
from .sharded_parameter import ShardedParameter, ranks
from .utils import UsageError

if TYPE_CHECKING:
    from .block import Block
    from .trainer import Trainer


class TrainerTraining(Training):
    """The content of checkpoints of a trainer.

    Parameters
    ----------
    trainer : Trainer
    net : Block
        Whose parameters it updates.
    doing : str
        The name of the call in errors.

    Raises
    ------
    UsageError
        If the trainer updates parameters of something else, if some are of storage type row_sparse, or if the kvstore is not one in step.
    """

    def __init__(self, trainer: Trainer, net: Block, doing: str) -> None:
        self._trainer = trainer
        self._parameters: dict[str, Parameter] = {}
        names: dict[int, str] = {}
        for name, parameter in net._collect_params_with_prefix().items():
            if id(parameter) not in names:  # a shared one has several names
                self._parameters[names.setdefault(id(parameter), name)] = parameter
        self._numbers = {}
        for i, parameter in enumerate(trainer._params):
            if id(parameter) not in names:
                raise UsageError(f"{doing}: the trainer updates '{parameter.name}', which is no Parameter of the network")
            self._numbers[names[id(parameter)]] = i
        for parameter in self._parameters.values():
            if parameter._stype != "default":
                raise UsageError(f"{doing}: Parameter '{parameter.name}' of storage type {parameter._stype} is the kvstore's; use save_parameters "
                                 "and save_states")
        store = trainer._kvstore
        if not trainer._kv_initialized:  # the job's store is made before the shapes of all parameters are known
            store = trainer._kvstore_params["kvstore"] = joined_store(trainer._kvstore_params["kvstore"])
        if "async" in getattr(store, "type", ""):
            raise UsageError(f"{doing}: the workers of a kvstore of type {store.type!r} are at different batches; use 'dist_sync'")
        self.group, self._doing = getattr(store, "_group", None), doing
        if self.group is None and trainer._sharded:
            self.group = ranks()._group

    def weights(self) -> dict[str, Weight]:
        """Return the weights by the names of `save_parameters`."""
        weights = {}
        for name, parameter in self._parameters.items():
            arrays, size = parameter.list_data(), torch.Size(parameter.shape).numel()
            if isinstance(parameter, ShardedParameter):
                weights[name] = Weight(parameter.shape, list(zip(self._first_elements(parameter), arrays)), DIVIDED)
            elif parameter.grad_req == "null":
                weights[name] = Weight(parameter.shape, [(i * size, array) for i, array in enumerate(arrays)], OWN)
            else:
                weights[name] = Weight(parameter.shape, [(0, array) for array in arrays], SHARED)
        return weights

    @staticmethod
    def _first_elements(parameter: ShardedParameter) -> list[int]:
        return [row * torch.Size(parameter.shape[1:]).numel() for row in parameter.edges()[:-1]]

    def prepare(self, shapes: dict[str, tuple[int, ...]]) -> None:
        """Initialize the parameters whose shapes were not known."""
        for name, parameter in self._parameters.items():
            if parameter._deferred_init:
                if name not in shapes:
                    raise UsageError(f"{self._doing}: Parameter '{name}' has no values yet, because its shape is not known; pass a batch through the "
                                     "network first" if self._doing == "save_training" else f"the checkpoint lacks Parameter '{name}'")
                parameter.shape = shapes[name]
                parameter._finish_deferred_init()
        trainer = self._trainer
        trainer._prepare()
        if trainer._update_on_kvstore and not isinstance(trainer._kvstore._updater, Updater):
            raise UsageError(f"{self._doing}: the kvstore has an updater of its own, whose states are not known")
        if trainer._kvstore is None and len(trainer._contexts) > 1 and len(trainer._sharded) < len(trainer._params):
            raise UsageError(f"{self._doing}: without a kvstore each of the contexts {trainer._contexts} has weights of its own; use "
                             "kvstore='device'")

    def state_parts(self, anew: bool = False) -> dict[str, list[StatePart]]:
        """Return the places of the states of all parameters that are updated."""
        trainer = self._trainer
        store = trainer._kvstore if trainer._update_on_kvstore else None
        if anew and store is not None:
            store._divide_states_anew()
        parts = {}
        for name, i in sorted(self._numbers.items(), key=lambda item: item[1]):
            parameter = trainer._params[i]
            if parameter.grad_req == "null":
                continue
            arrays = parameter.list_data()
            if store is not None and not isinstance(parameter, ShardedParameter):
                own = store._state_range(i, arrays[0].size) if parameter._grad_stype == "default" else None
                begin, shape = (0, arrays[0].shape) if own is None else (own[0], (own[1] - own[0],))
                parts[name] = [StatePart(store._updater, i, begin, shape, arrays[0].ctx, own is not None)]
                continue
            split = isinstance(parameter, ShardedParameter)
            begins = self._first_elements(parameter) if split else [0] * len(arrays)  # type: ignore[arg-type]  # mypy does not follow `split`
            parts[name] = [StatePart(updater, i, begin, array.shape, array.ctx, split)
                           for updater, begin, array in zip(trainer._updaters, begins, arrays)]
        return parts

    def optimizer(self) -> Optimizer:
        """Return the trainer's optimizer, or the one of its kvstore."""
        trainer = self._trainer
        return trainer._kvstore._updater.optimizer if trainer._update_on_kvstore else trainer._optimizer

    def replaced(self, optimizer: Optimizer) -> None:
        """Take over the optimizer, and copy the weights to a kvstore that updates them."""
        trainer = self._trainer
        optimizer.param_dict = dict(enumerate(trainer._params))
        trainer._optimizer = optimizer
        if trainer._update_on_kvstore:
            for i, parameter in trainer._shared:
                trainer._kvstore._replace(i, parameter.list_data()[0])
