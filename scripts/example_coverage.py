"""Count the public functions and classes of the reference that have an example, and name those without.

    python scripts/example_coverage.py [--all]

An example is a line with ``>>>`` in the docstring that `help()` and the reference show. The tests run all of them: those in the package's files by
pytest, those of functions that are made at run time by tests/docs/test_examples.py. With ``--all``, methods are counted, too. The exit status is 1 if
a function or class has none.
"""
import argparse
import collections
import importlib
import pathlib
import sys
import types

ROOT = pathlib.Path(__file__).resolve().parent.parent


def documented():
    """Return (group, name, object) of each function and class of the reference: operators, modules, and ``mx.np``."""
    from site_pages import reference

    import mxnet as mx
    results, seen = [], set()
    for op, names in reference.operator_names(mx).items():
        results.append(("operators", f"mx.{names[0]}", op))
    for path in reference.MODULES:
        for name, value in reference.public(importlib.import_module(f"mxnet.{path}")).items():
            if id(value) not in seen:
                seen.add(id(value))
                results.append((f"mx.{path}", f"mx.{path}.{name}", value))
    for path in reference.NUMPY.values():
        module = importlib.import_module(f"mxnet.{path}")
        results += [(f"mx.{path}", f"mx.{path}.{name}", value) for name, value in reference.numpy_functions(module)]
    return results


def methods(cls):
    """Return (name, docstring) of the public methods and properties that a class defines itself."""
    for name, value in vars(cls).items():
        inner = value.__func__ if isinstance(value, (classmethod, staticmethod)) else value
        if not name.startswith("_") and (isinstance(inner, property) or callable(inner)) and not isinstance(inner, (type, types.ModuleType)):
            yield name, getattr(inner, "__doc__", None) or ""


def has_example(value):
    """Return True if the docstring of an object has an example."""
    return ">>>" in (value.__doc__ or "")


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--all", action="store_true", help="count methods, too; one counts where its class has an example")
    args = parser.parse_args(argv)
    sys.path.insert(0, str(ROOT / "src"))
    counts, missing = collections.defaultdict(lambda: [0, 0]), []
    for group, name, value in documented():
        counts[group][0] += has_example(value)
        counts[group][1] += 1
        if not has_example(value):
            missing.append(name)
        if args.all and isinstance(value, type):
            for _, doc in methods(value):
                counts["methods, by themselves"][0] += ">>>" in doc
                counts["methods, by themselves"][1] += 1
                counts["methods, or their class"][0] += ">>>" in doc or has_example(value)
                counts["methods, or their class"][1] += 1
    for group, (some, every) in counts.items():
        print(f"{group:34s} {some:4d} of {every:4d}")
    some, every = (sum(pair[i] for group, pair in counts.items() if not group.startswith("methods")) for i in (0, 1))
    print(f"{'functions and classes':34s} {some:4d} of {every:4d}: {some / every:.1%}")
    if missing:
        print("without an example:", *missing)
    return int(bool(missing))


if __name__ == "__main__":
    sys.exit(main())
