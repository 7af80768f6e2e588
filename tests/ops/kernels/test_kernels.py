"""Where there is a compiler, every kernel compiles: without this, one that doesn't would only be slower."""
import pathlib
import shutil

import pytest

from mxnet.ops import kernels


@pytest.mark.skipif(shutil.which("g++") is None, reason="no C++ compiler")
@pytest.mark.parametrize("name", sorted(p.stem for p in pathlib.Path(kernels.__file__).parent.glob("*.cpp")))
def test_it_compiles(name):
    assert kernels.load(name) is not None
