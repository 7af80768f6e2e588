import os
import subprocess
import sys

import pytest
import torch

from forked import python
from mxnet import memory, threads
from mxnet.graph.backends import registry
from mxnet.kernels.runtime import libraries
from mxnet.tools import diagnose


def part(name, **options):
    """A part of the report, as a dict; lines without a label under themselves."""
    lines = list(diagnose.report((name,), **options))
    assert lines[0] == f"---------- {name} ----------"
    return dict(map(str.strip, line.split(" : ", 1)) for line in lines[1:lines.index("---------- what looks wrong ----------")])


def test_the_program_prints_all_parts_but_the_network():
    done = subprocess.run([*python(), "-m", "mxnet.tools.diagnose"], capture_output=True, text=True, timeout=200,
                          env={**os.environ, "MXNET_CPU_WORKER_NTHREAD": "3"})
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert [line.strip("- ") for line in lines if line.startswith("--")] == [
        "python", "pip", "mxnet", "os", "hardware", "kernels", "backends", "environment", "what looks wrong"]
    wrong = lines[lines.index("---------- what looks wrong ----------"):]
    assert "MXNET_CPU_WORKER_NTHREAD is no variable of MXNet 1.9.1; MXNET_CPU_WORKER_NTHREADS is" in wrong


def test_parts_are_left_out(capsys):
    assert diagnose.main([f"--{name}=0" for name in diagnose.PARTS if name != "python"]) == 0
    assert [line for line in capsys.readouterr().out.splitlines() if line.startswith("--")] == [
        "---------- python ----------", "---------- what looks wrong ----------"]


def test_versions_and_features():
    told = part("mxnet")
    assert told["version"] == "1.9.1 (Remex 0.1.0)" and told["torch"] == torch.__version__
    assert "PROFILER" in told["features"].split() and "TVM_OP" in told["without"].split()
    assert not set(told["features"].split()) & set(told["without"].split())


def test_cores_and_threads():
    told = part("hardware")
    assert told["threads"].startswith(f"{torch.get_num_threads()} in an operator ({threads.policy.reason})")
    assert told["threads"].endswith(f"; {torch.get_num_interop_threads()} operators beside each other")
    assert f"{threads.usual()} where no other program is busy; {threads.usual()} in OpenVINO, " in told["threads"]
    assert told["allocator"] == ("keeps its memory" if memory.kept else "as the system has it")


@pytest.mark.skipif(sys.platform != "linux", reason="kernels are for Linux")
def test_each_kernel_says_where_it_comes_from_or_why_it_is_off(monkeypatch):
    told = part("kernels")
    assert {"nn/batch_norm", "conv/convolution", "runtime/heap", "nn/nms", "nn/recurrent"} < set(told)
    assert all(told[name] == libraries.origins[name] for name in ("nn/nms", "nn/recurrent"))
    monkeypatch.setitem(libraries.origins, "nn/nms", "off: there is no C++ compiler; install g++, or name one in CXX")
    assert "kernel nn/nms is off: there is no C++ compiler; install g++, or name one in CXX" in diagnose.problems()


@pytest.fixture
def missing(monkeypatch):
    """Two kernels have to be compiled; whichever `stop` names is interrupted by Ctrl-C."""
    compiled_now, stop = [], []

    def load(name):
        if name in stop:
            raise KeyboardInterrupt
        compiled_now.append(name)
        monkeypatch.setitem(libraries.origins, name, "compiled for this test")

    monkeypatch.setattr(libraries, "is_missing", lambda name: name in ("nn/nms", "nn/softmax"))
    monkeypatch.setattr(diagnose.kernels, "load", load)
    monkeypatch.setattr(diagnose.kernels, "own_heap", lambda: False)
    return compiled_now, stop


def test_it_says_that_kernels_are_compiled_before_it_does_so(missing, capsys):
    told, (done, _) = part("kernels"), missing
    assert capsys.readouterr().err == ("2 kernels did not come with the package and are compiled now, once, for about two seconds each; "
                                       "Ctrl-C leaves out the rest\n")
    assert done[:2] == ["nn/nms", "nn/softmax"] and told["nn/softmax"] == "compiled for this test"


def test_an_interrupt_leaves_out_the_kernels_that_are_left(missing, capsys):
    done, stop = missing
    stop.append("nn/softmax")
    told = part("kernels")
    assert told["nn/nms"] == "compiled for this test" and told["nn/softmax"] == "not compiled yet: interrupted" and "nn/softmax" not in done
    assert capsys.readouterr().err.endswith("interrupted\n") and told["large tensors"] == "have no heap of their own"


def test_an_interrupt_ends_the_program_without_a_traceback(monkeypatch):
    def interrupted():
        raise KeyboardInterrupt
    monkeypatch.setitem(diagnose.PARTS, "python", interrupted)
    assert diagnose.main([f"--{name}=0" for name in diagnose.PARTS if name != "python"]) == 130


def test_backends(monkeypatch):
    told = part("backends")
    assert told["native"] == f"{torch.__version__}, available on {'cuda' if torch.cuda.is_available() else 'cpu'}"
    monkeypatch.setattr(registry.get("openvino"), "available", lambda: False, raising=False)
    assert "openvino cannot be imported, graphs run on torch alone: pip install openvino" in diagnose.problems()


@pytest.mark.parametrize(("name", "value", "expected"), [
    ("MXNET_USE_FUSION", "ja", "MXNET_USE_FUSION is 'ja': expected is a number, such as its default, 1"),
    ("MXNET_USE_FUSION", "no", None),
    ("MXNET_NO_SUCH_THING_AT_ALL", "1", "MXNET_NO_SUCH_THING_AT_ALL is no variable of MXNet 1.9.1")])
def test_variables_that_are_set_wrongly(monkeypatch, name, value, expected):
    monkeypatch.setenv(name, value)
    assert [text for text in diagnose.problems() if name in text] == ([expected] if expected else [])


def test_variables_without_effect_say_so(monkeypatch):
    monkeypatch.setenv("MXNET_CPU_NNPACK_NTHREADS", "4")
    assert part("environment")["MXNET_CPU_NNPACK_NTHREADS"] == "'4': no effect here, NNPACK is not used"


def test_more_threads_than_cores(monkeypatch):
    monkeypatch.setattr(threads, "usable", lambda: 0.5)
    count = torch.get_num_threads()
    assert f"torch uses {count} threads, but this process may use 0.5 cores: set OMP_NUM_THREADS to so many" in diagnose.problems()


def test_another_allocator(monkeypatch):
    monkeypatch.setenv("LD_PRELOAD", "/usr/lib/libjemalloc.so.2")
    monkeypatch.setattr(memory, "kept", True)
    assert "LD_PRELOAD brings jemalloc: what is tuned here is glibc's allocator; say MXNET_CPU_MEM_POOL_TYPE=Unpooled" in diagnose.problems()


def test_servers_out_of_reach_are_named(monkeypatch):
    monkeypatch.setenv("MXNET_GLUON_REPO", "http://127.0.0.1:9/")
    monkeypatch.setattr(diagnose.urllib.request, "urlopen", refuse)
    assert part("network", timeout=0.1)["http://127.0.0.1:9/"] == "out of reach: [Errno 111] Connection refused"


def refuse(*arguments, **options):
    raise OSError(111, "Connection refused")
