import numpy as np
import pytest

import mxnet as mx

VALUES = mx.nd.array(np.random.RandomState(0).standard_normal((2, 3, 9, 11)))


class Pooled(mx.gluon.HybridBlock):
    def __init__(self, act, **window):
        super().__init__()
        self.act, self.window = act, window

    def hybrid_forward(self, F, x):
        # The convolution is what the passes of images begin with.
        weight = F.ones((3, 3, 1, 1)) * 0.25
        return F.Pooling(self.act(F, F.Convolution(x, weight, kernel=(1, 1), num_filter=3, no_bias=True)), **self.window)


def differentiated(net):
    x = VALUES.copy()
    x.attach_grad()
    with mx.autograd.record():
        out = net(x)
    out.backward(mx.nd.arange(out.size).reshape(out.shape) / out.size)
    return out.asnumpy(), x.grad.asnumpy()


def of_type(name):
    return lambda F, x: F.Activation(x, act_type=name)


TWICE = {"kernel": (2, 2), "stride": (2, 2)}


@pytest.mark.parametrize("act", [of_type(name) for name in ("relu", "sigmoid", "softrelu", "tanh", "log_sigmoid")]
                         + [lambda F, x: F.relu(x), lambda F, x: F.tanh(x), lambda F, x: F.sigmoid(F.relu(x))])
@pytest.mark.parametrize("window", [TWICE, {"kernel": (3, 3), "stride": (2, 2), "pad": (1, 1)}, {"global_pool": True},
                                    {"kernel": (3, 3), "stride": (2, 2), "pooling_convention": "full"}])
def test_activations_are_applied_to_what_is_pooled(act, window):
    net = Pooled(act, pool_type="max", **window)
    expected = differentiated(net)
    net.hybridize()
    for a, b in zip(differentiated(net), expected):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-7)
    assert "activation behind the maximum pooling" in net.explain()


@pytest.mark.parametrize("act, window", [
    (of_type("relu"), {"pool_type": "avg", **TWICE}), (of_type("mish"), {"pool_type": "max", **TWICE}),
    (of_type("softsign"), {"pool_type": "max", **TWICE}),
    (lambda F, x: F.abs(x), {"pool_type": "max", **TWICE}),
    # The last windows of these lie in the padding.
    (of_type("sigmoid"), {"pool_type": "max", "kernel": (2, 2), "stride": (2, 2), "pad": (1, 1), "pooling_convention": "full"}),
    (of_type("sigmoid"), {"pool_type": "max", "kernel": (1, 1), "stride": (4, 4), "pad": (1, 1)})])
def test_other_layers_stay(act, window):
    net = Pooled(act, **window)
    expected = differentiated(net)
    net.hybridize()
    for a, b in zip(differentiated(net), expected):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-7)
    assert "activation behind" not in net.explain()


def test_an_activation_with_other_readers_stays():
    def act(F, x):
        out = F.tanh(x)
        act.kept = out
        return out
    net = Pooled(act, pool_type="max", **TWICE)
    inner = net.hybrid_forward
    net.hybrid_forward = lambda F, x: F.concat(inner(F, x).reshape((2, -1)), act.kept.reshape((2, -1)))
    expected = differentiated(net)
    net.hybridize()
    for a, b in zip(differentiated(net), expected):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-7)
    assert "activation behind" not in net.explain()
