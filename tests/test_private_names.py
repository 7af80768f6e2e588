"""Accesses of tests to private names of the package: their number must not grow.

A test of a private name fails when the code is rewritten without a change of behaviour. Test behaviour, or give the module a public function or
attribute.
"""
import ast
import pathlib
from collections import Counter

import mxnet

ROOT = pathlib.Path(mxnet.__file__).parent
TESTS = pathlib.Path(__file__).parent
MOST = 400
BY_NAME = {"getattr", "hasattr", "setattr", "delattr"}
# Private names of MXNet 1.9.1 or 2.0 that programs use, and tests therefore, too: add one only if it is in MXNet's Python sources.
OF_MXNET = frozenset("""
_AssignmentOptimizer _BinaryClassificationMetrics _BlockScope _Formatter _LIB _LayerHistogramCollector _LayerOutputMinMaxCollector
_MultiWorkerIter _MultiWorkerIterV1 _Null _NumpyArrayScope _STORAGE_TYPE_CSR _STORAGE_TYPE_STR_TO_ID _SVRGOptimizer _Symbol _active _add
_add_conv _add_conv_dw _all_index_update_counts _amp_loss_scaler _apply_weighting _array _as_in_context _at _axis
_basic_indexing_slice_is_contiguous _batchify _bind_exec _brief_print_list _broadcast_advanced_indices _buckets _cached_graph _cached_op
_calibrate_quantized_sym _cells_begin_state _cells_state_info _check_event_handlers _check_handler_metric_ref _check_metrics _children
_collect_params_with_prefix _concat _cond _constants _context _convert_map _copy _ctx _ctx_map _curr_bucket_key _current _data _data_shapes
_default_ctx _exec_group _export_helper _export_model _export_onnx _extend _factors _fetcher _find_max_violation _finish_deferred_init
_flags _flatten _foreach _forward_hooks _fresh_grad _full _gather _get_builtin_op _get_data _get_dict _get_download_file_name _get_lr
_get_lrs _get_np_advanced_indexing _get_np_basic_indexing _get_np_boolean_indexing _get_np_empty_tuple_indexing _get_optimal_thresholds
_get_outputs _get_powerlaw_dataset_csr _get_pretrained_file_url _get_repo_file_url _get_repo_url _get_uniform_dataset_csr _get_wds _getdata
_grad _histogram _imdecode _import_helper _index_update_count _indices _init_weight _internal _is_data_arg _keys _kvstore _kwargs _label
_like _load_data _load_init _loader _loss_scale _make_A _make_B _make_C _make_D _make_E _make_branch _maximum _mean _merge_multi_context
_minimum _mod _model_sha1 _namespace _new_axes_after_advanced_indexing _new_axes_after_basic_indexing _next_loss_scale _nodes
_np__random_shuffle _numpy_op_doc _old_ctx _one _ones _op_translations _optimized_symbol _optimizer _order _output _output_dict _param_dict
_params _params_dirty _prefix _prepare_default_handlers _prev_output _rate _read_batch _reduce _reg_params _register_op_hook _replace _root
_save_checkpoint _scalar _scale _scatter_set_nd _segment _send _send_command_to_servers _set_attr _set_np_advanced_indexing
_set_np_boolean_indexing _set_updater _shared _size _slice _slice_weights _smooth_distribution _split_input_slice _start _step _steps _stop
_stype _subgraph_names _suggest_metric_for_loss _symbol _sync_copyfrom _tile _train _train_multi_device _unfuse _update_count _updater
_updaters _validate_csr_generation_inputs _values _weight _while_loop _worker_dataset _worker_initializer _worker_pool _workers _zeros
_deferred_compute
""".split())


def is_private(name):
    """Names between underscores, `__len__` and `_repr_html_`, are those of Python's and IPython's protocols."""
    return name.startswith("_") and not name.endswith("_")


def definitions(tree):
    """Names of functions, classes, variables, attributes, imports and slots that a module, or a class, defines."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr
        elif isinstance(node, ast.Import | ast.ImportFrom):
            yield from (alias.asname or alias.name for alias in node.names)
        elif isinstance(node, ast.Assign) and any(getattr(target, "id", "") == "__slots__" for target in node.targets):
            yield from (entry.value for entry in ast.walk(node.value) if isinstance(entry, ast.Constant))


def root(node):
    """The variable at the start of an expression such as ``a.b(c)[d].e``."""
    while isinstance(node, ast.Attribute | ast.Call | ast.Subscript):
        node = node.func if isinstance(node, ast.Call) else node.value
    return getattr(node, "id", "")


def foreign(tree):
    """Names that a test imports from other packages or from modules of the tests."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.asname or alias.name.partition(".")[0] for alias in node.names if alias.name.partition(".")[0] != "mxnet")
        elif isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] != "mxnet":
            yield from (alias.asname or alias.name for alias in node.names)


def accessed(node, others):
    """The names that a node accesses: an attribute, an import from the package, or a text in `getattr`, `setattr` and the like."""
    if isinstance(node, ast.Attribute):
        return [node.attr] if root(node) not in others else []
    if isinstance(node, ast.ImportFrom):
        return [alias.name for alias in node.names] if (node.module or "").partition(".")[0] == "mxnet" else []
    if isinstance(node, ast.Call) and (getattr(node.func, "attr", "") or getattr(node.func, "id", "")) in BY_NAME:
        texts = [a.value for a in node.args if isinstance(a, ast.Constant) and isinstance(a.value, str)]
        return [text.rpartition(".")[2] for text in texts] if node.args and root(node.args[0]) not in others else []
    return []


def accesses(source, names):
    """(line, name) of each access of a test's source to one of `names`; those that its own classes define are its own."""
    tree = ast.parse(source)
    others = {"self", "cls", *foreign(tree)}
    own = {name for node in ast.walk(tree) if isinstance(node, ast.ClassDef) for name in definitions(node)}
    return [(node.lineno, name) for node in ast.walk(tree) for name in accessed(node, others) if name in names and name not in own]


def test_accesses_to_private_names_do_not_grow():
    names = {name for path in ROOT.rglob("*.py") for name in [path.stem, *definitions(ast.parse(path.read_text("utf-8")))] if is_private(name)}
    found = {str(path.relative_to(TESTS)): accesses(path.read_text("utf-8"), names - OF_MXNET) for path in sorted(TESTS.rglob("*.py"))}
    number = sum(map(len, found.values()))
    assert number <= MOST, Counter({path: len(places) for path, places in found.items()}).most_common(20)


def test_each_kind_of_access_counts_once_and_a_tests_own_names_do_not():
    source = """
import numpy as np
from mxnet.a import _name, b
from other import tool

class Own:
    _mine = 1

b._name
b._name(1)._entry
getattr(b, "_entry")
monkeypatch.setattr(b, "_entry", 1)
monkeypatch.setattr("mxnet.a._name", 1)
np._name, tool._entry, b._mine, b._free, b.entry, self._name
"""
    assert sorted(accesses(source, {"_name", "_entry", "_mine"})) == [
        (3, "_name"), (9, "_name"), (10, "_entry"), (10, "_name"), (11, "_entry"), (12, "_entry"), (13, "_name")]
