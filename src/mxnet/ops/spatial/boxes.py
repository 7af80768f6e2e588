"""Operators on bounding boxes: overlaps, non-maximum suppression, matching, encoding and decoding.

A box is [x1, y1, x2, y2] in the format ``'corner'``, [x, y, width, height] around its centre in the format ``'center'``.
"""
from typing import Literal

import numpy as np
import torch

from ...base import MXNetError
from ...kernels.nn import nms as kernels
from ..bounds import within
from ..host_arrays import constant
from ..registry import op
from ..shapes import unify
from .boxes_on_gpu import match_pairs, surviving_boxes
from .on_gpu import on_gpu

_Format = Literal["center", "corner"]


def to_corners(boxes: torch.Tensor) -> torch.Tensor:
    """Boxes of the format 'center' in the format 'corner'; the last axis holds the four numbers."""
    middle, half = boxes[..., :2], boxes[..., 2:4] / 2
    return torch.cat([middle - half, middle + half], -1)


def _to_centers(boxes):
    return torch.cat([(boxes[..., :2] + boxes[..., 2:4]) / 2, boxes[..., 2:4] - boxes[..., :2]], -1)


def _area(boxes):
    """Areas of boxes in the format 'corner', 0 for those with a negative side."""
    size = boxes[..., 2:] - boxes[..., :2]
    return size.clamp_min(0).prod(-1)


def overlaps(lhs: torch.Tensor, rhs: torch.Tensor) -> torch.Tensor:
    """Intersection over union of each of the boxes `lhs` (..., 4) with each of `rhs` (..., 4), both in the format 'corner'."""
    shape = lhs.shape[:-1] + rhs.shape[:-1]
    result = kernels.overlaps(lhs.reshape(-1, 4), rhs.reshape(-1, 4))
    if result is not None:
        return result.reshape(shape)
    lhs, rhs = lhs.reshape(-1, 1, 4), rhs.reshape(1, -1, 4)
    size = (torch.minimum(lhs[..., 2:], rhs[..., 2:]) - torch.maximum(lhs[..., :2], rhs[..., :2])).clamp_min(0)
    shared = size.prod(-1)
    union = _area(lhs) + _area(rhs) - shared
    return torch.where(shared > 0, shared / union, 0).to(lhs.dtype).reshape(shape)


def greedy_suppression(boxes: torch.Tensor, threshold: float, classes: torch.Tensor | None = None, border: float = 0,
                       limit: int | None = None, inclusive: bool = False) -> torch.Tensor:
    """Which boxes stay when each one, best first, removes the later ones that overlap it too much.

    Parameters
    ----------
    boxes : (n, 4) numpy array
        Corners, sorted by falling score.
    classes : (n,) numpy array, optional
        Boxes of different classes leave each other alone.
    border : int
        1 where coordinates name pixels, so that a box from 3 to 3 is one wide.
    limit : int, optional
        Stop when that many boxes stay.
    inclusive : bool
        An overlap equal to the threshold is too much, too.
    """
    result = kernels.suppress(boxes, threshold, classes, border, limit, inclusive)
    if result is not None:
        return result
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        return _greedy_suppression(boxes, threshold, classes, border, limit, inclusive)


def _greedy_suppression(boxes, threshold, classes, border, limit, inclusive):
    left, top, right, bottom = np.ascontiguousarray(boxes.T)
    areas = np.maximum(right - left + border, 0) * np.maximum(bottom - top + border, 0)
    alive, stays = np.ones(len(boxes), bool), 0
    for i in range(len(boxes)):
        if not alive[i]:
            continue
        if limit is not None and stays == limit:
            alive[i:] = False
            break
        stays += 1
        rest = slice(i + 1, None)
        width = np.maximum(np.minimum(right[i], right[rest]) - np.maximum(left[i], left[rest]) + border, 0)
        height = np.maximum(np.minimum(bottom[i], bottom[rest]) - np.maximum(top[i], top[rest]) + border, 0)
        shared = width * height
        overlap = shared / (areas[i] + areas[rest] - shared)
        gone = overlap >= threshold if inclusive else overlap > threshold
        alive[rest] &= ~gone if classes is None else ~(gone & (classes[rest] == classes[i]))
    return alive


def _check_nms(shape, coord_start, score_index, id_index):
    width = shape[-1]
    if len(shape) < 2 or width < (6 if id_index >= 0 else 5):
        raise MXNetError(f"box_nms: the last axis must hold a score, 4 coordinates{' and an id' if id_index >= 0 else ''}, "
                         f"received shape {tuple(shape)}")
    coordinates = range(coord_start, coord_start + 4)
    if coord_start < 0 or coordinates[-1] >= width:
        raise MXNetError(f"box_nms: coordinates at {coord_start} to {coordinates[-1]} out of range for {width} numbers a box")
    for name, index in (("score_index", score_index), ("id_index", id_index)):
        if name == "score_index" or index >= 0:
            if not 0 <= index < width or index in coordinates:
                raise MXNetError(f"box_nms: {name}={index} is out of range or conflicts with the coordinates")
    if id_index == score_index:
        raise MXNetError(f"box_nms: id_index={id_index} must not be score_index={score_index}")


@op("_contrib_box_nms", aliases=("_contrib_box_non_maximum_suppression", "_npx_box_nms"), output_names=("output0",), same_shape=True,
    complete_rule=False, amp="widest")
def box_nms(data, *, overlap_thresh: float = 0.5, valid_thresh: float = 0.0, topk: int = -1, coord_start: int = 2, score_index: int = 1,
            id_index: int = -1, background_id: int = -1, force_suppress: bool = False, in_format: _Format = "corner",
            out_format: _Format = "corner"):
    """Non-maximum suppression: of boxes that overlap too much, only the one with the highest score stays.

    Parameters
    ----------
    data : (..., n, width)
        A score, 4 coordinates and perhaps an id for each box, at the positions `*_index` and `coord_start`.
    overlap_thresh, valid_thresh : float
        The overlap above which the lower score goes; the score from which a box counts at all.
    topk : int
        Consider only that many best boxes, all if negative.
    coord_start, score_index, id_index : int
        Where a row's four coordinates begin, and where its score and its id (-1 for none) stand.
    background_id : int
        Boxes of this id never stay.
    force_suppress : bool
        Let boxes of different ids suppress each other.
    in_format, out_format : {'corner', 'center'}
        The formats of the input boxes and of the returned ones.

    Returns
    -------
    The boxes that stay, best first, then rows of -1.

    Raises
    ------
    MXNetError
        If a row is too short for the attributes' positions.

    Example
    -------
    >>> x = mx.nd.array([[0.6, 0, 0, 4, 5], [0.9, 0, 0, 4, 4], [0.3, 8, 8, 9, 9]])      # the first two nearly agree
    >>> mx.nd.contrib.box_nms(x, overlap_thresh=0.5, coord_start=1, score_index=0).asnumpy()
    array([[ 0.9,  0. ,  0. ,  4. ,  4. ],
           [ 0.3,  8. ,  8. ,  9. ,  9. ],
           [-1. , -1. , -1. , -1. , -1. ]], dtype=float32)
    """
    _check_nms(data.shape, coord_start, score_index, id_index)
    count, width = data.shape[-2:]
    if topk == 0:
        return data.clone()
    source = data.reshape(-1, count, width)
    batches = source.detach() if on_gpu(data) else source.detach().cpu()
    batches = batches.float() if batches.dtype == torch.float16 else batches
    corners = batches[..., coord_start:coord_start + 4]
    corners = to_corners(corners) if in_format == "center" else corners
    choose = surviving_boxes if on_gpu(data) else _surviving_boxes
    index = choose(batches, corners, overlap_thresh, valid_thresh, topk, score_index, id_index, background_id, force_suppress).unsqueeze(-1)
    out = source.gather(1, index.clamp_min(0).expand(-1, -1, width)).masked_fill(index < 0, -1)
    if in_format != out_format:
        old = out.detach()[..., coord_start:coord_start + 4]
        new = _to_centers(old) if out_format == "center" else to_corners(old)
        # Gradients pass as if nothing were converted, as in MXNet; unused rows and boxes beyond the border stay as they are.
        shift = torch.where(old[..., :1] < 0, 0, new - old)
        out = torch.cat([out[..., :coord_start], out[..., coord_start:coord_start + 4] + shift, out[..., coord_start + 4:]], -1)
    return out.reshape(data.shape)


def _surviving_boxes(batches, corners, overlap_thresh, valid_thresh, topk, score_index, id_index, background_id, force_suppress):
    """Return the numbers (B, n) of the boxes that box_nms keeps, best first, then -1. `batches` is (B, n, width), `corners` (B, n, 4)."""
    batches, corners = batches.numpy(), corners.numpy()
    chosen = np.full(batches.shape[:2], -1)
    for i, batch in enumerate(batches):
        valid = batch[:, score_index] > valid_thresh
        if id_index >= 0:
            valid &= batch[:, id_index] != background_id
        valid = np.flatnonzero(valid)
        order = valid[np.argsort(-batch[valid, score_index], kind="stable")][:topk if topk > 0 else None]
        classes = batch[order, id_index].astype(np.int64) if id_index >= 0 and not force_suppress else None
        stay = order[greedy_suppression(corners[i, order], overlap_thresh, classes)]
        chosen[i, :len(stay)] = stay
    return torch.from_numpy(chosen)


@op("_contrib_box_iou", aliases=("_npx_box_iou",), complete_rule="shape", amp="widest")
def box_iou(lhs, rhs, *, format: _Format = "corner"):
    """Intersection over union of each box of `lhs` (..., 4) with each of `rhs` (..., 4). No gradient flows.

    The result has the shapes of both, without the last axes, behind each other. `format` defines the four numbers: two corners
    (``corner``), or the centre and the size (``center``).

    Raises
    ------
    MXNetError
        If a box does not have 4 numbers, or boxes have only one axis.

    Example
    -------
    >>> boxes = mx.nd.array([[0, 0, 2, 2], [0, 0, 2, 4], [1, 1, 3, 3]])
    >>> mx.nd.contrib.box_iou(mx.nd.array([[0, 0, 2, 4]]), boxes).asnumpy().round(2)
    array([[0.5, 1. , 0.2]], dtype=float32)
    """
    _check_boxes("lhs", tuple(lhs.shape))
    _check_boxes("rhs", tuple(rhs.shape))
    lhs, rhs = lhs.detach(), rhs.detach()
    return overlaps(to_corners(lhs), to_corners(rhs)) if format == "center" else overlaps(lhs, rhs)


def _check_boxes(name, shape):
    if len(shape) < 2 or shape[-1] not in (4, -1):
        raise MXNetError(f"box_iou: the last dimension of {name} must be 4 and there must be another, received shape {shape}")


@box_iou.shape_rule
def _(in_shapes, out_shapes, *, format):
    if None in in_shapes:
        return in_shapes, out_shapes
    lhs, rhs = in_shapes
    _check_boxes("lhs", lhs)
    _check_boxes("rhs", rhs)
    return [(*lhs[:-1], 4), (*rhs[:-1], 4)], [unify(out_shapes[0], lhs[:-1] + rhs[:-1])]


@op("_contrib_bipartite_matching", aliases=("_npx_bipartite_matching",), num_outputs=2)
def bipartite_matching(data, *, is_ascend: bool = False, threshold: float, topk: int = -1):
    """Match rows and columns of score matrices (..., rows, columns) greedily, the best pair first.

    Parameters
    ----------
    is_ascend : bool
        Small scores are good.
    threshold : float
        Stop at scores that are not better than this.
    topk : int
        Stop when more than that many pairs are matched, if positive.

    Returns
    -------
    The column of each row (..., rows), and the row of each column (..., columns); -1 for none.

    Raises
    ------
    MXNetError
        If there are fewer than 2 axes.

    Example
    -------
    >>> scores = mx.nd.array([[0.9, 0.8], [0.7, 0.1], [0.2, 0.3]])
    >>> of_row, of_column = mx.nd.contrib.bipartite_matching(scores, threshold=0.25)
    >>> of_row.asnumpy(), of_column.asnumpy()
    (array([ 0., -1.,  1.], dtype=float32), array([0., 2.], dtype=float32))
    """
    if data.dim() < 2:
        raise MXNetError(f"bipartite_matching: the score matrix must have at least 2 axes, received shape {tuple(data.shape)}")
    rows, columns = data.shape[-2:]
    least = -threshold if is_ascend else threshold
    # MXNet checks the limit after it counts (bounding_box-inl.h), so one pair more than topk is matched.
    steps = min(rows, columns, topk + 1 if topk > 0 else rows)
    if on_gpu(data):
        scores = data.detach().float().reshape(-1, rows, columns)
        pairs = match_pairs(-scores if is_ascend else scores.clone(), least, steps)
        return tuple(p.to(data.dtype).reshape(data.shape[:-2] + p.shape[1:]) for p in pairs)
    scores = data.detach().float().cpu().reshape(-1, rows, columns).numpy()
    scores = -scores if is_ascend else scores.copy()
    of_row, of_column = np.full((len(scores), rows), -1.0), np.full((len(scores), columns), -1.0)
    for matrix, by_row, by_column in zip(scores, of_row, of_column):
        for _ in range(steps):
            row, column = divmod(int(matrix.argmax()), columns)
            if not matrix[row, column] > least:
                break
            by_row[row], by_column[column] = column, row
            matrix[row], matrix[:, column] = -np.inf, -np.inf
    return tuple(torch.from_numpy(m).to(data.device, data.dtype).reshape(data.shape[:-2] + m.shape[1:]) for m in (of_row, of_column))


@bipartite_matching.shape_rule
def _(in_shapes, out_shapes, **_):
    data = in_shapes[0]
    if data is None:
        return in_shapes, out_shapes
    return in_shapes, [unify(out_shapes[0], data[:-1]), unify(out_shapes[1], (*data[:-2], data[-1]))]


@op("_contrib_box_encode", aliases=("_npx_box_encode",), complete_rule="shape", num_outputs=2, amp=None)
def box_encode(samples, matches, anchors, refs, means, stds):
    """Training targets for anchors: (targets, masks), both (B, N, 4).

    With centre (x, y) and size (w, h) of an anchor and of its box, the targets are ``(box_x - x) / w``, ``(box_y - y) / h``,
    ``log(box_w / w)`` and ``log(box_h / h)``, less `means`, divided by `stds`.

    Parameters
    ----------
    samples : (B, N)
        Above 0.5 where an anchor takes part; elsewhere targets and masks are 0.
    matches : (B, N)
        The number of the box in `refs` that belongs to each anchor.
    anchors, refs : (B, N, 4), (B, M, 4)
        Corners.
    means, stds : (4,)
        The means and deviations that normalize the targets.

    Raises
    ------
    MXNetError
        If the shapes do not fit.

    Example
    -------
    >>> anchors, refs = mx.nd.array([[[0, 0, 4, 4], [2, 2, 4, 4]]]), mx.nd.array([[[1, 0, 5, 4]]])
    >>> samples, matches = mx.nd.array([[1, 0]]), mx.nd.array([[0, 0]])
    >>> targets, masks = mx.nd.contrib.box_encode(samples, matches, anchors, refs, mx.nd.zeros(4), mx.nd.ones(4))
    >>> targets.asnumpy(), masks.asnumpy()
    (array([[[0.25, 0.  , 0.  , 0.  ],
            [0.  , 0.  , 0.  , 0.  ]]], dtype=float32), array([[[1., 1., 1., 1.],
            [0., 0., 0., 0.]]], dtype=float32))
    """
    _encoded_shapes([tuple(t.shape) for t in (samples, matches, anchors, refs)])
    valid = (samples > 0.5).unsqueeze(-1)
    index, = within("box_encode", [torch.where(valid, matches.long().unsqueeze(-1), 0)], refs.shape[1:], negative=False)
    wanted, have = _to_centers(refs.gather(1, index.expand(-1, -1, 4))), _to_centers(anchors)
    targets = torch.cat([(wanted[..., :2] - have[..., :2]) / have[..., 2:], (wanted[..., 2:] / have[..., 2:]).log()], -1)
    return torch.where(valid, (targets - means) / stds, 0), valid.to(anchors.dtype).expand(anchors.shape).contiguous()


def _encoded_shapes(shapes):
    """Return the partial shapes of samples, matches, anchors and refs, completed by one another."""
    sizes = [-1, -1, -1]  # B, N and M
    axes = (0, 1), (0, 1), (0, 1, None), (0, 2, None)
    for shape, names in zip(shapes, axes):
        for n, name in zip(shape or (), names):
            if name is not None and n >= 0:
                sizes[name] = n
    wanted = [tuple(4 if name is None else sizes[name] for name in names) for names in axes]
    if any(s is not None and (len(s) != len(w) or any(n >= 0 and n != m for n, m in zip(s, w))) for s, w in zip(shapes, wanted)):
        raise MXNetError("box_encode: expected samples (B, N), matches (B, N), anchors (B, N, 4) and refs (B, M, 4), received "
                         f"{', '.join(map(str, shapes))}")
    return wanted


@box_encode.shape_rule
def _(in_shapes, out_shapes):
    wanted = _encoded_shapes(in_shapes[:4])
    return [*wanted, *(unify(s, (4,)) for s in in_shapes[4:])], [unify(o, wanted[2]) for o in out_shapes]


@op("_contrib_box_decode", aliases=("_npx_box_decode",), complete_rule="shape", amp=None)
def box_decode(data, anchors, *, std0: float = 1.0, std1: float = 1.0, std2: float = 1.0, std3: float = 1.0, clip: float = -1.0,
               format: _Format = "center"):
    """Corners (B, N, 4) of the boxes that predictions (B, N, 4) make of anchors (1, N, 4), which are in the given format.

    Predictions are what `box_encode` makes targets of, with `std0` to `std3` as its ``stds``. `clip`, if positive, bounds the logarithm of the
    growth of a box.

    Raises
    ------
    MXNetError
        If the shapes do not fit.

    Example
    -------
    >>> half_a_width_right = mx.nd.array([[[0.5, 0, 0, 0]]])
    >>> mx.nd.contrib.box_decode(half_a_width_right, mx.nd.array([[[0, 0, 4, 4]]]), format="corner").asnumpy()
    array([[[2., 0., 6., 4.]]], dtype=float32)
    """
    if data.dim() != 3 or data.shape[-1] != 4 or anchors.shape != (1, *data.shape[1:]):
        raise MXNetError("box_decode: expected data (B, N, 4) and anchors (1, N, 4), "
                         f"received {tuple(data.shape)} and {tuple(anchors.shape)}")
    anchors = _to_centers(anchors) if format == "corner" else anchors
    scaled = data * constant((std0, std1, std2, std3), data.dtype, data.device)
    growth = scaled[..., 2:].clamp_max(clip) if clip > 0 else scaled[..., 2:]
    middle = scaled[..., :2] * anchors[..., 2:] + anchors[..., :2]
    return to_corners(torch.cat([middle, growth.exp() * anchors[..., 2:]], -1))


@box_decode.shape_rule
def _(in_shapes, out_shapes, **_):
    data, anchors = unify(in_shapes[0], out_shapes[0]), in_shapes[1]
    if any(s is not None and (len(s) != 3 or s[2] not in (4, -1)) for s in (data, anchors)):
        return [data, anchors], out_shapes  # the operator's call raises the error
    if data is None or anchors is None:
        return [data, anchors], [data]
    anchors = unify(anchors, (1, *data[1:2], 4))
    data = (data[0], *anchors[1:])
    return [data, anchors], [data]
