"""`Estimator`: a network, its loss, its trainer and its metrics, and the loop over epochs and batches."""
from __future__ import annotations

import copy
import logging
import sys
import warnings
from typing import TYPE_CHECKING, Any

from ....context import Context, cpu, ctx_or_device, gpu, num_gpus
from ....metric import Loss as metric_loss
from ....suggestions import shortened
from ...data import DataLoader
from ...loss import Loss as gluon_loss
from ...trainer import Trainer
from ...utils import UsageError, split_and_load
from .batch_processor import BatchProcessor
from .event_handler import (
    BatchBegin,
    BatchEnd,
    EpochBegin,
    EpochEnd,
    GradientUpdateHandler,
    LoggingHandler,
    MetricHandler,
    StoppingHandler,
    TrainBegin,
    TrainEnd,
    ValidationHandler,
    _check_event_handlers,
)
from .utils import _check_handler_metric_ref, _check_metrics, _suggest_metric_for_loss

if TYPE_CHECKING:
    from ....initializer import Initializer
    from ....metric import EvalMetric
    from ...block import Block
    from .event_handler import EventHandler

__all__ = ["Estimator"]


class Estimator:
    """Trains and evaluates a network, and calls handlers at the begin and end of training, epochs and batches.

    Parameters
    ----------
    net : Block
    loss : gluon.loss.Loss
    train_metrics : EvalMetric or list of EvalMetric, optional
        The metrics of training; by default the mean loss, and the accuracy for a `SoftmaxCrossEntropyLoss`. "training " is put before their names.
    val_metrics : EvalMetric or list of EvalMetric, optional
        The metrics of evaluation; copies of `train_metrics` by default. "validation " is put before their names.
    initializer : Initializer, optional
        For the parameters that have no value yet.
    trainer : Trainer, optional
        By default SGD with a learning rate of 0.001.
    context : Context or list of Context, optional
        By default the first GPU, or the CPU without one. A batch is divided among several. `device` is its name in MXNet 2.
    val_net : Block, optional
        The network to evaluate in place of `net`, such as the same layers without the auxiliary outputs; it should share the parameters of `net`.
    val_loss : gluon.loss.Loss, optional
        In place of `loss` in evaluation.
    batch_processor : BatchProcessor, optional
        Anything with its two methods.

    Attributes
    ----------
    logger : logging.Logger
        Of this estimator alone, at level INFO; it writes to the standard output. Add handlers of `logging` to write to files too.

    Raises
    ------
    ValueError
        If an argument is of another type than expected.
    UsageError
        If a context does not exist on this machine.

    Example
    -------
    >>> import mxnet as mx
    >>> from mxnet.gluon.contrib.estimator import Estimator
    >>> net = mx.gluon.nn.Dense(1, use_bias=False)
    >>> net.initialize(mx.init.Zero())
    >>> data = mx.gluon.data.DataLoader(mx.gluon.data.ArrayDataset(mx.nd.ones((8, 1)), mx.nd.ones((8, 1))), batch_size=4)
    >>> est = Estimator(net, mx.gluon.loss.L2Loss(), trainer=mx.gluon.Trainer(net.collect_params(), 'sgd', optimizer_params={'learning_rate': 0.5}))
    >>> est.logger.setLevel('ERROR')
    >>> est.fit(data, epochs=4)
    >>> round(net.weight.data().asscalar().item(), 3)
    0.996
    """

    logger: Any = None

    def __init__(self, net: Block, loss: gluon_loss, train_metrics: EvalMetric | list[EvalMetric] | None = None,
                 val_metrics: EvalMetric | list[EvalMetric] | None = None, initializer: Initializer | str | None = None,
                 trainer: Trainer | None = None, context: Context | list[Context] | None = None, val_net: Block | None = None,
                 val_loss: gluon_loss | None = None, batch_processor: BatchProcessor | None = None, *,
                 device: Context | list[Context] | None = None) -> None:
        self.net, self.loss = net, self._check_loss(loss)
        self._train_metrics, self._val_metrics = _check_metrics(train_metrics), _check_metrics(val_metrics)
        self._add_default_training_metrics()
        self._add_validation_metrics()
        self.val_loss = self.loss if val_loss is None else self._check_loss(val_loss)
        self.val_net = self.net if val_net is None else val_net
        self.max_epoch: int | None = None
        self.max_batch: int | None = None
        self._train_data: Any = None
        self.batch_axis = 0
        self.logger = logging.Logger(name="Estimator", level=logging.INFO)
        self.logger.addHandler(logging.StreamHandler(sys.stdout))
        self.context = self._check_context(ctx_or_device(context, device))
        self._initialize(initializer)
        self.trainer = self._check_trainer(trainer)
        self.batch_processor = self._check_batch_processor(batch_processor)

    # -- arguments -----------------------------------------------------------------------------------------------------------

    def _check_loss(self, loss: Any) -> gluon_loss:
        if not isinstance(loss, gluon_loss):
            raise ValueError(f"Estimator: a gluon.loss.Loss expected as loss, received {shortened(loss)}")
        return loss

    def _check_context(self, context: Any) -> list[Context]:
        gpus = [gpu(i) for i in range(num_gpus())]
        if not context:
            if len(gpus) > 1:
                warnings.warn(f"Estimator: trains on gpu(0), one of {len(gpus)} GPUs; give a list as `context` to use several", stacklevel=3)
            return gpus[:1] or [cpu()]
        if isinstance(context, Context):
            context = [context]
        if not isinstance(context, list) or not all(isinstance(ctx, Context) for ctx in context):
            raise ValueError(f"Estimator: a Context or a list of them expected as context, such as mx.cpu() or [mx.gpu(0), mx.gpu(1)], "
                             f"received {shortened(context)}")
        for ctx in context:
            if ctx not in gpus and not str(ctx).startswith("cpu"):
                raise UsageError(f"Estimator: there is no {ctx} on this machine, which has cpu() and {len(gpus)} GPUs")
        return context

    def _check_batch_processor(self, batch_processor: Any) -> Any:
        if batch_processor is None:
            return BatchProcessor()
        if not all(callable(getattr(batch_processor, name, None)) for name in ("fit_batch", "evaluate_batch")):
            raise ValueError(f"Estimator: a batch_processor has the methods fit_batch and evaluate_batch, received {shortened(batch_processor)}")
        return batch_processor

    def _initialize(self, initializer: Any) -> None:
        if not self._is_initialized():
            self.net.initialize(ctx=self.context, **({"init": initializer} if initializer else {}))
        elif initializer:
            warnings.warn("Network already fully initialized: the initializer of this Estimator is not used; leave it out, or call "
                          "net.initialize(init=..., force_reinit=True)", stacklevel=3)

    def _check_trainer(self, trainer: Any) -> Trainer:
        if not trainer:
            warnings.warn("No trainer specified: the Estimator updates by SGD with a learning rate of 0.001", stacklevel=3)
            return Trainer(self.net.collect_params(), "sgd", {"learning_rate": 0.001})
        if not isinstance(trainer, Trainer):
            raise ValueError(f"Estimator: a gluon.Trainer expected as trainer, received {shortened(trainer)}")
        return trainer

    def _is_initialized(self) -> bool:
        for parameter in self.net.collect_params().values():
            try:
                parameter.list_ctx()
            except RuntimeError:
                return False
        return True

    def _get_data_and_label(self, batch: Any, ctx: Any, batch_axis: int = 0) -> tuple[list[Any], list[Any]]:
        data, label = (split_and_load(part, ctx_list=ctx, batch_axis=batch_axis) for part in (batch[0], batch[1]))
        return data, label

    # -- metrics -------------------------------------------------------------------------------------------------------------

    def _add_default_training_metrics(self) -> None:
        if not self._train_metrics:
            suggested = _suggest_metric_for_loss(self.loss)
            self._train_metrics = [suggested] if suggested else []
            self._train_metrics.append(metric_loss(self.loss.name.rstrip("1234567890")))
        for metric in self._train_metrics:
            metric.name = f"training {metric.name}"  # handlers use it to distinguish training from validation

    def _add_validation_metrics(self) -> None:
        if not self._val_metrics:
            self._val_metrics = [copy.deepcopy(metric) for metric in self._train_metrics]
        for metric in self._val_metrics:
            metric.name = metric.name.replace("training", "validation") if "training" in metric.name else f"validation {metric.name}"

    @property
    def train_metrics(self) -> list[EvalMetric]:
        """The metrics of training."""
        return self._train_metrics

    @property
    def val_metrics(self) -> list[EvalMetric]:
        """The metrics of evaluation."""
        return self._val_metrics

    # -- the loops -----------------------------------------------------------------------------------------------------------

    def evaluate(self, val_data: DataLoader, batch_axis: int = 0, event_handlers: EventHandler | list[EventHandler] | None = None) -> None:
        """Compute `val_metrics` from all batches of a loader.

        Parameters
        ----------
        val_data : DataLoader
            Batches of (data, label).
        batch_axis : int
            The axis along which a batch is divided among the contexts.
        event_handlers : EventHandler or list of EventHandler, optional
            Called at the begin and end of epoch and batches. A `MetricHandler` and a `LoggingHandler` are added unless some are here.

        Raises
        ------
        ValueError
            If `val_data` is no DataLoader, or a handler refers to metrics other than `val_metrics`.
        """
        self._check_loader("val_data", val_data)
        for metric in self.val_metrics:
            metric.reset()
        handlers = self._prepare_default_validation_handlers(event_handlers)
        _, epoch_begin, batch_begin, batch_end, epoch_end, _ = self._categorize_handlers(handlers)
        for handler in epoch_begin:
            handler.epoch_begin(self)
        for batch in val_data:
            for handler in batch_begin:
                handler.batch_begin(self, batch=batch)
            _, label, pred, loss = self.batch_processor.evaluate_batch(self, batch, batch_axis)
            for handler in batch_end:
                handler.batch_end(self, batch=batch, pred=pred, label=label, loss=loss)
        for handler in epoch_end:
            handler.epoch_end(self)

    def fit(self, train_data: DataLoader, val_data: DataLoader | None = None, epochs: int | None = None,
            event_handlers: EventHandler | list[EventHandler] | None = None, batches: int | None = None, batch_axis: int = 0) -> None:
        """Train for a number of epochs, or of batches.

        Parameters
        ----------
        train_data : DataLoader
            Batches of (data, label).
        val_data : DataLoader, optional
            Evaluated after each epoch.
        epochs, batches : int, optional
            The length of training: one of them.
        event_handlers : EventHandler or list of EventHandler, optional
            Called on the way, those with a lower ``priority`` first. A `StoppingHandler` is added, and, unless there is one here, a
            `GradientUpdateHandler`, a `MetricHandler`, a `LoggingHandler` and, with `val_data`, a `ValidationHandler`. Training ends when the
            ``batch_end`` or ``epoch_end`` of one returns True; ``batch_end`` ends the epoch too.
        batch_axis : int
            The axis along which a batch is divided among the contexts.

        Raises
        ------
        ValueError
            If `train_data` is no DataLoader, not one of `epochs` and `batches` is given, or a handler refers to metrics that nothing updates.
        """
        self._check_loader("train_data", train_data)
        if (not epochs) == (not batches):
            raise ValueError(f"fit: one of epochs and batches says how long to train, received epochs={epochs} and batches={batches}")
        self.max_epoch, self.max_batch, self.batch_axis, self._train_data = epochs, batches, batch_axis, train_data
        handlers = self._prepare_default_handlers(val_data, event_handlers)
        train_begin, epoch_begin, batch_begin, batch_end, epoch_end, train_end = self._categorize_handlers(handlers)
        for handler in train_begin:
            handler.train_begin(self)
        going = True
        while going:
            for handler in epoch_begin:
                handler.epoch_begin(self)
            for batch in train_data:
                for handler in batch_begin:
                    handler.batch_begin(self, batch=batch)
                _, label, pred, loss = self.batch_processor.fit_batch(self, batch, batch_axis)
                if any([handler.batch_end(self, batch=batch, pred=pred, label=label, loss=loss) for handler in batch_end]):
                    break
            going = not any([handler.epoch_end(self) for handler in epoch_end])
        for handler in train_end:
            handler.train_end(self)

    def _check_loader(self, name: str, data: Any) -> None:
        if not isinstance(data, DataLoader):
            raise ValueError(f"Estimator: a gluon.data.DataLoader expected as {name}, received {type(data)}; put arrays into "
                             "DataLoader(ArrayDataset(data, label), batch_size)")

    # -- handlers ------------------------------------------------------------------------------------------------------------

    def _prepare_default_handlers(self, val_data: Any, event_handlers: Any) -> list[Any]:
        """Return the handlers of a training, in the order in which they are called."""
        own = _check_event_handlers(event_handlers)
        added: list[Any] = [StoppingHandler(self.max_epoch, self.max_batch)]
        if not _has(own, GradientUpdateHandler):
            added.append(GradientUpdateHandler())
        if not _has(own, MetricHandler):
            added.append(MetricHandler(metrics=self.train_metrics))
        if val_data and not _has(own, ValidationHandler):
            added.append(ValidationHandler(val_data=val_data, eval_fn=self.evaluate))
        if not _has(own, LoggingHandler):
            added.append(LoggingHandler(metrics=self.train_metrics))
        return self._in_order(own, added, self.train_metrics + self.val_metrics)

    def _prepare_default_validation_handlers(self, event_handlers: Any) -> list[Any]:
        """Return the handlers of an evaluation, in the order in which they are called."""
        own = _check_event_handlers(event_handlers)
        added: list[Any] = []
        if not _has(own, MetricHandler):
            added.append(MetricHandler(metrics=self.val_metrics))
        if not _has(own, LoggingHandler):
            added.append(LoggingHandler(metrics=self.val_metrics))
        return self._in_order(own, added, self.val_metrics)

    def _in_order(self, own: list[Any], added: list[Any], metrics: list[Any]) -> list[Any]:
        if own and added:  # those added update the estimator's metrics alone
            for handler in own:
                _check_handler_metric_ref(handler, set(metrics))
        return sorted([*own, *added], key=lambda handler: getattr(handler, "priority", 0))

    def _categorize_handlers(self, event_handlers: list[Any]) -> tuple[list[Any], ...]:
        """Return the handlers of each kind of event: begin of training, of epochs, of batches, and their ends, from the innermost one outwards."""
        kinds = (TrainBegin, EpochBegin, BatchBegin, BatchEnd, EpochEnd, TrainEnd)
        return tuple([handler for handler in event_handlers if isinstance(handler, kind)] for kind in kinds)


def _has(handlers: list[Any], kind: type) -> bool:
    return any(isinstance(handler, kind) for handler in handlers)
