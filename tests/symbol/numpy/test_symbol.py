"""mx.sym.np: the graphs it makes, in JSON as MXNet 1.9.1 writes them, and blocks traced with them."""
import json

import pytest

import mxnet as mx
from mxnet import gluon, np, npx
from mxnet.symbol.numpy import _Symbol

F = mx.sym


@pytest.fixture(autouse=True)
def numpy_semantics():
    npx.set_np()
    yield
    npx.reset_np()


def nodes(symbol):
    return [(n["op"], n.get("attrs", {})) for n in json.loads(symbol.tojson())["nodes"] if n["op"] != "null"]


@pytest.mark.parametrize("make, expected", [
    (lambda x, y: x + y, [("_npi_add", {})]),
    (lambda x, y: x + 1.5, [("_npi_add_scalar", {"is_int": "False", "scalar": "1.5"})]),
    (lambda x, y: x / 2, [("_npi_true_divide_scalar", {"is_int": "True", "scalar": "2.0"})]),
    (lambda x, y: -x, [("_npi_multiply_scalar", {"is_int": "False", "scalar": "-1.0"})]),
    (lambda x, y: x > y, [("_npi_greater", {})]),
    (lambda x, y: x.reshape(2, 3), [("_np_reshape", {"newshape": "(2, 3)", "order": "C"})]),
    (lambda x, y: x.T, [("_np_transpose", {"axes": "None"})]),
    (lambda x, y: F.np.exp(x), [("_npi_exp", {})]),
    (lambda x, y: F.np.concatenate([x, y], axis=None), [("_npi_concatenate", {"axis": "None", "num_args": "2"})]),
    (lambda x, y: F.np.where(x, 1, y), [("_npi_where_lscalar", {"scalar": "1.0"})]),
    (lambda x, y: F.np.dot(x, y), [("_np_dot", {})]),
    (lambda x, y: F.np.einsum("ij,jk->ik", x, y), [("_npi_einsum", {"num_args": "2", "optimize": "0", "subscripts": "ij,jk->ik"})]),
    (lambda x, y: F.npx.relu(x), [("_npx_relu", {})]),
    (lambda x, y: F.npx.fully_connected(x, num_hidden=3), [("FullyConnected", {"num_hidden": "3"})]),
    (lambda x, y: F.np.zeros((2, 3)), [("_npi_zeros", {"ctx": "cpu(0)", "dtype": "float32", "shape": "(2, 3)"})]),
])
def test_json(make, expected):
    x, y = (mx.sym.var(n).as_np_ndarray() for n in "xy")
    symbol = make(x, y)
    assert type(symbol) is _Symbol
    assert nodes(symbol) == expected
    assert nodes(mx.sym.load_json(symbol.tojson())) == expected


def test_names():
    x = mx.sym.var("x").as_np_ndarray()
    with mx.name.NameManager():
        assert (x + x).name == "add0" and F.npx.relu(x).name == "relu0" and F.np.sum(x).name == "sum0"


def test_slicing_runs():
    x = mx.sym.var("x").as_np_ndarray()
    out = x[1, 1:].bind(mx.cpu(), {"x": mx.nd.array([[1, 2, 3], [4, 5, 6]])}).forward()[0]
    assert out.asnumpy().tolist() == [5.0, 6.0]
    with pytest.raises(TypeError, match="integers and slices only"):
        x[None]


def test_symbols_have_no_values():
    x = mx.sym.var("x").as_np_ndarray()
    with pytest.raises(AttributeError, match="no attribute exp"):
        x.exp()
    with pytest.raises(TypeError, match="len"):
        len(x)
    with pytest.raises(TypeError, match="y is a Symbol of mx.sym, and one of mx.sym.np is expected"):
        x + mx.sym.var("y")
    assert type(x.as_nd_ndarray()) is mx.sym.Symbol


class Net(gluon.HybridBlock):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        with self.name_scope():
            self.dense = gluon.nn.Dense(2, in_units=3)

    def hybrid_forward(self, F, x):
        return F.np.sum(F.npx.relu(self.dense(x)) + 1, axis=0), x[:, 0].mean()


def test_block_gives_the_same_traced_and_not():
    net = Net()
    net.initialize(mx.init.One())
    x = np.array([[1.0, 2.0, 3.0], [-9.0, 1.0, 1.0]])
    results = []
    for hybridize in (False, True):
        net.hybridize(hybridize)
        with mx.autograd.record():
            out = net(x)
        assert [type(o) for o in out] == [np.ndarray, np.ndarray]
        out[0].backward()
        results.append(([o.tolist() for o in out], net.dense.weight.grad().tolist()))
        assert type(net.dense.weight.data()) is np.ndarray
    assert results[0] == results[1]
    assert results[0][0] == [[8.0, 8.0], -4.0]


def test_mixed_outputs_are_refused():
    class Mixed(gluon.HybridBlock):
        def hybrid_forward(self, F, x):
            return x.as_nd_ndarray() * 2

    net = Mixed()
    for hybridize in (False, True):
        net.hybridize(hybridize)
        with pytest.raises(TypeError, match="With NumPy semantics a block returns arrays of mx.np"):
            net(np.ones(2))
