"""SequentialModule and the modules written in Python."""
import numpy as np
import pytest

import mxnet as mx
from mxnet import MXNetError

X = np.arange(24, dtype="float32").reshape(8, 3) % 7 / 7
Y = np.array([0, 1, 1, 0, 1, 0, 0, 1], "float32")


def body():
    return mx.sym.Activation(mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=4, name="fc1"), act_type="tanh", name="act")


def head(name="fc2"):
    return mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=2, name=name)


def loss(data):
    return mx.sym.SoftmaxOutput(data, name="softmax")


def iterator():
    return mx.io.NDArrayIter(X, Y, 4)


def params():
    rng = np.random.RandomState(0)
    return {name: mx.nd.array(rng.randn(*shape)) for name, shape in
            (("fc1_weight", (4, 3)), ("fc1_bias", (4,)), ("fc2_weight", (2, 4)), ("fc2_bias", (2,)))}


def whole():
    net = loss(mx.sym.FullyConnected(body(), num_hidden=2, name="fc2"))
    module = mx.mod.Module(net)
    module.fit(iterator(), num_epoch=3, arg_params=params(), optimizer_params={"learning_rate": .3})
    return module.get_params()[0]


def test_a_chain_trains_as_the_whole_network():
    chain = mx.mod.SequentialModule()
    chain.add(mx.mod.Module(body(), label_names=[])).add(mx.mod.Module(loss(head())), take_labels=True, auto_wiring=True)
    chain.fit(iterator(), num_epoch=3, arg_params=params(), optimizer_params={"learning_rate": .3}, allow_missing=True)
    expected = whole()
    found, _ = chain.get_params()
    assert sorted(found) == sorted(expected)
    for name in expected:
        np.testing.assert_allclose(found[name].asnumpy(), expected[name].asnumpy(), rtol=1e-4, atol=1e-6)
    assert chain.data_names == ["data"] and chain.output_names == ["softmax_output"]
    assert [d.name for d in chain.label_shapes] == ["softmax_label"]
    assert chain.predict(iterator()).shape == (8, 2)


def test_a_python_loss_ends_a_chain():
    def gradient(scores, labels):
        p = np.exp(scores.asnumpy())
        p /= p.sum(1, keepdims=True)
        p[np.arange(len(p)), labels.asnumpy().astype(int)] -= 1
        return p

    chain = mx.mod.SequentialModule()
    chain.add(mx.mod.Module(body(), label_names=[])).add(mx.mod.Module(head(), label_names=[]), auto_wiring=True)
    chain.add(mx.mod.PythonLossModule(grad_func=gradient), take_labels=True, auto_wiring=True)
    chain.fit(iterator(), num_epoch=3, arg_params=params(), optimizer_params={"learning_rate": .3}, allow_missing=True)
    expected = whole()
    for name, value in chain.get_params()[0].items():
        np.testing.assert_allclose(value.asnumpy(), expected[name].asnumpy(), rtol=1e-4, atol=1e-6)


def test_input_gradients_of_a_chain():
    chain = mx.mod.SequentialModule().add(mx.mod.Module(mx.sym.var("data") * 3, label_names=[]))
    chain.bind([("data", (2, 2))], inputs_need_grad=True)
    chain.init_params()
    chain.forward(mx.io.DataBatch([mx.nd.ones((2, 2))], []))
    chain.backward([mx.nd.ones((2, 2))])
    assert (chain.get_input_grads()[0].asnumpy() == 3).all()


def test_chain_errors():
    with pytest.raises(MXNetError, match="unknown keyword 'takes_labels'; expected one of .*auto_wiring.*take_labels"):
        mx.mod.SequentialModule().add(mx.mod.Module(body(), label_names=[]), takes_labels=True)
    with pytest.raises(MXNetError, match="at least one module expected, received none"):
        mx.mod.SequentialModule().bind([("data", (4, 3))])
    twice = mx.mod.SequentialModule().add(mx.mod.Module(head("a"), label_names=[]))
    twice.add(mx.mod.Module(head("a"), label_names=[]), auto_wiring=True)
    twice.bind([("data", (4, 3))])
    with pytest.raises(MXNetError, match="Duplicated parameter names: 'a_.*' in layer 1"):
        twice.init_params()
    with pytest.raises(MXNetError, match="not bound"):
        mx.mod.SequentialModule().output_shapes  # noqa: B018
