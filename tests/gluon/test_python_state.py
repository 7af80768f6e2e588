import argparse
import collections
import copy
import types

import numpy as onp
import pytest

import mxnet as mx
from mxnet.gluon.python_state import PythonState

NUMBER, LIST, ARRAY = 1, [1], mx.nd.ones(1)
MODULE = types.ModuleType("settings_of_a_test")
MODULE.number = 1


class Settings:
    def __init__(self):
        self.number, self.more = 1, [1]


class Callable(Settings):
    factor = 1

    def __call__(self, x):
        return x * FOUND * self.factor


FOUND = 1


def helper():
    return NUMBER + LIST[0]


class Net(mx.gluon.HybridBlock):
    of_the_class = 1

    def forward(self, x):
        return x * self.hidden()

    def hidden(self):
        return helper() + ARRAY + MODULE.number + (lambda: OTHER)()


OTHER = 1


def net(**attributes):
    made = Net()
    made.__dict__.update(attributes)
    return made


def state(block):
    found = PythonState([block], {"_children", "ignored"})
    assert not found.changed()
    return found


@pytest.mark.parametrize("make, change", [
    (lambda: [1], lambda v: v.append(1)), (lambda: [1], lambda v: v.__setitem__(0, 2)), (lambda: [True], lambda v: v.__setitem__(0, 1)),
    (lambda: [[1]], lambda v: v[0].append(2)), (lambda: ([1],), lambda v: v[0].append(2)), (lambda: {"a": 1}, lambda v: v.update(a=2)),
    (lambda: {"a": {"b": 1}}, lambda v: v["a"].update(b=2)), (lambda: {"a": 1}, lambda v: v.update(b=v.pop("a"))), (lambda: {1}, lambda v: v.add(2)),
    (lambda: collections.deque([1]), lambda v: v.append(2)), (lambda: bytearray(b"a"), lambda v: v.append(1)),
    (Settings, lambda v: setattr(v, "number", 2)),
    (Settings, lambda v: v.more.append(2)), (lambda: types.SimpleNamespace(a=1), lambda v: setattr(v, "b", 2)),
    (lambda: argparse.Namespace(a=1), lambda v: setattr(v, "a", 2)), (lambda: onp.ones(3), lambda v: v.__setitem__(0, 2)),
    (lambda: [mx.nd.ones(1)], lambda v: v.__setitem__(0, mx.nd.ones(1))), (Callable, lambda v: setattr(v, "number", 2)),
    (lambda: {"a": onp.ones(1)}, lambda v: v["a"].__setitem__(0, 2)), (lambda: [onp.array(2.)], lambda v: v[0].__setitem__((), 3))])
def test_containers_of_a_block(make, change):
    value = make()
    watch = state(net(value=value))
    change(value)
    assert watch.changed()


@pytest.mark.parametrize("name, value", [("NUMBER", 2), ("LIST", [2]), ("ARRAY", mx.nd.ones(1)), ("OTHER", 2)])
def test_globals_of_methods_and_of_functions_that_they_call(name, value, monkeypatch):
    watch = state(net())
    monkeypatch.setitem(globals(), name, value)
    assert watch.changed()


def test_what_globals_hold(monkeypatch):
    watch = state(net())
    monkeypatch.setattr(MODULE, "number", 2)
    assert watch.changed()
    watch = state(net())
    LIST.append(2)
    assert watch.changed()
    LIST.pop()
    assert not watch.changed()


@pytest.mark.parametrize("change", [lambda m: m.setitem(globals(), "FOUND", 2), lambda m: m.setattr(Callable, "factor", 2),
                                    lambda m: m.setattr(Net, "of_the_class", 2), lambda m: m.setitem(globals(), "helper", lambda: 3)],
                         ids=["a global of a method", "a class", "the block's class", "a function"])
def test_classes_and_methods_of_what_a_block_has(change, monkeypatch):
    watch = state(net(value=Callable()))
    change(monkeypatch)
    assert watch.changed()


def test_a_class_that_holds_settings():
    class Config:
        factor = 1

    class Inner(mx.gluon.HybridBlock):
        def forward(self, x):
            return x * Config.factor

    watch = state(Inner())
    Config.factor = 2
    assert watch.changed()


def test_closures():
    number, items = 1, [1]

    class Inner(mx.gluon.HybridBlock):
        def forward(self, x):
            return x * number * items[0]

    watch = state(Inner())
    items[0] = 2
    assert watch.changed()
    watch = state(Inner())
    number = 2
    assert watch.changed()


def test_what_is_not_looked_at():
    cycle = []
    cycle.append(cycle)
    block = net(ignored=[1], large=list(range(2000)), many=onp.zeros(2000), cycle=cycle, network=mx.gluon.nn.Dense(2))
    watch = state(block)
    block.ignored.append(2)
    block.large.append(1)
    block.many[0] = 1
    assert not watch.changed()


def test_blocks_of_the_library_have_nothing_to_look_at():
    assert not PythonState([mx.gluon.nn.Dense(2), mx.gluon.nn.Conv2D(2, 3)], ())


def test_copies_have_nothing_to_compare():
    assert not copy.deepcopy(state(net(value=[1])))
