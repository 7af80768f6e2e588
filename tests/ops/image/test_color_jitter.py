"""Random changes of colours stay within their limits; fixed values are compared in test_arrays_against_oracle.py."""
import numpy as np
import pytest

import mxnet as mx
from mxnet.base import MXNetError


@pytest.fixture
def photo():
    return mx.nd.array(np.arange(60).reshape(4, 5, 3) * 4, dtype="uint8")


@pytest.mark.parametrize("call, message", [
    (lambda x: mx.nd.image.random_brightness(x, min_factor=-1, max_factor=1), "should be greater equal to 0"),
    (lambda x: mx.nd.image.adjust_lighting(x, alpha=(1, 2)), "`alpha` must have 3 numbers"),
])
def test_errors(photo, call, message):
    with pytest.raises(MXNetError, match=message):
        call(photo)


def test_random_changes_stay_within_their_limits(photo):
    bright = [mx.nd.image.random_brightness(photo.astype("float32"), min_factor=0.5, max_factor=0.75).asnumpy() for _ in range(20)]
    factors = [b[-1, -1, -1] / 236 for b in bright]
    assert 0.5 <= min(factors) < 0.6 < 0.65 < max(factors) <= 0.75
    unchanged = mx.nd.image.random_color_jitter(photo, brightness=0, contrast=0, saturation=0, hue=0)
    assert unchanged.asnumpy().tolist() == photo.asnumpy().tolist()
    jittered = mx.nd.image.random_color_jitter(photo, brightness=0.3, contrast=0.3, saturation=0.3, hue=0.3)
    assert jittered.shape == photo.shape and jittered.dtype == np.uint8 and (jittered.asnumpy() != photo.asnumpy()).any()
    lit = mx.nd.image.random_lighting(photo.astype("float32"), alpha_std=0.1).asnumpy() - photo.asnumpy()
    assert np.ptp(lit.reshape(-1, 3), 0).max() < 1e-4 and abs(lit).max() > 0  # one shift of each channel for all pixels
