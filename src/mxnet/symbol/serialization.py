"""Symbol JSON: every version since 0.8 read, that of 1.9.1 written, to the letter."""
import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

from .. import util
from ..base import MXNetError
from ..ops.registry import Operator, UnknownOperatorError, get
from .node import Entry, Node, auxiliary, topological

VERSION = 10901
# Annotations that old files hold without the underscores.
HIDDEN_KEYS = ("ctx_group", "lr_mult", "wd_mult", "force_mirroring", "mirror_stage")
# Names of operators in files of early versions.
RENAMED = {"_Plus": "elemwise_add", "_Minus": "elemwise_sub", "_Mul": "elemwise_mul", "_Div": "elemwise_div"}


def dump(outputs: Sequence[Entry]) -> str:
    """Return the graph as JSON text."""
    attrs = [f'"mxnet_version": ["int", {VERSION}]']
    if util.is_np_shape():
        attrs.insert(0, f'"is_np_shape": ["int", {util.np_shape_level()}]')
    return _graph(outputs, 0, '"attrs": {' + attrs[0] + "}" if len(attrs) == 1 else '"attrs": {\n    ' + ", \n    ".join(attrs) + "\n  }")


def _graph(outputs: Sequence[Entry], indent: int, *last: str, versions: bool = True) -> str:
    """Return the object that describes a graph, its brackets `indent` spaces from the margin; `last` are further fields.

    Variables that operators write to have a version, in graphs of loops and branches, too, but not in those of fused nodes.
    """
    nodes = topological(outputs)
    number = {id(n): i for i, n in enumerate(nodes)}
    aux = auxiliary(nodes) if versions else set()
    pad = " " * indent
    rows, entry_count = [], [0]
    for node in nodes:
        fields = [("op", _text("null" if node.op is None else node.op.name)), ("name", _text(node.name))]
        if node.attrs:
            pairs = [f"{_text(k)}: {_text(v)}" for k, v in sorted(node.attrs.items())]
            fields.append(("attrs", "{" + pairs[0] + "}" if len(pairs) == 1 else
                           f"{{\n{pad}        " + f", \n{pad}        ".join(pairs) + f"\n{pad}      }}"))
        # The third number is the version of a variable: 1 once the operator writes to it.
        entries = [f"[{number[id(n)]}, {i}, {int(n.op is None and id(n) in aux)}]" for n, i in node.inputs]
        fields.append(("inputs", _array(entries, indent + 6)))
        if node.subgraphs:
            graphs = [_graph(s, indent + 8, versions=node.op.data_dependent) for s in node.subgraphs]
            fields.append(("subgraphs", f"[\n{pad}        " + f", \n{pad}        ".join(graphs) + f"\n{pad}      ]"))
        rows.append(f"{pad}    {{\n" + ", \n".join(f'{pad}      "{k}": {v}' for k, v in fields) + f"\n{pad}    }}")
        entry_count.append(entry_count[-1] + node.num_outputs())
    heads = [f"[{number[id(n)]}, {i}, {int(n.op is None and id(n) in aux)}]" for n, i in outputs]
    parts = ['"nodes": [\n' + ", \n".join(rows) + f"\n{pad}  ]",
             '"arg_nodes": ' + _array([str(i) for i, n in enumerate(nodes) if n.op is None], indent + 2),
             '"node_row_ptr": ' + _array([str(i) for i in entry_count], indent + 2),
             '"heads": ' + _array(heads, indent + 2), *last]
    return "{\n" + ", \n".join(f"{pad}  {p}" for p in parts) + f"\n{pad}}}"


def _text(value: str) -> str:
    return json.dumps(value, ensure_ascii=False)


def _array(items: Sequence[str], indent: int) -> str:
    """Return an array on one line, or on many where it has more than ten entries, as MXNet's writer does."""
    if len(items) <= 10:
        return "[" + ", ".join(items) + "]"
    pad = " " * (indent + 2)
    return "[\n" + ", \n".join(pad + i for i in items) + "\n" + " " * indent + "]"


def load(text: str, source: str = "JSON") -> list[Entry]:
    """Return the outputs of the graph that a JSON text describes.

    Raises
    ------
    MXNetError
        If the text is not a graph; the message names the fault and its place.
    """
    def fail(what: str) -> NoReturn:
        raise MXNetError(f"{source}: not a valid Symbol: {what}")

    try:
        return _load(text, source, fail)
    except RecursionError:
        fail("it is nested too deeply")


def _load(text: str, source: str, fail: Callable[[str], NoReturn]) -> list[Entry]:
    try:
        graph = json.loads(text)
    except (ValueError, RecursionError) as error:
        fail(f"not JSON: {error}")
    graph = _field(graph, dict, "the graph", fail)
    version = _version(graph, fail)
    # In a file that was not written under np_shape a size of 0 is an unknown one, whatever holds where it is read.
    translate = util.is_np_shape() and "is_np_shape" not in graph.get("attrs", {})
    return _read_graph(graph, version, translate, source, fail)


_JSON_TYPES = {dict: "an object", list: "a list", str: "a string", int: "an integer of at least 0"}


def _field(value: Any, kind: type[Any], place: str, fail: Callable[[str], NoReturn]) -> Any:
    """Return `value` if it is of that JSON type; an integer must not be negative."""
    if type(value) is not kind or kind is int and not 0 <= int(value) < 1 << 32:
        text = json.dumps(value)
        fail(f"{place} must be {_JSON_TYPES[kind]}, received {text if len(text) <= 40 else text[:37] + '...'}")
    return value


def _entries(value: Any, place: str, fail: Callable[[str], NoReturn]) -> list[list[int]]:
    """Return a checked list of ``[node, output]`` or ``[node, output, version]``."""
    for i, entry in enumerate(_field(value, list, place, fail)):
        if len(_field(entry, list, f"{place}[{i}]", fail)) not in (2, 3):
            fail(f"{place}[{i}] must be [node, output] or [node, output, version], received {json.dumps(entry)[:40]}")
        for number in entry:
            _field(number, int, f"each number of {place}[{i}]", fail)
    return value


def _read_graph(graph: Any, version: int, translate: bool, source: str, fail: Callable[[str], NoReturn]) -> list[Entry]:
    """Return the outputs of the graph that an object describes."""
    _field(graph, dict, "the graph", fail)
    for field in ("nodes", "arg_nodes", "heads"):
        if field not in graph:
            fail(f"the field '{field}' is missing")
    rows = _field(graph["nodes"], list, "'nodes'", fail)
    for field in ("arg_nodes", "node_row_ptr"):
        for number in _field(graph.get(field, []), list, f"'{field}'", fail):
            _field(number, int, f"each entry of '{field}'", fail)
    if any(number >= len(rows) for number in graph["arg_nodes"]):
        fail(f"'arg_nodes' refers to node {max(graph['arg_nodes'])}, of {len(rows)} nodes")
    nodes: list[Node] = []
    for i, row in enumerate(rows):
        place = f"node {i}"
        _field(row, dict, place, fail)
        for field in ("op", "name"):
            if field not in row:
                fail(f"{place} has no field '{field}'")
            _field(row[field], str, f"{place}: '{field}'", fail)
        if type(row.get("backward_source_id", -1)) is not int:
            fail(f"{place}: 'backward_source_id' must be an integer, received {json.dumps(row['backward_source_id'])[:40]}")
        op_name, name = row["op"], row["name"]
        place = f"{place} ('{name}')"
        attrs: dict[str, str] = {}
        for field in ("param", "attr", "attrs"):
            for key, value in _field(row.get(field, {}), dict, f"{place}: '{field}'", fail).items():
                attrs[key] = _field(value, str, f"{place}: the attribute '{key}'", fail)
        entries = []
        for number, index, *_ in _entries(row.get("inputs", []), f"{place}: 'inputs'", fail):
            if number >= i:
                fail(f"{place} has input {number}, which does not come before it")
            entries.append((nodes[number], index))
        if translate and "__shape__" in attrs:
            attrs["__shape__"] = re.sub(r"\b0\b", "-1", attrs["__shape__"])
        inner = _field(row.get("subgraphs", []), list, f"{place}: 'subgraphs'", fail)
        subgraphs = [_read_graph(g, version, translate, f"{source}: node '{name}'", fail) for g in inner]
        nodes.append(_make_node(op_name, name, attrs, entries, version, source, subgraphs))
    heads = []
    for e in _entries(graph["heads"], "'heads'", fail):
        if e[0] >= len(nodes):
            fail(f"head {e} refers to no node")
        node, index = nodes[e[0]], e[1]
        if index >= node.num_outputs():
            fail(f"head {e} asks for output {index} of '{node.name}', which has {node.num_outputs()}")
        heads.append((node, index))
    return heads


def _version(graph: Mapping[str, Any], fail: Callable[[str], NoReturn]) -> int:
    """Return the version of MXNet that wrote a file; those before 0.9 don't contain it."""
    for name, value in _field(graph.get("attrs", {}), dict, "'attrs'", fail).items():
        if type(value) is not list or len(value) != 2 or type(value[0]) is not str:
            fail(f"'attrs': '{name}' must be [type, value], received {json.dumps(value)[:40]}")
    version = graph.get("attrs", {}).get("mxnet_version", ["int", 800])
    return _field(version[1], int, "'attrs': the number of 'mxnet_version'", fail)


def _make_node(op_name: str, name: str, attrs: dict[str, str], entries: list[Entry], version: int, source: str,
               subgraphs: Sequence[list[Entry]] = ()) -> Node:
    if op_name == "null":
        return Node(None, name, _hide(attrs))
    try:
        op = get(RENAMED.get(op_name, op_name))
    except UnknownOperatorError as error:
        raise UnknownOperatorError(f"{source}: node '{name}': {error}") from None
    if version < 905 and op.name in ("argmax", "argmin") and attrs.get("axis") == "-1":
        del attrs["axis"]  # once the way to say: over all axes
    attrs = {op.renamed.get(k, k): v for k, v in attrs.items()}
    own = {k: v for k, v in attrs.items() if k in op.attributes}
    rest = {k: v for k, v in attrs.items() if k not in own}
    if version < VERSION:
        rest = _distribute(rest, op, own, entries)
    if len(subgraphs) != getattr(op, "subgraphs", 0) and (len(subgraphs) > 1 or not op.may_hold_graph):
        raise MXNetError(f"{source}: node '{name}': {op.name} has {getattr(op, 'subgraphs', 0)} subgraphs, the file holds {len(subgraphs)}")
    node = Node(op, name, {**own, **rest}, entries, subgraphs)
    if subgraphs and not op.may_hold_graph:
        _checked(source, name, lambda: op.check(  # type: ignore[attr-defined]  # operators with subgraphs have this method
            node.parsed(), len(entries)))
    unknown = [k for k in rest if not (k.startswith("__") and k.endswith("__")) and k not in HIDDEN_KEYS
               and k != op.key_var_num_args and not (k == "ctx" and op.wants_device)]
    if unknown and version >= VERSION:
        _checked(source, name, lambda: op.parse({unknown[0]: rest[unknown[0]]}))
    try:
        node.parsed()
        wanted = op.input_names(node.parsed(), len(entries))
    except MXNetError as error:
        raise MXNetError(f"{source}: node '{name}': {error}") from None
    for child, index in entries:
        if not 0 <= index < child.num_outputs():
            raise MXNetError(f"{source}: node '{name}' uses output {index} of '{child.name}', which has {child.num_outputs()}")
    if version < 900 and not op.variadic:
        # Before 0.9 auxiliary states were not stored.
        for missing in wanted[len(entries):]:
            node.inputs.append((Node(None, f"{name}_{missing}", dict(attrs)), 0))
    elif len(entries) < len(wanted):
        raise MXNetError(f"{source}: node '{name}': {op.name} needs the inputs {', '.join(wanted)}, the file has {len(entries)}")
    return node


def _checked(source: str, name: str, check: Callable[[], object]) -> None:
    try:
        check()
    except MXNetError as error:
        raise MXNetError(f"{source}: node '{name}': {error}") from None


def annotation(key: str, value: str, operator: str | None = None) -> str:
    """Return the key under which a node keeps an annotation: ``__lr_mult__`` for ``lr_mult``.

    Raises
    ------
    MXNetError
        For the annotation of an input, such as ``weight_lr_mult``, which nothing would read.
    """
    for hidden in HIDDEN_KEYS:
        if key == hidden:
            return f"__{hidden}__"
        if key.endswith(hidden):
            target = key[:-len(hidden)].rstrip("_")
            raise MXNetError(f"setting variable attributes with {key} is deprecated. Please instead use\n"
                             f"w = mx.sym.Variable(..., {hidden}={value})\n" + (f"{operator}(..., {target}=w)" if operator else ""))
    return key


def is_annotation(key: str) -> bool:
    """Return True if a key is an annotation of a node, as no attribute of an operator does."""
    return len(key) > 4 and key.startswith("__") and key.endswith("__")


def _hide(attrs: dict[str, str]) -> dict[str, str]:
    return {f"__{k}__" if k in HIDDEN_KEYS else k: v for k, v in attrs.items()}


def _distribute(rest: dict[str, str], op: Operator, own: dict[str, str], entries: list[Entry]) -> dict[str, str]:
    """Move old annotations to their current places: ``lr_mult`` as ``__lr_mult__``, ``weight_lr_mult`` on the variable of the weight."""
    remaining = {}
    for key, value in rest.items():
        hidden = next((h for h in HIDDEN_KEYS if key == h or key.endswith("_" + h)), None)
        if hidden is None or key.startswith("__"):
            remaining[key] = value
        elif key == hidden:
            remaining[f"__{hidden}__"] = value
        else:
            names = op.input_names(op.parse(own, partial=True), len(entries))
            target = key[:-len(hidden) - 1]
            if target in names and names.index(target) < len(entries) and entries[names.index(target)][0].op is None:
                entries[names.index(target)][0].attrs[f"__{hidden}__"] = value
            else:
                remaining[key] = value
    return remaining
