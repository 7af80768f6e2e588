"""Print the share of error messages that contain the received value, by package of src/mxnet.

    python scripts/message_coverage.py [--package optimizer] [--missing] [--threshold 70]

A message is a text in a `raise` statement, as an argument of an exception or of a public function that returns one. It contains the received value
if it interpolates an expression with a variable of the condition under which it is raised, directly or through assignments in the same function. A
label in front ("{name}: ...") does not count. The value can also be stated in words, after "received" or "got" ("received none"). The condition is
the innermost test, loop or `except` around the statement, or else the parameters of the function and the tests before the statement.

Errors that do not judge a value from the user are left out: operations that do not exist (NotImplementedError and its subclasses), assertions of
`test_utils`, warnings, missing packages, the end of an iteration, and exceptions that the package itself catches (private classes, and those in
`_CAUGHT`). Private functions that return an error have their text inside, with the value as a parameter. The script reads source text and imports
nothing. It exits 1 if a package is below the threshold.
"""
import ast
import builtins
import pathlib
import re
import sys
from collections import defaultdict

import coverage_table

ROOT = pathlib.Path(__file__).resolve().parent.parent / "src" / "mxnet"
_NO_JUDGEMENT = {"NotImplementedError", "NotImplementedForSymbol", "MXNetNotImplementedError", "NotSupportedForSparseNDArray", "AssertionError",
                 "StopIteration", "UserWarning", "DeprecationWarning", "ImportError", "ModuleNotFoundError"}
# Signals from a pass, a converter or a translation to its caller, which then takes another path.
_CAUGHT = {"Unsupported", "UnsupportedFeature", "UnknownValue", "Unavailable", "NotPortable", "TraceError", "refuse"}
_STATED = re.compile(r"\b(received|got)\b", re.IGNORECASE)
_BUILT_IN = set(dir(builtins)) | {"self", "cls"}


def coverage(root=ROOT):
    """Package -> (number of messages with the received value, places of those without); a package is a folder of `root`, or a module beside them."""
    complete, missing = defaultdict(int), defaultdict(list)
    for path in sorted(root.rglob("*.py")):
        parts = path.relative_to(root).with_suffix("").parts
        package = parts[0] if parts != ("__init__",) else "mxnet"
        for line, text, has_value in _messages(ast.parse(path.read_text("utf-8"))):
            complete[package] += has_value
            if not has_value:
                missing[package].append(f"{path.relative_to(root)}:{line} {text}")
    return {package: (complete[package], missing[package]) for package in sorted(complete)}


def _messages(module):
    """(line, message, whether it contains the received value) for each message of a module."""
    for function in ast.walk(module):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            parameters = {a.arg for a in ast.walk(function.args) if isinstance(a, ast.arg)}
            origins = _origins(function)
            for node, condition in _raises(function.body, parameters):
                message = _message(node)
                if message is not None:
                    yield node.lineno, ast.unparse(message), _has_value(message, _closure(condition, origins), origins)


def _message(node):
    """The text among the arguments of a raised call, if it judges a value."""
    called = node.exc.func
    name = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
    if name in _NO_JUDGEMENT | _CAUGHT or name.startswith("_"):
        return None
    return next((a for a in node.exc.args if _interpolated(a) is not None), None)


def _raises(body, condition):
    """(statement, variables of the condition around it) for each ``raise f(...)`` of a function, without those of functions inside of it."""
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            continue
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
            yield node, condition
        for inner, own in _blocks(node):
            yield from _raises(inner, own or condition)
        if isinstance(node, ast.If):
            condition = condition | _variables(node.test)  # a statement after it is reached by its being false


def _blocks(node):
    """(statements, variables that decide whether they run) for each block of a statement."""
    if isinstance(node, ast.If | ast.While):
        return [(node.body, _variables(node.test)), (node.orelse, _variables(node.test))]
    if isinstance(node, ast.For):
        return [(node.body, _variables(node.target)), (node.orelse, _variables(node.iter))]
    if isinstance(node, ast.With):
        return [(node.body, set())]
    if isinstance(node, ast.Match):
        return [(case.body, _variables(node.subject)) for case in node.cases]
    if isinstance(node, ast.Try):
        tried = set().union(*map(_variables, node.body))
        return [(node.body, set()), (node.orelse, set()), (node.finalbody, set()),
                *((handler.body, tried | {handler.name or ""}) for handler in node.handlers)]
    return []


def _origins(function):
    """Variable -> the variables that its value was computed from, by assignments and loops."""
    origins = defaultdict(set)
    for node in ast.walk(function):
        if isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign | ast.NamedExpr) and node.value is not None:
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                _add(origins, target, node.value)
        elif isinstance(node, ast.For | ast.comprehension):
            _add(origins, node.target, node.iter)
        elif isinstance(node, ast.withitem) and node.optional_vars is not None:
            _add(origins, node.optional_vars, node.context_expr)
    return origins


def _add(origins, target, value):
    for name in _variables(target):
        origins[name] |= _variables(value)


def _variables(node):
    """Names, and attributes of `self`, in an expression; constants and built-in functions are none."""
    attributes = {f"self.{n.attr}" for n in ast.walk(node) if isinstance(n, ast.Attribute) and getattr(n.value, "id", "") in ("self", "cls")}
    names = {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and not n.id.isupper()} - _BUILT_IN
    return attributes | names


def _closure(names, origins):
    reached, todo = set(names), list(names)
    while todo:
        new = origins.get(todo.pop(), set()) - reached
        reached |= new
        todo += new
    return reached


def _interpolated(node):
    """The expressions that a text interpolates, a label in front excepted; None if the expression is no text written here."""
    if isinstance(node, ast.Constant):
        return [] if isinstance(node.value, str) else None
    if isinstance(node, ast.JoinedStr):
        values = node.values[1:] if _is_label(node.values) else node.values
        return [v.value for v in values if isinstance(v, ast.FormattedValue)]
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "format":
        return None if _interpolated(node.func.value) is None else [*node.args, *(k.value for k in node.keywords)]
    if isinstance(node, ast.IfExp):
        both = [_interpolated(node.body), _interpolated(node.orelse)]
        return None if None in both else sum(both, []) if all(both) else []
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod):
        return None if _interpolated(node.left) is None else [node.right]
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        parts = [(part, _interpolated(part)) for part in (node.left, node.right)]
        if any(expressions is not None for _, expressions in parts):
            return [e for part, expressions in parts for e in ([part] if expressions is None else expressions)]
    return None


def _is_label(values):
    """Return True if an f-string starts with ``{name}: `` or ``{name}.method: ``."""
    return len(values) > 1 and isinstance(values[0], ast.FormattedValue) and re.match(r"[.\w]*: ", getattr(values[1], "value", "")) is not None


def _has_value(message, condition, origins):
    words = "".join(n.value for n in ast.walk(message) if isinstance(n, ast.Constant) and isinstance(n.value, str))
    return bool(_STATED.search(words)) or any(_closure(_variables(e), origins) & condition for e in _interpolated(message))


def main(argv=None):
    return coverage_table.run(__doc__, coverage, "print each message without the received value", argv)


if __name__ == "__main__":
    sys.exit(main())
