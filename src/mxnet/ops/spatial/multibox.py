"""Anchors of single-shot detectors: priors, training targets, detections."""
import math

import numpy as np
import torch

from ...base import MXNetError
from ..registry import op
from ..schema import Floats
from ..shapes import known, unify
from .boxes import greedy_suppression, overlaps
from .multibox_on_gpu import choose_detections, prior_boxes, training_targets
from .on_gpu import on_gpu


@op("_contrib_MultiBoxPrior", aliases=("_npx_multibox_prior",), names_output=True, complete_rule=True, amp=("float32", "widest"))
def multibox_prior(data, *, sizes: Floats = (1.0,), ratios: Floats = (1.0,), clip: bool = False, steps: Floats = (-1.0, -1.0),
                   offsets: Floats = (0.5, 0.5)):
    """Anchors around each pixel of a feature map (N, C, H, W): corners relative to the image, (1, H * W * anchors, 4) (Liu et al. 2016).

    Parameters
    ----------
    sizes, ratios : tuple of float
        Each size with the first ratio, then the first size with each other ratio: ``len(sizes) + len(ratios) - 1`` anchors. A size is a
        part of the image's height; a ratio is width over height.
    clip : bool
        Clip what lies outside the image.
    steps : (float, float)
        Distance of the pixels (y, x), in parts of the image; that of the feature map if negative.
    offsets : (float, float)
        Where in a pixel its centre lies (y, x).

    Raises
    ------
    MXNetError
        If `data` has fewer than 4 axes, no sizes or ratios are given, or steps or offsets are not two usable numbers.

    Example
    -------
    >>> x = mx.nd.zeros((1, 3, 1, 1))                       # only its size counts
    >>> mx.nd.contrib.MultiBoxPrior(x, sizes=(0.5, 1), ratios=(1, 4)).asnumpy()
    array([[[0.25 , 0.25 , 0.75 , 0.75 ],
            [0.   , 0.   , 1.   , 1.   ],
            [0.   , 0.375, 1.   , 0.625]]], dtype=float32)
    """
    _check_prior(tuple(data.shape), sizes, ratios, steps, offsets)
    height, width = data.shape[2:4]
    step_y, step_x = steps if min(steps) > 0 else (1 / height, 1 / width)
    shapes = [(s, math.sqrt(ratios[0])) for s in sizes] + [(sizes[0], math.sqrt(r)) for r in ratios[1:]]
    halves = [(s * height / width * r / 2, s / r / 2) for s, r in shapes]
    if on_gpu(data):
        anchors = prior_boxes(data, halves, (step_y, step_x), offsets)
        return anchors.clamp(0, 1) if clip else anchors
    half = np.array(halves, np.float32)
    y, x = ((np.arange(size, dtype=np.float32) + np.float32(offset)) * np.float32(step)
            for size, offset, step in ((height, offsets[0], step_y), (width, offsets[1], step_x)))
    # By NumPy, whose calls cost less. The first row of anchors, around y = 0; every other one is that row moved down.
    row = np.tile(np.concatenate([-half, half], 1), (width, 1, 1))
    row[..., ::2] += x[:, None, None]
    boxes = np.empty((height, row.size // 2, 2), np.float32)
    boxes[...] = row.reshape(-1, 2)
    boxes[..., 1] += y[:, None]
    anchors = torch.from_numpy(boxes.reshape(1, -1, 4)).to(data.device, data.dtype)
    return anchors.clamp(0, 1) if clip else anchors


def _check_prior(shape, sizes, ratios, steps, offsets):
    if len(shape) < 4:
        raise MXNetError(f"MultiBoxPrior: `data` must be (N, C, H, W), received shape {shape}")
    if not sizes or not ratios:
        raise MXNetError(f"MultiBoxPrior: `sizes` and `ratios` must not be empty, received {sizes} and {ratios}")
    if len(offsets) != 2 or not 0 <= min(offsets) <= max(offsets) <= 1:
        raise MXNetError(f"MultiBoxPrior: `offsets` must be 2 numbers from 0 to 1, received {offsets}")
    if len(steps) != 2 or steps[0] * steps[1] < 0:
        raise MXNetError(f"MultiBoxPrior: `steps` must be two numbers, both positive or both -1, received {steps}")


@multibox_prior.shape_rule
def _(in_shapes, out_shapes, *, sizes, ratios, steps, offsets, **_):
    data, out = in_shapes[0], out_shapes[0]
    if data is not None:
        _check_prior(data, sizes, ratios, steps, offsets)
        height, width = data[2:4]
        count = height * width * (len(sizes) + len(ratios) - 1) if height >= 0 and width >= 0 else -1
        out = unify(out, (1, count, 4))
    return [data], [out]


def _match(overlap, valid, threshold):
    """(number of the box for each anchor, overlap with it, which anchors are positive) of the overlaps (anchors, boxes)."""
    anchors = len(overlap)
    box, best = np.full(anchors, -1), np.full(anchors, -1.0, np.float32)
    positive = np.zeros(anchors, bool)
    left = overlap[:, :valid].copy()
    # First each box gets the anchor that fits it best, the best pair first.
    for _ in range(min(valid, anchors)):
        anchor, number = divmod(int(left.argmax()), valid)
        if not left[anchor, number] > 1e-6:
            break
        box[anchor], best[anchor], positive[anchor] = number, left[anchor, number], True
        left[anchor], left[:, number] = -1, -1
    # Then each other anchor gets the box that fits it best, if it fits well enough.
    rest = ~positive
    box[rest] = overlap[rest, :valid].argmax(1)
    best[rest] = overlap[rest, :valid].max(1)
    if threshold > 0:
        positive |= best > threshold
    return box, best, positive


def _hard_negatives(prediction, overlap, positive, ratio, threshold):
    """The negatives to train with: those that look least like background, `ratio` for each positive."""
    wanted = min(int(positive.sum() * ratio), int((~positive).sum()))
    candidates = np.flatnonzero(~positive & (overlap < threshold))
    if len(candidates) < wanted:
        raise MXNetError(f"MultiBoxTarget: only {len(candidates)} anchors overlap their box by less than "
                         f"negative_mining_thresh={threshold}, but negative_mining_ratio={ratio} asks for {wanted}")
    scores = prediction[:, candidates]
    scores = np.exp(scores - scores.max(0))
    background = scores[0] / scores.sum(0)
    return candidates[np.argsort(background, kind="stable")[:wanted]]


@op("_contrib_MultiBoxTarget", aliases=("_npx_multibox_target",), num_outputs=3, output_names=("loc_target", "loc_mask", "cls_target"),
    names_output=True, amp=("float32", "widest"))
def multibox_target(anchor, label, cls_pred, *, overlap_threshold: float = 0.5, ignore_label: float = -1.0,
                    negative_mining_ratio: float = -1.0, negative_mining_thresh: float = 0.5, minimum_negative_samples: int = 0,
                    variances: Floats = (0.1, 0.1, 0.2, 0.2)):
    """Training targets for anchors (Liu et al. 2016). No gradient flows.

    Parameters
    ----------
    anchor : (1, A, 4)
        Corners.
    label : (N, boxes, 5 or more)
        [class, x1, y1, x2, y2] of the true boxes; the first class of -1 ends the list.
    cls_pred : (N, classes + 1, A)
        Scores, which choose the hard negatives if `negative_mining_ratio` is positive.
    overlap_threshold : float
        Anchors that overlap a box more than this are positive.
    negative_mining_ratio, negative_mining_thresh : float
        The number of negatives for each positive, and the upper bound of their overlap with their box.
    minimum_negative_samples
        Kept for compatibility; MXNet does not use it either.
    variances : tuple of 4 floats
        The divisors of the targets.

    Returns
    -------
    loc_target, loc_mask : (N, A * 4)
        Targets for the corners, and 1 for positive anchors.
    cls_target : (N, A)
        Class + 1 for positive anchors, 0 for negative ones, `ignore_label` for the others.

    Raises
    ------
    MXNetError
        If the shapes do not fit, or there are fewer negatives than requested (on a GPU all existing ones are used instead).

    Example
    -------
    >>> anchors = mx.nd.array([[[0, 0, 0.5, 0.5], [0.5, 0.5, 1, 1]]])
    >>> label = mx.nd.array([[[2, 0.5, 0.5, 1, 0.9]]])      # a box of class 2, nearly the second anchor
    >>> _, mask, classes = mx.nd.contrib.MultiBoxTarget(anchors, label, mx.nd.zeros((1, 4, 2)))
    >>> mask.asnumpy(), classes.asnumpy()
    (array([[0., 0., 0., 0., 1., 1., 1., 1.]], dtype=float32), array([[0., 3.]], dtype=float32))
    """
    if anchor.dim() != 3 or anchor.shape[0] != 1 or anchor.shape[2] != 4:
        raise MXNetError(f"MultiBoxTarget: `anchor` must have shape (1, number of anchors, 4), received {tuple(anchor.shape)}")
    if label.dim() != 3 or label.shape[2] < 5:
        raise MXNetError(f"MultiBoxTarget: `label` must have shape (N, boxes, 5 or more), received {tuple(label.shape)}")
    if cls_pred.dim() != 3 or cls_pred.shape[2] != anchor.shape[1]:
        raise MXNetError(f"MultiBoxTarget: number of anchors mismatch: {anchor.shape[1]} anchors, "
                         f"cls_pred of shape {tuple(cls_pred.shape)}")
    if len(variances) != 4:
        raise MXNetError(f"MultiBoxTarget: `variances` must have 4 numbers, received {variances}")
    if negative_mining_ratio > 0 and negative_mining_thresh <= 0:
        raise MXNetError(f"MultiBoxTarget: `negative_mining_thresh` must be above 0 with a negative_mining_ratio of {negative_mining_ratio}, "
                         f"received {negative_mining_thresh}")
    if on_gpu(anchor):
        anchors, labels, predictions = (t.detach().float() for t in (anchor[0], label, cls_pred))
        targets = training_targets(anchors, labels, predictions, overlap_threshold, ignore_label, negative_mining_ratio, negative_mining_thresh,
                                   variances)
        return tuple(t.to(anchor.dtype) for t in targets)
    anchors, labels, predictions = (t.detach().float().cpu() for t in (anchor[0], label, cls_pred))
    count = len(anchors)
    location = np.zeros((len(labels), count, 4), np.float32)
    mask = np.zeros_like(location)
    classes = np.full((len(labels), count), ignore_label, np.float32)
    size, center = (anchors[:, 2:] - anchors[:, :2]).numpy(), ((anchors[:, 2:] + anchors[:, :2]) / 2).numpy()
    for i, truth in enumerate(labels):
        ends = np.flatnonzero(truth[:, 0].numpy() == -1)
        valid = int(ends[0]) if len(ends) else len(truth)
        if valid == 0:
            continue
        overlap = overlaps(anchors, truth[:, 1:5]).numpy()
        box, best, positive = _match(overlap, valid, overlap_threshold)
        if negative_mining_ratio > 0:
            negative = _hard_negatives(predictions[i].numpy(), best, positive, negative_mining_ratio, negative_mining_thresh)
        else:
            negative = ~positive
        classes[i, negative] = 0
        target = truth.numpy()[box[positive]]
        classes[i, positive] = target[:, 0] + 1
        mask[i, positive] = 1
        shift = ((target[:, 1:3] + target[:, 3:5]) / 2 - center[positive]) / size[positive]
        growth = np.log((target[:, 3:5] - target[:, 1:3]) / size[positive])
        location[i, positive] = np.concatenate([shift, growth], 1) / np.asarray(variances, np.float32)
    outputs = location.reshape(len(labels), -1), mask.reshape(len(labels), -1), classes
    return tuple(torch.from_numpy(o).to(anchor.device, anchor.dtype) for o in outputs)


@multibox_target.shape_rule
def _(in_shapes, out_shapes, **_):
    anchor, label = in_shapes[:2]
    if anchor is None or label is None:
        return in_shapes, out_shapes
    flat = anchor[1] * 4 if anchor[1] >= 0 else -1
    shapes = (label[0], flat), (label[0], flat), (label[0], anchor[1])
    return in_shapes, [unify(o, s) for o, s in zip(out_shapes, shapes)]


@op("_contrib_MultiBoxDetection", aliases=("_npx_multibox_detection",), names_output=True, complete_rule=True,
    amp=("float32", "widest"))
def multibox_detection(cls_prob, loc_pred, anchor, *, clip: bool = True, threshold: float = 0.01, background_id: int = 0,
                       nms_threshold: float = 0.5, force_suppress: bool = False, variances: Floats = (0.1, 0.1, 0.2, 0.2),
                       nms_topk: int = -1):
    """Detections out of predictions (N, A, 6): rows [class, score, x1, y1, x2, y2], class -1 where there is none. No gradient flows.

    Parameters
    ----------
    cls_prob : (N, classes + 1, A)
        Probabilities; class 0 is the background, for any `background_id` (as in MXNet).
    loc_pred : (N, A * 4)
        Predictions of the targets of `MultiBoxTarget`, with the same `variances`.
    anchor : (1, A, 4)
    clip : bool
        Clip what lies outside the image.
    threshold : float
        The least probability of a detection.
    nms_threshold, nms_topk, force_suppress
        Non-maximum suppression: the overlap that is too much, how many best boxes enter, and whether classes suppress each other.

    Raises
    ------
    MXNetError
        If the shapes do not fit.

    Example
    -------
    >>> anchors = mx.nd.array([[[0, 0, 0.5, 0.5], [0, 0, 0.5, 0.5], [0.5, 0.5, 1, 1]]])
    >>> probabilities = mx.nd.array([[[0.2, 0.4, 1], [0.8, 0.6, 0]]])       # background, one class
    >>> mx.nd.contrib.MultiBoxDetection(probabilities, mx.nd.zeros((1, 12)), anchors).asnumpy()[0]
    array([[ 0. ,  0.8,  0. ,  0. ,  0.5,  0.5],
           [-1. ,  0.6,  0. ,  0. ,  0.5,  0.5],
           [-1. , -1. , -1. , -1. , -1. , -1. ]], dtype=float32)
    """
    _check_detection(tuple(cls_prob.shape), tuple(loc_pred.shape), tuple(anchor.shape), variances)
    probabilities, moves, anchors = cls_prob.detach().float(), loc_pred.detach().float(), anchor.detach().float()[0]
    # One coordinate of all boxes after another: strided reads and writes take several times as long.
    (x, y, width, height), (left, top, right, bottom) = moves.reshape(len(moves), -1, 4).permute(2, 0, 1).contiguous(), anchors.T.contiguous()
    wide, high = right - left, bottom - top
    x, y = x * variances[0] * wide + (right + left) / 2, y * variances[1] * high + (bottom + top) / 2
    width, height = (width * variances[2]).exp_() * wide / 2, (height * variances[3]).exp_() * high / 2
    corners = [x - width, y - height, x + width, y + height]
    corners = [c.clamp_(0, 1) for c in corners] if clip else corners
    if on_gpu(cls_prob):
        score, number = probabilities[:, 1:].max(1)
        return choose_detections(number.float(), score, corners, threshold, nms_threshold, nms_topk, force_suppress).to(cls_prob.dtype)
    score, number = _best_classes(probabilities[:, 1:])
    detected = (score >= threshold).cpu().numpy()
    rows = torch.stack([number, score, *corners], -1).cpu().numpy()
    out = np.full(rows.shape, -1, np.float32)
    for i, (row, is_found) in enumerate(zip(rows, detected)):
        detections = row[is_found]
        out[i, :len(detections)] = detections
        if not len(detections) or not 0 < nms_threshold <= 1:
            continue
        enter = min(nms_topk, len(detections)) if nms_topk > 0 else len(detections)
        out[i, enter:len(detections), 0] = -1
        best = detections[_first(-detections[:, 1], enter)]
        stays = greedy_suppression(best[:, 2:], nms_threshold, None if force_suppress else best[:, 0], inclusive=True)
        best[~stays, 0] = -1
        out[i, :enter] = best
    return torch.from_numpy(out).to(cls_prob.device, cls_prob.dtype)


def _best_classes(probabilities):
    """The largest of (N, classes, A) for each anchor, and which class that is: the first of those that are equal.

    Torch's maximum with its index is not vectorized along any axis but the last.
    """
    score = probabilities.amax(1)
    before = torch.ones_like(score, dtype=torch.bool)
    number = torch.zeros_like(score, dtype=torch.uint8 if probabilities.shape[1] <= 256 else torch.int32)
    for k in range(probabilities.shape[1] - 1):
        before &= probabilities[:, k] != score
        number += before.view(torch.uint8)
    return score, number.float()


def _first(numbers, count):
    """``np.argsort(numbers, kind="stable")[:count]``: only those are sorted that can be among the first."""
    if 4 * count > len(numbers):
        return np.argsort(numbers, kind="stable")[:count]
    candidates = np.flatnonzero(numbers <= np.partition(numbers, count - 1)[count - 1])
    return candidates[np.argsort(numbers[candidates], kind="stable")[:count]]


def _check_detection(probabilities, moves, anchors, variances):
    expected = "expected cls_prob (N, classes + 1, A), loc_pred (N, A * 4) and anchor (1, A, 4), received " \
               f"{probabilities}, {moves} and {anchors}"
    if len(probabilities) != 3 or len(anchors) != 3 or probabilities[2] != anchors[1] or moves[1] != 4 * anchors[1]:
        raise MXNetError(f"MultiBoxDetection: number of anchors mismatch: {expected}")
    if anchors[0] != 1 or anchors[2] != 4 or len(moves) != 2 or moves[0] != probabilities[0]:
        raise MXNetError(f"MultiBoxDetection: {expected}")
    if len(variances) != 4:
        raise MXNetError(f"MultiBoxDetection: `variances` must have 4 numbers, received {variances}")


@multibox_detection.shape_rule
def _(in_shapes, out_shapes, *, variances, **_):
    probabilities, out = in_shapes[0], out_shapes[0]
    if all(known(s) for s in in_shapes):
        _check_detection(in_shapes[0], in_shapes[1], in_shapes[2], variances)
    if probabilities is not None and len(probabilities) == 3:
        out = unify(out, (probabilities[0], probabilities[2], 6))
    return in_shapes, [out]
