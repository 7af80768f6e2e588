"""`ShardedParameter`: a weight whose rows are divided among the ranks of a job and the contexts of each process."""
from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch

from .. import initializer, ndarray
from ..base import MXNetError
from ..context import cpu
from ..ops import random_state
from ..ops.dtypes import name_of, to_torch
from ..optimizer import pickles
from ..util import is_np_array
from .parameter import Parameter

if TYPE_CHECKING:
    from ..ndarray import NDArray

__all__ = ["ShardedParameter", "change_state", "has_rows_of", "joined_states", "ranks", "split_states", "gathered_states"]

# Values are drawn in blocks of so many elements, each from a seed of its own: a rank draws only its rows, and they do not depend on their division.
_BLOCK = 1 << 20
# These draw or set all elements alike. Others of mxnet.initializer depend on the whole array.
_BY_ELEMENT = {"Zero", "One", "Constant", "Uniform", "Normal", "Xavier", "MSRAPrelu"}
_SEEDS = 1 << 31


def ranks() -> Any:
    """Return the ranks of this process, see `kvstore.ranks`. It is imported here since it imports torch.distributed."""
    from ..kvstore import ranks as module
    return module.ranks()


class ShardedParameter(Parameter):
    """A weight of which each rank of a job, and each context of its process, has other rows.

    Rank i of n has the rows from ``rows * i // n`` to ``rows * (i + 1) // n``, and divides them among its contexts in the same way. `shape` is that
    of the whole weight; `data` and `grad` are the rows of a context. A Trainer updates them where they are, without sums over ranks or contexts.
    `save_parameters` gathers and writes the whole weight, and `load_parameters` and `set_data` take the whole and keep some rows: all ranks call
    them. So do they `initialize`, whose values do not depend on the number of ranks, and come from the seed of rank 0.

    Parameters
    ----------
    name : str
    **kwargs
        As for `Parameter`.

    Raises
    ------
    MXNetError
        From `initialize`: if there are fewer rows than contexts of all ranks, or the initializer depends on the whole weight (`Orthogonal`).

    Example
    -------
    >>> import mxnet as mx
    >>> layer = mx.gluon.nn.ShardedDense(5, in_units=2)
    >>> layer.initialize(ctx=[mx.cpu(0), mx.cpu(1)])
    >>> layer.weight.shape, [part.shape for part in layer.weight.list_data()]
    ((5, 2), [(2, 2), (3, 2)])
    """

    sharded = True

    def rows(self) -> tuple[int, int]:
        """Return the first row of this rank, and the one after its last."""
        found = ranks()
        begin, end = found.edges(self.shape[0])[found.rank:found.rank + 2]
        return begin, end

    def edges(self, count: int | None = None) -> list[int]:
        """Return the rows at which those of the contexts begin, and the row after the last one."""
        count = len(self._data) if count is None else count
        begin, end = self.rows()
        return [begin + (end - begin) * i // count for i in range(count + 1)]

    def _initial_parts(self, init: Any, default_init: Any, contexts: Any) -> None:
        members, doing = ranks(), f"initialize of {self.name}"
        try:
            members.require_rows(self.shape[0], len(contexts), f"Parameter '{self.name}'")
            kind = type(initializer.create(default_init if init is None else init))
            if kind.__module__ == initializer.__name__ and kind.__name__ not in _BY_ELEMENT:
                raise MXNetError(f"Parameter '{self.name}' is split, and {kind.__name__} needs the whole weight; use one of "
                                 f"{', '.join(sorted(_BY_ELEMENT))}, or load values")
        except MXNetError as error:
            members.fail(doing, error)
        low, high = random_state.bank().words(2).tolist()
        about = {"shape": self.shape, "dtype": name_of(to_torch(self.dtype))}
        base = members.from_first((high << 31 ^ low) % _SEEDS, doing, about)
        device = torch.device("cpu")
        state = random_state.get_state(device)
        edges = self.edges(len(contexts))
        try:
            parts = [self._draw(init, default_init, base, begin, end) for begin, end in zip(edges, edges[1:])]
        finally:
            random_state.set_state(device, state)
        self._place(contexts, [part if ctx == part.ctx else part.copyto(ctx) for part, ctx in zip(parts, contexts)])

    def _draw(self, init: Any, default_init: Any, base: int, begin: int, end: int) -> Any:
        """Return the initial values of some rows."""
        rows, *rest = self.shape
        height = max(1, _BLOCK // max(1, torch.Size(rest).numel()))
        out = ndarray.zeros((end - begin, *rest), dtype=self.dtype, ctx=cpu())
        for index in range(begin // height, -(-end // height)):
            random_state.seed((base + index * 2654435761) % _SEEDS, "cpu")
            first, last = index * height, min(rows, (index + 1) * height)
            block = self._drawn(init, default_init, (last - first, *rest), rows=rows)
            low, high = max(begin, first), min(end, last)
            out[low - begin:high - begin] = block[low - first:high - first]
        return out.as_np_ndarray() if is_np_array() else out

    def _split(self, data: Any) -> list[Any]:
        edges = self.edges()
        return [data[begin:end] for begin, end in zip(edges, edges[1:])]

    def _init_impl(self, data: Any, contexts: Any, own: bool = False) -> None:
        ranks().require_rows(self.shape[0], len(contexts), f"Parameter '{self.name}'")
        if not isinstance(data, ndarray.NDArray):
            data = ndarray.array(data, dtype=self.dtype)
        data = data.as_np_ndarray() if is_np_array() else data.as_nd_ndarray()
        edges = self.edges(len(contexts))
        self._place(contexts, [data[begin:end].copyto(ctx) for begin, end, ctx in zip(edges, edges[1:], contexts)])

    def _reduce(self) -> NDArray:
        return self.gathered([array._raw() for array in self._check_and_get(self._data, list)])

    def local(self, parts: list[torch.Tensor]) -> NDArray:
        """Return a copy of the rows of this rank, out of those of its contexts, on the CPU."""
        return ndarray.NDArray._new(torch.cat([part.detach().cpu() for part in parts]), cpu())

    def gathered(self, parts: list[torch.Tensor]) -> NDArray:
        """Return the rows of all ranks out of those of this rank's contexts, on the CPU; all ranks call it."""
        members, doing = ranks(), f"values of {self.name}"
        own, edges = self.local(parts)._raw(), members.edges(self.shape[0])
        members.agree(doing, about={"shape": self.shape, "dtype": name_of(own.dtype)})
        return ndarray.NDArray._new(members.gather(own, [end - begin for begin, end in zip(edges, edges[1:])], doing), cpu())

    def set_local(self, rows: NDArray) -> None:
        """Set the values to these rows of this rank."""
        edges = self.edges()
        for array, begin, end in zip(self.list_data(), edges, edges[1:]):
            array[:] = rows[begin - edges[0]:end - edges[0]].as_in_context(array.ctx)
        if self._trainer:
            self._trainer._weight_replaced(self)


def change_state(change: Callable[..., Any], state: Any, *others: Any) -> Any:
    """Return an optimizer's state with `change` applied to its arrays, and to those at the same places of other states."""
    if isinstance(state, ndarray.NDArray):
        return change(state, *others)
    return type(state)(change_state(change, *parts) for parts in zip(state, *others)) if isinstance(state, (list, tuple)) else state


def has_rows_of(array: NDArray, shape: tuple[int, ...]) -> bool:
    """Return True if an optimizer's array has a row, of any size, for each row of a weight of this shape."""
    return len(array.shape) == len(shape) and array.shape[:1] == shape[:1]


def joined_states(updaters: list[Any], parameters: list[Parameter],
                  join: Callable[[ShardedParameter, list[torch.Tensor]], NDArray]) -> dict[int, Any]:
    """Return the states of all parameters; `join` makes an array of a split one's arrays, one for each context: `local` or `whole`."""
    states = {}
    for i in sorted(updaters[0].states):
        parameter, parts = parameters[i], [updater.states[i] for updater in updaters]
        if isinstance(parameter, ShardedParameter):
            def joined(*arrays: Any, of: ShardedParameter = parameter) -> Any:
                same = all(has_rows_of(array, part.shape) for array, part in zip(arrays, of.list_data()))
                return join(of, [array._raw() for array in arrays]) if same else arrays[0]
            states[i] = change_state(joined, *parts)
        else:
            states[i] = parts[0]
    return states


def gathered_states(updaters: list[Any], parameters: list[Parameter]) -> bytes:
    """Return the optimizer and the states of whole weights, as a file has them; all ranks call it."""
    return pickles.dumps((joined_states(updaters, parameters, ShardedParameter.gathered), updaters[0].optimizer))


def split_states(updaters: list[Any], parameters: list[Parameter], local: bool = False) -> None:
    """Replace loaded states, of whole weights or of this rank's rows (`local`), by those of the rows that each context has."""
    for i, parameter in enumerate(parameters):
        if isinstance(parameter, ShardedParameter):
            edges = parameter.edges()
            first = edges[0] if local else 0
            shape = (edges[-1] - first if local else parameter.shape[0], *parameter.shape[1:])
            for updater, begin, end in zip(updaters, edges, edges[1:]):
                def part(array: Any, rows: slice = slice(begin - first, end - first), shape: Any = shape) -> Any:
                    return array[rows].copy() if has_rows_of(array, shape) else array
                if i in updater.states:
                    updater.states[i] = change_state(part, updater.states[i])
