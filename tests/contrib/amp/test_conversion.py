"""Graphs with casts put in. All expected graphs are what MXNet 1.9.1's `convert_symbol` makes."""
import numpy as np
import pytest

import mxnet as mx
from mxnet.contrib import amp
from mxnet.test_utils import same_symbol_structure

var, sym = mx.sym.var, mx.sym


def nodes(symbol):
    """Each operator, its name and the names of its inputs."""
    return [(n.op.name, n.name, [f"{c.name}:{i}" if i else c.name for c, i in n.inputs]) for n in symbol._nodes() if n.op is not None]


def types(symbol):
    """The types that the variables are annotated with."""
    return {name: attrs["__dtype__"] for name, attrs in symbol.attr_dict().items() if "__dtype__" in attrs}


def network():
    c = sym.Convolution(var("data"), num_filter=4, kernel=(3, 3), no_bias=True, name="conv")
    b = sym.BatchNorm(c, name="bn")
    r = sym.LeakyReLU(b, act_type="elu", name="lr")
    p = sym.Pooling(r, global_pool=True, name="pool")
    f = sym.FullyConnected(p, num_hidden=3, no_bias=True, name="fc")
    return sym.SoftmaxOutput(sym.elemwise_add(f, sym.sin(f, name="q"), name="plus"), var("label"), name="softmax")


def test_default_lists():
    converted = amp.convert_symbol(network(), data_names=["data", "label"])
    assert nodes(converted) == [
        ("amp_cast", "data_amp_cast_float16", ["data"]), ("amp_cast", "conv_weight_amp_cast_float16", ["conv_weight"]),
        ("Convolution", "conv", ["data_amp_cast_float16", "conv_weight_amp_cast_float16"]),
        ("BatchNorm", "bn", ["conv", "bn_gamma", "bn_beta", "bn_moving_mean", "bn_moving_var"]),
        ("amp_cast", "bn_output_amp_cast_float32", ["bn"]), ("LeakyReLU", "lr", ["bn_output_amp_cast_float32"]), ("Pooling", "pool", ["lr"]),
        ("amp_cast", "pool_output_amp_cast_float16", ["pool"]), ("amp_cast", "fc_weight_amp_cast_float16", ["fc_weight"]),
        ("FullyConnected", "fc", ["pool_output_amp_cast_float16", "fc_weight_amp_cast_float16"]), ("sin", "q", ["fc"]),
        ("elemwise_add", "plus", ["fc", "q"]), ("amp_cast", "plus_output_amp_cast_float32", ["plus"]),
        ("SoftmaxOutput", "softmax", ["plus_output_amp_cast_float32", "label"])]
    assert types(converted) == dict.fromkeys("conv_weight bn_gamma bn_beta bn_moving_mean bn_moving_var fc_weight".split(), "0")
    assert converted.list_auxiliary_states() == ["bn_moving_mean", "bn_moving_var"]


def test_cast_params():
    converted = amp.convert_symbol(network(), data_names=["data", "label"], cast_optional_params=True)
    assert [name for op, name, _ in nodes(converted) if op == "amp_cast"] == [
        "data_amp_cast_float16", "bn_output_amp_cast_float32", "pool_output_amp_cast_float16", "plus_output_amp_cast_float32"]
    assert types(converted) == {"conv_weight": "2", "fc_weight": "2", **dict.fromkeys("bn_gamma bn_beta bn_moving_mean bn_moving_var".split(),
                                                                                      "0")}


def test_without_data_names_nothing_is_annotated():
    assert types(amp.convert_symbol(network())) == {}


def test_excluded_names():
    converted = amp.convert_symbol(network(), excluded_sym_names=["conv", "fc"])
    assert [op for op, _, _ in nodes(converted)] == "Convolution BatchNorm LeakyReLU Pooling FullyConnected sin elemwise_add SoftmaxOutput".split()


def test_the_given_graph_is_not_changed():
    net = network()
    before = net.tojson(remove_amp_cast=False)
    amp.convert_symbol(net, data_names=["data"], cast_optional_params=True)
    assert net.tojson(remove_amp_cast=False) == before


def test_casts_can_be_left_out_of_the_file():
    converted = sym.load_json(amp.convert_symbol(network()).tojson())
    assert same_symbol_structure(converted, network())


def test_unknown_types_meet():
    a = sym.split(var("a"), num_outputs=2, axis=1, name="sp")
    fc = sym.FullyConnected(a[1], num_hidden=3, no_bias=True, name="fc")
    assert nodes(amp.convert_symbol(sym.elemwise_mul(a[0], fc, name="m"))) == [
        ("SliceChannel", "sp", ["a"]), ("amp_cast", "sp_output1_amp_cast_float16", ["sp:1"]),
        ("amp_cast", "fc_weight_amp_cast_float16", ["fc_weight"]),
        ("FullyConnected", "fc", ["sp_output1_amp_cast_float16", "fc_weight_amp_cast_float16"]),
        ("amp_multicast", "sp_output0_amp_multicast", ["sp", "fc"]),
        ("elemwise_mul", "m", ["sp_output0_amp_multicast", "sp_output0_amp_multicast:1"]), ("amp_cast", "m_0_amp_cast_float32", ["m"])]


def test_integers_are_not_taken_for_floats():
    fc = sym.FullyConnected(var("a"), num_hidden=3, no_bias=True, name="fc")
    names = [name for _, name, _ in nodes(amp.convert_symbol(sym.Group([sym.Cast(fc, dtype="int32", name="c"), sym.exp(fc, name="e")])))]
    assert names == ["a_amp_cast_float16", "fc_weight_amp_cast_float16", "fc", "c", "c_0_amp_cast_float32", "fc_output_amp_cast_float32", "e"]


def test_shared_parameter():
    w = var("w")
    fc = sym.FullyConnected(var("a"), w, num_hidden=3, no_bias=True, name="fc")
    converted = amp.convert_symbol(sym.Group([fc, sym.sum(w, name="s")]), data_names=["a"], cast_optional_params=True)
    assert nodes(converted)[-1] == ("sum", "s", ["w"])
    assert [name for op, name, _ in nodes(converted) if op == "amp_cast"] == ["a_amp_cast_float16", "fc_output_amp_cast_float32"]


@pytest.mark.parametrize("low, dtype", [("float16", np.float16), ("bfloat16", np.dtype([("bfloat16", np.uint16)]))])
class TestAgainstHandMadeGraphs:
    def test_own_lists(self, low, dtype):
        x, y = var("x"), var("y")
        net = sym.FullyConnected(x, y, num_hidden=10, no_bias=True) + sym.sin(y)
        converted = amp.convert_symbol(net, low, target_dtype_ops=["FullyConnected"], fp32_ops=["sin"])
        fc = sym.FullyConnected(sym.amp_cast(x, dtype=low), sym.amp_cast(y, dtype=low), num_hidden=10, no_bias=True)
        assert same_symbol_structure(converted, sym.amp_cast(fc, dtype="float32") + sym.sin(y))

    @pytest.mark.parametrize("value", ["True", "False"])
    def test_condition(self, low, dtype, value):
        x, y = var("x"), var("y")
        fc = sym.FullyConnected(x, y, num_hidden=10, no_bias=True)
        converted = amp.convert_symbol(fc, low, target_dtype_ops=[], fp32_ops=["sin"], conditional_fp32_ops=[("FullyConnected", "no_bias", [value])])
        ops = ["amp_cast", "amp_cast", "FullyConnected"] if value == "True" else ["FullyConnected", "amp_cast"]
        assert [op for op, _, _ in nodes(converted)] == ops

    @pytest.mark.parametrize("seconds, expected", [("float32", np.float32), (None, "low")])
    def test_casts_that_agree_or_not(self, low, dtype, seconds, expected):
        data = var("data")
        group = sym.Group([sym.amp_cast(data, dtype=low), sym.amp_cast(data, dtype=seconds or low)])
        converted = amp.convert_symbol(group, low, data_names=[], cast_optional_params=True)
        executor = converted.simple_bind(ctx=mx.cpu(), data=(1, 2))
        assert executor.arg_arrays[0].dtype == (dtype if expected == "low" else expected)

    @pytest.mark.parametrize("first, second", [(np.float32, "low"), ("low", np.float32)])
    def test_multicast_of_variables(self, low, dtype, first, second):
        data, other = (var(name, dtype=dtype if t == "low" else t) for name, t in (("data", first), ("other", second)))
        both = sym.amp_multicast(data, other, num_outputs=2)
        for group in (both, sym.Group([both, sym.amp_cast(data, dtype=low)])):
            converted = amp.convert_symbol(group, low, target_dtype_ops=[], fp32_ops=[], cast_optional_params=True)
            assert converted.simple_bind(ctx=mx.cpu(), data=(1, 2), other=(1, 2)).arg_arrays[0].dtype == dtype

    def test_multicast_beside_an_operator(self, low, dtype):
        data, a, b = var("data", dtype=np.float32), var("a", dtype=dtype), var("b", dtype=dtype)
        net = sym.amp_multicast(data, sym.elemwise_add(a, b), num_outputs=2)
        converted = amp.convert_symbol(net, low, target_dtype_ops=[], fp32_ops=[], cast_optional_params=True)
        executor = converted.simple_bind(ctx=mx.cpu(), data=(1, 2), a=(1, 2), b=(1, 2))
        assert [array.dtype for array in executor.arg_arrays] == [np.float32, dtype, dtype]
