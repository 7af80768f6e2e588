import numpy as np
import pytest

from onnx_import_checks import agrees, model_of, node, run

X = np.random.RandomState(0).randn(2, 3, 4).astype("float32") * 2


@pytest.mark.parametrize("operator, attributes", [
    ("Softplus", {}), ("LeakyRelu", {}), ("LeakyRelu", {"alpha": 0.3}), ("Elu", {"alpha": 0.5}), ("Celu", {"alpha": 2.0}), ("Selu", {}),
    ("Selu", {"alpha": 2.0, "gamma": 3.0}), ("ThresholdedRelu", {"alpha": 0.7}), ("HardSigmoid", {}), ("HardSigmoid", {"alpha": 0.5, "beta": 0.1}),
    ("HardSwish", {}), ("Shrink", {"lambd": 0.4, "bias": 0.1}), ("Softmax", {}), ("Softmax", {"axis": 1}), ("LogSoftmax", {"axis": 0}),
    ("Hardmax", {}), ("Hardmax", {"axis": 1})])
def test_activations(operator, attributes):
    agrees(node(operator, "x", **attributes), {"x": X}, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("operator, attributes, opset", [("Mish", {}, 18), ("Gelu", {}, 20), ("Gelu", {"approximate": "tanh"}, 20)])
def test_newer_activations(operator, attributes, opset):
    agrees(node(operator, "x", **attributes), {"x": X}, opset=opset, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("shape", [(3, 1), (4,), (1,), (2, 3, 4)])
def test_slopes(shape):
    slope = np.random.RandomState(1).rand(*shape).astype("float32")
    agrees(node("PRelu", "x s"), {"x": X}, {"s": slope})
    agrees(node("PRelu", "x s"), {"x": X, "s": slope})


def test_before_version_13_softmax_goes_over_all_axes_from_one_on():
    (found,) = run(model_of([node("Softmax", "x")], {"x": X.shape}, opset=11), x=X)
    flat = np.exp(X.reshape(2, 12))
    assert np.allclose(found.reshape(2, 12), flat / flat.sum(1, keepdims=True), atol=1e-6)
    (found,) = run(model_of([node("Hardmax", "x")], {"x": X.shape}, opset=11), x=X)
    assert found.reshape(2, 12).argmax(1).tolist() == X.reshape(2, 12).argmax(1).tolist() and found.sum() == 2


def test_operators_of_onnx_runtime():
    for operator, data in (("Gelu", "x"), ("FastGelu", "x"), ("FastGelu", "x b")):
        made = node(operator, data)
        made.domain = "com.microsoft"
        bias = np.float32([0.5, 0, 0, 1])
        (found,) = run(model_of([made], {"x": X.shape}, {"b": bias}), x=X)
        shifted = X + bias if data == "x b" else X
        expected = 0.5 * shifted * (1 + np.tanh(np.sqrt(2 / np.pi) * (shifted + 0.044715 * shifted ** 3)))
        assert np.allclose(found, expected, atol=2e-3 if operator == "Gelu" else 1e-6)
