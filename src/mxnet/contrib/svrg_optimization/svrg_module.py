"""`SVRGModule`: training with stochastic variance reduced gradients."""
from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ... import ndarray as nd
from ...base import MXNetError
from ...context import cpu
from ...kvstore.updates import create_kvstore
from ...module import Module
from ...suggestions import shortened
from .svrg_optimizer import FULL, _SVRGOptimizer

if TYPE_CHECKING:
    from ...io import DataBatch, DataIter
    from ...symbol import Symbol

__all__ = ["SVRGModule"]


class SVRGModule(Module):
    """A module with variance-reduced gradients.

    Every `update_freq` epochs the weights are remembered and the gradient over all data is computed for them. A batch's gradient is
    then corrected by how far the batch is from all data at the remembered weights::

        g = grad(batch, weights) - grad(batch, remembered) + full_grad(remembered)

    Parameters
    ----------
    symbol, data_names, label_names, logger, context, work_load_list, fixed_param_names, state_names, group2ctxs, compression_params
        As for `Module`.
    update_freq : int
        Compute the gradient over all data every so many epochs.
    """

    def __init__(self, symbol: Symbol, data_names: Sequence[str] = ("data",), label_names: Sequence[str] = ("softmax_label",), logger: Any = logging,
                 context: Any = cpu(), work_load_list: list[float] | None = None, fixed_param_names: Sequence[str] | None = None,
                 state_names: Sequence[str] | None = None, group2ctxs: Any = None, compression_params: dict[str, Any] | None = None,
                 update_freq: int | None = None):
        if not isinstance(update_freq, int):
            raise TypeError(f"SVRGModule: update_freq must be an integer, received {shortened(update_freq)}")
        if update_freq <= 0:
            raise ValueError(f"SVRGModule: update_freq must be at least 1, received {update_freq}")
        options = (symbol, data_names, label_names, logger, context, work_load_list, fixed_param_names, state_names, group2ctxs,
                   compression_params)
        self._mod_aux = Module(*options)  # keeps the remembered weights
        super().__init__(*options)
        self.update_freq = update_freq
        self._param_dict = None  # the full gradient by name, for each device

    def _reset_bind(self):
        super()._reset_bind()
        self._mod_aux._reset_bind()

    def bind(self, data_shapes: Any, label_shapes: Any = None, for_training: bool = True, inputs_need_grad: bool = False, force_rebind: bool = False,
             shared_module: Any = None, grad_req: Any = "write") -> None:
        """Bind this module, and for training the one with the remembered weights; see `Module.bind`."""
        super().bind(data_shapes, label_shapes, for_training, inputs_need_grad, force_rebind, shared_module, grad_req)
        if for_training and not self._mod_aux.binded:
            self._mod_aux.bind(data_shapes, label_shapes, for_training, inputs_need_grad, force_rebind, shared_module, grad_req)

    def reshape(self, data_shapes: Any, label_shapes: Any = None) -> None:
        """Take batches of other shapes from now on; see `Module.reshape`."""
        super().reshape(data_shapes, label_shapes)
        if self._mod_aux.binded:
            self._mod_aux.reshape(data_shapes, label_shapes)

    def init_optimizer(self, kvstore: Any = "local", optimizer: Any = "sgd", optimizer_params: Any = (("learning_rate", 0.01),),
                       force_init: bool = False) -> None:
        """Set up the optimizer and the kvstore; see `Module.init_optimizer`."""
        self._require(params=True)
        if self.optimizer_initialized and not force_init:
            self.logger.warning("optimizer already initialized, ignoring...")
            return
        if self._split is not None:
            raise MXNetError(f"SVRGModule: {', '.join(self._split.parts)} are divided among contexts or ranks, which SVRG does not do; use "
                             "mx.mod.Module, or no group2ctxs")
        names = self._exec_group.param_names
        arg_params, _ = self.get_params()
        self._param_dict = [{name: nd.zeros(arg_params[name].shape, ctx=ctx, dtype=arg_params[name].dtype) for name in names}
                            for ctx in self._context]
        kvstore, update_on_kvstore = create_kvstore(kvstore, len(self._context), arg_params)
        optimizer = self._create_optimizer(optimizer, kvstore, update_on_kvstore, dict(optimizer_params))
        super().init_optimizer(kvstore=kvstore, optimizer=optimizer, force_init=force_init)
        if self._kvstore:
            for name in names:
                self._kvstore.init(name + FULL, nd.zeros(arg_params[name].shape, dtype=arg_params[name].dtype))

    def _create_optimizer(self, optimizer, kvstore, update_on_kvstore, params):
        batch_size = self._exec_group.batch_size
        if kvstore and "dist" in kvstore.type and "_sync" in kvstore.type:
            batch_size *= kvstore.num_workers
        names = self._exec_group.param_names
        copies = 1 if update_on_kvstore else len(self._context)
        idx2name = {i * copies + k: name for i, name in enumerate(names) for k in range(copies)}
        idx2name.update((len(names) * copies + i, name + FULL) for i, name in enumerate(names))
        return _SVRGOptimizer(optimizer, **{"rescale_grad": 1.0 / batch_size, "sym": self.symbol, **params, "param_idx2name": idx2name})

    def forward(self, data_batch: DataBatch, is_train: bool | None = None) -> None:
        """Run a batch forward, in training also with the remembered weights; see `Module.forward`."""
        super().forward(data_batch, is_train)
        if (self.for_training if is_train is None else is_train) and self._mod_aux.params_initialized:
            self._mod_aux.forward(data_batch, is_train)

    def backward(self, out_grads: Any = None) -> None:
        """Compute gradients, also with the remembered weights; see `Module.backward`."""
        super().backward(out_grads)
        if self._mod_aux.binded and self._mod_aux.params_initialized:
            self._mod_aux.backward(out_grads)

    def update(self) -> None:
        """Correct the gradients and let the optimizer change the parameters."""
        self._require(params=True, optimizer=True)
        if not self._mod_aux.params_initialized:
            raise MXNetError("SVRGModule.update: there is no full gradient yet: call update_full_grads(train_data) first, or use fit(...)")
        self._update_svrg_gradients()
        super().update()

    def _update_svrg_gradients(self):
        for name, grads, special in zip(self._exec_group.param_names, self._exec_group.grad_arrays, self._mod_aux._exec_group.grad_arrays):
            for full, grad, at_remembered in zip(self._param_dict, grads, special):
                if grad is not None:
                    grad -= at_remembered
                    grad += full[name]

    def update_full_grads(self, train_data: DataIter) -> None:
        """Store a copy of the weights, and compute their gradient over all data.

        Parameters
        ----------
        train_data : DataIter
        """
        self._require(params=True, optimizer=True)
        self._mod_aux.set_params(*self.get_params())
        group = self._mod_aux._exec_group
        for full in self._param_dict:
            for value in full.values():
                value[:] = 0
        train_data.reset()
        batches = padding = 0
        for batch in train_data:
            self._mod_aux.forward(batch, is_train=True)
            self._mod_aux.backward()
            for name, grads in zip(group.param_names, group.grad_arrays):
                for full, grad in zip(self._param_dict, grads):
                    if grad is not None:
                        full[name] += grad
            batches += 1
            padding = batch.pad or 0
        if not batches:
            raise StopIteration("update_full_grads: the iterator gave no batch")
        whole_batches = batches - padding / train_data.batch_size
        for name in group.param_names:
            for full in self._param_dict:
                full[name] /= whole_batches
            if self._kvstore:
                self._accumulate_kvstore(name, [full[name] for full in self._param_dict])

    def _accumulate_kvstore(self, key, value):
        """Average a full gradient over the devices."""
        self._kvstore.push(key + FULL, value)
        self._kvstore._barrier()
        self._kvstore.pull(key + FULL, value)
        for full, total in zip(self._param_dict, value):
            full[key] = total / len(self._context)

    def _start_epoch(self, epoch, train_data):
        if epoch % self.update_freq == 0:
            self.update_full_grads(train_data)
        train_data.reset()

    def _end_epoch(self, train_data):
        """Do nothing: each reset shuffles, and as in MXNet there is one before an epoch, none after it."""

    def prepare(self, data_batch: DataBatch, sparse_row_id_fn: Callable[..., Any] | None = None) -> None:
        """Prepare for the next batch; see `Module.prepare`."""
        super().prepare(data_batch, sparse_row_id_fn)
        if self._mod_aux.binded:
            self._mod_aux.prepare(data_batch, sparse_row_id_fn)
