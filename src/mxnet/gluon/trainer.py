"""`Trainer`: updates of parameters by an optimizer, on one device or many."""
from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from .. import files
from .. import optimizer as optim
from ..kvstore import KVStore
from ..kvstore.base import LostWorkerError
from ..kvstore.updates import create_kvstore, create_sparse_kvstore
from ..suggestions import shortened
from .fully_sharded import FullyShardedParameter, before_update, fully_shard
from .parameter import Parameter
from .parameter_dict import ParameterDict
from .sharded_parameter import gathered_states, ranks, split_states
from .utils import UsageError

if TYPE_CHECKING:
    import os

    from ..context import Context
    from ..ndarray import NDArray
    from ..optimizer import Optimizer
    from ..training_checkpoint import PendingSave, Resumed
    from .block import Block

__all__ = ["Trainer"]


class Trainer:
    """Updates parameters by their gradients.

    Parameters
    ----------
    params : ParameterDict, dict or list of Parameter
    optimizer : str or Optimizer
    optimizer_params : dict, optional
        For the optimizer that is named: ``learning_rate``, ``wd``, ....
    kvstore : str or KVStore or None
        The store that adds up gradients of several devices or machines; see `mxnet.kvstore.create`.
    compression_params : dict, optional
        Gradient compression, such as ``{'type': '2bit', 'threshold': 0.5}``.
    update_on_kvstore : bool, optional
        True if the kvstore, rather than each device, updates; the default depends on the kvstore. Needed with sparse weights and ``dist_async``.
    shard : str, optional
        ``'full'``: each rank keeps some rows of the weights, of their gradients and of the optimizer's states, see `fully_shard`; with a kvstore in
        step, such as ``dist_sync``, and an optimizer that updates each element for itself.
    offload : Context, optional
        With ``shard='full'`` on GPUs: the memory of the host, ``mx.cpu_pinned()`` or ``mx.cpu()``, that has the rows of weights, gradients and
        states, and where they are updated; a GPU has a weight while a layer uses it. It serves one process, too.

    Raises
    ------
    ValueError
        If `params` holds anything but parameters.
    UsageError
        If parameters are on different contexts, or `optimizer_params` come with an Optimizer that is made already.

    Example
    -------
    >>> import mxnet as mx
    >>> net = mx.gluon.nn.Dense(1, use_bias=False, in_units=1)
    >>> net.initialize(mx.init.One())
    >>> trainer = mx.gluon.Trainer(net.collect_params(), 'sgd', dict(learning_rate=0.5))
    >>> with mx.autograd.record():
    ...     loss = net(mx.nd.array([[1.], [3.]]))
    >>> loss.backward()
    >>> trainer.step(batch_size=2)
    >>> net.weight.data().asscalar()
    np.float32(0.0)
    """

    def __init__(self, params: ParameterDict | dict[str, Parameter] | list[Parameter] | tuple[Parameter, ...], optimizer: str | Optimizer,
                 optimizer_params: dict[str, Any] | None = None, kvstore: Any = "device", compression_params: dict[str, Any] | None = None,
                 update_on_kvstore: bool | None = None, shard: str | None = None, offload: Context | None = None) -> None:
        if isinstance(params, (dict, ParameterDict)):
            params = [params[name] for name in sorted(params.keys())]
        if not isinstance(params, (list, tuple)):
            raise ValueError(f"Trainer: a list or dict of Parameters expected, received {type(params)}")
        for parameter in params:
            if not isinstance(parameter, Parameter):
                raise ValueError(f"Trainer: a list or dict of Parameters expected, received {type(parameter)} in it")
        self._params = list(params)
        if shard is not None:
            if shard != "full":
                raise UsageError(f"Trainer: shard is None or 'full', received {shortened(shard)}; kv.create('dist_sync', shard=True) divides states")
            fully_shard(self._params, offload)
        elif offload is not None:
            raise UsageError("Trainer: offload is for weights that are gathered where they are used; pass shard='full' with "
                             f"offload={shortened(offload)}")
        self._param2idx = {parameter.name: i for i, parameter in enumerate(self._params)}
        for parameter in self._params:
            parameter._set_trainer(self)
        # Split parameters never meet the kvstore: they are updated here, by gradients that are sums already.
        self._offloads = any(getattr(parameter, "_offload", None) is not None for parameter in self._params)
        self._sharded = {i for i, parameter in enumerate(self._params) if parameter.sharded}
        self._shared = [(i, parameter) for i, parameter in enumerate(self._params) if not parameter.sharded]
        self._contains_sparse_weight = any(parameter._stype != "default" for _, parameter in self._shared)
        self._contains_sparse_grad = any(parameter._grad_stype != "default" for _, parameter in self._shared)
        self._compression_params = compression_params
        self._contexts = self._check_contexts()
        self._init_optimizer(optimizer, optimizer_params or {})
        self._gathers = any(isinstance(parameter, FullyShardedParameter) for parameter in self._params)
        self._require_fitting(self._optimizer)
        if self._gathers:
            self._require_store_in_step(kvstore)
        self._rescue: Any = None  # a `Progress` with rescue=True
        self._scale = self._optimizer.rescale_grad
        self._kvstore_params = {"kvstore": kvstore, "update_on_kvstore": update_on_kvstore}
        self._kvstore: Any = None
        self._reset_kvstore()

    # -- setting up ------------------------------------------------------------------------------------------------------

    def _check_contexts(self):
        contexts = None
        for parameter in self._params:
            own = parameter.list_ctx()
            if contexts is not None and own != contexts:
                raise UsageError(f"Trainer: all Parameters must be on the same contexts, received {parameter.name} on {own} after others on "
                                 f"{contexts}; initialize all of them with the same ctx=")
            contexts = own
        return contexts

    def _init_optimizer(self, optimizer: Any, optimizer_params: dict[str, Any] | None) -> None:
        # The parameters themselves, not copies: a later change of lr_mult must take effect.
        parameters = dict(enumerate(self._params))
        if isinstance(optimizer, optim.Optimizer):
            if optimizer_params:
                raise UsageError("Trainer: optimizer_params are for an optimizer given by name, received one that is made; set them on it")
            self._optimizer = optimizer
            self._optimizer.param_dict = parameters
        else:
            self._optimizer = optim.create(optimizer, param_dict=parameters, **(optimizer_params or {}))
        self._updaters = [optim.get_updater(self._optimizer) for _ in self._contexts or ()]

    def _require_fitting(self, optimizer: Any) -> None:
        """Refuse optimizers that do not go with divided parameters."""
        kind = type(optimizer).__name__
        if self._gathers:
            from ..kvstore.sharded import BY_ELEMENT
            if type(optimizer) not in BY_ELEMENT:
                raise UsageError(f"Trainer: fully sharded weights are updated by rows, and {kind} needs whole ones; use one of "
                                 f"{', '.join(sorted(kind.__name__ for kind in BY_ELEMENT))}")
        if self._sharded and optimizer._scales_by_norms and ranks().count * len(self._contexts or ()) > 1:
            names = ", ".join(self._params[i].name for i in sorted(self._sharded))
            raise UsageError(f"Trainer: {names}: divided by rows, and {kind} needs the norms of whole weights; use an optimizer that updates each "
                             "element for itself, such as 'sgd' or 'adam'")

    def _require_store_in_step(self, kvstore: Any) -> None:
        """Refuse stores that do not go with fully sharded parameters."""
        if ranks().count > 1 and "dist" not in getattr(kvstore, "type", kvstore or "") and len(self._sharded) < len(self._params):
            raise UsageError(f"Trainer: with fully sharded weights the others need a kvstore in step, received kvstore={shortened(kvstore)}; use "
                             "kvstore='dist_sync'")

    def _reset_kvstore(self) -> None:
        """Discard the kvstore; the next step makes a new one from the parameters' values."""
        if self._kvstore and "dist" in self._kvstore.type:
            raise RuntimeError(f"Cannot reset distributed KVStore of type {self._kvstore.type}.")
        self._kvstore = None
        self._distributed: bool | None = None
        self._update_on_kvstore: bool | None = None
        self._kv_initialized = self._stepped = False
        self._params_to_init = [parameter for _, parameter in self._shared]

    def _init_kvstore(self) -> None:
        if not any(updater.states for updater in self._updaters):
            self._contexts = self._check_contexts()
            self._updaters = [optim.get_updater(self._optimizer) for _ in self._contexts or ()]
        wanted = self._kvstore_params["update_on_kvstore"]
        kind = self._kvstore_params["kvstore"]
        kvstore: Any
        if self._contains_sparse_weight:
            if wanted is False:
                raise ValueError("Trainer: sparse weights are updated by the kvstore; leave out update_on_kvstore=False")
            kvstore, on_kvstore = create_sparse_kvstore(kind)
            self._distributed = "dist" in kvstore.type
        else:
            arrays = {parameter.name: parameter.data(self._contexts[0]) for _, parameter in self._shared}
            kvstore, on_kvstore = create_kvstore(kind, len(self._contexts), arrays)
            self._distributed = bool(kvstore) and "dist" in kvstore.type
            choose = self._choose_for_sparse_grad if self._contains_sparse_grad else self._choose_for_dense
            on_kvstore = choose(kvstore, on_kvstore, wanted)
        if kvstore:
            if self._compression_params:
                kvstore.set_gradient_compression(self._compression_params)
            if on_kvstore:
                # Before the weights arrive, which must be kept in float32 too for multi-precision.
                kvstore.set_optimizer(self._optimizer)
        if kvstore and isinstance(kind, str):
            kvstore.keeps_sums = False
        self._kvstore = kvstore
        self._update_on_kvstore = on_kvstore if kvstore else None
        self._kv_initialized = True

    def _choose_for_sparse_grad(self, kvstore: Any, _: Any, wanted: bool | None) -> Any:
        """Return True if the kvstore updates dense weights by sparse gradients; the default in one process is False, where each device is faster."""
        if wanted is False and self._distributed:
            raise ValueError(f"Trainer: a kvstore of type {kvstore.type} updates by sparse gradients itself; leave out update_on_kvstore=False")
        if kvstore is not None and not isinstance(kvstore, KVStore):
            raise ValueError(f"Trainer: sparse gradients of several devices need a KVStore, received {type(kvstore)}")
        return self._distributed if wanted is None else wanted

    def _choose_for_dense(self, kvstore: Any, on_kvstore: bool, wanted: bool | None) -> bool:
        """Return True if the kvstore updates dense weights by dense gradients."""
        if self._sharded and wanted is None:
            on_kvstore = False  # one place for the states of all
        if self._distributed and "async" in kvstore.type:
            if self._sharded:
                raise ValueError(f"Trainer: split layers need workers in step, and those of a kvstore of type {kvstore.type} are not; use dist_sync")
            if wanted is False:
                raise ValueError(f"Trainer: a kvstore of type {kvstore.type} updates by itself; leave out update_on_kvstore=False")
            on_kvstore = True
        if wanted is not None:
            on_kvstore = wanted
        if on_kvstore and kvstore and not kvstore.is_capable("optimizer"):
            if wanted:
                raise ValueError(f"Trainer: {type(kvstore)} can't run an optimizer; leave out update_on_kvstore=True")
            on_kvstore = False
        return on_kvstore

    def _init_params(self) -> None:
        """Copy the weights to the kvstore, except those whose shape is not known yet."""
        waiting: list[Parameter] = []
        for parameter in self._params_to_init if self._kvstore else ():
            if parameter._deferred_init:
                waiting.append(parameter)
                continue
            arrays, index = parameter._check_and_get(parameter._data, list), self._param2idx[parameter.name]
            if parameter._stype != "default":
                self._kvstore.init(index, arrays[0])
            else:
                self._kvstore.broadcast(index, arrays[0], arrays)
        self._params_to_init = waiting

    def _prepare(self) -> None:
        if not self._kv_initialized:
            self._init_kvstore()
        if self._params_to_init:
            self._init_params()

    def _forget_weight(self, parameter: Parameter) -> None:
        """Reset a kvstore that updates weights, because it holds the old values of a parameter about to be replaced."""
        if self._kv_initialized and self._update_on_kvstore and parameter not in self._params_to_init:
            self._reset_kvstore()

    def _weight_replaced(self, parameter: Parameter) -> None:
        """Take over a new value of a parameter into the float32 copies of half-precision weights, and its counts to other contexts."""
        if parameter._ctx_list != self._contexts:
            self._optimizer._carry_counts()
        for updater, array in zip(self._updaters, parameter._data):
            updater._weight_replaced(self._param2idx[parameter.name], array)

    # -- the optimizer -----------------------------------------------------------------------------------------------------

    @property
    def learning_rate(self) -> float:
        """The optimizer's learning rate at present."""
        return self._optimizer.learning_rate

    @property
    def optimizer(self) -> Optimizer:
        """The optimizer."""
        return self._optimizer

    def set_learning_rate(self, lr: float) -> None:
        """Set the optimizer's learning rate.

        Raises
        ------
        UserWarning
            If a scheduler determines it.
        """
        self._optimizer.set_learning_rate(lr)

    # -- a step --------------------------------------------------------------------------------------------------------------

    def step(self, batch_size: int, ignore_stale_grad: bool = False) -> None:
        """Add up gradients over devices and update the parameters. To be called after `backward`, outside of `record`.

        Parameters
        ----------
        batch_size : int
            Gradients are divided by it; 1 if the loss is a mean already.
        ignore_stale_grad : bool
            Leave parameters alone whose gradient no backward has written since the last step, instead of raising.

        Raises
        ------
        UserWarning
            If a gradient is stale.
        """
        self._check_and_rescale_grad(self._scale / batch_size)
        self._prepare()
        self._exchange()
        self._update(ignore_stale_grad)

    def allreduce_grads(self) -> None:
        """The first half of `step`: add up gradients over devices, so that they can be looked at or clipped before `update`.

        Raises
        ------
        UsageError
            If the kvstore updates.
        """
        self._prepare()
        self._refuse_on_kvstore("allreduce_grads")
        self._exchange()

    def update(self, batch_size: int, ignore_stale_grad: bool = False) -> None:
        """Update the parameters by the gradients summed in `allreduce_grads`: the second half of `step`.

        Raises
        ------
        UsageError
            If the kvstore updates.
        """
        self._prepare()
        self._refuse_on_kvstore("update")
        self._check_and_rescale_grad(self._scale / batch_size)
        self._update(ignore_stale_grad)

    def _refuse_on_kvstore(self, what) -> None:
        if self._kvstore and self._update_on_kvstore:
            raise UsageError(f"{what}() is for weights that the Trainer updates, here the kvstore does: make it with update_on_kvstore=False")

    def _check_and_rescale_grad(self, scale: Any) -> None:
        if self._update_on_kvstore and self._distributed and self._stepped and self._optimizer.rescale_grad != scale:
            raise UserWarning("step: a distributed kvstore that updates weights keeps the first batch_size, received another one; make the Trainer "
                              "with update_on_kvstore=False for batches of several sizes")
        self._optimizer.rescale_grad, self._stepped = scale, True

    def _exchange(self) -> None:
        """Add up gradients; a `Progress` that rescues is told before, and if another worker is lost meanwhile."""
        if self._rescue is None:
            self._allreduce_grads()
            return
        self._rescue.before_step()
        try:
            self._allreduce_grads()
        except LostWorkerError:
            self._rescue.lost()
            raise
        self._rescue.after_sums()

    def _allreduce_grads(self) -> None:
        store = self._kvstore
        if not store:
            return
        trained = [(i, parameter) for i, parameter in self._shared if parameter.grad_req != "null"]
        if store.batches:
            dense = [(i, parameter) for i, parameter in trained if parameter._grad_stype == "default"]
            if dense:
                store.pushpull([i for i, _ in dense], [parameter.list_grad() for _, parameter in dense],
                               out=[parameter.list_data() for _, parameter in dense] if self._update_on_kvstore else None)
                self._expect_gradients(dense)
            trained = [entry for entry in trained if entry not in dense]
        for i, parameter in trained:
            grads = parameter.list_grad()
            if grads[0].stype == "default":
                store.pushpull(i, grads, out=parameter.list_data() if self._update_on_kvstore else None, priority=-i)
                continue
            store.push(i, grads, priority=-i)
            if parameter._stype == "default":  # rows of sparse weights are pulled where they are used
                store.pull(i, parameter.list_data() if self._update_on_kvstore else grads, priority=-i, ignore_sparse=self._distributed)

    def _expect_gradients(self, dense: list[tuple[int, Parameter]]) -> None:
        """Let the store send the gradients of the next backward while it still runs."""
        finished = self._kvstore._expect([i for i, _ in dense], [parameter.list_grad() for _, parameter in dense])
        for i, parameter in dense:
            for array in parameter._data:
                array._autograd.finished = finished and functools.partial(finished, i)

    def _update(self, ignore_stale_grad: bool = False) -> None:
        if self._gathers:
            before_update()
        scaler = getattr(self, "_amp_loss_scaler", None)
        if scaler is not None and scaler.has_overflow(self._params):
            return
        updated_here = self._sharded if self._kvstore and self._update_on_kvstore else range(len(self._params))
        batches: list[tuple[list[Any], list[Any], list[Any]]] = [([], [], []) for _ in self._updaters]
        for i, parameter in enumerate(self._params):
            if parameter.grad_req == "null":
                continue
            arrays = parameter._data or parameter._check_and_get(None, list)
            fresh = [array._fresh_grad for array in arrays]
            if not ignore_stale_grad and False in fresh:
                for array in arrays:
                    if not array._fresh_grad:
                        raise UserWarning(
                            f"Gradient of Parameter `{parameter.name}` on context {array.ctx} is the one of an earlier step: the "
                            "last backward() did not reach it. Check that the loss depends on it, or pass ignore_stale_grad=True to leave such "
                            "Parameters as they are")
            if i not in updated_here:
                continue
            if len(arrays) > len(batches):
                raise UsageError(f"{parameter.name} is on {parameter.list_ctx()}, this Trainer was made for {self._contexts}: make another one "
                                 "for more contexts")
            for (indices, gradients, weights), array, gradient, is_fresh in zip(batches, arrays, parameter._grad, fresh):
                if is_fresh:
                    indices.append(i)
                    gradients.append(gradient)
                    weights.append(array)
                    array._fresh_grad = False
        for updater, batch in zip(self._updaters, batches):
            for indices, gradients, weights in _by_place(*batch) if self._offloads else (batch,):
                if indices:
                    updater(indices, gradients, weights)

    def _row_sparse_pull(self, parameter: Parameter, out: Any, row_id: NDArray, full_idx: bool = False) -> None:
        """Copy rows of a sparse weight from the kvstore to `out`; all of them for `full_idx`."""
        self._prepare()
        i = self._param2idx[parameter.name]
        if full_idx and "dist" not in self._kvstore.type:
            if row_id.size != out.shape[0]:
                raise UsageError(f"all {out.shape[0]} rows of {parameter.name} are needed, received {row_id.size} row ids")
            self._kvstore.pull(i, out=out, priority=-i, ignore_sparse=False)
        else:
            self._kvstore.row_sparse_pull(i, out=out, row_ids=row_id, priority=-i)

    # -- files -----------------------------------------------------------------------------------------------------------------

    def save_states(self, fname: str) -> None:
        """Write the optimizer and its states, such as momentum, without `lr_mult` and `wd_mult` of the parameters.

        With split parameters all ranks call it, and each writes the states of whole weights.

        Raises
        ------
        UsageError
            If the kvstore updates and a parameter's shape is not known yet, or others are split.
        """
        self._prepare()
        if not self._update_on_kvstore:
            own = self._updaters[0].get_states(dump_optimizer=True) if not self._sharded else gathered_states(self._updaters, self._params)
            files.write_bytes(fname, own)
            return
        self._refuse_states_on_kvstore("save_states")
        if self._params_to_init:
            raise UsageError("save_states: these Parameters have no values yet: "
                             f"{', '.join(p.name for p in self._params_to_init)}; pass a batch through the network first")
        self._kvstore.save_optimizer_states(fname, dump_optimizer=True)

    def _refuse_states_on_kvstore(self, what: str) -> None:
        if self._sharded:
            raise UsageError(f"{what}: the kvstore has the states of some parameters, and split ones have theirs here; leave out "
                             "update_on_kvstore=True, and row_sparse gradients of parameters that are not split")

    def load_states(self, fname: str) -> None:
        """Read a file of `save_states`; `lr_mult` and `wd_mult` stay those of the parameters."""
        self._prepare()
        if self._update_on_kvstore:
            self._refuse_states_on_kvstore("load_states")
            self._kvstore.load_optimizer_states(fname)
            self._optimizer = self._kvstore._updater.optimizer
        else:
            states = files.read_bytes(fname)
            if self._sharded:
                loaded = optim.get_updater(self._optimizer)
                loaded.set_states(states)
                self._require_fitting(loaded.optimizer)
            for updater in self._updaters:
                updater.set_states(states)
                updater.optimizer = self._updaters[0].optimizer
            split_states(self._updaters, self._params)
            self._optimizer = self._updaters[0].optimizer
        self._optimizer.param_dict = dict(enumerate(self._params))

    def save_training(self, folder: str | os.PathLike[str], net: Block, data: Any = None, epoch: int = 0, batch: int = 0,
                      epoch_over: bool = False) -> PendingSave:
        """Begin to write a checkpoint of the training; it goes on meanwhile. All ranks call it after the same step.

        It has the parameters of `net`, the optimizer with its states and counters, the random generators, and the position of `data`. Each rank
        writes a part; the checkpoint appears in the folder in one step, when all parts are there. The two newest are kept.

        Parameters
        ----------
        folder : str
            One that all ranks share; made if it is not there.
        net : Block
            The network, with all parameters of this trainer.
        data : DataLoader or DataIter, optional
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
        UsageError
            If parameters are of storage type row_sparse, or are not the network's, or the kvstore is ``dist_async``.
        MXNetError
            If the previous checkpoint could not be written.

        Example
        -------
        >>> import mxnet as mx, tempfile
        >>> folder = tempfile.mkdtemp()
        >>> def made(init):
        ...     net = mx.gluon.nn.Dense(1, in_units=2)
        ...     net.initialize(init)
        ...     return net, mx.gluon.Trainer(net.collect_params(), 'sgd', optimizer_params={'learning_rate': 0.1})
        >>> net, trainer = made(mx.init.Constant(3))
        >>> trainer.save_training(folder, net, epoch=1, batch=20).wait()
        >>> net, trainer = made(mx.init.Zero())
        >>> trainer.resume_training(folder, net)
        Resumed(epoch=1, batch=20, exact=True)
        >>> net.weight.data().asnumpy()
        array([[3., 3.]], dtype=float32)
        """
        from ..training_checkpoint.training import folder_of
        from .trainer_checkpoint import TrainerTraining
        training = TrainerTraining(self, net, "save_training")
        training.prepare({})
        return training.save(folder_of(self, folder, training.group), data, epoch, batch, epoch_over)

    def resume_training(self, folder: str | os.PathLike[str], net: Block, data: Any = None) -> Resumed | None:
        """Continue from the newest checkpoint of `save_training`. All ranks call it.

        Parameters
        ----------
        folder : str
        net : Block
            Initialized, with the structure of the one that was saved.
        data : DataLoader or DataIter, optional
            Made with the arguments of the one that was saved.

        Returns
        -------
        Resumed or None
            ``epoch``, ``batch``, and ``exact``: False if the number of ranks has changed. Then random generators and `data` are left alone, moving
            averages are those of rank 0, and with `data` the batch is 0: the epoch begins anew. None if there is no checkpoint.

        Raises
        ------
        UsageError
            As for `save_training`.
        MXNetError
            If the checkpoint is damaged, or belongs to another network or other data.
        """
        from ..training_checkpoint.training import folder_of
        from .trainer_checkpoint import TrainerTraining
        training = TrainerTraining(self, net, "resume_training")
        return training.resume(folder_of(self, folder, training.group), data)


def _by_place(indices: list[Any], gradients: list[Any], weights: list[Any]) -> list[tuple[list[Any], list[Any], list[Any]]]:
    """Return the updates of a device as they are made together: those of weights that the host keeps for it apart from the others."""
    places: dict[Any, tuple[list[Any], list[Any], list[Any]]] = {}
    for index, gradient, weight in zip(indices, gradients, weights):
        for column, entry in zip(places.setdefault(weight._ctx, ([], [], [])), (index, gradient, weight)):
            column.append(entry)
    return list(places.values())
