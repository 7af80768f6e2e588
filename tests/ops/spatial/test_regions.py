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


def test_regions_far_beyond_the_map_are_sampled_near_it():
    """Of 3000 samples, a pixel apart, those beyond the map count nothing; numbers are MXNet's."""
    data = mx.nd.array(np.arange(20).reshape(1, 1, 4, 5))
    rois = mx.nd.array([[0, -3000, 0, 3000, 3], [0, 1, -2000, 3, 2500.5], [0, 0, 0, 1, 2]])
    out = mx.nd.contrib.ROIAlign(data, rois, pooled_size=(1, 2), spatial_scale=1).asnumpy().reshape(3, 2)
    np.testing.assert_allclose(out, [[0.0025, 0.0165], [0.00925670, 0.01036757], [5.25, 5.75]], rtol=5e-5)
    out = mx.nd.contrib.ROIAlign(data, rois, pooled_size=(1, 2), spatial_scale=1, sample_ratio=1000).asnumpy().reshape(3, 2)
    np.testing.assert_allclose(out, [[0, 0.0205], [0.00386145, 0.00486145], [5.25, 5.75]], rtol=5e-5)


ROIS = [[0, 0, 0, 1, 2]]


@pytest.mark.parametrize("name, rois, attributes, message", [
    ("ROIAlign", ROIS, {"pooled_size": (3, 4), "sample_ratio": 10**9}, "`sample_ratio` must be an integer up to 1024, received 1000000000"),
    ("ROIAlign", ROIS, {"pooled_size": (1 << 53, 4), "position_sensitive": True}, r"area divides the 1 channels, received \(9007199254740992, 4\)"),
    ("ROIAlign", ROIS, {"pooled_size": (1 << 31, -4)}, r"`pooled_size` must be two sizes above 0, received \(2147483648, -4\)"),
    ("ROIPooling", ROIS, {"pooled_size": (1 << 31, -4)}, r"`pooled_size` must be two sizes above 0, received \(2147483648, -4\)"),
    ("RROIAlign", [[0, 2, 2, 1e30, 2, 0]], {"pooled_size": (2, 2)}, "sampled at up to 262144 points, received one of 2 x 1e\\+30 pixels"),
    ("RROIAlign", [[0, 2, 2, 2, 2, 0]], {"pooled_size": (2, 2, 2)}, r"must be two sizes above 0, received \(2, 2, 2\)"),
    ("DeformablePSROIPooling", ROIS, {"output_dim": 1, "group_size": 1, "pooled_size": 1, "sample_per_part": 1 << 53, "no_trans": True},
     "sampled at up to 262144 points, received output_dim=1, pooled_size=1 and sample_per_part=9007199254740992")])
def test_no_memory_for_endless_samples(name, rois, attributes, message):
    function = mx.nd.ROIPooling if name == "ROIPooling" else getattr(mx.nd.contrib, name)
    with pytest.raises(MXNetError, match=message):
        function(mx.nd.ones((1, 1, 4, 4)), mx.nd.array(rois), spatial_scale=1, **attributes)


def test_many_samples_are_taken_in_portions(monkeypatch):
    from mxnet.ops.spatial import regions
    data, rotated = mx.nd.array(np.arange(96).reshape(1, 3, 4, 8)), mx.nd.array([[0, 2, 2, 3, 2, 30], [0, 1, 1, 4, 4, 0]])
    rois = mx.nd.array([[0, 0, 0, 3, 2], [0, 1, 1, 7, 3]])
    calls = [lambda: mx.nd.contrib.ROIAlign(data, rois, pooled_size=(3, 2), spatial_scale=1),
             lambda: mx.nd.contrib.RROIAlign(data, rotated, pooled_size=(3, 2), spatial_scale=1),
             lambda: mx.nd.contrib.DeformablePSROIPooling(data, rois, no_trans=True, spatial_scale=1, output_dim=3, group_size=1, pooled_size=2,
                                                          sample_per_part=2)]
    whole = [call().asnumpy().tolist() for call in calls]
    monkeypatch.setattr(regions, "_PORTION", 1)
    assert [call().asnumpy().tolist() for call in calls] == whole
