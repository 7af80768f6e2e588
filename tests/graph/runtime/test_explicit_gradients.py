import numpy as np
import pytest
import torch

import mxnet as mx
from mxnet import kernels
from mxnet.gluon import nn
from mxnet.graph.runtime import explicit_gradients
from mxnet.graph.runtime.session import Session
from mxnet.ops import differentiation
from mxnet.ops.nn.training_layers import DenseLayers

backward_of_torch = differentiation.backward
pytestmark = pytest.mark.skipif(kernels.load("gemm/mlp_training") is None, reason="no C++ compiler")


def classifier(head="SoftmaxOutput"):
    """Return a small network with an output layer."""
    x = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=5, name="first")
    x = mx.sym.FullyConnected(mx.sym.Activation(x, act_type="relu"), num_hidden=3, name="second")
    return getattr(mx.sym, head)(x, mx.sym.reshape(mx.sym.var("label"), (-1,) if head == "SoftmaxOutput" else (4, 3)), name="out")


def bound(symbol, label_shape=(4, 1), grad_req="write", **shapes):
    """Return an executor with values of its own in all arrays, and gradients for all but the label, as a Module has them."""
    if isinstance(grad_req, str):
        grad_req = {name: grad_req for name in symbol.list_arguments() if name != "label"}
    executor = symbol.simple_bind(mx.cpu(), grad_req=grad_req, data=(4, 6), label=label_shape, **shapes)
    for i, (name, array) in enumerate(executor.arg_dict.items()):
        array[:] = mx.nd.array(np.sin(np.arange(array.size) + i).reshape(array.shape)) if name != "label" else 1
    return executor


def step(executor, *args):
    executor.forward(is_train=True)
    executor.backward(*args)
    return [executor.outputs[0].asnumpy(), *[None if g is None else g.asnumpy() for g in executor.grad_arrays]]


def expected(executor, monkeypatch, *args):
    """Return the same by torch's autograd."""
    with monkeypatch.context() as patch:
        patch.setattr(explicit_gradients.ExplicitGraph, "forward", lambda self, inputs, dtype=None: None)
        return step(executor, *args)


def check(found, right):
    for a, b in zip(found, right):
        assert (a is None) is (b is None)
        if a is not None:
            np.testing.assert_allclose(a, b, rtol=2e-5, atol=1e-6)


@pytest.fixture
def no_autograd(monkeypatch):
    def fail(*args, **kwargs):
        raise AssertionError("torch's autograd was used")

    monkeypatch.setattr(differentiation, "backward", fail)


@pytest.mark.parametrize("head, label", [("SoftmaxOutput", (4, 1)), ("LinearRegressionOutput", (4, 3)), ("MAERegressionOutput", (12,)),
                                         ("LogisticRegressionOutput", (4, 3))])
def test_output_layers(head, label, monkeypatch):
    right = expected(bound(classifier(head), label), monkeypatch)
    monkeypatch.setattr(differentiation, "backward", None)  # it is not called
    check(step(bound(classifier(head), label)), right)


def test_gradients_of_the_data_and_of_a_layer_read_twice(no_autograd):
    shared, weight = mx.sym.var("data"), mx.sym.var("shared_weight")
    first = mx.sym.FullyConnected(shared, weight, num_hidden=6, no_bias=True)
    second = mx.sym.FullyConnected(mx.sym.tanh(first), weight, num_hidden=6, no_bias=True)
    symbol = mx.sym.LinearRegressionOutput(mx.sym.tanh(second), mx.sym.var("label"))
    executor = bound(symbol, (4, 6))
    found = step(executor)
    data, w = (executor.arg_dict[name]._data.clone().double().requires_grad_() for name in ("data", "shared_weight"))
    out = torch.tanh(torch.tanh(data @ w.t()) @ w.t())
    grads = torch.autograd.grad(out, [data, w], (out - 1).detach() / 6)
    names = symbol.list_arguments()
    for name, gradient in zip(("data", "shared_weight"), grads):
        np.testing.assert_allclose(found[1 + names.index(name)], gradient, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("grad_req", ["add", {"first_weight": "add", "second_weight": "write", "data": "write"}])
def test_requests(grad_req, no_autograd):
    once, twice, names = bound(classifier()), bound(classifier(), grad_req=grad_req), classifier().list_arguments()
    right = dict(zip(names, step(once)[1:]))
    step(twice)
    found = dict(zip(names, step(twice)[1:]))
    for name, array in found.items():
        req = "null" if name == "label" else grad_req if isinstance(grad_req, str) else grad_req.get(name, "null")
        if req == "null":
            assert array is None
        else:
            np.testing.assert_allclose(array, right[name] * (2 if req == "add" else 1), rtol=1e-5, atol=1e-7)


def test_an_output_that_is_no_loss_needs_its_gradient(no_autograd):
    symbol = mx.sym.FullyConnected(mx.sym.Activation(mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=5), act_type="relu"), num_hidden=3)
    executor = symbol.simple_bind(mx.cpu(), data=(4, 6))
    for array in executor.arg_arrays:
        array[:] = 0.5
    executor.forward(is_train=True)
    with pytest.raises(mx.MXNetError, match="must be given in out_grads"):
        executor.backward()
    executor.forward(is_train=True)
    with pytest.raises(mx.MXNetError, match=r"has shape \(2, 3\), the output \(4, 3\)"):
        executor.backward(mx.nd.ones((2, 3)))
    executor.forward(is_train=True)
    executor.backward(mx.nd.ones((4, 3)))
    assert executor.grad_dict["data"].asnumpy().tolist() == [[3 * 5 * 0.25] * 6] * 4


def test_backward_again_and_after_inference_runs_the_graph_again(no_autograd):
    executor = bound(classifier())
    right = step(executor)
    executor.grad_dict["first_weight"][:] = 0
    executor.backward()
    check([None if g is None else g.asnumpy() for g in executor.grad_arrays], right[1:])
    executor.grad_dict["first_weight"][:] = 0
    executor.forward(is_train=False)
    executor.backward()
    check([None if g is None else g.asnumpy() for g in executor.grad_arrays], right[1:])


def test_results_and_gradients_are_owned(no_autograd):
    executor = bound(classifier())
    step(executor)
    kept = [executor.outputs[0]._data, *[g._data for g in executor.grad_arrays if g is not None]]
    assert len({t.data_ptr() for t in kept}) == len(kept) == 6 and all(t.is_contiguous() for t in kept)


def test_gradients_stay_in_their_memory_unless_something_else_uses_it(no_autograd):
    executor = bound(classifier())
    step(executor)
    gradients = {name: executor.grad_dict[name] for name in ("first_weight", "second_bias")}
    places = {name: array._data.data_ptr() for name, array in gradients.items()}
    shared = gradients["second_bias"].detach()
    before = shared.asnumpy()
    right = step(executor)
    assert gradients["first_weight"]._data.data_ptr() == places["first_weight"]
    check(step(executor), right)
    assert shared.asnumpy().tolist() == before.tolist()  # the same step
    executor.arg_dict["data"][:] = 1
    step(executor)
    np.testing.assert_array_equal(shared.asnumpy(), gradients["second_bias"].asnumpy())  # as in MXNet it sees the new gradient


def test_what_needs_torchs_autograd_uses_it(monkeypatch):
    calls = []
    backward = differentiation.backward
    monkeypatch.setattr(differentiation, "backward", lambda *args, **kwargs: (calls.append(1), backward(*args, **kwargs))[1])
    data = mx.sym.var("data")
    step(bound(mx.sym.SoftmaxOutput(mx.sym.FullyConnected(mx.sym.exp(data), num_hidden=3), mx.sym.var("label")), (4,)))  # the gradient of exp
    monitored = bound(classifier())
    monitored.set_monitor_callback(lambda name, array: None)
    step(monitored)
    step(bound(mx.sym.SoftmaxOutput(mx.sym.FullyConnected(mx.sym.Dropout(data, p=0.5), num_hidden=3), mx.sym.var("label")), (4,)))
    assert len(calls) == 3


def test_what_a_kernel_does_not_take_is_tried_once(monkeypatch):
    calls, saving = [], DenseLayers.saving
    monkeypatch.setattr(DenseLayers, "saving", lambda self, *args: calls.append(1) or saving(self, *args))
    x = mx.sym.FullyConnected(mx.sym.Activation(mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=2000), act_type="relu"), num_hidden=200)
    executor = bound(mx.sym.SoftmaxOutput(x, mx.sym.var("label")), (4,))
    for _ in range(3):
        step(executor)
    assert calls == [1]


def test_wrong_shapes_get_the_usual_error():
    executor = bound(classifier())
    executor.arg_dict["second_weight"]._data = torch.zeros(3, 7)
    with pytest.raises(mx.MXNetError, match="second"):
        executor.forward(is_train=True)


def residual_network(size=16):
    """Return a hybridized network of convolutions and batch norms with a shortcut, a loss and a batch; its weights are the same at each call."""
    class Block(mx.gluon.HybridBlock):
        def __init__(self):
            super().__init__()
            self.first, self.norm = nn.Conv2D(16, 3, padding=1, in_channels=16), nn.BatchNorm(in_channels=16)
            self.last, self.second = nn.Conv2D(16, 3, padding=1, use_bias=False, in_channels=16), nn.BatchNorm(in_channels=16)

        def hybrid_forward(self, F, x):
            return F.relu(x + self.second(self.last(F.relu(self.norm(self.first(x))))))

    net = nn.HybridSequential()
    net.add(Block(), Block(), nn.GlobalAvgPool2D(), nn.Dense(6, activation="relu", in_units=16), nn.Dense(5, in_units=6))
    net.initialize()
    for i, parameter in enumerate(net.collect_params().values()):
        if "running" not in parameter.name:
            parameter.set_data(mx.nd.array(np.sin(np.arange(np.prod(parameter.shape)) + i).reshape(parameter.shape) / 4))
    net.hybridize()
    data = mx.nd.array(np.cos(np.arange(8 * 16 * size * size)).reshape(8, 16, size, size))
    loss = mx.gluon.loss.SoftmaxCrossEntropyLoss()
    loss.hybridize()

    def forward():
        with mx.autograd.record():
            return loss(net(data), mx.nd.arange(8) % 5)
    forward().backward()  # before it, weights are not in the order that the kernels read
    return net, forward


def trained(size=16, retained=False):
    """Return the loss, the gradients and the moving averages of a step of `residual_network`."""
    net, forward = residual_network(size)
    out = forward()
    out.backward(retain_graph=retained)
    if retained:
        out.backward()
    parameters = net.collect_params().values()
    return [out.asnumpy(), *[(p.data() if p.grad_req == "null" else p.grad()).asnumpy() for p in parameters]]


def trained_by_torch(monkeypatch, size=16):
    with monkeypatch.context() as patch:
        patch.setattr(explicit_gradients.ExplicitGraph, "forward", lambda self, inputs, dtype=None: None)
        return trained(size)


def test_convolutions_and_batch_norms(monkeypatch, no_autograd):
    found = trained()
    with monkeypatch.context() as patch:
        patch.setattr(differentiation, "backward", backward_of_torch)
        right = trained_by_torch(patch)
    check(found, right)
    assert np.abs(right[1]).max() > 1e-3 and np.abs(right[-3]).max() > 0


def test_a_second_backward_of_convolutions(no_autograd):
    check(trained(retained=True), trained())


def test_layers_that_no_kernel_takes_are_recorded_one_by_one(monkeypatch):
    right = trained_by_torch(monkeypatch, 4)  # of 2,048 elements, less than a batch norm's kernel takes
    calls, of = [], explicit_gradients.RecordedByTorch.of
    monkeypatch.setattr(explicit_gradients.RecordedByTorch, "of", lambda step, arguments: calls.append(step.function) or of(step, arguments))
    check(trained(4), right)
    assert len(calls) > 4


def test_moving_averages_are_written_once(monkeypatch):
    right = trained_by_torch(monkeypatch)
    # The fully connected layer refuses after all batch norms have run.
    with monkeypatch.context() as patch:
        patch.setattr(DenseLayers, "saving", lambda *args: None)
        check(trained(), right)

    def fails(*args):
        raise RuntimeError("no memory")
    with monkeypatch.context() as patch:
        patch.setattr(DenseLayers, "saving", fails)
        check(trained(), right)


@pytest.mark.parametrize("create_graph", [False, True])
def test_grad_of_convolutions(create_graph, monkeypatch):
    right = trained_by_torch(monkeypatch)
    net, forward = residual_network()
    parameters = list(net.collect_params().values())
    variables = [p.data() for p in parameters if p.grad_req != "null"]
    found = iter(mx.autograd.grad(forward(), variables, create_graph=create_graph, retain_graph=True))
    check([p.data().asnumpy() if p.grad_req == "null" else next(found).asnumpy() for p in parameters], right[1:])


def test_grad_runs_the_graph_once(monkeypatch):
    net, forward = residual_network()
    runs, run = [], Session.run
    monkeypatch.setattr(Session, "run", lambda self, *args, **kwargs: runs.append(1) or run(self, *args, **kwargs))
    mx.autograd.grad(forward(), [net[0].first.weight.data()])
    assert not runs


def test_backward_releases_what_each_layer_has_saved(monkeypatch):
    saved, backward = [], explicit_gradients.ExplicitGraph.backward

    def watched(self, recorded, *args):
        backward(self, recorded, *args)
        saved.append([s is not None for s in recorded.saved])
    monkeypatch.setattr(explicit_gradients.ExplicitGraph, "backward", watched)
    trained(retained=True)
    (head, body), (head_again, body_again) = saved[2:4], saved[4:]
    assert all(head) and sum(body) > 8
    assert not any(head_again) and not any(body_again)


def test_intermediate_values_that_no_gradient_reads_are_released(monkeypatch):
    runs, run = [], explicit_gradients.ExplicitGraph.forward

    def watched(self, *args):
        results = run(self, *args)
        runs.append([value.shape for value in results[1].values[self.inputs:] if value is not None])
        return results
    monkeypatch.setattr(explicit_gradients.ExplicitGraph, "forward", watched)
    trained()
    assert runs[-2] == [(8, 5)]  # of the network; the last one is the loss


def test_a_graph_of_many_other_operators_is_left_to_torch(monkeypatch):
    calls = []
    backward = differentiation.backward
    monkeypatch.setattr(differentiation, "backward", lambda *args, **kwargs: (calls.append(1), backward(*args, **kwargs))[1])
    x = mx.sym.FullyConnected(mx.sym.exp(mx.sym.sin(mx.sym.var("data"))), num_hidden=3)
    step(bound(mx.sym.SoftmaxOutput(x, mx.sym.var("label")), (4,)))
    assert calls == [1]


def convolutions():
    """Return an executor of two convolutions with batch norms, whose arrays have values of their own."""
    x = mx.sym.var("data")
    for i in "12":
        x = mx.sym.Convolution(x, kernel=(3, 3), pad=(1, 1), num_filter=16, name="convolution" + i)
        x = mx.sym.BatchNorm(x, fix_gamma=False, name="norm" + i)
    executor = x.simple_bind(mx.cpu(), data=(8, 16, 16, 16))
    for i, array in enumerate([*executor.arg_arrays, *executor.aux_arrays]):
        array[:] = mx.nd.array(1 + np.sin(np.arange(array.size) + i).reshape(array.shape) / 4)
    return executor


def test_backward_in_inference_mode_reads_moving_averages(monkeypatch):
    def gradients():
        executor = convolutions()
        step(executor, mx.nd.ones((8, 16, 16, 16)))
        executor.forward(is_train=False)
        before = [array.asnumpy() for array in executor.aux_arrays]
        executor.backward(mx.nd.ones((8, 16, 16, 16)), is_train=False)
        for array, values in zip(executor.aux_arrays, before):
            np.testing.assert_array_equal(array.asnumpy(), values)
        return [g.asnumpy() for g in executor.grad_arrays]
    found = gradients()
    with monkeypatch.context() as patch:
        patch.setattr(explicit_gradients.ExplicitGraph, "forward", lambda self, inputs, dtype=None: None)
        check(found, gradients())


def test_a_result_of_another_type_is_left_to_torch_and_writes_moving_averages_once():
    net = nn.HybridSequential()
    for _ in range(2):
        net.add(nn.Conv2D(16, 3, padding=1, in_channels=16), nn.BatchNorm(in_channels=16))
    net.add(nn.HybridLambda(lambda F, x: F.Cast(x, "float64")))
    net.initialize()
    net.hybridize()
    for _ in range(3):
        net[1].running_var.set_data(mx.nd.ones(16))
        with mx.autograd.record():
            out = net(mx.nd.zeros((8, 16, 16, 16)))
        assert out.dtype == np.float64
        np.testing.assert_allclose(net[1].running_var.data().asnumpy(), 0.9, rtol=1e-6)


def test_outputs_without_a_gradient_need_none():
    x = mx.sym.Activation(mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=16), act_type="relu")
    scores = mx.sym.FullyConnected(x, num_hidden=5)
    executor = mx.sym.Group([mx.sym.SoftmaxOutput(scores, mx.sym.var("label")), mx.sym.argmax(scores, axis=1)]).simple_bind(
        mx.cpu(), data=(8, 10), label=(8,))
    for _ in range(2):
        executor.forward(is_train=True)
        executor.backward()
    assert executor.outputs[1].shape == (8,)


def test_what_computed_gradients_depend_on_can_be_differentiated_again():
    net = nn.HybridSequential()
    net.add(nn.Dense(4, activation="relu", in_units=6), nn.Dense(1, in_units=4))
    net.initialize(mx.init.One())
    net.hybridize()
    weight = net[1].weight.data()
    with mx.autograd.record():
        out = net(mx.nd.ones((3, 6)))
        total = (out * out).sum()
        gradient, = mx.autograd.grad(total, [weight], create_graph=True)
        norm = (gradient * gradient).sum()
    norm.backward()
    total.backward()
    # Hidden values are 6, results 24, of 3 samples.
    assert net[1].weight.grad().asnumpy().tolist() == [[2 * 24 * 6 * 3] * 4]


def test_a_backward_after_one_that_failed_says_that_its_values_are_freed(monkeypatch):
    out = residual_network()[1]()
    add = explicit_gradients.Gradients.add

    def fails(self, place, gradient, own):
        if own and gradient.dim() == 4:
            raise KeyboardInterrupt
        add(self, place, gradient, own)
    with monkeypatch.context() as patch:
        patch.setattr(explicit_gradients.Gradients, "add", fails)
        with pytest.raises(KeyboardInterrupt):
            out.backward()
    with pytest.raises(mx.MXNetError, match="differentiated before and has been freed"):
        out.backward()


def test_a_gradient_of_some_rows_is_left_to_torch():
    x = mx.sym.Embedding(mx.sym.var("data"), input_dim=9, output_dim=4, sparse_grad=True, name="table")
    x = mx.sym.Activation(mx.sym.FullyConnected(x, num_hidden=5), act_type="relu")
    executor = mx.sym.SoftmaxOutput(mx.sym.FullyConnected(x, num_hidden=3), mx.sym.var("label")).simple_bind(
        mx.cpu(), grad_req={"data": "null", "label": "null", "table_weight": "write", "fullyconnected0_weight": "write"}, data=(2, 1), label=(2,))
    for array in executor.arg_arrays:
        array[:] = mx.nd.array(np.sin(np.arange(array.size)).reshape(array.shape))
    executor.arg_dict["data"][:] = mx.nd.array([[2], [7]])
    for _ in range(2):
        executor.forward(is_train=True)
        executor.backward()
        gradient = executor.grad_dict["table_weight"]
        assert gradient.stype == "row_sparse" and gradient.indices.asnumpy().tolist() == [2, 7]


def test_a_head_gradient_that_is_refused_does_not_cost_the_run():
    executor = convolutions()
    executor.forward(is_train=True)
    before = [array.asnumpy() for array in executor.aux_arrays]
    with pytest.raises(mx.MXNetError, match="must be given in out_grads"):
        executor.backward()
    executor.backward(mx.nd.ones((8, 16, 16, 16)))
    for array, values in zip(executor.aux_arrays, before):
        np.testing.assert_array_equal(array.asnumpy(), values)


def test_values_behind_a_blocked_gradient_need_no_record(no_autograd):
    scores = mx.sym.FullyConnected(mx.sym.Activation(mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=5), act_type="relu"), num_hidden=3)
    symbol = mx.sym.Group([mx.sym.SoftmaxOutput(scores, mx.sym.var("label")), mx.sym.BlockGrad(scores)])
    executor = bound(symbol, (4,))
    right = step(bound(mx.sym.SoftmaxOutput(scores, mx.sym.var("label")), (4,)))
    check(step(executor), right)
