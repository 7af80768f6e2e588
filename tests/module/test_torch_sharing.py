import numpy as np
import pytest
import torch

import mxnet as mx


def module(context=None):
    net = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=3, name="fc")
    found = mx.mod.Module(mx.sym.SoftmaxOutput(mx.sym.BatchNorm(net, name="bn"), name="softmax"), context=context or mx.cpu())
    found.bind([("data", (4, 2))], [("softmax_label", (4,))])
    mx.random.seed(2)
    found.init_params(mx.init.Xavier())
    return found


X = torch.tensor([[1.0, 2], [3, -1], [0, 1], [2, 2]])


def test_training_in_torch_is_seen_by_the_module():
    mine = module()
    net = mine.as_torch()
    assert list(net.state_dict()) == ["fc_weight", "fc_bias", "bn_gamma", "bn_beta", "bn_moving_mean", "bn_moving_var"]
    optimizer = torch.optim.SGD([p for p in net.parameters()], lr=0.1)
    labels = torch.tensor([0.0, 1, 2, 1])
    before = {name: value.asnumpy() for name, value in mine.get_params()[0].items()}
    for _ in range(2):
        optimizer.zero_grad()
        net(X, labels).sum().backward()  # SoftmaxOutput has a gradient of its own
        optimizer.step()
    arguments, aux = mine.get_params()
    assert abs(arguments["fc_weight"].asnumpy() - before["fc_weight"]).max() > 1e-3
    assert np.array_equal(arguments["fc_weight"].asnumpy(), net.fc_weight.detach().numpy())
    assert np.array_equal(aux["bn_moving_mean"].asnumpy(), net.bn_moving_mean.numpy()) and net.bn_moving_mean.any()
    net.eval()
    mine.forward(mx.io.DataBatch([mx.nd.from_torch(X)]), is_train=False)
    with torch.no_grad():
        np.testing.assert_allclose(net(X).numpy(), mine.get_outputs()[0].asnumpy(), atol=1e-6)
        assert net(torch.cat([X, X])).shape == (8, 3)


def test_training_of_the_module_is_seen_in_torch():
    mine = module()
    net = mine.as_torch()
    mine.init_optimizer(optimizer_params={"learning_rate": 0.5})
    before = net.fc_weight.detach().clone()
    mine.forward_backward(mx.io.DataBatch([mx.nd.from_torch(X)], [mx.nd.array([0, 1, 2, 1])]))
    mine.update()
    assert abs(net.fc_weight.detach() - before).max() > 1e-3


def test_a_label_is_missed_only_by_gradients():
    net = module().as_torch().eval()
    with pytest.raises(mx.MXNetError, match="the gradient depends on the label `softmax_label`, which was not given"):
        net(X)
    program = torch.export.export(net, (X,)).module()
    with torch.no_grad():
        assert torch.allclose(program(X), net(X), atol=1e-6)


def test_what_does_not_fit_is_refused():
    with pytest.raises(mx.MXNetError, match="a module on one device and without states expected, this one has 2 devices"):
        module([mx.cpu(0), mx.cpu(1)]).as_torch()
    with pytest.raises(mx.MXNetError, match="was bound with fc_weight as torch.float32 on cpu, and keeps that"):
        module().as_torch().double()
