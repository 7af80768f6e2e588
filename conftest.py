"""What holds for all tests and for the examples in docstrings."""
import pytest

import mxnet
from mxnet import util

# Programs that ask the real MXNet for the expected values of tests; they run where that is installed.
collect_ignore_glob = ["tests/**/record_*.py"]


@pytest.fixture(autouse=True)
def numpy_semantics_end_with_the_test():
    """`npx.set_np()` holds for the whole process: what turns it on must not change what runs later."""
    yield
    util.reset_np()


@pytest.fixture(scope="session", autouse=True)
def examples_know_mx(doctest_namespace):
    """The examples of operators do without ``import mxnet as mx``, which whoever reads them has run."""
    doctest_namespace["mx"] = mxnet
