import numpy as np
import pytest

from mxnet.numpy import official


def test_functions_by_name():
    assert official.function("svd") is np.linalg.svd and official.function("fft2") is np.fft.fft2 and official.function("add") is np.add
    with pytest.raises(ValueError, match="NumPy has no function 'nope'"):
        official.function("nope")
