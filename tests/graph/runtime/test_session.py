import threading

import pytest
import torch

import mxnet as mx
from mxnet import nd
from mxnet.graph import GraphRunner
from mxnet.graph.runtime.session import Session, Watcher
from mxnet.ndarray.dispatch import mode


def session(symbol):
    return Session(GraphRunner(symbol))


def normalization():
    return mx.sym.BatchNorm(mx.sym.var("x"), name="bn", fix_gamma=False)


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("recorded", [False, True])
@pytest.mark.parametrize("outside", [False, True])
def test_modes_are_those_asked_for_and_put_back(training, recorded, outside):
    seen = []

    class Runner(GraphRunner):
        def __call__(self, inputs, is_train, ctx, observe):
            seen.append((is_train, mode.training, torch.is_grad_enabled()))
            return super().__call__(inputs, is_train, ctx, observe)

    run = Session(Runner(mx.sym.var("x") * mx.sym.var("y"))).run
    before = mode.training, torch.is_grad_enabled()
    try:
        mode.training = outside
        torch.set_grad_enabled(outside)
        found, = run([torch.ones(2, requires_grad=True), torch.ones(2)], mx.cpu(), training, recorded)
        with pytest.raises(mx.MXNetError, match="Error in operator"):
            run([torch.ones(2, requires_grad=True), torch.ones(3)], mx.cpu(), training, recorded)
        assert (mode.training, torch.is_grad_enabled()) == (outside, outside)
    finally:
        mode.training = before[0]
        torch.set_grad_enabled(before[1])
    assert found.tolist() == [1, 1] and found.requires_grad is recorded
    assert seen == [(training, training, recorded)] * 2


def test_what_is_written_to_is_known():
    found = session(normalization())
    assert [found.runner.input_names[i] for i in found.written] == ["bn_moving_mean", "bn_moving_var"] and not found.always_writes
    update = session(mx.sym.sgd_mom_update(mx.sym.var("w"), mx.sym.var("g"), mx.sym.var("m"), lr=0.1))
    assert update.always_writes and "m" in [update.runner.input_names[i] for i in update.written]
    inputs = map(mx.sym.var, ("x", "gamma", "beta", "mean", "var", "low", "high"))
    net = mx.sym.contrib.quantized_batch_norm(*inputs, min_calib_range=-1, max_calib_range=1)
    assert net.list_auxiliary_states() == ["mean", "var"] and not session(net).always_writes  # else it is compiled anew for each call


@pytest.mark.parametrize("training", [False, True])
def test_writes_are_announced_where_there_will_be_some(training, monkeypatch):
    told = []
    monkeypatch.setattr(nd.NDArray, "_writable", lambda self: told.append(self) or self._data.data)
    found = session(normalization())
    arrays = [nd.ones((3,)) for _ in found.runner.input_names]
    tensors = [a._data for a in arrays]
    found.prepare(arrays, tensors, training, recorded=False)
    assert [any(a is t for t in told) for a in arrays] == [training and i in found.written for i in range(len(arrays))]
    assert [t.data_ptr() for t in tensors] == [a._data.data_ptr() for a in arrays]


@pytest.mark.parametrize("training, recorded, order", [(True, True, True), (True, False, False), (False, True, False)])
def test_layouts_follow_recorded_training(training, recorded, order):
    found = session(mx.sym.Convolution(mx.sym.var("x"), num_filter=4, kernel=(3, 3), name="conv"))
    arrays = [nd.ones((1, 2, 5, 5)), nd.ones((4, 2, 3, 3)), nd.zeros((4,))]
    found.run([a._data for a in arrays], mx.cpu(), training=True, recorded=False)  # so that the passes say what they want
    assert found.runner.channels_last == (1,)
    found.prepare(arrays, [a._data for a in arrays], training, recorded)
    assert arrays[1]._data.is_contiguous(memory_format=torch.channels_last) is order


def test_sparse_arrays_stay_sparse_and_modes_are_put_back():
    variable = mx.sym.var("x")
    found = session(mx.sym.square(variable))
    assert found.runs_sparse
    x = nd.array([[0, 0], [1, 2]]).tostype("row_sparse")
    square, = found.run_sparse([x], mx.cpu(), training=True, recorded=False)
    assert square.stype == "row_sparse" and square.data.asnumpy().tolist() == [[1, 4]]
    assert (mode.training, mode.recording) == (False, False)
    loop = mx.sym.contrib.foreach(lambda d, s: (d + s, s), variable, mx.sym.var("s"))[0]
    assert not session(loop).runs_sparse


def test_a_watcher_tells_of_outputs_and_if_asked_of_inputs():
    found = session(mx.sym.relu(mx.sym.var("x") * 2, name="r"))
    for inputs, expected in ((False, [("_mulscalar", [-2.0, 4.0]), ("r", [0.0, 4.0])]),
                             (True, [("x", [-1.0, 2.0]), ("_mulscalar", [-2.0, 4.0]), ("r_input0", [-2.0, 4.0]), ("r", [0.0, 4.0])])):
        told = []
        found.run([torch.tensor([-1.0, 2.0])], mx.cpu(), False, False, Watcher(lambda *args, told=told: told.append(args), inputs))
        assert [tensor.tolist() for _, _, tensor in told] == [values for _, values in expected]
        assert told[-1][:2] == ("r_output", "relu")


def test_threads_may_use_one_session_in_different_modes():
    found, wrong = session(mx.sym.Dropout(mx.sym.var("x"), p=0.5)), []
    x = torch.ones(1000)

    def work(training):
        for _ in range(50):
            y, = found.run([x], mx.cpu(), training, False)
            if torch.equal(y, x) is training:
                wrong.append(training)

    threads = [threading.Thread(target=work, args=(i % 2 == 0,)) for i in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(60)
    assert not wrong and not any(t.is_alive() for t in threads)


def test_an_executor_and_a_cached_op_agree():
    symbol = mx.sym.FullyConnected(mx.sym.Dropout(mx.sym.var("x")), num_hidden=2, name="fc")
    values = {"x": nd.array([[1, 2, 3]]), "fc_weight": nd.array([[1, 0, 0], [0, 1, 1]]), "fc_bias": nd.array([1, -1])}
    gradients = {name: nd.zeros(value.shape) for name, value in values.items()}
    executor = symbol.bind(mx.cpu(), values, gradients)
    executor.forward(is_train=True)
    executor.backward(nd.array([[1, 2]]))
    mx.random.seed(1)
    expected = executor.forward(is_train=True)[0].asnumpy()
    executor.backward(nd.array([[1, 2]]))
    arrays = [values[name].copy() for name in symbol.list_inputs()]
    for a in arrays:
        a.attach_grad()
    op = nd.CachedOp(symbol)
    mx.random.seed(1)
    with mx.autograd.record():
        y = op(*arrays)
    y.backward(nd.array([[1, 2]]))
    assert y.asnumpy().tolist() == expected.tolist()
    for a, name in zip(arrays, symbol.list_inputs()):
        assert a.grad.asnumpy().tolist() == gradients[name].asnumpy().tolist()
