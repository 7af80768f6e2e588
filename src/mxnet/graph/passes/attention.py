"""The attention pass for torch: the product of queries and keys, the softmax over it, dropout and the product with the values become one
operator, which computes the scores block by block and saves none of them for its gradient.

One layer's attention, forward and backward, on one core of an AMD EPYC (12 heads of size 64; milliseconds, MiB saved for the gradient):

============  =======  =============  ============  =========================
batch x T     dropout  one by one     here          torch's fused attention
============  =======  =============  ============  =========================
2 x 512       0.1      91.6, 75       68.3, 6       115.2, 78
2 x 512       0        77.5, 51       52.1, 0       72.3, 3
8 x 128       0.1      26.6, 21       27.4, 2       31.7, 24
8 x 128       0        23.0, 15       23.3, 0       21.8, 3
============  =======  =============  ============  =========================

With dropout a byte for each score is saved, since MXNet draws for all of them before the product (these times are from before that).

Torch's `scaled_dot_product_attention` is not called on a CPU: with dropout it saves all scores. It takes no lengths, and its gradient
cannot be differentiated. On a GPU, where its kernels keep the scores on the chip, it is called for attention without dropout and lengths.
"""
import functools
import math
import typing
from collections.abc import Callable, Iterator, Sequence

import torch
from torch import fx

from ...kernels.gemm import tensor_cores
from ...kernels.gemm.matmul import batched
from ...ops import differentiation, random_state
from ...ops.elemwise.unary import MIXED, amp_cast, identity
from ...ops.grad_mode import enable_grad
from ...ops.linalg import batch_dot
from ...ops.nn.attention import (
    interleaved_matmul_encdec_qk,
    interleaved_matmul_encdec_valatt,
    interleaved_matmul_selfatt_qk,
    interleaved_matmul_selfatt_valatt,
)
from ...ops.nn.dropout import chance_and_scale, dropout
from ...ops.nn.softmax import softmax
from ...ops.registry import Operator
from ..instrumentation import record_origins
from ..program import FxNode, GraphModule, attributes_of, calls, is_stochastic, operator_of

BLOCK = 1 << 18  # scores of a block, which stay in a core's cache
_WORTHWHILE = 1 << 16  # least number of scores: below it cutting blocks takes longer than it saves
_COUNTS = {1: (3,), 2: (1, 2)}  # by the number of sources: how many of queries, keys and values are interleaved in each
# Products with the values, and the product of queries and keys that belongs to each.
_MIXES = {interleaved_matmul_selfatt_valatt: interleaved_matmul_selfatt_qk, interleaved_matmul_encdec_valatt: interleaved_matmul_encdec_qk,
          batch_dot: batch_dot}


class _Attention(typing.NamedTuple):
    """The parameters of a matched attention subgraph.

    Attributes
    ----------
    sources : tuple of fx.Node
        Queries, keys and values if `heads` is None; else one or two arrays in which they are interleaved.
    heads : int or None
    transposed : bool
        True if the keys of `batch_dot` are (B, S, size), not (B, size, S).
    scale : float
        The factor of the scores.
    cast, value_cast : torch.dtype or None
        The type that mixed precision casts scores and values to.
    mask, length : fx.Node or None
        The array that is added to the scores; the number of valid scores in each row.
    p : float
        The fraction that is dropped; 0 outside training.
    """

    sources: tuple
    heads: typing.Optional[int]
    transposed: bool
    scale: float
    cast: typing.Optional[torch.dtype]
    value_cast: typing.Optional[torch.dtype]
    mask: typing.Optional[FxNode]
    length: typing.Optional[FxNode]
    p: float

    def split(self, *sources: torch.Tensor) -> Sequence[torch.Tensor]:
        """Return views of queries (B, T, size), keys (B, S, size) and values (B, S, size of values)."""
        if self.heads is None:
            queries, keys, values = (s.flatten(0, -3) for s in sources)
            return queries, keys if self.transposed else keys.mT, values
        return [part for s, count in zip(sources, _COUNTS[len(sources)]) for part in _parts(s, self.heads, count)]

    def shapes(self, *sources: torch.Tensor) -> list[tuple[int, ...]]:
        """Return the shapes of the results of `split`, which copies where memory is in another order."""
        if self.heads is None:
            queries, keys, values = ((math.prod(s.shape[:-2]), *s.shape[-2:]) for s in sources)
            return [queries, keys if self.transposed else (keys[0], keys[2], keys[1]), values]
        return [(s.shape[1] * self.heads, s.shape[0], s.shape[2] // (self.heads * count))
                for s, count in zip(sources, _COUNTS[len(sources)]) for _ in range(count)]

    def factor(self, size: int) -> float:
        """Return the factor of queries of this size."""
        return self.scale if self.heads is None else self.scale / math.sqrt(size)

    def join(self, out: torch.Tensor, sources: Sequence[torch.Tensor]) -> torch.Tensor:
        """Return the result (B, T, size of values) in the shape of the replaced operator's."""
        if self.heads is None:
            return out.view(*sources[0].shape[:-1], out.shape[-1])
        return out.transpose(0, 1).reshape(out.shape[1], sources[0].shape[1], -1)


def _parts(interleaved: torch.Tensor, heads: int, count: int) -> list[torch.Tensor]:
    length, batch, features = interleaved.shape
    return [p.transpose(0, 1) for p in interleaved.reshape(length, batch * heads, count, features // (heads * count)).unbind(2)]


def apply(module: fx.GraphModule) -> list[str]:
    """Fuse attention subgraphs; return the lines of a report."""
    graph, count = module.graph, 0
    for node in list(graph.nodes):
        match = _match(node) if calls(node, *_MIXES) else None
        if match is None:
            continue
        plan, inside = match
        outside = list(dict.fromkeys(a for n in inside for a in n.all_input_nodes if a not in inside))
        with graph.inserting_before(node):
            fused = graph.call_function(_function(plan, _unfused(inside, outside), outside), tuple(outside))
        record_origins(fused, *inside)
        node.replace_all_uses_with(fused)
        for gone in inside[::-1]:
            if not gone.users:
                graph.erase_node(gone)
        count += 1
    return [f"fusion: {count} x attention"] if count else []


def _match(mix: FxNode) -> tuple[_Attention, list[FxNode]] | None:
    """Return the attention that ends with `mix`, the product with the values, and its nodes, in order; None if there is none."""
    mixing, product = attributes_of(mix), _MIXES[operator_of(mix)]
    if calls(mix, batch_dot):
        if mixing["transpose_a"] or mixing["transpose_b"]:
            return None
        node, values = mix.args
    else:
        values, node = mix.args
    inside = [mix]
    dropped: float | None = 0.0
    while calls(node, dropout, identity):  # a Dropout of 0 in Gluon is a copy
        if calls(node, dropout) and dropped == 0:
            dropped = _dropped(node)
        elif calls(node, dropout):
            return None
        inside.append(node)
        node = node.args[0]
    if dropped is None or not calls(node, softmax):
        return None
    attributes = attributes_of(node)
    if attributes["axis"] != -1 or attributes["dtype"] is not None or attributes["temperature"] not in (None, 1):
        return None
    inside.append(node)
    length = node.args[1] if len(node.args) > 1 else None
    scores = _match_scores(node.args[0], product)
    if scores is None:
        return None
    node, scale, cast, mask, nodes = scores
    inside += nodes
    inside.append(node)
    scoring = attributes_of(node)
    if any(len(n.users) != 1 for n in inside[1:]) or scoring.get("transpose_a") or mixing.get("heads") != scoring.get("heads"):
        return None
    value_cast = None
    if calls(values, amp_cast):
        value_cast = values.kwargs["dtype"]
        inside.append(values)
        values = values.args[0]
    heads = scoring.get("heads")
    sources = (*node.args, values) if heads is None else node.args
    if heads is not None and values is not sources[-1]:
        return None
    order = {n: i for i, n in enumerate(mix.graph.nodes)}
    if dropped:
        # Random numbers are drawn at the place of the fused node, which must keep the order of draws.
        first = min(order[n] for n in inside if calls(n, dropout))
        if any(first < order[n] < order[mix] and n not in inside and is_stochastic(n) for n in mix.graph.nodes):
            return None
    plan = _Attention(sources, heads, bool(scoring.get("transpose_b")), scale, cast, value_cast, mask, length, dropped)
    return plan, sorted(inside, key=order.__getitem__)


def _match_scores(node: typing.Any, product: Operator) -> tuple[FxNode, float, typing.Any, typing.Any, list[FxNode]] | None:
    """Return the product of queries and keys below a softmax, its factor, its cast, the mask, and the nodes between; None for anything else."""
    mask, cast, scale, between = None, None, 1.0, []
    while not calls(node, product):
        between.append(node)
        if calls(node, identity):
            pass
        elif calls(node, amp_cast) and cast is None and mask is None:
            cast = node.kwargs["dtype"]
        elif _computes("add", node, 2) and mask is None and scale == 1:  # a factor behind the addition would apply to the mask
            scored = [_scores(a, product) for a in node.args]
            if sum(scored) != 1:
                return None
            mask = node.args[scored.index(False)]
            node = node.args[scored.index(True)]
            continue
        elif _computes("multiply", node, 1):
            scale *= attributes_of(node)["scalar"]
        elif _computes("divide", node, 1) and attributes_of(node)["scalar"]:
            scale /= attributes_of(node)["scalar"]
        else:
            return None
        node = node.args[0]
    return node, scale, cast, mask, between


def _scores(node: typing.Any, product: Operator) -> bool:
    """Return True if a term of a sum is computed from `product`."""
    while calls(node, amp_cast) or _computes("multiply", node, 1) or _computes("divide", node, 1):
        node = node.args[0]
    return calls(node, product)


def _computes(arithmetic: str, node: typing.Any, count: int) -> bool:
    """Return True if a node computes this operation on `count` arrays; with one array the other operand is a number."""
    op = operator_of(node) if isinstance(node, fx.Node) else None
    return op is not None and op.arithmetic == arithmetic and op.num_inputs == count


def _dropped(node: FxNode) -> float | None:
    """Return the fraction that a Dropout drops, or None for modes that the blocks do not support."""
    attributes = attributes_of(node)
    p = attributes["p"]
    if attributes["mode"] != "training" or attributes["axes"]:
        return None
    if not attributes["training"] or p == 0:
        return 0.0
    return p if 0.01 <= p <= 0.99 else None  # beyond, 16 random bits are too coarse


def _unfused(inside: Sequence[FxNode], outside: Sequence[FxNode]) -> Callable:
    """Return a function that computes the replaced nodes one by one."""
    graph, copies = fx.Graph(), {}
    for node in outside:
        copies[node] = graph.placeholder(node.name)
    for node in inside:
        copies[node] = graph.node_copy(node, copies.__getitem__)
    graph.output(copies[inside[-1]])
    return GraphModule(torch.nn.Module(), graph).forward


def _function(plan: _Attention, unfused: Callable, outside: Sequence[FxNode]) -> Callable:
    """Return the function of the fused node: by blocks if they suit, else operator by operator, which also raises errors of wrong inputs."""
    places = [outside.index(s) for s in plan.sources]
    mask_at, length_at = (None if n is None else outside.index(n) for n in (plan.mask, plan.length))

    def attention(*inputs: torch.Tensor) -> torch.Tensor:
        sources = [inputs[i] for i in places]
        mask = None if mask_at is None else inputs[mask_at]
        length = None if length_at is None else inputs[length_at]
        if _on_gpu(sources) and _suits_torch(plan, sources, mask, length):
            if torch.is_grad_enabled() and any(s.requires_grad for s in sources):
                out: torch.Tensor = _OfTorch.apply(plan, mask, functools.partial(unfused, *inputs), *sources)
                return out
            return _by_torch(plan, mask, sources)
        if not _suits(plan, sources, mask, length):
            return unfused(*inputs)
        return _Blocks.apply(plan, mask, length, _keep_mask(plan, sources) if plan.p else None, *sources)

    return attention


def _fit_together(plan: _Attention, sources: Sequence[torch.Tensor]) -> bool:
    """Return True if the shapes of queries, keys and values are consistent."""
    if plan.heads is not None and any(
            s.dim() != 3 or s.shape[2] % (plan.heads * count) for s, count in zip(sources, _COUNTS[len(sources)])):
        return False
    if plan.heads is None and (sources[0].dim() < 3 or any(s.shape[:-2] != sources[0].shape[:-2] for s in sources)):
        return False
    queries, keys, values = plan.shapes(*sources)
    return keys[0] == queries[0] and keys[2] == queries[2] and keys[:2] == values[:2]


def _suits(plan: _Attention, sources: Sequence[torch.Tensor], mask: torch.Tensor | None, length: torch.Tensor | None) -> bool:
    """Return True if the blocks apply: consistent shapes and types, no gradient for the mask, and enough scores."""
    if any(s.device.type != "cpu" or not s.is_floating_point() for s in sources) or not _fit_together(plan, sources):
        return False
    (count, rows, size), keys, values = plan.shapes(*sources)
    queries_type, keys_type, values_type = _types(sources)
    if queries_type is not keys_type:
        return False
    if count * rows * keys[1] < _WORTHWHILE or not size or not values[2]:
        return False
    wide = _cast(queries_type, plan.cast)
    if _cast(values_type, plan.value_cast) is not wide:
        return False
    scores = (*(sources[0].shape[:-2] if plan.heads is None else (count,)), rows, keys[1])
    if mask is not None and (mask.dtype is not wide or mask.requires_grad or len(scores) != 3 or mask.dim() > 3
                             or any(m not in (1, s) for m, s in zip(mask.shape[::-1], scores[::-1]))):
        return False
    return length is None or not length.is_floating_point() and length.shape == scores[:-1]


def _types(sources: Sequence[torch.Tensor]) -> list[torch.dtype]:
    """Return the types of queries, keys and values."""
    return [s.dtype for s, count in zip(sources, _COUNTS.get(len(sources), (1, 1, 1))) for _ in range(count)]


def _on_gpu(sources: Sequence[torch.Tensor]) -> bool:
    return all(s.is_cuda for s in sources)


def _suits_torch(plan: _Attention, sources: Sequence[torch.Tensor], mask: torch.Tensor | None, length: torch.Tensor | None) -> bool:
    """Return True if torch's attention computes the same on a GPU."""
    if plan.p or length is not None or plan.cast is not None or plan.value_cast is not None or not _fit_together(plan, sources):
        return False
    queries_type, keys_type, values_type = _types(sources)
    if not queries_type is keys_type is values_type or queries_type not in (torch.float16, torch.bfloat16, torch.float32):
        return False
    if queries_type is torch.float32 and not tensor_cores.suits(*sources):  # its kernels multiply as TF32
        return False
    queries, keys, _ = plan.shapes(*sources)
    scores = queries[0], queries[1], keys[1]
    return mask is None or (mask.dtype is queries_type and not mask.requires_grad and mask.dim() == 3
                            and all(m in (1, s) for m, s in zip(mask.shape, scores)))


def _by_torch(plan: _Attention, mask: torch.Tensor | None, sources: Sequence[torch.Tensor]) -> torch.Tensor:
    queries, keys, values = _for_torch(plan, sources)
    if mask is not None:
        batch, heads = queries.shape[:2]
        mask = mask.expand(batch * heads, queries.shape[2], keys.shape[2]).unflatten(0, (batch, heads))
    out = torch.nn.functional.scaled_dot_product_attention(queries, keys, values, mask, scale=plan.factor(queries.shape[-1]))
    if plan.heads is None:
        return plan.join(out.squeeze(0), sources)
    return out.permute(2, 0, 1, 3).flatten(2)  # a view, as torch's kernels lay it out by batch, row and head


def _for_torch(plan: _Attention, sources: Sequence[torch.Tensor]) -> Sequence[torch.Tensor]:
    """Return queries, keys and values as views (N, heads, T, size), whose gradients are joined by one copy for each source.

    Sources (T, N, features) are often (N, T, features) in memory, where batch and heads do not join without a copy.
    """
    if plan.heads is None:
        return [part.unsqueeze(0) for part in plan.split(*sources)]
    parts: list[torch.Tensor] = []
    for source, count in zip(sources, _COUNTS[len(sources)]):
        first = 1 if source.stride(1) > source.stride(0) else 0  # the axis that is the first in memory, also of the gradient
        split = source.transpose(0, first).unflatten(2, (plan.heads, count, -1)).unbind(3)
        parts += [part.transpose(0, 1 - first).transpose(1, 2) for part in split]
    return parts


class _OfTorch(torch.autograd.Function):
    """Torch's attention with a differentiable gradient, which is then computed from the separate operators."""

    @staticmethod
    def forward(ctx: typing.Any, plan: _Attention, mask: torch.Tensor | None, unfused: Callable[[], torch.Tensor],
                *sources: torch.Tensor) -> torch.Tensor:
        leaves = [s.detach().requires_grad_(s.requires_grad) for s in sources]
        with enable_grad():
            out = _by_torch(plan, mask, leaves)
        ctx.inner, ctx.unfused = (leaves, out), unfused
        ctx.save_for_backward(*sources)
        return out.detach()

    @staticmethod
    def backward(ctx: typing.Any, dout: torch.Tensor) -> tuple:
        leaves, out = ctx.inner
        if torch.is_grad_enabled():
            leaves, out = ctx.saved_tensors, ctx.unfused()
        needed = [t for t, wanted in zip(leaves, ctx.needs_input_grad[3:]) if wanted]
        gradients = iter(differentiation.gradients([out], needed, [dout], retain_graph=True, create_graph=torch.is_grad_enabled()))
        return None, None, None, *(next(gradients) if wanted else None for wanted in ctx.needs_input_grad[3:])


def _cast(dtype: torch.dtype, target: torch.dtype | None) -> torch.dtype:
    return target if target is not None and dtype in MIXED else dtype


class _Blocks(torch.autograd.Function):
    """Attention block by block. `keep_mask` has one byte for each weight: 1 if dropout keeps it."""

    @staticmethod
    def forward(ctx: typing.Any, plan: _Attention, mask: torch.Tensor | None, length: torch.Tensor | None, keep_mask: torch.Tensor | None,
                *sources: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(mask, length, *sources)
        ctx.plan, ctx.keep_mask = plan, keep_mask
        return _forward(plan, mask, length, keep_mask, sources)

    @staticmethod
    def backward(ctx: typing.Any, dout: torch.Tensor) -> tuple:
        mask, length, *sources = ctx.saved_tensors
        if torch.is_grad_enabled():  # a gradient of a gradient: torch records the forward computation
            views = [s.view_as(s) for s in sources]  # one array may be several of the sources
            needed = [v for v in views if v.requires_grad]
            gradients = iter(torch.autograd.grad(_forward(ctx.plan, mask, length, ctx.keep_mask, views), needed, dout, create_graph=True))
            return None, None, None, None, *(next(gradients) if v.requires_grad else None for v in views)
        return None, None, None, None, *_backward(ctx.plan, mask, length, ctx.keep_mask, sources, dout)


def _forward(plan: _Attention, mask: torch.Tensor | None, length: torch.Tensor | None, keep_mask: torch.Tensor | None,
             sources: Sequence[torch.Tensor]) -> torch.Tensor:
    queries, keys, values = plan.split(*sources)
    keep = _dropout_scaling(plan.p, keep_mask)
    blocks: dict[int, list[torch.Tensor]] = {}
    for heads, rows, block in _blocks(plan, queries, keys, values, mask, length):
        scales = keep(heads, rows, block.weights)
        weights = block.weights if scales is None else block.weights * scales
        blocks.setdefault(heads.start, []).append(batched(weights, block.values))
    return plan.join(torch.cat([torch.cat(parts, 1) if len(parts) > 1 else parts[0] for parts in blocks.values()]), sources)


def _backward(plan: _Attention, mask: torch.Tensor | None, length: torch.Tensor | None, keep_mask: torch.Tensor | None,
              sources: Sequence[torch.Tensor], dout: torch.Tensor) -> list[torch.Tensor]:
    """Return the gradients of the sources, from recomputed weights."""
    grads = [torch.empty(s.shape, dtype=s.dtype) for s in sources]
    queries, keys, values = plan.split(*sources)
    dqueries, dkeys, dvalues = plan.split(*grads)
    dout = dout.flatten(0, -3) if plan.heads is None else dout.reshape(queries.shape[1], queries.shape[0], -1).transpose(0, 1)
    keep, factor = _dropout_scaling(plan.p, keep_mask), plan.factor(queries.shape[2])
    for heads, rows, block in _blocks(plan, queries, keys, values, mask, length):
        above, weights = dout[heads, rows].contiguous(), block.weights
        dweights, scales = batched(above, block.values.mT), keep(heads, rows, weights)
        dscores = torch._softmax_backward_data(dweights if scales is None else dweights.mul_(scales), weights, -1, weights.dtype).to(queries.dtype)
        dqueries[heads, rows] = batched(dscores, block.keys).mul_(factor)
        _accumulate(dkeys[heads], rows, batched(dscores.mT, block.queries))
        _accumulate(dvalues[heads], rows, batched((weights if scales is None else scales.mul_(weights)).mT, above))
    return grads


def _accumulate(total: torch.Tensor, rows: slice, part: torch.Tensor) -> None:
    """Write the part of the first rows, and add the parts of later ones."""
    if rows.start:
        total += part
    else:
        total.copy_(part)


class _Block(typing.NamedTuple):
    """A block of heads and rows of scores: scaled queries, keys, values, and the weights before dropout."""

    queries: torch.Tensor
    keys: torch.Tensor
    values: torch.Tensor
    weights: torch.Tensor


def _blocks(plan: _Attention, queries: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, mask: torch.Tensor | None,
            length: torch.Tensor | None) -> Iterator[tuple[slice, slice, _Block]]:
    """Yield slices of heads and rows, and their `_Block`."""
    count, height, size = queries.shape
    width = keys.shape[1]
    wide, factor = _cast(queries.dtype, plan.cast), plan.factor(size)
    heads = max(1, BLOCK // (height * width))
    # Half precision loses too much where the gradients of keys are summed over blocks of rows.
    step = height if queries.dtype.itemsize < 4 else min(height, max(1, BLOCK // width))
    mask = None if mask is None else mask.expand(count, height, width)
    length = None if length is None else length.reshape(count, height, 1)
    for first in range(0, count, heads):
        part = slice(first, min(first + heads, count))
        # Products of views with gaps are slow.
        k, v = keys[part].contiguous(), values[part].to(wide).contiguous()
        for top in range(0, height, step):
            rows = slice(top, min(top + step, height))
            q = (queries[part, rows] * factor).contiguous()
            scores = batched(q, k.mT).to(wide)
            if mask is not None:
                scores = scores + mask[part, rows]
            yield part, rows, _Block(q, k, v, _softmax(scores, None if length is None else length[part, rows]))


def _softmax(scores: torch.Tensor, length: torch.Tensor | None) -> torch.Tensor:
    """Return the softmax over the first `length` (..., 1) scores of each row; the other weights are 0."""
    if length is None:
        return torch.softmax(scores, -1)
    # Multiplying takes a tenth of the time of `masked_fill`.
    reached = torch.lt(torch.arange(scores.shape[-1]), length, out=torch.empty_like(scores, requires_grad=False))
    return torch.softmax(torch.add(scores, reached - 1, alpha=torch.finfo(scores.dtype).max / 2), -1) * reached


def _keep_mask(plan: _Attention, sources: Sequence[torch.Tensor]) -> torch.Tensor:
    """Return the mask of the weights that dropout keeps, drawn in the operator's order."""
    queries, keys, _ = plan.split(*(s.detach() for s in sources))
    wide = _cast(queries.dtype, plan.cast) in (torch.float16, torch.float64)
    shape = queries.shape[0], queries.shape[1], keys.shape[1]
    return random_state.bank().bernoulli(math.prod(shape), torch.uint8, chance_and_scale(plan.p)[0], wide=wide).view(shape)


def _dropout_scaling(p: float, keep_mask: torch.Tensor | None) -> Callable[[slice, slice, torch.Tensor], torch.Tensor | None]:
    """Return a function from a block of weights to dropout's factors; it returns None if nothing is dropped."""
    if keep_mask is None:
        return lambda heads, rows, weights: None
    scale = chance_and_scale(p)[1]
    return lambda heads, rows, weights: keep_mask[heads, rows].to(weights.dtype).mul_(scale)
