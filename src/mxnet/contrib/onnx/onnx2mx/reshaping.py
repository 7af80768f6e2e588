"""Reshaping to sizes that the file leaves open: the cases that `mx.sym.reshape` can express."""
from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from .reading import UnknownValue

if TYPE_CHECKING:
    from .values import Value


def reshape(g: Any, data: Value, targets: Any) -> Value:
    """`data` in another shape.

    Parameters
    ----------
    g : Translator
    data : Value
    targets : list of tuple of int
        The shape for each set of sizes; -1 is the size to infer.

    Returns
    -------
    Value

    Raises
    ------
    UnsupportedFeature
        If the sizes follow from open ones in a way that a reshape cannot express.
    """
    columns = list(zip(*targets)) if targets[0] else []
    if not columns:
        return g.op("Reshape", data, shape=(1,), is_scalar=True)
    fixed = [column[0] if len(set(column)) == 1 else None for column in columns]
    if None not in fixed:
        return g.op("Reshape", data, shape=tuple(fixed))
    shapes = g.shapes(data)
    before = list(zip(*shapes)) if shapes[0] else []
    columns = [tuple(math.prod(shape) // max(math.prod(n for n in target if n != -1), 1) for shape, target in zip(shapes, targets))
               if column == (-1,) * len(column) else column for column in columns]
    # A size at the place that it had, and one more that follows from all others.
    placed = [0 if i < len(before) and before[i] == column else size if size is not None and size > 0 else -1
              for i, (column, size) in enumerate(zip(columns, (c[0] if len(set(c)) == 1 else None for c in columns)))]
    if placed.count(-1) <= 1:
        return g.op("Reshape", data, shape=tuple(placed))
    ones = (1,) * len(shapes)
    steps = _groups([c for c in before if c != ones], [c for c in columns if c != ones])
    if steps is None:
        raise UnknownValue(f"a reshape from {shapes[0]} to {targets[0]}, of which the file leaves open what differs from {shapes[1]} to "
                                 f"{targets[1]}, cannot be expressed")
    narrow = tuple(i for i, c in enumerate(before) if c == ones)
    if narrow:
        data = g.op("squeeze", data, axis=narrow)
    data = g.op("Reshape", data, shape=tuple(steps))
    for axis, column in enumerate(columns):
        if column == ones:
            data = g.op("expand_dims", data, axis=axis)
    return data


def _groups(before, after):
    """Return codes of `mx.sym.reshape` that turn one list of sizes into another, or None. Sizes are tuples, one for each trial."""
    codes, i, j = [], 0, 0
    while i < len(before) or j < len(after):
        if i < len(before) and j < len(after) and before[i] == after[j]:
            codes.append(0)
            i, j = i + 1, j + 1
            continue
        ends = [(p, q) for p in range(i + 1, min(len(before), i + 4) + 1) for q in range(j + 1, min(len(after), j + 4) + 1)
                if _product(before[i:p]) == _product(after[j:q])]
        if not ends:
            return None
        p, q = min(ends, key=sum)
        sizes = [c[0] if len(set(c)) == 1 else -1 for c in after[j:q]]
        if (p - i, q - j) == (2, 1):
            codes.append(-3)
        elif (p - i, q - j) == (1, 2) and sizes.count(-1) <= 1:
            codes += [-4, *sizes]
        else:
            return None
        i, j = p, q
    return codes


def _product(columns):
    return tuple(math.prod(numbers) for numbers in zip(*columns))


def broadcast(g: Any, data: Value, targets: Any) -> Value:
    """`data` repeated to a shape that ONNX's rules make of its own and the target; arguments and errors as for `reshape`."""
    rank = max(len(targets[0]), g.rank(data))
    shapes = g.shapes(data)
    if any(len(target) != len(targets[0]) for target in targets):
        raise UnknownValue("the number of axes follows from sizes that the file leaves open")
    if len(shapes[0]) < rank or data.scalar:
        data = reshape(g, data, [(1,) * (rank - len(shape)) + tuple(shape) for shape in shapes])
    own = list(zip(*((1,) * (rank - len(shape)) + tuple(shape) for shape in shapes)))
    wanted = list(zip(*((1,) * (rank - len(target)) + tuple(target) for target in targets)))
    ones = (1,) * len(shapes)
    fixed = [(axis, w[0]) for axis, (o, w) in enumerate(zip(own, wanted)) if o == ones and w != ones and len(set(w)) == 1]
    if fixed:
        data = g.op("broadcast_axis", data, axis=tuple(axis for axis, _ in fixed), size=tuple(size for _, size in fixed))
    for axis, (o, w) in enumerate(zip(own, wanted)):
        if o == ones and len(set(w)) > 1:
            like, place = source(g, w)
            data = g.op("broadcast_like", data, like, lhs_axes=(axis,), rhs_axes=(place,))
    return data


def source(g: Any, numbers: Any) -> Any:
    """Return the value and the axis that have an open size when the network runs.

    Raises
    ------
    UnsupportedFeature
        If there is none: the size is computed of others.
    """
    if numbers not in g.sources:
        raise UnknownValue(f"a size that is computed of those that the file leaves open ({numbers[0]} and {numbers[1]} for two sets of numbers "
                                 "in their place) cannot be imported")
    return g.sources[numbers]
