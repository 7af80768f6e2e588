"""Dictionaries of parameters."""
import numpy as np
import pytest

import mxnet as mx
from mxnet.gluon import ParameterDict

TWO = [mx.cpu(0), mx.cpu(1)]


def test_dict_get():
    d = ParameterDict("net_")
    w = d.get("w", shape=(0, 3))
    assert w.name == "net_w" and d.get("w", shape=(2, 0)) is w and w.shape == (2, 3)
    assert d.get("w", dtype=np.float32) is w
    with pytest.raises(AssertionError, match=r"'net_w': it exists with another shape: \(2, 3\), requested \(5, 3\)"):
        d.get("w", shape=(5, 3))
    shared = ParameterDict("net_", d)
    assert shared.get("w") is w
    assert list(d) == ["net_w"] and d["net_w"] is w and "net_w" in d
    assert repr(d) == "net_ (\n  Parameter net_w (shape=(2, 3), dtype=<class 'numpy.float32'>)\n)"
    assert repr(ParameterDict()) == "(\n\n)"
    assert bool(ParameterDict())  # as in MXNet, an empty one is true


def test_dict_constants():
    d = ParameterDict()
    c = d.get_constant("c", [1, 2])
    assert d.get_constant("c") is c and d.get_constant("c", mx.nd.array([1, 2])) is c
    with pytest.raises(AssertionError, match="already exists but its value doesn't match"):
        d.get_constant("c", [1, 3])
    with pytest.raises(KeyError, match="no constant named 'k'; to make one, pass its value"):
        d.get_constant("k")
    d.get("p", shape=(1,))
    with pytest.raises(AssertionError, match="is an ordinary Parameter: call get"):
        d.get_constant("p", [1])


def test_dict_update():
    a, b = ParameterDict(), ParameterDict()
    w = a.get("w")
    b.update(a)
    assert b["w"] is w
    other = ParameterDict()
    other.get("w")
    with pytest.raises(AssertionError, match="each of the two has a Parameter of its own named 'w'"):
        a.update(other)


def test_dict_save_and_load(tmp_path):
    path = str(tmp_path / "x.params")
    d = ParameterDict("net_")
    d.get("w", shape=(2,), init="ones")
    d.get("b", shape=(1,), init="zeros")
    d.initialize(ctx=TWO)
    d.save(path, strip_prefix="net_")
    assert sorted(mx.nd.load(path)) == ["b", "w"]
    e = ParameterDict("net_")
    e.get("w", shape=(2,))
    with pytest.raises(AssertionError, match=r"x.params has 'b', but there is no such Parameter here, only 'net_w'"):
        e.load(path, restore_prefix="net_")
    e.load(path, mx.cpu(1), ignore_extra=True, restore_prefix="net_")
    assert e["net_w"].data().asnumpy().tolist() == [1, 1] and e.list_ctx() == [mx.cpu(1)]
    e.get("more", shape=(1,))
    with pytest.raises(AssertionError, match="lacks Parameter 'more', it has 'net_"):
        e.load(path, ignore_extra=True, restore_prefix="net_")
    with pytest.raises(AssertionError, match="restore_prefix is 'x_' but Parameters name 'net_w' does not start with"):
        e.load(path, restore_prefix="x_")
    with pytest.raises(ValueError, match="strip_prefix='x_' does not fit Parameter 'net_w'"):
        d.save(path, strip_prefix="x_")


def test_load_dict_takes_checkpoint_names():
    d = ParameterDict()
    d.get("w", shape=(1,))
    d.get("mean", shape=(1,))
    d.load_dict({"arg:w": mx.nd.array([1]), "aux:mean": mx.nd.array([2])})
    assert (d["w"].data().asscalar(), d["mean"].data().asscalar()) == (1, 2)
    with pytest.raises(mx.MXNetError, match="param_dict has 'x', but there is no such Parameter"):
        d.load_dict({"x": mx.nd.array([1])}, allow_missing=True)


def test_dict_setattr_zero_grad_reset_ctx():
    d = ParameterDict()
    d.get("w", shape=(1,), init="ones")
    d.get("c", shape=(1,), grad_req="null")
    d.initialize()
    with mx.autograd.record():
        y = d["w"].data() * 2
    y.backward()
    d.zero_grad()
    assert d["w"].grad().asscalar() == 0
    d.setattr("lr_mult", 0.5)
    assert d["c"].lr_mult == 0.5
    d.reset_ctx(mx.cpu(1))
    assert d.list_ctx() == [mx.cpu(1)]
