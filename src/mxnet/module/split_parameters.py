"""The weights of a `Module` whose layers of the group ``sharded`` are divided among contexts and ranks.

The module's parameters, as programs see them and files have them, are whole. The executor has the rows of each part of this rank, on the part's
context; they are updated there, by gradients that are sums over all ranks already.
"""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch

from .. import files
from .. import optimizer as opt
from ..base import MXNetError
from ..context import cpu
from ..ndarray import NDArray
from ..ops.dtypes import name_of
from ..optimizer import pickles
from ..symbol.split_layers import GROUP, Part, contexts_of, split, splits

if TYPE_CHECKING:
    from ..context import Context
    from ..symbol import Symbol

__all__ = ["SplitParameters", "divided"]


def divided(symbol: Symbol, groups: Mapping[str, Any] | None, contexts: Sequence[Context]) -> SplitParameters | None:
    """Return the divided parameters of a module on `contexts`, or None if it has none.

    `groups` are the contexts of the groups on the module's first context.

    Raises
    ------
    MXNetError
        If layers that are to be divided can't be, or the module is on several contexts.
    """
    places = contexts_of(groups)
    if not places or not splits(symbol._nodes()):
        return None
    from ..kvstore.ranks import ranks  # it imports torch.distributed
    members = ranks()
    if members.count * len(places) == 1:
        return None
    if len(contexts) > 1:
        raise MXNetError(f"Module: layers of the group {GROUP!r} are divided among {', '.join(map(str, places))}, which a module on one context "
                         f"does; received the contexts {contexts}, for as many copies of the network. Start a rank for each, or pass one context")
    return SplitParameters(symbol, places, members)


class SplitParameters:
    """The parts of divided parameters.

    Parameters
    ----------
    symbol : Symbol
        The network as the program has it.
    contexts : list of Context
    members : Ranks

    Attributes
    ----------
    symbol : Symbol
        The network with variables for the parts of this rank.
    parts : dict of str to list of Part
        By the name of the whole parameter.
    updater : Updater or None
        Has the optimizer's states of the parts.
    """

    def __init__(self, symbol: Symbol, contexts: Sequence[Context], members: Any) -> None:
        self.members = members
        self.symbol, self.parts = split(symbol, contexts, members if members.count > 1 else None, separate=True)
        self.updater: Any = None
        self._first = len(symbol.list_arguments())  # the optimizer's number of the first part; those of other parameters are below
        numbers = [part.name for parts in self.parts.values() for part in parts]
        self._numbers = {name: self._first + i for i, name in enumerate(numbers)}

    # -- names and values --------------------------------------------------------------------------------------------------------

    def names(self, names: Sequence[str]) -> list[str]:
        """Return names of parameters, with those of the parts in place of a divided one."""
        return [bound for name in names for bound in ([part.name for part in self.parts[name]] if name in self.parts else [name])]

    def shape(self, name: str, arrays: Sequence[NDArray]) -> tuple[int, ...]:
        """Return the shape of a whole parameter."""
        return (self.parts[name][0].height, *arrays[0].shape[1:])

    def split(self, params: Mapping[str, Any] | None) -> dict[str, Any]:
        """Return values by name, with the parts of this rank in place of a divided parameter; they are slices of its value."""
        values: dict[str, Any] = {}
        for name, value in (params or {}).items():
            if name not in self.parts or value is None:
                values.update({part.name: None for part in self.parts[name]} if name in self.parts else {name: value})
                continue
            height = self.parts[name][0].height
            if value.shape[:1] != (height,):
                raise MXNetError(f"{name}: the network has {height} rows, received a value of shape {value.shape}")
            values.update({part.name: value[part.begin:part.end] for part in self.parts[name]})
        return values

    def gathered(self, name: str, arrays: Sequence[NDArray]) -> NDArray:
        """Return an array for a whole parameter, on the CPU, out of those of this rank's parts; all ranks call it."""
        own, doing = torch.cat([array._raw().detach().cpu() for array in arrays]), f"values of {name}"
        height = self.parts[name][0].height
        self.members.agree(doing, about={"shape": (height, *own.shape[1:]), "dtype": name_of(own.dtype)})
        edges = self.members.edges(height)
        return NDArray._new(self.members.gather(own, [end - begin for begin, end in zip(edges, edges[1:])], doing), cpu())

    def take_initial_values(self, params: Mapping[str, NDArray]) -> None:
        """Replace whole values by those of rank 0, as a kvstore does with other parameters."""
        net = self.members._group
        for name in self.parts if net is not None else ():
            doing = f"initial values of {name}"
            tensor = params[name]._raw().contiguous()
            net.wait(net.begin_broadcast(tensor), doing)
            params[name][:] = NDArray._new(tensor, cpu())

    # -- updates -----------------------------------------------------------------------------------------------------------------

    def set_optimizer(self, optimizer: Any, kvstore: Any) -> None:
        """Make the updater of the parts.

        Raises
        ------
        MXNetError
            If there are several ranks, and the kvstore does not keep them in step, or if the optimizer would update parts other than the whole.
        """
        several = any(len(parts) > 1 for parts in self.parts.values())
        if optimizer._scales_by_norms and (several or self.members.count > 1) or several and isinstance(optimizer, opt.Nadam):
            why = "advances its schedule with each array" if isinstance(optimizer, opt.Nadam) else "needs the norms of whole weights"
            raise MXNetError(f"{', '.join(self.parts)}: divided by rows, and {type(optimizer).__name__} {why}; use an optimizer that updates each "
                             "element for itself, such as 'sgd' or 'adam'")
        if self.members.count > 1 and getattr(kvstore, "_group", None) is None or kvstore is not None and "async" in kvstore.type:
            raise MXNetError(f"{', '.join(self.parts)}: divided among {self.members.count} ranks, which need a kvstore in step, such as "
                             f"kvstore='dist_sync'; received {kvstore.type if kvstore is not None else None!r}")
        optimizer.idx2name.update({self._numbers[part.name]: name for name, parts in self.parts.items() for part in parts})
        self.updater = opt.get_updater(optimizer)

    def borrow(self, other: Any) -> None:
        """Use the updater of another module with the same divided parameters.

        Raises
        ------
        MXNetError
            If it has others.
        """
        if other is None or not self.parts.keys() <= other.parts.keys():
            raise MXNetError(f"the other module has the divided parameters {sorted(other.parts) if other is not None else 'none'}, this one "
                             f"{sorted(self.parts)}")
        self.updater, self._numbers = other.updater, other._numbers

    def others(self, *columns: Sequence[Any], names: Sequence[str]) -> list[list[Any]]:
        """Return the entries of lists that are of parameters which are not divided."""
        return [[entry for name, entry in zip(names, column) if name not in self.parts] for column in columns]

    def update(self, names: Sequence[str], arrays: Sequence[Sequence[NDArray]], gradients: Sequence[Sequence[NDArray | None]]) -> None:
        """Update the parts that have gradients, those of a context together."""
        mine: dict[int, list[tuple[int, Any, NDArray]]] = {}
        for name, own, grads in zip(names, arrays, gradients):
            for part, array, gradient in zip(self.parts.get(name, ()), own, grads):
                if gradient is not None:
                    mine.setdefault(part.context, []).append((self._numbers[part.name], gradient, array))
        for entries in mine.values():
            self.updater(*map(list, zip(*entries)))

    def replaced(self, name: str, arrays: Sequence[NDArray]) -> None:
        """Tell the updater that a parameter has other values."""
        for part, array in zip(self.parts[name], arrays):
            self.updater._weight_replaced(self._numbers[part.name], array)

    def number(self, part: Part) -> int:
        """Return the optimizer's number of a part."""
        return self._numbers[part.name]

    # -- states ------------------------------------------------------------------------------------------------------------------

    def add_states(self, fname: str, keys: Mapping[str, Any], arrays: Mapping[str, Sequence[NDArray]]) -> None:
        """Add the states of whole parameters to a file of optimizer states, under the keys of these; all ranks call it."""
        content = pickles.loads(files.read_bytes(fname), "the optimizer's states")
        states = content[0] if isinstance(content, tuple) else content
        for name, parts in self.parts.items():
            own = [self.updater.states[self._numbers[part.name]] for part in parts if self._numbers[part.name] in self.updater.states]
            if len(own) == len(parts):
                shapes = [array.shape for array in arrays[name]]

                def join(*pieces: NDArray, name: str = name, shapes: list = shapes) -> NDArray:
                    return self.gathered(name, pieces) if [array.shape for array in pieces] == shapes else pieces[0]
                states[keys[name]] = _each(join, *own)
        files.write_bytes(fname, pickles.dumps(content))

    def take_states(self, updater: Any, keys: Mapping[str, Any], arrays: Mapping[str, Sequence[NDArray]]) -> None:
        """Move loaded states of whole parameters out of an updater, and keep those of this rank's rows."""
        self.updater.optimizer = updater.optimizer
        self.updater.states = {}
        for name, parts in self.parts.items():
            state = updater.states.pop(keys[name], None)
            for part, array in zip(parts, arrays[name]) if state is not None else ():
                def take(state: NDArray, part: Part = part, ctx: Any = array.ctx) -> NDArray:
                    rows = state[part.begin:part.end] if state.shape[:1] == (part.height,) else state
                    return rows.copyto(ctx)
                self.updater.states[self._numbers[part.name]] = _each(take, state)
        self.updater.states_synced = dict.fromkeys(self.updater.states, True)


def _each(change: Callable[..., NDArray], state: Any, *others: Any) -> Any:
    """Return an optimizer's state with `change` applied to its arrays, and to those at the same places of other states."""
    if isinstance(state, NDArray):
        return change(state, *others)
    return type(state)(_each(change, *parts) for parts in zip(state, *others)) if isinstance(state, (list, tuple)) else state
