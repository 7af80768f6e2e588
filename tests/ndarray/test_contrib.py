"""mx.nd.contrib: loops and branches over arrays, and what has no operator of its own."""
import numpy as np
import pytest

import mxnet as mx
from mxnet import nd
from mxnet.ndarray import contrib


def test_foreach_is_recorded():
    x, s, w = nd.array([[1, 2], [3, 4], [5, 6]]), nd.array([1, -1]), nd.array([2, 3])
    for a in (x, s, w):
        a.attach_grad()
    with mx.autograd.record():
        out, state = contrib.foreach(lambda row, state: (row * (w * 2) + state, state * w + row), x, s)
        total = out.sum() + state.sum()
    total.backward()
    assert out.asnumpy().tolist() == [[5, 11], [15, 23], [29, 37]] and state.asnumpy().tolist() == [23, 9]
    assert [a.grad.asnumpy().tolist() for a in (x, s, w)] == [[[11, 19], [7, 10], [5, 7]], [15, 40], [43, 8]]


def test_foreach_keeps_structures():
    outs, states = contrib.foreach(lambda rows, s: ([rows[0], [rows[1] * 2]], [s[0] + 1, [s[1][0]]]), [nd.ones((2, 1)), nd.ones((2, 3))],
                                   [nd.zeros((1,)), [nd.zeros((2,))]])
    assert outs[0].shape == (2, 1) and outs[1][0].asnumpy().tolist() == [[2] * 3] * 2
    assert states[0].asscalar() == 2 and states[1][0].shape == (2,)
    with pytest.raises(AssertionError, match="data should be an NDArray"):
        contrib.foreach(lambda r, s: (r, s), 3, nd.ones((1,)))


def test_while_loop():
    outs, (i, s) = contrib.while_loop(lambda i, s: i <= 3, lambda i, s: ([i + s], [i + 1, s + i]), [nd.array([1]), nd.array([2])], max_iterations=5)
    assert outs[0].shape == (5, 1) and outs[0].asnumpy()[:3].ravel().tolist() == [3, 5, 8]
    assert (i.asscalar(), s.asscalar()) == (4, 8)
    outs, last = contrib.while_loop(lambda i: i < 0, lambda i: (i, i), nd.array([1]), max_iterations=5)
    assert outs == [] and last.asscalar() == 1


@pytest.mark.parametrize("func, more, match", [
    (lambda i: (i, i), {}, "max_iterations should be specified"),
    (lambda i: (i, i), {"max_iterations": "many"}, "Cannot convert max_iteration to python int"),
    (lambda i: (i, [i, i]), {"max_iterations": 3}, "as many loop_vars as it receives, 1; received 2"),
    (lambda i: (nd.ones((int(i.asscalar()),)), [i + 1]), {"max_iterations": 3},
     r"output 1 must have the same shape.*\n  Step 0, shape is \(1,\)\n  Step 1, shape is \(2,\)"),
])
def test_mistakes_in_while_loop(func, more, match):
    with pytest.raises(ValueError, match=match):
        contrib.while_loop(lambda i: i < 5, func, nd.array([1]), **more)


def test_cond():
    a = nd.array([3.])
    a.attach_grad()
    with mx.autograd.record():
        b = contrib.cond(a < 5, lambda: a * a, lambda: a)
    b.backward()
    assert b.asscalar() == 9 and a.grad.asscalar() == 6
    with pytest.raises(ValueError, match="Cannot convert pred to python bool"):
        contrib.cond(nd.ones((2,)), lambda: a, lambda: a)


def test_what_is_finite():
    x = nd.array([1, np.inf, -np.inf, np.nan])
    assert contrib.isinf(x).asnumpy().tolist() == [0, 1, 1, 0]
    assert contrib.isnan(x).asnumpy().tolist() == [0, 0, 0, 1]
    assert contrib.isfinite(x).asnumpy().tolist() == [1, 0, 0, 0]


def test_rand_zipfian():
    samples, true_count, count = contrib.rand_zipfian(nd.array([3]), 1000, 5)
    np.testing.assert_allclose(true_count.asnumpy(), [124.53879], rtol=1e-6)
    drawn = samples.asnumpy()
    assert drawn.dtype == np.int64 and drawn.min() == 0 and drawn.max() == 4
    assert abs((drawn == 0).mean() - np.log(2) / np.log(6)) < 0.08
    assert count.dtype == np.float64


def test_adamw_takes_a_number_or_an_array():
    for scale in (1.0, nd.array([1.0])):
        w, m, v = nd.array([1.]), nd.zeros((1,)), nd.zeros((1,))
        contrib.adamw_update(w, nd.array([0.5]), m, v, scale, lr=0.1, eta=1, out=w)
        np.testing.assert_allclose([w.asscalar(), m.asscalar(), v.asscalar()], [0.6837723, 0.05, 0.00025], rtol=1e-5)


def test_backward_functions_give_the_gradients_of_inputs():
    assert contrib.backward_gradientmultiplier(nd.array([1, 2]), scalar=3).asnumpy().tolist() == [3, 6]
    g, = contrib.backward_quadratic(nd.array([1, 2]), nd.array([3, 4]), a=1, b=2, c=5)
    assert g.asnumpy().tolist() == [8, 20]
    out = nd.zeros((2,))
    assert contrib.backward_quadratic(nd.array([1, 2]), nd.array([3, 4]), a=1, b=2, c=5, out=out) is out and out.asnumpy().tolist() == [8, 20]
    old, _, new = contrib.backward_index_copy(nd.array([[1, 2], [3, 4]]), nd.zeros((2, 2)), nd.array([1], dtype="int32"), nd.ones((1, 2)))
    assert old.asnumpy().tolist() == [[1, 2], [0, 0]] and new.asnumpy().tolist() == [[3, 4]]
    with pytest.raises(mx.MXNetError, match="backward_quadratic takes NDArrays: 1 for the gradients of the outputs, then the inputs"):
        contrib.backward_quadratic(nd.array([1, 2]), a=1)


def test_symbols_of_gradients_say_what_to_do():
    assert mx.sym.contrib.backward_gradientmultiplier(mx.sym.var("x"), scalar=2).eval(x=nd.array([3]))[0].asscalar() == 6
    with pytest.raises(mx.MXNetError, match="bind the graph and call backward"):
        mx.sym.contrib.backward_quadratic(mx.sym.var("g"), mx.sym.var("x"))


def test_gradients_of_another_shape_than_the_results():
    with pytest.raises(mx.MXNetError, match=r"_contrib_quadratic: a gradient has shape \(2, 2\), the array that it belongs to has \(2, 4\)"):
        mx.nd.contrib.backward_quadratic(mx.nd.ones((2, 2)), mx.nd.ones((2, 4)))
