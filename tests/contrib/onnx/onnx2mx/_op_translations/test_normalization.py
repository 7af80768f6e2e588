import numpy as np
import pytest

from mxnet import MXNetError
from mxnet.contrib.onnx.onnx2mx.import_onnx import GraphProto
from onnx_import_checks import agrees, model_of, node, run

R = np.random.RandomState(0)
X = R.randn(2, 4, 3, 5).astype("float32")
SCALE, BIAS, MEAN = (R.randn(4).astype("float32") for _ in range(3))
VAR = R.rand(4).astype("float32") + 0.5
OF_CHANNELS = {"s": SCALE, "b": BIAS, "m": MEAN, "v": VAR}


def test_batch_norm_has_auxiliary_states():
    agrees(node("BatchNormalization", "x s b m v", epsilon=1e-3), {"x": X}, OF_CHANNELS, rtol=1e-4, atol=1e-5)
    model = model_of([node("BatchNormalization", "x s b m v")], {"x": X.shape}, OF_CHANNELS)
    out, args, auxs = GraphProto().from_onnx(model.graph, 15)
    assert sorted(args) == ["b", "s"] and sorted(auxs) == ["m", "v"] and out.list_auxiliary_states() == ["m", "v"]


def test_batch_norm_of_computed_moments_and_while_training():
    agrees(node("BatchNormalization", "x s b m v"), {"x": X, **OF_CHANNELS}, rtol=1e-4, atol=1e-5)
    training = node("BatchNormalization", "x s b m v", "y mean var", training_mode=1)
    agrees(training, {"x": X, **OF_CHANNELS}, outputs="y mean var", rtol=1e-4, atol=1e-5)


def test_instances_and_groups():
    agrees(node("InstanceNormalization", "x s b"), {"x": X}, {"s": SCALE, "b": BIAS}, rtol=1e-4, atol=1e-5)
    agrees(node("GroupNormalization", "x s b", num_groups=2), {"x": X}, {"s": SCALE, "b": BIAS}, opset=21, rtol=1e-4, atol=1e-5)
    with pytest.raises(MXNetError, match="3 groups do not divide 4 channels"):
        run(model_of([node("GroupNormalization", "x s b", num_groups=3)], {"x": X.shape}, {"s": SCALE, "b": BIAS}, opset=21))


@pytest.mark.parametrize("axis", [-1, 2, 1])
def test_layers(axis):
    shape = X.shape[axis:]
    arrays = {"s": R.rand(*shape).astype("float32"), "b": R.randn(*shape).astype("float32")}
    agrees(node("LayerNormalization", "x s b", axis=axis), {"x": X}, arrays, rtol=1e-4, atol=1e-5)
    agrees(node("LayerNormalization", "x s", "y m d", axis=axis), {"x": X}, {"s": arrays["s"]}, "y m d", rtol=1e-4, atol=1e-5)


def test_root_mean_square():
    scale = {"s": np.float32([1, 2, 3, 4, 5])}
    (found,) = run(model_of([node("RMSNormalization", "x s")], {"x": X.shape}, scale, opset=23), x=X)
    assert np.allclose(found, X / np.sqrt((X ** 2).mean(-1, keepdims=True) + 1e-5) * scale["s"], atol=1e-5)


def test_a_skipped_connection():
    made = node("SkipLayerNormalization", "x z s b", epsilon=1e-5)
    made.domain = "com.microsoft"
    data, other = X[:, :, 0].copy(), X[:, :, 1].copy()
    arrays = {"s": np.float32([1, 2, 3, 4, 5]), "b": np.float32([0, 0, 1, 1, 1])}
    (found,) = run(model_of([made], {"x": data.shape, "z": data.shape}, arrays), x=data, z=other)
    total = data + other
    expected = (total - total.mean(-1, keepdims=True)) / np.sqrt(total.var(-1, keepdims=True) + 1e-5) * arrays["s"] + arrays["b"]
    assert np.allclose(found, expected, atol=1e-5)


def test_other_normalizations():
    agrees(node("LRN", "x", size=3, alpha=0.1, bias=2.0), {"x": X}, rtol=1e-4, atol=1e-5)
    agrees(node("MeanVarianceNormalization", "x"), {"x": X}, rtol=1e-4, atol=1e-4)
    for p in (1, 2):
        found = run(model_of([node("LpNormalization", "x", axis=1, p=p)], {"x": X.shape}), x=X * [[[[0]], [[1]], [[1]], [[1]]]])[0]
        data = X * [[[[0]], [[1]], [[1]], [[1]]]]
        assert np.allclose(found, data / (abs(data) ** p).sum(1, keepdims=True) ** (1 / p), atol=1e-6)
    assert run(model_of([node("LpNormalization", "x")], {"x": (2,)}), x=np.zeros(2, "f"))[0].tolist() == [0, 0]


def test_dropout():
    out, *_ = GraphProto().from_onnx(model_of([node("Dropout", "x", ratio=0.3)], {"x": (2,)}, opset=10).graph, 10)
    assert out.attr_dict()["the_dropout"]["p"].startswith("0.3")
    found, mask = run(model_of([node("Dropout", "x", "y m")], {"x": X.shape}, outputs=("y", "m"), types={"m": 9}), x=X)
    assert found.tolist() == X.tolist() and mask.dtype == bool and mask.all()
    with pytest.raises(MXNetError, match="`ratio` must be between 0 and 1, received 3.0"):
        run(model_of([node("Dropout", "x r")], {"x": X.shape}, {"r": np.float32(3)}))
