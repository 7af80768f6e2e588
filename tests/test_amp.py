"""mx.amp: MXNet 2's signatures; what the conversion does is tested in `tests/contrib/amp`."""
import numpy as np
import pytest

import mxnet as mx


def _net():
    data = mx.sym.var("data")
    net = mx.sym.FullyConnected(data, num_hidden=2, name="fc")
    args = {"fc_weight": mx.nd.ones((2, 3)), "fc_bias": mx.nd.zeros((2,))}
    return net, args


def test_what_trains_is_the_same_as_in_contrib():
    for name in ("init", "init_trainer", "scale_loss", "unscale", "list_lp16_ops"):
        assert getattr(mx.amp, name) is getattr(mx.contrib.amp, name)


def test_convert_symbol_wants_all_types():
    net, args = _net()
    types = {name: "float32" for name in args}
    converted = mx.amp.convert_symbol(net, {"data": "float32"}, types, "bfloat16")
    assert "amp_cast" in converted.tojson(remove_amp_cast=False)
    with pytest.raises(AssertionError, match="must name all variables of the network, missing: fc_weight, fc_bias"):
        mx.amp.convert_symbol(net, {"data": "float32"}, {}, "bfloat16")
    with pytest.raises(AssertionError, match="a dict of types expected as input_dtypes"):
        mx.amp.convert_symbol(net, ["data"], types, "bfloat16")


def test_convert_model():
    net, args = _net()
    _, new, aux = mx.amp.convert_model(net, args, {}, {"data": "float32"}, "bfloat16", cast_params_offline=True)
    assert mx.ops.dtypes.name_of(new["fc_weight"]._data.dtype) == "bfloat16" and aux == {}
    assert mx.amp.convert_model(net, args, {}, {"data": "float32"}, "bfloat16")[1]["fc_weight"].dtype is np.float32
    with pytest.raises(AssertionError, match="types of the inputs data expected as input_dtypes"):
        mx.amp.convert_model(net, args, {}, {}, "bfloat16")


def test_convert_hybrid_block_calls_the_block_itself():
    net = mx.gluon.nn.Dense(2, in_units=3)
    net.initialize(mx.init.One())
    converted = mx.amp.convert_hybrid_block(net, [mx.nd.ones((1, 3))], "bfloat16", device=mx.cpu(1))
    assert converted(mx.nd.ones((1, 3), ctx=mx.cpu(1))).asnumpy().tolist() == [[3.0, 3.0]]
    assert [p.list_ctx() for p in converted.collect_params().values()] == [[mx.cpu(1)]] * 2
    with pytest.raises(AssertionError, match="a HybridBlock expected"):
        mx.amp.convert_hybrid_block(mx.gluon.nn.Sequential(), mx.nd.ones(1), "bfloat16")
    with pytest.raises(AssertionError, match="an array, or several, expected as data_example"):
        mx.amp.convert_hybrid_block(net, [1], "bfloat16")
