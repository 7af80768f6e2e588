"""Modules whose computation is Python code, for use beside others in a `SequentialModule`."""
from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from .. import ndarray as nd
from ..base import MXNetError
from ..initializer import Uniform
from ..suggestions import shortened
from .base_module import BaseModule

if TYPE_CHECKING:
    from ..monitor import Monitor
    from ..ndarray import NDArray


class PythonModule(BaseModule):
    """A module without parameters; a subclass defines the computation.

    A subclass defines `_compute_output_shapes`, `forward`, `backward`, `get_outputs` and `get_input_grads`.

    Parameters
    ----------
    data_names, label_names, output_names : list of str
    logger : Logger
    """

    def __init__(self, data_names: Sequence[str], label_names: Sequence[str], output_names: Sequence[str], logger: Any = logging) -> None:
        super().__init__(logger=logger)
        self._data_names = list(data_names) if isinstance(data_names, tuple) else data_names
        self._label_names = list(label_names) if isinstance(label_names, tuple) else label_names
        self._output_names = output_names
        self._data_shapes: Any = None
        self._label_shapes: Any = None
        self._output_shapes: Any = None

    data_names = property(attrgetter("_data_names"), doc="The names of the data.")
    output_names = property(attrgetter("_output_names"), doc="The names of the outputs.")
    data_shapes = property(attrgetter("_data_shapes"), doc="The names and shapes of the data.")
    label_shapes = property(attrgetter("_label_shapes"), doc="The names and shapes of the labels; None if the module takes none.")
    output_shapes = property(attrgetter("_output_shapes"), doc="The names and shapes of the outputs.")

    def get_params(self) -> tuple[dict[str, NDArray], dict[str, NDArray]]:
        """Return two empty dicts: there are no parameters."""
        return {}, {}

    def init_params(self, initializer: Any = Uniform(0.01), arg_params: dict[str, NDArray] | None = None,
                    aux_params: dict[str, NDArray] | None = None, allow_missing: bool = False, force_init: bool = False,
                    allow_extra: bool = False) -> None:
        """Do nothing: there are no parameters."""

    def init_optimizer(self, kvstore: Any = "local", optimizer: Any = "sgd", optimizer_params: Any = (("learning_rate", 0.01),),
                       force_init: bool = False) -> None:
        """Do nothing: there are no parameters to update."""

    def update(self) -> None:
        """Do nothing: there are no parameters to update."""

    def update_metric(self, eval_metric: Any, labels: Any, pre_sliced: bool = False) -> None:
        """Update a metric with labels and the last outputs; do nothing if the module has no labels."""
        if self._label_shapes is None:
            return
        if pre_sliced:
            raise RuntimeError(f"PythonModule takes whole labels, not one list per device: pre_sliced=False expected, received {pre_sliced!r}")
        eval_metric.update(labels, self.get_outputs())

    def bind(self, data_shapes: Any, label_shapes: Any = None, for_training: bool = True, inputs_need_grad: bool = False, force_rebind: bool = False,
             shared_module: BaseModule | None = None, grad_req: str | list[str] | dict[str, str] = "write") -> None:
        """Store the shapes, and compute those of the outputs; see `Module.bind`."""
        if self.binded and not force_rebind:
            self.logger.warning("Already bound, ignoring bind()")
            return
        if grad_req != "write":
            raise MXNetError(f"{type(self).__name__} supports only grad_req='write', received {shortened(grad_req)}")
        _match("data", data_shapes, self._data_names)
        if label_shapes is not None:
            _match("label", label_shapes, self._label_names)
        self.for_training = for_training
        self.inputs_need_grad = inputs_need_grad
        self._data_shapes = data_shapes
        self._label_shapes = label_shapes
        self._output_shapes = self._compute_output_shapes()

    def _compute_output_shapes(self) -> Any:
        """Return the names and shapes of the outputs, from ``_data_shapes`` and ``_label_shapes``."""
        raise NotImplementedError()


def _match(kind, shapes: Any, names: Any) -> None:
    given = [d[0] for d in shapes]
    if given != names:
        raise MXNetError(f"bind: {kind}_shapes must describe {names} in this order, received {given}")


class PythonLossModule(PythonModule):
    """A loss whose gradient is Python code: the outputs are the data themselves.

    Parameters
    ----------
    name : str
        The output is called ``name_output``.
    data_names, label_names : list of one str
    logger : Logger
    grad_func : callable, optional
        Maps ``(scores, labels)`` to the gradient of the scores, an NDArray or a NumPy array. Without it a subclass
        defines `_backward_impl`.
    """

    def __init__(self, name: str = "pyloss", data_names: Sequence[str] = ("data",), label_names: Sequence[str] = ("softmax_label",),
                 logger: Any = logging, grad_func: Callable[..., Any] | None = None) -> None:
        super().__init__(data_names, label_names, [f"{name}_output"], logger=logger)
        if len(data_names) != 1 or len(label_names) != 1:
            raise MXNetError(f"PythonLossModule takes one data and one label, received {data_names} and {label_names}")
        if grad_func is not None and not callable(grad_func):
            raise MXNetError(f"PythonLossModule: grad_func must be callable, received {shortened(grad_func)}")
        self._name = name
        self._grad_func = grad_func
        self._scores: Any = None
        self._labels: Any = None
        self._scores_grad: Any = None

    def _compute_output_shapes(self):
        return [(f"{self._name}_output", self._data_shapes[0][1])]

    def forward(self, data_batch: Any, is_train: bool | None = None) -> None:
        """Store the scores, and in training the labels."""
        self._scores = data_batch.data[0]
        if self.for_training if is_train is None else is_train:
            self._labels = data_batch.label[0]

    def get_outputs(self, merge_multi_context: bool = True) -> list[Any]:
        """Return the scores."""
        _merged_only(merge_multi_context)
        return [self._scores]

    def backward(self, out_grads: Any = None) -> None:
        """Compute the gradient of the scores."""
        if out_grads is not None:
            raise MXNetError(f"PythonLossModule is a loss: backward takes no out_grads, received {shortened(out_grads)}")
        if not self.for_training:
            raise MXNetError(f"backward needs a module bound with for_training=True, it was bound with {self.for_training}; bind it again")
        self._backward_impl()

    def _backward_impl(self) -> None:
        if self._grad_func is None:
            raise NotImplementedError("give PythonLossModule a grad_func, or define _backward_impl in a subclass")
        grad = self._grad_func(self._scores, self._labels)
        self._scores_grad = grad if isinstance(grad, nd.NDArray) else nd.array(grad)

    def get_input_grads(self, merge_multi_context: bool = True) -> list[Any]:
        """Return the gradient of the scores."""
        _merged_only(merge_multi_context)
        return [self._scores_grad]

    def install_monitor(self, mon: Monitor) -> None:
        """Raise an error: there is no executor to monitor."""
        raise NotImplementedError("PythonLossModule has no executor to watch")


def _merged_only(merge_multi_context: bool) -> None:
    if merge_multi_context is not True:
        raise MXNetError(f"PythonLossModule does not know of devices; merge_multi_context=True expected, received {merge_multi_context!r}")
