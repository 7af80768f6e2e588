import threading

import pytest

import mxnet as mx


def test_numbers_run_by_hint():
    manager = mx.name.NameManager()
    assert [manager.get(None, "fc"), manager.get(None, "fc"), manager.get(None, "act"), manager.get("own", "fc"), manager.get(None, "fc")] == \
        ["fc0", "fc1", "act0", "own", "fc2"]


def test_scopes():
    with mx.name.NameManager():
        with mx.name.Prefix("a_") as outer:
            assert mx.name.current() is outer
            with mx.name.Prefix("b_"):
                assert mx.sym.relu(mx.sym.var("x")).name == "b_relu0"
            assert mx.sym.relu(mx.sym.var("x"), name="r").name == "a_r"
            with outer:
                assert mx.name.current() is outer
            assert mx.name.current() is outer
        assert mx.sym.relu(mx.sym.var("x")).name == "relu0"


def test_class_attribute():
    before = mx.name.NameManager._current.value
    mine = mx.name.NameManager()
    mx.name.NameManager.current = mine
    try:
        with pytest.warns(DeprecationWarning, match="with mx.name.NameManager"):
            assert mx.name.NameManager.current is mine
    finally:
        mx.name.NameManager.current = before


def test_threads_have_managers_of_their_own():
    seen = []
    with mx.name.Prefix("main_"):
        thread = threading.Thread(target=lambda: seen.append(mx.name.current().get(None, "x")))
        thread.start()
        thread.join()
    assert seen == ["x0"]
