"""How modules depend on one another: the layers are in pyproject.toml (import-linter); here is what it can't say."""
import pathlib
import re
import sys

import grimp
import pytest

import mxnet as mx

SOURCES = pathlib.Path(mx.__file__).parent

# Who imports a module by a name that is made when it runs, besides packages that import their own parts on demand.
BY_NAME = {
    "graph/backends/openvino/model.py": "all converters, where openvino is installed",
    "notebook/callback.py": "packages for tables and charts, which the program may lack",
    "ops/registry.py": "families of operators that not every program needs",
    "optimizer/pickles.py": "the modules of MXNet that a file of optimizer states names",
    "reachable/finder.py": "what a name of the table leads to",
}


def circles(graph):
    """The sets of modules that all import one another, directly or not, imports inside of functions included; each sorted."""
    number, lowest, path, found = {}, {}, [], []

    def visit(module):
        number[module] = lowest[module] = len(number)
        path.append(module)
        for imported in graph.find_modules_directly_imported_by(module):
            if imported not in number:
                visit(imported)
            if imported in path:
                lowest[module] = min(lowest[module], lowest[imported])
        if lowest[module] == number[module]:
            start = path.index(module)
            found.append(sorted(path[start:]))
            del path[start:]

    for module in sorted(graph.modules):
        if module not in number:
            visit(module)
    return [group for group in found if len(group) > 1]


@pytest.mark.parametrize("imports, expected", [
    ("ab bc ad", []),
    ("ab ba bc", ["ab"]),
    ("ab bc ca cd de ed xa", ["de", "abc"]),
    ("ab bc cb ca ad da", ["abcd"]),
])
def test_circles_are_found(imports, expected):
    graph = grimp.ImportGraph()
    for importer, imported in imports.split():
        graph.add_import(importer=importer, imported=imported)
    assert circles(graph) == [list(group) for group in expected]


def test_no_module_imports_one_that_imports_it():
    """Neither at its top nor in a function: what two modules need stands below both, or one registers with the other."""
    found = circles(grimp.build_graph("mxnet", exclude_type_checking_imports=True, cache_dir=None))
    assert not found, f"{len(found)} sets of modules import one another: {'; '.join(' '.join(group) for group in found)}"


def test_modules_are_imported_by_name_on_demand_only():
    users = {file.relative_to(SOURCES).as_posix() for file in SOURCES.rglob("*.py") if re.search(r"import_module\(|__import__\(", file.read_text())}
    assert {user for user in users if not user.endswith("__init__.py")} == set(BY_NAME)


def _changes_of_file(call):
    """How many calls, from the start of `call` to its first operator, lead from one module of the package into another."""
    changes, arrived = [], []

    def observe(frame, event, _):
        if event == "call" and not arrived:
            caller, called = (pathlib.Path(f.f_code.co_filename) for f in (frame.f_back, frame))
            if called != caller and called.is_relative_to(SOURCES):
                changes.append(called.relative_to(SOURCES))
                arrived.extend(changes[-1:] if changes[-1].parts[0] in ("ops", "kernels") else [])

    sys.setprofile(observe)
    try:
        call()
    finally:
        sys.setprofile(None)
    assert arrived
    return len(changes) - 1  # the first leads into the package


def test_a_call_of_a_graph_takes_few_steps():
    net = mx.gluon.nn.HybridSequential()
    net.add(mx.gluon.nn.Dense(4, activation="relu"), mx.gluon.nn.Dense(2))
    net.initialize()
    net.hybridize()
    x = mx.nd.ones((3, 5))
    net(x)
    symbol = mx.sym.FullyConnected(mx.sym.Activation(mx.sym.var("x"), act_type="relu"), num_hidden=2)
    executor = symbol.simple_bind(mx.cpu(), x=(3, 5))
    executor.forward()
    assert _changes_of_file(lambda: net(x)) <= 12
    assert _changes_of_file(executor.forward) <= 12
