"""The table that `Block.summary` prints."""
from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from .. import display
from ..ndarray import NDArray
from .utils import UsageError

if TYPE_CHECKING:
    from .block import Block

_LINE = "{:>20}  {:>42} {:>15}"


def print_summary(block: Block, inputs: Any) -> None:
    """Pass `inputs` through `block` and print one row for each layer that ran."""
    rows, seen, hooks = [("Input", _shapes(inputs), 0, 0, 0)], set(), []

    def record(layer: Any, _, outputs: Any) -> None:
        total = trainable = shared = 0
        for parameter in layer.params.values():
            size = parameter.data().size
            total += size
            trainable += size if parameter.grad_req != "null" else 0
            if id(parameter) in seen:
                shared += size
            seen.add(id(parameter))
        rows.append((f"{type(layer).__name__}-{len(rows)}", _shapes(outputs), total, trainable, shared))

    def watch(layer: Any) -> None:
        if getattr(layer, "_active", False):
            raise UsageError(f"summary: {layer.name} is hybridized, so that its layers don't run one by one; call hybridize(False) before")
        if layer._has_row:
            hooks.append(layer.register_forward_hook(record))

    try:
        block.apply(watch)
        block(*inputs)
    finally:
        for hook in hooks:
            hook.detach()
    total, trainable, shared = (sum(int(row[i]) for row in rows) for i in (2, 3, 4))
    if display.in_notebook():
        display.show(display.table(f"{type(block).__name__} {block.name}", ("layer", "output shape", "parameters"), [row[:3] for row in rows],
                                   f"{total - shared:,} parameters, {total - trainable:,} of them are not trained; {shared:,} are used again"))
        return
    print("-" * 80)
    print(_LINE.format("Layer (type)", "Output Shape", "Param #"))
    print("=" * 80)
    for row in rows:
        print(_LINE.format(*row[:3]))
    print("=" * 80)
    print("Parameters of all layers that ran, shared ones counted each time")
    print(f"   Total params: {total}")
    print(f"   Trainable params: {trainable}")
    print(f"   Non-trainable params: {total - trainable}")
    print(f"Shared params in forward computation graph: {shared}")
    print(f"Unique parameters in model: {total - shared}")
    print("-" * 80)


def html_of(block: Block) -> str:
    """Return a table of the blocks inside a network, indented by their depth, with their own parameters; sizes that are not known yet are 0."""
    rows: list[tuple[str, str, str]] = []
    seen: set[int] = set()

    def add(name: str, inner: Block, depth: int) -> None:
        own = list(inner._reg_params.values())
        shapes = ", ".join(f"{p.name.removeprefix(inner.prefix)} {'x'.join(map(str, p.shape or ()))}" for p in own)
        text = repr(inner).strip()
        rows.append(("\u2003" * depth + (f"({name}) " if name else "") + (text if "\n" not in text else type(inner).__name__), shapes,
                     f"{sum(_size(p) for p in own if id(p) not in seen):,}" if own else ""))
        seen.update(map(id, own))
        for child_name, child in inner._children.items():
            add(child_name, child, depth + 1)

    add("", block, 0)
    everything = list({id(p): p for p in block.collect_params().values()}.values())
    total, open_ = sum(map(_size, everything)), sum(not _size(p) for p in everything)
    note = f"{total:,} parameters" + (f"; the first batch determines {open_} more array{'s' * (open_ > 1)}" if open_ else "")
    return display.table(f"{type(block).__name__} {block.name}", ("block", "parameters", "count"), rows, note)


def _size(parameter: Any) -> int:
    return math.prod(parameter.shape) if parameter.shape and all(size > 0 for size in parameter.shape) else 0


def _shapes(arrays: Any):
    """Return the shapes in a nested list of arrays, as text; without the outermost brackets of a list."""
    def shape(item):
        if isinstance(item, (list, tuple)):
            return [shape(i) for i in item]
        return item.shape if isinstance(item, NDArray) else item

    shapes = shape(arrays)
    return str(shapes)[1:-1] if isinstance(shapes, list) else str(shapes)
