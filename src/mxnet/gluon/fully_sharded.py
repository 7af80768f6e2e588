"""`FullyShardedParameter`: a weight of which each rank keeps some rows, and that is whole only while a layer uses it.

FSDP2 (``torch.distributed.fsdp.fully_shard``) does the same for ``torch.nn.Module``: it replaces the module's parameters by DTensors, and frees the
storage of whole weights under the graph. Blocks are no modules, and their graphs and kernels hold arrays by address. Here the gathering is an
operation of the recorded computation instead: its backward adds up the gradient and scatters it, and torch's hooks for saved tensors keep a
weight's name in the graph in the place of its values.
"""
from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import torch
from torch.multiprocessing.reductions import StorageWeakRef

from ..context import Context, ctx_or_device
from ..graph.weight_guard import WeightGuard
from ..ndarray import NDArray, dispatch, mutation_tracking
from ..ndarray.dispatch import mode
from ..ops.dtypes import name_of
from ..suggestions import shortened
from ..util import level_of_program
from .parameter import Parameter
from .sharded_parameter import ShardedParameter, ranks
from .sharded_softmax import recorded
from .utils import UsageError

if TYPE_CHECKING:
    from .parameter_dict import ParameterDict

__all__ = ["FullyShardedParameter", "fully_shard"]

_OPERATOR = dispatch.pseudo_operator("gather_weight")
_VECTOR = 4096  # vectors of fewer elements are not divided


class FullyShardedParameter(ShardedParameter):
    """A weight whose rows are divided among the ranks of a job, and that `data` gathers. `fully_shard` makes it of a `Parameter`.

    Everything else is as for a `ShardedParameter`: `list_data` and `grad` are the rows of this rank, which a Trainer updates in place. With `offload`
    they are in the memory of the host, and go to the device where `data` gathers.

    Example
    -------
    >>> import mxnet as mx
    >>> layer = mx.gluon.nn.Dense(4, in_units=2)
    >>> layer.initialize()
    >>> mx.gluon.fully_shard(layer.collect_params())
    >>> type(layer.weight).__name__  # one process needs no parts; in a job of several it is a FullyShardedParameter
    'Parameter'
    """

    _offload: Context | None = None

    def data(self, ctx: Context | None = None, *, device: Context | None = None) -> NDArray:
        """Return the whole weight. All ranks call it alike; errors as in `Parameter.data`."""
        rows = self._check_and_get(self._data, ctx_or_device(ctx, device) if device is not None else ctx)
        gatherer = _gatherer()
        place = self._ctx_list[0]
        if gatherer.ranks.count == 1 and rows.ctx == place:
            return super().data(ctx, device=device)
        gatherer.hook(mode.recording and rows._data.requires_grad)
        weight = recorded(_Gather, _OPERATOR, [rows], self, [(type(rows), place)])[0]
        return mode.tracing.parameter(self, weight) if mode.tracing is not None else weight

    def _place(self, contexts: Any, arrays: list[Any]) -> None:
        if len(contexts) > 1:
            raise UsageError(f"Parameter '{self.name}' is fully sharded, with one context for each rank; received {contexts}")
        if self._offload is not None:
            if contexts[0].device_type != "gpu":
                warnings.warn(f"offload={self._offload} has no effect: the weights are on {contexts[0]}, which is the host's memory already",
                              stacklevel=level_of_program())
            else:
                # Numbered as the device, since optimizers count the updates of each number.
                host = Context(self._offload.device_type, contexts[0].device_id)
                arrays = [_on_host(array, host) for array in arrays]
        super()._place(contexts, arrays)


def _on_host(array: NDArray, host: Context) -> NDArray:
    """Return a copy of an array in the memory of the host, which a GPU reads without waiting if it is pinned."""
    tensor = array._raw().detach().cpu()
    if host.device_type == "cpu_pinned" and torch.cuda.is_initialized():
        tensor = tensor.pin_memory()
    return type(array)._new(tensor, host)


class _Gather(torch.autograd.Function):
    """The whole weight of the rows of all ranks; the gradient of a rank's rows is the sum of all ranks' gradients there."""

    @staticmethod
    def forward(ctx: Any, parameter: Any, rows: torch.Tensor) -> Any:
        ctx.parameter, ctx.mark = parameter, parameter._data[0]._autograd
        ctx.place = {"device": rows.device, "dtype": rows.dtype}
        return (_gatherer().take(parameter, forward=True),)

    @staticmethod
    def backward(ctx: Any, *heads: Any) -> Any:
        parameter, members = ctx.parameter, _gatherer().ranks
        edges = members.edges(parameter.shape[0])
        sizes = [end - begin for begin, end in zip(edges, edges[1:])]
        doing = f"gradient of {parameter.name}"
        members.agree(doing)
        travels, place = members.begin_scatter(heads[0].contiguous(), sizes, doing), ctx.place

        def end() -> torch.Tensor:
            return travels().to(**place)

        if isinstance(ctx.mark, dispatch.Marked) and not ctx.mark.reached:  # a backward that writes gradients, not `autograd.grad`
            _gatherer().pending.add(ctx.mark, end)
            return None, None
        return None, end()


class _PendingGradients:
    """Gradients of rows whose sums travel while backward goes on, one at a time; the arrays get them when it ends."""

    def __init__(self) -> None:
        self._flight: tuple[Any, Callable[[], torch.Tensor]] | None = None
        self._sums: dict[Any, torch.Tensor] = {}
        self._backward = -1  # torch's number of the one that runs

    def add(self, mark: Any, end: Callable[[], torch.Tensor]) -> None:
        """Wait for the sum before this one, and have all delivered when backward is over."""
        number = torch._C._current_graph_task_id()
        if number != self._backward:
            self.drop()  # another one has failed
            self._backward = number
            torch.autograd.Variable._execution_engine.queue_callback(self._deliver)  # type: ignore[attr-defined]  # FSDP2 uses it, too
        self._finish()
        self._flight = mark, end

    def _finish(self) -> None:
        if self._flight is not None:
            (mark, end), self._flight = self._flight, None
            total = end()
            self._sums[mark] = total if mark not in self._sums else self._sums[mark] + total  # of a weight that is used twice

    def _deliver(self) -> None:
        try:
            self._finish()
            for mark, total in self._sums.items():
                mark.take(total)
                if mark.finished is not None:
                    mark.finished()
        finally:
            self.drop()

    def drop(self) -> None:
        """Forget what a backward that has failed has left."""
        self._flight, self._sums, self._backward = None, {}, -1


class _Saved:
    """A view of a whole weight, as the graph keeps it for backward."""

    def __init__(self, parameter: FullyShardedParameter, tensor: torch.Tensor) -> None:
        self.parameter, self.size, self.stride, self.offset = parameter, tensor.size(), tensor.stride(), tensor.storage_offset()


class _InFlightWeight:
    """A weight that is being gathered.

    Attributes
    ----------
    parameter : FullyShardedParameter
    end : function
        Waits for all rows, and returns the weight.

    Parameters
    ----------
    net : Group or None
    edges : list of int
        Where the rows of each rank begin, and the end.
    ahead : bool
        True if it is not needed yet; else ranks are compared before rows are sent.
    """

    def __init__(self, parameter: FullyShardedParameter, net: Any, edges: list[int], ahead: bool) -> None:
        from ..kvstore.group import digest
        self.parameter = parameter
        self._doing = doing = f"gather of {parameter.name}"
        array = parameter._check_and_get(parameter._data, list)[0]
        rows = array._raw().contiguous()
        watched = mutation_tracking.may_watch(array._data)
        self._guard = WeightGuard([array._data]) if watched else None
        rows = rows.to(parameter._ctx_list[0].torch_device, non_blocking=True)
        if net is None:
            self._agreed, self.end = lambda: [[0, watched]], lambda: rows
            return
        weight = rows.new_empty(parameter.shape)
        parts = [weight[begin:end] for begin, end in zip(edges, edges[1:])]
        about = {"shape": parameter.shape, "dtype": name_of(rows.dtype)}
        self._agreed = agreed = net.agree([digest(doing, about), watched], doing, about)
        if not ahead:  # Gloo ends a process that receives more than it expects
            agreed()
        works = net.begin_all_gather(parts, rows)

        def end() -> torch.Tensor:  # it must not refer to this object: a cycle would keep the weight until Python collects garbage
            agreed()
            for work in works:
                net.wait(work, doing)
            return weight
        self.end = end

    def is_current(self, members: Any, new_pass: bool) -> bool:
        """Return True if the rows have not changed since. Ranks change them alike, or, before a new pass over the network, each its own."""
        if not all(watched for _, watched in self._agreed()):
            return False
        current = self._guard is not None and self._guard.holds([self.parameter._data[0]._data])
        return all(yes for yes, in members.agree(self._doing, current)) if new_pass else current


class _Gatherer:
    """Gathers weights, and while one is used begins to gather the one that followed it in the last step."""

    def __init__(self) -> None:
        self.ranks = ranks()
        self._net = self.ranks._group
        self._trail: tuple[Any, Any] = (None, None)  # the last two that were taken
        self._next: dict[tuple[Any, Any], Any] = {}
        self._seen: dict[tuple[Any, Any], Any] = {}
        self._pass: set[Any] = set()  # the weights of this pass over the network, as far as it is
        self._flight: _InFlightWeight | None = None
        self._whole: dict[int, tuple[Any, FullyShardedParameter]] = {}  # by the address of a storage
        self._hooks = threading.local()
        self.pending = _PendingGradients()

    def take(self, parameter: FullyShardedParameter, forward: bool = False) -> torch.Tensor:
        """Return the whole weight, in memory of its own."""
        new_pass = forward and parameter in self._pass
        if new_pass:
            self._pass.clear()
        if forward:
            self._pass.add(parameter)
        flight = self._flight
        # Whoever writes to rows need not know of a weight in flight: it is asked here whether it has their values still.
        if flight is None or flight.parameter is not parameter or not flight.is_current(self.ranks, new_pass):
            self._drop()
            flight = self._begin(parameter, False)
        self._flight = None
        weight = flight.end()
        self._seen[self._trail] = parameter
        self._trail = self._trail[1], parameter
        following = self._next.get(self._trail)
        if following is not None:
            self._flight = self._begin(following, True)
        storage = weight.untyped_storage()
        self._whole = {address: entry for address, entry in self._whole.items() if not entry[0].expired()}
        self._whole[storage._cdata] = StorageWeakRef(storage), parameter
        return weight

    def _begin(self, parameter: FullyShardedParameter, ahead: bool) -> _InFlightWeight:
        return _InFlightWeight(parameter, self._net, self.ranks.edges(parameter.shape[0]), ahead)

    def _drop(self) -> None:
        if self._flight is not None:
            flight, self._flight = self._flight, None
            flight.end()

    def cut(self) -> None:
        """Forget a weight that was gathered in advance, since all rows are about to change: a step is over."""
        self._drop()
        self.pending.drop()
        self._pass.clear()
        self._trail, self._next, self._seen = (None, None), self._seen or self._next, {}
        self.hook(False)

    # -- saved tensors -----------------------------------------------------------------------------------------------------------

    def hook(self, on: bool) -> None:
        """Have graphs save names of weights from now on, or no longer."""
        active = getattr(self._hooks, "active", None)
        if on and active is None:
            self._hooks.active = torch.autograd.graph.saved_tensors_hooks(self._pack, self._unpack)
            self._hooks.active.__enter__()
        elif not on and active is not None:
            self._hooks.active = None
            active.__exit__(None, None, None)

    def _pack(self, tensor: torch.Tensor) -> Any:
        if tensor.layout is not torch.strided:
            return tensor
        entry = self._whole.get(tensor.untyped_storage()._cdata)
        return tensor if entry is None or entry[0].expired() else _Saved(entry[1], tensor)

    def _unpack(self, saved: Any) -> torch.Tensor:
        return self.take(saved.parameter).as_strided(saved.size, saved.stride, saved.offset) if type(saved) is _Saved else saved


_made: _Gatherer | None = None


def _gatherer() -> _Gatherer:
    global _made
    if _made is None:
        _made = _Gatherer()
    return _made


def before_update() -> None:
    """End a step: called before rows change."""
    _gatherer().cut()


def fully_shard(parameters: ParameterDict | Iterable[Parameter], offload: Context | None = None) -> None:
    """Divide weights among the ranks of the job: each keeps, updates and has optimizer states of its rows, and gathers a weight where it is used.

    Weights with at least two axes, and long vectors, are divided by their first axis; others stay as they are. Values are those of rank 0. For
    weights that do not fit into the memory of one rank, call this before `initialize`, which then draws a rank's rows only. All ranks call it.

    Parameters
    ----------
    parameters : ParameterDict, or iterable of Parameter
        Such as ``net.collect_params()``.
    offload : Context, optional
        The memory of the host, ``mx.cpu_pinned()`` or ``mx.cpu()``, where a rank keeps its rows, their gradients and states, and where they are
        updated; weights are on a GPU while a layer uses them. A process alone may do so, too. Without a GPU a warning says that it has no effect.

    Raises
    ------
    UsageError
        If a weight is on several contexts, or has a Trainer already; if `offload` is not the host's memory.

    Example
    -------
    >>> import mxnet as mx
    >>> net = mx.gluon.nn.Dense(4, in_units=2)
    >>> mx.gluon.fully_shard(net.collect_params())  # in a job: each rank has 4 / n rows of the weight
    >>> net.initialize()
    >>> trainer = mx.gluon.Trainer(net.collect_params(), 'adam', kvstore=None)
    """
    members = ranks()
    if offload is not None and (not isinstance(offload, Context) or offload.device_type not in ("cpu", "cpu_pinned")):
        raise UsageError(f"fully_shard: offload is mx.cpu_pinned() or mx.cpu(), received {shortened(offload)}")
    for parameter in parameters.values() if hasattr(parameters, "values") else parameters:
        dense = parameter._stype == parameter._grad_stype == "default"
        if type(parameter) is not Parameter or members.count == 1 and offload is None or not dense or parameter.grad_req == "null":
            continue
        shape = parameter.shape or (0,)
        if shape[0] < members.count or len(shape) < 2 and shape[0] < _VECTOR:
            continue
        if parameter._trainer:
            raise UsageError(f"fully_shard: Parameter '{parameter.name}' has a Trainer already; make the Trainer with shard='full'")
        _divide(parameter, offload)


def _divide(parameter: Parameter, offload: Context | None) -> None:
    """Make a parameter a fully sharded one: blocks refer to the object, so it stays the same."""
    net, arrays = _gatherer()._net, parameter._data
    if arrays is not None and len(arrays) > 1:
        raise UsageError(f"fully_shard: Parameter '{parameter.name}' is on {parameter.list_ctx()}; a rank has one context")
    parameter.__class__ = FullyShardedParameter  # type: ignore[assignment]  # both have the same fields
    if offload is not None:
        parameter._offload = offload
    if arrays is not None:
        doing = f"fully_shard of {parameter.name}"
        tensor = arrays[0]._raw().contiguous()
        if net is not None:
            net.wait(net.begin_broadcast(tensor), doing)
        parameter._init_impl(type(arrays[0])._new(tensor, arrays[0].ctx), parameter.list_ctx())
