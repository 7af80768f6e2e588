"""The functions of ``horovod.mxnet``, on torch.distributed: ``import mxnet.contrib.horovod as hvd``. Horovod itself is not needed.

Start programs with ``python -m mxnet.tools.launch -n 4 -s 0 --launcher local COMMAND`` or torchrun instead of ``horovodrun``; one that is started
without them is a job of one worker. All workers call the same functions in the same order, since tensors are not matched by name.

Example
-------
>>> import mxnet as mx, mxnet.contrib.horovod as hvd
>>> hvd.init()                                                               # doctest: +SKIP
>>> hvd.rank(), hvd.size()                                                   # doctest: +SKIP
(0, 4)
>>> hvd.allreduce(mx.nd.array([1, 2]) * hvd.rank(), average=False).asnumpy() # doctest: +SKIP
array([ 6., 12.], dtype=float32)
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from ..base import MXNetError
from ..gluon import ParameterDict, Trainer
from ..gluon.parameter import DeferredInitializationError
from ..kvstore import group as _groups
from ..ndarray import NDArray
from ..optimizer import Optimizer

__all__ = ["DistributedOptimizer", "DistributedTrainer", "allgather", "allreduce", "allreduce_", "broadcast", "broadcast_", "broadcast_parameters",
           "grouped_allreduce", "grouped_allreduce_", "init", "is_initialized", "local_rank", "local_size", "rank", "shutdown", "size"]
_group = None


def init() -> None:
    """Join the job; once or more often.

    Raises
    ------
    MXNetError
        If the other workers don't come.
    """
    global _group
    _group = _groups.joined("horovod", alone=True)


def shutdown() -> None:
    """Undo `init`; the process stays in its job until its end."""
    global _group
    _group = None


def is_initialized() -> bool:
    """Return True after `init` was called."""
    return _group is not None


def _net():
    if _group is None:
        raise ValueError("this process has not joined its job: call hvd.init() first")
    return _group


def rank() -> int:
    """Return the number of this worker, from 0."""
    return _net().rank


def size() -> int:
    """Return the number of workers."""
    return _net().num_workers


def local_rank() -> int:
    """Return the number of this worker on its machine, from 0."""
    return _net().local()[0]


def local_size() -> int:
    """Return the number of workers on this machine."""
    return _net().local()[1]


def _summed(tensors, name):
    """Return the sums of arrays over all workers, as tensors."""
    for tensor in tensors:
        if not isinstance(tensor, NDArray) or tensor.stype != "default":
            received = f"a {tensor.stype} one" if isinstance(tensor, NDArray) else f"a {type(tensor).__name__}"
            raise MXNetError(f"{name}: dense NDArrays expected, received {received}")
    net, raw = _net(), [t._raw() for t in tensors]
    agreed = net.agree([_groups.digest(name, [(tuple(t.shape), t.dtype) for t in raw])], name)
    totals = net.begin_sum_many(raw, name)
    agreed()
    return list(totals)


def _scaled(total, average, prescale_factor, postscale_factor):
    factor = prescale_factor * postscale_factor / (size() if average else 1)
    return total if factor == 1 else (total * factor).to(total.dtype)


def grouped_allreduce(tensors: Sequence[NDArray], average: bool = True, name: str | None = None, priority: int = 0, prescale_factor: float = 1.0,
                      postscale_factor: float = 1.0) -> list[NDArray]:
    """As `allreduce`, of many arrays at once, which travel together; returns a list."""
    return [NDArray._new(_scaled(total, average, prescale_factor, postscale_factor), tensor.ctx)
            for tensor, total in zip(tensors, _summed(tensors, name or "allreduce"))]


def grouped_allreduce_(tensors: Sequence[NDArray], average: bool = True, name: str | None = None, priority: int = 0, prescale_factor: float = 1.0,
                       postscale_factor: float = 1.0) -> Sequence[NDArray]:
    """As `grouped_allreduce`, in place."""
    for tensor, total in zip(tensors, _summed(tensors, name or "allreduce")):
        NDArray._new(_scaled(total, average, prescale_factor, postscale_factor), tensor.ctx).copyto(tensor)
    return tensors


def allreduce(tensor: NDArray, average: bool = True, name: str | None = None, priority: int = 0, prescale_factor: float = 1.0,
              postscale_factor: float = 1.0) -> NDArray:
    """Return the mean, or without `average` the sum, of the arrays of all workers.

    Parameters
    ----------
    tensor : NDArray
        Dense, of the same shape and type on all workers.
    average : bool
    name : str, optional
        For messages.
    priority : int
        Has no effect: calls go in their order.
    prescale_factor, postscale_factor : float
        The result is multiplied by both.
    """
    return grouped_allreduce([tensor], average, name, priority, prescale_factor, postscale_factor)[0]


def allreduce_(tensor: NDArray, average: bool = True, name: str | None = None, priority: int = 0, prescale_factor: float = 1.0,
               postscale_factor: float = 1.0) -> NDArray:
    """As `allreduce`, in place."""
    return grouped_allreduce_([tensor], average, name, priority, prescale_factor, postscale_factor)[0]


def allgather(tensor: NDArray, name: str | None = None, priority: int = 0) -> NDArray:
    """Return the arrays of all workers, concatenated along the first axis, whose size may differ."""
    net, name, raw = _net(), name or "allgather", tensor._raw()
    net.agree([_groups.digest(name, tuple(raw.shape[1:]), raw.dtype)], name)()
    sizes = net.begin_gather(torch.tensor([raw.shape[0]]), name)().flatten().tolist()
    return NDArray._new(torch.cat(net.all_gather_uneven(raw, sizes, name)), tensor.ctx)


def broadcast(tensor: NDArray, root_rank: int, name: str | None = None, priority: int = 0) -> NDArray:
    """Return the array of one worker on all workers."""
    net, name, raw = _net(), name or "broadcast", tensor._raw()
    if not 0 <= root_rank < net.num_workers:
        raise MXNetError(f"{name}: root_rank must be from 0 to {net.num_workers - 1}, received {root_rank}")
    net.agree([_groups.digest(name, tuple(raw.shape), raw.dtype, root_rank)], name)()
    sent = raw.clone(memory_format=torch.contiguous_format)
    net.wait(net.begin_broadcast(sent, root_rank), name)
    return NDArray._new(sent, tensor.ctx)


def broadcast_(tensor: NDArray, root_rank: int, name: str | None = None, priority: int = 0) -> NDArray:
    """As `broadcast`, in place."""
    return broadcast(tensor, root_rank, name, priority).copyto(tensor)


def broadcast_parameters(params: Any, root_rank: int = 0, prefix: str | None = None) -> None:
    """Give all workers the parameters of one.

    Parameters
    ----------
    params : ParameterDict, or dict of str to Parameter or NDArray
        As ``block.collect_params()`` or ``module.get_params()`` return them. All must have their values.
    root_rank : int
    prefix : str, optional
        For messages.

    Raises
    ------
    ValueError
        If `params` is something else, or a parameter's shape is not known yet.
    """
    if not isinstance(params, (dict, ParameterDict)):
        raise ValueError(f"broadcast_parameters: a dict of parameters expected, received {type(params)}")
    for name, parameter in sorted(params.items()):
        try:
            arrays = [parameter] if isinstance(parameter, NDArray) else parameter.list_data()
        except DeferredInitializationError as error:
            raise ValueError(f"broadcast_parameters: {name} has no values yet; pass a batch through the network first") from error
        for array in arrays:
            broadcast_(array, root_rank, f"{prefix or ''}{name}")


class DistributedOptimizer(Optimizer):
    """An optimizer that averages gradients over all workers before it updates: for `Module`, with ``kvstore=None``.

    Parameters
    ----------
    optimizer : Optimizer
    """

    def __init__(self, optimizer: Optimizer):
        self._optimizer = optimizer
        self._optimizer.rescale_grad /= size()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["_optimizer"], name)

    def create_state(self, index: int | str, weight: NDArray) -> Any:
        """Return the wrapped optimizer's state."""
        return self._optimizer.create_state(index, weight)

    def create_state_multi_precision(self, index: int | str, weight: NDArray) -> Any:
        """Return the wrapped optimizer's state."""
        return self._optimizer.create_state_multi_precision(index, weight)

    def update(self, index: Any, weight: Any, grad: Any, state: Any) -> None:
        """Add gradients up over all workers, and update."""
        grouped_allreduce_(list(grad) if isinstance(index, (tuple, list)) else [grad], average=False)
        self._optimizer.update(index, weight, grad, state)

    def update_multi_precision(self, index: Any, weight: Any, grad: Any, state: Any) -> None:
        """Add gradients up over all workers, and update."""
        grouped_allreduce_(list(grad) if isinstance(index, (tuple, list)) else [grad], average=False)
        self._optimizer.update_multi_precision(index, weight, grad, state)

    def set_learning_rate(self, lr: float) -> None:
        """Set the wrapped optimizer's learning rate."""
        self._optimizer.set_learning_rate(lr)

    def set_lr_mult(self, args_lr_mult: dict[Any, float]) -> None:
        """Set the wrapped optimizer's multipliers."""
        self._optimizer.set_lr_mult(args_lr_mult)

    def set_wd_mult(self, args_wd_mult: dict[Any, float]) -> None:
        """Set the wrapped optimizer's multipliers."""
        self._optimizer.set_wd_mult(args_wd_mult)


class DistributedTrainer(Trainer):
    """A `Trainer` that averages gradients over all workers: ``step(batch_size)`` takes the size of one worker's batch.

    Parameters
    ----------
    params : ParameterDict, dict or list of Parameter
    optimizer : str or Optimizer
    optimizer_params : dict, optional
    """

    def __init__(self, params: Any, optimizer: Any, optimizer_params: dict[str, Any] | None = None):
        if isinstance(optimizer, DistributedOptimizer):
            optimizer = optimizer._optimizer
            optimizer.rescale_grad *= size()
        super().__init__(params, optimizer, optimizer_params, kvstore=None)
        self._scale /= size()

    def _allreduce_grads(self):
        gradients = [gradient for parameter in self._params if parameter.grad_req != "null" for gradient in parameter.list_grad()]
        if size() > 1 and gradients:
            grouped_allreduce_(gradients, average=False)
