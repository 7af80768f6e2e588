import numpy as np
import pytest

from onnx_import_checks import agrees, model_of, node, run

X = np.random.RandomState(0).randn(2, 3, 8, 7).astype("float32")


@pytest.mark.parametrize("operator", ["MaxPool", "AveragePool", "LpPool"])
@pytest.mark.parametrize("attributes", [
    {"kernel_shape": [2, 3]}, {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]}, {"kernel_shape": [3, 2], "pads": [0, 1, 2, 0]},
    {"kernel_shape": [3, 3], "strides": [2, 2], "ceil_mode": 1}, {"kernel_shape": [3, 3], "auto_pad": "SAME_LOWER", "strides": [2, 2]},
    {"kernel_shape": [3, 3], "strides": [2, 2], "ceil_mode": 1, "pads": [1, 1, 1, 1]}, {"kernel_shape": [2, 2], "dilations": [2, 2]}], ids=str)
def test_windows(operator, attributes):
    if operator == "LpPool" and "auto_pad" in attributes:
        attributes = {**attributes, "p": 1}
    agrees(node(operator, "x", **attributes), {"x": X}, opset=19, rtol=1e-4, atol=1e-5)


def test_padding_may_count():
    for attributes in ({"pads": [1, 1, 1, 1]}, {"pads": [0, 1, 2, 0]}):
        agrees(node("AveragePool", "x", kernel_shape=[3, 3], count_include_pad=1, **attributes), {"x": X}, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("operator", ["GlobalAveragePool", "GlobalMaxPool"])
def test_all_of_an_image(operator):
    for data in (X, X[:, :, 0].copy(), X[..., None].copy()):
        agrees(node(operator, "x"), {"x": data}, rtol=1e-4, atol=1e-6)


def test_norm_of_an_image():
    (found,) = run(model_of([node("GlobalLpPool", "x", p=3)], {"x": X.shape}), x=X)
    assert np.allclose(found[:, :, 0, 0], (abs(X) ** 3).sum((2, 3)) ** (1 / 3), rtol=1e-4)


def test_regions():
    data = np.arange(48, dtype="float32").reshape(1, 1, 8, 6)
    model = model_of([node("MaxRoiPool", "x r", pooled_shape=[2, 2], spatial_scale=1.0)], {"x": data.shape, "r": (1, 5)})
    assert run(model, x=data, r=np.float32([[0, 0, 0, 3, 3]]))[0].tolist() == [[[[7, 9], [19, 21]]]]
    rois = {"x": X, "r": np.float32([[0, 0, 4, 4], [1, 2, 6, 7]]), "i": np.array([0, 1])}
    agrees(node("RoiAlign", "x r i", output_height=3, output_width=2, sampling_ratio=2), rois, opset=16, rtol=1e-3, atol=1e-4)


def test_integers_and_places():
    assert agrees(node("MaxPool", "x", kernel_shape=[2]), {"x": np.uint8([[[1, 5, 3]]])})[0].dtype == np.uint8
    for attributes in ({}, {"strides": [2, 1], "pads": [1, 0, 1, 1]}, {"dilations": [1, 2]}):
        agrees(node("MaxPool", "x", "y i", kernel_shape=[2, 2], **attributes), {"x": X}, outputs="y i")


def test_windows_larger_than_the_data():
    with pytest.raises(RuntimeError, match=r"windows of size \(9, 9\) are larger than the data"):
        run(model_of([node("MaxPool", "x", kernel_shape=[9, 9], ceil_mode=1)], {"x": X.shape}), x=X)
