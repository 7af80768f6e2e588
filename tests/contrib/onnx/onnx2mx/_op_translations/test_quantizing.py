import numpy as np
import pytest

from onnx_import_checks import agrees, model_of, node, run

R = np.random.RandomState(3)
X = R.randn(2, 6, 4).astype("float32") * 3


def test_small_integers():
    inputs = {"x": np.uint8([[11, 7, 3], [10, 6, 2]]), "w": np.uint8([[1, 4], [2, 5], [3, 6]])}
    (found,) = agrees(node("MatMulInteger", "x w z"), inputs, {"z": np.uint8(12)})
    assert found.dtype == np.int32 and found.tolist() == [[-38, -83], [-44, -98]]


@pytest.mark.parametrize("kind", ["uint8", "int8"])
@pytest.mark.parametrize("scale, axis", [(0.1, 1), ([0.1, 0.2, 0.3, 0.1, 0.2, 0.3], 1), ([0.1, 0.2, 0.3, 0.4], -1)])
def test_to_small_integers_and_back(kind, scale, axis):
    scale = np.float32(scale)
    zero = (np.arange(scale.size) + 3).astype(kind).reshape(scale.shape)
    nodes = [node("QuantizeLinear", "x s z", "q", axis=axis), node("DequantizeLinear", "q s z", axis=axis)]
    found, back = agrees(nodes, {"x": X}, {"s": scale, "z": zero}, "q y", opset=13)
    assert found.dtype == kind and back.dtype == np.float32


def test_a_scale_for_each_block():
    constants = {"s": R.rand(2, 2, 4).astype("float32") + 0.1, "z": np.zeros((2, 2, 4), "int8")}
    agrees(node("QuantizeLinear", "x s z", axis=1, block_size=3), {"x": X}, constants, opset=21)


def test_ranges_that_follow_from_the_data():
    agrees(node("DynamicQuantizeLinear", "x", "y s z"), {"x": X}, outputs="y s z", opset=13)


def test_products_of_quantized_numbers():
    inputs = {"a": R.randint(0, 255, (3, 4)).astype("uint8"), "b": R.randint(0, 255, (4, 2)).astype("uint8")}
    scales = {"s": np.float32(0.02), "z": np.uint8(110), "t": np.float32(0.3)}
    agrees(node("QLinearMatMul", "a s z b s z t z"), inputs, scales, opset=10)


def test_convolutions_of_quantized_numbers():
    inputs = {"x": R.randint(0, 255, (1, 2, 5, 5)).astype("uint8"), "w": R.randint(0, 255, (3, 2, 3, 3)).astype("uint8")}
    constants = {"s": np.float32(0.02), "z": np.uint8(110), "t": np.float32(0.3), "v": np.float32([0.1, 0.02, 0.3]), "n": np.uint8([1, 2, 3]),
                 "b": np.int32([100, -200, 300])}
    agrees(node("QLinearConv", "x s z w v n t z b", pads=[1, 1, 1, 1]), inputs, constants, opset=10)
    agrees(node("ConvInteger", "x w z", strides=[2, 2]), inputs, {"z": np.uint8(3)}, opset=10)


def test_types_without_a_range():
    with pytest.raises(NotImplementedError, match="quantizing to float32"):
        run(model_of([node("QuantizeLinear", "x s z")], {"x": (2,)}, {"s": np.float32(1), "z": np.float32(0)}))
