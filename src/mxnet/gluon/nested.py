"""Nested arguments and results of blocks: flat lists, and the formats from which the nesting is restored."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..ndarray import NDArray
from ..symbol import Symbol

if TYPE_CHECKING:
    from ..context import Context


def flatten(args: Any, inout_str: str) -> Any:
    """Flatten a nested list; return the flat list and its format, from which `regroup` restores the nesting.

    The format is 0 for an array or Symbol, n for a Symbol of n outputs, -1 for None, a list of these for a list.

    Raises
    ------
    ValueError
        If there is anything else among `args`; `inout_str` ("input" or "output") names them in the error message.
    """
    if isinstance(args, NDArray):
        return [args], 0
    if isinstance(args, Symbol):
        count = len(args.list_outputs())
        return [args], count if count > 1 else 0
    if args is None:
        return [None], -1
    if not isinstance(args, (list, tuple)):
        raise ValueError(f"A hybridized block takes and returns arrays, Symbols and (nested) lists of them; received as {inout_str}: {args}, "
                         f"{type(args)}")
    flat, formats = [], []
    for arg in args:
        items, item_format = flatten(arg, inout_str)
        flat += items
        formats.append(item_format)
    return flat, formats


def regroup(args: Any, fmt: Any) -> Any:
    """Restore the nested list that `flatten` turned into the flat list `args` and the format `fmt`.

    Raises
    ------
    ValueError
        If a value is not None where the format requires None.
    """
    if fmt == 0:  # the usual case
        return args[0]
    return _take(args, 0, fmt)[0]


def _take(args: Any, position: int, fmt: Any):
    """Return the part of `args` that starts at `position` and has the format `fmt`, and the position after it."""
    if not isinstance(fmt, int):
        group = []
        for item in fmt:
            value, position = _take(args, position, item)
            group.append(value)
        return group, position
    if fmt == 0:
        return args[position], position + 1
    if fmt == -1:
        if args[position] is not None:
            raise ValueError(f"An argument that was None when the block was traced must stay None, received {args[position]}; call hybridize() "
                             "again to trace the block with the new arguments")
        return None, position + 1
    if fmt < -1:
        raise ValueError(f"Unsupported encoded format {fmt}.")
    return args[position:position + fmt], position + fmt


def has_arrays_only(form: Any) -> bool:
    """Return True if a structure in the format of `flatten` consists of arrays only."""
    return all(map(has_arrays_only, form)) if isinstance(form, list) else form == 0


def kinds_and_contexts(args: Any) -> tuple[bool, bool, set[Context], Context | None]:
    """Collect the kinds and contexts of the arrays and Symbols in a nested list of arguments.

    Returns
    -------
    has_symbol, has_ndarray : bool
    contexts : set of Context
    first : Context or None
        That of the first array.
    """
    if isinstance(args, NDArray):
        return False, True, {args._ctx}, args._ctx
    if isinstance(args, Symbol):
        return True, False, set(), None
    has_symbol, has_ndarray, contexts, first = False, False, set(), None
    if isinstance(args, (list, tuple)):
        for arg in args:
            symbol_in, ndarray_in, contexts_in, first_in = kinds_and_contexts(arg)
            has_symbol, has_ndarray = has_symbol or symbol_in, has_ndarray or ndarray_in
            contexts |= contexts_in
            first = first or first_in
    return has_symbol, has_ndarray, contexts, first
