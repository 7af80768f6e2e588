"""Write the .pyi stubs of mx.nd and mx.sym, whose functions are made at run time, out of the operator registry.

    python scripts/make_stubs.py [--check]
"""
import argparse
import pathlib
import sys

import torch

ROOT = pathlib.Path(__file__).resolve().parent.parent / "src" / "mxnet"
_FRONTS = {"ndarray": "NDArray", "symbol": "Symbol"}
_SPACES = {"contrib": "_contrib_", "linalg": "_linalg_", "image": "_image_"}
_KINDS = {int: "int", float: "float", bool: "bool", str: "str", torch.dtype: "str | type"}


def _annotation(attribute):
    if attribute.choices:
        text = f"Literal[{', '.join(map(repr, attribute.choices))}]"
    else:
        text = _KINDS.get(attribute.kind, "int | Sequence[int]" if "int" in str(attribute.kind) else "float | Sequence[float]")
        if "None" in str(attribute.kind):
            text += " | None"
    return text + (" | None" if attribute.optional else "")


def signature(name, op, array):
    """One line: ``def name(...) -> ...``."""
    if op.variadic:
        parts = [f"{n}: {array}" for n in op.inputs[:-1]] + [f"*{op.inputs[-1]}: {array}"]
    else:
        parts = [f"{n}: {array} | None = ..." for n in op.inputs]
    parts += [f"{a.name}: {_annotation(a)} = ..." for a in op.attributes.values()]
    if op.wants_device:
        parts.append("ctx: Any = ...")
    if array == "NDArray":
        parts.append("out: Any = ...")
    parts += ["name: str | None = ...", "**kwargs: Any"]
    result = array if array == "Symbol" or op.num_outputs == 1 else f"list[{array}]"
    return f"def {name}({', '.join(parts)}) -> {result}: ..."


def module(front, prefix, body=""):
    """The text of one stub file."""
    import keyword

    from mxnet.ops.registry import OPERATORS
    array = _FRONTS[front]
    names = sorted(n for n in OPERATORS if (n.startswith(prefix) if prefix else not n.startswith("_")))
    lines = [signature(n[len(prefix):], OPERATORS[n], array) for n in names
             if n[len(prefix):].isidentifier() and not keyword.iskeyword(n[len(prefix):])]
    head = ["# Made by scripts/make_stubs.py; do not edit.", "from collections.abc import Sequence", "from typing import Any, Literal", ""]
    own = body or f"from .{front} import {array}"
    return "\n".join([*head, own, "", *lines]) + "\n"


def _reexports(front):
    """What the package defines by hand, as stub lines."""
    import importlib
    import importlib.util
    import inspect
    package = importlib.import_module(f"mxnet.{front}")
    if importlib.util.find_spec(f"{package.__name__}.numpy"):  # imported on demand: its line must not depend on what ran before
        importlib.import_module(f"{package.__name__}.numpy")
    lines = [f"from .{front} import {_FRONTS[front]} as {_FRONTS[front]}"]
    functions = []
    for name, value in sorted(vars(package).items()):
        if name.startswith("_") or name == _FRONTS[front]:
            continue
        if inspect.ismodule(value) and value.__name__.startswith(f"mxnet.{front}."):
            # A namespace that is no file, and has no stub, is any module.
            here = name in _SPACES or value.__spec__ is not None
            lines.append(f"from . import {name} as {name}" if here else f"{name}: Any")
        elif inspect.isclass(value):
            lines.append(f"from {value.__module__.replace('mxnet.', '..', 1)} import {value.__name__} as {name}")
        elif inspect.isfunction(value) and value.__module__ == f"mxnet.{front}.op":
            continue  # made from the registry, listed below
        elif inspect.isfunction(value) and value.__module__.startswith("mxnet.") and value.__module__ != f"mxnet.{front}":
            lines.append(f"from {value.__module__.replace('mxnet.', '..', 1)} import {value.__name__} as {name}")
        elif inspect.isfunction(value):
            functions.append(f"def {name}(lhs: Any, rhs: Any) -> Any: ...")
    return "\n".join([*lines, "", *functions])


def _by_hand(front, space):
    """What a sub-namespace defines by hand, as stub lines."""
    import importlib
    import inspect
    name = f"mxnet.{front}.{space}"
    own = [f"def {n}{inspect.signature(f)} -> Any: ..." for n, f in sorted(vars(importlib.import_module(name)).items())
           if inspect.isfunction(f) and f.__module__ == name and not n.startswith("_")]
    return "\n".join([f"from .{front} import {_FRONTS[front]}", *([""] if own else []), *own])


def all_stubs():
    """Path -> text of every stub."""
    found = {}
    for front in _FRONTS:
        found[ROOT / front / "__init__.pyi"] = module(front, "", _reexports(front))
        for space, prefix in _SPACES.items():
            found[ROOT / front / f"{space}.pyi"] = module(front, prefix, _by_hand(front, space))
    return found


def stale():
    """The stub files that are not what the registry says."""
    return [path for path, text in all_stubs().items() if not path.exists() or path.read_text() != text]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing; fail if a stub is stale")
    args = parser.parse_args()
    if args.check:
        old = stale()
        print("\n".join(f"stale: {p.relative_to(ROOT)}" for p in old) or "all stubs are up to date")
        return bool(old)
    for path, text in all_stubs().items():
        path.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
