import ast
import os
import pathlib
import re
import subprocess

import pytest
import torch

import mxnet as mx
from forked import python
from mxnet import environment

SOURCE = pathlib.Path(mx.__file__).parent
NAME = re.compile(r"""["'`$ (]((?:MXNET|DMLC|PS)_[A-Z0-9_]+)\b""")


def names_in_source():
    found = {}
    for path in SOURCE.rglob("*.py"):
        text = path.read_text()
        if path.name == "environment.py" and path.parent == SOURCE:
            text = text[text.index("def configure"):]
        for name in NAME.findall(text):
            found.setdefault(name, path.name)
    return found


def test_every_variable_that_acts_is_read_somewhere():
    found = names_in_source()
    missing = [v.name for v in environment.VARIABLES.values() if v.acts and v.name not in found]
    assert not missing, f"said to act, but not read by any module: {missing}"


def test_every_variable_that_is_read_is_in_the_table():
    unknown = {name: where for name, where in names_in_source().items() if name not in environment.VARIABLES}
    del unknown["MXNET_C_API"]  # a category of profiles
    assert not unknown, f"add to environment.VARIABLES: {unknown}"


# The test that sees a variable act: what it does, not that its value is read. A variable that is said to act needs one.
SEEN = {
    "MXNET_HOME": "test_base.py::test_data_dir",
    "MXNET_GLUON_REPO": "gluon/model_zoo/test_model_store.py::test_downloads_once",
    "MXNET_LIBRARY_PATH": "test_libinfo.py::test_paths",
    "MXNET_INCLUDE_PATH": "test_libinfo.py::test_paths",
    "MXNET_CONF_PATH": "test_libinfo.py::test_paths",
    "MXNET_IMAGE_MAX_PIXELS": "test_image_header.py::test_large_images_are_refused_before_they_are_decoded",
    "MXNET_CPU_MEM_POOL_TYPE": "test_memory.py::test_the_allocator_is_configured_once_at_import",
    "MXNET_GPU_MEM_POOL_TYPE": "test_environment.py::test_configure_hands_over_to_torch",
    "MXNET_BACKWARD_DO_MIRROR": "graph/passes/test_recomputation.py::test_moving_averages_change_once",
    "MXNET_ENGINE_TYPE": "test_environment.py::test_configure_hands_over_to_torch",
    "MXNET_EXEC_BULK_EXEC_INFERENCE": "graph/tuning/test_policy.py::test_bulk_execution_can_be_turned_off",
    "MXNET_EXEC_BULK_EXEC_TRAIN": "graph/backends/test_registry.py::test_the_passes_can_be_turned_off",
    "MXNET_ENABLE_CUDA_GRAPHS": "graph/backends/cuda/test_graph_capture.py::test_who_asks_for_captures",
    "MXNET_SUBGRAPH_BACKEND": "graph/tuning/test_policy.py::test_none_keeps_graphs_on_native",
    "MXNET_ELIMINATE_COMMON_EXPR": "test_executor.py::test_common_expressions_are_computed_once",
    "MXNET_USE_FUSION": "graph/backends/test_registry.py::test_the_passes_can_be_turned_off",
    "MXNET_FUSION_VERBOSE": "graph/backends/test_registry.py::test_the_passes_say_what_they_did",
    "MXNET_QUANTIZATION_VERBOSE": "contrib/quantization/test_models.py::test_number_of_examples_and_log",
    "MXNET_DISABLE_MKLDNN_CONV_OPT": "graph/int8/test_onednn.py::test_what_is_turned_off",
    "MXNET_DISABLE_MKLDNN_FC_OPT": "graph/int8/test_onednn.py::test_what_is_turned_off",
    "MXNET_DISABLE_MKLDNN_TRANSFORMER_OPT": "graph/int8/test_onednn.py::test_attention_is_left_alone",
    "MXNET_DISABLE_MKLDNN_FUSE_CONV_BN": "graph/int8/test_onednn.py::test_what_is_turned_off",
    "MXNET_DISABLE_MKLDNN_FUSE_CONV_RELU": "graph/int8/test_onednn.py::test_what_is_turned_off",
    "MXNET_DISABLE_MKLDNN_FUSE_CONV_SUM": "graph/int8/test_onednn.py::test_sums_are_left_alone",
    "MXNET_DISABLE_MKLDNN_FUSE_FC_ELTWISE": "graph/int8/test_onednn.py::test_what_is_turned_off",
    "MXNET_DISABLE_MKLDNN_QFC_FUSE_ALL": "graph/int8/test_onednn.py::test_what_returns_real_numbers",
    "MXNET_DISABLE_MKLDNN_QFC_FLOAT_OUTPUT": "graph/int8/test_onednn.py::test_what_returns_real_numbers",
    "MXNET_DISABLE_MKLDNN_QEM_FUSE_ALL": "graph/int8/test_onednn.py::test_what_returns_real_numbers",
    "MXNET_DISABLE_MKLDNN_QEM_FLOAT_OUTPUT": "graph/int8/test_onednn.py::test_what_returns_real_numbers",
    "MXNET_DISABLE_MKLDNN_QTRANSFORMER_FUSE_ALL": "graph/int8/test_onednn.py::test_what_returns_real_numbers",
    "MXNET_DISABLE_MKLDNN_QTRANSFORMER_FLOAT_OUTPUT": "graph/int8/test_onednn.py::test_what_returns_real_numbers",
    "MXNET_ENFORCE_DETERMINISM": "test_environment.py::test_configure_hands_over_to_torch",
    "MXNET_FC_TRUE_FP16": "test_environment.py::test_configure_hands_over_to_torch",
    "MXNET_CUDA_ALLOW_TENSOR_CORE": "test_environment.py::test_configure_hands_over_to_torch",
    "MXNET_CUDA_TENSOR_OP_MATH_ALLOW_CONVERSION": "test_environment.py::test_configure_hands_over_to_torch",
    "MXNET_CUDNN_AUTOTUNE_DEFAULT": "test_environment.py::test_configure_hands_over_to_torch",
    "MXNET_CONVOLUTION_ALGORITHM": "graph/passes/test_fusion.py::test_the_environment_asks_for_exact_convolutions",
    "MXNET_MKLDNN_ENABLED": "test_environment.py::test_configure_hands_over_to_torch",
    "MXNET_OPTIMIZER_AGGREGATION_SIZE": "optimizer/test_updater.py::test_how_many_weights_go_together",
    "MXNET_UPDATE_AGGREGATION_SIZE": "kvstore/test_updates.py::test_the_store_updates",
    "MXNET_UPDATE_ON_KVSTORE": "kvstore/test_updates.py::test_a_store_that_was_made_is_taken_even_for_one_device",
    "MXNET_STORAGE_FALLBACK_LOG_VERBOSE": "ndarray/sparse/test_dispatch.py::test_the_way_over_dense_is_said_once_for_each_kind",
    "MXNET_KVSTORE_BIGARRAY_BOUND": "kvstore/test_parts.py::test_large_keys_are_divided",
    "MXNET_KVSTORE_SHARD": "kvstore/test_sharded.py::test_values_without_an_optimizer_and_what_is_not_offered",
    "MXNET_KVSTORE_SLICE_THRESHOLD": "kvstore/test_collective.py::test_large_values_travel_in_slices",
    "DMLC_ROLE": "kvstore/test_membership.py::test_places",
    "DMLC_PS_ROOT_URI": "kvstore/test_membership.py::test_ranks_are_drawn_and_end",
    "DMLC_PS_ROOT_PORT": "kvstore/test_membership.py::test_ranks_are_drawn_and_end",
    "DMLC_NUM_WORKER": "kvstore/test_membership.py::test_places",
    "DMLC_NUM_SERVER": "kvstore/test_membership.py::test_places",
    "DMLC_WORKER_ID": "kvstore/test_membership.py::test_places",
    "DMLC_SERVER_ID": "kvstore/test_membership.py::test_places",
    "DMLC_INTERFACE": "kvstore/test_membership.py::test_addresses",
    "MXNET_KVSTORE_JOIN_TIMEOUT": "kvstore/test_membership.py::test_whoever_does_not_come_is_missed",
    "PS_HEARTBEAT_INTERVAL": "kvstore/test_liveness.py::test_the_environment_says_how_often_signs_of_life_come_and_for_how_long_one_waits",
    "PS_HEARTBEAT_TIMEOUT": "kvstore/test_liveness.py::test_the_environment_says_how_often_signs_of_life_come_and_for_how_long_one_waits",
    "DMLC_PS_VAN_TYPE": "kvstore/test_collective.py::test_sums_and_broadcasts",
    "MXNET_PROFILER_AUTOSTART": "profiler/test_tutorial.py::test_autostart",
    "MXNET_PROFILER_MODE": "profiler/test_tutorial.py::test_autostart",
}


def test_every_variable_that_acts_is_seen_to_act():
    acts = {v.name for v in environment.VARIABLES.values() if v.acts}
    assert acts == set(SEEN), "name the test that sees each variable of environment.VARIABLES act that is said to"
    for variable, test in SEEN.items():
        path, name = test.split("::")
        text = (pathlib.Path(__file__).parent / path).read_text()
        functions = {node.name: node for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)}
        assert name in functions, f"there is no {test}, which was to see {variable} act"
        assert variable in text, f"{test} does not set {variable}"


def test_no_variable_is_there_twice():
    assert len(environment._TABLE) == len(environment.VARIABLES)


def test_values(monkeypatch):
    for text, value in (("1", True), ("true", True), ("0", False), ("False", False)):
        monkeypatch.setenv("MXNET_UPDATE_ON_KVSTORE", text)
        assert environment.get_bool("MXNET_UPDATE_ON_KVSTORE") is value
    monkeypatch.delenv("MXNET_UPDATE_ON_KVSTORE")
    assert environment.get_bool("MXNET_UPDATE_ON_KVSTORE") is True
    monkeypatch.setenv("MXNET_OPTIMIZER_AGGREGATION_SIZE", "7")
    assert environment.get_int("MXNET_OPTIMIZER_AGGREGATION_SIZE") == 7
    assert environment.get_float("MXNET_KVSTORE_TREE_LINK_USAGE_PENALTY") == 0.7
    assert environment.get_int("MXNET_UPDATE_AGGREGATION_SIZE") is None
    assert environment.get_str("MXNET_ENGINE_TYPE") == "ThreadedEnginePerDevice"
    assert environment.get_choice("MXNET_CONVOLUTION_ALGORITHM", "fastest", "exact") == "fastest"


@pytest.mark.parametrize("name, value, get, message", [
    ("MXNET_UPDATE_ON_KVSTORE", "perhaps", environment.get_bool, "must be 0 or 1, received 'perhaps'; its default is '1'"),
    ("MXNET_CONVOLUTION_ALGORITHM", "fast", lambda name: environment.get_choice(name, "fastest", "exact"),
     "must be fastest or exact, received 'fast'; its default is 'fastest'"),
    ("MXNET_OPTIMIZER_AGGREGATION_SIZE", "many", environment.get_int, "must be an integer, received 'many'"),
    ("MXNET_KVSTORE_TREE_LINK_USAGE_PENALTY", "x", environment.get_float, "must be a number, received 'x'")])
def test_malformed_values(monkeypatch, name, value, get, message):
    monkeypatch.setenv(name, value)
    with pytest.raises(mx.MXNetError, match=f"environment variable {name} {message}"):
        get(name)


def test_describe(monkeypatch):
    monkeypatch.setenv("MXNET_HOME", "/data")
    text = environment.describe()
    assert "MXNET_HOME= (set to '/data'): the folder for downloaded data" in text
    assert "MXNET_USE_FUSION=1: 0: operators are not fused" in text


@pytest.mark.parametrize("variables, shown, before, expected", [
    ({"MXNET_ENGINE_TYPE": "NaiveEngine"}, "os.environ.get('CUDA_LAUNCH_BLOCKING')", "None", "1"),
    ({"MXNET_GPU_MEM_POOL_TYPE": "Unpooled"}, "os.environ.get('PYTORCH_NO_CUDA_MEMORY_CACHING')", "None", "1"),
    ({"MXNET_GPU_MEM_POOL_TYPE": "Round"}, "os.environ.get('PYTORCH_CUDA_ALLOC_CONF')", "None", "roundup_power2_divisions:1"),
    ({"MXNET_CUDNN_AUTOTUNE_DEFAULT": "1"}, "b.cudnn.benchmark", "False", "True"),
    ({"MXNET_CUDNN_AUTOTUNE_DEFAULT": "0"}, "b.cudnn.benchmark", "False", "False"),
    ({"MXNET_CUDA_ALLOW_TENSOR_CORE": "0"}, "b.cudnn.allow_tf32", "True", "False"),
    ({"MXNET_CUDA_TENSOR_OP_MATH_ALLOW_CONVERSION": "1"}, "b.cuda.matmul.allow_tf32", "False", "True"),
    ({"MXNET_CUDA_TENSOR_OP_MATH_ALLOW_CONVERSION": "1", "MXNET_CUDA_ALLOW_TENSOR_CORE": "0"}, "b.cuda.matmul.allow_tf32", "False", "False"),
    ({"MXNET_FC_TRUE_FP16": "1"}, "b.cuda.matmul.allow_fp16_accumulation", "False", "True"),
    ({"MXNET_MKLDNN_ENABLED": "0"}, "b.mkldnn.enabled", "True", "False"),
    ({"MXNET_ENFORCE_DETERMINISM": "1"}, "torch.are_deterministic_algorithms_enabled()", "False", "True")])
def test_configure_hands_over_to_torch(variables, shown, before, expected, monkeypatch):
    """In this process, whose torch is put back: a process for each would take a minute."""
    b, names = torch.backends, ("CUDA_LAUNCH_BLOCKING", "PYTORCH_NO_CUDA_MEMORY_CACHING", "PYTORCH_CUDA_ALLOC_CONF", "CUBLAS_WORKSPACE_CONFIG")
    places = [(b.cudnn, "benchmark"), (b.cudnn, "allow_tf32"), (b.cuda.matmul, "allow_tf32"), (b.cuda.matmul, "allow_fp16_accumulation")]
    values, mkldnn, deterministic = [getattr(*place) for place in places], b.mkldnn.enabled, torch.are_deterministic_algorithms_enabled()
    kept = {name: os.environ.get(name) for name in names}
    try:
        found = []
        for setting in ({}, variables):
            for name in (*variables, *names):
                os.environ.pop(name, None)
            with monkeypatch.context() as patch:
                for name, value in setting.items():
                    patch.setenv(name, value)
                environment.configure()
                found.append(str(eval(shown, {"os": os, "torch": torch, "b": b})))
        assert found == [before, expected]
    finally:
        for place, value in zip(places, values):
            setattr(*place, value)
        b.mkldnn.set_flags(mkldnn)
        torch.use_deterministic_algorithms(deterministic)
        for name, value in kept.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value


def test_the_import_configures():
    program = "import mxnet, torch; print(torch.backends.mkldnn.enabled, torch.backends.cudnn.benchmark)"
    env = {"MXNET_MKLDNN_ENABLED": "0", "MXNET_CUDNN_AUTOTUNE_DEFAULT": "0", "PYTHONPATH": str(SOURCE.parent), "PATH": "", "OMP_NUM_THREADS": "1"}
    out = subprocess.run([*python(), "-c", program], env=env, capture_output=True, text=True, check=True, timeout=120).stdout
    assert out.split() == ["False", "False"]
