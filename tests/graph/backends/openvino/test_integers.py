"""Quantized graphs on OpenVINO: its INT8 kernels run, and give what the operators on torch give."""
import platform

import numpy as np
import pytest

import mxnet as mx
from mxnet import nd, processor, sym
from mxnet.contrib import quantization
from mxnet.graph.runtime.runner import GraphRunner

pytest.importorskip("openvino")
if platform.machine() == "x86_64" and not processor.flags() & {"avx512_vnni", "avx_vnni"}:
    # Without these instructions its products of 8 bits are added up in 16, which saturate.
    pytest.skip("OpenVINO's INT8 kernels round otherwise on this processor", allow_module_level=True)


def compiled(net, arrays):
    """What OpenVINO and torch make of a graph, and the runner of the first."""
    found = []
    for backend in ("openvino", "native"):
        runner = GraphRunner(net, backend=backend)
        found.append([t.numpy() for t in runner([arrays[n].as_torch() for n in runner.input_names])])
        if backend == "openvino":
            frozen = next(iter(runner.states.values()))
    return found[0], found[1], frozen


def quantized(net, data, dtype="auto", fuse=True, **more):
    """A network with random parameters, calibrated for these data, and all its arrays."""
    random = np.random.RandomState(1)
    shapes, _, aux_shapes = net.infer_shape(data=data.shape)
    args = {n: nd.array(random.normal(0, .4, s)) for n, s in zip(net.list_arguments(), shapes) if n != "data"}
    aux = {n: nd.array(random.uniform(.5, 1.5, s)) for n, s in zip(net.list_auxiliary_states(), aux_shapes)}
    make = quantization.quantize_model_mkldnn if fuse else quantization.quantize_model
    made, args, aux = make(net, args, aux, label_names=None, calib_mode="naive", calib_data=mx.io.NDArrayIter(data, batch_size=len(data)),
                           quantized_dtype=dtype, quantize_mode="full", **more)
    return made, {**args, **aux, "data": data}


@pytest.mark.parametrize("more", [{}, {"bidirectional": True, "num_layers": 2, "state_outputs": True}], ids=str)
def test_recurrent_layers(more):
    layers = {"num_layers": 1, **more}
    states = [sym.zeros((layers["num_layers"] * (2 if "bidirectional" in more else 1), 3, 6)) for _ in range(2)]
    net = sym.RNN(sym.var("data"), sym.var("parameters"), *states, state_size=6, mode="lstm", name="rnn", **layers)
    made, arrays = quantized(net, nd.array(np.random.RandomState(0).uniform(-1, 2, (5, 3, 4))), fuse=False)
    on_openvino, on_torch, frozen = compiled(made, arrays)
    assert frozen.explain() == ["openvino: the whole graph"] and len(on_torch) == (3 if "state_outputs" in more else 1)
    for one, other in zip(on_openvino, on_torch):
        assert abs(one - other).max() < 1e-5


@pytest.mark.parametrize("values, low, high", [((-1, .5, 2), -1, 2), ((-3, .5, 9), -1, 2), ((5, 0, 2), 5, 5), ((-5, 0, -2), -5, -5)])
def test_shifted_integers(values, low, high):
    """They leave the model as such."""
    net = sym.Group(list(sym.contrib.quantize_asym(sym.var("data"), min_calib_range=low, max_calib_range=high)))
    on_openvino, on_torch, frozen = compiled(net, {"data": nd.array(values)})
    assert frozen.explain() == ["openvino: the whole graph"]
    for one, other in zip(on_openvino, on_torch):
        assert one.dtype == other.dtype and one == pytest.approx(other)


def convolve(data, **more):
    return sym.Convolution(data, **{"num_filter": 8, "kernel": (3, 3), "pad": (1, 1), **more})


def residual():
    first = sym.Activation(sym.BatchNorm(convolve(sym.var("data"), no_bias=True), fix_gamma=False), act_type="relu")
    second = sym.Activation(first + sym.BatchNorm(convolve(first, num_group=2), fix_gamma=False), act_type="relu")
    both = sym.concat(convolve(second, kernel=(1, 1), pad=()), sym.clip(convolve(second), a_min=0, a_max=6), sym.LeakyReLU(convolve(second)), dim=1)
    pooled = sym.concat(sym.Pooling(both, kernel=(2, 2), stride=(2, 2)), sym.Pooling(both, kernel=(2, 2), stride=(2, 2), pool_type="avg"), dim=1)
    return sym.FullyConnected(sym.Activation(sym.FullyConnected(pooled, num_hidden=16), act_type="relu"), num_hidden=5)


DATA = nd.array(np.random.RandomState(0).uniform(-1, 1, (2, 4, 8, 8)))


@pytest.mark.parametrize("more", [{}, {"dtype": "int8"}, {"quantize_granularity": "channel-wise"}, {"fuse": False}, {"dtype": "int8", "fuse": False}],
                         ids=str)
def test_within_a_step(more):
    net, arrays = quantized(residual(), DATA, **more)
    on_openvino, on_torch, frozen = compiled(net, arrays)
    assert frozen.explain() == ["openvino: the whole graph"]
    step = abs(on_torch[0]).max() / 127
    assert abs(on_openvino[0] - on_torch[0]).max() < 3 * step and abs(on_openvino[0] - on_torch[0]).mean() < 1.5 * step


def test_integers_leave_the_graph_as_such():
    net, arrays = quantized(residual(), DATA)
    internals = net.get_internals()
    names = [n for n in internals.list_outputs() if n.startswith("quantized_") and n.endswith("_output") and "_m" not in n.replace("_mkldnn", "")]
    on_openvino, on_torch, _ = compiled(sym.Group([internals[n] for n in names]), arrays)
    assert len(names) == 11 and {a.dtype for a in on_openvino} == {np.dtype("int8"), np.dtype("uint8"), np.dtype("float32")}
    for name, a, b in zip(names, on_openvino, on_torch):
        assert a.dtype == b.dtype
        assert a.dtype == np.float32 or abs(a.astype(int) - b).max() <= 2 and (a != b).mean() < .1, name


def test_kernels_are_int8():
    net, arrays = quantized(residual(), DATA)
    _, _, frozen = compiled(net, arrays)
    layers = [(str(o.get_rt_info()["layerType"].astype(str)), str(o.get_rt_info()["runtimePrecision"].astype(str)))
              for o in frozen.function.model.get_runtime_model().get_ops()]
    products = [precision for kind, precision in layers if kind in ("Convolution", "FullyConnected")]
    assert len(products) == 7 and set(products) <= {"u8", "i8"}


@pytest.mark.parametrize("act_type", ["relu", None])
@pytest.mark.parametrize("dtype", ["auto", "int8"])
def test_convolutions_add_what_flows_past_them(dtype, act_type):
    """Both convolutions of a block store integers, also the one whose result is added to what the block began with."""
    flow = sym.Activation(convolve(sym.var("data")), act_type="relu")
    for _ in range(3):
        inner = convolve(sym.Activation(convolve(flow), act_type="relu"))
        flow = sym.Activation(inner + flow, act_type=act_type) if act_type else inner + flow
    net, arrays = quantized(convolve(flow), DATA, dtype)
    on_openvino, on_torch, frozen = compiled(net, arrays)
    step = abs(on_torch[0]).max() / 127
    assert abs(on_openvino[0] - on_torch[0]).max() < 3 * step and abs(on_openvino[0] - on_torch[0]).mean() < step / 2
    ordered = [{key: str(value.astype(str)) for key, value in o.get_rt_info().items() if key in ("layerType", "outputPrecisions")}
               for o in frozen.function.model.get_runtime_model().get_ordered_ops()]
    stored = [layer["outputPrecisions"] for layer in ordered if layer["layerType"] == "Convolution"]
    assert len(stored) == 8 and set(stored[:-1]) <= {"u8", "i8"} and stored[-1] == "f32"


def preactivated():
    """Batch norm and ReLU before each convolution, as in the second version of ResNet."""
    flow = convolve(sym.var("data"))
    for _ in range(2):
        inner = sym.Activation(sym.BatchNorm(flow, fix_gamma=False), act_type="relu")
        inner = convolve(sym.Activation(sym.BatchNorm(convolve(inner, no_bias=True), fix_gamma=False), act_type="relu"))
        flow = inner + flow
    return convolve(sym.Activation(sym.BatchNorm(flow, fix_gamma=False), act_type="relu"))


@pytest.mark.parametrize("dtype", ["auto", "int8"])
def test_convolutions_behind_a_rectified_norm(dtype):
    net, arrays = quantized(preactivated(), DATA, dtype)
    for times in (1, 3):  # three times what it was calibrated with: integers end at 127
        on_openvino, on_torch, frozen = compiled(net, {**arrays, "data": DATA * times})
        step = abs(on_torch[0]).max() / 127
        assert abs(on_openvino[0] - on_torch[0]).max() < 3 * step and abs(on_openvino[0] - on_torch[0]).mean() < step / 2
    kernels = [str(o.get_rt_info()["runtimePrecision"].astype(str)) for o in frozen.function.model.get_runtime_model().get_ops()
               if str(o.get_rt_info()["layerType"].astype(str)) == "Convolution"]
    assert len(kernels) == 6 and set(kernels) <= {"u8", "i8"}
    # The last sum, which a norm alone reads, is added to as integers: nothing makes real numbers of what flows past first.
    assert not [o for o in frozen.function.model.get_runtime_model().get_ops() if "_i8_f32_" in o.get_friendly_name()]


def test_attention():
    qkv = sym.var("data")
    scores = sym.softmax(sym.contrib.interleaved_matmul_selfatt_qk(qkv, heads=2))
    net = sym.contrib.interleaved_matmul_selfatt_valatt(qkv, scores, heads=2).get_backend_symbol("MKLDNN_QUANTIZE")
    data = nd.array(np.random.RandomState(0).uniform(-1, 1, (6, 2, 24)))
    made, *_ = quantization.quantize_model(net, {}, {}, label_names=None, calib_mode="naive", calib_data=mx.io.NDArrayIter(data, batch_size=6),
                                           quantize_mode="full")
    on_openvino, on_torch, frozen = compiled(made.get_backend_symbol("MKLDNN_QUANTIZE"), {"data": data})
    assert frozen.explain() == ["openvino: the whole graph"] and np.allclose(on_openvino[0], on_torch[0], atol=.01)


def test_what_is_not_calibrated_stays_on_torch():
    net, arrays = quantized(sym.FullyConnected(sym.Flatten(sym.var("data")), num_hidden=3, name="fc"), DATA)
    made = quantization.quantize_graph(sym.FullyConnected(sym.Flatten(sym.var("data")), num_hidden=3, name="fc"), {}, {}, calib_mode="none")[0]
    arrays = {"data": DATA, "fc_weight": nd.ones((3, 256)), "fc_bias": nd.ones(3)}
    on_openvino, on_torch, frozen = compiled(made, arrays)
    assert any("its range is not calibrated" in line for line in frozen.explain()) and (on_openvino[0] == on_torch[0]).all()


def test_operators_between_products():
    data = sym.var("data")
    flat = sym.Flatten(sym.elemwise_mul(sym.Activation(data, act_type="relu"), data))
    net = sym.elemwise_add(sym.FullyConnected(flat, num_hidden=4), sym.BatchNorm(sym.FullyConnected(flat, num_hidden=4), fix_gamma=False))
    made, arrays = quantized(net, DATA, "int8", fuse=False)
    kinds = {n.op.name.removeprefix("_contrib_quantized_") for n in made._nodes() if n.op}
    assert kinds >= {"act", "elemwise_mul", "flatten", "elemwise_add", "batch_norm"}
    on_openvino, on_torch, frozen = compiled(made, arrays)
    assert frozen.explain() == ["openvino: the whole graph"] and abs(on_openvino[0] - on_torch[0]).max() < .03 * abs(on_torch[0]).max()


def test_embedding():
    net = sym.FullyConnected(sym.Embedding(sym.var("data"), input_dim=7, output_dim=5), num_hidden=4, flatten=False)
    made, arrays = quantized(net, nd.array([[0, 3, 6], [2, 1, 5]]), "int8", fuse=False)
    on_openvino, on_torch, frozen = compiled(made, arrays)
    assert frozen.explain() == ["openvino: the whole graph"] and abs(on_openvino[0] - on_torch[0]).max() < .02 * abs(on_torch[0]).max()


def test_a_hybridized_network_gets_there():
    net = mx.gluon.nn.HybridSequential()
    net.add(mx.gluon.nn.Conv2D(8, 3), mx.gluon.nn.BatchNorm(), mx.gluon.nn.Activation("relu"), mx.gluon.nn.Dense(3))
    net.initialize()
    expected = net(DATA).asnumpy()
    made = quantization.quantize_net_v2(net, calib_data=[DATA], calib_mode="naive")
    made.hybridize(static_alloc=True, static_shape=True)
    assert abs(made(DATA).asnumpy() - expected).max() < .05 * abs(expected).max() and "openvino: the whole graph" in made.explain()
