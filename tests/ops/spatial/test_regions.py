"""Errors and shapes; values and gradients are compared in test_arrays_against_oracle.py."""
import numpy as np
import pytest

import mxnet as mx
from mxnet import MXNetError


def zeros(*shape):
    return mx.nd.zeros(shape)


@pytest.mark.parametrize("call, message", [
    (lambda: mx.nd.ROIPooling(zeros(1, 1, 4, 4), zeros(2, 4), pooled_size=(2, 2), spatial_scale=1),
     r"`rois` must be .*\(number of rois, 5\)"),
    (lambda: mx.nd.contrib.PSROIPooling(zeros(1, 5, 4, 4), zeros(1, 5), spatial_scale=1, output_dim=2, pooled_size=2),
     "= 8 channels, received 5"),
    (lambda: mx.nd.ROIPooling(zeros(1, 1, 4, 4), zeros(1, 5), pooled_size=(2, 2), spatial_scale=2),
     "`spatial_scale` must be a number from 0 to 1, received 2"),
    (lambda: mx.nd.contrib.RROIAlign(zeros(1, 1, 4, 4), mx.nd.array([[-1, 1, 1, 2, 2, 0]]), pooled_size=(2, 2), spatial_scale=1),
     "must be that of an image, from 0 to 0, received -1"),
    (lambda: mx.nd.contrib.ROIAlign(zeros(1, 1, 4, 4), mx.nd.array([[1, 1, 1, 2, 2]]), pooled_size=(2, 2), spatial_scale=1),
     "must be that of an image, from 0 to 0, received 1"),
    (lambda: mx.nd.contrib.PSROIPooling(zeros(1, 4, 4, 4), mx.nd.array([[-1, 1, 1, 2, 2]]), spatial_scale=1, output_dim=1, pooled_size=2),
     "must be that of an image, from 0 to 0, received -1"),
    (lambda: mx.nd.contrib.DeformablePSROIPooling(zeros(1, 4, 4, 4), zeros(1, 5), zeros(1, 2, 4, 4), spatial_scale=1, output_dim=1, group_size=2,
                                                  pooled_size=2, part_size=1),
     r"`trans` must have shape \(1, 2 \* classes, 1, 1\).* received \(1, 2, 4, 4\)"),
    (lambda: mx.nd.contrib.DeformablePSROIPooling(zeros(1, 4, 4, 4), zeros(1, 5), spatial_scale=1, output_dim=1, group_size=3, pooled_size=2,
                                                  no_trans=True), "= 9 channels, received 4"),
])
def test_errors(call, message):
    with pytest.raises(MXNetError, match=message):
        call()


def test_position_sensitive_pooling_reads_the_first_channels():
    """Values of MXNet."""
    data = mx.nd.array((np.arange(648) * 37 % 11 / 11).reshape(2, 9, 6, 6))
    regions = mx.nd.array([[0, 1, 1, 4, 4], [1, 0, 0, 3, 5]])
    out = mx.nd.contrib.PSROIPooling(data, regions, spatial_scale=1, output_dim=1, pooled_size=2)
    expected = [0.56818178, 0.63636369, 0.36363637, 0.43181822, 0.34848484, 0.33333334, 0.57575756, 0.56060606]
    np.testing.assert_allclose(out.asnumpy().ravel(), expected, rtol=1e-5)
    out = mx.nd.contrib.DeformablePSROIPooling(data, regions, spatial_scale=1, no_trans=True, sample_per_part=2, output_dim=1, pooled_size=2,
                                               group_size=2)
    expected = [0.48295456, 0.42613637, 0.46590909, 0.53409094, 0.375, 0.47727272, 0.55681819, 0.47159094]
    np.testing.assert_allclose(out.asnumpy().ravel(), expected, rtol=1e-5)
