import pytest

import mxnet as mx
from mxnet import npx
from mxnet.symbol.numpy import _Symbol


@pytest.fixture(autouse=True)
def numpy_semantics():
    npx.set_np()
    mx.random.seed(3)
    yield
    npx.reset_np()


def test_graphs_draw_anew_each_time():
    drawn = mx.sym.np.random.uniform(2, 4, size=(50,))
    assert type(drawn) is _Symbol
    first, second = drawn.eval()[0].asnumpy(), drawn.eval()[0].asnumpy()
    assert first.shape == (50,) and (2 <= first).all() and (first < 4).all() and (first != second).any()


def test_parameters_may_be_symbols():
    x = mx.sym.var("x").as_np_ndarray()
    found = mx.sym.np.random.normal(x, 0.001, size=(2,)).eval(x=mx.np.array([5.0, -5.0]))[0]
    assert found.asnumpy().tolist() == pytest.approx([5, -5], abs=0.02)


def test_a_symbol_is_not_changed_in_place():
    x = mx.sym.var("x").as_np_ndarray()
    source = mx.np.arange(30)
    found = mx.sym.np.random.shuffle(x).eval(x=source)[0].asnumpy().tolist()
    assert sorted(found) == list(range(30)) != found and source.asnumpy().tolist() == list(range(30))
