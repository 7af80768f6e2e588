import numpy as np
import pytest

import mxnet as mx
from mxnet.base import MXNetError
from mxnet.serve.network import Network
from mxnet.serve.tensors import TensorSpec

FLOAT = np.dtype(np.float32)


def network(out, parameters=None, *inputs):
    made = Network(out, parameters or {}, [TensorSpec(name, FLOAT, shape) for name, shape in inputs], mx.cpu())
    made.warm_up()
    return made


def test_rows_of_several_requests_and_padding():
    net = network(mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=1, no_bias=True, name="fc"), {"fc_weight": mx.nd.ones((1, 2))},
                  ("data", (-1, 2)))
    assert net.batched and net.outputs == [TensorSpec("fc_output", FLOAT, (-1, 1))]
    requests = [[np.array([[1, 2], [3, 4]], np.float32)], [np.array([[5, 6]], np.float32)]]
    assert [out.tolist() for out in net.run_together(requests, 3, 4)] == [[[3], [7], [11]]]
    assert net.run_together(requests[1:], 1, 4)[0].tolist() == [[11]]


@pytest.mark.parametrize("function", [
    lambda data: mx.sym.softmax(data, axis=0), lambda data: mx.sym.sum(data, axis=0), lambda data: mx.sym.reshape(data, shape=(1, -1)),
    lambda data: mx.sym.broadcast_add(data, mx.sym.random.uniform(shape=(1, 2))),
], ids=["softmax", "sum", "reshape", "random"])
@pytest.mark.filterwarnings("ignore:backend 'openvino' gives other results than 'native':UserWarning")  # it draws other numbers
def test_rows_that_depend_on_one_another_are_not_put_together(function):
    net = network(function(mx.sym.var("data")), None, ("data", (-1, 2)))
    assert not net.batched and net.inputs[0].shape == (1, 2)
    net.run([np.ones((1, 2), np.float32)])


def test_a_first_size_that_is_given_stays():
    net = network(mx.sym.var("data") * 2, None, ("data", (3, 2)))
    assert not net.batched and net.inputs[0].shape == (3, 2) and net.outputs[0].shape == (3, 2)


def test_a_first_size_in_a_file_may_be_its_batch_or_not():
    spec, data = [TensorSpec("data", FLOAT, (-1, 2))], mx.sym.var("data")
    for out, expected in ((data * 2, -1), (mx.sym.sum(data, axis=0), 3), (mx.sym.broadcast_add(data, mx.sym.ones((3, 2))), 3)):
        net = Network(out, {}, spec, mx.cpu(), [3])
        net.warm_up()
        assert net.inputs[0].shape == (expected, 2) and net.batched == (expected == -1)


def test_labels_of_training_are_made_up():
    out = mx.sym.SoftmaxOutput(mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=2, name="fc"), name="softmax")
    net = network(out, {"fc_weight": mx.nd.zeros((2, 3)), "fc_bias": mx.nd.zeros((2,))}, ("data", (-1, 3)))
    assert net.batched and net.run([np.ones((2, 3), np.float32)])[0].tolist() == [[0.5, 0.5]] * 2


def test_free_sizes():
    net = network(mx.sym.sum(mx.sym.var("data"), axis=1), None, ("data", (-1, -1)))
    assert net.batched and net.outputs == [TensorSpec("sum0_output", FLOAT, (-1,))] or net.outputs[0].shape == (-1,)
    for size in range(1, 300):  # more than are remembered
        assert net.run([np.ones((1, size), np.float32)])[0].tolist() == [size]
    assert len(net._shapes) < 260


def test_what_is_missing_is_named():
    out = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=2, name="fc")
    with pytest.raises(MXNetError, match=r"does not say of which shape its input 'data' is.*--input data="):
        Network(out, {"fc_weight": mx.nd.ones((2, 3)), "fc_bias": mx.nd.ones((2,))}, None, mx.cpu())
    with pytest.raises(MXNetError, match=r"the parameters \['fc_bias'\] are neither in the files nor declared"):
        network(out, {"fc_weight": mx.nd.ones((2, 3))}, ("data", (-1, 3)))
    with pytest.raises(MXNetError, match=r"no input 'x'; its variables without parameters are \['data'\]"):
        network(mx.sym.var("data") * 2, None, ("x", (-1, 3)))
    with pytest.raises(MXNetError, match=r"does not run on inputs of the shapes \[\[-1, 5\]\]"):
        network(out, {"fc_weight": mx.nd.ones((2, 3)), "fc_bias": mx.nd.ones((2,))}, ("data", (-1, 5)))


def test_shapes_that_variables_bring_along():
    assert Network(mx.sym.var("data", shape=(4, 3)) * 2, {}, None, mx.cpu()).inputs == [TensorSpec("data", FLOAT, (-1, 3))]
