import numpy as np
import pytest

from mxnet import MXNetError
from mxnet.contrib.onnx.onnx2mx.reading import UnsupportedFeature
from mxnet.contrib.onnx.onnx2mx.values import Value, as_integers, same


def test_arrays_that_agree_are_known():
    assert Value("a", [np.array([1, 2])] * 2).integers("axes") == (1, 2) and Value("a", [np.float32(2)]).number("k") == 2
    assert Value("a", [np.array(1), np.array(2)]).array is None and Value("a").array is None
    with pytest.raises(UnsupportedFeature, match=r"`axes` \(the value 'a'\) must be known when the file is imported"):
        Value("a").constant("axes")


def test_other_than_numbers_is_refused():
    with pytest.raises(MXNetError, match=r"`axes` must be integers in one axis, received float32 of shape \(1,\)"):
        as_integers(np.zeros(1, "float32"), "axes")
    with pytest.raises(MXNetError, match=r"`k` must be one number, received an array of shape \(2,\)"):
        Value("a", [np.zeros(2)]).number("k")


def test_what_is_the_same():
    assert same(np.float32([np.nan]), np.float32([np.nan])) and not same(np.array(1), np.array(1.0)) and not same(np.ones(1), np.ones(2))
