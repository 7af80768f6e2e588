"""SVRGModule: corrected gradients and training with them."""
import numpy as np
import pytest

import mxnet as mx
from mxnet import MXNetError
from mxnet.contrib.svrg_optimization.svrg_module import SVRGModule

X = np.random.RandomState(0).randint(1, 5, (48, 2)).astype("float32")
Y = X @ np.array([1., 2.], "float32")


def made(context=mx.cpu(), **kwargs):
    data = mx.io.NDArrayIter(X, Y, 16, label_name="target_label")
    net = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=1, no_bias=True, name="fc")
    net = mx.sym.LinearRegressionOutput(net, mx.sym.var("target_label"), name="out")
    return SVRGModule(net, label_names=["target_label"], context=context, **kwargs), data


def prepared(context=mx.cpu(), kvstore="local"):
    module, data = made(context, update_freq=1)
    module.bind(data.provide_data, data.provide_label)
    module.init_params(mx.init.One())
    module.init_optimizer(kvstore=kvstore, optimizer_params={"learning_rate": .01})
    return module, data


def gradient(x, y, w):
    return ((x @ w - y)[:, None] * x).sum(0)


@pytest.mark.parametrize("context", [mx.cpu(), [mx.cpu(0), mx.cpu(1)]])
def test_the_full_gradient_is_the_mean_over_batches(context):
    module, data = prepared(context)
    module.update_full_grads(data)
    expected = gradient(X, Y, np.ones(2)) / 3 / len(module._context)
    for full in module._param_dict:
        np.testing.assert_allclose(full["fc_weight"].asnumpy()[0], expected, rtol=1e-4)
    module.update_full_grads(data)  # starts from zero again
    np.testing.assert_allclose(module._param_dict[0]["fc_weight"].asnumpy()[0], expected, rtol=1e-4)


def test_gradients_are_corrected():
    module, data = prepared()
    module.update_full_grads(data)
    moved = np.array([1.5, .5], "float32")
    module.set_params({"fc_weight": mx.nd.array(moved[None])}, {})
    data.reset()
    batch = next(data)
    module.forward_backward(batch)
    module.update()
    x, y, ones = X[:16], Y[:16], np.ones(2)
    corrected = gradient(x, y, moved) - gradient(x, y, ones) + gradient(X, Y, ones) / 3
    np.testing.assert_allclose(module.get_params()[0]["fc_weight"].asnumpy()[0], moved - .01 / 16 * corrected, rtol=1e-4)


@pytest.mark.parametrize("context", [mx.cpu(), [mx.cpu(0), mx.cpu(1)]])
def test_fit_converges(context):
    module, data = made(context, update_freq=2)
    module.fit(data, eval_metric="mse", optimizer_params={"learning_rate": .05}, num_epoch=25, initializer=mx.init.One())
    np.testing.assert_allclose(module.get_params()[0]["fc_weight"].asnumpy(), [[1, 2]], atol=1e-2)


def test_errors():
    with pytest.raises(TypeError, match="must be an integer, received None"):
        made()
    with pytest.raises(ValueError, match="update_freq must be at least 1, received 0"):
        made(update_freq=0)
    module, data = prepared()
    module.forward_backward(next(data))
    with pytest.raises(MXNetError, match=r"call update_full_grads\(train_data\) first"):
        module.update()


@pytest.mark.parametrize("update_freq, resets", [(2, 5), (1, 6)])
def test_data_is_reset_before_an_epoch_and_a_full_gradient(update_freq, resets):
    module, data = made(update_freq=update_freq)
    counted = []
    data.reset = lambda reset=data.reset: (counted.append(1), reset())
    module.fit(data, eval_metric="mse", num_epoch=3)  # each reset shuffles, so that one more would change a program's numbers
    assert len(counted) == resets


def test_an_empty_iterator_ends_fit_as_in_mxnet():
    module, data = made(update_freq=1)
    data.next = lambda: next(iter(()))
    with pytest.raises(StopIteration, match="update_full_grads: the iterator gave no batch"):
        module.fit(data, num_epoch=1)
