import json

import numpy as np
import pytest

import mxnet as mx
from mxnet import sym


@pytest.mark.parametrize("make, values", [
    (lambda: sym.zeros((2,)), [0, 0]), (lambda: sym.ones((1, 2), dtype="int32"), [[1, 1]]), (lambda: sym.full((2,), 7), [7, 7]),
    (lambda: sym.eye(2, 3, 1), [[0, 1, 0], [0, 0, 1]]), (lambda: sym.arange(2, 8, 3), [2, 5]), (lambda: sym.arange(3), [0, 1, 2]),
    (lambda: sym.arange(2, repeat=2), [0, 0, 1, 1]), (lambda: sym.linspace(0, 1, 3), [0, 0.5, 1]),
    (lambda: sym.linspace(0, 1, 2, endpoint=False), [0, 0.5])])
def test_sources(make, values):
    found = make().eval()[0]
    assert found.asnumpy().tolist() == values and found.dtype == (np.int32 if "int32" in str(make().tojson()) else np.float32)


def test_an_open_range_is_as_long_as_what_it_is_added_to():
    out = sym.arange(1, step=2, infer_range=True) + sym.var("x")
    assert out.eval(x=mx.nd.zeros((3,)))[0].asnumpy().tolist() == [1, 3, 5]


def test_histogram():
    x = mx.nd.array([0.5, 1.5, 1.7, 2.5])
    counts, edges = sym.histogram(sym.var("x"), bins=3, range=(0, 3)).eval(x=x)
    assert counts.asnumpy().tolist() == [1, 2, 1] and edges.asnumpy().tolist() == [0, 1, 2, 3]
    counts, edges = sym.histogram(sym.var("x"), bins=sym.var("edges")).eval(x=x, edges=mx.nd.array([0, 2, 3]))
    assert counts.asnumpy().tolist() == [3, 1] and edges.asnumpy().tolist() == [0, 2, 3]
    with pytest.raises(ValueError, match="bins"):
        sym.histogram(sym.var("x"), bins="auto")
    with pytest.raises(ValueError, match="range"):
        sym.histogram(sym.var("x"), bins=3)


def test_split_v2():
    x = mx.nd.array([[1, 2, 3], [4, 5, 6]])
    parts = sym.split_v2(sym.var("x"), (1,), axis=1).eval(x=x)
    assert [p.asnumpy().tolist() for p in parts] == [[[1], [4]], [[2, 3], [5, 6]]]
    parts = sym.split_v2(sym.var("x"), 2, squeeze_axis=True).eval(x=x)
    assert [p.asnumpy().tolist() for p in parts] == [[1, 2, 3], [4, 5, 6]]
    with pytest.raises(ValueError, match="indices_or_sections"):
        sym.split_v2(sym.var("x"), 0.5)


def test_reading(tmp_path):
    symbol = sym.exp(sym.var("x"), name="e")
    symbol.save(str(tmp_path / "s.json"))
    assert sym.load(str(tmp_path / "s.json")).tojson() == sym.load_json(symbol.tojson()).tojson() == symbol.tojson()
    assert [n["name"] for n in json.loads(symbol.tojson())["nodes"]] == ["x", "e"]
    for function in (sym.load, sym.load_json):
        with pytest.raises(TypeError, match="string"):
            function(3)
    with pytest.raises(mx.MXNetError, match="nothing.json"):
        sym.load(str(tmp_path / "nothing.json"))
