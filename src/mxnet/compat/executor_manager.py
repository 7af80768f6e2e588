"""The executors of one network on several devices for `FeedForward`. New programs use `Module`."""
from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import ndarray as nd
from ..base import MXNetError, mx_real_t
from ..context import Context
from ..io import DataBatch, DataDesc
from ..metric import EvalMetric
from ..module import executor_group
from ..module.executor_group import _split_input_slice
from ..symbol import Symbol

if TYPE_CHECKING:
    from ..executor import Executor
    Targets = Sequence[nd.NDArray | Sequence[tuple[slice, nd.NDArray]]]

__all__ = ["DataParallelExecutorGroup", "DataParallelExecutorManager"]


def _check_arguments(symbol: Symbol) -> None:
    """Raise if two arguments, or two auxiliary states, of a network have the same name."""
    for kind, names in (("argument", symbol.list_arguments()), ("auxiliary param", symbol.list_auxiliary_states())):
        repeated = sorted({name for name in names if names.count(name) > 1})
        if repeated:
            raise ValueError(f"Find duplicated {kind} name {repeated}; give the operators different names. All names: {names}")


def _load_general(data: Sequence[nd.NDArray] | None, targets: Targets) -> None:
    """Copy arrays into bound ones; a target is one array, or a list of ``(slice of the batch, array)``."""
    for source, target in zip(data or (), targets):
        if isinstance(target, nd.NDArray):
            source.copyto(target)
            continue
        size = target[-1][0].stop
        if size != source.shape[0]:
            raise MXNetError(f"Batch size miss match. Expected {size}, got {source.shape[0]}")
        for part, array in target:
            source[part].copyto(array)


def _load_data(batch: DataBatch, targets: Targets) -> None:
    _load_general(batch.data, targets)


def _load_label(batch: DataBatch, targets: Targets) -> None:
    _load_general(batch.label, targets)


def _bind_exec(sym: Symbol, ctx: Context, input_shapes: Mapping[str, tuple[int, ...]], param_names: Sequence[str],
               need_grad: bool | set[str] = False, base_exec: Executor | None = None,
               shared_data_arrays: MutableMapping[str, nd.NDArray] | None = None, input_types: Mapping[str, Any] | None = None,
               logger: Any = logging) -> Executor:
    """Return an executor that shares the parameters of `base_exec`, if it is given, and has its inputs in the arrays of `shared_data_arrays`.

    `need_grad` is a set of the names of arguments that get gradients, True for all but the inputs, or False.
    """
    arg_shapes, _, aux_shapes = sym.infer_shape(**input_shapes)
    arg_types, _, aux_types = sym.infer_type(**(input_types or dict.fromkeys(input_shapes, mx_real_t)))
    names = sym.list_arguments()
    if isinstance(need_grad, bool):
        need_grad = set(names) - set(input_shapes) if need_grad else set()
    elif not isinstance(need_grad, set):
        raise AssertionError(f"_bind_exec: need_grad must be a bool or a set of names, received {type(need_grad)}")
    shared = {} if shared_data_arrays is None else shared_data_arrays
    args, grads = [], {}
    for name, shape, dtype in zip(names, arg_shapes, arg_types):
        if name in param_names and base_exec is not None:
            args.append(base_exec.arg_dict[name])
            grads[name] = base_exec.grad_dict[name]
            continue
        array = shared.get(name) if name not in param_names else None
        if array is not None and array.dtype == dtype and array.size >= np.prod(shape):
            array = array.reshape((-1,))[:int(np.prod(shape))].reshape(shape)
        else:
            if array is not None:
                logger.warning("_bind_exec: %s of shape %s does not fit into its shared array of shape %s; bind the largest shapes first", name,
                               shape, array.shape)
            array = nd.zeros(shape, ctx, dtype=dtype)
            if name not in param_names:
                shared[name] = array
        args.append(array)
        if name in need_grad:
            grads[name] = nd.zeros(shape, ctx, dtype=dtype)
    aux = base_exec.aux_arrays if base_exec is not None else [nd.zeros(shape, ctx, dtype=t) for shape, t in zip(aux_shapes, aux_types)]
    return sym.bind(ctx=ctx, args=args, args_grad={n: g for n, g in grads.items() if n in need_grad} or None, aux_states=aux,
                    grad_req={n: "write" if n in need_grad else "null" for n in names}, shared_exec=base_exec)


class DataParallelExecutorGroup:
    """An executor of one network per device: the executor group of modules with its older interface.

    Parameters
    ----------
    sym : Symbol
    arg_names, param_names : list of str
    ctx : list of Context
    slices : list of slice
        The samples of a batch for each device.
    train_data : DataIter or DataBatch
        Defines names and shapes; samples are along the first axis.
    shared_group : DataParallelExecutorGroup, optional
        The group whose parameters and memory are shared.
    """

    def __init__(self, sym: Symbol, arg_names: Sequence[str], param_names: Sequence[str], ctx: list[Context], slices: Sequence[slice],
                 train_data: Any, shared_group: DataParallelExecutorGroup | None = None):
        _check_arguments(sym)
        data, label = ([DataDesc(d[0], d[1], d.dtype if isinstance(d, DataDesc) else mx_real_t) for d in described]
                       for described in (train_data.provide_data, train_data.provide_label))
        inputs = {d.name for d in data + label}
        self.param_idx = [i for i, name in enumerate(arg_names) if name in param_names]
        self.param_names = [arg_names[i] for i in self.param_idx]
        self._group: executor_group.DataParallelExecutorGroup = executor_group.DataParallelExecutorGroup(
            sym, ctx, [part.stop - part.start for part in slices], data, label, self.param_names, for_training=True, inputs_need_grad=False,
            shared_group=None if shared_group is None else shared_group._group,
            grad_req={n: "null" if n in inputs else "write" for n in sym.list_arguments()})
        group = self._group
        self.train_execs, self.slices, self.shared_data_arrays = group.execs, group.slices, group.shared_data_arrays
        self.data_names, self.label_names, self.aux_names = group.data_names, group.label_names, group.aux_names
        self.data_arrays, self.label_arrays = group.data_arrays, group.label_arrays
        self.param_arrays, self.grad_arrays, self.aux_arrays = group.param_arrays, group.grad_arrays, group.aux_arrays

    def load_data_batch(self, data_batch: DataBatch) -> None:
        """Load each device's slice of a batch."""
        self._group.load_data_batch(data_batch)

    def forward(self, is_train: bool = False) -> None:
        """Run all devices forward."""
        self._group.run(is_train)

    def backward(self) -> None:
        """Compute gradients on all devices."""
        self._group.backward()

    def update_metric(self, metric: EvalMetric, labels: Sequence, pre_sliced: bool = False) -> None:
        """Update a metric with each device's outputs and its slice of the labels; by position, not by name as in a module."""
        for i, (executor, part) in enumerate(zip(self.train_execs, self.slices)):
            metric.update(labels[i] if pre_sliced else [label[part] for label in labels], executor.outputs)


class DataParallelExecutorManager:
    """The executor groups of a network, or with `sym_gen` of its buckets.

    Parameters
    ----------
    symbol : Symbol
    ctx : list of Context
    train_data : DataIter
    arg_names, param_names, aux_names : list of str
    work_load_list : list of number, optional
        The relative sizes of the devices' slices of a batch.
    logger : Logger, optional
    sym_gen : callable, optional
        Maps a bucket key to its network.
    """

    def __init__(self, symbol: Symbol, ctx: list[Context], train_data: Any, arg_names: Sequence[str], param_names: Sequence[str],
                 aux_names: Sequence[str], work_load_list: list[float] | None = None, logger: Any = None,
                 sym_gen: Callable[[Any], Symbol] | None = None):
        (logger or logging).info("Start training with %s", str(ctx))
        if work_load_list is None:
            work_load_list = [1] * len(ctx)
        if not isinstance(work_load_list, list) or len(work_load_list) != len(ctx):
            raise MXNetError(f"work_load_list needs one entry for each of {len(ctx)} devices, received {work_load_list}")
        self.slices = _split_input_slice(train_data.batch_size, work_load_list)
        self.arg_names = arg_names
        self.param_names = param_names
        self.aux_names = aux_names
        self.ctx = ctx
        self.symbol = symbol
        self.sym_gen = sym_gen
        self.execgrp = DataParallelExecutorGroup(symbol, arg_names, param_names, ctx, self.slices, train_data)
        self.curr_execgrp: Any = None  # a DataParallelExecutorGroup, from the first batch on
        if sym_gen is not None:
            self.execgrp_bucket = {train_data.default_bucket_key: self.execgrp}

    def install_monitor(self, monitor: Any) -> None:
        """Install a `Monitor` in the executors."""
        if self.sym_gen is not None:
            raise NotImplementedError("with buckets there is no one network to watch; use BucketingModule.install_monitor")
        self.execgrp._group.install_monitor(monitor)

    def set_params(self, arg_params: dict[str, nd.NDArray], aux_params: dict[str, nd.NDArray]) -> None:
        """Copy parameters to all devices."""
        self.execgrp._group.set_params(arg_params, aux_params)

    def copy_to(self, arg_params: dict[str, nd.NDArray], aux_params: dict[str, nd.NDArray]) -> None:
        """Write the parameters, averaged over the devices, into the arrays of two dicts."""
        self.execgrp._group.get_params(arg_params, aux_params)

    param_arrays = property(attrgetter("execgrp.param_arrays"), doc="Per parameter, the array on each device.")
    grad_arrays = property(attrgetter("execgrp.grad_arrays"), doc="Per parameter, the gradient on each device.")
    aux_arrays = property(attrgetter("execgrp.aux_arrays"), doc="Per auxiliary state, the array on each device.")

    def load_data_batch(self, data_batch: DataBatch) -> None:
        """Load each device's slice of a batch in the group of the batch's bucket."""
        self.curr_execgrp = self.execgrp
        if self.sym_gen is not None:
            key = data_batch.bucket_key
            if key not in self.execgrp_bucket:
                self.execgrp_bucket[key] = DataParallelExecutorGroup(self.sym_gen(key), self.arg_names, self.param_names, self.ctx,
                                                                     self.slices, data_batch, shared_group=self.execgrp)
            self.curr_execgrp = self.execgrp_bucket[key]
        self.curr_execgrp.load_data_batch(data_batch)

    def update_metric(self, metric: EvalMetric, labels: Sequence, pre_sliced: bool = False) -> None:
        """Update a metric with the labels and the outputs of the current group."""
        self.curr_execgrp.update_metric(metric, labels, pre_sliced)

    def backward(self) -> None:
        """Compute gradients in the current group."""
        self.curr_execgrp.backward()

    def forward(self, is_train: bool = False) -> None:
        """Run the current group forward."""
        self.curr_execgrp.forward(is_train=is_train)
