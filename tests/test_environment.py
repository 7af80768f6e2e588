import os
import pathlib
import re
import subprocess
import sys

import pytest

import mxnet as mx
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
    tests_only = {"MXNET_TEST_SEED", "MXNET_MODULE_SEED", "MXNET_TEST_COUNT"}
    missing = [v.name for v in environment.VARIABLES.values() if v.acts and v.name not in found and v.name not in tests_only]
    assert not missing, f"said to act, but not read by any module: {missing}"


def test_every_variable_that_is_read_is_in_the_table():
    unknown = {name: where for name, where in names_in_source().items() if name not in environment.VARIABLES}
    del unknown["MXNET_C_API"]  # a category of profiles
    assert not unknown, f"add to environment.VARIABLES: {unknown}"


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


@pytest.mark.parametrize("name, value, get, message", [
    ("MXNET_UPDATE_ON_KVSTORE", "perhaps", environment.get_bool, "must be 0 or 1, received 'perhaps'; its default is '1'"),
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


def test_configure_hands_over_to_torch():
    program = ("from mxnet import environment; environment.configure(); import os, torch; b = torch.backends; "
               "print(os.environ['CUDA_LAUNCH_BLOCKING'], os.environ['PYTORCH_NO_CUDA_MEMORY_CACHING'], b.cudnn.benchmark, b.cudnn.allow_tf32, "
               "b.mkldnn.enabled, torch.are_deterministic_algorithms_enabled())")
    env = {"MXNET_ENGINE_TYPE": "NaiveEngine", "MXNET_GPU_MEM_POOL_TYPE": "Unpooled", "MXNET_CUDNN_AUTOTUNE_DEFAULT": "0",
           "MXNET_CUDA_ALLOW_TENSOR_CORE": "0", "MXNET_MKLDNN_ENABLED": "0", "MXNET_ENFORCE_DETERMINISM": "1",
           "PYTHONPATH": str(SOURCE.parent), "PATH": "", "OMP_NUM_THREADS": "1"}
    out = subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, text=True, check=True).stdout
    assert out.split() == ["1", "1", "False", "False", "False", "True"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are not forked here")
def test_a_forked_process_computes_although_it_has_none_of_the_threads():
    # A pool of a program's own (GluonCV has one) and a DataLoader's; OpenCV's threads are as absent as OpenMP's.
    program = """
import multiprocessing, signal
import cv2, numpy as np
import mxnet as mx
from mxnet.gluon.data.dataloader import _worker_initializer

def work(i):
    image = cv2.warpAffine(np.ones((2000, 2000, 3), np.uint8), np.eye(2, 3), (2000, 2000))
    return float((mx.nd.ones((2000, 2000)) + 1).sum().asscalar()) + float(image.sum())

def start(*arguments):
    signal.alarm(60)  # whose default ends the process
    _worker_initializer(*arguments)

signal.alarm(60)
expected = work(0)
with multiprocessing.get_context("fork").Pool(2, initializer=start, initargs=([], False, False)) as pool:
    print(pool.map(work, range(2)) == [expected] * 2)
"""
    env = {**os.environ, "OMP_NUM_THREADS": "2"}
    out = subprocess.run([sys.executable, "-W", "ignore", "-c", program], env=env, capture_output=True, text=True, timeout=120)
    assert out.stdout == "True\n", out.stderr
