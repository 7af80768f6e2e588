"""How modules depend on one another: the layers are in pyproject.toml (import-linter); here is what it can't say."""
import ast
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
    "lazy_modules.py": "modules that are imported at their first use",
    "notebook/callback.py": "packages for tables and charts, which the program may lack",
    "ops/registry.py": "families of operators that not every program needs",
    "optimizer/pickles.py": "the modules of MXNet that a file of optimizer states names",
    "compat/finder.py": "what a name of the table leads to",
    "tools/cli.py": "the program of the given subcommand",
    "tools/fork_server.py": "the modules that forks are to have",
}

# Private names that modules import from one another, since MXNet gives them this name and file. Others are public where a second module needs them.
NAMED_BY_MXNET = {
    "base": "_Null _NullType _as_list", "compat.executor_manager": "_check_arguments _load_data",
    "contrib.quantization.collectors": "_LayerHistogramCollector _LayerOutputMinMaxCollector _get_optimal_threshold _get_optimal_thresholds "
                                       "_smooth_distribution",
    "contrib.quantization.models": "_calibrate_quantized_sym _quantize_params _quantize_symbol",
    "contrib.svrg_optimization.svrg_optimizer": "_SVRGOptimizer",
    "gluon.contrib.estimator.event_handler": "_check_event_handlers",
    "gluon.contrib.estimator.utils": "_check_handler_metric_ref _check_metrics _suggest_metric_for_loss",
    "gluon.data.dataloader": "_MultiWorkerIter _as_in_context",
    "gluon.data.dataset": "_DownloadedDataset _LazyTransformDataset _TransformFirstClosure",
    "gluon.rnn.sequences": "_format_sequence _get_begin_state _mask_sequence_variable_length _reverse_sequences",
    "gluon.utils": "_brief_print_list _get_repo_file_url _get_repo_url _indent",
    "module.base_module": "_check_input_names _parse_data_desc", "module.executor_group": "_split_input_slice",
    **dict.fromkeys(("ndarray", "numpy", "symbol"), "_internal"), "symbol.numpy": "_Symbol _internal",  # namespaces of operators
    "numpy.types": "_DTYPE_2_STR_ _NoValue _type_promotion_table",  # MXNet 2
    "numpy_op_signature": "_get_builtin_op", "symbol.numpy.symbol": "_Symbol",
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


def is_private(name):
    return name.startswith("_") and not name.endswith("__")


def dotted(file, root=SOURCES):
    """The path of a module below `root`, without ``mxnet.``; of a package, without ``__init__``."""
    return ".".join(file.relative_to(root).with_suffix("").parts).removesuffix("__init__").removesuffix(".")


def imports_in(tree, package):
    """Yield (module, name, local name) for each name that is imported from this package, by a relative import or one of ``mxnet``."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            above = package.split(".") if package else []
            above = above[:len(above) + 1 - node.level] if node.level else []
            if node.level or (node.module or "").partition(".")[0] == "mxnet":
                module = node.module if node.level else node.module.partition(".")[2]
                yield from ((".".join([*above, *filter(None, [module])]), alias.name, alias.asname or alias.name) for alias in node.names)


def private_names_of_others(root=SOURCES):
    """Yield (module, private name, importer) for the private names that modules take from others; a package's private modules are its own."""
    modules = {dotted(file, root) for suffix in ("py", "pyi") for file in root.rglob(f"*.{suffix}")}
    for file in sorted(root.rglob("*.py")):
        importer = dotted(file, root)
        tree, local = ast.parse(file.read_text("utf-8")), {}
        used = []
        for module, name, called in imports_in(tree, importer if file.name == "__init__.py" else importer.rpartition(".")[0]):
            used.append(f"{module}.{name}".lstrip("."))
            local[called] = used[-1]
        used += [f"{local[node.value.id]}.{node.attr}" for node in ast.walk(tree)
                 if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and local.get(node.value.id) in modules]
        for path in used:
            parts = path.split(".")
            for n, part in enumerate(parts):
                owner = ".".join(parts[:n])
                its_own = ".".join(parts[:n + 1]) in modules and f"{importer}.".startswith(f"{owner}." if owner else "")
                if is_private(part) and not its_own:
                    yield owner, part, importer


@pytest.mark.parametrize("text, expected", [
    ("from .a import _x, __version__, x", {("p.a", "_x")}),
    ("from . import a\na._x, a.x, a.__doc__", {("p.a", "_x")}),
    ("from . import _hidden\nfrom ._hidden import x", set()),
    ("from .q._hidden import x", {("p.q", "_hidden")}),
    ("def f():\n    from mxnet.p.a import _x as x", {("p.a", "_x")}),
    ("from .. import _top\nimport os\nos._exit", set()),
])
def test_private_names_of_others_are_reported(tmp_path, text, expected):
    for name in ("p/__init__.py", "p/a.py", "p/_hidden.py", "p/q/__init__.py", "p/q/_hidden.py", "_top.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True, parents=True)
        (tmp_path / name).write_text("")
    (tmp_path / "p" / "importer.py").write_text(text)
    assert {found[:2] for found in private_names_of_others(tmp_path)} == expected


def test_modules_share_public_names_only():
    found = {(module, name): importer for module, name, importer in private_names_of_others()}
    permitted = {(module, name) for module, names in NAMED_BY_MXNET.items() for name in names.split()}
    assert sorted(f"{importer} takes {module}.{name}" for (module, name), importer in found.items() if (module, name) not in permitted) == []
    assert permitted <= set(found)  # the list holds no more than is needed


def _changes_of_file(call):
    """Return the number of calls between modules of the package, from the start of `call` to its first operator."""
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
