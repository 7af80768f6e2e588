import numpy as np
import pytest

import mxnet as mx
from mxnet import test_utils as tu

X = mx.sym.var("x")



def test_simple_forward():
    assert tu.simple_forward(X * 2, x=np.array([1, 2])).tolist() == [2, 4]
    assert len(tu.simple_forward(mx.sym.Group([X, X + 1]), x=np.array([1]))) == 2


@pytest.mark.parametrize("grad_nodes", [None, ["x"], {"x": "add"}, {"x": "write"}])
def test_numeric_gradient(grad_nodes):
    tu.check_numeric_gradient(mx.sym.exp(X), [np.array([[0.5, 1.0], [-1, 2]])], grad_nodes=grad_nodes, rtol=1e-2, atol=1e-3)
    tu.check_numeric_gradient(mx.sym.sin(X), {"x": mx.nd.array([0.5], dtype="float64")}, dtype=np.float64, rtol=1e-5)


def test_wrong_gradients_are_found():
    # BlockGrad has the gradient 0, whatever its function does.
    with pytest.raises(AssertionError, match="NUMERICAL_x"):
        tu.check_numeric_gradient(mx.sym.BlockGrad(X * 3) + X, [np.array([1.0, 2.0])])


def test_numeric_gradient_with_auxiliary_states():
    bn = mx.sym.BatchNorm(X, fix_gamma=False, name="bn")
    tu.check_numeric_gradient(bn, [np.random.RandomState(0).randn(4, 2), np.array([1.0, 2]), np.array([0.0, 1])], [np.zeros(2), np.ones(2)],
                              rtol=0.16, atol=1e-2)


@pytest.mark.parametrize("kwargs, error, message", [
    ({"dtype": np.int32}, ValueError, "dtype must be float16, float32 or float64"),
    ({"numeric_eps": 1e-7}, ValueError, "too small for float32"), ({"grad_nodes": {"x": "sum"}}, Exception, "sum")])
def test_wrong_arguments(kwargs, error, message):
    with pytest.raises(error, match=message):
        tu.check_numeric_gradient(X * 2, [np.ones(2)], **kwargs)
    with pytest.raises(ValueError, match="keys of the given ones do not match"):
        tu.check_numeric_gradient(X * 2, {"y": np.ones(2)})


def test_symbolic_forward():
    outputs = tu.check_symbolic_forward(X * 2, [np.array([1.0, 2])], [np.array([2.0, 4])])
    assert outputs[0].asnumpy().tolist() == [2, 4]
    tu.check_symbolic_forward(X * 2, {"x": np.array([1, 2], dtype="int32")}, {"_mulscalar0_output": np.array([2, 4])}
                              if (X * 2).list_outputs() == ["_mulscalar0_output"] else [np.array([2, 4])], dtype="asnumpy")
    with pytest.raises(AssertionError, match="EXPECTED_"):
        tu.check_symbolic_forward(X * 2, [np.array([1.0])], [np.array([3.0])])


@pytest.mark.parametrize("grad_req", ["write", "add", "null", ["add"], {"x": "write"}])
@pytest.mark.parametrize("out_grads", [[np.array([1.0, 10])], [mx.nd.array([1, 10])]])
def test_symbolic_backward(grad_req, out_grads):
    gradients = tu.check_symbolic_backward(X * X, [np.array([1.0, 2])], out_grads, [np.array([2.0, 40])], grad_req=grad_req)
    assert list(gradients) == ["x"]
    if grad_req != "null":
        with pytest.raises(AssertionError, match="EXPECTED_x"):
            tu.check_symbolic_backward(X * X, [np.array([1.0, 2])], out_grads, {"x": np.array([2.0, 44])}, grad_req=grad_req)


def test_speed():
    assert 0 < tu.check_speed(X * 2, x=(2, 3), N=2) < 1
    assert 0 < tu.check_speed(X * 2, location={"x": np.ones(3)}, N=2, typ="forward") < 1
    with pytest.raises(ValueError, match="typ must be 'whole' or 'forward', received"):
        tu.check_speed(X, x=(1,), typ="x")


def test_consistency():
    net = mx.sym.FullyConnected(X, num_hidden=3, name="fc")
    configs = [{"ctx": mx.cpu(0), "x": (2, 4), "type_dict": {"x": d}} for d in (np.float16, np.float32, np.float64)]
    for grad_req in ("write", "add", "null"):
        truth = tu.check_consistency(net, configs, grad_req=grad_req)
        assert truth["fc_output"].dtype == np.float64
    with pytest.raises(AssertionError):
        tu.check_consistency([net, mx.sym.FullyConnected(X * 2, num_hidden=3, name="fc")], configs[1:])
    with pytest.raises(ValueError, match="at least two"):
        tu.check_consistency(net, configs[:1])
    with pytest.raises(ValueError, match="same arguments and outputs"):
        tu.check_consistency([net, X], configs[:2])


def test_symbol_structure():
    assert tu.same_symbol_structure(mx.sym.relu(X, name="a"), mx.sym.relu(mx.sym.var("z"), name="b"))
    assert not tu.same_symbol_structure(mx.sym.relu(X), mx.sym.tanh(X))


class WrongSGD(mx.optimizer.SGD):
    def _get_lrs(self, indices):
        return [2 * lr for lr in super()._get_lrs(indices)]


@pytest.mark.parametrize("shape, kwargs", [((3, 2), {}), ((3, 2), {"w_stype": "row_sparse", "g_stype": "row_sparse"}),
                                           ([(2,), (3, 2)], {"ntensors": 2})])
def test_optimizers_are_compared(shape, kwargs):
    np.random.seed(5)  # not one where the sparse arrays happen to be empty
    mx.random.seed(5)
    sgd = mx.optimizer.SGD(momentum=0.9, lazy_update=False)
    tu.compare_optimizer(sgd, mx.optimizer.SGD(momentum=0.9, lazy_update=False), shape, "float32", **kwargs)
    with pytest.raises(AssertionError):
        tu.compare_optimizer(sgd, WrongSGD(momentum=0.9, lazy_update=False, learning_rate=0.1), shape, "float32", **kwargs)
    with pytest.raises(ValueError, match="storage type 'x' is not supported"):
        tu.compare_optimizer(sgd, sgd, (2,), "float32", g_stype="x")


def test_optimizers_of_lists_of_weights():
    shapes = [(3, 4), (2,)]
    tu.compare_optimizer(mx.optimizer.Adam(), mx.optimizer.Adam(use_fused_step=True, aggregate_num=4), shapes, "float32")
    tu.compare_optimizer(mx.optimizer.SGD(momentum=0.9, lazy_update=False), mx.optimizer.SGD(momentum=0.9, lazy_update=False), shapes, "float32",
                         g_stype="row_sparse")
    with pytest.raises(AssertionError):
        tu.compare_optimizer(mx.optimizer.SGD(), mx.optimizer.SGD(learning_rate=0.1), shapes, "float32")
    tu.compare_optimizer_noise_seeded(mx.optimizer.SGLD(), mx.optimizer.SGLD(), shapes, "float32", 7)
