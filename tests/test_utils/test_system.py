import os
import sys

import pytest

import mxnet as mx
from mxnet import test_utils as tu


def test_environment(monkeypatch):
    monkeypatch.setenv("MXNET_A", "1")
    monkeypatch.delenv("MXNET_B", raising=False)
    with tu.environment({"MXNET_A": None, "MXNET_B": "2"}):
        assert "MXNET_A" not in os.environ and tu.getenv("MXNET_B") == "2"
    assert os.environ["MXNET_A"] == "1" and "MXNET_B" not in os.environ
    with pytest.raises(KeyError), tu.environment("MXNET_A", "3"):
        assert os.environ["MXNET_A"] == "3"
        raise KeyError
    assert os.environ["MXNET_A"] == "1"
    with pytest.raises(ValueError, match="expected a dict, or a name and a value"), tu.environment("MXNET_A"):
        pass


def test_discard_stderr(capfd):
    with tu.discard_stderr():
        os.write(2, b"native")
        sys.stderr.write("python")
        sys.stderr.flush()
    sys.stderr.write("afterwards")
    assert capfd.readouterr().err == "afterwards"


def test_discard_stderr_without_a_file(monkeypatch):
    monkeypatch.setattr(sys, "stderr", None)
    with tu.discard_stderr():
        pass


def test_retry():
    tries = []

    @tu.retry(3)
    def flaky():
        tries.append(1)
        assert len(tries) == 3

    flaky()

    @tu.retry(2)
    def hopeless():
        tries.append(1)
        raise AssertionError("no")

    with pytest.raises(AssertionError, match="no"):
        hopeless()
    assert len(tries) == 5
    with pytest.raises(ValueError, match="at least once"):
        tu.retry(0)


def test_default_context():
    before = mx.current_context()
    try:
        tu.set_default_context(mx.cpu(3))
        assert tu.default_context() == mx.cpu(3) == mx.nd.ones((1,)).context
    finally:
        tu.set_default_context(before)


def test_facts(monkeypatch):
    import torch
    assert len(tu.list_gpus()) == torch.cuda.device_count()
    assert tu.is_op_runnable() and not tu.has_tvm_ops()
    monkeypatch.setenv("CD_JOB", "1")
    assert tu.is_cd_run()


def test_star_import_brings_what_tests_of_mxnet_use():
    names = {}
    exec("from mxnet.test_utils import *", names)
    assert {"np", "mx", "rnd", "assert_almost_equal", "default_context", "use_np", "check_consistency", "OrderedDict"} <= set(names)
