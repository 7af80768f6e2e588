import mxnet as mx
from mxnet.contrib.svrg_optimization.svrg_optimizer import _AssignmentOptimizer, _SVRGOptimizer


def test_full_gradients_are_assigned_and_weights_updated():
    optimizer = _SVRGOptimizer("sgd", learning_rate=0.5, momentum=0.9, param_idx2name={0: "w", 1: "w_full"})
    weight, full = mx.nd.array([1, 2]), mx.nd.array([1, 2])
    states = [optimizer.create_state(i, weight) for i in (0, 1)]
    assert states[0].shape == (2,) and states[1] is None
    optimizer.update(0, weight, mx.nd.array([2, 4]), states[0])
    optimizer.update(1, full, mx.nd.array([2, 4]), states[1])
    assert weight.asnumpy().tolist() == [0, 0] and full.asnumpy().tolist() == [2, 4]
    named = mx.nd.array([1, 2])
    optimizer.update("v_full", named, mx.nd.array([7, 8]), None)  # a kvstore's keys are names
    assert named.asnumpy().tolist() == [7, 8]


def test_it_is_made_of_a_name_or_an_optimizer():
    inner = mx.optimizer.Adam()
    assert _SVRGOptimizer(inner).default_opt is inner
    made = mx.optimizer.create("_svrgoptimizer", default_optimizer="nag", learning_rate=0.25, momentum=0.5)
    assert type(made.default_opt) is mx.optimizer.NAG and (made.default_opt.lr, made.default_opt.momentum, made.lr) == (0.25, 0.5, 0.25)
    assert isinstance(made.aux_opt, _AssignmentOptimizer)
