"""Shape and type inference over a graph, forwards and backwards until nothing changes."""
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import torch

from .. import util
from ..base import MXNetError
from ..ops import dtypes, failures
from ..ops.grad_mode import no_grad
from ..ops.registry import Operator
from ..ops.schema import to_shape
from ..ops.shapes import known, unify
from .node import Entry, Node, topological

Partial: TypeAlias = tuple[int, ...] | None  # a shape as far as it is known: -1 for a size that is not, None where nothing is


def from_user(shape: Sequence[int] | None) -> Partial:
    """Convert a user's shape to a partial one: None, or with -1 for unknown sizes (0 in MXNet's own convention)."""
    if shape is None:
        return None
    sizes = tuple(int(s) for s in shape)
    if util.is_np_shape():
        return sizes
    return tuple(s if s > 0 else -1 for s in sizes) or None


def to_user(shape: Partial) -> Partial:
    """Convert a partial shape to the form that users see."""
    if util.is_np_shape():
        return shape
    return () if shape is None else tuple(s if s >= 0 else 0 for s in shape)


def infer_shapes(outputs: Sequence[Entry], given: Mapping[str, Partial], results: Sequence[Partial] | None = None,
                 probe_operators: bool = False) -> tuple[dict[tuple[int, int], Partial], list[Node]]:
    """Return the shapes of all entries of the graph.

    Parameters
    ----------
    outputs : list of (Node, int)
    given : dict of str to shape
        Partial shapes of variables, by name.
    results : list of shape, optional
        The known shapes of the outputs.
    probe_operators : bool
        Infer as many sizes as possible where some are unknown: `probe` operators without a shape rule for them.

    Returns
    -------
    dict of (id of node, output) to partial shape, and the nodes in order.
    """
    nodes = topological(outputs)
    shapes: dict[tuple[int, int], Partial] = {}
    for node in nodes:
        if node.op is None:
            shape = given.get(node.name)
            if shape is None and "__shape__" in node.attrs:
                try:
                    shape = from_user(to_shape(node.attrs["__shape__"]))
                except (ValueError, TypeError, OverflowError):
                    raise MXNetError(f"variable '{node.name}': a shape is a tuple of sizes, received {node.attrs['__shape__']!r:.80}") from None
            shapes[id(node), 0] = shape
        else:
            for i in range(node.num_outputs()):
                shapes[id(node), i] = None
    for (node, i), shape in zip(outputs, results or ()):
        shapes[id(node), i] = unify(shapes[id(node), i], shape)
    operators = [n for n in nodes if n.op is not None]
    finished: set[int] = set()
    probed: dict[int, list[Partial]] | None = {} if probe_operators else None
    for attempt in range(2 * len(operators) + 2):
        changed = False
        for node in operators if attempt % 2 == 0 else reversed(operators):
            if id(node) not in finished:
                changed |= infer_node(node, shapes, finished, probed)
        if not changed and attempt % 2 and not _close(operators, shapes):
            break
    return shapes, nodes


def _close(operators: Iterable[Node], shapes: dict[tuple[int, int], Partial]) -> bool:
    """Give a source whose shape was not inferred its own shape; return True if there was such a source."""
    for node in operators:
        if shapes[id(node), 0] is None and open_shape(node):
            try:
                outputs = run_on_meta(node.op, [], node.parsed()) or ()
            except Exception as error:
                raise _failed(node, [], error) from error
            for i, shape in enumerate(outputs):
                shapes[id(node), i] = shape
            return shapes[id(node), 0] is not None
    return False


def infer_node(node: Node, shapes: dict[tuple[int, int], Partial], finished: set[int], probed: dict[int, list[Partial]] | None = None) -> bool:
    """Infer shapes of the inputs and outputs of one node, all of which have an entry; return True if a shape changed.

    With `probed` (the input shapes for which a node was probed, by its id) a node whose inputs are known in part is probed.
    """
    inputs = [(id(n), i) for n, i in node.inputs]
    outputs = [(id(node), i) for i in range(node.num_outputs())]
    before_in, before_out = [shapes[e] for e in inputs], [shapes[e] for e in outputs]
    op = node.op
    try:
        ins, outs = list(before_in), list(before_out)
        if op.shape_inference is not None:
            new_ins, new_outs = op.shape_inference(ins, outs, **op.with_defaults(node.parsed()))
            ins = [unify(a, b) for a, b in zip(ins, _padded(new_ins, len(ins)))]
            outs = [unify(a, b) for a, b in zip(outs, _padded(new_outs, len(outs)))]
        # A variable whose shape is not needed may stay unknown; an operator's own inputs may not.
        if all(known(s) for s in ins) and (ins or op.shape_inference is None or all(known(s) for s in outs)):
            # A source's own attribute may leave sizes open that its users decide; then there is nothing to run.
            # Where the rule is complete, nothing runs on meta tensors, for which torch imports its compilers: 70 MB, and most of a second.
            ruled = op.complete_rule and all(known(s) for s in outs)
            results = None if ruled or not ins and open_shape(node) else run_on_meta(op, ins, node.parsed())
            if results is not None:
                outs = [unify(a, b) for a, b in zip(outs, results)]
            if all(known(s) for s in outs):
                finished.add(id(node))
        elif probed is not None and ins and None not in ins and probed.get(id(node)) != ins and not (op.complete_rule and _passes_unknown(ins, outs)):
            probed[id(node)] = ins
            outs = [unify(a, b) for a, b in zip(outs, probe(op, ins, node.parsed(), outs))]
    except Exception as error:
        raise _failed(node, before_in, error) from error
    for entry, shape in zip(inputs + outputs, ins + outs):
        shapes[entry] = shape
    return ins != before_in or outs != before_out


def _passes_unknown(ins: Sequence[Partial], outs: Sequence[Partial]) -> bool:
    """Return True if a rule is as complete as it can be: outputs have no more unknown sizes than inputs, or it leaves an output's shape open."""
    return None in outs or sum(s < 0 for shape in outs for s in shape or ()) <= sum(s < 0 for shape in ins for s in shape or ())


def _failed(node: Node, shapes: Sequence[Partial], error: Exception) -> MXNetError:
    reason = failures.reason(node.op, error, shapes, [None] * len(shapes), node.parsed())
    seen = ", ".join(f"{n}: {to_user(s) if s is not None else 'unknown'}" for n, s in zip(node.input_names(), shapes))
    return MXNetError(f"Error in operator {node.name} ({node.op.name}): {reason} [{seen}]")


def check_shapes(nodes: Iterable[Node], given: Mapping[str, Partial]) -> dict[tuple[int, int], Partial]:
    """Check with the operators' shape rules only that arrays of the given shapes may go through a graph.

    Returns the shapes by (id of node, output). Outputs of an operator without a rule for them stay unknown.
    A program's own rule (`Custom`) is called only if the shapes of all inputs are known.

    Raises
    ------
    MXNetError
        If a rule contradicts a shape.
    """
    shapes: dict[tuple[int, int], Partial] = {}
    for node in nodes:
        op = node.op
        if op is None:
            shapes[id(node), 0] = given.get(node.name)
            continue
        before = [shapes[id(n), i] for n, i in node.inputs]
        outs: list[Partial] = [None] * node.num_outputs()
        if op.shape_inference is not None and (any if op.partial_shapes else all)(s is not None for s in before):
            try:
                ins, outs = op.shape_inference(list(before), outs, **op.with_defaults(node.parsed()))
                for a, b in zip(before, _padded(ins, len(before))):
                    unify(a, b)
            except MXNetError as error:
                raise _failed(node, before, error) from error
        for i, shape in enumerate(_padded(outs, node.num_outputs())):
            shapes[id(node), i] = shape if known(shape) else None
    return shapes


def open_shape(node: Node) -> bool:
    """True for a source of arrays, such as ``zeros((0, 10))``, some of whose sizes follow from its uses."""
    if node.op is not None and node.op.leaves_size_open:
        return node.op.holds("leaves_size_open", node.op.with_defaults(node.parsed()))
    if node.op is None or node.inputs or util.is_np_shape() or "shape" not in node.op.attributes:
        return False
    shape = node.parsed().get("shape")
    return not shape or any(s is not None and s <= 0 for s in shape)


def _padded(shapes: Sequence, n: int) -> list:
    return list(shapes)[:n] + [None] * (n - len(shapes))


def run_on_meta(op: Operator, in_shapes: Sequence, parsed: Mapping[str, Any],
                in_types: Sequence[torch.dtype | None] | None = None) -> list[tuple[int, ...]] | None:
    """Return the output shapes of an operator for known input shapes, from running it without data; None where it needs the data."""
    types = in_types or [torch.float32] * len(in_shapes)
    tensors = [torch.empty(s, dtype=t or torch.float32, device="meta") for s, t in zip(in_shapes, types)]
    kwargs = dict(parsed)
    if op.wants_device:
        kwargs[op.wants_device] = torch.device("meta")
    if op.wants_training:
        kwargs[op.wants_training] = False
    try:
        with no_grad():
            result = op.raw(*tensors, **kwargs)
    except NotImplementedError:
        return None
    results = (result,) if isinstance(result, torch.Tensor) else result
    return [tuple(r.shape) for r in results]


# Sizes that stand for unknown ones: small ones, and such as many numbers divide. Where several are unknown, also sizes that differ.
_SIZES = ((1,), (2,), (3,), (12,), (60,))
_DIFFERENT_SIZES = ((2, 3), (3, 2), (1, 12), (60, 12))


def probe(op: Operator, in_shapes: Sequence, parsed: Mapping[str, Any], out_shapes: Sequence[Partial]) -> Sequence[Partial]:
    """Infer output shapes from input shapes with unknown sizes, by running the operator without data on several sizes in their place.

    A size of an output is known if it is the same in all runs that succeed. If these don't have two values of each unknown size, `out_shapes` are
    returned.
    """
    if all(known(s) for s in out_shapes):
        return out_shapes
    unknown = sum(size < 0 for shape in in_shapes for size in shape)
    results, tried = [], []
    for trial in _SIZES if unknown == 1 else _SIZES + _DIFFERENT_SIZES:
        values = (trial * unknown)[:unknown]
        sizes = iter(values)
        try:
            result = run_on_meta(op, [tuple(size if size >= 0 else next(sizes) for size in shape) for shape in in_shapes], parsed)
        except Exception:  # the operator refuses these sizes
            continue
        if result is None:  # it needs data
            return out_shapes
        results.append(result)
        tried.append(values)
    if not results or any(len(set(values)) < 2 for values in zip(*tried)) or len(results[0]) != len(out_shapes):
        return out_shapes
    return [_common(shapes) for shapes in zip(*results)]


def _common(shapes: Sequence[tuple[int, ...]]) -> Partial:
    if any(len(s) != len(shapes[0]) for s in shapes):
        return None
    return tuple(sizes[0] if len(set(sizes)) == 1 else -1 for sizes in zip(*shapes))


def infer_types(outputs: Sequence[Entry], given: Mapping[str, torch.dtype | None]) -> tuple[dict[tuple[int, int], torch.dtype | None], list[Node]]:
    """Return the element types of all entries of the graph: torch types, None where unknown. Arguments as for `infer_shapes`."""
    nodes = topological(outputs)
    types: dict[tuple[int, int], torch.dtype | None] = {}
    for node in nodes:
        if node.op is None:
            t = given.get(node.name)
            if t is None and "__dtype__" in node.attrs:
                t = _stored_type(node)
            types[id(node), 0] = t
        else:
            for i in range(node.num_outputs()):
                types[id(node), i] = None
    operators = [n for n in nodes if n.op is not None]
    for attempt in range(len(operators) + 2):
        changed = False
        for node in operators if attempt % 2 == 0 else reversed(operators):
            changed |= infer_node_types(node, types)
        if not changed and attempt % 2:
            break
    return types, nodes


def _stored_type(node: Node) -> torch.dtype | None:
    text = node.attrs["__dtype__"]
    try:
        flag = int(text)
    except ValueError:
        return dtypes.NAME_TO_TORCH.get(text)
    return dtypes.NAME_TO_TORCH.get(dtypes.FLAG_TO_NAME.get(flag, ""))


def infer_node_types(node: Node, types: dict[tuple[int, int], torch.dtype | None]) -> bool:
    """Infer the element types of a node, like `infer_node`."""
    inputs = [(id(n), i) for n, i in node.inputs]
    outputs = [(id(node), i) for i in range(node.num_outputs())]
    before_in, before_out = [types[e] for e in inputs], [types[e] for e in outputs]
    op = node.op
    attributes = op.with_defaults(node.parsed())
    ins, outs = list(before_in), list(before_out)
    if op.dtype_inference is not None:
        try:
            ins, outs = op.dtype_inference(ins, outs, **attributes)
        except Exception as error:
            raise MXNetError(f"Error in operator {node.name} ({op.name}): {error}") from error
    else:
        asked = attributes.get("dtype") if isinstance(attributes.get("dtype"), torch.dtype) else None
        if asked is None and isinstance(attributes.get("dtype"), str):
            asked = dtypes.NAME_TO_TORCH.get(attributes["dtype"])
        common = next((t for t in ins if t is not None), None) or (None if asked else next((t for t in outs if t is not None), None))
        if not inputs:
            common = common or torch.float32
        ins = [t or common for t in ins]
        outs = [t or asked or common for t in outs]
    ins, outs = _padded(ins, len(inputs)), _padded(outs, len(outputs))
    for entry, new, old in zip(inputs + outputs, ins + outs, before_in + before_out):
        types[entry] = old or new
    return [types[e] for e in inputs + outputs] != before_in + before_out
