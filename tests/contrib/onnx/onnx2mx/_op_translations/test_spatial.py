import cv2
import numpy as np
import pytest

from mxnet import MXNetError
from onnx_import_checks import agrees, model_of, node, run

R = np.random.RandomState(9)
X = R.randn(2, 3, 5, 6).astype("float32")


@pytest.mark.parametrize("mode", ["linear", "nearest", "cubic"])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
def test_grids(mode, padding):
    grid = R.uniform(-1.3, 1.3, (2, 4, 4, 2)).astype("float32")
    for corners in (0, 1):
        agrees(node("GridSample", "x g", mode=mode, padding_mode=padding, align_corners=corners), {"x": X, "g": grid}, opset=20, rtol=1e-4, atol=1e-5)


def test_grids_from_matrices():
    matrices = R.randn(2, 2, 3).astype("float32")
    agrees([node("AffineGrid", "t s", "g"), node("GridSample", "x g")], {"x": X, "t": matrices}, {"s": np.array([2, 3, 4, 5])}, opset=20, rtol=1e-3,
           atol=1e-4)


def test_convolutions_with_offsets():
    inputs = {"x": X, "o": R.randn(2, 18, 5, 6).astype("float32"), "m": R.rand(2, 9, 5, 6).astype("float32")}
    constants = {"w": R.randn(4, 3, 3, 3).astype("float32"), "b": R.randn(4).astype("float32")}
    agrees(node("DeformConv", "x w o b m", pads=[1, 1, 1, 1]), inputs, constants, opset=19, rtol=1e-3, atol=1e-4)


def test_blocks_put_together():
    data = R.randn(1, 12, 12).astype("float32")
    sizes = {"i": np.array([3, 6]), "b": np.array([2, 2])}
    agrees(node("Col2Im", "x i b", pads=[1, 0, 1, 0], strides=[2, 1]), {"x": data[:, :, :10]}, sizes, opset=18)
    with pytest.raises(MXNetError, match=r"data of shape \(1, 12, 12\) for 10 blocks of 4 elements"):
        run(model_of([node("Col2Im", "x i b")], {"x": data.shape}, sizes, opset=18), x=data)


def test_the_way_back_from_the_largest():
    nodes = [node("MaxPool", "x", "m i", kernel_shape=[2, 2], strides=[2, 2]), node("MaxUnpool", "m i", kernel_shape=[2, 2], strides=[2, 2])]
    agrees(nodes, {"x": X[:, :, :4]})
    nodes[1] = node("MaxUnpool", "m i s", kernel_shape=[2, 2], strides=[2, 2])
    found = run(model_of(nodes, {"x": (2, 3, 4, 6)}, {"s": np.array([2, 3, 6, 6])}), x=X[:, :, :4])[0]
    assert found.shape == (2, 3, 6, 6) and np.count_nonzero(found) == 2 * 3 * 6


def test_images():
    pixels = R.randint(0, 255, (4, 5, 3)).astype("uint8")
    data = cv2.imencode(".png", pixels[..., ::-1])[1].reshape(-1)
    gray = np.round(pixels @ np.array([0.299, 0.587, 0.114]))[..., None]
    expected = {"RGB": pixels, "BGR": pixels[..., ::-1], "Grayscale": gray}
    for form, wanted in expected.items():
        model = model_of([node("ImageDecoder", "x", pixel_format=form)], {"x": data.shape}, types={"x": 2, "y": 2}, opset=20)
        assert run(model, x=data)[0].tolist() == wanted.tolist()
    with pytest.raises(MXNetError, match="Invalid image file"):
        run(model, x=data[:20])
