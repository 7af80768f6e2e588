"""Attention in which each element attends to a window around it (Longformer, Beltagy et al. 2020), whose memory is linear in the sequence's length.

An element attends to itself, the `w` elements on its left and, if `symmetric`, the `w` on its right; in head h they stand ``dilation[h]`` apart.
Shapes: B examples, L elements, H heads, D units, and K places in a window, ``2 * w + 1`` or, if not `symmetric`, ``w + 1``.
"""
import torch

from ...base import MXNetError
from ..registry import op
from ..shapes import unify


def _offsets(w, symmetric):
    return range(-w, w + 1 if symmetric else 1)


def _places(length, dilation, offset):
    """Return the positions (L, H) of one place of all windows, and a mask of those inside of the sequence."""
    where = torch.arange(length, device=dilation.device)[:, None] + offset * dilation.long()[None]
    return where.clamp(0, max(length - 1, 0)), (where >= 0) & (where < length)


def _shifted(data, dilation, offset):
    """Return the elements at one place of all windows, (B, L, H, D), with zeros outside of the sequence."""
    where, inside = _places(data.shape[1], dilation, offset)
    return data.gather(1, where[None, :, :, None].expand_as(data)) * inside[None, :, :, None]


def _require_shapes(operator, data, dilation):
    if len(data) != 4 or dilation is not None and -1 not in (data[2], *dilation) and tuple(dilation) != (data[2],):
        raise MXNetError(f"{operator}: an array of shape (batch, length, heads, units) and one dilation a head expected, received shapes "
                         f"{tuple(data)} and {dilation if dilation is None else tuple(dilation)}")


def _require_window(score, dilation, w, symmetric):
    _require_shapes("_contrib_sldwin_atten_mask_like", score, dilation)
    places = len(_offsets(w, symmetric))
    if score[3] not in (-1, places):
        raise MXNetError(f"_contrib_sldwin_atten_mask_like: windows have {places} places for w={w}, symmetric={symmetric}; received shape "
                         f"{tuple(score)}")


@op("_contrib_sldwin_atten_score", aliases=("_npx_sldwin_atten_score",), complete_rule="shape", compute_bound=True, amp=None)
def sldwin_atten_score(query, key, dilation, *, w: int, symmetric: bool = True):
    """The products (B, L, H, K) of each query with the keys in its window; `query` and `key` are (B, L, H, D), `dilation` (H,).

    Raises
    ------
    MXNetError
        If shapes do not fit.

    Example
    -------
    >>> x, one = mx.np.array([1, 2, 3]).reshape((1, 3, 1, 1)), mx.np.array([1], dtype='int32')
    >>> mx.npx.sldwin_atten_score(x, x, one, w=1, symmetric=True).reshape((3, 3))
    array([[0., 1., 2.],
           [2., 4., 6.],
           [6., 9., 0.]])
    """
    _require_shapes("_contrib_sldwin_atten_score", query.shape, dilation.shape)
    return torch.stack([(query * _shifted(key, dilation, i)).sum(-1) for i in _offsets(w, symmetric)], -1)


@op("_contrib_sldwin_atten_mask_like", aliases=("_npx_sldwin_atten_mask_like",), complete_rule="shape", no_gradient=True, amp=None)
def sldwin_atten_mask_like(score, dilation, valid_length, *, w: int, symmetric: bool = True):
    """1 where a score (B, L, H, K) is that of two elements among the first ``valid_length[b]`` of their example, 0 elsewhere.

    Raises
    ------
    MXNetError
        If shapes do not fit.

    Example
    -------
    >>> score, one = mx.np.zeros((1, 3, 1, 3)), mx.np.array([1], dtype='int32')
    >>> mx.npx.sldwin_atten_mask_like(score, one, mx.np.array([2], dtype='int32'), w=1, symmetric=True).reshape((3, 3))
    array([[0., 1., 1.],
           [1., 1., 0.],
           [0., 0., 0.]])
    """
    _require_window(score.shape, dilation.shape, w, symmetric)
    length = score.shape[1]
    limits = valid_length.long()[:, None, None]
    own = torch.arange(length, device=score.device)[None, :, None] < limits
    masks = []
    for i in _offsets(w, symmetric):
        where, inside = _places(length, dilation, i)
        masks.append(own & inside[None] & (where[None] < limits))
    return torch.stack(masks, -1).to(score.dtype)


@op("_contrib_sldwin_atten_context", aliases=("_npx_sldwin_atten_context",), complete_rule="shape", compute_bound=True, amp=None)
def sldwin_atten_context(score, value, dilation, *, w: int, symmetric: bool = True):
    """The sums (B, L, H, D) of the values in each window, weighted by `score` (B, L, H, K); `value` is (B, L, H, D), `dilation` (H,).

    Raises
    ------
    MXNetError
        If shapes do not fit.

    Example
    -------
    >>> x, one = mx.np.array([1, 2, 3]).reshape((1, 3, 1, 1)), mx.np.array([1], dtype='int32')
    >>> mx.npx.sldwin_atten_context(mx.np.ones((1, 3, 1, 2)), x, one, w=1, symmetric=False).reshape(-1)
    array([1., 3., 5.])
    """
    _require_shapes("_contrib_sldwin_atten_context", value.shape, dilation.shape)
    out = torch.zeros_like(value)
    for k, i in enumerate(_offsets(w, symmetric)):
        out = out + score[..., k:k + 1] * _shifted(value, dilation, i)
    return out


@sldwin_atten_score.shape_rule
def _(in_shapes, out_shapes, *, w, symmetric):
    query, key, dilation = in_shapes
    query = key = unify(query, key)
    if query is not None:
        _require_shapes("_contrib_sldwin_atten_score", query, dilation)
        dilation = unify(dilation, query[2:3])
        out_shapes = [unify(out_shapes[0], (*query[:3], len(_offsets(w, symmetric))))]
    return [query, key, dilation], out_shapes


@sldwin_atten_mask_like.shape_rule
def _(in_shapes, out_shapes, *, w, symmetric):
    score, dilation, valid_length = in_shapes
    if score is not None:
        _require_window(score, dilation, w, symmetric)
        dilation, valid_length = unify(dilation, score[2:3]), unify(valid_length, score[:1])
    return [score, dilation, valid_length], [unify(out_shapes[0], score)]


@sldwin_atten_context.shape_rule
def _(in_shapes, out_shapes, *, w, symmetric):
    score, value, dilation = in_shapes
    value = unify(value, out_shapes[0])
    if value is not None:
        _require_shapes("_contrib_sldwin_atten_context", value, dilation)
        score, dilation = unify(score, (*value[:3], len(_offsets(w, symmetric)))), unify(dilation, value[2:3])
    return [score, value, dilation], [value]
