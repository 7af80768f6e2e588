"""Data parallelism: the executors of one network on several devices, each with a slice of every batch."""
from __future__ import annotations

import ctypes
import functools
import logging
from collections.abc import Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import ndarray as nd
from ..base import MXNetError
from ..context import Context, cpu
from ..io import DataDesc
from ..ops import rendezvous
from ..ops.dtypes import FLAG_TO_NAME
from ..suggestions import shortened
from ..symbol.split_layers import GROUP

if TYPE_CHECKING:
    from ..monitor import Monitor
    from ..ndarray import NDArray
    from ..symbol import Symbol
    from .split_parameters import SplitParameters

_FEW_BYTES = 64 << 20


def _split_input_slice(batch_size: int, work_load_list: Sequence[float]) -> list[slice]:
    """Divide the samples of a batch among devices, in proportion to their work loads.

    Returns
    -------
    list of slice

    Raises
    ------
    ValueError
        If there are more devices than samples.
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


def _copy(name: str, source: Any, target) -> None:
    """Write `source` into the bound array `target`."""
    if source is target:
        return
    if tuple(source.shape) != target.shape:
        raise MXNetError(f"the batch's {name!r} has shape {tuple(source.shape)}, the module is bound to {target.shape}; "
                         "call reshape(data_shapes, label_shapes), or correct the batch")
    if isinstance(source, nd.NDArray):
        if _plain(source, target):
            ctypes.memmove(target._writable().data_ptr(), source._data.data_ptr(), source._data.nbytes)
        else:
            source.copyto(target)
    else:
        target[:] = source


def _plain(source: Any, target):
    """Return True if a copy is small and bytewise, for this thread only: torch's spinning threads would take cores from the next network."""
    if source._is_sparse or target._is_sparse:
        return False
    a, b = source._data, target._data
    return (a.device.type == b.device.type == "cpu" and a.dtype is b.dtype and a.is_contiguous() and b.is_contiguous() and a.nbytes <= _FEW_BYTES)


def _cut(array, axis, part: Any):
    """Return the `part` (a slice) of an array along an axis; the array itself if the slice covers it."""
    if axis < 0 or (part.start == 0 and part.stop == array.shape[axis]):
        return array
    return array[part] if axis == 0 else nd.slice_axis(array, axis=axis, begin=part.start, end=part.stop)


def _load(names: Any, sources, targets, axes) -> None:
    """Write arrays into the bound arrays of all devices: ``targets`` has, per array, ``(slice, bound array)`` per device."""
    if len(sources) != len(targets):
        raise MXNetError(f"the batch holds {len(sources)} arrays, the module is bound to {len(targets)}: {', '.join(names)}")
    for name, source, per_device, axis in zip(names, sources, targets, axes):
        if axis >= 0 and (len(source.shape) <= axis or source.shape[axis] != per_device[-1][0].stop):
            raise MXNetError(f"the batch's {name!r} has shape {tuple(source.shape)}, the module is bound to {per_device[-1][0].stop} "
                             f"samples along axis {axis}; call reshape(data_shapes, label_shapes), or correct the batch")
        for part, target in per_device:
            _copy(name, _cut(source, axis, part), target)


def _load_parts(names: Any, parts, targets) -> None:
    """Do the same as `_load` for batches that are already split by device: ``parts[device][array]``."""
    for i, (name, per_device) in enumerate(zip(names, targets)):
        if len(parts) != len(per_device):
            raise MXNetError(f"a list of {len(parts)} batches was given to a module on {len(per_device)} devices")
        for part, (_, target) in zip(parts, per_device):
            _copy(name, part[i], target)


def _merge(per_device, axis):
    """Merge the arrays of all devices into one."""
    first = per_device[0]
    if len(per_device) == 1 or axis < 0:
        return first
    return nd.concat(*[array.as_in_context(first.context) for array in per_device], dim=axis)


def _merge_multi_context(outputs: Any, major_axis: Any) -> list[Any]:
    return [_merge(per_device, axis) for per_device, axis in zip(outputs, major_axis)]


def _write_mean(arrays: Any, target) -> None:
    """Write the mean of the devices' arrays into `target`, converted to its type."""
    mean = arrays[0]
    if len(arrays) > 1:
        mean = sum((a.as_in_context(cpu()) for a in arrays[1:]), arrays[0].copyto(cpu())) / len(arrays)
    if mean.dtype != target.dtype:
        mean = mean.astype(target.dtype)
    mean.copyto(target)


def groups_per_device(group2ctxs: Any, count: int) -> list[dict[str, Any] | None]:
    """Return `group2ctxs` as a list: for each device the contexts of its groups (a dict, or None)."""
    if group2ctxs is None:
        return [None] * count
    if isinstance(group2ctxs, list):
        if len(group2ctxs) != count:
            raise MXNetError(f"group2ctxs: a list needs one dict per context ({count}), received {len(group2ctxs)}")
        return group2ctxs
    if not isinstance(group2ctxs, dict):
        raise MXNetError("group2ctxs must be a dict from group names to (lists of) contexts, or a list of such dicts, "
                         f"received {shortened(group2ctxs)}")
    spread = {}
    for group, contexts in group2ctxs.items():
        if group == GROUP and count == 1:
            spread[group] = [contexts]
            continue
        contexts = [contexts] if isinstance(contexts, Context) else list(contexts)
        if len(contexts) not in (1, count):
            raise MXNetError(f"group2ctxs[{group!r}] needs 1 or {count} contexts, received {len(contexts)}")
        spread[group] = contexts * (count // len(contexts))
    return [{group: contexts[i] for group, contexts in spread.items()} for i in range(count)]


def _bytes_of(executor):
    arrays = chain(executor.arg_arrays, executor.grad_arrays, executor.aux_arrays)
    return sum(a.size * np.dtype(a.dtype).itemsize for a in arrays if a is not None)


class DataParallelExecutorGroup:
    """Executors of one network on several devices.

    Parameters
    ----------
    symbol : Symbol
    contexts : list of Context
    workload : list of number
        The relative sizes of the devices' slices of a batch.
    data_shapes, label_shapes : list of DataDesc
        The shapes of whole batches; `label_shapes` may be None.
    param_names : list of str
    for_training, inputs_need_grad : bool
    shared_group : DataParallelExecutorGroup, optional
        The group whose parameters and memory are shared.
    logger : Logger
    fixed_param_names : list of str, optional
        Parameters without gradient.
    grad_req : str, list or dict of str
    state_names : list of str, optional
    group2ctxs : list or dict, optional
        The contexts of the groups of a model-parallel network.
    split : SplitParameters, optional
        The divided parameters of `symbol`.

    Attributes
    ----------
    execs : list of Executor
        One per device.
    param_arrays, grad_arrays, aux_arrays : list of lists of NDArray
        Per parameter, the array on each device.
    slices : list of slice
        The samples of a batch for each device.
    """

    def __init__(self, symbol: Symbol, contexts: list[Context], workload: list[float], data_shapes: Any, label_shapes: Any, param_names: list[str],
                 for_training: bool, inputs_need_grad: bool, shared_group: DataParallelExecutorGroup | None = None, logger: Any = logging,
                 fixed_param_names: list[str] | None = None, grad_req: str | list[str] | dict[str, str] = "write",
                 state_names: list[str] | None = None, group2ctxs: list[Any] | dict[str, Any] | None = None,
                 split: SplitParameters | None = None) -> None:
        whole_names = symbol.list_arguments()
        self.split = split
        if split is not None:
            symbol = split.symbol
        self.symbol = symbol
        self.contexts = contexts
        self.workload = workload
        self.group2ctxs = groups_per_device(group2ctxs, len(contexts))
        self.for_training = for_training
        self.inputs_need_grad = inputs_need_grad
        self.logger = logger
        self.param_names = param_names
        self.fixed_param_names = fixed_param_names or []
        self.state_names = state_names or []
        self.arg_names = symbol.list_arguments()
        self.aux_names = symbol.list_auxiliary_states()
        self.output_names = symbol.list_outputs()
        self.num_outputs = len(self.output_names)
        self._synchronizes = any(node.op is not None and node.op.synchronizes and node.op.holds("synchronizes", node.op.with_defaults(node.parsed()))
                          for node in symbol._nodes())
        self.output_layouts = [DataDesc.get_batch_axis(symbol[i].attr("__layout__")) for i in range(self.num_outputs)]
        data_shapes = [d if isinstance(d, DataDesc) else DataDesc(*d) for d in data_shapes]
        if label_shapes is not None:
            label_shapes = [d if isinstance(d, DataDesc) else DataDesc(*d) for d in label_shapes]
        self.grad_req = self._grad_req_by_name(grad_req if for_training else "null", {d.name for d in data_shapes}, whole_names)
        # Per device, arrays that the executors of all buckets use in turn.
        self.shared_data_arrays: list[dict[str, NDArray]] = shared_group.shared_data_arrays if shared_group else [{} for _ in contexts]
        self._total_exec_bytes = 0
        self.execs: list[Any] = []
        self._default_execs: Any = None
        self.label_layouts: Any = None
        self.batch_size: Any = None
        self.slices: Any = None
        self.input_grad_arrays: Any = None
        self.bind_exec(data_shapes, label_shapes, shared_group)

    def _grad_req_by_name(self, grad_req: str | list[str] | dict[str, str], data_names: Any, arg_names: list[str]) -> dict[str, str]:
        by_name = self._grad_req_by_argument(grad_req, data_names, arg_names)
        for name, parts in self.split.parts.items() if self.split is not None else ():
            by_name.update(dict.fromkeys([part.name for part in parts], by_name.pop(name)))
        return by_name

    def _grad_req_by_argument(self, grad_req: str | list[str] | dict[str, str], data_names: Any, arg_names: list[str]) -> dict[str, str]:
        if isinstance(grad_req, (list, tuple)):
            if len(grad_req) != len(arg_names):
                raise MXNetError(f"grad_req: a list needs one entry per argument ({len(arg_names)}), received {len(grad_req)}")
            return dict(zip(arg_names, grad_req))
        if not isinstance(grad_req, (str, dict)):
            raise ValueError(f"grad_req must be a str, list, tuple or dict, received {shortened(grad_req)}")
        usual = grad_req if isinstance(grad_req, str) else "write"
        trained = set(self.param_names) - set(self.fixed_param_names)
        if self.inputs_need_grad:
            trained |= data_names - set(self.param_names)
        by_name = {name: usual if name in trained else "null" for name in arg_names}
        if isinstance(grad_req, dict):
            by_name.update(grad_req)
        return by_name

    # -- binding -----------------------------------------------------------------------------------------------------------------

    def decide_slices(self, data_shapes: Any) -> Any:
        """Divide the batch among the devices; return the batch axis of each input (-1: it has none)."""
        axes = [DataDesc.get_batch_axis(d.layout) for d in data_shapes]
        for d, axis in zip(data_shapes, axes):
            if axis < 0:
                continue
            size = d.shape[axis]
            if self.batch_size is None:
                self.batch_size = size
                self.slices = _split_input_slice(size, self.workload)
            elif size != self.batch_size:
                raise MXNetError(f"a batch size of {self.batch_size} expected, as the inputs before have; received {d.name!r} of shape {d.shape}")
        return axes

    def bind_exec(self, data_shapes: Any, label_shapes: Any, shared_group: Any = None, reshape: bool = False) -> None:
        """Bind the executors, or with `reshape` rebind them, for whole batches of these shapes. A failure or an interrupt changes nothing."""
        before = self.__dict__.copy()
        try:
            self._bind_all(data_shapes, label_shapes, shared_group, reshape)
        except BaseException:
            self.__dict__.update(before)
            raise

    def _bind_all(self, data_shapes: Any, label_shapes: Any, shared_group: Any, reshape: bool) -> None:
        self.batch_size = self.slices = None
        self.data_layouts = self.decide_slices(data_shapes)
        if label_shapes is not None:
            self.label_layouts = self.decide_slices(label_shapes)
        execs = []
        for i in range(len(self.contexts)):
            data = self._sliced_shape(data_shapes, i, self.data_layouts)
            label = self._sliced_shape(label_shapes, i, self.label_layouts) if label_shapes is not None else []
            if reshape:
                execs.append(self._default_execs[i].reshape(allow_up_sizing=True, **{d.name: d.shape for d in data + label}))
            else:
                execs.append(self._bind_ith_exec(i, data, label, shared_group))
        self.execs = execs
        self.data_shapes = data_shapes
        self.label_shapes = label_shapes
        self.data_names = [d.name for d in data_shapes]
        self.label_names = [d.name for d in label_shapes] if label_shapes is not None else None
        self._collect_arrays()

    def reshape(self, data_shapes: Any, label_shapes: Any) -> None:
        """Rebind for whole batches of other shapes; parameters and their memory stay."""
        if data_shapes == self.data_shapes and label_shapes == self.label_shapes:
            return
        if self._default_execs is None:
            self._default_execs = list(self.execs)
        self.bind_exec(data_shapes, label_shapes, reshape=True)

    def _bind_ith_exec(self, i: int, data_shapes: Any, label_shapes: Any, shared_group: Any):
        types = {d.name: d.dtype for d in data_shapes}
        attributes = self.symbol.attr_dict()
        for name in types:
            declared = attributes.get(name, {}).get("__dtype__", "-1")
            if declared != "-1":  # a type that the network declares for its input has precedence over the iterator's
                types[name] = FLAG_TO_NAME[int(declared)]
        types.update({d.name: d.dtype for d in label_shapes})
        executor = self.symbol.simple_bind(
            ctx=self.contexts[i], grad_req=self.grad_req, type_dict=types, shared_arg_names=self._bound_names(self.param_names),
            shared_exec=shared_group.execs[i] if shared_group else None, group2ctx=self.group2ctxs[i],
            shared_buffer=self.shared_data_arrays[i], **{d.name: d.shape for d in data_shapes + label_shapes})
        self._total_exec_bytes += _bytes_of(executor)
        return executor

    def _sliced_shape(self, shapes: Any, i: int, axes):
        sliced = []
        for d, axis in zip(shapes, axes):
            shape = list(d.shape)
            if axis >= 0:
                shape[axis] = self.slices[i].stop - self.slices[i].start
            sliced.append(DataDesc(d.name, tuple(shape), d.dtype, d.layout))
        return sliced

    def _collect_arrays(self) -> None:
        parts = self.slices or [slice(i, i + 1) for i in range(len(self.execs))]

        def inputs(names: Any) -> Any:
            return [[(part, e.arg_dict[name]) for part, e in zip(parts, self.execs)] for name in names]

        def on_devices(kind, numbers):
            return [[getattr(e, kind)[i] for e in self.execs for i in some] for some in numbers]

        position = {name: i for i, name in enumerate(self.arg_names)}
        # Of a divided parameter, the arrays of its parts take the place of those of the devices.
        params = [[position[bound] for bound in self._bound_names([name])] for name in self.param_names]
        self.data_arrays = inputs(self.data_names)
        self.label_arrays = inputs(self.label_names) if self.label_names is not None else None
        self.state_arrays = [[e.arg_dict[name] for e in self.execs] for name in self.state_names]
        self.param_arrays = on_devices("arg_arrays", params)
        self.grad_arrays = on_devices("grad_arrays", params) if self.for_training else None
        self.aux_arrays = on_devices("aux_arrays", [[i] for i in range(len(self.aux_names))])
        self.input_grad_arrays = None
        if self.inputs_need_grad:
            self.input_grad_arrays = on_devices("grad_arrays", [[position[name]] for name in self.data_names if name in position])

    # -- parameters --------------------------------------------------------------------------------------------------------------

    def _bound_names(self, names: list[str]) -> list[str]:
        return names if self.split is None else self.split.names(names)

    def set_params(self, arg_params: dict[str, NDArray] | None, aux_params: dict[str, NDArray] | None, allow_extra: bool = False) -> None:
        """Copy parameters to all devices."""
        values = arg_params if self.split is None else self.split.split(arg_params)
        for executor in self.execs:
            executor.copy_params_from(values, aux_params, allow_extra_params=allow_extra)

    def get_params(self, arg_params: dict[str, NDArray], aux_params: dict[str, NDArray]) -> None:
        """Write the parameters, averaged over the devices, into the arrays of two dicts."""
        for names, arrays, targets in ((self.param_names, self.param_arrays, arg_params), (self.aux_names, self.aux_arrays, aux_params)):
            for name, per_device in zip(names, arrays):
                if self.split is not None and name in self.split.parts:
                    per_device = [self.split.gathered(name, per_device)]
                _write_mean(per_device, targets[name])

    # -- one batch ---------------------------------------------------------------------------------------------------------------

    def forward(self, data_batch: Any, is_train: bool | None = None) -> None:
        """Load each device's slice of a batch (or of a list of batches, one per device), and run all devices."""
        self.load_data_batch(data_batch)
        self.run(is_train)

    def load_data_batch(self, data_batch: Any) -> None:
        """Load each device's slice of a batch, or its own batch from a list of batches."""
        if isinstance(data_batch, list):
            _load_parts(self.data_names, [part.data for part in data_batch], self.data_arrays)
            if self.label_arrays is not None and data_batch[0].label:
                _load_parts(self.label_names, [part.label for part in data_batch], self.label_arrays)
        else:
            _load(self.data_names, data_batch.data, self.data_arrays, self.data_layouts)
            label = getattr(data_batch, "label", None)
            if self.label_arrays is not None and label:
                _load(self.label_names, label, self.label_arrays, self.label_layouts)

    def run(self, is_train: bool | None = None) -> None:
        """Run all devices forward on the loaded batch; by default in training mode if the group was bound for training."""
        if is_train is None:
            is_train = self.for_training
        self._run_each([functools.partial(executor.forward, is_train=is_train) for executor in self.execs], is_train)

    def backward(self, out_grads: Any = None) -> None:
        """Compute gradients on all devices, each with its slice of `out_grads`."""
        if not self.for_training:
            raise MXNetError(f"backward needs a module bound with for_training=True, it was bound with {self.for_training}; bind it again")
        out_grads = [out_grads] if isinstance(out_grads, nd.NDArray) else out_grads or []
        calls = []
        for context, executor, part in zip(self.contexts, self.execs, self.slices or [None] * len(self.execs)):
            parts = [_cut(grad, axis if part else -1, part).as_in_context(context) for grad, axis in zip(out_grads, self.output_layouts)]
            calls.append(functools.partial(executor.backward, out_grads=parts or None))
        self._run_each(calls, True)

    def _run_each(self, calls: list[Any], is_train: bool) -> None:
        if is_train and self._synchronizes and len(calls) > 1:
            rendezvous.in_order_of_devices(calls)
            return
        for call in calls:
            call()

    def expect_gradients(self, kvstore: Any) -> None:
        """Overlap the store's communication with the next backward; each parameter with a gradient is a key."""
        trained = [(name, arrays) for name, arrays in zip(self.param_names, self.grad_arrays or ())
                   if arrays[0] is not None and (self.split is None or name not in self.split.parts)]
        finished = None
        if all(array.stype == "default" for _, arrays in trained for array in arrays):
            finished = kvstore._expect([name for name, _ in trained], [arrays for _, arrays in trained])
        position = {name: i for i, name in enumerate(self.arg_names)}
        waiting = {position[name]: functools.partial(finished, name) for name, _ in trained} if finished else {}
        for executor in self.execs:
            executor.finished = waiting

    def get_output_shapes(self) -> Any:
        """Return the names and shapes of the outputs for a whole batch, as a list of pairs."""
        shapes = []
        for i, (name, axis) in enumerate(zip(self.output_names, self.output_layouts)):
            per_device = [e.outputs[i].shape for e in self.execs]
            shape = list(per_device[0])
            if axis >= 0:
                shape[axis] = sum(s[axis] for s in per_device)
            shapes.append((name, tuple(shape)))
        return shapes

    def get_outputs(self, merge_multi_context: bool = True, begin: int = 0, end: int | None = None) -> list[Any]:
        """Return the outputs ``begin:end`` of the last forward."""
        outputs = [[e.outputs[i] for e in self.execs] for i in range(self.num_outputs)[begin:end]]
        return _merge_multi_context(outputs, self.output_layouts[begin:end]) if merge_multi_context else outputs

    def get_input_grads(self, merge_multi_context: bool = True) -> list[Any]:
        """Return the gradients of the data."""
        if not self.inputs_need_grad:
            raise MXNetError(f"get_input_grads needs a module bound with inputs_need_grad=True, it was bound with {self.inputs_need_grad}; bind "
                             "it again")
        if not merge_multi_context:
            return self.input_grad_arrays
        return _merge_multi_context(self.input_grad_arrays, self.data_layouts)

    def get_states(self, merge_multi_context: bool = True) -> list[Any]:
        """Return the state arrays, per state a list over the devices."""
        if merge_multi_context:
            raise MXNetError(f"get_states: states of several devices cannot be merged, received merge_multi_context={merge_multi_context}; "
                             "use merge_multi_context=False")
        return self.state_arrays

    def set_states(self, states: Any = None, value: Any = None) -> None:
        """Copy `states` (per state a list over the devices) or one number into the state arrays."""
        if (states is None) == (value is None):
            raise MXNetError(f"set_states: give either states or value, received {'neither' if states is None else 'both'}")
        for i, (name, targets) in enumerate(zip(self.state_names, self.state_arrays)):
            for k, target in enumerate(targets):
                if states is None:
                    target[:] = value
                else:
                    _copy(name, states[i][k] if isinstance(states[i], (list, tuple)) else states[i], target)

    def update_metric(self, eval_metric: Any, labels: Any, pre_sliced: bool = False) -> None:
        """Update a metric with each device's outputs and its slice of the labels."""
        parts = self.slices or [None] * len(self.execs)
        names = self.label_names or []
        for i, (executor, part) in enumerate(zip(self.execs, parts)):
            if pre_sliced:
                mine = labels[i]
            else:
                mine = [_cut(label, axis if part else -1, part) for label, axis in zip(labels or (), self.label_layouts or ())]
            eval_metric.update_dict(dict(zip(names, mine)), dict(zip(self.output_names, executor.outputs)))

    def install_monitor(self, mon: Monitor) -> None:
        """Install a `Monitor` in all executors."""
        for executor in self.execs:
            mon.install(executor)
