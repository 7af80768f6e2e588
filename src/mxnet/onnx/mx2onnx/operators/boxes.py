"""Operators on boxes: non-maximum suppression and decoding of predictions."""
from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..builder import INT64, Unsupported
from ..registry import exports

if TYPE_CHECKING:
    from ..builder import Builder, Value

_FLOAT = np.dtype(np.float32)


def _columns(on, x, *widths):
    """Split the last axis into pieces."""
    return on.split(x, widths, x.ndim - 1)


def _corners(on, middle, size):
    half = on.Mul(size, 0.5)
    return [on.Sub(middle, half), on.Add(middle, half)]


@exports("_contrib_box_decode")
def box_decode(on: Builder, x: Value, anchors: Value, *, std0: float, std1: float, std2: float, std3: float, clip: float, format: str) -> Value:
    first, second = _columns(on, anchors, 2, 2)
    if format == "corner":
        second = on.Sub(second, first)
        first = on.Add(first, on.Mul(second, 0.5))
    shift, growth = _columns(on, x, 2, 2)
    growth = on.Mul(growth, np.array([std2, std3], x.dtype))
    if clip > 0:
        growth = on.Min(growth, float(clip))
    middle = on.Add(on.Mul(on.Mul(shift, np.array([std0, std1], x.dtype)), second), first)
    return on.concat(_corners(on, middle, on.Mul(on.Exp(growth), second)), 2)


@exports("_contrib_box_nms")
def box_nms(on: Builder, x: Value, *, overlap_thresh: float, valid_thresh: float, topk: int, coord_start: int, score_index: int, id_index: int,
            background_id: int, force_suppress: bool, in_format: str, out_format: str) -> Value:
    """Sort boxes by score, mark those that NonMaxSuppression keeps, and move these to the front."""
    if x.shape is None or x.shape[-2] is None or x.shape[-1] is None:
        raise Unsupported("the number of boxes must not vary")
    count, width = x.shape[-2:]
    rows = on.cast(on.Reshape(x, [-1, count, width]), _FLOAT)  # always a node, by which an import finds the first of these
    scores = _column(on, rows, score_index)
    valid = on.Greater(scores, float(valid_thresh))
    if id_index >= 0:
        valid = on.And(valid, on.Not(on.Equal(_column(on, rows, id_index), float(background_id))))
    most_boxes = count if topk <= 0 else min(topk, count)
    lowest = float(np.finfo(np.float32).min)
    scores, order = on.TopK(on.Where(valid, scores, on.const(lowest, _FLOAT)), [most_boxes], axis=1, outputs=2)
    order.dtype = INT64
    rows = _rows(on, rows, order, width)
    boxes = on.Slice(rows, [coord_start], [coord_start + 4], [2])
    if id_index >= 0 and not force_suppress:
        boxes = _apart(on, boxes, _column(on, rows, id_index), in_format)
    # Invalid boxes have the lowest score.
    chosen = on.NonMaxSuppression(boxes, on.unsqueeze(scores, 1), on.const([most_boxes], INT64), on.const([overlap_thresh], _FLOAT),
                                  on.const([lowest], _FLOAT), center_point_box=int(in_format == "center"))
    places = on.concat([on.slice(chosen, 0, 1, 1), on.slice(chosen, 2, 3, 1)], 1)
    nothing = on.ConstantOfShape(on.Shape(scores), value=np.zeros(1, np.float32), dtype=_FLOAT)
    marks = on.ScatterND(nothing, places, on.Expand(on.const([1], _FLOAT), on.Slice(on.Shape(places), [0], [1])))
    # Marked ones first, both kinds in their present order.
    rank = on.Add(on.Mul(marks, float(count)), np.arange(most_boxes, 0, -1, dtype=np.float32))
    _, order = on.TopK(rank, [most_boxes], axis=1, outputs=2)
    order.dtype = INT64
    marks = on.GatherElements(marks, order, axis=1)
    rows = _converted(on, _rows(on, rows, order, width), coord_start, width, in_format, out_format)
    out = on.Where(on.unsqueeze(on.Greater(marks, 0.0), 2), rows, on.const(-1, _FLOAT))
    if most_boxes < count:
        out = on.Pad(out, [0, 0, 0, 0, count - most_boxes, 0], on.const(-1, _FLOAT), mode="constant")
    return on.Reshape(out, on.sizes(on.dims(x)), out_shape=x.shape)


def _column(on, rows, index):
    return on.squeeze(on.slice(rows, index, index + 1, 2), 2)


def _rows(on, rows, order, width):
    """Reorder the rows (batch, n, width) by positions (batch, m)."""
    return on.GatherElements(rows, on.Tile(on.unsqueeze(order, 2), [1, 1, width]), axis=1)


def _apart(on, boxes, classes, format):
    """Shift boxes by class, so far that those of different classes cannot overlap."""
    span = on.Add(on.Sub(on.ReduceMax(boxes, keepdims=0), on.ReduceMin(boxes, keepdims=0)), 1.0)
    if format == "center":
        span = on.Mul(span, 3.0)
    offset = on.unsqueeze(on.Mul(classes, span), 2)
    if format == "corner":
        return on.Add(boxes, offset)
    middle, size = _columns_of(on, boxes)
    return on.concat([on.Add(middle, offset), size], 2)


def _columns_of(on, boxes):
    return on.split(boxes, [2, 2], 2)


def _converted(on, rows, start, width, in_format, out_format):
    """Convert the boxes of rows to the other format where they begin within the image, as in MXNet."""
    if in_format == out_format:
        return rows
    old = on.Slice(rows, [start], [start + 4], [2])
    first, second = _columns_of(on, old)
    if out_format == "corner":
        new = on.concat(_corners(on, first, second), 2)
    else:
        new = on.concat([on.Mul(on.Add(first, second), 0.5), on.Sub(second, first)], 2)
    new = on.Where(on.Less(on.slice(old, 0, 1, 2), 0.0), old, new)
    pieces = [on.slice(rows, 0, start, 2)] if start else []
    return on.concat([*pieces, new, *([on.slice(rows, start + 4, width, 2)] if start + 4 < width else [])], 2)
