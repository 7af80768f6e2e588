"""Region proposals, as in Faster R-CNN."""
import math

import numpy as np
import torch

from ...base import MXNetError
from ..axes import require_ndim
from ..registry import op
from ..schema import Floats
from ..shapes import unify
from . import proposal_on_gpu
from .boxes import greedy_suppression
from .on_gpu import on_gpu


def _anchor_sides(stride, ratios):
    """Width and height of an anchor of scale 1 for each ratio."""
    widths = [math.floor(math.sqrt(math.floor(np.float32(stride * stride) / np.float32(ratio))) + 0.5) for ratio in ratios]
    return [(width, math.floor(width * ratio + 0.5)) for width, ratio in zip(widths, ratios)]


def _base_anchors(stride, ratios, scales):
    """Anchors around the first cell of the feature map: corners in pixels, (ratios * scales, 4)."""
    center, anchors = (stride - 1) / 2, []
    for side, upright in _anchor_sides(stride, ratios):
        for scale in scales:
            width, height = side * scale, upright * scale
            anchors.append((center - (width - 1) / 2, center - (height - 1) / 2, center + (width - 1) / 2, center + (height - 1) / 2))
    return np.array(anchors, np.float32)


def _proposals(scores, deltas, info, anchors, stride, min_size, iou_loss):
    """All proposals of one image, [x1, y1, x2, y2, score]: scores (A, H, W), deltas (4 A, H, W), info (height, width, scale)."""
    count, height, width = scores.shape
    shift = np.stack(np.meshgrid(np.arange(width), np.arange(height)) * 2, -1).astype(np.float32) * stride
    boxes = (shift[:, :, None] + anchors).reshape(-1, 4)
    moves = deltas.reshape(count, 4, height, width).transpose(2, 3, 0, 1).reshape(-1, 4)
    if iou_loss:
        boxes = boxes + moves
    else:
        size = boxes[:, 2:] - boxes[:, :2] + 1
        middle = moves[:, :2] * size + boxes[:, :2] + (size - 1) / 2
        half = (np.exp(moves[:, 2:]) * size - 1) / 2
        boxes = np.concatenate([middle - half, middle + half], 1)
    limit = np.array([info[1], info[0], info[1], info[0]], np.float32) - 1
    boxes = np.clip(boxes, 0, limit)
    score = scores.transpose(1, 2, 0).copy()
    # Beyond the image there is only padding.
    score[int(info[0] / stride):], score[:, int(info[1] / stride):] = -1, -1
    score = score.reshape(-1)
    least = min_size * info[2]
    small = (boxes[:, 2:] - boxes[:, :2] + 1 < least).any(1)
    boxes[small] += np.array([-0.5, -0.5, 0.5, 0.5], np.float32) * least
    score[small] = -1
    return np.concatenate([boxes, score[:, None]], 1).astype(np.float32)


def _best(proposals, before, after, threshold):
    """The best proposals after non-maximum suppression, repeated until there are `after`."""
    order = np.argsort(-proposals[:, 4], kind="stable")[:before if before > 0 else None]
    ranked = proposals[order]
    best = ranked[greedy_suppression(ranked[:, :4], threshold, border=1, limit=min(after, len(ranked)))]
    return best[np.arange(after) % len(best)]


def _propose(operator, cls_prob, bbox_pred, im_info, before, after, threshold, min_size, scales, ratios, stride, output_score, iou_loss):
    require_ndim(operator, cls_prob, 4, name="cls_prob")
    if after < 0 or stride < 1 or not scales or not ratios:
        raise MXNetError(f"{operator}: `rpn_post_nms_top_n` must be at least 0, `feature_stride` at least 1, `scales` and `ratios` not empty, "
                         f"received {after}, {stride}, {scales} and {ratios}")
    anchors = _base_anchors(stride, ratios, scales)
    if cls_prob.shape[1] != 2 * len(anchors):
        raise MXNetError(f"{operator}: `cls_prob` must have 2 * {len(anchors)} channels for {len(ratios)} ratios and {len(scales)} scales, "
                         f"received {cls_prob.shape[1]}")
    n, channels, height, width = cls_prob.shape
    if tuple(bbox_pred.shape) != (n, 2 * channels, height, width) or tuple(im_info.shape) != (n, 3):
        raise MXNetError(f"{operator}: `bbox_pred` must have shape {(n, 2 * channels, height, width)} and `im_info` {(n, 3)}, "
                         f"received {tuple(bbox_pred.shape)} and {tuple(im_info.shape)}")
    if on_gpu(cls_prob):
        base = proposal_on_gpu.base_anchors(stride, _anchor_sides(stride, ratios), scales, cls_prob)
        regions, scores = proposal_on_gpu.propose(cls_prob[:, len(anchors):].detach().float(), bbox_pred.detach().float(), im_info.detach().float(),
                                                  base, stride, min_size, iou_loss, before, after, threshold)
        return (regions.to(cls_prob.dtype), scores.to(cls_prob.dtype)) if output_score else regions.to(cls_prob.dtype)
    probabilities, deltas, infos = (t.detach().float().cpu().numpy() for t in (cls_prob, bbox_pred, im_info))
    if (infos[:, :2] // stride > (height, width)).any():
        raise MXNetError(f"{operator}: `feature_stride` times the feature map's size must reach over each image: received feature_stride={stride}, "
                         f"a feature map of {height} x {width}, and images {infos[:, :2].tolist()}")
    proposals = np.stack([
        _best(_proposals(p[len(anchors):], d, info, anchors, stride, min_size, iou_loss), before, after, threshold)
        for p, d, info in zip(probabilities, deltas, infos)])
    number = np.broadcast_to(np.arange(len(proposals), dtype=np.float32)[:, None, None], (*proposals.shape[:2], 1))
    rois = np.concatenate([number, proposals[..., :4]], -1).reshape(-1, 5)
    regions, scores = (torch.from_numpy(np.ascontiguousarray(a)).to(cls_prob.device, cls_prob.dtype)
                       for a in (rois, proposals[..., 4].reshape(-1, 1)))
    return (regions, scores) if output_score else regions


def _num_outputs(attributes):
    return 2 if attributes["output_score"] else 1


@op("_contrib_Proposal", num_outputs=_num_outputs, output_names=("output", "score"), names_output=True, amp="widest")
def proposal(cls_prob, bbox_pred, im_info, *, rpn_pre_nms_top_n: int = 6000, rpn_post_nms_top_n: int = 300, threshold: float = 0.7,
             rpn_min_size: int = 16, scales: Floats = (4.0, 8.0, 16.0, 32.0), ratios: Floats = (0.5, 1.0, 2.0), feature_stride: int = 16,
             output_score: bool = False, iou_loss: bool = False):
    """The regions of one image that most likely hold an object: (rpn_post_nms_top_n, 5) (Ren et al. 2015). No gradient flows.

    A row is [0, x1, y1, x2, y2] in pixels of the image; where there are too few regions they are repeated.

    Parameters
    ----------
    cls_prob : (1, 2 * A, H, W)
        Probabilities of background, then of objects, for each of the ``A = len(scales) * len(ratios)`` anchors.
    bbox_pred : (1, 4 * A, H, W)
        The displacement and stretch of each anchor (of its corners, with `iou_loss`).
    im_info : (1, 3)
        Height and width of the image, and its scale.
    rpn_pre_nms_top_n, rpn_post_nms_top_n, threshold
        The number of best regions before and after non-maximum suppression, and its overlap threshold.
    rpn_min_size : int
        The least side of a region, times the image's scale; a smaller one is enlarged and scores -1.
    scales, ratios, feature_stride
        The anchors: their sides in steps of the feature map, height over width, and that step in pixels.
    output_score : bool
        Return the probabilities, (rpn_post_nms_top_n, 1), too.

    Raises
    ------
    MXNetError
        If there is more than one image, or the shapes do not fit each other or the anchors. An image larger than the feature map is an error on
        a CPU only: with a GPU the host would wait for its size.

    Example
    -------
    >>> probabilities = mx.nd.array([0.9, 0.8, 0.1, 0.2]).reshape((1, 2, 1, 2))     # the second place holds the object
    >>> info = mx.nd.array([[16, 32, 1]])
    >>> mx.nd.contrib.Proposal(probabilities, mx.nd.zeros((1, 4, 1, 2)), info, scales=(1,), ratios=(1,), rpn_post_nms_top_n=2).asnumpy()
    array([[ 0., 16.,  0., 31., 15.],
           [ 0.,  0.,  0., 15., 15.]], dtype=float32)
    """
    if cls_prob.shape[0] != 1:
        raise MXNetError(f"Proposal: takes one image, received {cls_prob.shape[0]}; use MultiProposal for several")
    return _propose("Proposal", cls_prob, bbox_pred, im_info, rpn_pre_nms_top_n, rpn_post_nms_top_n, threshold, rpn_min_size, scales,
                    ratios, feature_stride, output_score, iou_loss)


@op("_contrib_MultiProposal", num_outputs=_num_outputs, output_names=("output", "score"), names_output=True, amp="widest")
def multi_proposal(cls_prob, bbox_pred, im_info, *, rpn_pre_nms_top_n: int = 6000, rpn_post_nms_top_n: int = 300,
                   threshold: float = 0.7, rpn_min_size: int = 16, scales: Floats = (4.0, 8.0, 16.0, 32.0),
                   ratios: Floats = (0.5, 1.0, 2.0), feature_stride: int = 16, output_score: bool = False, iou_loss: bool = False):
    """`Proposal` for a batch of N images: (N * rpn_post_nms_top_n, 5), the number of the image first.

    Inputs have N where those of `Proposal` have 1; attributes and errors are the same.

    Example
    -------
    >>> probabilities, info = mx.nd.ones((2, 2, 1, 1)), mx.nd.array([[16, 16, 1], [12, 12, 0.5]])
    >>> mx.nd.contrib.MultiProposal(probabilities, mx.nd.zeros((2, 4, 1, 1)), info, scales=(1,), ratios=(1,), rpn_post_nms_top_n=1).asnumpy()
    array([[ 0.,  0.,  0., 15., 15.],
           [ 1.,  0.,  0., 11., 11.]], dtype=float32)
    """
    return _propose("MultiProposal", cls_prob, bbox_pred, im_info, rpn_pre_nms_top_n, rpn_post_nms_top_n, threshold, rpn_min_size, scales,
                    ratios, feature_stride, output_score, iou_loss)


for _operator in (proposal, multi_proposal):
    @_operator.shape_rule
    def _(in_shapes, out_shapes, *, rpn_post_nms_top_n, **_):
        probabilities, deltas, info = in_shapes
        if probabilities is None:
            return in_shapes, out_shapes
        n, channels, height, width = probabilities
        deltas = unify(deltas, (n, channels * 2 if channels >= 0 else -1, height, width))
        rows = n * rpn_post_nms_top_n if n >= 0 else -1
        return [probabilities, deltas, unify(info, (n, 3))], [unify(o, (rows, w)) for o, w in zip(out_shapes, (5, 1))]
