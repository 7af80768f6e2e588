"""Greedy suppression and matching of boxes on a GPU, without waits; all images of a batch at once."""
import torch
import torch.nn.functional as F

from .on_gpu import per_chunk

_BLOCK = 512  # boxes whose overlaps with one another are a table
_GROUP = 8    # boxes that one step of the loop decides; their states are the bits of a byte
_PATTERNS = 1 << _GROUP
_BYTES_A_PAIR = 24  # temporary memory while overlaps are computed


def box_overlaps(lhs: torch.Tensor, rhs: torch.Tensor, border: float = 0) -> tuple[torch.Tensor, torch.Tensor]:
    """Return (intersection over union, intersection) of boxes (..., 4) in the format 'corner', whose other axes broadcast.

    The operations and their order are those of `kernels/nms.cpp`, so that a box on the threshold is judged alike.
    """
    def shared_side(low, high):
        return torch.minimum(lhs[..., high], rhs[..., high]).sub_(torch.maximum(lhs[..., low], rhs[..., low])).add_(border).clamp_min_(0)

    def area(boxes):
        sides = (boxes[..., 2:] - boxes[..., :2] + border).clamp_min_(0)
        return sides[..., 0] * sides[..., 1]

    shared = shared_side(0, 2).mul_(shared_side(1, 3))
    union = (area(lhs) + area(rhs)).sub_(shared)
    return torch.div(shared, union, out=union), shared


def _suppresses(boxes, others, classes, other_classes, threshold, border, inclusive):
    """Return which of `boxes` (..., n, 4) overlap which of `others` (..., m, 4) too much: (..., n, m) bool."""
    overlap, _ = box_overlaps(boxes.unsqueeze(-2), others.unsqueeze(-3), border)
    result = overlap >= threshold if inclusive else overlap > threshold
    return result if classes is None else result.logical_and_(classes.unsqueeze(-1) == other_classes.unsqueeze(-2))


def _packed(flags):
    """Return flags (..., n) as bytes (..., n / 8), the first flag in the lowest bit."""
    bits = torch.ones(_GROUP, dtype=torch.uint8, device=flags.device) << torch.arange(_GROUP, dtype=torch.uint8, device=flags.device)
    return (flags.unflatten(-1, (-1, _GROUP)) * bits).sum(-1, dtype=torch.uint8)


def _unpacked(words):
    """Return the lowest eight bits of words (..., n) as flags (..., 8 n)."""
    return ((words.unsqueeze(-1) >> torch.arange(_GROUP, dtype=words.dtype, device=words.device)) & 1).flatten(-2).bool()


def _removal_table(pairs):
    """Return which boxes of a block each group of eight removes, for each of the 256 patterns of boxes in it that are removed already.

    `pairs` (..., n, n) is True where a box suppresses a later one; the result is (..., groups, 256, groups) bytes. A table of all groups and
    patterns costs some fifty tensor operations, and turns eight sequential decisions into one lookup.
    """
    words = _packed(pairs).unflatten(-2, (-1, _GROUP))  # (..., groups, 8, groups)
    own = words.diagonal(dim1=-3, dim2=-1)  # (..., 8, groups): within the group
    removed = torch.arange(_PATTERNS, dtype=torch.uint8, device=pairs.device).expand(*own.shape[:-2], own.shape[-1], _PATTERNS)
    table = torch.zeros((*removed.shape, words.shape[-1]), dtype=torch.uint8, device=pairs.device)
    for j in range(_GROUP):
        alive = (removed & (1 << j)) == 0
        removed = removed | alive * own[..., j, :].unsqueeze(-1)
        table |= alive.unsqueeze(-1) * words[..., j, :].unsqueeze(-2)
    return table


def greedy_suppression(boxes: torch.Tensor, valid: torch.Tensor, threshold: float, classes: torch.Tensor | None = None, border: float = 0,
                       limit: int | None = None, inclusive: bool = False) -> torch.Tensor:
    """Return which boxes (B, n) stay when each one, best first, removes the later ones that overlap it too much.

    Parameters
    ----------
    boxes : (B, n, 4)
        Corners, sorted by falling score.
    valid : (B, n) bool
        Other boxes neither stay nor remove any.
    classes, border, limit, inclusive
        As for `boxes.greedy_suppression`; classes are (B, n).

    Notes
    -----
    The greedy choice is sequential. Boxes are taken in blocks of 512: a loop over groups of eight decides a block with two small tensor
    operations a group (`_removal_table`), then those that stay remove later boxes in one go. The cost, whatever the number of images, is
    n / 4 kernels for the loops and some 20 to 80 for each block. The overlaps of n² / 2 pairs are computed in chunks.
    """
    batch, count = valid.shape
    if not valid.numel():
        return valid.clone()
    images = per_chunk(_BLOCK * min(count, _BLOCK) * _BYTES_A_PAIR)
    if batch > images:
        parts = zip(boxes.split(images), valid.split(images), [None] * batch if classes is None else classes.split(images))
        return torch.cat([greedy_suppression(b, v, threshold, c, border, limit, inclusive) for b, v, c in parts])
    size = min(_BLOCK, -(-count // _GROUP) * _GROUP)
    blocks = -(-count // size)
    padding = blocks * size - count
    boxes, removed = F.pad(boxes, (0, 0, 0, padding)), F.pad(~valid, (0, padding), value=True)
    classes = None if classes is None else F.pad(classes, (0, padding))
    groups, together = size // _GROUP, per_chunk(batch * size * size * _BYTES_A_PAIR)
    stays = []
    for block in range(blocks):
        here = slice(block * size, (block + 1) * size)
        number = block % together
        if number == 0:
            several = slice(block * size, (block + together) * size)
            table, firsts = _tables(boxes[:, several], None if classes is None else classes[:, several], size, threshold, border, inclusive)
        # A word of a group: the table's row for the pattern in its lowest eight bits.
        words = firsts[:, number] | _packed(removed[:, here])
        for group in range(groups):
            words |= table.index_select(0, words[:, group])
        stay = ~_unpacked(words & (_PATTERNS - 1))
        stays.append(stay)
        for part in _slices((block + 1) * size, blocks * size, per_chunk(batch * size * _BYTES_A_PAIR)):
            pairs = _suppresses(boxes[:, here], boxes[:, part], None if classes is None else classes[:, here],
                                None if classes is None else classes[:, part], threshold, border, inclusive)
            removed[:, part] |= pairs.logical_and_(stay.unsqueeze(-1)).any(1)
    result = torch.cat(stays, 1)[:, :count]
    return result if limit is None else result & (result.cumsum(1) <= limit)


def _tables(boxes, classes, size, threshold, border, inclusive):
    """Return the removal tables of blocks of `size` boxes (B, blocks * size, 4) as rows, and each group's first row (B, blocks, groups)."""
    boxes, classes = boxes.unflatten(1, (-1, size)), None if classes is None else classes.unflatten(1, (-1, size))
    ordered = torch.ones(size, size, dtype=torch.bool, device=boxes.device).triu(1)
    pairs = _suppresses(boxes, boxes, classes, classes, threshold, border, inclusive).logical_and_(ordered)
    table = _removal_table(pairs).flatten(0, 3)
    firsts = torch.arange(len(table) // _PATTERNS, dtype=torch.int32, device=boxes.device).mul_(_PATTERNS)
    return table, firsts.reshape(*boxes.shape[:2], -1)


def _slices(start, end, size):
    return [slice(i, min(i + size, end)) for i in range(start, end, size)]


def flagged_first(flags: torch.Tensor) -> torch.Tensor:
    """Return the positions (B, n) of the boxes with a flag, in their order, then those of the others."""
    return flags.to(torch.uint8).sort(dim=1, descending=True, stable=True).indices


def best_first(scores: torch.Tensor, valid: torch.Tensor) -> torch.Tensor:
    """Return the positions (B, n) of the valid boxes by falling score, then those of the others; of equal scores the first comes first."""
    return torch.where(valid, scores, -torch.inf).sort(dim=1, descending=True, stable=True).indices


def surviving_boxes(rows: torch.Tensor, corners: torch.Tensor, overlap_thresh: float, valid_thresh: float, topk: int, score_index: int, id_index: int,
                    background_id: int, force_suppress: bool) -> torch.Tensor:
    """Return the numbers (B, n) of the boxes that box_nms keeps, best first, then -1. `rows` is (B, n, width), `corners` (B, n, 4)."""
    scores = rows[..., score_index]
    valid = scores > valid_thresh
    if id_index >= 0:
        valid &= rows[..., id_index] != background_id
    order = best_first(scores, valid)[:, :topk if topk > 0 else None]
    classes = rows[..., id_index].gather(1, order).long() if id_index >= 0 and not force_suppress else None
    best = corners.gather(1, order.unsqueeze(-1).expand(-1, -1, 4))
    stays = greedy_suppression(best, valid.gather(1, order), overlap_thresh, classes)
    stays, order = (t.gather(1, flagged_first(stays)) for t in (stays, order))
    return F.pad(torch.where(stays, order, -1), (0, rows.shape[1] - order.shape[1]), value=-1)


def greedy_matching(scores: torch.Tensor, least: float, steps: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Match rows and columns of matrices (B, rows, columns), the best pair first: (row, column, whether there is such a pair), each (B, steps).

    The loop has five tensor operations a step. `scores` is overwritten. A step whose best score is not above `least` is the last.
    """
    batch, rows, columns = scores.shape
    best, places = [], []
    for _ in range(steps):
        value, place = scores.flatten(1).max(1, keepdim=True)
        row, column = place // columns, place % columns
        scores.scatter_(1, row.unsqueeze(-1).expand(-1, 1, columns), -torch.inf)
        scores.scatter_(2, column.unsqueeze(-1).expand(-1, rows, 1), -torch.inf)
        best.append(value)
        places.append(place)
    place = torch.cat(places, 1)
    exists = (torch.cat(best, 1) > least).to(torch.uint8).cummin(1).values.bool()
    return place // columns, place % columns, exists


def matched(size: int, at: torch.Tensor, values: torch.Tensor, exists: torch.Tensor) -> torch.Tensor:
    """Return (B, size) with `values` at the positions `at` of existing pairs, and -1 elsewhere."""
    result = torch.full((len(at), size + 1), -1, dtype=values.dtype, device=at.device)
    return result.scatter_(1, torch.where(exists, at, size), values)[:, :size]


def match_pairs(scores: torch.Tensor, least: float, steps: int) -> tuple[torch.Tensor, ...]:
    """Return the column of each row and the row of each column by bipartite_matching, for matrices (B, rows, columns)."""
    batch, rows, columns = scores.shape
    if not (batch and steps):
        return tuple(torch.full((batch, size), -1, device=scores.device) for size in (rows, columns))
    row, column, exists = greedy_matching(scores, least, steps)
    return matched(rows, row, column, exists), matched(columns, column, row, exists)
