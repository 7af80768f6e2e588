import numpy as np
import pytest

from mxnet import MXNetError
from onnx_import_checks import agrees, model_of, node, run

X = np.arange(24, dtype="float32").reshape(2, 3, 4)
IMAGE = np.arange(2 * 8 * 2 * 4, dtype="float32").reshape(2, 8, 2, 4)


@pytest.mark.parametrize("nodes, constants", [
    (node("Reshape", "x c"), {"c": np.array([4, -1])}), (node("Reshape", "x c"), {"c": np.array([0, 0, 2, -1])}),
    (node("Reshape", "x c"), {"c": np.array([-1])}), (node("Flatten", "x"), {}), (node("Flatten", "x", axis=2), {}),
    (node("Flatten", "x", axis=0), {}), (node("Flatten", "x", axis=-1), {}), (node("Transpose", "x"), {}),
    (node("Transpose", "x", perm=[1, 0, 2]), {}), (node("Unsqueeze", "x c"), {"c": np.array([0, -1])}),
    (node("Unsqueeze", "x c"), {"c": np.array([3, 1])}), ([node("Unsqueeze", "x c", "u"), node("Squeeze", "u c")], {"c": np.array([1])}),
    ([node("Unsqueeze", "x c", "u"), node("Squeeze", "u")], {"c": np.array([0, 2])}),
    (node("Concat", "x c x", axis=1), {"c": np.ones((2, 1, 4), "f")}),
    (node("Concat", "x x", axis=-1), {}), (node("Tile", "x c"), {"c": np.array([1, 2, 3])}), (node("Expand", "x c"), {"c": np.array([5, 1, 3, 4])}),
    (node("Expand", "x c"), {"c": np.array([1])})], ids=str)
def test_shapes(nodes, constants):
    agrees(nodes, {"x": X}, constants)


def test_channels_and_pixels():
    for mode in ("DCR", "CRD"):
        agrees(node("DepthToSpace", "x", blocksize=2, mode=mode), {"x": IMAGE})
    agrees(node("SpaceToDepth", "x", blocksize=2), {"x": IMAGE})


def test_sizes_are_known_without_running():
    nodes = [node("Shape", "x", "s"), node("Gather", "s zero", "rows"), node("Unsqueeze", "rows axes", "r"), node("Concat", "r minus", "t", axis=0),
             node("Reshape", "x t")]
    constants = {"zero": np.array(0), "axes": np.array([0]), "minus": np.array([-1])}
    for shape in (X.shape, ("batch", 3, 4), ("batch", "rows", 4), ("a", "b", "c")):
        assert agrees(nodes, {"x": X}, constants, shapes={"x": shape})[0].shape == (2, 12)


def test_a_shape_can_be_an_output():
    for shape in (X.shape, ("batch", 3, 4)):
        found, size = agrees([node("Shape", "x", "s"), node("Size", "x", "n")], {"x": X}, outputs="s n", shapes={"x": shape})
        assert found.dtype == size.dtype == np.int64
    agrees(node("Shape", "x", start=1), {"x": X}, shapes={"x": ("batch", 3, 4)})


def test_reversed_sequences():
    for batch, time in ((1, 0), (0, 1)):
        data = X[:, :, 0].copy() if batch == 0 else X[:, :, 0].T.copy()
        agrees(node("ReverseSequence", "x n", batch_axis=batch, time_axis=time), {"x": data}, {"n": np.array([2, 3])})


def test_shapes_that_are_inputs():
    for operator, shape in (("Reshape", [4, -1]), ("Expand", [2, 1, 3, 4])):
        agrees(node(operator, "x s"), {"x": X, "s": np.array(shape)})
    with pytest.raises(MXNetError, match=r"contrib_onnx_graph\d* .*node 'the_reshape' \(Reshape\): a shape is sizes, 0 and at most one -1"):
        run(model_of([node("Reshape", "x z")], {"x": (2, 3), "z": (2,)}, types={"z": 7}), x=X[0, :2, :3].copy(), z=np.array([-1, -1]))
