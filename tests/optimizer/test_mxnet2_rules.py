import numpy as np
import pytest

import mxnet as mx


@pytest.fixture(autouse=True)
def as_in_mxnet2():
    mx.util.set_version("2.0")


@pytest.mark.parametrize("name, learning_rate, attributes", [
    ("SGD", 0.1, {"momentum": 0.0, "lazy_update": False}), ("NAG", 0.1, {"momentum": 0.9}), ("SGLD", 0.1, {}), ("DCASGD", 0.1, {"lamda": 0.04}),
    ("Adam", 0.001, {"lazy_update": False, "epsilon": 1e-8}), ("AdaGrad", 0.01, {"float_stable_eps": 1e-6}), ("RMSProp", 0.001, {"gamma1": 0.9}),
    ("AdaDelta", 1.0, {"rho": 0.9, "epsilon": 1e-6}), ("Adamax", 0.002, {"epsilon": 1e-8}), ("Nadam", 0.001, {"schedule_decay": 0.004}),
    ("FTML", 0.0025, {"beta1": 0.6}), ("Ftrl", 0.1, {"lamda1": 0.01}), ("Signum", 0.01, {"momentum": 0.9}),
    ("LARS", 0.1, {"eps": 1e-8, "momentum_correction": False}), ("GroupAdaGrad", 0.01, {"float_stable_eps": 1e-6})])
def test_defaults(name, learning_rate, attributes):
    optimizer = mx.optimizer.create(name)
    assert optimizer.learning_rate == learning_rate
    assert {key: getattr(optimizer, key) for key in attributes} == attributes


def test_positions_are_those_of_mxnet_2_and_old_names_hold():
    sgd = mx.optimizer.SGD(0.3, 0.5)
    assert (sgd.learning_rate, sgd.momentum) == (0.3, 0.5)
    assert mx.optimizer.AdaGrad(eps=0.5).float_stable_eps == 0.5 and mx.optimizer.RMSProp(gamma1=0.5).gamma1 == 0.5
    with pytest.raises(TypeError, match=r"AdaGrad takes at most 2 positional arguments in MXNet 2 \(learning_rate, epsilon\), received 3"):
        mx.optimizer.AdaGrad(1, 2, 3)
    with pytest.raises(TypeError, match="SGD got multiple values for argument 'learning_rate'"):
        mx.optimizer.SGD(0.3, learning_rate=0.2)


def test_a_schedule_keeps_its_rate():
    assert mx.optimizer.SGD(lr_scheduler=mx.lr_scheduler.FactorScheduler(step=1, base_lr=0.3)).learning_rate == 0.3


def test_mxnet_1_has_its_own_defaults():
    mx.util.set_version("1.9")
    assert mx.optimizer.SGD().learning_rate == 0.01 and mx.optimizer.SGD(0.5).momentum == 0.5 and mx.optimizer.AdaGrad().float_stable_eps == 1e-7


# The gradient 4 becomes clip(0.5 * 4) + 0.1 * 1 = 1.1 in the first step.
@pytest.mark.parametrize("name, arguments, weight", [
    ("adagrad", {"epsilon": 0.1}, 1 - 0.1 * 1.1 / 1.2),
    ("adadelta", {"learning_rate": 0.5, "epsilon": 0.01}, 0.8480408),
    ("rmsprop", {"epsilon": 0.1}, 0.7543823),
    ("rmsprop", {"epsilon": 0.1, "centered": True, "momentum": 0.5}, 0.7593292),
    ("rmsprop", {"epsilon": 0.1, "clip_weights": 0.5}, 0.5),
    ("ftml", {"beta1": 0.5, "beta2": 0.9, "epsilon": 0.1}, 5.45 / 6),
    ("nag", {}, 0.791),
    ("dcasgd", {"momentum": 0.9, "lamda": 0.5}, 0.89)])
def test_rules(name, arguments, weight):
    assert _run(name, 1, **arguments)[0] == pytest.approx(weight, rel=1e-6)


def test_rules_with_what_the_first_step_left():
    assert _run("nag", 2)[0] == pytest.approx(0.496871, rel=1e-6)
    assert _run("dcasgd", 2, momentum=0.9, lamda=0.5)[0] == pytest.approx(0.68862257, rel=1e-6)


@pytest.mark.parametrize("name", ["adam", "adamax", "nadam"])
def test_the_gradient_is_clipped_before_the_weight_decays(name):
    weight, state = _run(name, 1)
    assert state[0].asnumpy() == pytest.approx([0.11], rel=1e-6)  # the average of the gradient
    assert weight == pytest.approx({"adam": 0.9, "adamax": 0.9, "nadam": 0.8943548}[name], rel=1e-4)


def test_adam_of_several_weights():
    optimizer = mx.optimizer.Adam(learning_rate=0.1, wd=0.1, rescale_grad=0.5, clip_gradient=1.0)
    updater = mx.optimizer.get_updater(optimizer)
    weights = [mx.nd.ones((2,)), mx.nd.ones((3,))]
    updater([0, 1], [mx.nd.full((2,), 4.0), mx.nd.full((3,), -4.0)], weights)
    np.testing.assert_allclose(updater.states[0][0].asnumpy(), [0.11, 0.11], rtol=1e-6)
    np.testing.assert_allclose(updater.states[1][0].asnumpy(), [-0.09] * 3, rtol=1e-6)


@pytest.mark.parametrize("name", ["sgd", "nag", "lars"])
def test_the_float32_copy_stands_first_in_a_state(name):
    optimizer = mx.optimizer.create(name, momentum=0.5, multi_precision=True, learning_rate=0.1)
    weight = mx.nd.ones((2,), dtype="float16")
    master, momentum = optimizer.create_state_multi_precision(0, weight)
    assert master.dtype == np.float32 and master.asnumpy().tolist() == [1, 1] and momentum.asnumpy().tolist() == [0, 0]
    optimizer.update_multi_precision([0], [weight], [mx.nd.ones((2,), dtype="float16")], [(master, momentum)])
    moved = {"sgd": 0.9, "nag": 0.85, "lars": 1 - 1e-4}[name]
    np.testing.assert_allclose(master.asnumpy(), [moved] * 2, rtol=1e-6)
    np.testing.assert_allclose(weight.asnumpy(), [moved] * 2, rtol=1e-3)


def _run(name, count, **arguments):
    optimizer = mx.optimizer.create(name, **{"learning_rate": 0.1, "wd": 0.1, "rescale_grad": 0.5, "clip_gradient": 1.0, **arguments})
    weight = mx.nd.ones((1,))
    state = optimizer.create_state(0, weight)
    for _ in range(count):
        optimizer.update(0, weight, mx.nd.full((1,), 4.0), state)
    return float(weight.asscalar()), state


def test_adagrad_by_rows():
    """Epsilon is added to the root here as well; the row without a gradient stays."""
    optimizer = mx.optimizer.AdaGrad(learning_rate=0.1, epsilon=0.01)
    weight = mx.nd.array([[1.0, 2.0], [3.0, 4.0]]).tostype("row_sparse")
    state = optimizer.create_state(0, weight)
    optimizer.update(0, weight, mx.nd.sparse.row_sparse_array(([[0.01, 1.0]], [1]), shape=(2, 2)), state)
    np.testing.assert_allclose(weight.asnumpy(), [[1, 2], [3 - 0.1 * 0.01 / 0.02, 4 - 0.1 / 1.01]], rtol=1e-6)
