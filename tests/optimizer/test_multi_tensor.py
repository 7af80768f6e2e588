"""Updates that are collected on GPUs, on a CPU: in the place of the kernel's start is a list of them, and torch's operators compute."""
import numpy as np
import pytest

import mxnet as mx
from mxnet.kernels.nn import updates_on_gpu
from mxnet.ndarray import memory_format
from mxnet.optimizer import multi_tensor

NAMES = ["adamax", "rmsprop", "adagrad", "adadelta", "ftrl", "ftml", "signum", "dcasgd", "adamw", "adabelief"]


@pytest.fixture
def starts(monkeypatch):
    """(rule, number of weights) of each start."""
    done = []
    monkeypatch.setattr(updates_on_gpu, "on_gpu", lambda tensor: True)
    monkeypatch.setattr(updates_on_gpu, "available", lambda device: True)
    monkeypatch.setattr(updates_on_gpu, "start", lambda step, weights, *rest: done.append((step.rule, len(weights))))
    return done


def arrays(seed=0, dtype="float32", count=4):
    random = np.random.RandomState(seed)
    return [mx.nd.array(random.randn(3, i + 1), dtype=dtype) for i in range(count)]


def trained(optimizer, dtype="float32", steps=3, prepare=None, indices=(0, 1, 2, 3)):
    """The weights after some steps in one call each."""
    weights, updater = arrays(dtype=dtype), mx.optimizer.get_updater(optimizer)
    for step in range(steps):
        grads = arrays(step + 1, dtype)
        if prepare:
            prepare(grads)
        updater(list(indices), [grads[i] for i in indices], [weights[i] for i in indices])
    return [w.asnumpy() for w in weights]


def expected_of(optimizer, **options):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(updates_on_gpu, "on_gpu", lambda tensor: False)
        return trained(optimizer, **options)


def same(results, expected):
    for a, b in zip(results, expected):
        np.testing.assert_allclose(a.astype("float32"), b.astype("float32"), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("name", NAMES)
def test_one_start_updates_all_weights(name, dtype, starts):
    make = {"learning_rate": 0.1, "wd": 0.01, "rescale_grad": 0.5, "multi_precision": dtype == "float16"}
    expected = expected_of(mx.optimizer.create(name, **make), dtype=dtype)
    same(trained(mx.optimizer.create(name, **make), dtype), expected)
    first = [1, 1, 1, 1] if name == "adamax" else [4]  # it looks for 0 / 0
    assert [count for _, count in starts] == [*first, 4, 4]


def test_weights_with_other_numbers_start_apart(starts):
    def make():
        optimizer = mx.optimizer.create("rmsprop", learning_rate=0.1, wd=0.1, param_idx2name={i: f"{i}_weight" for i in range(4)})
        optimizer.set_lr_mult({"1_weight": 0.5, "3_weight": 0.5})
        optimizer.set_wd_mult({"2_weight": 0.0})
        return optimizer

    expected = expected_of(make(), steps=1)
    same(trained(make(), steps=1), expected)
    assert starts == [("rmsprop", 1), ("rmsprop", 2), ("rmsprop", 1)]


def test_weights_of_half_precision_and_others_start_apart(starts):
    optimizer = mx.optimizer.create("adamw", learning_rate=0.1, multi_precision=True)
    weights = [*arrays(), *arrays(dtype="float16")]
    mx.optimizer.get_updater(optimizer)(list(range(8)), [*arrays(1), *arrays(1, "float16")], weights)
    assert starts == [("adamw", 4), ("adamw", 4)]
    for one, other in zip(weights[:4], weights[4:]):
        np.testing.assert_allclose(one.asnumpy(), other.asnumpy(), atol=4e-3)


def test_a_weight_that_occurs_twice_is_updated_twice(starts):
    indices = [0, 1, 0, 2]
    same(trained(mx.optimizer.create("rmsprop"), indices=indices), expected_of(mx.optimizer.create("rmsprop"), indices=indices))
    assert starts == [("rmsprop", 2), ("rmsprop", 2)] * 3


def test_a_state_that_occurs_twice_is_updated_twice(starts):
    results = []
    for on_gpu in (False, True):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(updates_on_gpu, "on_gpu", lambda tensor, on_gpu=on_gpu: on_gpu)
            weights, state = [mx.nd.ones(3), mx.nd.ones(3)], mx.nd.zeros(3)
            updater = mx.optimizer.get_updater(mx.optimizer.create("rmsprop", learning_rate=0.1))
            updater.states, updater.states_synced = {0: (state,), 1: (state,)}, {0: True, 1: True}
            updater([0, 1], [mx.nd.ones(3)] * 2, weights)
            results.append([a.asnumpy() for a in (*weights, state)])
    same(*results)
    assert starts == [("rmsprop", 1)] * 2


def test_the_updates_before_an_exception_are_done(starts):
    weights, updater = arrays(), mx.optimizer.get_updater(mx.optimizer.create("ftml"))
    before = [w.asnumpy() for w in weights]
    with pytest.raises(mx.MXNetError, match="`grad` is str"):
        updater([0, 1, 2, 3], [*arrays(1)[:2], "gradient", arrays(1)[3]], weights)
    assert starts == [("ftml", 2)]
    assert [bool((w.asnumpy() == b).all()) for w, b in zip(weights, before)] == [False, False, True, True]


def test_zeros_are_warned_of_at_once(starts):
    """The warning is issued before the next weight's update, from the values of the finished one."""
    updater, weights, grads = mx.optimizer.get_updater(mx.optimizer.create("adamax")), arrays(), arrays(1)
    grads[1][0] = 0
    with pytest.warns(RuntimeWarning, match="2 of the 6 elements of weight 1") as record:
        updater([0, 1, 2, 3], grads, weights)
    assert len(record) == 1 and starts == [("adamax", 1)] * 4


def test_programs_that_override_anything_see_each_update(starts):
    seen = []

    class Observing(mx.optimizer.RMSProp):
        def update(self, index, weight, grad, state):
            before = weight.asnumpy()
            super().update(index, weight, grad, state)
            seen.append(bool((weight.asnumpy() != before).all()))

    class Renamed(mx.optimizer.RMSProp):
        """Overrides nothing."""

    same(trained(Observing(), steps=1), expected_of(mx.optimizer.RMSProp(), steps=1))
    assert seen == [True] * 4 and starts == [("rmsprop", 1)] * 4
    starts.clear()
    trained(Renamed(), steps=1)
    assert starts == [("rmsprop", 4)]
    starts.clear()
    optimizer = mx.optimizer.RMSProp()
    optimizer.update = optimizer.update
    trained(optimizer, steps=1)
    assert starts == [("rmsprop", 1)] * 4


def test_masters_of_programs_optimizers_are_copied_as_before(starts):
    class Doubling(mx.optimizer.RMSProp):
        def update_multi_precision(self, index, weight, grad, state):
            assert grad.dtype == np.float16
            super().update_multi_precision(index, weight, grad * 2, state)

    weights = trained(Doubling(multi_precision=True), "float16", steps=1)
    same(weights, expected_of(mx.optimizer.RMSProp(multi_precision=True, rescale_grad=2), dtype="float16", steps=1))


def test_sparse_weights_are_updated_between_others(starts):
    def prepare(grads):
        grads[1] = grads[1].tostype("row_sparse")

    same(trained(mx.optimizer.create("ftrl"), prepare=prepare), expected_of(mx.optimizer.create("ftrl"), prepare=prepare))
    assert starts == [("ftrl", 1), ("ftrl", 2)] * 3


@pytest.mark.parametrize("dtype", ["float64", "float16"])
def test_types_without_a_kernel_take_torch(dtype, starts):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mx.optimizer.Optimizer, "_wants_master", lambda *_: False)
        same(trained(mx.optimizer.create("ftml"), dtype), expected_of(mx.optimizer.create("ftml"), dtype=dtype))
    assert starts == []


def test_a_gradient_in_another_order_takes_torch(starts):
    def run():
        weight = mx.nd.array(np.random.RandomState(0).randn(2, 3, 4, 5))
        grad = mx.nd.array(np.random.RandomState(1).randn(2, 3, 4, 5))
        memory_format.channels_last(grad)
        mx.optimizer.get_updater(mx.optimizer.create("ftml"))([0], [grad], [weight])
        return weight.asnumpy()

    result = run()
    assert starts == []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(updates_on_gpu, "on_gpu", lambda tensor: False)
        np.testing.assert_allclose(run(), result, rtol=1e-6)


def test_one_weight_by_itself_starts_at_once(starts):
    weight, optimizer = mx.nd.ones(3), mx.optimizer.create("ftml")
    optimizer.update(0, weight, mx.nd.ones(3), optimizer.create_state(0, weight))
    assert starts == [("ftml", 1)] and (weight.asnumpy() != 1).all()


def test_blocks_in_blocks_start_at_the_end_of_the_outer_one(starts):
    optimizer, weights = mx.optimizer.create("ftml"), [mx.nd.ones(3), mx.nd.ones(3)]
    with multi_tensor.collected():
        with multi_tensor.collected():
            optimizer.update(0, weights[0], mx.nd.ones(3), optimizer.create_state(0, weights[0]))
        optimizer.update(1, weights[1], mx.nd.ones(3), optimizer.create_state(1, weights[1]))
        assert starts == []
        multi_tensor.finish()
        assert starts == [("ftml", 2)] and (weights[0].asnumpy() != 1).all()


def test_optimizers_of_mxnet_2_keep_their_rules(starts):
    before = mx.util.version()
    mx.util.set_version("2.0")
    try:
        optimizers = [mx.optimizer.create("rmsprop") for _ in range(2)]
    finally:
        mx.util.set_version(before)
    same(trained(optimizers[0]), expected_of(optimizers[1]))
    assert starts == []


@pytest.mark.parametrize("method", ["update", "update_multi_precision"])
@pytest.mark.parametrize("name", ["rmsprop", "adam"])
def test_what_a_program_puts_around_a_method_of_the_package_runs_around_each_update(method, name, starts, monkeypatch):
    original = getattr(mx.optimizer.Optimizer, method)

    def clipped(self, index, weight, grad, state):
        original(self, index, weight, grad, state)
        weight[:] = mx.nd.clip(weight, -0.5, 0.5)

    monkeypatch.setattr(mx.optimizer.Optimizer, method, clipped)
    weights, updater = [mx.nd.array([-0.45]), mx.nd.array([0.45])], mx.optimizer.get_updater(mx.optimizer.create(name, learning_rate=0.1))
    updater([0, 1], [mx.nd.ones(1), -mx.nd.ones(1)], weights)
    assert [w.asscalar() for w in weights] == [-0.5, 0.5]


def test_numbers_may_be_arrays_of_one(monkeypatch):
    numbers = []
    monkeypatch.setattr(updates_on_gpu, "on_gpu", lambda tensor: True)
    monkeypatch.setattr(updates_on_gpu, "available", lambda device: True)
    monkeypatch.setattr(updates_on_gpu, "start", lambda step, *rest: numbers.append(step) or True)
    for kind in (float, np.array):
        optimizer = mx.optimizer.create("rmsprop", learning_rate=0.1)
        optimizer.rescale_grad, optimizer.epsilon = kind(0.5), kind(1e-6)
        trained(optimizer, steps=1)
    assert numbers[0] == numbers[1] and len(numbers) == 2
