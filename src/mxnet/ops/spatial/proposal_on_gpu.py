"""Region proposals on a GPU, without waits; all images of a batch at once."""
from typing import Any

import torch

from ..host_arrays import constant
from .boxes_on_gpu import flagged_first, greedy_suppression


def base_anchors(stride: Any, sides: Any, scales: Any, like: torch.Tensor) -> torch.Tensor:
    """Return the anchors (sides * scales, 4) around the first cell, of `sides` (width, height) of each ratio; computed in float64."""
    sides = constant([s for pair in sides for s in pair], torch.float64, like.device).reshape(-1, 1, 2)
    half = (sides * constant(scales, torch.float64, like.device).reshape(1, -1, 1) - 1).reshape(-1, 2) / 2
    center = (stride - 1) / 2
    return torch.cat([center - half, center + half], 1).float()


def propose(scores: torch.Tensor, deltas: torch.Tensor, infos: torch.Tensor, anchors: torch.Tensor, stride: Any, min_size: float, iou_loss: bool,
            before: int, after: int, threshold: float) -> tuple[torch.Tensor, torch.Tensor]:
    """Return regions (N * after, 5) and their scores (N * after, 1), of scores (N, A, H, W), deltas (N, 4 A, H, W), infos (N, 3) in float32."""
    images, count, height, width = scores.shape
    y, x = (torch.arange(size, dtype=torch.float32, device=scores.device) * stride for size in (height, width))
    shift = torch.stack([x.expand(height, width), y.unsqueeze(1).expand(height, width)] * 2, -1)
    boxes = (shift.unsqueeze(2) + anchors).reshape(-1, 4)
    moves = deltas.reshape(images, count, 4, height, width).permute(0, 3, 4, 1, 2).reshape(images, -1, 4)
    if iou_loss:
        boxes = boxes + moves
    else:
        size = boxes[:, 2:] - boxes[:, :2] + 1
        middle = moves[..., :2] * size + boxes[:, :2] + (size - 1) / 2
        half = (moves[..., 2:].exp() * size - 1) / 2
        boxes = torch.cat([middle - half, middle + half], 2)
    limit = torch.stack([infos[:, 1], infos[:, 0]] * 2, 1).unsqueeze(1) - 1
    boxes = torch.minimum(boxes.clamp_min(0), limit)
    # Beyond the image there is only padding.
    rows, columns = ((infos[:, i] / stride).trunc().reshape(-1, 1, 1, 1) for i in (0, 1))
    beyond = (torch.arange(height, device=scores.device).reshape(-1, 1) >= rows) | (torch.arange(width, device=scores.device) >= columns)
    scores = scores.masked_fill(beyond, -1).permute(0, 2, 3, 1).reshape(images, -1)
    least = (min_size * infos[:, 2]).reshape(-1, 1, 1)
    small = (boxes[..., 2:] - boxes[..., :2] + 1 < least).any(2)
    larger = torch.cat([boxes[..., :2] - 0.5 * least, boxes[..., 2:] + 0.5 * least], 2)
    boxes, scores = torch.where(small.unsqueeze(-1), larger, boxes), scores.masked_fill(small, -1)
    best = _best(torch.cat([boxes, scores.unsqueeze(-1)], 2), before, after, threshold)
    number = torch.arange(images, dtype=torch.float32, device=scores.device).reshape(-1, 1, 1).expand(images, after, 1)
    return torch.cat([number, best[..., :4]], 2).reshape(-1, 5), best[..., 4].reshape(-1, 1)


def _best(proposals, before, after, threshold):
    """Return the best proposals after non-maximum suppression, repeated until there are `after`."""
    scores = proposals[..., 4].nan_to_num(-torch.inf, torch.inf, -torch.inf)  # NaN last
    order = scores.sort(dim=1, descending=True, stable=True).indices[:, :before if before > 0 else None]
    ranked = proposals.gather(1, order.unsqueeze(-1).expand(-1, -1, 5))
    stays = greedy_suppression(ranked[..., :4], torch.ones_like(order, dtype=torch.bool), threshold, border=1, limit=min(after, order.shape[1]))
    number = torch.arange(after, device=order.device) % stays.sum(1, keepdim=True).clamp_min(1)
    return ranked.gather(1, flagged_first(stays).gather(1, number).unsqueeze(-1).expand(-1, -1, 5))
