import threading

import pytest

import mxnet as mx


def test_scopes_add_up():
    with mx.AttrScope(a="1", b="2"):
        with mx.AttrScope(b="3"):
            assert mx.attribute.current().get({"c": "4"}) == {"a": "1", "b": "3", "c": "4"}
            assert mx.attribute.current().get({"a": "9"}) == {"a": "9", "b": "3"}
        assert mx.attribute.current().get(None) == {"a": "1", "b": "2"}
    assert mx.attribute.current().get(None) == {}


def test_what_get_returns_may_be_changed():
    scope = mx.AttrScope(a="1")
    scope.get(None)["a"] = "2"
    assert scope.get(None) == {"a": "1"}


def test_symbols_receive_them():
    with mx.AttrScope(ctx_group="dev1"):
        net = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=2, name="fc")
    assert net.attr("ctx_group") == "dev1"


def test_values_are_strings():
    with pytest.raises(ValueError, match="attributes need to be strings, received lr_mult=2"):
        mx.AttrScope(lr_mult=2)


def test_class_attribute_and_threads():
    before = mx.attribute.current()
    with pytest.warns(DeprecationWarning, match="with mx.AttrScope"):
        mx.AttrScope.current = mx.AttrScope(x="hello")
    seen = []
    thread = threading.Thread(target=lambda: seen.append(mx.attribute.current().get(None)))
    thread.start()
    thread.join()
    with pytest.warns(DeprecationWarning):
        assert mx.AttrScope.current.get(None) == {"x": "hello"}
        mx.AttrScope.current = before
    assert seen == [{}]
