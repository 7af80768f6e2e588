"""Branches and loops, unrolled: their conditions and counts must be known."""
import math

import numpy as np

from .....base import MXNetError
from ..reading import UnsupportedFeature, element_type
from ..registry import translates


@translates("If")
def if_(g, condition, *, then_branch, else_branch):
    """One of two graphs, chosen by a known condition."""
    return g.branch(then_branch if condition.number("cond") else else_branch)


@translates("Loop")
def loop(g, count=None, condition=None, *values, body):
    """A loop, unrolled: a graph applied to its own results while its condition holds, at most `count` times."""
    limit = math.inf if count is None else int(count.number("M"))
    goes_on = condition is None or bool(condition.number("cond"))
    states, rows = list(values), []
    scanned = len(body.output) - 1 - len(states)
    if scanned < 0:
        raise MXNetError(f"the graph of the loop gives {len(body.output)} values for a condition and {len(states)} values that go around")
    while goes_on and len(rows) < limit:
        g.iterate()
        keep, *results = g.branch(body, [g.array(np.array(len(rows), "int64")), g.array(np.array(True)), *states])
        states, row = results[:len(states)], results[len(states):]
        rows.append(row)
        goes_on = bool(keep.number("cond"))
    if scanned and not rows:
        return [*states, *(_no_rows(g, info) for info in body.output[-scanned:])]
    return [*states, *(_stacked(g, [row[i] for row in rows], 0) for i in range(scanned))]


def _no_rows(g, info):
    """Return the stacked outputs of a loop without iterations: an array of zero rows."""
    kind = info.type.tensor_type
    sizes = [dim.dim_value for dim in kind.shape.dim]
    return g.array(np.zeros((0, *sizes), element_type(kind.elem_type, f"the output '{info.name}'")))


def _stacked(g, values, axis):
    for value in values:
        g.entry(value)
    if any(value.scalar for value in values):
        return g.op("Concat", *values, dim=0)
    return g.op("stack", *values, axis=g.axis(values[0], axis, 1))


@translates("Scan")
def scan(g, *data, body, num_scan_inputs, scan_input_axes=None, scan_input_directions=None, scan_output_axes=None, scan_output_directions=None,
         directions=None):
    """A scan, unrolled: a graph applied to each part of some arrays along an axis, and to its own previous results."""
    if g.opset < 9:
        raise UnsupportedFeature("Scan of opset 8, with lengths of sequences")
    states, arrays = list(data[:len(data) - num_scan_inputs]), data[len(data) - num_scan_inputs:]
    if not arrays or len(states) + num_scan_inputs != len(data):
        raise MXNetError(f"{num_scan_inputs} arrays to go through, of {len(data)} inputs")
    along = [g.axis(value, axis) for value, axis in zip(arrays, scan_input_axes or (0,) * len(arrays))]
    lengths = {g.size(value, axis, "Scan") for value, axis in zip(arrays, along)}
    if len(lengths) != 1:
        raise MXNetError(f"the arrays to go through have {sorted(lengths)} parts; expected equally many")
    (length,) = lengths
    backward = scan_input_directions or (0,) * len(arrays)
    rows = []
    for step in range(length):
        g.iterate()
        parts = [_element(g, value, axis, length - 1 - step if turned else step) for value, axis, turned in zip(arrays, along, backward)]
        results = g.branch(body, [*states, *parts])
        states, row = results[:len(states)], results[len(states):]
        rows.append(row)
    count = len(body.output) - len(states)
    axes, turned = scan_output_axes or (0,) * count, scan_output_directions or (0,) * count
    columns = [[row[i] for row in (rows[::-1] if turned[i] else rows)] for i in range(count)]
    return [*states, *(_stacked(g, column, axis) for column, axis in zip(columns, axes))]


def _element(g, value, axis, place):
    part = g.op("slice_axis", value, axis=axis, begin=place, end=place + 1, is_boolean=value.boolean)
    if g.rank(value) == 1:
        return g.op("Reshape", part, shape=(1,), is_scalar=True, is_boolean=value.boolean)
    return g.op("squeeze", part, axis=axis, is_boolean=value.boolean)
