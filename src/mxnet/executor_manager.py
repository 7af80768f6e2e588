"""Executors of one network on several devices, as `FeedForward` uses them. New programs use `Module`."""
import logging
from operator import attrgetter

from . import ndarray as nd
from .base import MXNetError, mx_real_t
from .context import cpu
from .io import DataDesc

__all__ = ["DataParallelExecutorGroup", "DataParallelExecutorManager"]


def _split_input_slice(batch_size, work_load_list):
    """Divide the samples of a batch among devices, in proportion to their work loads.

    Returns
    -------
    list of slice

    Raises
    ------
    ValueError
        If there are more devices than samples, so that one would get none.
    """
    total = sum(work_load_list)
    counts = [round(load * batch_size / total) for load in work_load_list]
    counts[-1] += max(0, batch_size - sum(counts))
    slices, end = [], 0
    for count in counts:
        begin, end = end, min(end + count, batch_size)
        if begin >= end:
            raise ValueError(f"a batch of {batch_size} can't be divided among devices with work loads {work_load_list}: one gets nothing")
        slices.append(slice(begin, end))
    return slices


def _check_arguments(symbol):
    """Raise if two arguments, or two auxiliary states, of a network have the same name."""
    for kind, names in (("argument", symbol.list_arguments()), ("auxiliary param", symbol.list_auxiliary_states())):
        repeated = sorted({name for name in names if names.count(name) > 1})
        if repeated:
            raise ValueError(f"Find duplicated {kind} name {repeated}; give the operators different names. All names: {names}")


def _load_general(data, targets):
    """Copy arrays into bound ones; a target is one array, or a list of ``(slice of the batch, array)``."""
    for source, target in zip(data, targets):
        if isinstance(target, nd.NDArray):
            source.copyto(target)
            continue
        size = target[-1][0].stop
        if size != source.shape[0]:
            raise MXNetError(f"Batch size miss match. Expected {size}, got {source.shape[0]}")
        for part, array in target:
            source[part].copyto(array)


def _load_data(batch, targets):
    _load_general(batch.data, targets)


def _load_label(batch, targets):
    _load_general(batch.label, targets)


class DataParallelExecutorGroup:
    """An executor of one network per device.

    Parameters
    ----------
    sym : Symbol
    arg_names, param_names : list of str
    ctx : list of Context
    slices : list of slice
        Which samples of a batch each device takes.
    train_data : DataIter or DataBatch
        Tells names and shapes.
    shared_group : DataParallelExecutorGroup, optional
        Whose parameters and memory to share.
    """

    def __init__(self, sym, arg_names, param_names, ctx, slices, train_data, shared_group=None):
        _check_arguments(sym)
        inputs = list(train_data.provide_data) + list(train_data.provide_label)
        types = {d[0]: d.dtype if isinstance(d, DataDesc) else mx_real_t for d in inputs}
        self.slices = slices
        self.shared_data_arrays = shared_group.shared_data_arrays if shared_group else [{} for _ in ctx]
        self.data_names = [d[0] for d in train_data.provide_data]
        self.label_names = [d[0] for d in train_data.provide_label]
        self.aux_names = sym.list_auxiliary_states()
        self.param_idx = [i for i, name in enumerate(arg_names) if name in param_names]
        self.param_names = [arg_names[i] for i in self.param_idx]
        grad_req = {name: "null" if name in types else "write" for name in sym.list_arguments()}
        self.train_execs = []
        for i, context in enumerate(ctx):
            count = slices[i].stop - slices[i].start
            self.train_execs.append(sym.simple_bind(
                context, grad_req=grad_req, type_dict=types, shared_arg_names=self.param_names,
                shared_exec=shared_group.train_execs[i] if shared_group else None, shared_buffer=self.shared_data_arrays[i],
                **{d[0]: (count, *d[1][1:]) for d in inputs}))
        self.data_arrays = self._inputs(self.data_names)
        self.label_arrays = self._inputs(self.label_names)
        self.param_arrays = [[e.arg_arrays[i] for e in self.train_execs] for i in self.param_idx]
        self.grad_arrays = [[e.grad_arrays[i] for e in self.train_execs] for i in self.param_idx]
        self.aux_arrays = [[e.aux_arrays[i] for e in self.train_execs] for i in range(len(self.aux_names))]

    def _inputs(self, names):
        return [[(part, e.arg_dict[name]) for part, e in zip(self.slices, self.train_execs)] for name in names]

    def load_data_batch(self, data_batch):
        """Give each device its share of a batch."""
        _load_data(data_batch, self.data_arrays)
        _load_label(data_batch, self.label_arrays)

    def forward(self, is_train=False):
        """Run all devices forward."""
        for executor in self.train_execs:
            executor.forward(is_train=is_train)

    def backward(self):
        """Compute gradients on all devices."""
        for executor in self.train_execs:
            executor.backward()

    def update_metric(self, metric, labels, pre_sliced=False):
        """Give each device's outputs, with its share of the labels, to a metric."""
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
        How much of each batch each device takes, in proportion.
    logger : Logger, optional
    sym_gen : callable, optional
        From a bucket key to its network.
    """

    def __init__(self, symbol, ctx, train_data, arg_names, param_names, aux_names, work_load_list=None, logger=None, sym_gen=None):
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
        self.curr_execgrp = None
        if sym_gen is not None:
            self.execgrp_bucket = {train_data.default_bucket_key: self.execgrp}

    def install_monitor(self, monitor):
        """Let a `Monitor` watch the executors."""
        if self.sym_gen is not None:
            raise NotImplementedError("with buckets there is no one network to watch; use BucketingModule.install_monitor")
        for executor in self.execgrp.train_execs:
            monitor.install(executor)

    def set_params(self, arg_params, aux_params):
        """Copy parameters to all devices."""
        for executor in self.execgrp.train_execs:
            executor.copy_params_from(arg_params, aux_params)

    def copy_to(self, arg_params, aux_params):
        """Write the parameters, averaged over the devices, into the arrays of two dicts."""
        for names, arrays, targets in ((self.param_names, self.param_arrays, arg_params), (self.aux_names, self.aux_arrays, aux_params)):
            for name, per_device in zip(names, arrays):
                write_mean(per_device, targets[name])

    param_arrays = property(attrgetter("execgrp.param_arrays"), doc="Per parameter, the array on each device.")
    grad_arrays = property(attrgetter("execgrp.grad_arrays"), doc="Per parameter, the gradient on each device.")
    aux_arrays = property(attrgetter("execgrp.aux_arrays"), doc="Per auxiliary state, the array on each device.")

    def load_data_batch(self, data_batch):
        """Give each device its share of a batch, in the group of the batch's bucket."""
        self.curr_execgrp = self.execgrp
        if self.sym_gen is not None:
            key = data_batch.bucket_key
            if key not in self.execgrp_bucket:
                self.execgrp_bucket[key] = DataParallelExecutorGroup(self.sym_gen(key), self.arg_names, self.param_names, self.ctx,
                                                                     self.slices, data_batch, shared_group=self.execgrp)
            self.curr_execgrp = self.execgrp_bucket[key]
        self.curr_execgrp.load_data_batch(data_batch)

    def update_metric(self, metric, labels, pre_sliced=False):
        """Give labels and outputs of the current group to a metric."""
        self.curr_execgrp.update_metric(metric, labels, pre_sliced)

    def backward(self):
        """Compute gradients in the current group."""
        self.curr_execgrp.backward()

    def forward(self, is_train=False):
        """Run the current group forward."""
        self.curr_execgrp.forward(is_train=is_train)


def write_mean(arrays, target):
    """Write the mean of the devices' arrays into `target`, converted to its type."""
    mean = arrays[0]
    if len(arrays) > 1:
        mean = sum((a.as_in_context(cpu()) for a in arrays[1:]), arrays[0].copyto(cpu())) / len(arrays)
    if mean.dtype != target.dtype:
        mean = mean.astype(target.dtype)
    mean.copyto(target)
