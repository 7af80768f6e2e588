import numpy as np
import pytest

import mxnet as mx
from mxnet import MXNetError
from onnx_import_checks import agrees, model_of, node, run

X = np.arange(24, dtype="float32").reshape(2, 3, 4)
IMAGE = np.arange(2 * 8 * 2 * 4, dtype="float32").reshape(2, 8, 2, 4)


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


def test_bounds_and_amounts_that_are_inputs():
    agrees(node("Slice", "x a b c"), {"x": X, "a": np.array([1, -3]), "b": np.array([9, -1]), "c": np.array([2, 1])}, opset=13)
    agrees(node("Slice", "x a b c d"), {"x": X, "a": np.array([-1]), "b": np.array([-9]), "c": np.array([2]), "d": np.array([-2])}, opset=13)
    agrees(node("Pad", "x p", mode="reflect"), {"x": X, "p": np.array([0, 1, 2, 0, 1, 1])})
    agrees(node("Tile", "x p"), {"x": X, "p": np.array([1, 2, 3])})
    agrees(node("Split", "x p", "a b", axis=2), {"x": X, "p": np.array([1, 3])}, outputs="a b")


def test_the_middle():
    agrees(node("CenterCropPad", "x p", axes=[1, 2]), {"x": X}, {"p": np.array([4, 1])}, opset=18)
    with pytest.raises(MXNetError, match=r"`shape` must have 2 sizes of 1 or more, received \(4, 0\)"):
        run(model_of([node("CenterCropPad", "x p", axes=[1, 2])], {"x": X.shape}, {"p": np.array([4, 0])}, opset=18), x=X)


def test_parts_without_elements():
    model = model_of([node("Slice", "x a b")], {"x": X.shape}, {"a": np.array([1]), "b": np.array([1])})
    with mx.np_shape():
        assert run(model, x=X)[0].shape == (0, 3, 4)
    with pytest.raises(NotImplementedError, match="nothing is left of axis 0; import the file within mx.np_shape"):
        run(model, x=X)
