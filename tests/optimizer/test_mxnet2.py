import math
import pickle

import numpy as np
import pytest

import mxnet as mx


def one_step(name, weight=(1.0,), grad=(2.0,), **kwargs):
    optimizer = mx.optimizer.create(name, learning_rate=0.1, **kwargs)
    w, g = mx.nd.array(weight), mx.nd.array(grad)
    state = optimizer.create_state_multi_precision(0, w)
    optimizer.update_multi_precision(0, w, g, state)
    assert g.asnumpy().tolist() == list(grad)
    return w.asnumpy()


@pytest.mark.parametrize("name, arguments, expected", [
    # (mean, var) = (0.2, 0.004) or (0.2, 0.001 * 1.8**2 + 0.01); the rate is 0.1 * sqrt(0.001) / 0.1
    ("adamw", {"epsilon": 0.01}, 1 - 0.0316228 * 0.2 / (math.sqrt(0.004) + 0.01)),
    ("adamw", {"epsilon": 0.01, "wd": 0.1}, (1 - 0.0316228 * 0.2 / (math.sqrt(0.004) + 0.01)) * (1 - 0.00316228)),
    ("adamw", {"epsilon": 0.01, "correct_bias": False}, 1 - 0.1 * 0.2 / (math.sqrt(0.004) + 0.01)),
    ("adamw", {"epsilon": 0.01, "rescale_grad": 0.5, "clip_gradient": 0.5}, 1 - 0.0316228 * 0.05 / (math.sqrt(0.00025) + 0.01)),
    ("adabelief", {"epsilon": 0.01}, 1 - 0.0316228 * 0.2 / (math.sqrt(0.01324) + 0.01)),
    ("adabelief", {"epsilon": 0.01, "wd": 1.0}, 1 - 0.0316228 * 0.3 / (math.sqrt(0.01729) + 0.01)),
    ("adabelief", {"epsilon": 0.01, "correct_bias": False}, 1 - 0.1 * 0.2 / (math.sqrt(0.01324) + 0.01)),
])
def test_a_first_step(name, arguments, expected):
    np.testing.assert_allclose(one_step(name, **arguments), expected, rtol=1e-5)


def lans(weight, grads, lr, wd, epsilon, low=0.0, high=np.inf):
    mean, var = np.zeros_like(weight), np.zeros_like(weight)
    for t, grad in enumerate(grads, 1):
        grad = grad / np.linalg.norm(grad)
        mean, var = 0.9 * mean + 0.1 * grad, 0.999 * var + 0.001 * grad ** 2
        scale, size = np.sqrt(var / (1 - 0.999 ** t)) + epsilon, np.clip(np.linalg.norm(weight), low, high)
        for part, share in ((mean / (1 - 0.9 ** t), 0.9), (grad, 0.1)):
            direction = part / scale + wd * weight
            weight = weight - lr * share * size / np.linalg.norm(direction) * direction
    return weight


@pytest.mark.parametrize("bounds", [{}, {"lower_bound": 6.0}, {"upper_bound": 0.5}])
def test_lans(bounds):
    weight, grads = np.array([3.0, -4.0]), [np.array([1.0, 2.0]), np.array([-3.0, 0.5])]
    optimizer = mx.optimizer.LANS(learning_rate=0.1, wd=0.01, epsilon=1e-3, **bounds)
    w = mx.nd.array(weight)
    state = optimizer.create_state(0, w)
    for g in grads:
        optimizer.update(0, w, mx.nd.array(g), state)
    expected = lans(weight, grads, 0.1, 0.01, 1e-3, bounds.get("lower_bound", 0.0), bounds.get("upper_bound", np.inf))
    np.testing.assert_allclose(w.asnumpy(), expected, rtol=1e-5)


def test_weights_and_gradients_of_0():
    assert one_step("lans", weight=(0.0, 0.0), grad=(0.0, 0.0)).tolist() == [0, 0]
    np.testing.assert_allclose(one_step("lans", weight=(0.0, 0.0), grad=(3.0, 4.0)), [-0.1, -0.1], rtol=1e-4)


@pytest.mark.parametrize("name", ["adamw", "adabelief", "lans"])
def test_they_learn_in_float16_too_and_are_pickled(name):
    optimizer = pickle.loads(pickle.dumps(mx.optimizer.create(name, learning_rate=0.05, multi_precision=True)))
    assert type(optimizer).__module__ == "mxnet.optimizer.optimizer"
    w = mx.nd.array([3.0, -2.0], dtype="float16")
    updater = mx.optimizer.get_updater(optimizer)
    for _ in range(200):
        updater(0, 2 * (w - 1), w)
    assert np.abs(w.asnumpy() - 1).max() < 0.2
