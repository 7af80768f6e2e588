import numpy as np
import pytest

import mxnet as mx
from mxnet import nd, sym


@pytest.mark.parametrize("make, error, match", [
    (lambda x: sym.contrib.foreach(lambda r, s: (s, s), x, sym.var("s")), AssertionError, "each data array must take part"),
    (lambda x: sym.contrib.foreach(lambda r, s: (r, r), x, sym.var("s")), AssertionError, "each state array must take part"),
    (lambda x: sym.contrib.foreach(lambda r, s: (r, [s]), x, sym.var("s")), AssertionError, "the structure in which it receives them"),
    (lambda x: sym.contrib.foreach(lambda r, s: (3, s), x, sym.var("s")), AssertionError, "output should be a Symbol.*received 3 of type int"),
    (lambda x: sym.contrib.while_loop(lambda i: i, lambda i: (i, i), x), ValueError, "max_iterations should be specified"),
    (lambda x: sym.contrib.while_loop(lambda i: i, lambda i: (i, [i, i]), x, 3), ValueError, "as many loop_vars as it receives, 1; received 2"),
    (lambda x: sym.contrib.while_loop(lambda i, j: i, lambda i, j: (i, [i, i]), [x, sym.var("j")], 3), ValueError, "loop_var 2 has no influence"),
    (lambda x: sym.contrib.cond(x, lambda: [x, x], lambda: x), ValueError, "equally many outputs expected, received 2 and 1"),
])
def test_mistakes(make, error, match):
    with pytest.raises(error, match=match):
        make(sym.var("x"))


def test_rand_zipfian():
    samples, true_count, count = sym.contrib.rand_zipfian(sym.var("x"), 4, 5)
    got = sym.Group([samples, true_count, count]).eval(x=nd.array([3]))
    assert got[0].dtype == np.int64 and got[0].shape == (4,) and got[0].asnumpy().max() < 5
    np.testing.assert_allclose(got[1].asnumpy(), [0.49815515], rtol=1e-6)
    classes = got[0].asnumpy().astype("float64")
    np.testing.assert_allclose(got[2].asnumpy(), np.log((classes + 2) / (classes + 1)) / np.log(6) * 4, rtol=1e-9)


def test_gradients_of_operators_say_what_to_call_instead():
    for name in ("hawkesll", "index_copy", "quadratic"):
        with pytest.raises(mx.MXNetError, match=rf"^backward_{name}: .* call backward\(\), or use mx.nd.contrib.backward_{name} on arrays"):
            getattr(sym.contrib, f"backward_{name}")(sym.var("x"))


def test_adamw_takes_the_scale_as_a_symbol_or_a_number():
    w, g, m, v = map(sym.var, "wgmv")
    for scale, more in ((2.0, {}), (sym.var("scale"), {"scale": nd.array([2.0])})):
        symbol = sym.contrib.adamw_update(w, g, m, v, scale, lr=0.1, eta=1.0)
        assert symbol.list_auxiliary_states() == ["m", "v"]
        given = {"w": nd.array([1.0]), "g": nd.array([0.5]), **more}
        moments = {"m": nd.array([0.1]), "v": nd.array([0.2])}
        found, = symbol.bind(mx.cpu(), given, aux_states=moments).forward()
        # m = 0.9 * 0.1 + 0.1 * 1, v = 0.999 * 0.2 + 0.001 * 1; w = 1 - 0.1 * m / sqrt(v)
        np.testing.assert_allclose([a.asscalar() for a in (found, moments["m"], moments["v"])], [0.9576, 0.19, 0.2008], rtol=1e-5)


def test_operators_of_contrib_are_found_without_their_prefix():
    node = sym.contrib.quadratic(sym.var("x"), a=1, b=2, c=3).handle[0][0]
    assert (node.op.name, node.attrs) == ("_contrib_quadratic", {"a": "1", "b": "2", "c": "3"})
    assert "quadratic" in dir(sym.contrib)
    with pytest.raises(AttributeError, match="nothing_of_the_kind"):
        sym.contrib.nothing_of_the_kind
