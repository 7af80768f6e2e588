"""SymbolBlock: Symbols as blocks."""
import numpy as np
import pytest

import mxnet as mx
from mxnet import gluon
from mxnet.gluon import nn


def parts():
    data = mx.sym.var("data")
    hidden = mx.sym.FullyConnected(data, num_hidden=4, name="fc1")
    return data, hidden, mx.sym.FullyConnected(mx.sym.relu(hidden), num_hidden=2, name="fc2")


def test_parameters_and_call():
    data, hidden, out = parts()
    net = gluon.SymbolBlock([hidden, out], data)
    assert list(net.collect_params().keys()) == ["fc1_weight", "fc1_bias", "fc2_weight", "fc2_bias"]
    assert sorted(net._reg_params) == ["1_bias", "1_weight", "2_bias", "2_weight"]  # without the common beginning
    net.initialize()
    first, second = net(mx.nd.ones((3, 5)))
    assert (first.shape, second.shape) == ((3, 4), (3, 2))
    assert net.params["fc1_weight"].shape == (4, 5)


def test_features_of_a_network():
    net = nn.HybridSequential(prefix="m_")
    with net.name_scope():
        net.add(nn.Dense(4, activation="relu"), nn.Dense(2))
    net.initialize()
    x = mx.nd.ones((1, 3))
    net(x)
    data = mx.sym.var("data")
    internals = net(data).get_internals()
    features = gluon.SymbolBlock(internals["m_dense0_relu_fwd_output"], data, params=net.collect_params())
    np.testing.assert_allclose(features(x).asnumpy(), net[0](x).asnumpy())
    net[0].bias.set_data(mx.nd.ones((4,)))  # shared, not copied
    np.testing.assert_allclose(features(x).asnumpy(), net[0](x).asnumpy())


def test_trains():
    data, _, out = parts()
    net = gluon.SymbolBlock(out, data)
    net.initialize()
    with mx.autograd.record():
        loss = net(mx.nd.ones((2, 3))).sum()
    loss.backward()
    assert net.params["fc2_bias"].grad().asnumpy().tolist() == [2, 2]


def test_inside_of_another_block():
    data, _, out = parts()
    net = nn.HybridSequential()
    net.add(nn.Dense(3), gluon.SymbolBlock(out, data))
    net.initialize()
    x = mx.nd.ones((2, 6))
    eager = net(x).asnumpy()
    net.hybridize()
    np.testing.assert_allclose(net(x).asnumpy(), eager, rtol=1e-6)


def test_called_with_symbols():
    data, _, out = parts()
    net = gluon.SymbolBlock(out, data)
    assert net(mx.sym.var("x")).list_arguments() == ["x", "fc1_weight", "fc1_bias", "fc2_weight", "fc2_bias"]
    assert out.list_arguments()[0] == "data"  # the block's own graph stays as it is
    with pytest.raises(AssertionError, match="Invalid input format"):
        net(mx.sym.var("x"), mx.sym.var("y"))
    with pytest.raises(AssertionError, match="SymbolBlock takes NDArrays or Symbols, received <class 'int'>"):
        net(3)


def test_repr():
    data, hidden, out = parts()
    assert repr(gluon.SymbolBlock(out, data)) == "SymbolBlock(\n<Symbol fc2> : 1 -> 1\n)"
    assert repr(gluon.SymbolBlock([hidden, out], data)) == "SymbolBlock(\n<Symbol group [fc1, fc2]> : 1 -> 2\n)"


def test_wrong_inputs():
    data, hidden, out = parts()
    with pytest.raises(AssertionError, match="inputs must be variables, received <Symbol fc1>, the output of an operator"):
        gluon.SymbolBlock(out, hidden)
    weight = mx.sym.var("w", stype="row_sparse")
    with pytest.raises(AssertionError, match="all Parameters must be dense, 'w' is row_sparse"):
        gluon.SymbolBlock(mx.sym.dot(data, weight), data)


def test_imports_keeps_types(tmp_path):
    data = mx.sym.var("data")
    out = mx.sym.FullyConnected(data, num_hidden=2, name="fc")
    out.save(str(tmp_path / "m-symbol.json"))
    mx.nd.save(str(tmp_path / "m.params"), {"arg:fc_weight": mx.nd.ones((2, 3), dtype="float64"), "arg:fc_bias": mx.nd.ones((2,), dtype="float64")})
    net = gluon.SymbolBlock.imports(str(tmp_path / "m-symbol.json"), "data", str(tmp_path / "m.params"), ctx=mx.cpu(1))
    assert net(mx.nd.ones((1, 3), dtype="float64", ctx=mx.cpu(1))).dtype == np.float64
    bare = gluon.SymbolBlock.imports(str(tmp_path / "m-symbol.json"), ["data"])
    bare.initialize()
    assert bare(mx.nd.ones((1, 3))).dtype == np.float32


def test_imports_names_what_is_missing(tmp_path):
    _, _, out = parts()
    out.save(str(tmp_path / "m-symbol.json"))
    mx.nd.save(str(tmp_path / "m.params"), {"arg:fc1_weight": mx.nd.ones((4, 3))})
    with pytest.raises(AssertionError, match="m.params lacks Parameter 'fc1_bias'"):
        gluon.SymbolBlock.imports(str(tmp_path / "m-symbol.json"), ["data"], str(tmp_path / "m.params"))
    with pytest.raises(mx.MXNetError, match="none-symbol.json"):
        gluon.SymbolBlock.imports(str(tmp_path / "none-symbol.json"), ["data"])


def test_cast_to_float16_leaves_batch_norm():
    data = mx.sym.var("data")
    out = mx.sym.BatchNorm(mx.sym.FullyConnected(data, num_hidden=2, name="fc"), name="bn")
    net = gluon.SymbolBlock(out, data)
    net.initialize()
    net.cast("float16")
    types = {n: np.dtype(p.dtype).name for n, p in net.collect_params().items()}
    assert types == {"fc_weight": "float16", "fc_bias": "float16", "bn_gamma": "float32", "bn_beta": "float32", "bn_moving_mean": "float32",
                     "bn_moving_var": "float32"}


def test_reset_ctx():
    data, _, out = parts()
    net = gluon.SymbolBlock(out, data)
    net.initialize()
    net(mx.nd.ones((1, 3)))
    net.reset_ctx(mx.cpu(1))
    assert net(mx.nd.ones((1, 3), ctx=mx.cpu(1))).context == mx.cpu(1)


def annotated():
    data = mx.sym.var("data")
    weight = mx.sym.var("w", lr_mult=0, wd_mult=3, init=mx.init.Constant(2), shape=(2, 3))
    bias = mx.sym.var("b", init="zeros", attr={"lr_mult": "5"})
    return mx.sym.FullyConnected(data, weight, bias, num_hidden=2, name="fc"), data


def test_parameters_have_the_settings_of_the_variables():
    net = mx.gluon.SymbolBlock(*annotated())
    parameters = net.collect_params()
    assert [(parameters[name].lr_mult, parameters[name].wd_mult) for name in "wb"] == [(0, 3), (5, 1)]
    net.initialize(mx.init.One())
    trainer = mx.gluon.Trainer(parameters, "sgd", {"learning_rate": .1})
    with mx.autograd.record():
        loss = net(mx.nd.ones((1, 3))).sum()
    loss.backward()
    trainer.step(1)
    assert parameters["w"].data().asnumpy().tolist() == [[2] * 3] * 2  # it starts as it says, and stays
    np.testing.assert_allclose(parameters["b"].data().asnumpy(), [-.5, -.5])


def test_settings_come_with_a_file_and_shared_parameters_keep_theirs(tmp_path):
    out, data = annotated()
    out.save(str(tmp_path / "net.json"))
    net = mx.gluon.SymbolBlock.imports(str(tmp_path / "net.json"), "data")
    assert net.collect_params()["w"].lr_mult == 0
    net.collect_params().setattr("lr_mult", .5)
    shared = mx.gluon.SymbolBlock(out, data, params=net.collect_params()).collect_params()
    assert shared["w"] is net.collect_params()["w"] and shared["w"].lr_mult == .5 and shared["w"].wd_mult == 3


def test_settings_that_are_no_numbers():
    with pytest.raises(mx.MXNetError, match="SymbolBlock: lr_mult of the variable 'w' must be a number: could not convert string to float: 'fast'"):
        mx.gluon.SymbolBlock(mx.sym.relu(mx.sym.var("w", attr={"lr_mult": "fast"})), mx.sym.var("data"))
