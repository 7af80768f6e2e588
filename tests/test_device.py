"""Devices under MXNet 2's names, beside MXNet 1's."""
import numpy
import pytest

import mxnet as mx
from mxnet import gluon, np, npx

ONE = mx.cpu(1)


def test_both_names_are_one_class():
    assert mx.Device is mx.Context is mx.device.Device is npx.Device and mx.current_device() == mx.cpu(0)
    with mx.Device("cpu", 1):
        assert mx.current_device() is mx.current_context() and np.ones(2).device == ONE
    assert mx.device.num_gpus() == mx.num_gpus() and mx.device.gpu_memory_info is mx.gpu_memory_info
    assert mx.test_utils.default_device() == mx.test_utils.default_context() == mx.cpu(0)


def test_arrays():
    assert np.ones(2, device=ONE).device == ONE == mx.nd.ones(2, ctx=ONE).device
    x = np.ones(2)
    assert x.to_device(mx.cpu()) is x and x.to_device(ONE).ctx == ONE and x.to_device("cpu(1)").ctx == ONE


@pytest.mark.parametrize("made", [
    lambda **k: np.array([1, 2], **k), lambda **k: np.empty((2,), **k), lambda **k: np.zeros((2,), **k), lambda **k: np.full((2,), 3, **k),
    lambda **k: np.arange(3, **k), lambda **k: np.eye(2, **k), lambda **k: np.linspace(0, 1, 3, **k), lambda **k: np.hanning(4, **k),
    lambda **k: np.zeros_like(np.ones(2, ctx=ONE), **k), lambda **k: np.random.normal(size=(2,), **k),
    lambda **k: np.random.randint(5, size=(2,), **k),
    lambda **k: npx.random.bernoulli(0.5, size=(2,), **k),
])
def test_functions_take_either_name(made):
    assert made(device=ONE).ctx == made(ctx=ONE).ctx == ONE


@pytest.mark.parametrize("call", [lambda: np.zeros((2,), ctx=ONE, device=ONE), lambda: np.array([1], ctx=ONE, device=ONE),
                                  lambda: gluon.nn.Dense(1).initialize(ctx=ONE, device=ONE)])
def test_both_names_at_once_are_refused(call):
    with pytest.raises(TypeError, match=r"^ctx and device are two names of one argument, received both: cpu\(1\) and cpu\(1\)$"):
        call()


def test_parameters_and_blocks(tmp_path):
    net = gluon.nn.Dense(2, in_units=3)
    net.initialize(device=[mx.cpu(0), ONE])
    assert net.weight.data(device=ONE).ctx == net.weight.grad(device=ONE).ctx == ONE
    assert net.weight.list_device() == net.collect_params().list_device() == [mx.cpu(0), ONE]
    path = str(tmp_path / "a.params")
    net.save_parameters(path)
    net.reset_device(ONE)
    assert net.bias.list_ctx() == [ONE]
    net.weight.reset_device(mx.cpu(2))
    assert net.weight.list_ctx() == [mx.cpu(2)]
    other = gluon.nn.Dense(2, in_units=3)
    other.load_parameters(path, device=ONE)
    assert other.weight.list_ctx() == [ONE]
    other.collect_params().initialize(device=mx.cpu(3), force_reinit=True)
    assert other.weight.list_ctx() == [mx.cpu(3)]


def test_default_array_is_of_the_semantics_that_holds():
    assert type(mx.util.default_array([1], device=ONE)) is mx.nd.NDArray
    with mx.np_shape(True), mx.np_array(True):
        made = mx.util.default_array([1, 2], device=ONE, dtype="int32")
    assert type(made) is np.ndarray and made.device == ONE and made.dtype == "int32"


def test_seeds():
    mx.random.seed(3, device=mx.cpu())
    first = np.random.uniform(size=(2,)).asnumpy()
    npx.random.seed(3, device=mx.cpu())
    numpy.testing.assert_array_equal(np.random.uniform(size=(2,)).asnumpy(), first)


def test_the_model_zoo():
    net = gluon.model_zoo.vision.get_model("squeezenet1.0", device=ONE)
    assert net.features is not None
