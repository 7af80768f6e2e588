import os
import socket
import subprocess
import sys

import numpy as np
import pytest

from forked import python
from mxnet.base import MXNetError
from mxnet.context import gpu
from mxnet.serve.tensors import TensorSpec
from mxnet.tools import serve


def test_inputs_of_the_command_line():
    assert serve.parse_input("data=-1,3,224,224") == (None, TensorSpec("data", np.dtype(np.float32), (-1, 3, 224, 224)))
    assert serve.parse_input("m:ids=8:int64") == ("m", TensorSpec("ids", np.dtype(np.int64), (8,)))
    for text in ("data", "data=", "data=1,x", "data=0", "data=-2", "data=1:complex", "=1"):
        with pytest.raises(MXNetError, match=r"--input is \[MODEL:\]NAME=SIZES\[:TYPE\].*received"):
            serve.parse_input(text)


def test_devices_of_the_command_line():
    assert serve.parse_device("gpu(1)") == gpu(1) and serve.parse_device("gpu") == gpu(0) and str(serve.parse_device("cpu")) == "cpu(0)"
    with pytest.raises(MXNetError, match="received 'tpu'"):
        serve.parse_device("tpu")


def test_the_port_is_sagemakers(monkeypatch):
    monkeypatch.setenv("SAGEMAKER_BIND_TO_PORT", "9999")
    assert serve.build_parser().parse_args(["m"]).port == 9999


def test_a_port_that_is_taken(capsys):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        assert serve.main(["nothing", "--port", str(taken.getsockname()[1])]) == 1
    assert "can't listen on 127.0.0.1" in capsys.readouterr().err


def test_what_is_missing_is_said(tmp_path):
    (tmp_path / "starlette.py").write_text("raise ImportError('no starlette')")
    done = subprocess.run([*python(), "-m", "mxnet.tools.serve", "m"], capture_output=True, text=True, timeout=200, env={
        **os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])})
    assert done.returncode == 1 and done.stderr.endswith("pip install 'remexnet[serve]'\n")
