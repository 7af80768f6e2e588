"""Small networks are trained on one thread, and only these."""
import pytest
import torch

import mxnet as mx
from mxnet import openmp
from mxnet.graph.runtime.threading_policy import runs_single_threaded


def dense(units=4):
    return mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=units, name="fc")


def light(symbol, **given):
    shapes, _, _ = symbol.infer_shape(**given)
    return runs_single_threaded(symbol._nodes(), dict(zip(symbol.list_arguments(), shapes)))


@pytest.mark.parametrize("batch, expected", [(128, True), (129, False)])
def test_products_of_up_to_four_million_multiplications_are_light(batch, expected):
    assert light(dense(128), data=(batch, 256)) is expected


@pytest.mark.parametrize("columns, expected", [(256, True), (257, False)])
def test_products_of_two_variables_count_likewise(columns, expected):
    assert light(mx.sym.sum(mx.sym.dot(mx.sym.var("a"), mx.sym.var("b"))), a=(128, 128), b=(128, columns)) is expected


def test_large_results_and_many_weights_are_not_light():
    assert light(mx.sym.relu(mx.sym.var("x")), x=(1 << 15,))
    assert not light(mx.sym.relu(mx.sym.var("x")), x=((1 << 15) + 1,))
    assert light(dense(1 << 9), data=(1, (1 << 9) - 2))
    assert not light(dense(1 << 9), data=(1, 1 << 9))


def test_convolutions_and_what_has_no_shape_are_not_light():
    assert not light(mx.sym.Convolution(mx.sym.var("x"), kernel=(1, 1), num_filter=1), x=(1, 1, 2, 2))
    chosen = mx.sym.contrib.boolean_mask(mx.sym.var("x"), mx.sym.var("chosen"))
    assert not runs_single_threaded(chosen._nodes(), {"x": (2, 2), "chosen": (2,)})


@pytest.fixture
def threads():
    """How many threads share what begins here: three, whatever the machine has."""
    if openmp.library() is None:
        pytest.skip("torch brings no OpenMP along")
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    yield openmp.num_threads
    torch.set_num_threads(before)


class Watch(mx.optimizer.SGD):
    """Notes how many threads may share an update."""

    seen: list = []

    def update_multi_precision(self, index, weight, grad, state):
        self.seen.append(openmp.num_threads())
        super().update_multi_precision(index, weight, grad, state)


class Identity(torch.autograd.Function):
    """Notes how many threads may share a gradient."""

    seen: list = []

    @staticmethod
    def forward(ctx, x):
        Identity.seen.append(openmp.num_threads())
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        Identity.seen.append(openmp.num_threads())
        return gradient


@pytest.fixture
def watched(monkeypatch, threads):
    """FullyConnected goes through `Identity`."""
    from mxnet.ops.nn import dense as module
    real = module.linear
    monkeypatch.setattr(module, "linear", lambda *tensors: Identity.apply(real(*tensors)))
    Identity.seen, Watch.seen = [], []
    return threads


@pytest.mark.parametrize("columns, count", [(8, 1), (1 << 12, 3)])
def test_a_module_trains_small_networks_on_one_thread(watched, columns, count):
    module = mx.mod.Module(mx.sym.SoftmaxOutput(dense(64), mx.sym.var("softmax_label")))
    module.bind([("data", (2, columns))], [("softmax_label", (2,))])
    module.init_params()
    module.init_optimizer(optimizer=Watch(learning_rate=0.1, rescale_grad=0.5))
    batch = mx.io.DataBatch([mx.nd.ones((2, columns))], [mx.nd.zeros((2,))])
    for _ in range(2):
        module.forward_backward(batch)
        module.update()
    assert Identity.seen == [count] * 4 and Watch.seen[1:] == [count] and watched() == 3


@pytest.mark.parametrize("columns, count", [(8, 1), (1 << 13, 3)])
def test_hybridized_networks_train_likewise(watched, columns, count):
    net = mx.gluon.nn.Dense(64, in_units=columns)
    net.initialize()
    net.hybridize()
    trainer = mx.gluon.Trainer(net.collect_params(), Watch(learning_rate=0.1))
    for _ in range(2):
        with mx.autograd.record():
            y = net(mx.nd.ones((2, columns)))
        y.backward()
        trainer.step(2)
    assert Identity.seen == [count] * 4 and Watch.seen[1:] == [count] and watched() == 3


def test_what_follows_a_small_network_may_still_be_shared(watched):
    net = mx.gluon.nn.Dense(4, in_units=8)
    net.initialize()
    net.hybridize()
    with mx.autograd.record():
        y = net(mx.nd.ones((2, 8))).sum()
    y.backward()
    assert Identity.seen == [1, 3]


def test_a_gradient_goes_by_its_own_call(watched):
    net = mx.gluon.nn.Dense(64, in_units=512, flatten=False)
    net.initialize()
    net.hybridize()
    with mx.autograd.record():
        large = net(mx.nd.ones((256, 512)))
    with mx.autograd.record():
        small = net(mx.nd.ones((2, 512)))
    large.backward()
    small.backward()
    assert Identity.seen == [3, 1, 3, 1]
