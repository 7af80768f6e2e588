"""`FeedForward`, the symbolic training interface before `Module`."""
from __future__ import annotations

import importlib.util
import logging
import time
import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import io, metric
from .. import ndarray as nd
from .. import optimizer as opt
from .. import symbol as sym
from ..base import MXNetError, _as_list, mx_real_t
from ..callback import BatchEndParam, LogValidationMetricsCallback
from ..checkpoint import load_checkpoint, save_checkpoint
from ..context import Context, cpu
from ..initializer import InitDesc, Uniform
from ..io import DataDesc
from ..kvstore.updates import create_kvstore, initialize_kvstore, update_params, update_params_on_kvstore, update_params_on_kvstore_nccl
from ..suggestions import shortened
from .executor_manager import DataParallelExecutorManager, _check_arguments, _load_data

if TYPE_CHECKING:
    from ..executor import Executor
    from ..initializer import Initializer
    from ..kvstore import KVStoreBase
    from ..ndarray import NDArray
    Arrays = np.ndarray | NDArray
    Callbacks = Callable[..., Any] | Sequence[Callable[..., Any]] | None

SKLEARN_INSTALLED = importlib.util.find_spec("sklearn") is not None


def _multiple_callbacks(callbacks: Callbacks, *args: Any, **kwargs: Any) -> None:
    for callback in _as_list(callbacks or []):
        callback(*args, **kwargs)


def _train_multi_device(symbol: sym.Symbol, ctx: list[Context], arg_names: Sequence[str], param_names: Sequence[str], aux_names: Sequence[str],
                        arg_params: dict[str, NDArray], aux_params: dict[str, NDArray], begin_epoch: int, end_epoch: int, epoch_size: int | None,
                        optimizer: opt.Optimizer, kvstore: Any, update_on_kvstore: bool, train_data: Any, eval_data: Any = None,
                        eval_metric: Any = None, epoch_end_callback: Callbacks = None, batch_end_callback: Callbacks = None, logger: Any = None,
                        work_load_list: list[float] | None = None, monitor: Any = None, eval_end_callback: Callbacks = None,
                        eval_batch_end_callback: Callbacks = None, sym_gen: Callable[[Any], sym.Symbol] | None = None) -> None:
    """Run the training loop of `FeedForward`."""
    if eval_metric is None:
        raise MXNetError("_train_multi_device: an EvalMetric expected, received None")
    logger = logger or logging
    manager = DataParallelExecutorManager(symbol=symbol, sym_gen=sym_gen, ctx=ctx, train_data=train_data, param_names=param_names,
                                          arg_names=arg_names, aux_names=aux_names, work_load_list=work_load_list, logger=logger)
    if monitor:
        manager.install_monitor(monitor)
    manager.set_params(arg_params, aux_params)
    if update_on_kvstore:
        kvstore.set_optimizer(optimizer)
    else:
        updater = opt.get_updater(optimizer)
    if kvstore:
        initialize_kvstore(kvstore, manager.param_arrays, arg_params, manager.param_names, update_on_kvstore)

    def update() -> None:
        if not update_on_kvstore:
            update_params(manager.param_arrays, manager.grad_arrays, updater, len(ctx), kvstore, manager.param_names)
        elif "nccl" in kvstore.type:
            update_params_on_kvstore_nccl(manager.param_arrays, manager.grad_arrays, kvstore, manager.param_names)
        else:
            update_params_on_kvstore(manager.param_arrays, manager.grad_arrays, kvstore, manager.param_names)

    train_data.reset()
    for epoch in range(begin_epoch, end_epoch):
        tic = time.time()
        eval_metric.reset()
        nbatch = 0
        complete = False
        while not complete:  # an epoch of epoch_size batches may go over the data several times, or end in their middle
            at_end = True
            seen = nbatch
            for data_batch in train_data:
                manager.load_data_batch(data_batch)
                if monitor is not None:
                    monitor.tic()
                manager.forward(is_train=True)
                manager.backward()
                update()
                if monitor is not None:
                    monitor.toc_print()
                manager.update_metric(eval_metric, data_batch.label)
                nbatch += 1
                _multiple_callbacks(batch_end_callback, BatchEndParam(epoch=epoch, nbatch=nbatch, eval_metric=eval_metric, locals=locals()))
                if epoch_size is not None and nbatch >= epoch_size:
                    at_end = False
                    break
            if nbatch == seen and epoch_size is not None:
                raise MXNetError(f"FeedForward: the training data gave no batch in epoch {epoch}, of {epoch_size} that epoch_size asks for")
            if at_end:
                logger.info("Epoch[%d] Resetting Data Iterator", epoch)
                train_data.reset()
            complete = epoch_size is None or nbatch >= epoch_size
        logger.info("Epoch[%d] Time cost=%.3f", epoch, time.time() - tic)

        if epoch_end_callback or epoch + 1 == end_epoch:
            manager.copy_to(arg_params, aux_params)
        _multiple_callbacks(epoch_end_callback, epoch, symbol, arg_params, aux_params)
        if eval_data:
            _validate(manager, eval_data, eval_metric, epoch, eval_batch_end_callback, eval_end_callback)


def _validate(manager: DataParallelExecutorManager, eval_data: Any, eval_metric: metric.EvalMetric, epoch: int, eval_batch_end_callback: Callbacks,
              eval_end_callback: Callbacks) -> None:
    """Compute the metric on the validation data after an epoch."""
    eval_data.reset()
    eval_metric.reset()
    total_num_batch = 0
    for i, eval_batch in enumerate(eval_data):
        manager.load_data_batch(eval_batch)
        manager.forward(is_train=False)
        manager.update_metric(eval_metric, eval_batch.label)
        _multiple_callbacks(eval_batch_end_callback, BatchEndParam(epoch=epoch, nbatch=i, eval_metric=eval_metric, locals=locals()))
        total_num_batch += 1
    _multiple_callbacks(eval_end_callback, BatchEndParam(epoch=epoch, nbatch=total_num_batch, eval_metric=eval_metric, locals=locals()))
    eval_data.reset()


class FeedForward:
    """The symbolic training interface before `Module`, for old programs.

    Parameters
    ----------
    symbol : Symbol or callable
        The network, or a function from a bucket key to it.
    ctx : Context or list of Context, optional
        Default: ``mx.cpu()``.
    num_epoch, epoch_size : int, optional
        The number of epochs, and of batches in an epoch (default: all data).
    optimizer : str or Optimizer
    initializer : Initializer
    numpy_batch_size : int
        The batch size for data given as arrays.
    arg_params, aux_params : dict of str to NDArray, optional
    allow_extra_params : bool
        Accept parameters that the network does not have.
    begin_epoch : int
    **kwargs
        The arguments of the optimizer.

    Example
    -------
    >>> import numpy as np, warnings
    >>> net = mx.sym.SoftmaxOutput(mx.sym.FullyConnected(mx.sym.var('data'), num_hidden=2), name='softmax')
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter('ignore')   # it says to use mx.mod.Module
    ...     model = mx.model.FeedForward(net, num_epoch=20, numpy_batch_size=2, learning_rate=0.5)
    >>> x, y = np.array([[0, 1], [1, 0]], np.float32), np.array([0, 1], np.float32)
    >>> model.fit(x, y)
    >>> model.predict(x).argmax(1).tolist()
    [0, 1]
    """

    def __init__(self, symbol: sym.Symbol | Callable[[Any], sym.Symbol], ctx: Context | list[Context] | None = None, num_epoch: int | None = None,
                 epoch_size: int | None = None, optimizer: str | opt.Optimizer = "sgd", initializer: Initializer = Uniform(0.01),
                 numpy_batch_size: int = 128, arg_params: dict[str, NDArray] | None = None, aux_params: dict[str, NDArray] | None = None,
                 allow_extra_params: bool = False, begin_epoch: int = 0, **kwargs: Any):
        warnings.warn("FeedForward is the interface before mx.mod.Module, which new programs use", DeprecationWarning, stacklevel=2)
        if not isinstance(symbol, sym.Symbol) and not callable(symbol):
            raise TypeError(f"FeedForward: symbol must be a Symbol or a function from a bucket key to one, received {shortened(symbol)}")
        self.symbol: Any = symbol if isinstance(symbol, sym.Symbol) else None  # with buckets, the network of the default one from `fit` on
        self.sym_gen = None if isinstance(symbol, sym.Symbol) else symbol
        self.ctx = [cpu()] if ctx is None else [ctx] if isinstance(ctx, Context) else ctx
        self.num_epoch = num_epoch
        self.epoch_size = epoch_size
        self.begin_epoch = begin_epoch
        self.optimizer = optimizer
        self.initializer = initializer
        self.numpy_batch_size = numpy_batch_size
        self.arg_params: Any = arg_params  # dicts of str to NDArray, from `fit` on if not given
        self.aux_params: Any = aux_params
        self.allow_extra_params = allow_extra_params
        self.kwargs = kwargs.copy()
        self._pred_exec: Executor | None = None
        self.argument_checked = False
        if self.sym_gen is None:
            self._check_arguments()

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the constructor's arguments, as in scikit-learn's interface."""
        names = ("symbol", "ctx", "num_epoch", "epoch_size", "optimizer", "initializer", "numpy_batch_size", "arg_params", "aux_params",
                 "allow_extra_params", "begin_epoch")
        return {**{name: getattr(self, name) for name in names}, **self.kwargs}

    def set_params(self, **params: Any) -> FeedForward:
        """Set the constructor's arguments, as in scikit-learn's interface."""
        known = self.get_params()
        for name, value in params.items():
            if name not in known:
                raise ValueError(f"FeedForward has no parameter {name!r}; expected one of {sorted(known)}")
            if name in self.kwargs:
                self.kwargs[name] = value
            else:
                setattr(self, name, value)
        return self

    def _check_arguments(self) -> None:
        if self.argument_checked:
            return
        self.argument_checked = True
        _check_arguments(self.symbol)
        if self.allow_extra_params:
            self.arg_params = _only(self.arg_params, self.symbol.list_arguments())
            self.aux_params = _only(self.aux_params, self.symbol.list_auxiliary_states())

    def _init_params(self, inputs: Iterable[Any], overwrite: bool = False) -> tuple[list[str], list[str], list[str]]:
        """Set all parameters to known or initial values; return the names of arguments, parameters and auxiliary states."""
        inputs = [d if isinstance(d, DataDesc) else DataDesc(*d) for d in inputs]
        arg_shapes, _, aux_shapes = self.symbol.infer_shape(**{d.name: d.shape for d in inputs})
        arg_types, _, aux_types = self.symbol.infer_type(**{d.name: d.dtype for d in inputs})
        if arg_shapes is None or arg_types is None:
            raise MXNetError(f"FeedForward: shapes or types of the network do not follow from those of its inputs: {inputs}")
        arg_names, aux_names = self.symbol.list_arguments(), self.symbol.list_auxiliary_states()
        input_names = {d.name for d in inputs}
        attributes = self.symbol.attr_dict()

        def values(names: Sequence[str], shapes: Sequence[Any], types: Sequence[Any], known: dict[str, NDArray] | None) -> dict[str, NDArray]:
            made = {}
            for name, shape, dtype in zip(names, shapes, types):
                if name in input_names:
                    continue
                made[name] = nd.zeros(shape=shape, dtype=dtype)
                if known and name in known and not overwrite:
                    known[name].copyto(made[name])
                else:
                    self.initializer(InitDesc(name, attributes.get(name)), made[name])
            return made

        self.arg_params = values(arg_names, arg_shapes, arg_types, self.arg_params)
        self.aux_params = values(aux_names, aux_shapes, aux_types, self.aux_params)
        return arg_names, list(self.arg_params), aux_names

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_pred_exec": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)

    def _init_predictor(self, data: Any) -> tuple[Executor, list[NDArray]]:
        """Bind for the shapes and types of an iterator; return the executor, and its data arrays."""
        types = {name: value.dtype for name, value in self.arg_params.items()}
        types.update((d[0], d.dtype if isinstance(d, DataDesc) else mx_real_t) for d in data.provide_data)
        shapes: dict[str, Any] = {name: value.shape for name, value in self.arg_params.items()}
        shapes.update((d[0], tuple(d[1])) for d in data.provide_data)
        bound = self._pred_exec
        arg_shapes, _, _ = self.symbol.infer_shape(**shapes)
        if bound is None or arg_shapes != [a.shape for a in bound.arg_arrays]:
            _check_arguments(self.symbol)
            bound = self._pred_exec = self.symbol.simple_bind(self.ctx[0], grad_req="null", type_dict=types, **shapes)
            bound.copy_params_from(self.arg_params, self.aux_params)
        return bound, [bound.arg_dict[d[0]] for d in data.provide_data]

    def _init_iter(self, X: io.DataIter | Arrays, y: Arrays | None, is_train: bool) -> Any:
        """Return an iterator over X (and y), which may be arrays."""
        if not isinstance(X, (np.ndarray, nd.NDArray)):
            if not isinstance(X, io.DataIter):
                raise TypeError(f"X must be DataIter, NDArray or numpy.ndarray, received {type(X).__name__}")
            return X
        if y is None:
            if is_train:
                raise ValueError("y must be specified when X is numpy.ndarray, received None")
            y = np.zeros(X.shape[0])
        if not isinstance(y, (np.ndarray, nd.NDArray)):
            raise TypeError(f"y must be ndarray when X is numpy.ndarray, received {type(y).__name__}")
        if X.shape[0] != y.shape[0]:
            raise ValueError(f"a label for each of {X.shape[0]} examples expected, received {y.shape[0]}")
        if y.ndim == 2 and y.shape[1] == 1:
            y = y.reshape((-1,))
        if y.ndim != 1:
            raise ValueError(f"Label must be 1D or 2D (with 2nd dimension being 1), received shape {y.shape}")
        size = min(X.shape[0], self.numpy_batch_size)
        if is_train:
            return io.NDArrayIter(X, y, size, shuffle=True, last_batch_handle="roll_over")
        return io.NDArrayIter(X, y, size, shuffle=False)

    def _init_eval_iter(self, eval_data: Any) -> Any:
        """Return an iterator over `eval_data`, which may be a pair of arrays or lists."""
        if eval_data is None or isinstance(eval_data, io.DataIter):
            return eval_data
        if not (isinstance(eval_data, (tuple, list)) and len(eval_data) == 2):
            raise TypeError(f"eval_data must be a DataIter or a pair (data, labels), received {type(eval_data).__name__}")
        data, label = eval_data
        if data is None:
            raise ValueError("eval_data: data expected, received None")
        if label is None and isinstance(data, io.DataIter):
            return data
        data, label = (np.array(part) if isinstance(part, list) else part for part in (data, label))
        return self._init_iter(data, label, is_train=True)

    def predict(self, X: io.DataIter | Arrays, num_batch: int | None = None, return_data: bool = False,
                reset: bool = True) -> np.ndarray | list[np.ndarray] | tuple[np.ndarray | list[np.ndarray], ...]:
        """Predict.

        Parameters
        ----------
        X : DataIter, NDArray or numpy.ndarray
        num_batch : int, optional
            The maximal number of batches.
        return_data : bool
            Return the data and labels too.
        reset : bool
            Start the iterator from its beginning.

        Returns
        -------
        numpy.ndarray, or a list of them if the network has several outputs; with `return_data` a tuple of outputs, data, labels
        """
        data = self._init_iter(X, None, is_train=False)
        if reset:
            data.reset()
        executor, targets = self._init_predictor(data)
        rows = []
        for i, batch in enumerate(data):
            if i == num_batch:
                break
            _load_data(batch, targets)
            outputs = executor.forward(is_train=False)
            size = data.batch_size - batch.pad
            groups = (outputs, batch.data, batch.label) if return_data else (outputs,)
            rows.append([[array[:size].asnumpy() for array in group] for group in groups])
        joined = []
        for group in zip(*rows):
            arrays = [np.concatenate(parts) for parts in zip(*group)]
            joined.append(arrays[0] if len(arrays) == 1 else arrays)
        return tuple(joined) if return_data else joined[0]

    def score(self, X: io.DataIter | Arrays, eval_metric: str | metric.EvalMetric = "acc", num_batch: int | None = None,
              batch_end_callback: Callbacks = None, reset: bool = True) -> float | list[float]:
        """Return the value of a metric over an iterator; see `predict` for the parameters."""
        if not isinstance(eval_metric, metric.EvalMetric):
            eval_metric = metric.create(eval_metric)
        data = self._init_iter(X, None, is_train=False)
        if reset:
            data.reset()
        executor, targets = self._init_predictor(data)
        for i, batch in enumerate(data):
            if i == num_batch:
                break
            _load_data(batch, targets)
            executor.forward(is_train=False)
            eval_metric.update(batch.label, executor.outputs)
            _multiple_callbacks(batch_end_callback, BatchEndParam(epoch=0, nbatch=i, eval_metric=eval_metric, locals=locals()))
        return eval_metric.get()[1]

    @staticmethod
    def _is_data_arg(name: str) -> bool:
        """Return True if the argument is data or a label, by its name."""
        return name.endswith(("data", "label"))

    def fit(self, X: io.DataIter | Arrays, y: Arrays | None = None, eval_data: io.DataIter | Sequence[Any] | None = None,
            eval_metric: str | metric.EvalMetric = "acc", epoch_end_callback: Callbacks = None, batch_end_callback: Callbacks = None,
            kvstore: str | KVStoreBase | None = "local", logger: Any = None, work_load_list: list[float] | None = None, monitor: Any = None,
            eval_end_callback: Callbacks = LogValidationMetricsCallback(), eval_batch_end_callback: Callbacks = None) -> None:
        """Train.

        Parameters
        ----------
        X : DataIter, NDArray or numpy.ndarray
        y : NDArray or numpy.ndarray, optional
            The labels, if `X` is an array.
        eval_data : DataIter or pair of arrays, optional
        eval_metric : EvalMetric or str
        epoch_end_callback, batch_end_callback, eval_end_callback, eval_batch_end_callback : callable or list of callable
        kvstore : str or KVStore
        logger : Logger, optional
        work_load_list : list of number, optional
        monitor : Monitor, optional
        """
        if self.num_epoch is None:
            raise MXNetError("FeedForward.fit: a number of epochs expected, received None: make the model with num_epoch=...")
        data = self._init_iter(X, y, is_train=True)
        eval_data = self._init_eval_iter(eval_data)
        if self.sym_gen:
            self.symbol = self.sym_gen(data.default_bucket_key)
            self._check_arguments()
        arg_names, param_names, aux_names = self._init_params(data.provide_data + data.provide_label)
        if not isinstance(eval_metric, metric.EvalMetric):
            eval_metric = metric.create(eval_metric)
        kvstore, update_on_kvstore = create_kvstore(kvstore, len(self.ctx), self.arg_params)
        copies = 1 if update_on_kvstore else len(self.ctx)
        idx2name = {i * copies + k: name for i, name in enumerate(param_names) for k in range(copies)}
        optimizer = self.optimizer
        if isinstance(optimizer, str):
            batch_size = data.batch_size
            if kvstore and "dist" in kvstore.type and "_async" not in kvstore.type:
                batch_size *= kvstore.num_workers
            optimizer = opt.create(optimizer, **{"rescale_grad": 1.0 / batch_size, **self.kwargs, "sym": self.symbol,
                                                 "param_idx2name": idx2name})
        elif not optimizer.idx2name:
            optimizer.idx2name = idx2name
        _train_multi_device(
            self.symbol, self.ctx, arg_names, param_names, aux_names, self.arg_params, self.aux_params, begin_epoch=self.begin_epoch,
            end_epoch=self.num_epoch, epoch_size=self.epoch_size, optimizer=optimizer, train_data=data, eval_data=eval_data,
            eval_metric=eval_metric, epoch_end_callback=epoch_end_callback, batch_end_callback=batch_end_callback, kvstore=kvstore,
            update_on_kvstore=update_on_kvstore, logger=logger, work_load_list=work_load_list, monitor=monitor,
            eval_end_callback=eval_end_callback, eval_batch_end_callback=eval_batch_end_callback, sym_gen=self.sym_gen)
        self._pred_exec = None  # it has the old parameters

    def save(self, prefix: str, epoch: int | None = None, remove_amp_cast: bool = True) -> None:
        """Save network and parameters as a checkpoint; see `save_checkpoint`."""
        epoch = self.num_epoch if epoch is None else epoch
        if epoch is None:
            raise MXNetError("FeedForward.save: the number of an epoch expected, received none: pass epoch=...")
        save_checkpoint(prefix, epoch, self.symbol, self.arg_params, self.aux_params, remove_amp_cast=remove_amp_cast)

    @staticmethod
    def load(prefix: str, epoch: int, ctx: Context | list[Context] | None = None, **kwargs: Any) -> FeedForward:
        """Load a model with the network and parameters of a checkpoint; `kwargs` are passed to the constructor."""
        symbol, arg_params, aux_params = load_checkpoint(prefix, epoch)
        return FeedForward(symbol, ctx=ctx, arg_params=arg_params, aux_params=aux_params, begin_epoch=epoch, **kwargs)

    @staticmethod
    def create(symbol: sym.Symbol | Callable[[Any], sym.Symbol], X: io.DataIter | Arrays, y: Arrays | None = None,
               ctx: Context | list[Context] | None = None, num_epoch: int | None = None, epoch_size: int | None = None,
               optimizer: str | opt.Optimizer = "sgd", initializer: Initializer = Uniform(0.01),
               eval_data: io.DataIter | Sequence[Any] | None = None, eval_metric: str | metric.EvalMetric = "acc",
               epoch_end_callback: Callbacks = None, batch_end_callback: Callbacks = None, kvstore: str | KVStoreBase | None = "local",
               logger: Any = None, work_load_list: list[float] | None = None, eval_end_callback: Callbacks = LogValidationMetricsCallback(),
               eval_batch_end_callback: Callbacks = None, **kwargs: Any) -> FeedForward:
        """Create a model and train it; for the parameters see `FeedForward` and `fit`."""
        model = FeedForward(symbol, ctx=ctx, num_epoch=num_epoch, epoch_size=epoch_size, optimizer=optimizer, initializer=initializer,
                            **kwargs)
        model.fit(X, y, eval_data=eval_data, eval_metric=eval_metric, epoch_end_callback=epoch_end_callback,
                  batch_end_callback=batch_end_callback, kvstore=kvstore, logger=logger, work_load_list=work_load_list,
                  eval_end_callback=eval_end_callback, eval_batch_end_callback=eval_batch_end_callback)
        return model


def _only(params: dict[str, NDArray] | None, names: Iterable[str]) -> dict[str, NDArray] | None:
    """Return the entries of a dict (or None) whose keys are in `names`."""
    return params and {name: value for name, value in params.items() if name in names}


FeedForward.__module__ = "mxnet.model"  # the path in imports and pickles of users
