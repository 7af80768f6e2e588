import threading

import pytest

import mxnet as mx
from mxnet import util


@pytest.fixture(autouse=True)
def legacy_afterwards():
    yield
    util.reset_np()


def in_thread(function):
    seen = []
    thread = threading.Thread(target=lambda: seen.append(function()))
    thread.start()
    thread.join()
    return seen[0]


def test_np_shape_scope():
    assert not mx.is_np_shape()
    with mx.np_shape():
        assert mx.is_np_shape() and util.np_shape_level() == 1
        with mx.np_shape(False):
            assert not mx.is_np_shape()
        with mx.np_shape(None):
            assert mx.is_np_shape()
        assert not in_thread(mx.is_np_shape)
    assert not mx.is_np_shape() and util.np_shape_level() == 0


def test_set_np_shape():
    assert util.set_np_shape(True) is False
    assert util.set_np_shape(True) is True
    assert util.set_np_shape(2) is True
    assert util.np_shape_level() == 2 and in_thread(mx.is_np_shape)
    assert util.set_np_shape(0) is True
    assert not mx.is_np_shape() and not in_thread(mx.is_np_shape)
    with pytest.raises(ValueError, match="expected False, True or 2"):
        util.set_np_shape(3)


def test_np_array_scope():
    with mx.np_array():
        assert mx.is_np_array()
        assert not in_thread(mx.is_np_array)
        with mx.np_array(False):
            assert not mx.is_np_array()
        assert mx.is_np_array()
    assert not mx.is_np_array()


def test_set_np():
    util.set_np()
    assert mx.is_np_array() and mx.is_np_shape()
    with pytest.raises(ValueError, match="can't be deactivated while NumPy array semantics is active"):
        util.set_np_shape(False)
    util.reset_np()
    assert not mx.is_np_array() and not mx.is_np_shape()
    with pytest.raises(ValueError, match="needs NumPy shape semantics"):
        util.set_np(shape=False, array=True)


@pytest.mark.parametrize("decorator, expected", [(util.use_np_shape, (True, False)), (util.use_np_array, (False, True)), (util.use_np, (True, True))])
def test_decorators(decorator, expected):
    @decorator
    def function(x, y=1):
        """Its text."""
        return mx.is_np_shape(), mx.is_np_array()

    @decorator
    class Class:
        def method(self):
            return function(1)

        @property
        def flags(self):
            return mx.is_np_shape(), mx.is_np_array()

        @flags.setter
        def flags(self, value):
            self.set_to = value

    assert function(1) == expected and function.__doc__ == "Its text."
    item = Class()
    assert item.method() == expected and item.flags == expected
    item.flags = 5
    assert item.set_to == 5
    assert (mx.is_np_shape(), mx.is_np_array()) == (False, False)
    with pytest.raises(TypeError, match="decorates classes and callables"):
        decorator(3)


def test_set_module():
    @util.set_module("mxnet.numpy")
    def f():
        pass

    @util.set_module(None)
    def g():
        pass

    assert f.__module__ == "mxnet.numpy" and g.__module__ == __name__


@pytest.mark.parametrize("key, value, legal", [
    ("where", 3, True), ("casting", "safe", True), ("casting", "x", False), ("order", "C", True), ("order", 1, False), ("dtype", "int8", True),
    ("dtype", "int16", False), ("subok", False, True), ("subok", 1, False), ("axis", 0, False)])
def test_ufunc_options(key, value, legal):
    import numpy as np
    assert util.np_ufunc_legal_option(key, value) is legal
    assert util.np_ufunc_legal_option("dtype", np.float32)


def test_ufunc_wrappers():
    @util.wrap_np_unary_func
    def negate(x, out=None):
        return -x

    @util.wrap_np_binary_func
    def add(x1, x2, out=None):
        return x1 + x2

    assert negate(2, where=True) == -2 and add(1, 2, order="K") == 3
    with pytest.raises(TypeError, match="axis is an invalid keyword to function 'negate'"):
        negate(1, axis=0)
    with pytest.raises(NotImplementedError, match="negate: order must be left at its default, received C"):
        negate(1, order="C")
    with pytest.raises(TypeError, match="casting=odd not understood for operator add"):
        add(1, 2, casting="odd")


def test_environment_variables(monkeypatch):
    monkeypatch.delenv("MXNET_X", raising=False)
    assert util.getenv("MXNET_X") is None
    util.setenv("MXNET_X", 3)
    assert util.getenv("MXNET_X") == "3"
    util.setenv("MXNET_X", None)
    util.setenv("MXNET_X", None)
    assert util.getenv("MXNET_X") is None


def test_makedirs(tmp_path):
    util.makedirs(str(tmp_path / "a" / "b"))
    util.makedirs(str(tmp_path / "a" / "b"))
    assert (tmp_path / "a" / "b").is_dir()


def test_compute_capability_is_of_gpus():
    with pytest.raises(ValueError, match=r"expected a gpu context .* received cpu\(0\)"):
        util.get_cuda_compute_capability(mx.cpu())
    import torch
    assert util.get_gpu_count() == torch.cuda.device_count()


def test_a_scope_that_a_program_puts_in_place(monkeypatch):
    scopes, seen = util._NumpyArrayScope, []
    monkeypatch.setattr(scopes, "_current", scopes(True))
    assert not util.is_np_array()  # as in MXNet: what counts is its `value`
    with util.np_array(True):
        seen.append(util.is_np_array())
    with util.np_shape(True):
        seen.append(mx.np.ones(()).shape)
    assert seen == [True, ()] and not util.is_np_array()


def test_set_version():
    import threading
    assert util.version() == "1.9" and util.set_version("2.0") == "1.9"
    seen = []

    def look():
        seen.append((util.is_np_array(), util.is_np_shape(), util.version()))

    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    look()
    util.reset_np()
    look()
    assert seen == [(True, True, "2.0")] * 2 + [(False, False, "2.0")]  # NumPy semantics can still be switched off
    assert util.set_version("1.9") == "2.0"
    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    assert seen[-1] == (False, False, "1.9")
    with pytest.raises(ValueError, match="one of 1.9, 2.0 expected, received '3'"):
        util.set_version("3")
