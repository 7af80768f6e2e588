import numpy as np
import pytest

import mxnet as mx
from optimizer_checks import check_steps, make

# (name, arguments, the weight after three steps with learning_rate=0.1, wd=0.1, rescale_grad=0.5), from MXNet 1.9.1
DENSE = [
    ("lars", {"momentum": 0.9, "eta": 0.1}, [0.969211, -1.98073, 0.47534]),
    ("lamb", {"lower_bound": 0.5, "upper_bound": 1.0}, [0.885245, -1.965, 0.35063]),
    ("lamb", {"bias_correction": False}, [0.748825, -1.95935, 0.225138]),
    ("lbsgd", {"momentum": 0.9, "batch_scale": 2}, [0.951906, -1.97342, 0.469625]),
    ("lbsgd", {"warmup_strategy": "lars"}, [0.971306, -1.97401, 0.466494]),
]


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
@pytest.mark.parametrize("name, kwargs, expected", DENSE)
def test_three_steps(name, kwargs, expected, dtype):
    check_steps(name, kwargs, expected, dtype)


def test_lbsgd_adds_gradients_up():
    updater = make("lbsgd", batch_scale=2, warmup_epochs=0)
    weight, grad = mx.nd.zeros((1,)), mx.nd.array([1.0])
    updater(0, grad, weight)
    assert weight.asscalar() == 0
    grad[:] = 3  # the next batch, in the same array
    updater(0, grad, weight)
    np.testing.assert_allclose(weight.asnumpy(), [-0.4], rtol=1e-6)  # 0.1 * 2 * (1 + 3) / 2
