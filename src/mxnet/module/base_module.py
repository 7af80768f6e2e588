"""The base class of modules: the loops of training, scoring and prediction over a data iterator."""
from __future__ import annotations

import logging
import os
import time
import warnings
from collections.abc import Callable, Iterator
from itertools import islice
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import metric, ndarray
from ..base import MXNetError, _as_list
from ..callback import BatchEndParam
from ..checkpoint import read_params, write_params
from ..initializer import Uniform
from ..io import DataBatch, DataDesc, DataIter
from ..kvstore.updates import joined_store
from ..resumption import PARAMETERS, STATES, Saves
from ..suggestions import did_you_mean, shortened

if TYPE_CHECKING:
    from ..monitor import Monitor
    from ..ndarray import NDArray
    from ..optimizer import Optimizer
    from ..symbol import Symbol

_PARAMETER_ENDINGS = ("_weight", "_bias", "_gamma", "_beta")


def _check_input_names(symbol: Symbol, names: Any, typename, throw: bool) -> None:
    """Raise or warn if the network has no argument of one of the `names`."""
    arguments = symbol.list_arguments()
    for name in names:
        if name in arguments:
            continue
        candidates = "\n\t".join(a for a in arguments if not a.endswith(_PARAMETER_ENDINGS))
        message = (f"Module(..., {typename}_names={names}): the network has no argument {name!r}. Its arguments, apart from parameters, "
                   f"are:\n\t{candidates}{did_you_mean(name, arguments)}")
        if throw:
            raise ValueError(message)
        warnings.warn(message, stacklevel=4)


def _check_names_match(names: Any, descriptions: Any, kind, throw: bool) -> None:
    """Raise or warn if the names of an iterator's data differ from the declared names."""
    if sorted(names) != sorted(d[0] for d in descriptions):
        message = f"{kind}_shapes describe {descriptions}, but the module was made with {kind}_names={names}"
        if throw:
            raise ValueError(message)
        warnings.warn(message, stacklevel=5)


def _as_descriptions(shapes: Any):
    descriptions = [d if isinstance(d, DataDesc) else DataDesc(*d) for d in shapes]
    descriptions = [DataDesc(d.name, tuple(d.shape.tolist()), d.dtype, d.layout) if isinstance(d.shape, np.ndarray) else d for d in descriptions]
    for d in descriptions:
        if not isinstance(d.shape, (tuple, list)) or not all(isinstance(size, (int, np.integer)) for size in d.shape):
            raise TypeError(f"the shape of {d.name!r} must be a tuple of integers, received {shortened(d.shape)}")
    return descriptions


def _parse_data_desc(data_names: Any, label_names: Any, data_shapes: Any, label_shapes: Any):
    """Return data and label shapes as lists of `DataDesc` (labels: or None), checked against the module's declared names."""
    data_shapes = _as_descriptions(data_shapes)
    _check_names_match(data_names, data_shapes, "data", True)
    if label_shapes is not None:
        label_shapes = _as_descriptions(label_shapes)
    _check_names_match(label_names, label_shapes or [], "label", False)
    return data_shapes, label_shapes


def _undefined(module: BaseModule, name: str):
    return NotImplementedError(f"{type(module).__name__} does not define {name}")


def _undefined_property(name: str, doc):
    def undefined(self):
        raise _undefined(self, name)

    return property(undefined, doc=doc)


def _as_metric(wanted):
    return wanted if isinstance(wanted, metric.EvalMetric) else metric.create(wanted)


class BaseModule:
    """The interface of all modules: a network with parameters, for binding to shapes, training, scoring and prediction.

    The states of a module are: created, bound (`bind`), with parameters (`init_params`), with an optimizer (`init_optimizer`).
    `fit` brings it to the last one.

    Parameters
    ----------
    logger : Logger
        The logger of `fit` and the other loops.
    """

    def __init__(self, logger: Any = logging) -> None:
        self.logger = logger
        self.binded = self.params_initialized = self.optimizer_initialized = False
        self.for_training = self.inputs_need_grad = False
        self._symbol: Any = None
        self._total_exec_bytes = 0

    def _require(self, *, bound: bool = True, params: Any = False, optimizer: Any = False) -> None:
        """Raise unless the module is in the state that a method needs."""
        if bound and not self.binded:
            raise MXNetError(f"this {type(self).__name__} is not bound to shapes yet: call bind(data_shapes=...) first")
        if params and not self.params_initialized:
            raise MXNetError(f"this {type(self).__name__} has no parameters yet: call init_params() or set_params(...) first")
        if optimizer and not self.optimizer_initialized:
            raise MXNetError(f"this {type(self).__name__} has no optimizer yet: call init_optimizer(...) first")

    # -- loops ---------------------------------------------------------------------------------------------------------------------

    def forward_backward(self, data_batch: Any) -> None:
        """Run a batch forward in training mode, then backward."""
        self.forward(data_batch, is_train=True)
        self.backward()

    def score(self, eval_data: Any, eval_metric: Any, num_batch: int | None = None,
              batch_end_callback: Callable[..., Any] | list[Callable[..., Any]] | None = None,
              score_end_callback: Callable[..., Any] | list[Callable[..., Any]] | None = None, reset: bool = True, epoch: int = 0,
              sparse_row_id_fn: Callable[..., Any] | None = None) -> list[tuple[str, float]]:
        """Evaluate a metric over an iterator.

        Parameters
        ----------
        eval_data : DataIter
        eval_metric : EvalMetric, str, or list of them
        num_batch : int, optional
            The maximal number of batches.
        batch_end_callback, score_end_callback : callable or list of callable, optional
            Receive a `BatchEndParam` after each batch, and at the end.
        reset : bool
            Start the iterator from its beginning.
        epoch : int
            The number of the epoch, for the callbacks.
        sparse_row_id_fn : callable, optional
            Maps a batch to the rows of row_sparse parameters that it needs; see `prepare`.

        Returns
        -------
        list of (str, float)
            Names and values of the metric.
        """
        self._require(params=True)
        eval_metric = _as_metric(eval_metric)
        eval_metric.reset()
        if reset:
            eval_data.reset()
        actual_num_batch = 0
        for nbatch, eval_batch in enumerate(islice(eval_data, num_batch)):
            self.prepare(eval_batch, sparse_row_id_fn=sparse_row_id_fn)
            self.forward(eval_batch, is_train=False)
            self._update_metric(eval_metric, eval_batch)
            if batch_end_callback is not None:
                _call_all(batch_end_callback, BatchEndParam(epoch=epoch, nbatch=nbatch, eval_metric=eval_metric, locals=locals()))
            actual_num_batch += 1
        if score_end_callback:
            _call_all(score_end_callback, BatchEndParam(epoch=epoch, nbatch=actual_num_batch, eval_metric=eval_metric, locals=locals()))
        return eval_metric.get_name_value()

    def _update_metric(self, eval_metric: Any, batch: Any) -> None:
        if isinstance(batch, list):
            self.update_metric(eval_metric, [part.label for part in batch], pre_sliced=True)
        else:
            self.update_metric(eval_metric, batch.label)

    def iter_predict(self, eval_data: Any, num_batch: int | None = None, reset: bool = True,
                     sparse_row_id_fn: Callable[..., Any] | None = None) -> Iterator[Any]:
        """Predict batch by batch; yield ``(outputs, batch number, batch)``, without the padding rows of the last batch."""
        self._require(params=True)
        if reset:
            eval_data.reset()
        for nbatch, eval_batch in enumerate(islice(eval_data, num_batch)):
            self.prepare(eval_batch, sparse_row_id_fn=sparse_row_id_fn)
            self.forward(eval_batch, is_train=False)
            yield [_without_pad(out, eval_batch.pad) for out in self.get_outputs()], nbatch, eval_batch

    def predict(self, eval_data: Any, num_batch: int | None = None, merge_batches: bool = True, reset: bool = True, always_output_list: bool = False,
                sparse_row_id_fn: Callable[..., Any] | None = None) -> Any:
        """Predict over an iterator, or for one array.

        Parameters
        ----------
        eval_data : DataIter, NDArray or numpy.ndarray
        num_batch : int, optional
            The maximal number of batches.
        merge_batches : bool
            Join the outputs of all batches along the first axis.
        reset : bool
            Start the iterator from its beginning.
        always_output_list : bool
            Return a list even if the network has one output.
        sparse_row_id_fn : callable, optional
            Maps a batch to the rows of row_sparse parameters that it needs; see `prepare`.

        Returns
        -------
        NDArray, list of NDArray, or list of lists
            One array per output of the network (alone if there is one); with ``merge_batches=False`` a list of outputs per batch.
        """
        self._require(params=True)
        if isinstance(eval_data, np.ndarray):
            eval_data = ndarray.array(eval_data)
        if isinstance(eval_data, ndarray.NDArray):
            self.forward(DataBatch([eval_data]))
            return self.get_outputs()[0]
        if not isinstance(eval_data, DataIter):
            raise ValueError(f"predict: eval_data must be a DataIter, an NDArray or a numpy array, received {type(eval_data).__name__}")
        batches = [[out.copy() for out in outputs]
                   for outputs, _, _ in self.iter_predict(eval_data, num_batch, reset, sparse_row_id_fn)]
        if not batches or not merge_batches:
            return batches
        if len({len(outputs) for outputs in batches}) > 1:
            raise MXNetError(f"predict: batches have different numbers of outputs ({sorted({len(outputs) for outputs in batches})}) and cannot be "
                             "merged; with bucketing, use merge_batches=False")
        merged = [ndarray.concatenate(list(parts)) for parts in zip(*batches)]
        return merged[0] if len(merged) == 1 and not always_output_list else merged

    def fit(self, train_data: DataIter, eval_data: DataIter | None = None, eval_metric: Any = "acc",
            epoch_end_callback: Callable[..., Any] | list[Callable[..., Any]] | None = None,
            batch_end_callback: Callable[..., Any] | list[Callable[..., Any]] | None = None, kvstore: Any = "local",
            optimizer: str | Optimizer = "sgd", optimizer_params: Any = (("learning_rate", 0.01),),
            eval_end_callback: Callable[..., Any] | list[Callable[..., Any]] | None = None,
            eval_batch_end_callback: Callable[..., Any] | list[Callable[..., Any]] | None = None, initializer: Any = Uniform(0.01),
            arg_params: dict[str, Any] | None = None, aux_params: dict[str, Any] | None = None, allow_missing: bool = False,
            force_rebind: bool = False, force_init: bool = False, begin_epoch: int = 0, num_epoch: int | None = None, validation_metric: Any = None,
            monitor: Monitor | None = None, sparse_row_id_fn: Callable[..., Any] | None = None, resume: str | None = None,
            save_every: int | None = None) -> None:
        """Train: bind, initialize the parameters and the optimizer if necessary, then run over the data for several epochs.

        Parameters
        ----------
        train_data, eval_data : DataIter
            The training data, and the validation data, which are evaluated after each epoch.
        eval_metric, validation_metric : EvalMetric, str, or list of them
            The metrics of training and of validation (default: the same).
        epoch_end_callback : callable or list of callable, optional
            Called as ``callback(epoch, symbol, arg_params, aux_params)`` after each epoch, before validation.
        batch_end_callback, eval_batch_end_callback, eval_end_callback : callable or list of callable, optional
            Receive a `BatchEndParam` after each training batch, after each validation batch and after validation.
        kvstore : str or KVStore
            The store that reduces the gradients of several devices.
        optimizer : str or Optimizer
        optimizer_params : dict or tuple of pairs
            The arguments of an optimizer given by name.
        initializer : Initializer
            The initializer of parameters that are missing in `arg_params` and `aux_params`.
        arg_params, aux_params : dict, optional
            Initial values, NDArrays by name.
        allow_missing : bool
            Initialize parameters that are missing in `arg_params` instead of raising an error.
        force_rebind, force_init : bool
            Bind and initialize again even if that was done before.
        begin_epoch, num_epoch : int
            The range of epochs: ``begin_epoch .. num_epoch - 1`` run.
        monitor : Monitor, optional
        sparse_row_id_fn : callable, optional
            Maps a batch to the rows of row_sparse parameters that it needs; see `prepare`.
        resume : str, optional
            A folder where the training is saved after each epoch: parameters, the optimizer and its states, the position of `train_data`, and the
            random generators. If it contains a save, the training resumes from it, with the same final weights as an uninterrupted one. In a job
            each worker has its own saves; if the number of workers has changed, the interrupted epoch starts again from worker 0's save.
        save_every : int, optional
            Also save each time after this number of batches.

        Raises
        ------
        MXNetError
            Without `num_epoch`, or if the save is damaged or belongs to another training.
        """
        if num_epoch is None:
            raise MXNetError("fit: please specify number of epochs (num_epoch=...), received None")
        if save_every is not None and (resume is None or save_every < 1):
            raise MXNetError(f"fit: save_every={save_every} is a number of batches from 1 on, and needs resume=..., the folder to save in")
        kvstore = joined_store(kvstore) if resume is not None else kvstore
        saves = Saves(resume, None if isinstance(kvstore, str) else kvstore) if resume is not None else None
        save = saves.newest() if saves else None
        if save is not None:
            arg_params, aux_params = read_params(os.path.join(save.path, PARAMETERS))
            begin_epoch, force_init = save.epoch, True
        self.bind(data_shapes=train_data.provide_data, label_shapes=train_data.provide_label, for_training=True, force_rebind=force_rebind)
        if monitor is not None:
            self.install_monitor(monitor)
        self.init_params(initializer=initializer, arg_params=arg_params, aux_params=aux_params, allow_missing=allow_missing,
                         force_init=force_init)
        self.init_optimizer(kvstore=kvstore, optimizer=optimizer, optimizer_params=optimizer_params)
        validation_metric = eval_metric if validation_metric is None else validation_metric
        eval_metric = _as_metric(eval_metric)
        done = 0
        if save is not None:
            self._load_training(os.path.join(save.path, STATES))
            save.restore_position(train_data)
            done = save.batch

        for epoch in range(begin_epoch, num_epoch):
            tic, nbatch, done = time.time(), done, 0
            eval_metric.reset()
            self._start_epoch(epoch, train_data)
            data_iter = iter(train_data)
            data_batch = next(data_iter, None)
            if data_batch is None and not nbatch:  # StopIteration is the type that MXNet programs catch
                raise StopIteration(f"fit: train_data gave no batch in epoch {epoch}; is it empty, or was it not reset?")
            eval_name_vals = eval_metric.get_global_name_value() if data_batch is None else []  # it was saved at the end of an epoch
            while data_batch is not None:
                if monitor is not None:
                    monitor.tic()
                self.forward_backward(data_batch)
                self.update()
                self._update_metric(eval_metric, data_batch)
                if saves and save_every and (nbatch + 1) % save_every == 0:
                    saves.write(self._save_training, train_data, epoch, nbatch + 1)
                # An iterator may reuse the memory of its batch, so the next one is fetched only after the last use of this one.
                next_data_batch = next(data_iter, None)
                if next_data_batch is not None:
                    self.prepare(next_data_batch, sparse_row_id_fn=sparse_row_id_fn)
                if monitor is not None:
                    monitor.toc_print()
                if next_data_batch is None:  # before the callbacks, which may reset the metric
                    eval_name_vals = eval_metric.get_global_name_value()
                if batch_end_callback is not None:
                    _call_all(batch_end_callback, BatchEndParam(epoch=epoch, nbatch=nbatch, eval_metric=eval_metric, locals=locals()))
                nbatch += 1
                data_batch = next_data_batch

            self._report_epoch(epoch, eval_name_vals, time.time() - tic, epoch_end_callback)
            if eval_data is not None:
                self._validate(eval_data, validation_metric, eval_end_callback, eval_batch_end_callback, epoch)
            self._end_epoch(train_data)
            if saves:
                saves.write(self._save_training, train_data, epoch + 1, 0)

    def _report_epoch(self, epoch: int, metrics: list[tuple[str, float]], seconds: float, callbacks: Any) -> None:
        """Log an epoch of training, and pass the parameters to the callbacks."""
        for name, val in metrics:
            self.logger.info("Epoch[%d] Train-%s=%f", epoch, name, val)
        self.logger.info("Epoch[%d] Time cost=%.3f", epoch, seconds)
        # The auxiliary states of several devices diverge; their mean is set, and passed to the callbacks.
        arg_params, aux_params = self.get_params()
        self.set_params(arg_params, aux_params)
        for callback in _as_list(callbacks or []):
            callback(epoch, self.symbol, arg_params, aux_params)

    def _validate(self, eval_data: DataIter, metric: Any, end_callback: Any, batch_end_callback: Any, epoch: int) -> None:
        """Log the metric of the validation data after an epoch."""
        for name, val in self.score(eval_data, metric, score_end_callback=end_callback, batch_end_callback=batch_end_callback, epoch=epoch):
            self.logger.info("Epoch[%d] Validation-%s=%f", epoch, name, val)

    def _save_training(self, folder: str) -> None:
        """Write the parameters, and the optimizer with its states, into a folder."""
        self.save_params(os.path.join(folder, PARAMETERS))
        self._save_states(os.path.join(folder, STATES))

    def _save_states(self, fname: str) -> None:
        """Write the optimizer with its states."""
        raise _undefined(self, "_save_states")

    def _load_training(self, fname: str) -> None:
        """Load the optimizer and its states."""
        raise _undefined(self, "_load_training")

    def _start_epoch(self, epoch: int, train_data: Any) -> None:
        """Hook for subclasses: called before each epoch of `fit`."""

    def _end_epoch(self, train_data: Any) -> None:
        """Reset the iterator after each epoch of `fit`; subclasses may override this."""
        train_data.reset()

    # -- properties --------------------------------------------------------------------------------------------------------------

    data_names = _undefined_property("data_names", "The names of the inputs that data iterators fill.")
    output_names = _undefined_property("output_names", "The names of the outputs.")
    data_shapes = _undefined_property("data_shapes", "The names and shapes of the data, a list of `DataDesc`.")
    label_shapes = _undefined_property("label_shapes", "The names and shapes of the labels; None or empty if the module needs none.")
    output_shapes = _undefined_property("output_shapes", "The names and shapes of the outputs, a list of pairs.")
    symbol = property(attrgetter("_symbol"), doc="The network.")

    # -- parameters --------------------------------------------------------------------------------------------------------------

    def get_params(self) -> tuple[dict[str, NDArray], dict[str, NDArray]]:
        """Return the parameters, as two dicts by name: arguments and auxiliary states."""
        raise _undefined(self, "get_params")

    def init_params(self, initializer: Any = Uniform(0.01), arg_params: dict[str, NDArray] | None = None,
                    aux_params: dict[str, NDArray] | None = None, allow_missing: bool = False, force_init: bool = False,
                    allow_extra: bool = False) -> None:
        """Initialize all parameters; see `Module.init_params`."""
        raise _undefined(self, "init_params")

    def set_params(self, arg_params: dict[str, NDArray] | None, aux_params: dict[str, NDArray] | None, allow_missing: bool = False,
                   force_init: bool = True, allow_extra: bool = False) -> None:
        """Set the parameters; see `Module.set_params`."""
        self.init_params(initializer=None, arg_params=arg_params, aux_params=aux_params, allow_missing=allow_missing, force_init=force_init,
                         allow_extra=allow_extra)

    def save_params(self, fname: str) -> None:
        """Save the parameters as a ``.params`` file, atomically."""
        write_params(fname, *self.get_params())

    def load_params(self, fname: str) -> None:
        """Set the parameters from a ``.params`` file.

        Raises
        ------
        MXNetError
            If the file is missing, damaged, or not the parameter file of a checkpoint.
        """
        self.set_params(*read_params(fname))

    def get_states(self, merge_multi_context: bool = True) -> list[Any]:
        """Return the states that persist across batches, for each a list over the devices. This module has none."""
        self._require(params=True)
        if merge_multi_context:
            raise MXNetError(f"get_states: states of several devices cannot be merged, received merge_multi_context={merge_multi_context}; "
                             "use merge_multi_context=False")
        return []

    def set_states(self, states: Any = None, value: Any = None) -> None:
        """Set the states that persist across batches. This module has none."""
        self._require(params=True)
        if states or value:
            raise MXNetError(f"set_states: this {type(self).__name__} has no states to set, received "
                             f"{'states' if states else 'value'}={shortened(states or value)}")

    # -- one batch ---------------------------------------------------------------------------------------------------------------

    def install_monitor(self, mon: Monitor) -> None:
        """Install a `Monitor` in the executors."""
        raise _undefined(self, "install_monitor")

    def prepare(self, data_batch: DataBatch, sparse_row_id_fn: Callable[..., Any] | None = None) -> None:
        """Prepare for the next batch; called by `fit` and `score` before `forward`.

        Parameters
        ----------
        data_batch : DataBatch
        sparse_row_id_fn : callable, optional
            Maps the batch to a dict from the names of row_sparse parameters to the ids of the rows that the batch needs.
        """
        if sparse_row_id_fn is not None:
            warnings.warn(f"{type(self).__name__}.prepare does not call sparse_row_id_fn", stacklevel=2)

    def forward(self, data_batch: Any, is_train: bool | None = None) -> None:
        """Run a batch forward; `is_train` defaults to the mode of `bind`."""
        raise _undefined(self, "forward")

    def backward(self, out_grads: Any = None) -> None:
        """Compute gradients; `out_grads`, one per output, are needed if the outputs are no losses."""
        raise _undefined(self, "backward")

    def get_outputs(self, merge_multi_context: bool = True) -> list[Any]:
        """Return the outputs of the last `forward`: an array for each, or without merging a list over the devices."""
        raise _undefined(self, "get_outputs")

    def get_input_grads(self, merge_multi_context: bool = True) -> list[Any]:
        """Return the gradients of the data, after `backward`, if bound with ``inputs_need_grad=True``."""
        raise _undefined(self, "get_input_grads")

    def update(self) -> None:
        """Update the parameters by the optimizer with the gradients of the last `backward`."""
        raise _undefined(self, "update")

    def update_metric(self, eval_metric: Any, labels: Any, pre_sliced: bool = False) -> None:
        """Update a metric with labels and the last outputs; with `pre_sliced`, `labels` has one list per device."""
        raise _undefined(self, "update_metric")

    def bind(self, data_shapes: Any, label_shapes: Any = None, for_training: bool = True, inputs_need_grad: bool = False, force_rebind: bool = False,
             shared_module: BaseModule | None = None, grad_req: str | list[str] | dict[str, str] = "write") -> None:
        """Create the executors for these shapes; see `Module.bind`."""
        raise _undefined(self, "bind")

    def init_optimizer(self, kvstore: Any = "local", optimizer: Any = "sgd", optimizer_params: Any = (("learning_rate", 0.01),),
                       force_init: bool = False) -> None:
        """Set up the optimizer and the kvstore; see `Module.init_optimizer`."""
        raise _undefined(self, "init_optimizer")


def _call_all(callbacks, param) -> None:
    for callback in _as_list(callbacks):
        callback(param)


def _without_pad(output, pad):
    return output[:output.shape[0] - pad] if pad else output
