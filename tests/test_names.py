"""Names of modules, classes and functions: the field's terms instead of words that only this project knew."""
import ast
import pathlib
import re

import pytest

import mxnet

ROOT = pathlib.Path(mxnet.__file__).parent
PROGRAMS = pathlib.Path(__file__).parents[1]
# Each word with the term that the field has for it.
RETIRED = {
    "rivalry": "comparison", "rivals": "candidates", "race": "comparison", "races": "comparisons", "contest": "comparison", "winner": "fastest",
    "winners": "tuning cache", "trusted": "validated", "challenged": "compared", "stays": "is constant", "kept": "cached, packed, remaining",
    "told": "reported", "held": "limit, stored", "light": "threading policy", "thin": "skinny", "sixteen": "half precision", "room": "buffer",
    "verdict": "check", "refusal": "error", "demands": "preconditions", "meetings": "rendezvous", "untouched": "lazy zeros", "shortcut": "fast path",
    "membership": "rendezvous", "leader": "ftrl", "later": "mxnet2, deferred", "colours": "color", "turn": "order", "recurrence": "rnn fusion",
}

# Those of benchmarks, which are common words elsewhere.
RETIRED_IN_PROGRAMS = {
    "learners": "train models", "lessons": "workloads", "anatomy": "step breakdown", "torchnet": "torch models", "pictures": "synthetic images",
    "jobs": "ranks", "agreement": "int8 accuracy", "algorithms": "winograd convergence", "launched": "launch", "curves": "loss curves",
    "busy": "cpu contention", "quotas": "cpu quota", "profiled": "profiler accuracy", "forum": "wide network", "rivals": "baselines",
    "travels": "traffic", "looped": "loop rate", "asked": "run, measure", "begun": "run worker", "nudges": "ulp seed", "recurs": "is recurrent",
}
RETIRED_VARIABLES = {"found", "kept", "whole", "told", "said"}  # a variable has the name of its content


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


def programs():
    return [path for folder in ("benchmarks", "scripts", "examples") for path in sorted((PROGRAMS / folder).rglob("*.py"))]


def test_names_of_benchmarks_scripts_and_examples_are_those_of_the_field():
    retired = RETIRED | RETIRED_IN_PROGRAMS
    assert [f"{path.relative_to(PROGRAMS)}: {name} ({retired[word]})" for path in programs() for name in names(path)
            for word in words(re.sub("loss_?curves", "", name, flags=re.I)) if word in retired] == []


def test_variables_of_benchmarks_scripts_and_examples_have_the_names_of_their_contents():
    stored = ((path, node.arg if isinstance(node, ast.arg) else node.id)
              for path in programs() for node in ast.walk(ast.parse(path.read_text("utf-8")))
              if isinstance(node, ast.arg) or isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store))
    assert [f"{path.relative_to(PROGRAMS)}: {name}" for path, name in stored if name in RETIRED_VARIABLES] == []


def test_variables_of_the_package_have_the_names_of_their_contents():
    later = ("kernels", "kvstore", "serve", "graph/tuning", "gluon/sharded", "gluon/nn/sharded")  # folders with variables of these names
    paths = [path for path in sorted(ROOT.rglob("*.py")) if not path.relative_to(ROOT).as_posix().startswith(later)]
    assert [f"{path.relative_to(ROOT)}: {node.id}" for path in paths for node in ast.walk(ast.parse(path.read_text("utf-8")))
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id in RETIRED_VARIABLES] == ["memory.py: kept"] * 2


def test_docstrings_say_what_a_function_does_and_not_what_it_is_about():
    """They begin with a verb, or a noun."""
    begins = re.compile(r'^\s*[rR]?"""(What|Whether|How) ', re.MULTILINE)
    assert [str(path) for path in [*sorted(ROOT.rglob("*.py")), *programs()] if begins.search(path.read_text("utf-8"))] == []
