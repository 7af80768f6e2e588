import numpy as np
import pytest

from mxnet import MXNetError
from onnx_import_checks import model_of, node, run

R, T = np.float32(0.1), np.array(1)
X, G, S = np.float32([1, 2]), np.float32([-0.9, -1.5]), np.float32([2, 1])


def updated(operator, names, outputs, **attributes):
    made = node(operator, names, outputs, **attributes)
    made.domain = "ai.onnx.preview.training"
    values = dict(zip(["r", "t", "x", "g", "s", "v"], [R, T, X, G, S, S]))
    model = model_of([made], {n: values[n].shape for n in names.split()}, outputs=tuple(outputs.split()), types={"t": 7})
    return run(model, **{n: values[n] for n in names.split()})


def test_adagrad():
    new, history = updated("Adagrad", "r t x g s", "a b", decay_factor=0.1, epsilon=1e-5, norm_coefficient=0.001)
    gradient = 0.001 * X + G
    np.testing.assert_allclose(history, S + gradient ** 2, rtol=1e-6)
    np.testing.assert_allclose(new, X - R / 1.1 * gradient / (np.sqrt(history) + 1e-5), rtol=1e-5)


def test_adam():
    new, first, second = updated("Adam", "r t x g s v", "a b c", alpha=0.9, beta=0.99, epsilon=1e-3, norm_coefficient_post=0.1)
    np.testing.assert_allclose(first, 0.9 * S + 0.1 * G, rtol=1e-5)
    np.testing.assert_allclose(second, 0.99 * S + 0.01 * G ** 2, rtol=1e-5)
    np.testing.assert_allclose(new, 0.9 * (X - R * np.sqrt(0.01) / 0.1 * first / (np.sqrt(second) + 1e-3)), rtol=1e-5)


@pytest.mark.parametrize("mode", ["standard", "nesterov"])
def test_momentum(mode):
    new, speed = updated("Momentum", "r t x g s", "a b", alpha=0.95, beta=0.5, mode=mode, norm_coefficient=0.0)
    np.testing.assert_allclose(speed, 0.95 * S + 0.5 * G, rtol=1e-5)
    np.testing.assert_allclose(new, X - R * (speed if mode == "standard" else G + 0.95 * speed), rtol=1e-5)


def test_lists_of_unequal_length():
    with pytest.raises(MXNetError, match="2 arrays do not make 3 lists of equal length"):
        updated("Adagrad", "r t x g", "a b")
