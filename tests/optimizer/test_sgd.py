import numpy as np
import pytest

import mxnet as mx
from optimizer_checks import GRADIENTS, START, check_rows, check_steps, make, run

# (name, arguments, the weight after three steps with learning_rate=0.1, wd=0.1, rescale_grad=0.5), from MXNet 1.9.1
DENSE = [
    ("sgd", {}, [0.996544, -1.97847, 0.431639]),
    ("sgd", {"momentum": 0.9}, [0.863524, -1.89558, 0.294479]),
    ("sgd", {"momentum": 0.9, "clip_gradient": 0.3}, [0.846966, -1.87558, 0.443727]),
    ("nag", {"momentum": 0.9}, [0.879855, -1.88849, 0.253964]),
    ("nag", {}, [0.996544, -1.97847, 0.43164]),
    ("signum", {}, [0.9, -1.7, 0.2]),
    ("signum", {"momentum": 0.0}, [0.873289, -2.04159, 0.38614]),
    ("signum", {"wd_lh": 0.1}, [0.873289, -1.64359, 0.18814]),
    ("dcasgd", {}, [0.996696, -1.97848, 0.431743]),
]


# (name, arguments, how the weight is stored, the weight after gradients of row 0 and of rows 0 and 2), from MXNet 1.9.1
SPARSE = [
    ("sgd", {"momentum": 0.9, "wd": 0.1}, "default", [[0.8266, 1.7977], [3.0, 4.0], [4.9, 5.89]]),
    ("sgd", {"momentum": 0.9, "wd": 0.1}, "row_sparse", [[0.8266, 1.7977], [3.0, 4.0], [4.9, 5.89]]),
    ("sgd", {"momentum": 0.9, "lazy_update": False, "wd": 0.1}, "default", [[0.8266, 1.7977], [2.9133, 3.8844], [4.8055, 5.7766]]),
    ("sgd", {"momentum": 0.9, "lazy_update": False, "wd": 0.1}, "row_sparse", [[0.8266, 1.7977], [2.9133, 3.8844], [4.8055, 5.7766]]),
    ("sgd", {"wd": 0.1}, "default", [[0.8806, 1.8607], [3.0, 4.0], [4.9, 5.89]]),
    ("sgd", {"wd": 0.1}, "row_sparse", [[0.8806, 1.8607], [3.0, 4.0], [4.9, 5.89]]),
    ("sgd", {"lazy_update": False, "wd": 0.1}, "default", [[0.8806, 1.8607], [2.9403, 3.9204], [4.8505, 5.8306]]),
    ("sgd", {"lazy_update": False, "wd": 0.1}, "row_sparse", [[0.8806, 1.8607], [2.9403, 3.9204], [4.8505, 5.8306]]),
]


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
@pytest.mark.parametrize("name, kwargs, expected", DENSE)
def test_three_steps(name, kwargs, expected, dtype):
    check_steps(name, kwargs, expected, dtype)


@pytest.mark.parametrize("name, kwargs, stype, expected", SPARSE)
def test_row_sparse_gradients(name, kwargs, stype, expected):
    check_rows(name, kwargs, stype, expected)


def test_sgld_draws_noise_of_the_right_size():
    mx.random.seed(1)
    weight = mx.nd.zeros((20000,))
    make("sgld")(0, mx.nd.ones((20000,)), weight)
    assert abs(weight.asnumpy().mean() + 0.05) < 0.01
    assert abs(weight.asnumpy().std() - np.sqrt(0.1)) < 0.01


def test_dcasgd_with_momentum():
    weight = run(make("dcasgd", momentum=0.9), mx.nd.array(START))
    w, before, mom = np.array(START), np.array(START), np.zeros(3)
    for g in np.array(GRADIENTS):
        mom = 0.9 * mom - 0.1 * (g + 0.04 * g * g * (w - before))
        before, w = w, w + mom
    np.testing.assert_allclose(weight.asnumpy(), w, rtol=1e-5)


@pytest.mark.parametrize("name, options, expected", [
    ("sgd", {}, [0.7, 2.1]), ("sgd", {"momentum": 0.9}, [0.565, 2.145]), ("nag", {}, [0.7, 2.1]), ("nag", {"momentum": 0.9}, [0.3085, 2.2305]),
    ("adam", {}, [0.8, 2.2])])
def test_a_negative_clip_gradient_clips_nothing(name, options, expected):
    optimizer, weight = mx.optimizer.create(name, learning_rate=0.1, clip_gradient=-1, **options), mx.nd.array([1, 2])
    state = optimizer.create_state(0, weight)
    for _ in range(2):
        optimizer.update(0, weight, mx.nd.array([1.5, -0.5]), state)
    np.testing.assert_allclose(weight.asnumpy(), expected, rtol=1e-5)


def test_half_precision_warns():
    with pytest.warns(UserWarning, match="SGD: weights of half precision lose small updates"):
        mx.optimizer.SGD().create_state_multi_precision(0, mx.nd.ones((2,), dtype="float16"))


def test_the_optimizer_for_tests_adds_gradients():
    weight, optimizer = mx.nd.array([1, 2]), mx.optimizer.create("test", rescale_grad=0.5)
    state = optimizer.create_state(0, weight)
    optimizer.update(0, weight, mx.nd.array([4, 6]), state)
    assert weight.asnumpy().tolist() == state.asnumpy().tolist() == [3, 5]
