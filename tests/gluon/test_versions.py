"""MXNet 1's and MXNet 2's names of parameters, files and calls beside each other."""
import json
import math

import numpy
import pytest

import mxnet as mx
from mxnet import gluon, np
from mxnet.gluon import nn


def _net(**kwargs):
    net = nn.HybridSequential(**kwargs)
    with net.name_scope():
        net.add(nn.Dense(3, in_units=2), nn.Dense(1, in_units=3))
    net.initialize(mx.init.One())
    return net


PLACES = ["0.weight", "0.bias", "1.weight", "1.bias"]


def test_names_of_mxnet_1_stay_and_places_are_found_beside_them():
    net = _net(prefix="n_")
    parameters = net.collect_params()
    assert list(parameters) == ["n_dense0_weight", "n_dense0_bias", "n_dense1_weight", "n_dense1_bias"]
    assert parameters["0.weight"] is parameters["n_dense0_weight"] is net[0].weight
    assert "1.bias" in parameters and "2.bias" not in parameters and "1.bias" not in list(parameters)
    with pytest.raises(KeyError, match="2.bias"):
        parameters["2.bias"]
    assert list(net.collect_params("0.*")) == []  # a pattern is one of names


def test_names_of_mxnet_2():
    mx.util.set_version("2.0")
    net = _net()
    parameters = net.collect_params()
    assert isinstance(parameters, dict) and list(parameters) == PLACES and list(net.collect_params(".*weight")) == ["0.weight", "1.weight"]
    assert list(net.collect_params("0.bias|1.bias")) == ["0.bias", "1.bias"]
    parameters.setattr("grad_req", "null")  # what MXNet 1's programs call
    assert net[1].bias.grad_req == "null"
    assert parameters.pop("0.weight") is net[0].weight and "0.weight" in net.collect_params()
    net.setattr("grad_req", "write")
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 1.0})
    net.hybridize()
    with mx.autograd.record():
        net(np.ones((1, 2))).sum().backward()
    trainer.step(1)
    assert net[1].weight.data().tolist() == [[-1.0, -1.0, -1.0]]


@pytest.mark.parametrize("suffix", ["params", "npz", "safetensors"])
@pytest.mark.parametrize("writer, reader", [("1.9", "2.0"), ("2.0", "1.9"), ("2.0", "2.0")])
def test_checkpoints_of_either(tmp_path, suffix, writer, reader):
    if suffix == "safetensors":
        pytest.importorskip("safetensors")
    path = str(tmp_path / f"net.{suffix}")
    mx.util.set_version(writer)
    _net().save_parameters(path)
    mx.util.set_version(reader)
    net = nn.HybridSequential()
    net.add(nn.Dense(3), nn.Dense(1))
    net.load_parameters(path)
    x = np.ones((1, 2)) if reader == "2.0" else mx.nd.ones((1, 2))
    assert net(x).asnumpy().tolist() == [[6.0]]
    net.load_parameters(path)  # over values that are there
    assert sorted(mx.nd.load(path)) == sorted(PLACES)


def test_a_single_layer_of_mxnet_2(tmp_path):
    path = str(tmp_path / "dense.params")
    mx.npx.savez(path, weight=np.ones((1, 2)), bias=np.zeros(1))
    layer = nn.Dense(1, prefix="own_")
    layer.load_parameters(path)
    assert layer(mx.nd.ones((1, 2))).asnumpy().tolist() == [[2.0]]


def test_load_dict():
    net = _net()
    arrays = {name: mx.nd.ones(p.shape) * 2 for name, p in net._collect_params_with_prefix().items()}
    net.load_dict({"arg:" + name: array for name, array in arrays.items()}, device=mx.cpu())
    assert net(mx.nd.ones((1, 2))).asnumpy().tolist() == [[38.0]]
    net[0].weight.data()[:] = 0
    assert arrays["0.weight"].asnumpy().tolist() == [[2, 2]] * 3  # they are copied
    del arrays["0.bias"]
    with pytest.raises(AssertionError, match="'param_dict' lacks Parameter '0.bias'"):
        net.load_dict(arrays)
    net.load_dict(arrays, allow_missing=True)


def test_export(tmp_path):
    path = str(tmp_path / "net")
    net = _net(prefix="n_")
    net.hybridize()
    net(mx.nd.ones((1, 2)))
    assert net.export(path) == (f"{path}-symbol.json", f"{path}-0000.params")
    assert sorted(mx.nd.load(f"{path}-0000.params")) == ["arg:n_dense0_bias", "arg:n_dense0_weight", "arg:n_dense1_bias", "arg:n_dense1_weight"]
    symbol, arrays = net.export(None)
    assert symbol.list_arguments()[:2] == ["data", "n_dense0_weight"] and "arg:n_dense1_bias" in arrays
    assert gluon.nn.Activation("relu").params.keys() == {}.keys()


def test_export_of_mxnet_2_names_places(tmp_path):
    mx.util.set_version("2.0")
    path = str(tmp_path / "net")
    net = _net()
    net.hybridize()
    net(np.ones((1, 2)))
    net.export(path, epoch=3)
    names = [node["name"] for node in json.loads((tmp_path / "net-symbol.json").read_text())["nodes"] if node["op"] == "null"]
    assert names == ["data", *PLACES] and sorted(mx.nd.load(f"{path}-0003.params")) == sorted("arg:" + p for p in PLACES)
    block = gluon.SymbolBlock.imports(f"{path}-symbol.json", ["data"], f"{path}-0003.params", device=mx.cpu(1))
    assert list(block.collect_params()) == PLACES and block(np.ones((1, 2), device=mx.cpu(1))).tolist() == [[6.0]]
    mx.util.set_version("1.9")
    other = _net()
    other.load_parameters(f"{path}-0003.params")  # into a network of MXNet 1
    assert other(mx.nd.ones((1, 2))).asnumpy().tolist() == [[6.0]]


@pytest.mark.parametrize("hybridize", [False, True])
def test_arrays_say_which_semantics_a_call_means(hybridize):
    net = nn.HybridSequential()
    net.add(nn.Dense(2), nn.BatchNorm(), nn.Activation("relu"))
    net.initialize(mx.init.One())
    if hybridize:
        net.hybridize()
    kinds = []
    for x in (np.ones((2, 3)), mx.nd.ones((2, 3)), np.ones((2, 3))):
        out = net(x)
        kinds.append(type(out))
        numpy.testing.assert_allclose(out.asnumpy(), numpy.full((2, 2), 3.0), rtol=1e-4)
    assert kinds == [np.ndarray, mx.nd.NDArray, np.ndarray] and not mx.util.is_np_array()


def test_a_forward_of_mxnet_2_is_traced_without_set_np():
    class Net(gluon.HybridBlock):
        def forward(self, x):
            return np.tanh(x) + 1

    net = Net()
    net.hybridize(partition_if_dynamic=False, static_alloc=True)
    assert [net(np.zeros(2)).tolist() for _ in range(3)] == [[1, 1]] * 3 and net._cached_graph


def test_hybridize_refuses_positions_of_mxnet_2():
    with pytest.raises(AssertionError, match="hybridize: the name of a backend expected as second argument"):
        nn.Dense(1).hybridize(True, False)


@pytest.mark.parametrize("hybridize", [False, True])
def test_functions_as_blocks(hybridize):
    of_1 = nn.HybridLambda(lambda F, x: F.relu(x) + 1)
    mx.util.set_version("2.0")
    of_2, named, by_name = nn.HybridLambda(lambda x: mx.npx.relu(x) + 1), nn.HybridLambda(lambda F, x: F.relu(x) + 1), nn.HybridLambda("relu")
    for block in (of_1, of_2, named, by_name):
        if hybridize:
            block.hybridize()
        assert [block(np.array([-1.0, 2.0])).tolist() for _ in range(2)] == [[0.0, 2.0] if block is by_name else [1.0, 3.0]] * 2


def test_arrays_of_numpys_doubles():
    doubles = numpy.ones((2,))
    assert np.array(doubles).dtype == "float64"
    mx.util.set_version("2.0")
    assert np.array(doubles).dtype == "float32" and np.array(doubles, dtype="float64").dtype == "float64"
    assert np.array(numpy.ones((2,), "float16")).dtype == "float16"


def test_losses_of_each_sample():
    x, y = np.array([[1.0, 0.0], [0.0, 2.0]]), np.array([[1.0, 0.0], [0.0, 2.0]])
    label = np.array([1, -1])
    assert gluon.loss.CosineEmbeddingLoss()(x, y, label).tolist() == [[0], [1]]
    assert gluon.loss.PoissonNLLLoss()(x, y).shape in ((), (1,))
    mx.util.set_version("2.0")
    assert gluon.loss.CosineEmbeddingLoss()(x, y, label).tolist() == [0, 1]
    numpy.testing.assert_allclose(gluon.loss.PoissonNLLLoss()(x, y).tolist(), [(math.e - 1 + 1) / 2, (1 + math.e ** 2 - 4) / 2], rtol=1e-5)


class _Classic(gluon.HybridBlock):
    def hybrid_forward(self, F, x):
        return x.as_nd_ndarray() + 1, x.as_nd_ndarray() * 2


class _Mixed(gluon.HybridBlock):
    def hybrid_forward(self, F, x):
        return x.as_nd_ndarray() + 1, x


class _Outer(gluon.HybridBlock):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def hybrid_forward(self, F, x):
        return self.inner(x)


@pytest.mark.parametrize("hybridize", [False, True])
@pytest.mark.parametrize("nested", [False, True])
def test_a_block_given_np_arrays_without_a_scope_returns_what_it_makes(hybridize, nested):
    """As in 1.9.1, where nothing but the scope asks for ``mx.np`` arrays; a mixture is refused."""
    net, mixed = (_Outer(block()) if nested else block() for block in (_Classic, _Mixed))
    if hybridize:
        net.hybridize()
        mixed.hybridize()
    outputs = net(np.array([1.0, 3.0]))
    assert [type(out) for out in outputs] == [mx.nd.NDArray] * 2 and [out.asnumpy().tolist() for out in outputs] == [[2, 4], [2, 6]]
    with pytest.raises(TypeError, match="received <class 'mxnet"):
        mixed(np.array([1.0, 3.0]))
    with mx.util.np_shape(True), mx.util.np_array(True), pytest.raises(TypeError, match="a block returns arrays of mx.np"):
        net(np.array([1.0, 3.0]))


def test_a_plain_forward_given_np_arrays_without_a_scope_may_return_classic_ones():
    class Plain(gluon.HybridBlock):
        def forward(self, x):
            return x.as_nd_ndarray() * 2

    net = Plain()
    net.hybridize()
    with pytest.warns(UserWarning, match="outside of np_array"):
        made = [net(np.array([1.0, 3.0])) for _ in range(3)]
    assert all(type(out) is mx.nd.NDArray and out.asnumpy().tolist() == [2, 6] for out in made)


def test_parameters_show_no_names_in_mxnet_2():
    parameter = gluon.Parameter("w", shape=(2,), dtype="float32")
    assert repr(parameter) == "Parameter w (shape=(2,), dtype=float32)"
    mx.util.set_version("2.0")
    assert repr(parameter) == "Parameter (shape=(2,), dtype=float32)"
    assert repr(gluon.Constant("c", [1.0])).startswith("Constant (shape=(1,), ")


@pytest.mark.parametrize("hybridized", [False, True])
def test_classic_arrays_do_not_mix_with_others_in_what_a_block_returns(hybridized):
    class Mixed(mx.gluon.HybridBlock):
        def forward(self, x):
            return x.as_nd_ndarray() + 1, mx.np.multiply(x, x)

    net = Mixed()
    net.hybridize(hybridized)
    with pytest.raises(TypeError, match="a block returns arrays of mx.np or Symbols of mx.sym.np, received <class 'mxnet.ndarray.ndarray.NDArray'>"):
        net(mx.np.ones((2, 3)))


def test_a_class_decorated_with_use_np_computes_in_its_forward(tmp_path):
    """The decorator replaces inherited methods, too; the block is traced all the same, as its file shows."""
    @mx.util.use_np
    class Doubles(mx.gluon.HybridBlock):
        def forward(self, x):
            return x * 2

    net = Doubles()
    net.hybridize()
    with mx.util.np_shape(True), mx.util.np_array(True):
        assert [net(mx.np.array([i])).tolist() for i in range(3)] == [[0], [2], [4]]
    net.export(str(tmp_path / "net"))
    assert '"_npi_multiply_scalar"' in (tmp_path / "net-symbol.json").read_text()


def test_use_np_leaves_static_and_class_methods_what_they_are():
    """MXNet 1.9.1 makes methods of instances of them, so that they receive one argument too many."""
    @mx.util.use_np
    class Holder:
        @staticmethod
        def static(x):
            return mx.util.is_np_array(), x

        @classmethod
        def of_class(cls, x):
            return mx.util.is_np_array(), cls.__name__, x

    assert Holder.static(1) == Holder().static(1) == (True, 1) and Holder.of_class(2) == Holder().of_class(2) == (True, "Holder", 2)
