import numpy as np
import pytest

import mxnet as mx
from mxnet import MXNetError

X = mx.nd.array(np.arange(6).reshape(1, 1, 2, 3))


@pytest.mark.parametrize("mode, padding, expected", [("linear", "zeros", [0.0, 2.5, 1.25]), ("linear", "border", [0.0, 2.5, 5.0]),
                                                     ("nearest", "border", [0.0, 1.0, 5.0]), ("linear", "reflection", [0.0, 2.5, 5.0])])
def test_values_between_pixels(mode, padding, expected):
    grid = mx.nd.array([[[[-2 / 3, -0.5], [0, 0], [1, 1]]]])
    found = mx.nd.contrib.grid_sample(X, grid, mode=mode, padding_mode=padding)
    np.testing.assert_allclose(found.asnumpy().reshape(-1), expected, atol=1e-6)


def test_aligned_corners_are_those_of_bilinear_sampler():
    grid = np.random.RandomState(1).uniform(-1.2, 1.2, (1, 2, 4, 4)).astype("float32")
    expected = mx.nd.BilinearSampler(X, mx.nd.array(grid)).asnumpy()
    found = mx.nd.contrib.grid_sample(X, mx.nd.array(grid.transpose(0, 2, 3, 1)), align_corners=True)
    np.testing.assert_allclose(found.asnumpy(), expected, atol=1e-6)


def test_volumes():
    data, grid = mx.nd.array(np.arange(8).reshape(1, 1, 2, 2, 2)), mx.nd.array(np.zeros((1, 1, 1, 1, 3)))
    assert mx.nd.contrib.grid_sample(data, grid).asnumpy().tolist() == [[[[[3.5]]]]]
    with pytest.raises(MXNetError, match="mode='cubic' is for two spatial axes"):
        mx.nd.contrib.grid_sample(data, grid, mode="cubic")
    with pytest.raises(MXNetError, match=r"received shapes \(1, 1, 2, 3\) and \(1, 1, 1, 1, 3\)"):
        mx.nd.contrib.grid_sample(X, grid)
