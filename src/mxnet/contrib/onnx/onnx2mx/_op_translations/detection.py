"""Operators on boxes and sets, whose results' sizes depend on values."""
import numpy as np

from .....base import MXNetError
from .. import box_nms
from ..registry import translates
from ..reshaping import reshape
from .elemwise import cast_to

_MANY = 1 << 14  # boxes that are compared with one another


@translates("NonMaxSuppression")
def non_max_suppression(g, boxes, scores, max_output_boxes_per_class=None, iou_threshold=None, score_threshold=None, *, center_point_box=0):
    """The boxes of each class that overlap with none of a higher score, as (batch, class, box)."""
    places, points = boxes.constant("boxes").astype("float64"), scores.constant("scores")
    if places.ndim != 3 or places.shape[2] != 4 or points.ndim != 3 or (places.shape[0], places.shape[1]) != (points.shape[0], points.shape[2]):
        raise MXNetError(f"boxes of shape {places.shape} and scores of shape {points.shape}: expected (batch, boxes, 4) and (batch, classes, boxes)")
    if places.shape[1] > _MANY:
        raise MXNetError(f"{places.shape[1]} boxes; at most {_MANY} are compared")
    most = 0 if max_output_boxes_per_class is None else int(max_output_boxes_per_class.number("max_output_boxes_per_class"))
    limit = 0.0 if iou_threshold is None else iou_threshold.number("iou_threshold")
    least = -np.inf if score_threshold is None else score_threshold.number("score_threshold")
    selected = [(batch, group, box) for batch in range(len(points)) for group in range(points.shape[1])
                for box in _selected(_corners(places[batch], center_point_box), points[batch, group], most, limit, least)]
    return g.array(np.array(selected, "int64").reshape(-1, 3))


def _corners(boxes, center_point_box):
    """The lower and the upper corners of boxes."""
    if center_point_box:
        return boxes[:, :2] - boxes[:, 2:] / 2, boxes[:, :2] + boxes[:, 2:] / 2
    return np.minimum(boxes[:, :2], boxes[:, 2:]), np.maximum(boxes[:, :2], boxes[:, 2:])


def _selected(corners, scores, most, limit, least):
    low, high = corners
    area = (high - low).prod(1)
    order = np.argsort(-scores, kind="stable")
    order = order[scores[order] > least]
    chosen = []
    while order.size and len(chosen) < most:
        best, order = order[0], order[1:]
        chosen.append(int(best))
        shared = np.maximum(np.minimum(high[best], high[order]) - np.maximum(low[best], low[order]), 0).prod(1)
        total = area[best] + area[order] - shared
        order = order[np.divide(shared, total, out=np.zeros_like(shared), where=total > 0) <= limit]
    return chosen


@translates(f"{box_nms.DOMAIN}.{box_nms.OPERATOR}")
def fused_box_nms(g, data, *, shape, overlap_thresh, valid_thresh, topk, coord_start, score_index, id_index, background_id, force_suppress,
                  in_format, out_format):
    """The operator `box_nms`, whose nodes `box_nms.replaced` found; the file may reshape the result."""
    result = g.op("_contrib_box_nms", data, overlap_thresh=overlap_thresh, valid_thresh=valid_thresh, topk=topk, coord_start=coord_start,
                  score_index=score_index, id_index=id_index, background_id=background_id, force_suppress=bool(force_suppress),
                  in_format=in_format, out_format=out_format)
    sizes = g.known_shapes(data)
    return result if -1 in shape or sizes is not None and set(sizes) == {tuple(shape)} else reshape(g, result, [tuple(shape)] * len(sizes or [0]))


@translates("Unique")
def unique(g, data, *, axis=None, sorted=1):
    """The distinct elements, or parts along an axis; their first positions, the number of each element among them, and their counts."""
    g.entry(data)
    axis = None if axis is None else g.axis(data, axis)
    if axis is None:
        data = reshape(g, data, [(-1,)] * len(g.known_shapes(data) or [0]))
    values, first, inverse, counts = g.op("_npi_unique", data, return_index=True, return_inverse=True, return_counts=True, axis=axis)
    inverse = g.op("Reshape", inverse, shape=(-1,))
    if not sorted:
        order = g.op("argsort", first, dtype="int64")
        values = g.op("take", values, order, axis=axis or 0)
        first, counts = (g.op("take", value, order) for value in (first, counts))
        inverse = g.op("take", g.op("argsort", order, dtype="int64"), inverse)
    return [values, *(cast_to(g, value, "int64") for value in (first, inverse, counts))]
