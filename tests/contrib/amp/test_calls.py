"""What the functions of mx.nd and mx.sym do while AMP is on. Types and graphs are MXNet 1.9.1's, on a GPU where the two differ."""
import json
import logging

import numpy as np
import pytest

import mxnet as mx
from amp_state import switch_off
from mxnet.contrib.amp import amp

ORIGINAL = mx.nd.NDArray.__add__, mx.nd.add, mx.nd.FullyConnected, mx.sym.FullyConnected


@pytest.fixture
def on(request):
    """Switches AMP on, and off after the test."""
    def switch(*args, **kwargs):
        amp.init(*args, **kwargs)
    with mx.name.NameManager():
        yield switch
    switch_off()


def kind(array):
    return np.dtype(array.dtype).name if array.dtype != amp.bfloat16 else "bfloat16"


def nodes(symbol):
    rows = json.loads(symbol.tojson(remove_amp_cast=False))["nodes"]
    return [(row["op"], row["name"], [i for i, _, _ in row["inputs"]]) for row in rows]


@pytest.mark.parametrize("low", ["float16", "bfloat16"])
class TestArrays:
    def test_low_precision(self, on, low):
        on(low)
        x = mx.nd.array([[1, 2], [3, 4]])
        y = mx.nd.FullyConnected(x, x / 3, num_hidden=2, no_bias=True)
        assert kind(y) == low
        expected = [[1.671875, 3.671875], [3.671875, 8.375]] if low == "bfloat16" else [[1.666992, 3.666016], [3.666016, 8.335938]]
        assert mx.nd.amp_cast(y, dtype="float32").asnumpy() == pytest.approx(np.array(expected), rel=1e-3)

    def test_by_name(self, on, low):
        on(low)
        x = mx.nd.ones((2, 2))
        assert kind(mx.nd.FullyConnected(data=x, weight=x, num_hidden=2, no_bias=True)) == low

    def test_float32(self, on, low):
        on(low)
        x = mx.nd.ones((2, 2)).astype(low)
        assert [kind(y) for y in (mx.nd.exp(x), x.exp(), mx.nd.softmax(x), x.sum(), mx.nd.linalg.gemm2(x, x), mx.nd.contrib.fft(x))] \
            == ["float32"] * 6

    def test_powers(self, on, low):
        on(low)
        x = mx.nd.array([[3.]]).astype(low)
        assert [kind(y) for y in (x ** 2, 2 ** x, x ** x, 1 / x, mx.nd.power(x, 2), mx.nd.power(2, x))] == ["float32"] * 6
        assert [y.asscalar() for y in (x ** 2, 2 ** x, mx.nd.power(2, x))] == [9, 8, 8]

    def test_widest(self, on, low):
        on(low)
        x = mx.nd.ones((2, 2))
        h = x.astype(low)
        assert [kind(y) for y in (x + h, h + x, h - x, mx.nd.add(h, x), mx.nd.dot(h, x), mx.nd.stack(x, h), mx.nd.where(x, h, x), h > x,
                                  mx.nd.maximum(h, x))] == ["float32"] * 9
        assert [kind(y) for y in (h + h, mx.nd.dot(h, h), h - h)] == [low] * 3

    def test_conditional(self, on, low):
        on(low)
        h = mx.nd.ones((2, 2)).astype(low)
        assert kind(mx.nd.Activation(h, act_type="softrelu")) == kind(mx.nd.Activation(h, "softrelu")) == "float32"
        assert kind(mx.nd.Activation(h, act_type="relu")) == low

    def test_other_types_are_left_alone(self, on, low):
        on(low)
        x = mx.nd.ones((2,), dtype="float64")
        assert [kind(y) for y in (x.exp(), x + x, mx.nd.ones((2,), dtype="int32") + mx.nd.ones((2,), dtype="int32"))] \
            == ["float64", "float64", "int32"]

    def test_out_keeps_its_type(self, on, low):
        on(low)
        x, out = mx.nd.ones((2, 2)), mx.nd.zeros((2, 2))
        mx.nd.FullyConnected(x, x, num_hidden=2, no_bias=True, out=out)
        assert kind(out) == "float32" and out.asnumpy().tolist() == [[2, 2], [2, 2]]

    def test_gradient_is_float32(self, on, low):
        on(low)
        x, w = mx.nd.array([[1, 2]]), mx.nd.array([[3, 4]])
        w.attach_grad()
        with mx.autograd.record():
            y = mx.nd.FullyConnected(x, w, num_hidden=1, no_bias=True)
        y.backward()
        assert kind(w.grad) == "float32" and w.grad.asnumpy().tolist() == [[1, 2]]

    def test_sparse_arrays_stay_sparse(self, on, low):
        on(low)
        x = mx.nd.array([[0, 2.]]).tostype("csr")
        assert [y.stype for y in (x + x, mx.nd.sparse.square(x), x * 2)] == ["csr"] * 3
        assert mx.nd.sparse.square(x).asnumpy().tolist() == [[0, 4]]


def test_concat_of_a_list(on):
    on()
    x = mx.nd.ones((1, 2))
    assert kind(mx.nd.concat([x, x.astype("float16")], dim=0)) == "float32"


def test_symbols(on):
    on()
    s = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=4, name="fc")
    z = mx.sym.softmax(s.exp() + mx.sym.BatchNorm(s, name="bn"), name="out")
    assert nodes(z) == [
        ("null", "data", []), ("amp_cast", "amp_cast0", [0]), ("null", "fc_weight", []), ("amp_cast", "amp_cast1", [2]),
        ("null", "fc_bias", []), ("amp_cast", "amp_cast2", [4]), ("FullyConnected", "fc", [1, 3, 5]),
        ("amp_cast", "amp_cast3", [6]), ("exp", "exp0", [7]),
        ("null", "bn_gamma", []), ("null", "bn_beta", []), ("null", "bn_moving_mean", []), ("null", "bn_moving_var", []),
        ("BatchNorm", "bn", [6, 9, 10, 11, 12]), ("amp_multicast", "amp_multicast0", [8, 13]), ("elemwise_add", "_plus0", [14, 14]),
        ("amp_cast", "amp_cast4", [15]), ("softmax", "out", [16])]
    assert [z.get_internals()[f"amp_cast{i}_output"].attr("dtype") for i in (0, 3)] == ["float16", "float32"]
    assert z.list_auxiliary_states() == ["bn_moving_mean", "bn_moving_var"]


def test_auxiliary_states_are_not_cast(on):
    on("bfloat16", target_precision_ops=["BatchNorm"])
    s = mx.sym.BatchNorm(mx.sym.var("data"), name="bn")
    assert [name for op, name, _ in nodes(s) if op == "amp_cast"] == ["amp_cast0"]  # gamma and beta stay float32 too
    assert s.list_auxiliary_states() == ["bn_moving_mean", "bn_moving_var"]
    x, state = mx.nd.ones((2, 3)), [mx.nd.ones((3,)) for _ in range(4)]
    with mx.autograd.train_mode():
        assert kind(mx.nd.BatchNorm(x, *state)) == "bfloat16"
    assert state[2].asnumpy().tolist() == pytest.approx([1, 1, 1]) and state[3].asnumpy().tolist() == pytest.approx([.9] * 3)


def test_conditional_symbols(on):
    on()
    data = mx.sym.var("data")
    assert [op for op, _, _ in nodes(mx.sym.LeakyReLU(data, act_type="elu"))] == ["null", "amp_cast", "LeakyReLU"]
    assert [op for op, _, _ in nodes(mx.sym.LeakyReLU(data, act_type="leaky"))] == ["null", "LeakyReLU"]


def test_symbols_by_name(on):
    on()
    a, b = mx.sym.var("a"), mx.sym.var("b")
    assert [op for op, _, _ in nodes(mx.sym.dot(lhs=a, rhs=b))] == ["null", "null", "amp_multicast", "dot"]


def test_own_lists(on):
    on(target_precision_ops=["dot"], fp32_ops=["relu"], conditional_fp32_ops=[("FullyConnected", "flatten", [False])])
    x = mx.nd.ones((2, 2))
    h = x.astype("float16")
    assert kind(mx.nd.relu(h)) == "float32" and kind(mx.nd.exp(h)) == "float16"
    assert kind(mx.nd.FullyConnected(h, h, num_hidden=2, no_bias=True)) == "float16"
    assert kind(mx.nd.FullyConnected(h, h, num_hidden=2, no_bias=True, flatten=False)) == "float32"


def test_broadcasting_methods_still_add_leading_axes(on):
    on()
    assert mx.nd.ones(3).broadcast_to((2, 3)).shape == mx.nd.ones(3).broadcast_like(mx.nd.zeros((2, 3))).shape == (2, 3)


def test_loss_layers(on, caplog):
    on("bfloat16")
    x = mx.nd.array([[1, 2, 3]])
    x.attach_grad()
    with mx.autograd.record():
        y = mx.nd.SoftmaxOutput(x, mx.nd.array([1]))
    y.backward()
    assert x.grad.asnumpy()[0] == pytest.approx([5900.2436, -49497.476, 43597.232], rel=1e-5)  # 65536 times that without AMP
    with caplog.at_level(logging.WARNING):
        mx.sym.SoftmaxOutput(mx.sym.var("x"), mx.sym.var("y"))
    assert caplog.messages == ["SoftmaxOutput in a graph keeps the loss scale of the moment: a scale that changes later has no effect on it"]


def test_off_again(on):
    on()
    assert mx.nd.NDArray.__add__ is not ORIGINAL[0] and mx.nd.FullyConnected is not ORIGINAL[2]
    switch_off()
    assert (mx.nd.NDArray.__add__, mx.nd.add, mx.nd.FullyConnected, mx.sym.FullyConnected) == ORIGINAL
    x = mx.nd.ones((2, 2))
    assert kind(mx.nd.FullyConnected(x, x, num_hidden=2, no_bias=True)) == "float32"
    assert [op for op, _, _ in nodes(mx.sym.var("a").exp())] == ["null", "exp"]


def test_what_is_cast():
    from mxnet.contrib.amp.amp import _cast_symbol_NDArray as cast
    kinds = [cast(mx.nd.ones(1).astype(t), "float32").dtype for t in ("float32", "float16", "int32")]
    assert kinds == [np.float32, np.float16, np.int32]  # on the CPU AMP computes in bfloat16, not in float16
    low = cast(mx.nd.ones(1), "bfloat16")
    assert str(low._data.dtype) == "torch.bfloat16" and cast(low, "float32").dtype == np.float32 and cast(3, "float32") == 3
    assert cast(mx.sym.var("a"), "float16").tojson(remove_amp_cast=False).count('"amp_cast"') == 1
