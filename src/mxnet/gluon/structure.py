"""The JSON file of `Block.save`: names, children and traced graphs of a tree of blocks."""
from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from .. import files
from ..base import MXNetError
from ..symbol import load_json

if TYPE_CHECKING:
    from .block import Block


def _walk(block: Block, visit: Any, counter: Any = None):
    """Call ``visit(block, key)`` for a tree, parents first; returns nested results. Keys are those of MXNet: class and number."""
    counter = counter if counter is not None else [0]
    key = f"{type(block).__name__.lower()}{counter[0]}"
    entry = {}
    for child in block._children.values():
        counter[0] += 1
        child_key, child_entry = _walk(child, visit, counter)
        entry[child_key] = child_entry
    return key, {**visit(block), **entry}


def save_structure(block: Block, path: str) -> None:
    """Write the structure of `block` to a JSON file."""
    def describe(b: Any) -> Any:
        entry = {"orig_name": b.name}
        if hasattr(b, "_cached_graph"):
            entry["hybridized"] = bool(b._cached_graph)
            if b._cached_graph:
                inputs, output = b._cached_graph
                entry.update(in_format=b._in_format, out_format=b._out_format, inputs=[i.tojson() for i in inputs], symbol=output.tojson())
        entry["children"] = {child.name: key for key, child in b._children.items()}
        return entry

    files.write_bytes(path, json.dumps(dict([_walk(block, describe)])).encode())


def load_structure(block: Block, path: str) -> None:
    """Give `block` the names and graphs that `save_structure` wrote.

    Raises
    ------
    MXNetError
        If the file is damaged or describes another structure.
    """
    try:
        saved = json.loads(files.read_text(path))
        _restore(block, [0], saved, {})
    except (ValueError, RecursionError) as error:
        raise MXNetError(f"{path} is not the JSON file of a Block: {error}") from None
    except (KeyError, TypeError, AttributeError, IndexError) as error:
        raise MXNetError(f"{path} tells of another structure than that of {type(block).__name__} {block.name}: {error!r}") from None


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"a name is a text, not {value!r:.80}")
    return value


def _format(value: Any) -> Any:
    """Check and return a nesting format of `gluon.block`: numbers, and lists of these."""
    if isinstance(value, list):
        return [_format(item) for item in value]
    if type(value) is not int or not -1 <= value <= 1 << 16:
        raise TypeError(f"the structure of arguments is made of numbers, not {value!r:.80}")
    return value


def _count(fmt: Any) -> int:
    """Return the number of arrays in arguments of this structure."""
    return sum(map(_count, fmt)) if isinstance(fmt, list) else 1 if fmt == 0 else max(0, fmt)


def _misses(fmt: Any) -> bool:
    """Return True if this structure contains None, which is no output of a graph."""
    return any(map(_misses, fmt)) if isinstance(fmt, list) else fmt < 0


def _restore(block: Any, counter: Any, entries: Any, renamed: Any) -> None:
    entry = entries[f"{type(block).__name__.lower()}{counter[0]}"]
    block._name = _text(entry["orig_name"])
    if entry.get("hybridized"):
        block._clear_cached_op()
        block._in_format, block._out_format = _format(entry["in_format"]), _format(entry["out_format"])
        block._cached_graph = [load_json(_text(i)) for i in entry["inputs"]], load_json(_text(entry["symbol"]))
        if not isinstance(block._in_format, list) or len(block._cached_graph[0]) != _count(block._in_format):
            raise TypeError(f"{len(block._cached_graph[0])} inputs for arguments of structure {block._in_format}")
        count = len(block._cached_graph[1].list_outputs())
        if count != _count(block._out_format) or _misses(block._out_format):
            raise TypeError(f"{count} results for a structure of {block._out_format}")
        block._active = True
    own, prefix = block.params, block.params._prefix
    # A parameter that blocks share keeps the name it gets from the first.
    own._params = {renamed.setdefault(id(parameter), f"{block.name}_{name[len(prefix):]}"): parameter
                   for name, parameter in own._params.items()}
    for child in block._children.values():
        counter[0] += 1
        _restore(child, counter, entry, renamed)
    keys = entry["children"]
    children = [(_text(keys[child.name]), child) for child in block._children.values()]
    block._children.clear()
    block._children.update(children)
