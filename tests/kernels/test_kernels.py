"""Where there is a compiler, every kernel compiles: without this, one that doesn't would only be slower."""
import shutil

import pytest

from mxnet import kernels
from mxnet.kernels.runtime import build, libraries


@pytest.mark.skipif(shutil.which("g++") is None, reason="no C++ compiler")
@pytest.mark.parametrize("name", build.sources(libraries.FOLDER))
def test_it_compiles(name):
    assert kernels.load(name) is not None
