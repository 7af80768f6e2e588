"""Anchors, targets and detections of single-shot detectors on a GPU, without waits; all images of a batch at once."""
from typing import Any

import torch

from ..host_arrays import constant
from .boxes_on_gpu import best_first, box_overlaps, flagged_first, greedy_matching, greedy_suppression, matched
from .on_gpu import per_chunk


def prior_boxes(data: torch.Tensor, halves: Any, steps: Any, offsets: tuple[Any, ...]) -> torch.Tensor:
    """Return the anchors (1, H * W * k, 4) around each pixel of `data` (N, C, H, W); `halves` has k times half a width and half a height."""
    height, width = data.shape[2:4]
    half = constant([h for pair in halves for h in pair], torch.float32, data.device).reshape(-1, 2)
    y, x = ((torch.arange(size, dtype=torch.float32, device=data.device) + offset) * step
            for size, offset, step in ((height, offsets[0], steps[0]), (width, offsets[1], steps[1])))
    centers = torch.stack([x.expand(height, width), y.unsqueeze(1).expand(height, width)], -1).unsqueeze(2)
    return torch.cat([centers - half, centers + half], -1).reshape(1, -1, 4).to(data.dtype)


def training_targets(anchors: torch.Tensor, labels: torch.Tensor, predictions: torch.Tensor, overlap_threshold: float, ignore_label: float,
                     mining_ratio: float, mining_thresh: float, variances: tuple[Any, ...]) -> tuple[torch.Tensor, ...]:
    """Return (loc_target, loc_mask, cls_target) of MultiBoxTarget, in float32. If more negatives are requested than exist, all are used.

    The loop is over the boxes of `labels` (N, boxes, 5), five tensor operations each.
    """
    count, boxes = len(anchors), labels.shape[1]
    if not labels.shape[0] or not boxes or not count:
        zeros = anchors.new_zeros(len(labels), count * 4)
        return zeros, zeros.clone(), anchors.new_full((len(labels), count), ignore_label)
    each = per_chunk(count * boxes * 20)
    parts = [_targets(anchors, *part, overlap_threshold, ignore_label, mining_ratio, mining_thresh, variances)
             for part in zip(labels.split(each), predictions.split(each))]
    return tuple(torch.cat(outputs) for outputs in zip(*parts))


def _targets(anchors, labels, predictions, overlap_threshold, ignore_label, mining_ratio, mining_thresh, variances):
    valid = (labels[..., 0] != -1).to(torch.uint8).cummin(1).values.bool()  # the first -1 ends the list
    overlap, shared = box_overlaps(anchors.reshape(1, -1, 1, 4), labels[:, None, :, 1:5])
    overlap = torch.where(shared > 0, overlap, 0).masked_fill_(~valid.unsqueeze(1), -1)
    # Each anchor gets the box that fits it best, but first each box gets the anchor that fits it best, the best pair first.
    best, box = overlap.max(2)
    anchor, number, exists = greedy_matching(overlap.clone(), 1e-6, min(labels.shape[1], len(anchors)))
    own_box = matched(len(anchors), anchor, number, exists)
    own_best = overlap.gather(1, anchor.unsqueeze(-1).expand(-1, -1, overlap.shape[2])).gather(2, number.unsqueeze(-1)).squeeze(-1)
    positive = own_box >= 0
    box, best = torch.where(positive, own_box, box), torch.where(positive, matched(len(anchors), anchor, own_best, exists), best)
    if overlap_threshold > 0:
        positive = positive | (best > overlap_threshold)
    has_boxes = valid[:, :1]
    positive = positive & has_boxes
    negative = ~positive & has_boxes
    if mining_ratio > 0:
        negative = _hard_negatives(predictions, best, positive, negative, mining_ratio, mining_thresh)
    truth = labels.gather(1, box.unsqueeze(-1).expand(-1, -1, labels.shape[2]))
    classes = torch.where(positive, truth[..., 0] + 1, torch.where(negative, 0.0, ignore_label))
    size, center = anchors[:, 2:] - anchors[:, :2], (anchors[:, 2:] + anchors[:, :2]) / 2
    shift = ((truth[..., 1:3] + truth[..., 3:5]) / 2 - center) / size
    growth = ((truth[..., 3:5] - truth[..., 1:3]) / size).log()
    location = torch.cat([shift, growth], 2) / constant(variances, anchors.dtype, anchors.device)
    positive = positive.unsqueeze(-1)
    location = torch.where(positive, location, 0)
    return location.flatten(1), positive.expand(location.shape).to(location.dtype).flatten(1), classes


def _hard_negatives(predictions, overlap, positive, negative, ratio, threshold):
    """Return the negatives to train with: those that look least like background, `ratio` for each positive."""
    wanted = torch.minimum((positive.sum(1).double() * ratio).long(), negative.sum(1)).unsqueeze(1)
    candidates = negative & (overlap < threshold)
    scores = (predictions - predictions.amax(1, keepdim=True)).exp_()
    background = (scores[:, 0] / scores.sum(1)).nan_to_num(2)  # NaN last
    order = torch.where(candidates, background, torch.inf).sort(dim=1, stable=True).indices
    number = torch.arange(order.shape[1], device=order.device).expand(order.shape)
    return candidates & (torch.empty_like(order).scatter_(1, order, number) < wanted)


def choose_detections(number: torch.Tensor, score: torch.Tensor, corners: Any, threshold: float, nms_threshold: float, nms_topk: int,
                      force_suppress: bool) -> torch.Tensor:
    """Return the rows (N, A, 6) of MultiBoxDetection, of the best class and its score (N, A) and the corners, four of (N, A)."""
    rows = torch.stack([number, score, *corners], -1)
    detected = score >= threshold
    count, place = detected.sum(1, keepdim=True), torch.arange(rows.shape[1], device=rows.device)
    order, suppressed = flagged_first(detected), place >= count
    if 0 < nms_threshold <= 1 and rows.numel():
        enter = nms_topk if nms_topk > 0 else rows.shape[1]
        best = best_first(score, detected)[:, :enter]
        boxes = rows.gather(1, best.unsqueeze(-1).expand(-1, -1, 6))
        stays = greedy_suppression(boxes[..., 2:], suppressed[:, :enter].logical_not(), nms_threshold, None if force_suppress else boxes[..., 0],
                                   inclusive=True)
        order = torch.cat([best, order[:, enter:]], 1)
        suppressed = torch.cat([~stays, torch.ones_like(suppressed[:, enter:])], 1)
    rows = rows.gather(1, order.unsqueeze(-1).expand(-1, -1, 6))
    rows[..., 0].masked_fill_(suppressed, -1)
    return rows.masked_fill_((place >= count).unsqueeze(-1), -1)
