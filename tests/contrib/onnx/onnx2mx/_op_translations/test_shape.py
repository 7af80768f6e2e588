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


@pytest.mark.parametrize("bounds", [
    ([0, 1], [1, 3], None, None), ([1], [2 ** 63 - 1], [1], None), ([-1], [-5], [2], [-2]), ([-3], [-1], [2], None), ([5], [-10], [1], [-1]),
    ([0, 0], [-1, 3], [-1, 1], [2, 1])])
def test_parts(bounds):
    names = [name for name, value in zip(("starts", "ends", "axes", "steps"), bounds) if value is not None]
    given = ["x", *("-" if value is None else name for name, value in zip(("starts", "ends", "axes", "steps"), bounds))]
    agrees(node("Slice", given), {"x": X}, {name: np.array(dict(zip(("starts", "ends", "axes", "steps"), bounds))[name]) for name in names})


def test_parts_whose_bounds_are_attributes():
    assert run(model_of([node("Slice", "x", starts=[1], ends=[3], axes=[2])], {"x": X.shape}, opset=9), x=X)[0].tolist() == X[:, :, 1:3].tolist()


def test_split():
    assert [a.shape for a in agrees(node("Split", "x", "a b", axis=2), {"x": X}, outputs="a b", opset=13)] == [(2, 3, 2)] * 2
    assert [a.shape for a in agrees(node("Split", "x c", "a b", axis=2), {"x": X}, {"c": np.array([1, 3])}, "a b")] == [(2, 3, 1), (2, 3, 3)]
    assert [a.shape for a in agrees(node("Split", "x", "a b", axis=1, num_outputs=2), {"x": X}, outputs="a b", opset=18)] == [(2, 2, 4), (2, 1, 4)]
    with pytest.raises(MXNetError, match=r"parts of sizes \[1, 1\] do not make up an axis of size 4"):
        agrees(node("Split", "x c", "a b", axis=2), {"x": X}, {"c": np.array([1, 1])}, "a b")


@pytest.mark.parametrize("mode", ["constant", "edge", "reflect", "wrap"])
def test_padding(mode):
    agrees(node("Pad", "x c", mode=mode), {"x": IMAGE}, {"c": np.array([0, 0, 1, 2, 0, 0, 1, 1])}, opset=19)
    agrees(node("Pad", "x c", mode=mode), {"x": X}, {"c": np.array([0, 1, 1, 0, 1, 2])}, opset=19)


def test_padding_with_a_value_and_with_negative_amounts():
    cut = {"c": np.array([1, -1, 0, 0, 0, -2]), "v": np.float32(7)}
    (found,) = run(model_of([node("Pad", "x c v")], {"x": X.shape}, cut), x=X)
    assert found[0].tolist() == [[7, 7], [7, 7]] and found[1:].tolist() == X[:, 1:, :2].tolist()
    agrees(node("Pad", "x c v axes"), {"x": X}, {"c": np.array([1, 2]), "v": np.float32(7), "axes": np.array([1])}, opset=18)
    (found,) = run(model_of([node("Pad", "x", pads=[0, 0, 1, 0, 0, 0], value=2.0)], {"x": X.shape}, opset=9), x=X)
    assert found.shape == (2, 3, 5) and found[0, 0].tolist() == [2, 0, 1, 2, 3]
    with pytest.raises(MXNetError, match="`pads` must have 6 numbers for these axes, received 2"):
        agrees(node("Pad", "x c"), {"x": X}, {"c": np.array([1, 2])})


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


def test_what_depends_on_values_is_refused():
    with pytest.raises(NotImplementedError, match=r"node 'the_reshape' \(Reshape\): `shape` .* follows from the values of the network's inputs"):
        run(model_of([node("Reshape", "x z")], {"x": (2, 3), "z": (1,)}, types={"z": 7}))
