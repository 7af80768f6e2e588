"""What holds for all tests and for the examples in docstrings."""
import importlib.util
import os
import signal
import sys

import pytest

import mxnet
from mxnet import util
from mxnet.graph.tuning import cache

# Programs that ask the real MXNet for the expected values of tests; they run where that is installed.
collect_ignore_glob = ["tests/**/record_*.py"]
# A program for a Python that has PyQt6, and modules that are imported where there are GPUs.
collect_ignore = ["tests/chromium_window.py"]
if not importlib.util.find_spec("triton"):
    collect_ignore += [f"src/mxnet/kernels/nn/{name}_triton.py" for name in ("batch_norm", "scoring", "sgd")]


def pytest_configure():
    """Ctrl-C is heard, by what the tests start too: a shell starts what runs in the background, as some CI does, with the signal ignored.

    Bytecode is kept: hundreds of processes would each compile the package's modules again.
    """
    sys.dont_write_bytecode = False
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def numpy_semantics_end_with_the_test():
    """`npx.set_np()` and `set_version` hold for the whole process: what turns them on must not change what runs later."""
    yield
    if util.version() != "1.9":
        util.set_version("1.9")
    util.reset_np()


@pytest.fixture(autouse=True)
def mixed_precision_ends_with_the_test():
    """So does `amp.init`, which has no counterpart that turns it off."""
    yield
    amp = sys.modules.get("mxnet.contrib.amp.amp")
    if amp is not None and amp._State.installation is not None:
        amp._State.installation.undo()
        amp._State.installation = None


@pytest.fixture(autouse=True)
def no_graph_is_known(monkeypatch):
    """Who won a graph on this machine before, or in another test, decides nothing here."""
    monkeypatch.setattr(cache.tuning_cache, "get", lambda key: None)
    monkeypatch.setattr(cache.tuning_cache, "keep", lambda key, winner: None)


@pytest.fixture(scope="session", autouse=True)
def examples_know_mx(doctest_namespace):
    """The examples of operators do without ``import mxnet as mx``, which whoever reads them has run."""
    doctest_namespace["mx"] = mxnet
