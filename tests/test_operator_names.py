"""Who decides by an operator's name, instead of asking the operator (``mxnet.ops.traits``)?

Names belong to ``ops/``, to OpenVINO's converters and to tests. Elsewhere a name may be called (``get("_zeros")``), not compared, listed or
used as a key: such a table is what a new operator is forgotten in.
"""
import ast
import pathlib
import re

import mxnet
import mxnet.ops.numpy  # registers the operators of mx.np
from mxnet.ops.registry import OPERATORS

ROOT = pathlib.Path(mxnet.__file__).parent
FAMILIES = ("ops/", "graph/backends/openvino/", "onnx/mx2onnx/operators/", "contrib/onnx/onnx2mx/_op_translations/")
EXCEPTIONS = {
    "contrib/onnx/onnx2mx/box_nms.py": "ONNX's kinds of nodes, of which one has the name of an operator here",
    "contrib/amp/lists/": "the spellings in which AMP's published lists differ from what the operators say",
    "ndarray/arithmetic.py": "Python's syntax for mx.nd: which operators it calls",
    "symbol/arithmetic.py": "Python's syntax for mx.sym: which operators it calls",
    "ndarray/sparse/": "kernels for sparse arrays, registered by operator as OpenVINO's converters are",
    "numpy/functions/": "NumPy's functions: which operators they call",
    "symbol/serialization.py": "names and defaults in files of earlier versions",
    "_numpy_op_doc.py": "three operators that MXNet's module of that name shows beside those of a prefix",
    "symbol/drawing.py": "the colours and labels of boxes",
    "visualization.py": "the labels of MXNet's drawings",
}
_TABLE = 3  # so many names in one literal are a table


def findings(source, names=frozenset(OPERATORS)):
    """(line, what) of every place that decides by the name of an operator."""
    tree = ast.parse(source)
    # What a module exports are its own names.
    exported = {id(n) for a in ast.walk(tree) if isinstance(a, ast.Assign) and ast.unparse(a.targets[0]) == "__all__" for n in ast.walk(a)}
    for node in ast.walk(tree):
        if id(node) in exported:
            continue
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            constants = [c for side in sides for c in ast.walk(side) if isinstance(c, ast.Constant) and isinstance(c.value, str)]
            asks = any(_is_name_of_operator(side) for side in sides)
            for c in constants:
                if asks or c.value in names and _telling(c.value):
                    yield c.lineno, f"compares with {c.value!r}"
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ("startswith", "endswith", "split", "find"):
            if _is_name_of_operator(node.func.value):
                yield node.lineno, f"takes the name apart: {ast.unparse(node)}"
        elif isinstance(node, (ast.Set, ast.List, ast.Tuple, ast.Dict)):
            items = node.keys if isinstance(node, ast.Dict) else node.elts
            words = [i.value for i in items if isinstance(i, ast.Constant) and isinstance(i.value, str)]
            if _is_table(words, names):
                yield node.lineno, f"lists {' '.join(words)[:80]}"
            if isinstance(node, ast.Dict):
                yield from ((k.lineno, f"has the key {k.value!r}") for k in items
                            if isinstance(k, ast.Constant) and k.value in names and _telling(k.value))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and re.fullmatch(r"[\w\s.]+", node.value) and "." not in node.value:
            if _is_table(node.value.split(), names):
                yield node.lineno, f"lists {node.value[:80]}"


def _telling(name):
    """True for a spelling that can hardly mean anything but an operator: 'Pooling', '_copy', not 'max' or 'relu'."""
    return name.startswith("_") or name[0].isupper()


def _is_table(words, names):
    known = [w for w in words if w in names]
    return len(known) >= _TABLE and 2 * len(known) >= len(words) and any(map(_telling, known))


def _is_name_of_operator(node):
    return isinstance(node, ast.Attribute) and node.attr == "name" and (
        isinstance(node.value, ast.Name) and node.value.id in ("op", "operator") or isinstance(node.value, ast.Attribute) and node.value.attr == "op")


def test_nobody_decides_by_the_name_of_an_operator():
    found, used = [], set()
    for path in sorted(ROOT.rglob("*.py")):
        place = path.relative_to(ROOT).as_posix()
        if place.startswith(FAMILIES):
            continue
        for line, what in findings(path.read_text()):
            exception = next((e for e in EXCEPTIONS if place.startswith(e)), None)
            used.add(exception)
            if exception is None:
                found.append(f"{place}:{line} {what}")
    assert not found, "ask the operator (mxnet.ops.traits) instead:\n" + "\n".join(found)
    assert set(EXCEPTIONS) <= used, f"no longer needed: {set(EXCEPTIONS) - used}"


def test_what_counts_as_deciding_by_name():
    def lines(source):
        return [what for _, what in findings(source)]

    assert lines('if op.name == "exp": pass') == ["compares with 'exp'"]
    assert lines('if node.op.name in ("a", "b"): pass') == ["compares with 'a'", "compares with 'b'"]
    assert lines('x = "random" in op.name') == ["compares with 'random'"]
    assert lines('op.name.startswith("_random")') == ["takes the name apart: op.name.startswith('_random')"]
    assert lines('if kind == "Pooling": pass') == ["compares with 'Pooling'"]
    assert lines('KEEPS = {"relu", "Pooling", "clip"}') == ["lists relu Pooling clip"]
    assert lines('LISTED = "Pooling Concat relu exp".split()') == ["lists Pooling Concat relu exp"]
    assert lines('RULES = {"Convolution": 1}') == ["has the key 'Convolution'"]
    for fine in ('if act_type == "relu": pass',
                 'get("_zeros")', 'pool_type in ("max", "sum", "avg")', 'f("Convolution", 3)', '"""Pooling, Concat."""',
                 '__all__ = ["Dropout", "Pooling", "Concat"]'):
        assert lines(fine) == []
