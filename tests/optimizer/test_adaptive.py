import pytest

import mxnet as mx
from optimizer_checks import check_rows, check_steps

# (name, arguments, the weight after three steps with learning_rate=0.1, wd=0.1, rescale_grad=0.5), from MXNet 1.9.1
DENSE = [
    ("adam", {}, [0.812097, -1.8109, 0.339395]),
    ("adam", {"clip_gradient": 0.3}, [0.773799, -1.81853, 0.395901]),
    ("adagrad", {}, [0.915302, -1.97415, 0.426946]),
    ("rmsprop", {}, [0.79414, -1.85268, 0.296752]),
    ("rmsprop", {"centered": True, "clip_weights": 0.9}, [0.0434177, -0.613045, -0.1541]),
    ("adadelta", {}, [0.728586, -1.46944, 0.361584]),
    ("adamax", {}, [0.827785, -1.83614, 0.357211]),
    ("nadam", {}, [0.921993, -1.93106, 0.418351]),
]


# (name, arguments, how the weight is stored, the weight after gradients of row 0 and of rows 0 and 2), from MXNet 1.9.1
SPARSE = [
    ("adam", {"wd": 0.1}, "default", [[0.800046, 1.80004], [3.0, 4.0], [4.92559, 5.92559]]),
    ("adam", {"wd": 0.1}, "row_sparse", [[0.800046, 1.80004], [3.0, 4.0], [4.92559, 5.92559]]),
    ("adam", {"lazy_update": False, "wd": 0.1}, "default", [[0.800046, 1.80004], [2.8001, 3.80007], [4.80337, 5.8025]]),
    ("adam", {"lazy_update": False, "wd": 0.1}, "row_sparse", [[0.800046, 1.80004], [2.8001, 3.80007], [4.80337, 5.8025]]),
    ("adagrad", {}, "default", [[0.829289, 1.82929], [3.0, 4.0], [4.9, 5.9]]),
    ("adagrad", {}, "row_sparse", [[0.829289, 1.82929], [3.0, 4.0], [4.9, 5.9]]),
]


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
@pytest.mark.parametrize("name, kwargs, expected", DENSE)
def test_three_steps(name, kwargs, expected, dtype):
    check_steps(name, kwargs, expected, dtype)


@pytest.mark.parametrize("name, kwargs, stype, expected", SPARSE)
def test_row_sparse_gradients(name, kwargs, stype, expected):
    check_rows(name, kwargs, stype, expected)


def test_adagrad_refuses_decay_of_rows():
    opt = mx.optimizer.AdaGrad(wd=0.1)
    weight = mx.nd.ones((2, 2))
    with pytest.raises(mx.MXNetError, match="wd must be 0 with row_sparse gradients, weight 0 has 0.1"):
        opt.update(0, weight, weight.tostype("row_sparse"), opt.create_state(0, weight))
