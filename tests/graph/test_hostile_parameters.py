"""Parameters that do not fit a network, from a file or a caller: an MXNetError on every path on which a graph runs.

One-element parameters once let fused kernels read and write beside them, or were spread over all channels by torch.
"""
import numpy as np
import pytest

import mxnet as mx
from mxnet.gluon.cached_op import CachedOp

SHAPE = (2, 16, 24, 24)  # large enough for kernels


def _network():
    out = mx.sym.Convolution(mx.sym.var("data"), num_filter=16, kernel=(1, 1), name="conv")
    return mx.sym.FullyConnected(mx.sym.BatchNorm(out, name="bn", fix_gamma=False), num_hidden=4, name="fc")


@pytest.fixture(scope="module")
def parameters():
    """The shapes of the network's parameters by name, those of the auxiliary states among them."""
    network = _network()
    arguments, _, states = network.infer_shape(data=SHAPE)
    return dict(zip(network.list_arguments() + network.list_auxiliary_states(), arguments + states))


NAMES = ["conv_weight", "conv_bias", "bn_gamma", "bn_beta", "bn_moving_mean", "bn_moving_var", "fc_weight", "fc_bias"]
WRONG = ["one element", "float16", "float64"]


def _wrong(parameters, name, kind):
    arrays = {n: mx.nd.ones(s) for n, s in parameters.items()}
    arrays[name] = mx.nd.ones((1,) * len(parameters[name])) if kind == "one element" else arrays[name].astype(kind)
    return arrays


@pytest.mark.parametrize("kind", WRONG)
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("training, flags", [(False, {}), (True, {}), (False, {"static_alloc": True, "static_shape": True})],
                         ids=["native", "training", "OpenVINO"])
def test_in_a_graph(name, kind, training, flags, parameters):
    network, arrays = _network(), _wrong(parameters, name, kind)
    inputs = [arrays[n] for n in network.list_inputs()]
    with pytest.raises(mx.MXNetError, match=r"Error in operator (conv|bn|fc) \((Convolution|BatchNorm|FullyConnected)\)"):
        if training:
            for array in inputs:
                array.attach_grad()
            with mx.autograd.record():
                CachedOp(network, flags)(*inputs).backward()
        else:
            CachedOp(network, flags)(*inputs).wait_to_read()


@pytest.mark.parametrize("kind", WRONG)
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("training", [False, True])
def test_in_an_executor(name, kind, training, parameters):
    network, arrays = _network(), _wrong(parameters, name, kind)
    with pytest.raises(mx.MXNetError):
        executor = network.bind(mx.cpu(), {n: arrays[n] for n in network.list_arguments()}, grad_req="null",
                                aux_states={n: arrays[n] for n in network.list_auxiliary_states()})
        executor.forward(is_train=training)[0].wait_to_read()


@pytest.fixture
def saved(parameters, tmp_path):
    """Saves the network with one wrong parameter; returns the prefix."""
    def save(name):
        network = _network()
        states = network.list_auxiliary_states()
        arrays = {("aux:" if n in states else "arg:") + n: a for n, a in _wrong(parameters, name, "one element").items() if n != "data"}
        network.save(f"{tmp_path}/net-symbol.json")
        mx.nd.save(f"{tmp_path}/net-0000.params", arrays)
        return f"{tmp_path}/net"
    return save


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("training", [False, True])
def test_from_a_file_in_a_module(name, training, saved):
    module = mx.mod.Module.load(saved(name), 0, label_names=None)
    with pytest.raises(mx.MXNetError, match=rf"{name}: the value has shape \(1.*\), the bound array"):
        module.bind([("data", SHAPE)], for_training=training)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("training", [False, True])
def test_from_a_file_in_a_block(name, training, saved):
    prefix = saved(name)
    block = mx.gluon.SymbolBlock.imports(f"{prefix}-symbol.json", ["data"], f"{prefix}-0000.params")
    block.hybridize(static_alloc=not training, static_shape=not training)
    with mx.autograd.record(training), pytest.raises(mx.MXNetError, match=rf"{name.split('_', 1)[1]}: expected shape .* received \(1"):
        block(mx.nd.ones(SHAPE))


@pytest.mark.parametrize("operator, attributes, shapes", [
    ("BatchNorm", {"fix_gamma": False}, {"data": (2, 16, 24, 24), "gamma": (16,), "beta": (16,), "moving_mean": (16,), "moving_var": (16,)}),
    ("Convolution", {"num_filter": 16, "kernel": (1, 1)}, {"data": (2, 16, 24, 24), "weight": (16, 16, 1, 1), "bias": (16,)}),
    ("FullyConnected", {"num_hidden": 4}, {"data": (2, 3), "weight": (4, 3), "bias": (4,)})])
@pytest.mark.parametrize("kind", WRONG)
def test_in_a_call(operator, attributes, shapes, kind):
    for name in list(shapes)[1:]:
        arrays = _wrong(shapes, name, kind)
        for training in (False, True):
            with mx.autograd.record(training), pytest.raises(mx.MXNetError, match=operator):
                getattr(mx.nd, operator)(*arrays.values(), **attributes)


def test_a_graph_asks_once_for_each_set_of_shapes_and_again_when_weights_change(monkeypatch):
    from mxnet.symbol import inference
    asked, check = [], inference.check_shapes
    monkeypatch.setattr(inference, "check_shapes", lambda *a: asked.append(1) or check(*a))
    net = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=4, name="fc")
    call, weight, bias = CachedOp(net), mx.nd.ones((4, 3)), mx.nd.ones((4,))
    for batch in (2, 2, 5, 2, 5):
        assert call(mx.nd.ones((batch, 3)), weight, bias).shape == (batch, 4)
    assert len(asked) == 2
    other = mx.nd.ones((4, 3))  # of the same shape: nothing to ask
    call(mx.nd.ones((2, 3)), other, bias)
    assert len(asked) == 2
    for _ in range(2):
        with pytest.raises(mx.MXNetError, match=r"Error in operator fc .*FullyConnected's bias: expected shape \(4,\), received \(1,\)"):
            call(mx.nd.ones((2, 3)), weight, mx.nd.ones((1,)))
    assert len(asked) == 4
    np.testing.assert_array_equal(call(mx.nd.ones((2, 3)), weight, bias).asnumpy(), np.full((2, 4), 4, "float32"))
