"""The base class of metrics, composite metrics, and metrics from functions."""
from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from .. import registry
from ..base import numeric_types
from ..ndarray import NDArray
from ..ops import host_arrays

if TYPE_CHECKING:
    import torch


def check_label_shapes(labels: Any, preds: Any, wrap: bool = False, shape: bool = False) -> tuple[Any, Any]:
    """Check that there are as many labels as predictions.

    Parameters
    ----------
    labels, preds : list of NDArray, or NDArray
    wrap : bool
        Return single arrays as lists of one.
    shape : bool
        Compare shapes instead of lengths.

    Raises
    ------
    ValueError
        If they differ.

    Example
    -------
    >>> mx.metric.check_label_shapes(mx.nd.ones(2), mx.nd.ones(2), wrap=True)[0][0].shape
    (2,)
    """
    expected, received = (labels.shape, preds.shape) if shape else (len(labels), len(preds))
    if expected != received:
        raise ValueError(f"{'shape' if shape else 'length'} {expected} of the labels and {received} of the predictions must be equal")
    if wrap:
        labels = [labels] if isinstance(labels, NDArray) else labels
        preds = [preds] if isinstance(preds, NDArray) else preds
    return labels, preds


def tensor(array: Any, like: torch.Tensor | None = None) -> torch.Tensor:
    """Return the torch tensor of an array for reading, without a copy; on the device of the tensor `like` if given."""
    if isinstance(array, NDArray):
        array = array._raw()
    else:
        array = host_arrays.as_tensor(array)
    return array if like is None else array.to(like.device)


def pairs(labels: Sequence[NDArray] | NDArray, preds: Sequence[NDArray] | NDArray) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """Yield the pairs of labels and predictions of a batch as tensors on the device of the predictions."""
    labels, preds = check_label_shapes(labels, preds, True)
    for label, pred in zip(labels, preds):
        values = tensor(pred)
        yield tensor(label, values), values


class EvalMetric:
    """The base class of metrics. Derive from it and define ``update(labels, preds)``.

    Parameters
    ----------
    name : str
        The name of the value in logs.
    output_names, label_names : list of str, optional
        The outputs and labels of a network that `update_dict` selects; all by default.
    **kwargs
        Additional entries of `get_config`. ``has_global_stats=True`` declares that `update` maintains ``global_sum_metric`` and
        ``global_num_inst`` too.

    Example
    -------
    >>> class Largest(mx.metric.EvalMetric):
    ...     def update(self, labels, preds):
    ...         self.sum_metric, self.num_inst = float(preds[0].max().asscalar()), 1
    >>> metric = Largest('largest')
    >>> metric.update([], [mx.nd.array([1, 5, 2])])
    >>> metric.get_name_value()
    [('largest', 5.0)]
    """

    def __init__(self, name: str, output_names: list[str] | None = None, label_names: list[str] | None = None, **kwargs: Any):
        self.name = str(name)
        self.output_names, self.label_names = output_names, label_names
        self._has_global_stats = kwargs.pop("has_global_stats", False)
        self._kwargs = kwargs
        self.reset()

    def __str__(self) -> str:
        return f"EvalMetric: {dict(self.get_name_value())}"

    def get_config(self) -> dict[str, Any]:
        """Return the configuration from which `create` makes the metric again, as a dict."""
        return {**self._kwargs, "metric": type(self).__name__, "name": self.name, "output_names": self.output_names,
                "label_names": self.label_names}

    def update_dict(self, label: Mapping[str, NDArray], pred: Mapping[str, NDArray]) -> None:
        """Update the metric with a batch: labels and outputs of the network by name."""
        preds = list(pred.values()) if self.output_names is None else [pred[name] for name in self.output_names]
        labels = list(label.values()) if self.label_names is None else [label[name] for name in self.label_names]
        self.update(labels, preds)

    def update(self, labels: Sequence[NDArray] | NDArray, preds: Sequence[NDArray] | NDArray) -> None:
        """Update the metric with a batch: lists of NDArrays, one for each label and output of the network."""
        raise NotImplementedError(f"{type(self).__name__} must define update(labels, preds)")

    def _add(self, total: Any, count: int) -> None:
        """Add `count` instances whose values sum to `total`."""
        self.sum_metric += total
        self.global_sum_metric += total
        self.num_inst += count
        self.global_num_inst += count

    def reset(self) -> None:
        """Reset all sums and counts."""
        self.num_inst, self.sum_metric = 0, 0.0
        self.global_num_inst, self.global_sum_metric = 0, 0.0

    def reset_local(self) -> None:
        """Reset the local sums and counts of `get`, but not those of `get_global`."""
        self.num_inst, self.sum_metric = 0, 0.0

    def get(self) -> tuple[Any, Any]:
        """Return name and value since the last reset, local or not; the value is NaN if there were no instances."""
        return self.name, self.sum_metric / self.num_inst if self.num_inst else float("nan")

    def get_global(self) -> tuple[Any, Any]:
        """Return name and value since the last `reset`."""
        if not self._has_global_stats:
            return self.get()
        return self.name, self.global_sum_metric / self.global_num_inst if self.global_num_inst else float("nan")

    def get_name_value(self) -> list[tuple[str, float]]:
        """Return the result of `get` as a list of pairs."""
        return _as_pairs(*self.get())

    def get_global_name_value(self) -> list[tuple[str, float]]:
        """Return the result of `get_global` as a list of pairs."""
        return _as_pairs(*self.get_global()) if self._has_global_stats else self.get_name_value()


def _as_pairs(names: Any, values: Any) -> list[tuple[str, float]]:
    return list(zip(names if isinstance(names, list) else [names], values if isinstance(values, list) else [values]))


register = registry.get_register_func(EvalMetric, "metric")
register.__doc__ = """Register a class as metric under `name`, by default its own.

    Example
    -------
    >>> @mx.metric.register
    ... class Count(mx.metric.EvalMetric):
    ...     def update(self, labels, preds):
    ...         self.sum_metric, self.num_inst = self.sum_metric + len(labels[0]), 1
    >>> metric = mx.metric.create('count', name='samples')
    >>> metric.update([mx.nd.ones(3)], [mx.nd.ones(3)])
    >>> metric.get()
    ('samples', 3.0)
    """
alias = registry.get_alias_func(EvalMetric, "metric")
alias.__doc__ = """Register a class as metric under several names.

    Example
    -------
    >>> @mx.metric.alias('nothing', 'zero')
    ... class Nothing(mx.metric.EvalMetric):
    ...     def update(self, labels, preds):
    ...         self.num_inst += 1
    >>> type(mx.metric.create('zero', name='zero')).__name__
    'Nothing'
    """
_create = registry.get_create_func(EvalMetric, "metric")


def create(metric: Any, *args: Any, **kwargs: Any) -> EvalMetric:
    """Create a metric from a name, a configuration, a function, or a list of these.

    Parameters
    ----------
    metric : str, callable, EvalMetric, dict or list
        A function ``feval(label, pred)`` over numpy arrays returns the value of a batch, or its sum and count.
    *args, **kwargs
        The arguments of the metric's class.

    Raises
    ------
    ValueError
        If no metric has that name.

    Example
    -------
    >>> import mxnet as mx
    >>> metric = mx.metric.create(['acc', 'ce'])
    >>> metric.update([mx.nd.array([0, 1])], [mx.nd.array([[0.5, 0.5], [1, 0]])])
    >>> metric.get_name_value()[0]
    ('accuracy', 0.5)
    """
    if callable(metric):
        return CustomMetric(metric, *args, **kwargs)
    if isinstance(metric, list):
        composite = CompositeEvalMetric()
        for child in metric:
            composite.add(create(child, *args, **kwargs))
        return composite
    return _create(metric, *args, **kwargs)


@register
@alias("composite")
class CompositeEvalMetric(EvalMetric):
    """Several metrics as one.

    Parameters
    ----------
    metrics : list, optional
        Metrics, or arguments of `create`.

    Example
    -------
    >>> metrics = mx.metric.CompositeEvalMetric(['acc', mx.metric.CrossEntropy()])
    >>> metrics.update([mx.nd.array([0, 1])], [mx.nd.array([[1, 0], [0, 1]])])
    >>> metrics.get()
    (['accuracy', 'cross-entropy'], [1.0, 0.0])
    """

    def __init__(self, metrics: Iterable[Any] | None = None, name: str = "composite", output_names: list[str] | None = None,
                 label_names: list[str] | None = None):
        self.metrics = [create(m) for m in metrics or ()]
        super().__init__(name, output_names=output_names, label_names=label_names, has_global_stats=True)

    def add(self, metric: Any) -> None:
        """Add a metric, or the one that `create` makes from the argument."""
        self.metrics.append(create(metric))

    def get_metric(self, index: int) -> EvalMetric:
        """Return the metric number `index`.

        Raises
        ------
        ValueError
            If there is no metric of that number.
        """
        try:
            return self.metrics[index]
        except IndexError:
            raise ValueError(f"Metric index {index} is out of range 0 and {len(self.metrics)}") from None

    def update_dict(self, labels: Mapping[str, NDArray], preds: Mapping[str, NDArray]) -> None:
        """Update each metric with a batch, by name."""
        if self.label_names is not None:
            labels = {k: v for k, v in labels.items() if k in self.label_names}
        if self.output_names is not None:
            preds = {k: v for k, v in preds.items() if k in self.output_names}
        for metric in self.metrics:
            metric.update_dict(labels, preds)

    def update(self, labels: Sequence[NDArray] | NDArray, preds: Sequence[NDArray] | NDArray) -> None:
        """Update each metric with a batch."""
        for metric in self.metrics:
            metric.update(labels, preds)

    def reset(self) -> None:
        """Reset each metric."""
        for metric in self.metrics:
            metric.reset()

    def reset_local(self) -> None:
        """Reset each metric's local values."""
        for metric in self.metrics:
            metric.reset_local()

    def get(self) -> tuple[list[str], list[float]]:
        """Return all names and all values, as two lists."""
        return _joined(metric.get() for metric in self.metrics)

    def get_global(self) -> tuple[list[str], list[float]]:
        """Return all names and all values since the last `reset`, as two lists."""
        return _joined(metric.get_global() for metric in self.metrics)

    def get_config(self) -> dict[str, Any]:
        """Return the configuration from which `create` makes the metric again, as a dict."""
        return {**super().get_config(), "metrics": [metric.get_config() for metric in self.metrics]}


def _joined(results: Iterable[tuple[Any, Any]]) -> tuple[list[str], list[float]]:
    names: list[str] = []
    values: list[Any] = []  # numbers
    for name, value in results:
        names.extend([name] if isinstance(name, str) else name)
        values.extend([value] if isinstance(value, numeric_types) else value)
    return names, values


@register
class CustomMetric(EvalMetric):
    """A metric from a function.

    Parameters
    ----------
    feval : callable
        ``feval(label, pred)`` over numpy arrays; returns the value of a batch, or its sum and count.
    name : str, optional
        By default that of the function.
    allow_extra_outputs : bool
        Allow networks to have more outputs than labels; the first ones are used.

    Example
    -------
    >>> import mxnet as mx
    >>> metric = mx.metric.CustomMetric(lambda label, pred: abs(label - pred).max(), name='worst')
    >>> metric.update([mx.nd.array([1, 2])], [mx.nd.array([1, 4])])
    >>> metric.get()
    ('worst', 2.0)
    """

    def __init__(self, feval: Callable[..., Any], name: str | None = None, allow_extra_outputs: bool = False, output_names: list[str] | None = None,
                 label_names: list[str] | None = None):
        if name is None:
            name = feval.__name__
            if "<" in name:  # a lambda
                name = f"custom({name})"
        super().__init__(name, feval=feval, allow_extra_outputs=allow_extra_outputs, output_names=output_names, label_names=label_names,
                         has_global_stats=True)
        self._feval, self._allow_extra_outputs = feval, allow_extra_outputs

    def update(self, labels: Sequence[NDArray] | NDArray, preds: Sequence[NDArray] | NDArray) -> None:
        """Update the metric with the function's value for each label and output of a batch."""
        if not self._allow_extra_outputs:
            labels, preds = check_label_shapes(labels, preds, True)
        for pred, label in zip(preds, labels):
            value = self._feval(label.asnumpy(), pred.asnumpy())
            total, count = value if isinstance(value, tuple) else (value, 1)
            if hasattr(total, "item"):
                with contextlib.suppress(ValueError, RuntimeError):  # an array of several values is kept
                    total = total.item()  # a Python float: a float32 sum would round off small values
            self._add(total, count)

    def get_config(self) -> NoReturn:
        """Raise an error: a function can't be part of a configuration."""
        raise NotImplementedError("CustomMetric cannot be serialized")


def np(numpy_feval: Callable[..., Any], name: str | None = None, allow_extra_outputs: bool = False) -> CustomMetric:
    """Create a metric from a function over NumPy arrays; see `CustomMetric`.

    Example
    -------
    >>> import mxnet as mx
    >>> def hits(label, pred):
    ...     return (label == pred).sum(), label.size
    >>> metric = mx.metric.np(hits)
    >>> metric.update([mx.nd.array([1, 2])], [mx.nd.array([1, 4])])
    >>> metric.get()
    ('hits', 0.5)
    """
    def feval(label: Any, pred: Any) -> Any:
        return numpy_feval(label, pred)

    feval.__name__ = numpy_feval.__name__
    return CustomMetric(feval, name, allow_extra_outputs)
