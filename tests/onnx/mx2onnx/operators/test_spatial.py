import numpy as np
import pytest

import mxnet as mx
from onnx_checks import check, exported

X, Y = mx.sym.var("x"), mx.sym.var("y")
RNG = np.random.default_rng(1)


def real(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


def test_up_sampling():
    check(mx.sym.UpSampling(X, scale=2, sample_type="nearest"), {"x": real(1, 2, 3, 4)}, varying=[(1, 2, None, None)],
          others=[{"x": real(1, 2, 5, 3)}])
    for scale in (2, 3):
        sym = mx.sym.UpSampling(X, scale=scale, sample_type="bilinear", num_filter=2, name="u")
        size = 2 * scale - scale % 2
        check(sym, {"x": real(1, 2, 3, 4)}, {"u_weight": real(2, 1, size, size)}, atol=1e-5)
    with pytest.raises(mx.MXNetError, match="more than one input; enlarge each by itself, then join them with Concat"):
        exported(mx.sym.UpSampling(X, Y, scale=2, sample_type="nearest", num_args=2), {"x": real(1, 2, 3, 4), "y": real(1, 2, 3, 4)})


@pytest.mark.parametrize("attributes", [{"height": 5, "width": 7}, {"height": 2, "width": 1}, {"scale_height": 1.5, "scale_width": 0.6},
                                        {"mode": "to_odd_up"}, {"height": 5, "width": 1, "align_corners": False}])
def test_bilinear_resize(attributes):
    check(mx.sym.contrib.BilinearResize2D(X, **attributes), {"x": real(2, 3, 4, 6)}, atol=1e-5)


def test_bilinear_resize_of_varying_sizes():
    check(mx.sym.contrib.BilinearResize2D(X, scale_height=1.5, scale_width=2), {"x": real(1, 1, 4, 6)}, varying=[(1, 1, "H", "W")],
          others=[{"x": real(1, 1, 5, 3)}], atol=1e-5)
    check(mx.sym.contrib.BilinearResize2D(X, Y, mode="like"), {"x": real(1, 1, 4, 6), "y": real(1, 1, 3, 9)},
          varying=[(1, 1, 4, 6), (1, 1, "H", "W")], others=[{"x": real(1, 1, 4, 6), "y": real(1, 1, 7, 2)}], atol=1e-5)
    with pytest.raises(mx.MXNetError, match="mode='to_even_up' of an input whose size may vary"):
        exported(mx.sym.contrib.BilinearResize2D(X, mode="to_even_up"), {"x": real(1, 1, 5, 5)}, dynamic_shapes=[(1, 1, None, None)])


@pytest.mark.parametrize("size", [(), 1, (2, 3), 4])
def test_adaptive_average_pooling(size):
    check(mx.sym.contrib.AdaptiveAvgPooling2D(X, output_size=size), {"x": real(1, 2, 5, 7)}, atol=1e-5)


def test_regions():
    check(mx.sym.ROIPooling(X, Y, pooled_size=(2, 2), spatial_scale=1), {"x": np.arange(48, dtype=np.float32).reshape(1, 1, 8, 6),
                                                                         "y": np.array([[0, 0, 0, 4, 4]], np.float32)},
          opsets=(13, 12, 21))  # ONNX Runtime has no MaxRoiPool and no RoiAlign of opset 22
    rois = np.array([[0, 1, 1, 6, 6], [1, 0, 2, 5, 9], [-1, 0, 0, 3, 3]], np.float32)
    for samples in (2, -1):
        check(mx.sym.contrib.ROIAlign(X, Y, pooled_size=(2, 3), spatial_scale=0.5, sample_ratio=samples),
              {"x": real(2, 3, 8, 8), "y": rois}, atol=1e-5, opsets=(13, 12, 21))
    with pytest.raises(mx.MXNetError, match="position_sensitive=True and aligned=True have no counterpart"):
        exported(mx.sym.contrib.ROIAlign(X, Y, pooled_size=(2, 3), spatial_scale=0.5, aligned=True), {"x": real(2, 3, 8, 8), "y": rois})
