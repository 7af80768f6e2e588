import math
import pickle

import pytest

import mxnet as mx


def test_create_by_name_in_any_case():
    assert type(mx.optimizer.create("NaG")) is mx.optimizer.NAG
    with pytest.raises(ValueError, match="Cannot find optimizer sdg; registered are .*sgd"):
        mx.optimizer.create("sdg")


def test_all_of_mxnet_are_registered():
    names = "adadelta adagrad adam adamax ccsgd dcasgd ftml ftrl groupadagrad lamb lars lbsgd nadam nag rmsprop sgd sgld signum test"
    assert set(names.split()) <= set(mx.optimizer.Optimizer.opt_registry)


def test_registering_twice_warns():
    class Sgd(mx.optimizer.SGD):
        pass

    try:
        with pytest.warns(UserWarning, match="Sgd is overriding existing optimizer mxnet.optimizer.optimizer.SGD"):
            mx.optimizer.register(Sgd)
    finally:
        mx.optimizer.Optimizer.opt_registry["sgd"] = mx.optimizer.SGD


def test_weight_decay_by_name():
    opt = mx.optimizer.SGD(wd=0.5, param_idx2name={0: "fc_weight", 1: "fc_bias", 2: "bn_gamma", 3: "bn_beta"})
    assert opt._get_wds([0, 1, 2, 3, 4]) == [0.5, 0.0, 0.5, 0.0, 0.5]
    opt.set_wd_mult({"fc_bias": 2, 4: 3})
    assert opt._get_wds([0, 1, 4]) == [0.5, 1.0, 1.5]
    lars = mx.optimizer.LARS(wd=0.5, param_idx2name={0: "fc_weight", 2: "bn_gamma"})
    assert lars._get_wds([0, 2]) == [0.5, 0.0]


def test_multipliers_of_symbol_and_of_parameters():
    data = mx.sym.var("data")
    weight = mx.sym.var("fc_weight", lr_mult=0.5, wd_mult=0.25)
    net = mx.sym.FullyConnected(data, weight=weight, num_hidden=2, name="fc")
    opt = mx.optimizer.SGD(learning_rate=1.0, wd=1.0, sym=net, param_idx2name={0: "fc_weight", 1: "fc_bias"})
    assert opt._get_lrs([0, 1]) == [0.5, 1.0]
    assert opt._get_wds([0, 1]) == [0.25, 0.0]
    opt.set_lr_mult({"fc_bias": 3.0})
    assert opt._get_lrs([0, 1]) == [0.5, 3.0]

    class Parameter:
        lr_mult, wd_mult = 10.0, 0.0

    opt.param_dict = {0: Parameter()}
    assert opt._get_lrs([0]) == [10.0]


def test_scheduler_sets_the_rate():
    opt = mx.optimizer.SGD(lr_scheduler=mx.lr_scheduler.FactorScheduler(1, 0.5, base_lr=1.0))
    weight = mx.nd.zeros((1,))
    for _ in range(3):
        opt.update(0, weight, mx.nd.ones((1,)), None)
    assert opt.num_update == 3
    assert weight.asscalar() == -1.75  # 1 + 0.5 + 0.25
    assert opt.learning_rate == 0.25
    with pytest.raises(UserWarning, match="this optimizer has an lr_scheduler"):
        opt.set_learning_rate(0.1)


def test_rate_given_beside_a_scheduler_is_its_base():
    with pytest.warns(UserWarning, match="overwritten"):
        opt = mx.optimizer.SGD(learning_rate=0.3, lr_scheduler=mx.lr_scheduler.FactorScheduler(1, 0.5, base_lr=1.0))
    assert opt.lr_scheduler.base_lr == 0.3


def test_each_device_counts_for_itself():
    opt = mx.optimizer.SGD(learning_rate=0.1, begin_num_update=5)
    updaters = [mx.optimizer.get_updater(opt) for _ in range(2)]
    for i, updater in enumerate(updaters):
        weight = mx.nd.ones((2,), ctx=mx.cpu(i))
        updater(0, weight, weight)
    assert opt.num_update == 6
    assert opt._all_index_update_counts == {0: {0: 6}, 1: {0: 6}}


def test_wrong_arguments():
    with pytest.raises(TypeError, match="param_idx2name should be a dict"):
        mx.optimizer.SGD(param_idx2name=["a"])
    with pytest.raises(DeprecationWarning, match="set_lr_mult"):
        mx.optimizer.SGD().set_lr_scale({})
    with pytest.raises(NotImplementedError, match="Optimizer must define update"):
        mx.optimizer.Optimizer().update(0, None, None, None)


def test_pickles_leave_parameters_out():
    opt = mx.optimizer.Adam(param_dict={0: object()})
    copy = pickle.loads(pickle.dumps(opt))
    assert copy.param_dict == {} and copy.beta1 == 0.9
    assert type(opt).__module__ == "mxnet.optimizer.optimizer"


class _Steps(mx.optimizer.Optimizer):
    """In the style of MXNet 2."""

    def create_state(self, index, weight):
        return mx.nd.zeros(weight.shape)

    def step(self, indices, weights, grads, states):
        self.calls = [*getattr(self, "calls", ()), ("step", list(indices))]
        for index, weight, grad, state in zip(indices, weights, grads, states):
            self._update_count(index)
            state += 1
            weight -= self._get_lr(index) * grad

    def fused_step(self, indices, weights, grads, states):
        self.step(indices, weights, grads, states)
        self.calls[-1] = ("fused", list(indices))


@pytest.mark.parametrize("fused, name", [(False, "step"), (True, "fused")])
def test_steps_of_mxnet_2(fused, name):
    opt = _Steps(learning_rate=0.5, use_fused_step=fused, aggregate_num=2)
    updater, weights = mx.optimizer.get_updater(opt), [mx.nd.ones((2,)) for _ in range(3)]
    updater([0, 1, 2], [mx.nd.ones((2,)) for _ in weights], weights)
    assert opt.calls == [(name, [0, 1]), (name, [2])] and weights[2].asnumpy().tolist() == [0.5, 0.5]
    opt.update(0, weights[0], mx.nd.ones((2,)), updater.states[0])
    assert opt.calls[-1] == (name, [0]) and updater.states[0].asnumpy().tolist() == [2, 2] and weights[0].asnumpy().tolist() == [0, 0]


@pytest.mark.parametrize("name", sorted(set("adabelief adadelta adagrad adam adamax adamw dcasgd ftml ftrl lamb lans lars nadam nag rmsprop sgd "
                                            "signum".split())))
@pytest.mark.parametrize("options", [{}, {"aggregate_num": math.inf, "use_fused_step": True}, {"aggregate_num": 0, "use_fused_step": False}])
def test_lists_of_weights_are_updated_as_each_alone(name, options):
    if name == "adamw":
        options = {**options, "multi_precision": False}
    alone, together = mx.optimizer.create(name, learning_rate=0.1), mx.optimizer.create(name, learning_rate=0.1, **options)
    start, grads = [[1.0, 2.0], [3.0], [-1.0]], [[0.5, 1.0], [-2.0], [0.25]]
    first, second = ([mx.nd.array(w) for w in start] for _ in range(2))
    states = [[opt.create_state_multi_precision(i, w) for i, w in enumerate(ws)] for opt, ws in ((alone, first), (together, second))]
    for _ in range(2):
        for i in range(3):
            alone.update(i, first[i], mx.nd.array(grads[i]), states[0][i])
        together.update_multi_precision([0, 1, 2], second, [mx.nd.array(g) for g in grads], states[1])
    assert [w.asnumpy().tolist() for w in second] == [pytest.approx(w.asnumpy().tolist(), rel=1e-6) for w in first]
    assert second[0].asnumpy().tolist() != start[0]


def test_half_precision_weights_in_a_list_go_through_their_copies():
    opt = mx.optimizer.Adam(learning_rate=0.001, multi_precision=True)
    weights = [mx.nd.ones((2,), dtype="float16"), mx.nd.ones((2,))]
    states = [opt.create_state_multi_precision(i, w) for i, w in enumerate(weights)]
    for _ in range(2):
        opt.update_multi_precision([0, 1], weights, [mx.nd.ones((2,), dtype=w.dtype) for w in weights], states)
    master = states[0][0].asnumpy()
    assert master.dtype == "float32" and master.tolist() == weights[1].asnumpy().tolist() == pytest.approx([0.998, 0.998], abs=1e-5)
    assert weights[0].asnumpy().tolist() == master.astype("float16").tolist()


@pytest.mark.parametrize("number", [-1, 1.5, "4", True])
def test_aggregate_num_is_a_count(number):
    with pytest.raises(mx.MXNetError, match="aggregate_num must be a number of weights, 0 or more, or inf for all; received"):
        mx.optimizer.SGD(aggregate_num=number)


def test_states_with_an_unlimited_count_come_back():
    updater = mx.optimizer.get_updater(mx.optimizer.SGD(momentum=0.9, aggregate_num=math.inf))
    updater([0], [mx.nd.ones((1,))], [mx.nd.ones((1,))])
    other = mx.optimizer.get_updater(mx.optimizer.SGD())
    other.set_states(updater.get_states(dump_optimizer=True))
    assert other.optimizer.aggregate_num == math.inf and other.aggregate_updates
