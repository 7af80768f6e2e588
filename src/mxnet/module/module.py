"""`Module`: one Symbol with its parameters, on one device or replicated on several."""
from __future__ import annotations

import logging
import sys
import warnings
from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from .. import memory
from .. import ndarray as nd
from .. import optimizer as opt
from ..base import MXNetError
from ..checkpoint import load_checkpoint, load_optimizer_states, params_file, save_optimizer_states, states_file
from ..context import Context, cpu
from ..initializer import InitDesc, Uniform
from ..io import DataDesc
from ..kvstore.updates import create_kvstore, initialize_kvstore, renumber_states, update_params, update_params_on_kvstore
from ..suggestions import shortened
from .base_module import BaseModule, _check_input_names, _parse_data_desc
from .batch_shapes import batch_size_of, resized, shapes_of
from .executor_group import DataParallelExecutorGroup, groups_per_device
from .split_parameters import SplitParameters, divided
from .torch_sharing import SharesWithTorch
from .training_checkpoints import TrainingCheckpoints

if TYPE_CHECKING:
    from ..monitor import Monitor
    from ..ndarray import NDArray
    from ..optimizer import Optimizer
    from ..symbol import Symbol


_LARGE = 1 << 22  # parameters of more elements have no copy on the CPU while devices train


class Module(TrainingCheckpoints, SharesWithTorch, BaseModule):
    """A network given as a Symbol, trained and scored batch by batch.

    Parameters
    ----------
    symbol : Symbol
    data_names, label_names : list of str or None
        The arguments of `symbol` that data iterators fill.
    logger : Logger
    context : Context or list of Context
        The devices. Each batch is divided among several ones.
    work_load_list : list of number, optional
        The relative sizes of the devices' slices of a batch; equal by default.
    fixed_param_names : list of str, optional
        Parameters that training does not change.
    state_names : list of str, optional
        Arguments that persist across batches, such as the initial states of a recurrent network.
    group2ctxs : dict of str to (list of) Context, or list of such dicts, optional
        The devices of the parts of the network that were made under ``AttrScope(ctx_group=...)``. The group ``sharded`` may have a list of devices,
        which divide the rows of its fully connected layers, as do the ranks of a job: see ``docs/sharded.md``.
    compression_params : dict, optional
        The compression of gradients between devices, such as ``{'type': '2bit', 'threshold': 0.5}``.

    Example
    -------
    >>> import mxnet as mx
    >>> net = mx.sym.FullyConnected(mx.sym.var('data'), num_hidden=2, name='fc')
    >>> net = mx.sym.SoftmaxOutput(net, name='softmax')
    >>> data = mx.io.NDArrayIter(mx.nd.ones((8, 3)), mx.nd.zeros((8,)), batch_size=4)
    >>> module = mx.mod.Module(net)
    >>> module.fit(data, num_epoch=1, optimizer_params={'learning_rate': 0.5})
    >>> module.predict(data).shape
    (8, 2)
    """

    def __init__(self, symbol: Symbol, data_names: Sequence[str] | None = ("data",), label_names: Sequence[str] | None = ("softmax_label",),
                 logger: Any = logging, context: Context | list[Context] = cpu(), work_load_list: list[float] | None = None,
                 fixed_param_names: list[str] | None = None, state_names: list[str] | None = None, group2ctxs: Any = None,
                 compression_params: dict[str, Any] | None = None) -> None:
        super().__init__(logger=logger)
        self._symbol = symbol
        self._context = [context] if isinstance(context, Context) else context
        self._work_load_list: list[float] = [1] * len(self._context) if work_load_list is None else work_load_list
        if len(self._work_load_list) != len(self._context):
            raise MXNetError(f"work_load_list needs one entry per context: {len(self._context)} contexts, received {work_load_list}")
        self._group2ctxs = group2ctxs
        self._compression_params = compression_params

        self._data_names = list(data_names or ())
        self._label_names = list(label_names or ())
        self._state_names = list(state_names or ())
        self._fixed_param_names = list(fixed_param_names or ())
        _check_input_names(symbol, self._data_names, "data", True)
        _check_input_names(symbol, self._label_names, "label", False)
        _check_input_names(symbol, self._state_names, "state", True)
        _check_input_names(symbol, self._fixed_param_names, "fixed_param", True)
        inputs = {*self._data_names, *self._label_names, *self._state_names}
        self._param_names = [name for name in symbol.list_arguments() if name not in inputs]
        self._aux_names = symbol.list_auxiliary_states()
        self._output_names = symbol.list_outputs()

        self._arg_params: Any = None
        self._aux_params: Any = None
        self._params_dirty = False  # True while the devices have newer values than _arg_params and _aux_params
        self._released: list[NDArray] = []  # the arrays of these whose memory is released meanwhile
        self._optimizer: Any = None
        self._kvstore: Any = None
        self._update_on_kvstore: bool | None = None
        self._updater: Any = None
        self._updated_names: list[str] = []  # from the optimizer's numbers to the parameters
        self._preload_opt_states: str | None = None
        self._grad_req: Any = None
        self._reset_bind()

    # -- files -------------------------------------------------------------------------------------------------------------------

    @staticmethod
    def load(prefix: str, epoch: int, load_optimizer_states: bool = False, **kwargs: Any) -> Any:
        """Load a module with the network and the parameters of a checkpoint; it is not bound yet.

        Parameters
        ----------
        prefix : str
            The path prefix of the checkpoint's files.
        epoch : int
        load_optimizer_states : bool
            Let `init_optimizer` load the states saved with ``save_optimizer_states=True``.
        **kwargs
            For `Module`.
        """
        symbol, arg_params, aux_params = load_checkpoint(prefix, epoch)
        module = Module(symbol, **kwargs)
        module._arg_params, module._aux_params = arg_params, aux_params
        module.params_initialized = True
        if load_optimizer_states:
            module._preload_opt_states = states_file(prefix, epoch)
        return module

    def save_checkpoint(self, prefix: str, epoch: int, save_optimizer_states: bool = False, remove_amp_cast: bool = True) -> None:
        """Save the network, the parameters and optionally the optimizer's states; each file is written atomically.

        The files are ``prefix-symbol.json``, ``prefix-0001.params`` and ``prefix-0001.states`` (for epoch 1).
        """
        self._symbol.save(f"{prefix}-symbol.json", remove_amp_cast=remove_amp_cast)
        self.save_params(params_file(prefix, epoch))
        logging.info('Saved checkpoint to "%s"', params_file(prefix, epoch))
        if save_optimizer_states:
            self.save_optimizer_states(states_file(prefix, epoch))
            logging.info('Saved optimizer state to "%s"', states_file(prefix, epoch))

    def save_optimizer_states(self, fname: str) -> None:
        """Save the optimizer's states atomically."""
        self._require(bound=False, optimizer=True)
        if self._update_on_kvstore:
            self._kvstore.save_optimizer_states(fname)
        else:
            save_optimizer_states(fname, self._updater)
        self._add_split_states(fname)

    def load_optimizer_states(self, fname: str) -> None:
        """Load saved optimizer states.

        Raises
        ------
        MXNetError
            If the file is missing, damaged, or holds anything but optimizer states.
        """
        self._require(bound=False, optimizer=True)
        if self._update_on_kvstore:
            self._kvstore.load_optimizer_states(fname)
        else:
            load_optimizer_states(fname, self._updater)
        if self._split is not None:
            updater = self._kvstore._updater if self._update_on_kvstore else self._updater
            renumber_states(updater, self._updated_names, 1, bool(self._update_on_kvstore))
            self._split.take_states(updater, self._state_keys(), dict(zip(self._exec_group.param_names, self._exec_group.param_arrays)))

    def _state_keys(self) -> dict[str, Any]:
        """Return the keys of whole parameters in the states of the updater, or of the store's."""
        return {name: name if self._update_on_kvstore else i for i, name in enumerate(self._updated_names)}

    def _add_split_states(self, fname: str) -> None:
        if self._split is not None:
            self._split.add_states(fname, self._state_keys(), dict(zip(self._exec_group.param_names, self._exec_group.param_arrays)))

    def _save_states(self, fname: str) -> None:
        self._require(bound=False, optimizer=True)
        if self._update_on_kvstore:
            self._kvstore.save_optimizer_states(fname, dump_optimizer=True)
        else:
            save_optimizer_states(fname, self._updater, dump_optimizer=True)
        self._add_split_states(fname)

    def _load_training(self, fname: str) -> None:
        self.load_optimizer_states(fname)
        updater, rescale_grad = self._kvstore._updater if self._update_on_kvstore else self._updater, self._optimizer.rescale_grad
        self._optimizer = updater.optimizer
        self._optimizer.rescale_grad = rescale_grad  # for the current number of workers

    # -- properties --------------------------------------------------------------------------------------------------------------

    def _reset_bind(self) -> None:
        self.binded = False
        self._exec_group: Any = None
        self._split: SplitParameters | None = None
        self._data_shapes: Any = None
        self._label_shapes: Any = None

    data_names = property(attrgetter("_data_names"), doc="The names of the data.")
    label_names = property(attrgetter("_label_names"), doc="The names of the labels.")
    output_names = property(attrgetter("_output_names"), doc="The names of the outputs.")

    @property
    def data_shapes(self) -> list[DataDesc]:
        """The names and shapes of the data, a list of `DataDesc`."""
        self._require()
        return self._data_shapes

    @property
    def label_shapes(self) -> list[DataDesc] | None:
        """The names and shapes of the labels, a list of `DataDesc`; None if bound without labels."""
        self._require()
        return self._label_shapes

    @property
    def output_shapes(self) -> list[tuple[str, tuple[int, ...]]]:
        """The names and shapes of the outputs, a list of pairs."""
        self._require()
        return self._exec_group.get_output_shapes()

    # -- parameters --------------------------------------------------------------------------------------------------------------

    def get_params(self) -> tuple[dict[str, NDArray], dict[str, NDArray]]:
        """Return the parameters on the CPU, as two dicts by name: arguments and auxiliary states.

        The arrays belong to the module and change with it; copy those that must not change.
        """
        self._require(bound=False, params=True)
        if self._params_dirty or self._released:
            self._sync_params_from_devices()
        return self._arg_params, self._aux_params

    def init_params(self, initializer: Any = Uniform(0.01), arg_params: dict[str, NDArray] | None = None,
                    aux_params: dict[str, NDArray] | None = None, allow_missing: bool = False, force_init: bool = False,
                    allow_extra: bool = False) -> None:
        """Initialize all parameters.

        Parameters
        ----------
        initializer : Initializer
            The initializer of parameters that are missing in the dicts.
        arg_params, aux_params : dict of str to NDArray, optional
            Initial values.
        allow_missing : bool
            Initialize parameters that are missing in a given dict instead of raising an error.
        force_init : bool
            Initialize even if the parameters have values.
        allow_extra : bool
            Accept names in the dicts that the network does not have.

        Raises
        ------
        MXNetError
            If a value is missing or has another shape than the network needs.
        """
        if self.params_initialized and not force_init:
            warnings.warn("init_params has no effect: there are parameters already; pass force_init=True to replace them", stacklevel=2)
            return
        self._require()
        self._take_memory()
        attributes = self._symbol.attr_dict()
        for arrays, given in ((self._arg_params, arg_params), (self._aux_params, aux_params)):
            for name, array in sorted(arrays.items()):
                value = None if given is None else given.get(name)
                if value is not None:
                    _copy_param(name, value, array)
                elif given is not None and not allow_missing:
                    raise MXNetError(f"'{name}' is not presented: the given parameters lack it; pass allow_missing=True and an "
                                     "initializer to initialise what is missing")
                elif initializer is not None:
                    initializer(InitDesc(name, attributes.get(name)), array)
                elif given is None:
                    raise MXNetError(f"no value and no initializer for parameter '{name}'")
        self.params_initialized = True
        self._params_dirty = False
        self._exec_group.set_params(self._arg_params, self._aux_params, allow_extra=allow_extra)
        self._replace_updated(self._arg_params, arg_params or {})

    def set_params(self, arg_params: dict[str, NDArray] | None, aux_params: dict[str, NDArray] | None, allow_missing: bool = False,
                   force_init: bool = True, allow_extra: bool = False) -> None:
        """Set the parameters from two dicts by name; see `init_params` for the flags."""
        if not allow_missing:
            self.init_params(initializer=None, arg_params=arg_params, aux_params=aux_params, allow_missing=False, force_init=force_init,
                             allow_extra=allow_extra)
            return
        if self.params_initialized and not force_init:
            warnings.warn("set_params has no effect: there are parameters already; pass force_init=True to replace them", stacklevel=2)
            return
        self._require()
        self._exec_group.set_params(arg_params, aux_params, allow_extra=allow_extra)
        self._params_dirty = True
        self.params_initialized = True
        self._replace_updated(arg_params or {}, arg_params or {})

    def _replace_updated(self, values: dict[str, NDArray], given: dict[str, NDArray]) -> None:
        """Write new values of the parameters to the copies that are updated: in the store, or float32 copies of half-precision ones.

        `given` has the arrays that the program passed; `fit` passes the module's own at the end of each epoch.
        """
        if not self.optimizer_initialized:
            return
        arrays = dict(zip(self._exec_group.param_names, self._exec_group.param_arrays))
        numbers = {name: number for number, name in enumerate(self._updated_names)}
        lost = []
        for name in (name for name in values if name in arrays and name in numbers):
            if self._split is not None and name in self._split.parts:
                self._split.replaced(name, arrays[name])
            elif not self._update_on_kvstore:
                if isinstance(self._updater, opt.Updater):
                    for k, array in enumerate(arrays[name]):
                        self._updater._weight_replaced(numbers[name] * len(arrays[name]) + k, array)
            elif not self._kvstore._replace(name, values[name]) and given.get(name) is not self._arg_params[name]:
                lost.append(name)
        if lost:
            warnings.warn(f"the kvstore of type {self._kvstore.type!r} updates {', '.join(lost)} and keeps its own values, which the next update "
                          "brings back: set parameters before init_optimizer", stacklevel=4)

    def _release_memory(self) -> None:
        """Release the memory of unshared, large parameters on the CPU; they are copied from the devices when they are needed again."""
        for params in (self._arg_params, self._aux_params):
            if sys.getrefcount(params) > 4:  # this module's, the tuple's, the loop's, the call's
                continue
            for name in params:
                array = params[name]
                if array.size < _LARGE or sys.getrefcount(array) > 3 or array._autograd is not None:
                    continue
                array._release()
                self._released.append(array)
        if self._released:
            memory.trim()

    def _take_memory(self) -> None:
        for array in self._released:
            array._allocate()
        self._released = []

    def _sync_params_from_devices(self) -> None:
        self._take_memory()
        self._exec_group.get_params(self._arg_params, self._aux_params)
        if self._kvstore and self._update_on_kvstore:
            # Devices have only the rows of a row_sparse parameter that their last batch needed; the store has all.
            for name, value in sorted(self._arg_params.items()):
                if value.stype == "row_sparse":
                    self._kvstore.row_sparse_pull(name, value, row_ids=nd.arange(0, value.shape[0], dtype="int64"))
        self._params_dirty = False

    # -- binding -----------------------------------------------------------------------------------------------------------------

    def bind(self, data_shapes: Any, label_shapes: Any = None, for_training: bool = True, inputs_need_grad: bool = False, force_rebind: bool = False,
             shared_module: BaseModule | None = None, grad_req: str | list[str] | dict[str, str] = "write") -> None:
        """Create an executor per device for these shapes.

        Parameters
        ----------
        data_shapes, label_shapes : list of DataDesc or (str, tuple)
            As ``provide_data`` and ``provide_label`` of an iterator.
        for_training : bool
            Allow `backward`.
        inputs_need_grad : bool
            Compute gradients of the data too.
        force_rebind : bool
            Bind again even if bound.
        shared_module : Module, optional
            Share its parameters and memory, as bucketing does.
        grad_req : str, list or dict of str
            ``'write'``, ``'add'`` or ``'null'``, for all, per argument in order, or by name.
        """
        if force_rebind:
            if self._released or self.binded and self.params_initialized and self._params_dirty:
                self._sync_params_from_devices()
            self._reset_bind()
        if self.binded:
            self.logger.warning("Already bound, ignoring bind()")
            return
        if inputs_need_grad and not for_training:
            raise MXNetError(f"bind: inputs_need_grad=True needs for_training=True, received for_training={for_training}")
        self.for_training = for_training
        self.inputs_need_grad = inputs_need_grad
        self._grad_req = grad_req
        self._data_shapes, self._label_shapes = _parse_data_desc(self.data_names, self.label_names, data_shapes, label_shapes)

        shared_group = None
        if shared_module is not None:
            if not (isinstance(shared_module, Module) and shared_module.binded and shared_module.params_initialized):
                raise MXNetError("bind: shared_module must be a Module that is bound and has parameters, "
                                 f"received a {type(shared_module).__name__} with binded={getattr(shared_module, 'binded', None)} and "
                                 f"params_initialized={getattr(shared_module, 'params_initialized', None)}")
            missing = self._parameters_missing_in(shared_module)
            if missing:
                raise MXNetError(f"bind: the network of shared_module does not have the parameters {', '.join(missing)}; only a network that has "
                                 "all of them can share its parameters")
            shared_group = shared_module._exec_group
            if len(shared_group.execs) < len(self._context):
                raise MXNetError(f"bind: shared_module runs on {len(shared_group.execs)} devices, this module on {len(self._context)}")
        self._split = divided(self._symbol, groups_per_device(self._group2ctxs, len(self._context))[0], self._context)
        self._exec_group = DataParallelExecutorGroup(
            self._symbol, self._context, self._work_load_list, self._data_shapes, self._label_shapes, self._param_names, for_training,
            inputs_need_grad, shared_group, logger=self.logger, fixed_param_names=self._fixed_param_names, grad_req=grad_req,
            group2ctxs=self._group2ctxs, state_names=self._state_names, split=self._split)
        self._total_exec_bytes = self._exec_group._total_exec_bytes

        if shared_module is not None:
            self.params_initialized = True
            self._arg_params, self._aux_params = shared_module._arg_params, shared_module._aux_params
        elif self.params_initialized:
            self._exec_group.set_params(self._arg_params, self._aux_params)
        else:
            self._arg_params = _cpu_zeros(self._param_names, self._exec_group.param_arrays, self._split)
            self._aux_params = _cpu_zeros(self._aux_names, self._exec_group.aux_arrays)
        if shared_module is not None and shared_module.optimizer_initialized:
            self.borrow_optimizer(shared_module)
        self.binded = True

    def _parameters_missing_in(self, shared: Module) -> list[str]:
        """Return the parameters and auxiliary states that another module's network does not have."""
        return sorted({*self._param_names} - {*shared._param_names}) + sorted({*self._aux_names} - {*shared._aux_names})

    def reshape(self, data_shapes: Any, label_shapes: Any = None) -> None:
        """Rebind for batches of other shapes and keep the parameters. `forward` does this automatically when a batch differs."""
        self._require()
        data_shapes, label_shapes = _parse_data_desc(self.data_names, self.label_names, data_shapes, label_shapes)
        self._exec_group.reshape(data_shapes, label_shapes)
        self._data_shapes, self._label_shapes = data_shapes, label_shapes

    # -- optimizer ---------------------------------------------------------------------------------------------------------------

    def init_optimizer(self, kvstore: Any = "local", optimizer: str | Optimizer = "sgd", optimizer_params: Any = (("learning_rate", 0.01),),
                       force_init: bool = False) -> None:
        """Set up the optimizer, and the kvstore that reduces the gradients of several devices.

        Parameters
        ----------
        kvstore : str, KVStore or None
        optimizer : str or Optimizer
            An optimizer given by name divides gradients by the batch size, unless `optimizer_params` contain ``rescale_grad``.
        optimizer_params : dict or tuple of pairs
        force_init : bool
            Set it up even if there is an optimizer.
        """
        self._require(params=True)
        if self.optimizer_initialized and not force_init:
            self.logger.warning("optimizer already initialized, ignoring...")
            return
        if self._params_dirty or self._released:
            self._sync_params_from_devices()
        num_devices = len(self._context)
        kvstore, update_on_kvstore = create_kvstore(kvstore, num_devices, self._arg_params)
        batch_size = self._exec_group.batch_size
        if kvstore and ("dist" in kvstore.type and "_sync" in kvstore.type or kvstore.type in ("horovod", "byteps", "p3")):
            batch_size *= kvstore.num_workers

        names = self._exec_group.param_names
        # Each device updates its own copy under a separate index, unless the kvstore updates for all.
        copies = 1 if update_on_kvstore else num_devices
        idx2name = {i * copies + k: name for i, name in enumerate(names) for k in range(copies)}
        self._optimizer = self._make_optimizer(optimizer, optimizer_params, 1.0 / batch_size, idx2name)
        self._updater = None if update_on_kvstore else opt.get_updater(self._optimizer)
        self._kvstore, self._update_on_kvstore = kvstore, update_on_kvstore
        self._updated_names = names
        if kvstore and self._compression_params:
            kvstore.set_gradient_compression(self._compression_params)
        if update_on_kvstore:
            kvstore.set_optimizer(self._optimizer)
        group = self._exec_group
        arrays, names = group.param_arrays, self._param_names
        if self._split is not None:
            self._split.set_optimizer(self._optimizer, kvstore)
            self._split.take_initial_values(self._arg_params)
            group.set_params({name: self._arg_params[name] for name in self._split.parts}, {})
            arrays, names = self._split.others(arrays, names, names=names)
        if kvstore:
            initialize_kvstore(kvstore=kvstore, param_arrays=arrays, arg_params=self._arg_params, param_names=names,
                               update_on_kvstore=update_on_kvstore)
        self.optimizer_initialized = True

        if self._preload_opt_states is not None:
            self.load_optimizer_states(self._preload_opt_states)
            self._preload_opt_states = None

    def _make_optimizer(self, optimizer: Any, params: Any, rescale_grad, idx2name):
        if isinstance(optimizer, str):
            return opt.create(optimizer, sym=self.symbol, param_idx2name=idx2name, **{"rescale_grad": rescale_grad, **dict(params)})
        if not isinstance(optimizer, opt.Optimizer):
            raise MXNetError(f"init_optimizer: expected an Optimizer or the name of one, received {shortened(optimizer)}")
        if optimizer.rescale_grad != rescale_grad:
            warnings.warn(f"the optimizer's rescale_grad is {optimizer.rescale_grad}, not 1.0/batch_size/num_workers = {rescale_grad}; "
                          "gradients are sums over the batch, so its learning rate depends on the batch size. Is this intended?",
                          stacklevel=3)
        if not optimizer.idx2name:
            optimizer.idx2name = idx2name.copy()
        return optimizer

    def borrow_optimizer(self, shared_module: BaseModule) -> None:
        """Use the optimizer, its states and the kvstore of another module, as bucketing does."""
        if not shared_module.optimizer_initialized:
            raise MXNetError("borrow_optimizer: the other module has no optimizer yet: call its init_optimizer(...) first")
        for part in ("_optimizer", "_kvstore", "_update_on_kvstore", "_updater", "_updated_names"):
            setattr(self, part, getattr(shared_module, part))
        if self._split is not None:
            self._split.borrow(getattr(shared_module, "_split", None))
        self.optimizer_initialized = True

    # -- one batch ---------------------------------------------------------------------------------------------------------------

    def forward(self, data_batch: Any, is_train: bool | None = None) -> None:
        """Run a batch forward.

        Parameters
        ----------
        data_batch : DataBatch or list of DataBatch
            Any object with ``data`` (and ``label``), lists of NDArray; a list of batches has one for each device. A batch of another
            shape than the bound one rebinds the module.
        is_train : bool, optional
            By default the mode of `bind`.
        """
        self._require(params=True)
        shapes = shapes_of(data_batch)
        if tuple(d.shape for d in self._data_shapes) != shapes:
            first = data_batch[0] if isinstance(data_batch, list) else data_batch
            self._follow(first, shapes)
        if is_train is not False and self.for_training and self.optimizer_initialized and not self._params_dirty and not self._released:
            self._release_memory()
        self._exec_group.forward(data_batch, is_train)

    def _follow(self, batch: Any, shapes: Any) -> None:
        """Rebind to the shapes of a batch."""
        data_shapes = getattr(batch, "provide_data", None) or [
            DataDesc(d.name, shape, d.dtype, d.layout) for d, shape in zip(self._data_shapes, shapes)]
        label_shapes = getattr(batch, "provide_label", None)
        if not label_shapes:
            label = getattr(batch, "label", None)
            if label:
                label_shapes = [DataDesc(d.name, array.shape, d.dtype, d.layout) for d, array in zip(self._label_shapes or (), label)]
            else:  # without labels, as in prediction: their old shapes with the new batch size
                label_shapes = self._label_shapes and [resized(d, batch_size_of(data_shapes)) for d in self._label_shapes]
        self.reshape(data_shapes, label_shapes)

    def backward(self, out_grads: Any = None) -> None:
        """Compute gradients; `out_grads` (one per output) are needed if the outputs are no losses."""
        self._require(params=True)
        self._exec_group.backward(out_grads=out_grads)

    def update(self) -> None:
        """Update the parameters by the optimizer with the gradients of the last `backward`."""
        self._require(params=True, optimizer=True)
        self._params_dirty = True
        group = self._exec_group
        updater = getattr(self._kvstore, "_updater", None) if self._update_on_kvstore else self._updater
        if isinstance(updater, opt.Updater) and not updater._states_matched:
            renumber_states(updater, self._updated_names, len(self._context), bool(self._update_on_kvstore))
        names, arrays, gradients = group.param_names, group.param_arrays, group.grad_arrays
        if self._split is not None:
            self._split.update(names, arrays, gradients)
            names, arrays, gradients = self._split.others(names, arrays, gradients, names=names)
        if self._update_on_kvstore:
            update_params_on_kvstore(arrays, gradients, self._kvstore, names)
        else:
            update_params(arrays, gradients, updater=self._updater, num_device=len(self._context),
                          kvstore=self._kvstore, param_names=names, updated_names=self._updated_names)
        if self._kvstore and self._kvstore.batches:
            group.expect_gradients(self._kvstore)

    def get_outputs(self, merge_multi_context: bool = True) -> list[Any]:
        """Return the outputs of the last `forward`: an array for each, or without merging a list over the devices."""
        self._require(params=True)
        return self._exec_group.get_outputs(merge_multi_context=merge_multi_context)

    def get_input_grads(self, merge_multi_context: bool = True) -> list[Any]:
        """Return the gradients of the data, after `backward`; needs ``bind(inputs_need_grad=True)``."""
        self._require(params=True)
        return self._exec_group.get_input_grads(merge_multi_context=merge_multi_context)

    def get_states(self, merge_multi_context: bool = True) -> list[Any]:
        """Return the states that persist across batches: per state a list over the devices. They cannot be merged."""
        self._require(params=True)
        return self._exec_group.get_states(merge_multi_context=merge_multi_context)

    def set_states(self, states: Any = None, value: Any = None) -> None:
        """Set the states that persist across batches: from lists in the format of `get_states`, or all to one number."""
        self._require(params=True)
        self._exec_group.set_states(states, value)

    def update_metric(self, eval_metric: Any, labels: Any, pre_sliced: bool = False) -> None:
        """Update a metric with labels and the last outputs; with `pre_sliced`, `labels` has one list per device."""
        self._exec_group.update_metric(eval_metric, labels, pre_sliced)

    def install_monitor(self, mon: Monitor) -> None:
        """Install a `Monitor` in the executors."""
        self._require()
        self._exec_group.install_monitor(mon)

    def prepare(self, data_batch: Any, sparse_row_id_fn: Callable[..., Any] | None = None) -> None:
        """Fetch the rows of row_sparse parameters that the next batch needs; see `BaseModule.prepare`."""
        self._require()
        if sparse_row_id_fn is None:
            return
        if not self._kvstore or not self._update_on_kvstore:
            warnings.warn("sparse_row_id_fn has no effect: no kvstore updates the parameters", stacklevel=2)
            return
        row_ids = sparse_row_id_fn(data_batch)
        if not isinstance(row_ids, dict):
            raise MXNetError(f"prepare: sparse_row_id_fn must return a dict from parameter names to row ids, received {shortened(row_ids)}")
        for name, rows in row_ids.items():
            index = self._exec_group.param_names.index(name)
            arrays = self._exec_group.param_arrays[index]
            if arrays[0].stype == "row_sparse":
                self._kvstore.row_sparse_pull(name, arrays, row_ids=rows, priority=-index)
            else:
                warnings.warn(f"parameter {name!r} is not row_sparse, so its rows need not be pulled", stacklevel=2)


def _cpu_zeros(names: Any, arrays: Any, split: SplitParameters | None = None):
    """Return a zero array on the CPU for each parameter, with the shape and type of its first device's array, or of its parts together."""
    return {name: nd.zeros(shape=per_device[0].shape if split is None or name not in split.parts else split.shape(name, per_device),
                           dtype=per_device[0].dtype, stype=per_device[0].stype)
            for name, per_device in zip(names, arrays)}


def _copy_param(name: str, value: Any, array) -> None:
    if value is array:
        return
    if value is None:
        raise MXNetError(f"parameter '{name}': the file, or the dictionary, has no value for it, received None")
    if value.shape != array.shape:
        raise MXNetError(f"parameter '{name}': the given value has shape {value.shape}, the network needs {array.shape}")
    value.copyto(array)
