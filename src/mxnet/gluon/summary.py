"""The table that `Block.summary` prints."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

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


def _shapes(arrays: Any):
    """Return the shapes in a nested list of arrays, as text; without the outermost brackets of a list."""
    def shape(item):
        if isinstance(item, (list, tuple)):
            return [shape(i) for i in item]
        return item.shape if isinstance(item, NDArray) else item

    shapes = shape(arrays)
    return str(shapes)[1:-1] if isinstance(shapes, list) else str(shapes)
