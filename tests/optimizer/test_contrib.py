import numpy as np
import pytest

import mxnet as mx
from optimizer_checks import GRADIENTS, START, check_rows

# (name, arguments, how the weight is stored, the weight after gradients of row 0 and of rows 0 and 2), from MXNet 1.9.1
SPARSE = [
    ("groupadagrad", {}, "default", [[0.829292, 1.82929], [3.0, 4.0], [4.9, 5.9]]),
    ("groupadagrad", {}, "row_sparse", [[0.829292, 1.82929], [3.0, 4.0], [4.9, 5.9]]),
]


@pytest.mark.parametrize("name, kwargs, stype, expected", SPARSE)
def test_row_sparse_gradients(name, kwargs, stype, expected):
    check_rows(name, kwargs, stype, expected)


def test_group_adagrad():
    updater = mx.optimizer.get_updater(mx.optimizer.create("groupadagrad", learning_rate=0.1, rescale_grad=0.5))
    weight = mx.nd.array([START, [0, 1, 2]])
    for g in GRADIENTS:
        updater(0, mx.nd.array([g, [1, 1, 1]]), weight)
    np.testing.assert_allclose(weight.asnumpy(), [[0.9924319, -2.030022, 0.4113362], [-0.2284426, 0.7715574, 1.7715575]], rtol=1e-5)
    np.testing.assert_allclose(updater.states[0].asnumpy(), [[0.964375], [0.75]], rtol=1e-6)


def test_group_adagrad_refuses_vectors_and_decay():
    opt = mx.optimizer.create("groupadagrad")
    with pytest.raises(mx.MXNetError, match=r"weight 0 has shape \(3,\)"):
        opt.create_state(0, mx.nd.ones((3,)))
    opt.wd = 0.1
    weight = mx.nd.ones((2, 2))
    with pytest.raises(mx.MXNetError, match="GroupAdaGrad: wd must be 0, weight 0 has"):
        opt.update(0, weight, weight, opt.create_state(0, weight))
