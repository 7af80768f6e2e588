import numpy as np
import pytest

import mxnet as mx
from mxnet import nd
from mxnet.kernels.nn import optimizer_update
from mxnet.ndarray import memory_format
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


# Weights after a first gradient of (1, 0); MXNet 1.9.1 has no epsilon in Adamax, and NaN as here.
@pytest.mark.parametrize("name, kwargs, remedy", [
    ("adamax", {}, "epsilon"), ("adam", {"epsilon": 0}, "epsilon"), ("nadam", {"epsilon": 0}, "epsilon"), ("adagrad", {"eps": 0}, "eps"),
    ("rmsprop", {"epsilon": 0}, "epsilon"), ("adadelta", {"epsilon": 0}, "epsilon")])
def test_zero_divided_by_zero_is_said_once_with_its_remedy(name, kwargs, remedy):
    optimizer = mx.optimizer.create(name, param_idx2name={0: "fc_weight"}, **kwargs)
    weight, gradient = mx.nd.ones((2,)), mx.nd.array([1, 0])
    state = optimizer.create_state(0, weight)
    with pytest.warns(RuntimeWarning, match=rf"1 of the 2 elements of weight 'fc_weight' .*NaN.*pass {remedy}=1e-8") as said:
        optimizer.update(0, weight, gradient, state)
    optimizer.update(0, weight, gradient, state)
    assert len(said) == 1 and np.isnan(weight.asnumpy()).tolist() == [False, True]
    optimizer = mx.optimizer.create(name, **{remedy: 1e-8})
    weight = mx.nd.ones((2,))
    state = optimizer.create_state(0, weight)
    for _ in range(2):
        optimizer.update(0, weight, gradient, state)
    assert weight.asnumpy()[1] == 1 and weight.asnumpy()[0] < 1


@pytest.mark.parametrize("name, kwargs, count", [("adamax", {}, 5), ("nadam", {"epsilon": 0}, 5), ("rmsprop", {"epsilon": 0}, 5),
                                                 ("adadelta", {"epsilon": 0}, 5), ("adam", {"epsilon": 0}, 1), ("adagrad", {"eps": 0}, 1)])
def test_it_is_said_of_row_sparse_weights_too(name, kwargs, count):
    optimizer = mx.optimizer.create(name, **kwargs)
    weight, gradient = mx.nd.ones((3, 2)).tostype("row_sparse"), mx.nd.array([[0, 1], [0, 0], [0, 0]]).tostype("row_sparse")
    with pytest.warns(RuntimeWarning, match=rf"{count} of the 6 elements of weight 0 had a gradient of 0"):
        optimizer.update(0, weight, gradient, optimizer.create_state(0, weight))
    assert int(np.isnan(weight.asnumpy()).sum()) == count


def test_adamax_of_mxnets_checkpoints_has_no_epsilon():
    optimizer = mx.optimizer.Adamax()
    del optimizer.epsilon
    weight = mx.nd.ones((1,))
    optimizer.update(0, weight, mx.nd.ones((1,)), optimizer.create_state(0, weight))
    assert weight.asscalar() == pytest.approx(0.998)


def test_arguments_by_the_names_of_mxnet_2():
    made = mx.optimizer.RMSProp(rho=0.8, momentum=0.7, centered=True)
    assert (made.gamma1, made.gamma2) == (0.8, 0.7) and mx.optimizer.AdaGrad(epsilon=1e-3).float_stable_eps == 1e-3


@pytest.mark.parametrize("options", [{}, {"rescale_grad": 0.25}, {"rescale_grad": 0.25, "wd": 0.1}, {"wd": 0.1}, {"clip_gradient": 0.3, "wd": 0.1}])
def test_adam_moves_small_weights_together_as_each_by_itself(options):
    random = np.random.RandomState(5)
    shapes = [(3, 4), (4,), (2, 2, 3, 3), (1, 2), (300, 300), (5,)]  # the last but one is large enough for a kernel of its own
    values = [random.standard_normal(s).astype("float32" if i != 5 else "float64") for i, s in enumerate(shapes)]
    names = dict(enumerate(["a_weight", "b_bias", "c_weight", "d_weight", "e_weight", "f_weight"]))
    results = []
    for together in (True, False):
        schedule = mx.lr_scheduler.FactorScheduler(2, 0.5)
        updater = mx.optimizer.get_updater(mx.optimizer.Adam(learning_rate=0.01, param_idx2name=names, lr_scheduler=schedule, **options))
        weights = [nd.array(v, dtype=v.dtype) for v in values]
        for step in range(3):
            grads = [nd.array(v * (step + 1), dtype=v.dtype) for v in values]
            if together:
                updater(list(range(6)), grads, weights)
            else:
                for i in range(6):
                    updater(i, grads[i], weights[i])
        results.append([a.asnumpy().tolist() for i, w in enumerate(weights) for a in (w, *updater.states[i])])
    assert results[0] == results[1]


def test_adam_calls_one_kernel_for_all_small_weights(monkeypatch):
    calls = []
    together = optimizer_update.adam_together
    monkeypatch.setattr(optimizer_update, "adam_together", lambda weights, *args: (calls.append(len(weights)), together(weights, *args))[1])
    updater = mx.optimizer.get_updater(mx.optimizer.Adam())
    updater([0, 1, 2], [nd.ones((2,))] * 3, [nd.ones((2,)) for _ in range(3)])
    assert calls == [3]


def test_adam_moves_weights_with_channels_last_together_with_others(monkeypatch):
    random = np.random.RandomState(3)
    values, gradients = ([random.standard_normal(s).astype("float32") for s in ((4, 3, 2, 2), (5,), (2, 6, 3, 1))] for _ in range(2))
    calls, results = [], []
    together = optimizer_update.adam_together
    monkeypatch.setattr(optimizer_update, "adam_together", lambda weights, *args: (calls.append(len(weights)), together(weights, *args))[1])
    for last in (False, True):
        weights = [nd.array(v) for v in values]
        if last:
            for i in (0, 2):
                memory_format.channels_last(weights[i])
        updater = mx.optimizer.get_updater(mx.optimizer.Adam(learning_rate=0.1, rescale_grad=0.5, wd=0.1))
        for _ in range(2):
            arrays = [nd.array(g) for g in gradients]
            if last:
                memory_format.channels_last(arrays[0])
            updater([0, 1, 2], arrays, weights)
        results.append(np.concatenate([w.asnumpy().ravel() for w in weights]))
    np.testing.assert_allclose(results[0], results[1], rtol=1e-6)
    assert calls == [3, 3, 2, 2]  # the gradient of the third is in the usual order, so that it is moved by itself


def test_adam_of_more_small_weights_than_one_call_takes():
    updater, weights = mx.optimizer.get_updater(mx.optimizer.Adam(learning_rate=0.5)), [nd.array([i, 1.0]) for i in range(11)]
    updater(list(range(11)), [nd.array([1.0, -2.0 * (i == 9)]) for i in range(11)], weights)
    assert np.allclose([w.asnumpy() for w in weights], [[i - 0.5, 1.5 if i == 9 else 1.0] for i in range(11)], atol=1e-5)


def test_adam_with_a_learning_rate_that_depends_on_the_number_of_updates_of_each_weight():
    schedule = mx.lr_scheduler.FactorScheduler(1, 0.5, base_lr=1.0)
    updater = mx.optimizer.get_updater(mx.optimizer.Adam(learning_rate=1.0, lr_scheduler=schedule))
    weights = [nd.zeros((1,)) for _ in range(2)]
    updater(1, nd.ones((1,)), weights[1])  # weight 1 is one update ahead
    updater([0, 1], [nd.ones((1,))] * 2, weights)
    assert [round(w.asscalar().item(), 4) for w in weights] == [-1.0, -1.5]


def test_what_a_program_made_of_adam_is_called_for_each_weight():
    seen = []

    class Mine(mx.optimizer.Adam):
        def update(self, index, weight, grad, state):
            seen.append(index)
            super().update(index, weight, grad, state)

    weights = [nd.ones((2,)), nd.ones((3,))]
    mx.optimizer.get_updater(Mine())([0, 1], [nd.ones((2,)), nd.ones((3,))], weights)
    assert seen == [0, 1] and weights[1].asnumpy().tolist() == pytest.approx([0.999] * 3)
