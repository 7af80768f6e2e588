import base64
import pickle

import numpy as np
import pytest

import mxnet as mx

# What MXNet 1.9.1 wrote: pickle of {0: momentum} after one step of SGD(momentum=0.9, learning_rate=0.1), gradient [1, 2].
WRITTEN_BY_MXNET = ("gASVhAAAAAAAAAB9lEsAjBVteG5ldC5uZGFycmF5Lm5kYXJyYXmUjAdOREFycmF5lJOUToWUUpR9lIwGaGFuZGxllIwIYnVpbHRpbnOUjAlieXRlYXJyYXmU"
                    "k5RDKMn6k/kAAAAAAQAAAAIAAAAAAAAAAQAAAAAAAAAAAAAAzczMvc3MTL6UhZRSlHNicy4=")


def updater_of(name="sgd", **kwargs):
    return mx.optimizer.get_updater(mx.optimizer.create(name, learning_rate=0.1, **kwargs))


def test_states_of_mxnet_are_read():
    updater = updater_of(momentum=0.9)
    updater.set_states(base64.b64decode(WRITTEN_BY_MXNET))
    np.testing.assert_allclose(updater.states[0].asnumpy(), [-0.1, -0.2], rtol=1e-6)
    weight = mx.nd.zeros((2,))
    updater(0, mx.nd.zeros((2,)), weight)
    np.testing.assert_allclose(weight.asnumpy(), [-0.09, -0.18], rtol=1e-6)


@pytest.mark.parametrize("name, kwargs", [("sgd", {}), ("sgd", {"momentum": 0.9}), ("adam", {"multi_precision": True})])
@pytest.mark.parametrize("dump_optimizer", [False, True])
def test_training_goes_on_where_it_was_saved(name, kwargs, dump_optimizer):
    dtype = "float16" if "multi_precision" in kwargs else "float32"
    weight, grad = mx.nd.array([1, 2], dtype=dtype), mx.nd.array([0.5, -1], dtype=dtype)
    first = updater_of(name, **kwargs)
    first(0, grad, weight)
    other_weight = weight.copy()
    second = updater_of(name, **kwargs)
    second.set_states(first.get_states(dump_optimizer))
    if not dump_optimizer:
        second.optimizer._update_count(0)
    first(0, grad, weight)
    second(0, grad, other_weight)
    assert weight.asnumpy().tolist() == other_weight.asnumpy().tolist()
    assert (second.optimizer.num_update == 2) and (type(second.optimizer) is type(first.optimizer))


def test_states_move_to_the_device_of_the_weight():
    first = updater_of(momentum=0.9)
    first(0, mx.nd.ones((2,)), mx.nd.ones((2,)))
    second = updater_of(momentum=0.9)
    second.set_states(first.get_states())
    weight = mx.nd.ones((2,), ctx=mx.cpu(1))
    second(0, weight, weight)
    assert second.states[0].context == mx.cpu(1)


def test_names_may_be_bytes():
    updater = updater_of()
    updater([b"fc", "bias"], [mx.nd.ones((1,))] * 2, [mx.nd.ones((1,)), mx.nd.ones((1,))])
    assert list(updater.states) == ["fc", "bias"]


def test_own_optimizers_get_one_weight_at_a_time():
    class Recorder(mx.optimizer.Optimizer):
        def update(self, index, weight, grad, state):
            self.seen = [*getattr(self, "seen", []), (index, weight.shape)]

    updater = mx.optimizer.Updater(Recorder())
    updater([0, 1], [mx.nd.ones((1,)), mx.nd.ones((2,))], [mx.nd.ones((1,)), mx.nd.ones((2,))])
    assert updater.optimizer.seen == [(0, (1,)), (1, (2,))]


@pytest.mark.parametrize("size, expected", [("2", [2, 2, 1]), ("1", [1] * 5), ("60", [5])])
def test_how_many_weights_go_together(monkeypatch, size, expected):
    monkeypatch.setenv("MXNET_OPTIMIZER_AGGREGATION_SIZE", size)
    updater, seen = updater_of(), []
    update = updater.optimizer.update_multi_precision
    updater.optimizer.update_multi_precision = lambda i, w, g, s: (seen.append(len(i)), update(i, w, g, s))
    arrays = [mx.nd.ones((1,)) for _ in range(5)]
    updater(list(range(5)), arrays, [a.copy() for a in arrays])
    assert seen == expected


class Evil:
    def __reduce__(self):
        return print, ("this must never run",)


def test_foreign_pickles_are_refused(capsys):
    with pytest.raises(mx.MXNetError, match=r"refused: it holds builtins.print, and only arrays"):
        updater_of().set_states(pickle.dumps({0: Evil()}))
    assert capsys.readouterr().out == ""


def test_damaged_states_are_refused():
    whole = updater_of(momentum=0.9)
    whole(0, mx.nd.ones((2,)), mx.nd.ones((2,)))
    states = whole.get_states()
    for broken in (b"", b"nonsense", states[:-20], states[: len(states) // 2]):
        with pytest.raises(mx.MXNetError, match="the optimizer states can't be read near byte"):
            updater_of().set_states(broken)
    with pytest.raises(mx.MXNetError, match="must be a dict"):
        updater_of().set_states(pickle.dumps([1, 2]))


@pytest.mark.parametrize("name, kwargs", [("adam", {}), ("sgd", {"momentum": 0.9}), ("nag", {"momentum": 0.9}), ("rmsprop", {}), ("adagrad", {}),
                                          ("lamb", {}), ("ftrl", {})])
def test_states_of_another_network_are_refused(name, kwargs):
    """Torch's fused kernels would have written beside a state that is too small."""
    small = updater_of(name, **kwargs)
    small(0, mx.nd.ones((8,)), mx.nd.ones((8,)))
    updater = updater_of(name, **kwargs)
    updater.set_states(small.get_states())
    weight = mx.nd.ones((64,))
    with pytest.raises(mx.MXNetError, match=r"the loaded optimizer state of weight 0 has shape \(8,\); a weight of shape \(64,\) needs \(64,\)"):
        updater(0, mx.nd.ones((64,)), weight)
    assert weight.asnumpy().tolist() == [1] * 64


@pytest.mark.parametrize("state, message", [(None, "has NoneType where an array is needed"), (3, "has int where an array is needed"),
                                            (mx.nd.ones((2,), dtype="int32"), "is int32; a weight of type float32 needs float32"),
                                            ((mx.nd.ones((2,)),), "has tuple where an array")])
def test_states_that_are_built_in_another_way_are_refused(state, message):
    updater = updater_of(momentum=0.9)
    updater.set_states(pickle.dumps({0: state}))
    with pytest.raises(mx.MXNetError, match=f"optimizer state of weight 0 {message}"):
        updater(0, mx.nd.ones((2,)), mx.nd.ones((2,)))
    updater = updater_of("adam")
    updater.set_states(pickle.dumps({0: (mx.nd.ones((2,)),)}))
    with pytest.raises(mx.MXNetError, match="has 1 parts, the optimizer keeps 2"):
        updater(0, mx.nd.ones((2,)), mx.nd.ones((2,)))


def test_a_loaded_optimizer_that_cannot_update_is_an_mxnet_error():
    broken = mx.optimizer.Ftrl(lamda1=1e300)
    source = mx.optimizer.get_updater(broken)
    source.states[0] = broken.create_state(0, mx.nd.ones((2,)))
    updater = mx.optimizer.get_updater(mx.optimizer.SGD())
    updater.set_states(source.get_states(dump_optimizer=True))
    with pytest.raises(mx.MXNetError, match="weight 0: Ftrl fails with the states that were loaded"):
        updater(0, mx.nd.ones((2,)), mx.nd.ones((2,)))


def test_a_loaded_optimizer_without_its_numbers_is_refused():
    # A tuple of no states and an SGD that was made, but never filled.
    forged = b"\x80\x04}cmxnet.optimizer.optimizer\nSGD\n)\x81\x86."
    updater = mx.optimizer.get_updater(mx.optimizer.SGD())
    with pytest.raises(mx.MXNetError, match="a damaged optimizer: SGD without the number aggregate_num"):
        updater.set_states(forged)
