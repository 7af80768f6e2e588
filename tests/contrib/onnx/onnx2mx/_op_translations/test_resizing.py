import numpy as np
import pytest

import mxnet as mx
from mxnet.contrib.onnx.onnx2mx._op_translations.resizing import nearest, weights
from onnx_import_checks import agrees, model_of, node, run

X = np.random.RandomState(0).rand(1, 2, 4, 5).astype("float32")


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
@pytest.mark.parametrize("where", ["half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel"])
@pytest.mark.parametrize("scales", [(1, 1, 2, 2), (1, 1, 0.5, 1.6)], ids=str)
def test_scales(mode, where, scales):
    agrees(node("Resize", "x - s", mode=mode, coordinate_transformation_mode=where), {"x": X}, {"s": np.float32(scales)}, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("mode", ["nearest", "linear"])
@pytest.mark.parametrize("where", ["half_pixel", "align_corners"])
def test_sizes(mode, where):
    agrees(node("Resize", "x - - n", mode=mode, coordinate_transformation_mode=where), {"x": X}, {"n": np.array([1, 2, 7, 9])}, rtol=1e-4, atol=1e-4)


def test_antialiasing_and_outside():
    for mode in ("linear", "cubic"):
        agrees(node("Resize", "x - s", mode=mode, antialias=1), {"x": X}, {"s": np.float32([1, 1, 0.5, 0.6])}, opset=18, rtol=1e-3, atol=1e-4)
    twice = {"s": np.float32([1, 1, 2, 2])}
    agrees(node("Resize", "x - s", mode="cubic", exclude_outside=1, cubic_coeff_a=-0.5), {"x": X}, twice, rtol=1e-3, atol=1e-4)


def test_before_version_11():
    for operator, opset in (("Upsample", 9), ("Resize", 10)):
        (found,) = run(model_of([node(operator, "x s")], {"x": X.shape}, {"s": np.float32([1, 1, 2, 2])}, opset=opset), x=X)
        assert found.tolist() == X.repeat(2, 2).repeat(2, 3).tolist()


def test_open_sizes():
    model = model_of([node("Resize", "x - s", coordinate_transformation_mode="asymmetric", nearest_mode="floor")], {"x": ("n", 2, "h", "w")},
                     {"s": np.float32([1, 1, 2, 3])})
    assert run(model, x=X)[0].tolist() == X.repeat(2, 2).repeat(3, 3).tolist()
    model = model_of([node("Resize", "x - s", mode="linear")], {"x": ("n", 2, "h", "w")}, {"s": np.float32([1, 1, 2, 3])})
    agrees(node("Resize", "x - s", mode="linear"), {"x": X}, {"s": np.float32([1, 1, 2, 3])}, shapes={"x": ("n", 2, "h", "w")}, rtol=1e-4, atol=1e-5)


def test_a_part_of_the_image():
    constants = {"r": np.float32([0, 0, 0.25, -0.5, 1, 1, 0.75, 1.25]), "s": np.array([*X.shape[:2], 3, 4])}
    for mode in ("nearest", "linear", "cubic"):
        made = node("Resize", "x r - s", mode=mode, coordinate_transformation_mode="tf_crop_and_resize", extrapolation_value=7.0)
        agrees(made, {"x": X}, constants, rtol=1e-4, atol=1e-5)


def test_nearest_elements():
    assert nearest(4, 8, 2.0, "asymmetric", "floor").tolist() == [0, 0, 1, 1, 2, 2, 3, 3]
    assert nearest(4, 2, 0.5, "half_pixel", "round_prefer_ceil").tolist() == [1, 3]
    with pytest.raises(mx.MXNetError, match="nearest_mode='up' is not known"):
        nearest(4, 2, 0.5, "half_pixel", "up")


def test_weights_of_neighbours():
    assert weights(2, 4, 2.0, "half_pixel", "linear").tolist() == [[1, 0], [0.75, 0.25], [0.25, 0.75], [0, 1]]
    assert weights(3, 3, 1.0, "asymmetric", "cubic").tolist() == np.eye(3).tolist()


def test_scales_that_make_no_image():
    with pytest.raises(mx.MXNetError, match="a scale of -1.0; expected a number above 0"):
        run(model_of([node("Resize", "x - s")], {"x": X.shape}, {"s": np.float32([1, 1, -1, 1])}), x=X)
    with pytest.raises(mx.MXNetError, match="3 scales or sizes for 4 axes"):
        run(model_of([node("Resize", "x - s")], {"x": X.shape}, {"s": np.float32([1, 1, 1])}), x=X)
