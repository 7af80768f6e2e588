from unittest import mock

import numpy as onp
import pytest

import mxnet as mx
from mxnet import MXNetError, autograd, gluon, np, npx
from mxnet import _deferred_compute as dc
from mxnet.gluon import nn
from recorded import record_of


@pytest.fixture(autouse=True)
def numpy_style():
    npx.set_np()


def traced(function, *arrays):
    """What a function computes, and what the Symbol traced from it computes."""
    with dc.context():
        variables = [mx.sym.var(f"x{i}").as_np_ndarray() for i in range(len(arrays))]
        dc.set_variable(list(arrays), variables)
        out = dc.get_symbol(function(*arrays), type(variables[0]))
        constants = dict(dc.current("traced").constants)
    given = {f"x{i}": a for i, a in enumerate(arrays)}
    executor = out.bind(mx.cpu(), {**given, **constants})
    return function(*arrays).asnumpy(), executor.forward()[0].asnumpy()


X = onp.arange(24, dtype="float32").reshape(2, 3, 4)


@pytest.mark.parametrize("function", [
    lambda x: x * 2 + 1 - x / 3, lambda x: (x @ x.transpose(0, 2, 1)).sum(axis=-1), lambda x: x.T.reshape(-1),
    lambda x: np.concatenate([x, x], axis=1),
    lambda x: np.split(x, 2, axis=2)[1], lambda x: npx.softmax(x, axis=-1), lambda x: x.astype("int32"), lambda x: x.detach() + x.copy(),
    lambda x: x + np.arange(4) * np.array([1., 2, 3, 4]), lambda x: np.zeros_like(x) + np.ones((4,)), lambda x: x.as_in_ctx(mx.cpu()).mean(),
    lambda x: x.as_nd_ndarray().as_np_ndarray().max(axis=0)])
def test_symbol_computes_what_the_function_did(function):
    direct, again = traced(function, np.array(X))
    assert direct.dtype == again.dtype
    onp.testing.assert_array_equal(direct, again)


@pytest.mark.parametrize("key", [0, -1, (1, 2, 3), slice(None, None, -1), slice(1), (slice(None), 1), (Ellipsis, 0),
                                 (slice(None), None, -1, slice(1, 3)),
                                 None,                                  [1, 0, 1], (slice(None), [2, -1]),
                                 ([0, 1], [2, -1]), (slice(None), slice(1, 3), [0, 3, 3]), Ellipsis, ()])
def test_indexing_is_traced(key):
    direct, again = traced(lambda x: x[key] * 1, np.array(X))
    onp.testing.assert_array_equal(direct, again)


def test_an_index_from_the_end_holds_for_other_sizes():
    with dc.context():
        x = np.array(X)
        dc.set_variable(x, mx.sym.var("x"))
        out = dc.get_symbol(x[:, -1] + x[..., -1, :])
    assert out.eval(x=mx.nd.ones((5, 7, 4)))[0].shape == (5, 4)


def test_traced_indices_choose_from_a_constant():
    table = np.array([[1., 2], [3, 4], [5, 6]])
    direct, again = traced(lambda i: table[i], np.array([2, 0, -1], dtype="int32"))
    assert direct.tolist() == again.tolist() == [[5, 6], [1, 2], [5, 6]]


def test_constants_become_inputs_and_draws_stay_draws():
    x = np.ones((1000,))
    with dc.context() as trace:
        dc.set_variable(x, mx.sym.var("x"))
        out = dc.get_symbol(x + np.random.uniform(size=(1000,)) + np.array([1.0]))
    assert out.list_inputs() == ["x", "constant0"]
    assert trace.constants["constant0"].asnumpy().tolist() == [1.0]
    executor = out.bind(mx.cpu(), {"x": x, **trace.constants})
    first, second = (executor.forward()[0].asnumpy().copy() for _ in range(2))
    assert (first != second).mean() > 0.9 and 2 <= first.min() and first.max() <= 3


@pytest.mark.parametrize("read", [lambda x: x.asnumpy(), lambda x: x.sum().item(), lambda x: float(x.sum()), lambda x: bool(x.sum() > 0),
                                  lambda x: x[x > 0],                                   lambda x: onp.asarray(x)])
def test_reading_values_is_refused(read):
    with dc.context():
        x = np.array(X)
        dc.set_variable(x, mx.sym.var("x"))
        with pytest.raises(dc.TraceError, match="values"):
            read(x)


def test_constants_may_be_read():
    with dc.context():
        assert np.array([1., 2]).asnumpy().tolist() == [1, 2]


def test_scopes_of_autograd_are_told_and_everything_is_traced():
    x = np.ones((2,))
    with autograd.record(), dc.context():
        dc.set_variable(x, mx.sym.var("x"))
        assert autograd.is_recording() and autograd.is_training()
        with autograd.pause():
            assert not autograd.is_recording() and not autograd.is_training()
            y = x * 3
        assert autograd.is_training()
        assert dc.get_symbol(y).list_inputs() == ["x"]
    assert not dc.is_deferred_compute() and not autograd.is_recording()
    assert record_of(x + 1) is None


def test_calls_outside_of_a_context_are_refused():
    with pytest.raises(MXNetError, match="set_variable: call it inside of"):
        dc.set_variable(np.ones(1), mx.sym.var("x"))
    with pytest.raises(MXNetError, match="get_symbol: call it inside of"):
        dc.get_symbol(np.ones(1))
    with dc.context(), pytest.raises(MXNetError, match="received 2 arrays and 1 Symbols"):
        dc.set_variable([np.ones(1), np.ones(1)], mx.sym.var("x"))


class Mixed(nn.HybridBlock):
    """A `forward` of its own around layers that have hybrid_forward."""

    def __init__(self):
        super().__init__()
        self.inside = nn.HybridSequential()
        self.inside.add(nn.Dense(6, activation="relu", flatten=False), nn.BatchNorm(axis=-1), nn.Dropout(0.0))
        self.factor = self.params.get("factor", shape=(6,), init="ones")
        self.shift = np.array([1., 2, 3, 4, 5, 6])
        self.calls = mock.Mock()  # whose state is none of the program's

    def forward(self, x, mask=None):
        self.calls()
        y = self.inside(x) * self.factor.data() + self.shift
        if mask is not None:
            y = y * np.expand_dims(mask, -1)
        return y[:, -1], {"none": None}.get("none"), [y.sum(axis=1)]


def mixed(hybridize):
    mx.random.seed(4)
    net = Mixed()
    net.initialize(mx.init.Constant(0.25))
    if hybridize:
        net.hybridize()
    return net


def gradients(net, x, mask):
    with autograd.record():
        last, none, (summed,) = net(x, mask)
        error = (last * last).sum() + summed.sum()
    error.backward()
    assert none is None
    return last.asnumpy(), [p.grad().asnumpy() for p in net.collect_params().values() if p.grad_req != "null"], \
        net.inside[1].running_mean.data().asnumpy()


def test_a_forward_of_its_own_is_traced_once_and_computes_the_same():
    x, mask = np.array(X), np.array([[1., 0, 1], [0, 1, 1]])
    plain, graph = mixed(False), mixed(True)
    for a, b in zip(gradients(plain, x, mask), gradients(graph, x, mask)):
        for c, d in zip(a, b):
            onp.testing.assert_allclose(c, d, rtol=1e-5, atol=1e-5)
    graph(x, mask)
    calls = graph.calls.call_count
    graph(x, mask)
    assert graph(np.ones((5, 7, 4)), np.ones((5, 7)))[0].shape == (5, 6)
    assert graph.calls.call_count == calls


def test_parameters_change_after_tracing_and_their_marks_are_gone():
    net = mixed(True)
    x, mask = np.array(X), np.ones((2, 3))
    before = net(x, mask)[0].asnumpy()
    net.factor.set_data(np.full((6,), 2.0))
    shift = onp.arange(1, 7)
    onp.testing.assert_allclose(net(x, mask)[0].asnumpy() - shift, 2 * (before - shift), rtol=1e-5)
    assert record_of(net.inside[1].running_mean.data()) is None or record_of(net.inside[1].running_mean.data()).grad_req == "null"


def test_blocks_of_both_styles_in_one_container_and_in_files(tmp_path):
    class Last(nn.HybridBlock):
        def forward(self, x):
            return x[:, 0] + np.array([10.])

    net = nn.HybridSequential()
    net.add(nn.Dense(3, flatten=False), Last())
    net.initialize(mx.init.One())
    x = np.array(X)
    expected = net(x).asnumpy()
    net.hybridize()
    onp.testing.assert_array_equal(net(x).asnumpy(), expected)
    net.export(str(tmp_path / "net"))
    again = gluon.SymbolBlock.imports(str(tmp_path / "net-symbol.json"), ["data"], str(tmp_path / "net-0000.params"))
    onp.testing.assert_array_equal(again(x).asnumpy(), expected)
    assert any("constant" in name for name in again.collect_params())


def test_what_depends_on_values_runs_step_by_step_after_one_warning():
    class Decides(nn.HybridBlock):
        def forward(self, x):
            return x * 2 if x.sum() > 0 else x

    net = Decides()
    net.hybridize()
    with pytest.warns(UserWarning, match="Decides is hybridized and runs step by step"):
        assert net(np.array([1.0])).item() == 2.0
    assert net(np.array([-1.0])).item() == -1.0


def test_numbers_among_the_arguments_are_for_python():
    class Scaled(nn.HybridBlock):
        def forward(self, x, times):
            return x * times

    net = Scaled()
    net.hybridize()
    with pytest.warns(UserWarning, match="runs step by step"):
        assert net(np.array([1.0]), 3).item() == 3.0
    assert net(np.array([1.0]), 4).item() == 4.0


def test_infer_shape_of_a_subclass_is_asked():
    class Affine(nn.HybridBlock):
        def __init__(self):
            super().__init__()
            self.weight = self.params.get("weight", shape=(0, 2), init="ones", allow_deferred_init=True)

        def infer_shape(self, x):
            self.weight.shape = (x.shape[-1], 2)

        def forward(self, x):
            return np.dot(x, self.weight.data())

    net = Affine()
    net.initialize()
    net.hybridize()
    assert net(np.ones((3, 5))).asnumpy().tolist() == [[5, 5]] * 3


def test_classic_arrays_keep_the_forward_of_mxnet_1():
    """MXNet 1.9.1 runs an overridden `forward` step by step, whatever hybridize() says; programs count on that."""
    npx.reset_np()

    class Counts(nn.HybridBlock):
        calls = 0

        def forward(self, x):
            Counts.calls += 1
            return x * float(x.sum().asscalar())

    net = Counts()
    net.hybridize()
    assert [net(mx.nd.array([2.0])).asscalar() for _ in range(3)] == [4.0] * 3
    assert Counts.calls == 3


def test_parameters_that_are_attributes_belong_to_the_block():
    class Affine(nn.HybridBlock):
        def __init__(self):
            super().__init__()
            self.scale = gluon.Parameter("scale", shape=(4,), init="ones")
            self.shift = gluon.Parameter(shape=(4,), init="zeros")
            self.offset = gluon.Constant(np.array([1., 2, 3, 4]))

        def forward(self, x):
            return x * self.scale.data() + self.shift.data() + self.offset.data()

    net = nn.HybridSequential(prefix="net_")
    with net.name_scope():
        net.add(Affine(), Affine())
    net.initialize()
    net.hybridize()
    assert net(np.ones((2, 4))).asnumpy().tolist() == [[3, 5, 7, 9]] * 2
    assert list(net.collect_params()) == [f"net_affine{i}_{name}" for i in (0, 1) for name in ("scale", "shift", "offset")]
    shared = Affine()
    shared.again = net[0].scale
    assert net[0].scale.name == "net_affine0_scale" and shared.collect_params()["net_affine0_scale"] is net[0].scale


def test_classic_blocks_leave_parameters_that_are_attributes_alone():
    """MXNet 1.9.1's collect_params() has those of `self.params` only."""
    npx.reset_np()

    class Holds(nn.HybridBlock):
        def __init__(self):
            super().__init__()
            self.scale = gluon.Parameter("scale", shape=(4,))

    assert list(Holds().collect_params()) == []
