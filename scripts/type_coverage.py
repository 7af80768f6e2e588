"""Print the share of annotated parameters and returns of public functions and methods, by package of src/mxnet.

    python scripts/type_coverage.py [--package optimizer] [--missing] [--threshold 95]

Public are names without a leading underscore in the name or in the path, and `__init__`, `__call__`, `__enter__` and `__iter__`-like methods of
public classes. Operators (functions under a registering decorator) are left out, since their annotations are the schema and `make_stubs.py` writes
their types; so are kernels in Triton, which compiles annotations. The script reads source text and imports nothing. It exits 1 if a package is
below the threshold.
"""
import ast
import pathlib
import sys
from collections import defaultdict

import coverage_table

ROOT = pathlib.Path(__file__).resolve().parent.parent / "src" / "mxnet"
# An annotation is part of an operator's schema, and of the types of a kernel in Triton.
_REGISTERING = {"op", "jit"}
# Decorators under which a function of `ops/` stays what Python makes of it; under all others it is an operator, or a rule of one.
_PLAIN = {"staticmethod", "classmethod", "property", "setter", "cached_property", "contextmanager", "cache",
          "lru_cache", "wraps", "overload", "dataclass"}


def coverage(root=ROOT):
    """Package -> (number of annotated places, names of the places that are not); a place is a parameter or a return.

    A package is a folder of `root`, or a module beside them.
    """
    annotated, missing = defaultdict(int), defaultdict(list)
    for path in sorted(root.rglob("*.py")):
        parts = path.relative_to(root).with_suffix("").parts
        if any(part.startswith("_") and part != "__init__" for part in parts):
            continue
        package = parts[0] if parts != ("__init__",) else "mxnet"
        annotated[package] += 0
        for line, name, place, given in _places(ast.parse(path.read_text()).body, "", parts[0] == "ops"):
            if given:
                annotated[package] += 1
            else:
                missing[package].append(f"{path.relative_to(root)}:{line} {name}({place})")
    return {package: (annotated[package], missing[package]) for package in sorted(annotated)}


def _places(body, owner, in_ops):
    for node in body:
        if isinstance(node, ast.If | ast.Try):
            yield from _places(node.body + node.orelse, owner, in_ops)
        elif isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            yield from _places(node.body, f"{owner}{node.name}.", in_ops)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and _public(node.name):
            decorators = {_last_name(d) for d in node.decorator_list}
            if not (decorators & _REGISTERING or in_ops and not owner and decorators - _PLAIN):
                yield from _of_function(node, owner, "staticmethod" in decorators)


def _public(name):
    return not name.startswith("_") or name.startswith("__") and name.endswith("__")


def _last_name(decorator):
    if isinstance(decorator, ast.Call):
        decorator = decorator.func
    return decorator.attr if isinstance(decorator, ast.Attribute) else getattr(decorator, "id", "")


def _of_function(node, owner, is_static):
    arguments = node.args
    positional = arguments.posonlyargs + arguments.args
    if owner and not is_static:
        positional = positional[1:]  # self, cls
    for argument in [*positional, arguments.vararg, *arguments.kwonlyargs, arguments.kwarg]:
        if argument is not None:
            yield argument.lineno, owner + node.name, argument.arg, argument.annotation is not None
    # mypy takes `-> None` for granted where `__init__` has an annotated argument.
    if not (node.name == "__init__" and any((positional, arguments.vararg, arguments.kwonlyargs, arguments.kwarg))):
        yield node.lineno, owner + node.name, "return", node.returns is not None


def main(argv=None):
    return coverage_table.run(__doc__, coverage, "name each parameter and return without annotation", argv)


if __name__ == "__main__":
    sys.exit(main())
