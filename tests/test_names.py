"""Names of modules, classes and functions: the field's terms instead of words that only this project knew."""
import ast
import pathlib
import re

import pytest

import mxnet

ROOT = pathlib.Path(mxnet.__file__).parent
# Each word with the term that the field has for it.
RETIRED = {
    "rivalry": "comparison", "rivals": "candidates", "race": "comparison", "races": "comparisons", "contest": "comparison", "winner": "fastest",
    "winners": "tuning cache", "trusted": "validated", "challenged": "compared", "stays": "is constant", "kept": "cached, packed, remaining",
    "told": "reported", "held": "limit, stored", "light": "threading policy", "thin": "skinny", "sixteen": "half precision", "room": "buffer",
    "verdict": "check", "refusal": "error", "demands": "preconditions", "meetings": "rendezvous", "untouched": "lazy zeros", "shortcut": "fast path",
    "membership": "rendezvous", "leader": "ftrl", "later": "mxnet2, deferred", "colours": "color", "turn": "order", "recurrence": "rnn fusion",
}


def words(name):
    return re.findall("[a-z]+", re.sub("([A-Z])", r"_\1", name).lower())


def names(path):
    """The name of a module, and those of its classes and functions."""
    yield path.stem
    yield from (node.name for node in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(node, (ast.ClassDef, ast.FunctionDef)))


@pytest.mark.parametrize("folder", sorted(p.name for p in ROOT.iterdir() if p.is_dir() and p.name != "__pycache__"))
def test_names_are_those_of_the_field(folder):
    retired = [f"{path.relative_to(ROOT)}: {name} ({RETIRED[word]})" for path in sorted((ROOT / folder).rglob("*.py")) for name in names(path)
               for word in words(name) if word in RETIRED]
    assert not retired


def test_docstrings_say_what_a_function_does_and_not_what_it_is_about():
    """They begin with a verb, or a noun."""
    begins = re.compile(r'^\s*[rR]?"""(What|Whether|How) ', re.MULTILINE)
    assert [str(path.relative_to(ROOT)) for path in sorted(ROOT.rglob("*.py")) if begins.search(path.read_text("utf-8"))] == []
