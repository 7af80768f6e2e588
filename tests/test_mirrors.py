"""The test of ``src/mxnet/a/b.py`` is ``tests/a/test_b.py``; that of a package's own code, ``a/__init__.py``, is ``tests/a/test_a.py``."""
import ast
import pathlib

TESTS = pathlib.Path(__file__).parent
SOURCES = TESTS.parent / "src" / "mxnet"
LEAST = 0.9
_LOOKUPS = {"__getattr__", "__dir__"}  # of a package, which say only what it imports when


def has_logic(path):
    """Whether a module defines a function or class: tables and lists of imports need no test of their own."""
    defined = [n.name for n in ast.parse(path.read_text("utf-8")).body if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))]
    return bool(set(defined) - _LOOKUPS if path.name == "__init__.py" else defined)


def mirrored(path):
    """Where the test of a module belongs."""
    module = path.relative_to(SOURCES)
    name = module.parent.name or "mxnet" if path.name == "__init__.py" else module.stem.lstrip("_")
    return TESTS / module.parent / f"test_{name}.py"


def test_modules_have_their_test_at_the_mirrored_path():
    modules = [p for p in sorted(SOURCES.rglob("*.py")) if has_logic(p)]
    missing = [p for p in modules if not mirrored(p).is_file()]
    share = 1 - len(missing) / len(modules)
    assert len(modules) > 300
    assert share >= LEAST, f"{share:.0%} of the modules have a test at the mirrored path, expected {LEAST:.0%}; without one: " + ", ".join(
        f"{p.relative_to(SOURCES)} ({mirrored(p).relative_to(TESTS)})" for p in missing)


def test_every_test_file_holds_a_test():
    empty = [str(p.relative_to(TESTS)) for p in sorted(TESTS.rglob("test_*.py"))
             if not any(isinstance(n, ast.FunctionDef) and n.name.startswith("test") for n in ast.walk(ast.parse(p.read_text("utf-8"))))]
    assert empty == []
