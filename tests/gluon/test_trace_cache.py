"""Hybridized blocks with a `forward` over mx.np compute what they compute step by step, whatever Python decides by."""
import copy
import pickle
import random
import threading
import types
import warnings

import numpy as onp
import pytest

import mxnet as mx
from mxnet import autograd, gluon, np, npx
from mxnet.gluon import nn
from mxnet.gluon.trace_cache import CachedTrace, describe, rebuild
from recorded import record_of

STEPS = "is hybridized and runs step by step all the same: "


@pytest.fixture(autouse=True)
def numpy_style():
    npx.set_np()


class Block(nn.HybridBlock):
    """A `forward` that is a function of the block and its arguments; counts its runs."""

    def __init__(self, function, **attributes):
        super().__init__()
        self.__dict__.update(function=function, runs=0)
        for name, value in attributes.items():
            setattr(self, name, value)

    def forward(self, *args):
        self.__dict__["runs"] += 1
        return self.function(self, *args)


def hybridized(function, **attributes):
    block = Block(function, **attributes)
    block.initialize()
    block.hybridize()
    return block


def rows(count, columns=2, dtype="float32"):
    return np.array(onp.arange(1, count * columns + 1).reshape(count, columns), dtype=dtype)


def traces(block):
    return block._traces._traces if block._traces else []


# -- literally, as MXNet 1.9.1 answers ---------------------------------------------------------------------------------------

def with_zeros(block, x):
    return np.concatenate([np.zeros((x.shape[0], 1)), x], axis=1)


def counting(block, x):
    block.count += 1
    return x * block.count


def by_columns(block, x):
    total = 0
    for i in range(x.shape[1]):
        total = total + x[:, i] * (i + 1)
    return total


@pytest.mark.parametrize("forward, attributes, calls, expected, warned", [
    (lambda b, x: x * x.shape[0], {}, [rows(n, 1) for n in (1, 2, 3)], [[[1]], [[2], [4]], [[3], [6], [9]]], None),
    (lambda b, x: x.reshape(x.shape[0], -1), {}, [np.ones((2, 2, 1)), np.ones((1, 2, 2)), np.ones((3, 1, 1))],
     [[[1, 1], [1, 1]], [[1, 1, 1, 1]], [[1], [1], [1]]], None),
    (by_columns, {}, [rows(1, n) for n in (1, 2, 3)], [[1], [5], [14]], None),
    (lambda b, x: x.sum() / x.shape[0], {}, [rows(n, 1) for n in (1, 2, 3)], [1, 1.5, 2], None),
    (with_zeros, {}, [rows(n, 1) for n in (1, 2, 3)], [[[0, 1]], [[0, 1], [0, 2]], [[0, 1], [0, 2], [0, 3]]], None),
    (counting, {"count": 0}, [np.ones(1)] * 3, [[1], [2], [3], [4], [5], [6], [7], [8], [9]], "changes from call to call"),
    (lambda b, x: (x + 1) * (x + 1).shape[0], {}, [rows(n, 1) for n in (1, 2)], [[[2]], [[4], [6]]], None),
    (lambda b, x: x * len(x) + x.ndim * x.size, {}, [np.ones(1), np.ones(2), np.ones((1, 2))], [[2], [4, 4], [[5, 5]]], None),
    (lambda b, x: sum(row * i for i, row in enumerate(x)), {}, [rows(2, 1), rows(3, 1)], [[2], [8]], None)],
    ids=["shape", "reshape", "range", "mean", "zeros", "counter", "between", "len ndim size", "iteration"])
def test_what_python_reads_belongs_to_the_trace(forward, attributes, calls, expected, warned):
    block = hybridized(forward, **attributes)
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        results = [block(x).tolist() for _ in range(3) for x in calls]
    assert results == (expected if warned else expected * 3)
    assert [warned in str(w.message) for w in heard] == [True] if warned else not heard
    assert len(traces(block)) == (0 if warned else len(calls)) and all(t.verified for t in traces(block))
    assert block.runs == (len(calls) * 3 if warned else len(calls) * 2)


def test_modes_of_autograd_are_read():
    block = hybridized(lambda b, x: x * (10 if autograd.is_recording() else 1) * (2 if autograd.is_training() else 1))
    results = []
    for _ in range(3):
        x = np.ones(1)
        x.attach_grad()
        results.append(block(x).item())
        with autograd.train_mode():
            results.append(block(x).item())
        for training in (True, False):
            with autograd.record(train_mode=training):
                y = block(x)
            y.backward()
            results += [y.item(), x.grad.item()]
    assert results == [1, 2, 20, 20, 10, 10] * 3
    assert len(traces(block)) == 4


@pytest.mark.parametrize("draw", [random.random, lambda: onp.random.uniform(), lambda: 1.0 if random.random() < 0.5 else 2.0],
                         ids=["random", "numpy", "a branch"])
def test_random_numbers_of_python_are_noticed(draw):
    random.seed(1)
    onp.random.seed(1)
    expected = [onp.float32(draw()) for _ in range(20)]
    block = hybridized(lambda b, x: x * draw())
    random.seed(1)
    onp.random.seed(1)
    with pytest.warns(UserWarning, match="Block " + STEPS + "what it computes changes from call to call: it draws numbers from Python's or NumPy's"):
        results = [block(np.ones(1)).item() for _ in range(20)]
    assert results == expected


# -- differentially ------------------------------------------------------------------------------------------------------------

def attention(block, x):
    size = x.shape[-1]
    scores = np.matmul(x, np.swapaxes(x, -1, -2)) / size ** 0.5
    return np.matmul(npx.softmax(scores, axis=-1), x) + np.arange(x.shape[-2]).reshape(-1, 1)


def write_into_view(block, x):
    y = x * 1
    y[0][:] = 7
    return y


def always_dropping(block, x):
    with autograd.train_mode():
        return npx.dropout(x, p=0.5)


def paused(block, x):
    with autograd.pause():
        y = x * 2
    return x * y


def gradient_inside(block, x):
    y = x.copy()
    y.attach_grad()
    with autograd.record():
        z = (y * y).sum()
    z.backward()
    return y.grad * x


class Doubled(autograd.Function):
    def forward(self, x):
        return x * 2

    def backward(self, gradient):
        return gradient * 5  # unlike the mathematics


FORWARDS = {
    "nothing read": lambda b, x: x * 2 + 1,
    "rows": lambda b, x: x * x.shape[0],
    "last axis": lambda b, x: x / x.shape[-1],
    "slice of the shape": lambda b, x: x + np.ones((1, *x.shape[1:])),
    "whole shape": lambda b, x: np.zeros(x.shape) + x,
    "compared shape": lambda b, x: x * 2 if x.shape == (2, 3) else x - 1,
    "unpacked shape": lambda b, x: x * sum(i * s for i, s in enumerate(x.shape)),
    "text of a shape": lambda b, x: x * len(f"{x.shape}"),
    "flattened": lambda b, x: x.reshape(x.shape[0], -1).sum(axis=1),
    "len": lambda b, x: x * len(x),
    "size": lambda b, x: x.sum() / x.size,
    "ndim": lambda b, x: x.sum(axis=x.ndim - 1),
    "rows of rows": lambda b, x: sum(row.sum() * i for i, row in enumerate(x)),
    "type": lambda b, x: x * 2 if x.dtype == onp.float32 else x.astype("float64") * 3,
    "type of a result": lambda b, x: x + 1 if (x / 2).dtype == onp.float32 else x,
    "shape of a result": lambda b, x: (x.T * 2).sum(axis=0) * x.T.shape[0],
    "index": lambda b, x: x[-1] + x[0, ..., 1:].sum(),
    "indices": lambda b, x: x[np.array([0, -1])] * 2,
    "context": lambda b, x: np.ones(x.shape, ctx=x.ctx) * x if x.ctx == mx.cpu() else x,
    "trains": lambda b, x: x * 3 if autograd.is_training() else x,
    "records": lambda b, x: x * 3 if autograd.is_recording() else x,
    "dropout": lambda b, x: npx.dropout(x, p=0.0),
    "tuple": lambda b, x: (x * 2, [x.shape[0] * x, None], (x + 1,)),
    "itself": lambda b, x: x,
    "split": lambda b, x: np.concatenate(np.split(x, 2, axis=-1)[::-1], axis=-1) if x.shape[-1] % 2 == 0 else x,
    "attention": attention,
    "values": lambda b, x: x * 2 if x.sum() > 20 else x,
    "mask": lambda b, x: x[x > 2],
    "in place": write_into_view,
    "pause": paused,
    "gradient": gradient_inside,
    "function": lambda b, x: Doubled()(x),
    "NumPy's": lambda b, x: x * onp.float32(onp.prod(x.shape)),
    "dict": lambda b, x: {"a": x * 2, "b": x.shape},
    "nothing": lambda b, x: None,
}
SHAPES = [(2, 3), (3, 3), (2, 4), (1, 3), (2, 2, 3), (4,)]
TYPES = ["float32", "float64", "int32", "float16"]
MODES = {"scoring": None, "training": True, "recording": False, "train_mode": None}


def seen(value):
    if isinstance(value, (np.ndarray, mx.nd.NDArray)):
        return type(value).__name__, value.shape, str(onp.dtype(value.dtype)), value.asnumpy().tolist()
    if isinstance(value, dict):
        return {k: seen(v) for k, v in value.items()}
    return (type(value).__name__, *map(seen, value)) if isinstance(value, (list, tuple)) else value


def heads(value):
    if isinstance(value, (list, tuple)):
        return [h for v in value for h in heads(v)]
    if isinstance(value, dict):
        return heads(list(value.values()))
    return [value] if isinstance(value, (np.ndarray, mx.nd.NDArray)) else []


def observed(block, x, how):
    """Return what a call gives: values, types, structure, gradient, or the error's kind."""
    x = x.copy()
    try:
        if how in ("training", "recording"):
            x.attach_grad()
            with autograd.record(train_mode=MODES[how]):
                out = block(x)
                scaled = [h * 1 for h in heads(out) if h.dtype.kind == "f"] if isinstance(x, np.ndarray) else [h * 1 for h in heads(out)]
            if scaled:
                autograd.backward(scaled)
            return seen(out), seen(x.grad)
        with autograd.train_mode() if how == "train_mode" else autograd.predict_mode():
            return seen(block(x))
    except (mx.MXNetError, ValueError, TypeError, IndexError, AttributeError) as error:
        return type(error).__bases__[-1] if isinstance(error, mx.MXNetError) else type(error)


@pytest.mark.parametrize("name", FORWARDS)
def test_retracing_by_shape_type_and_mode(name):
    """Eager calls are right by definition: MXNet 1.9.1 runs such a `forward` in no other way."""
    eager, traced = Block(FORWARDS[name]), hybridized(FORWARDS[name])
    generator = random.Random(name)
    calls = [(shape, dtype, how) for shape in SHAPES for dtype in TYPES for how in MODES]
    generator.shuffle(calls)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for shape, dtype, how in [c for c in calls for _ in range(2)][:90] + calls:
            x = np.array(onp.arange(1, onp.prod(shape) + 1).reshape(shape) % 7, dtype=dtype)
            assert observed(traced, x, how) == observed(eager, x, how), (shape, dtype, how)


@pytest.mark.parametrize("name", ["nothing read", "rows", "last axis", "compared shape", "trains", "index"])
def test_scopes_of_numpy_semantics_come_and_go(name):
    eager, traced = Block(FORWARDS[name]), hybridized(FORWARDS[name])
    for shape in [(2, 3), (3, 3), (2, 3), (1, 4), (2, 3)] * 2:
        x = np.array(onp.arange(onp.prod(shape)).reshape(shape))
        assert observed(traced, x, "scoring") == observed(eager, x, "scoring")
        with mx.util.np_array(False), mx.np_shape(False):
            x = x.as_nd_ndarray()
            assert observed(traced, x, "training") == observed(eager, x, "training")
            assert type(traced(x + 1)) is mx.nd.NDArray
        with mx.util.np_array(True), mx.np_shape(True):
            assert observed(traced, x.as_np_ndarray(), "training") == observed(eager, x.as_np_ndarray(), "training")


def test_a_trace_that_read_nothing_holds_for_all_shapes_and_types():
    block = hybridized(lambda b, x: (x * 2 + 1).sum(axis=-1))
    for shape in [(2, 3), (5, 7), (1, 2, 3), (4,)]:
        for dtype in ("float32", "float64"):
            assert block(np.ones(shape, dtype=dtype)).shape == shape[:-1]
    assert block.runs == 2 and len(traces(block)) == 1


@pytest.mark.parametrize("forward, number", [
    (lambda b, x: x * x.shape[0], 2), (lambda b, x: x * x.shape[-1], 3), (lambda b, x: (x + 1) * (x + 1).shape[1], 3),
    (lambda b, x: x.T * x.T.shape[1], 2),
    (lambda b, x: x[:, -1] * 2, 1), (lambda b, x: x[0] + x[..., :1], 1), (lambda b, x: x.reshape(*x.shape[:1], -1), 2),
    (lambda b, x: x * x.dtype.itemsize, 1), (lambda b, x: x * sum(x.shape), 6), (lambda b, x: x.reshape(-1).mean(), 1)])
def test_there_are_no_more_traces_than_axes_that_were_read_ask_for(forward, number):
    block = hybridized(forward)
    for _ in range(2):
        for shape in [(m, n) for m in (2, 3) for n in (2, 3, 4)]:
            x = np.ones(shape)
            onp.testing.assert_array_equal(block(x).asnumpy(), forward(block, x).asnumpy())
    assert len(traces(block)) == number and block.runs <= 2 * number


# -- state that changes later --------------------------------------------------------------------------------------------------

FACTOR = 1
SETTINGS = types.SimpleNamespace(factor=1)


class ByGlobal(nn.HybridBlock):
    def forward(self, x):
        return x * FACTOR


class BySettings(nn.HybridBlock):
    def forward(self, x):
        return x * scaled_settings()


def scaled_settings():
    return SETTINGS.factor * 10


def test_globals_and_what_they_hold_are_noticed(monkeypatch):
    import sys
    module = sys.modules[__name__]
    one, other = ByGlobal(), BySettings()
    one.hybridize()
    other.hybridize()
    x = np.ones(1)
    assert [one(x).item() for _ in range(4)] == [1] * 4 and [other(x).item() for _ in range(4)] == [10] * 4
    monkeypatch.setattr(module, "FACTOR", 3)
    monkeypatch.setattr(SETTINGS, "factor", 4)
    assert [one(x).item() for _ in range(4)] == [3] * 4 and [other(x).item() for _ in range(4)] == [40] * 4


def test_closures_are_noticed():
    factor = 1

    class Net(nn.HybridBlock):
        def forward(self, x):
            return x * factor

    net = Net()
    net.hybridize()
    assert [net(np.ones(1)).item() for _ in range(4)] == [1] * 4
    factor = 2
    assert [net(np.ones(1)).item() for _ in range(4)] == [2] * 4


@pytest.mark.parametrize("change", [
    lambda b: setattr(b, "factor", 5), lambda b: b.numbers.append(4), lambda b: b.numbers.__setitem__(0, 5), lambda b: b.table.update(a=5),
    lambda b: b.table["more"].append(4), lambda b: setattr(b.settings, "factor", 5), lambda b: b.values.__setitem__(0, 5),
    lambda b: b.array.__setitem__(slice(None), 5), lambda b: setattr(b, "array", np.array([5.])), lambda b: setattr(b.inner, "factor", 5)],
    ids=["attribute", "list", "in a list", "dict", "in a dict", "settings", "NumPy's array", "array", "another array", "of a child"])
def test_attributes_are_noticed(change):
    def forward(b, x):
        return b.inner(x) * b.factor * sum(b.numbers) * (b.table["a"] + sum(b.table["more"])) * b.settings.factor * float(b.values[0]) * b.array

    def make():
        return Block(forward, factor=1, numbers=[1], table={"a": 1, "more": [1]}, settings=types.SimpleNamespace(factor=1), values=onp.ones(1),
                     array=np.ones(1), inner=Block(lambda b, x: x * b.factor, factor=1))

    eager, traced = make(), make()
    traced.hybridize()
    x = np.ones(1)
    assert [traced(x).item() for _ in range(4)] == [2] * 4
    change(eager)
    change(traced)
    runs = traced.runs
    assert [traced(x).item() for _ in range(5)] == [eager(x).item()] * 5 != [2] * 5
    assert traced.runs - runs <= 2 and all(t.verified for t in traces(traced))


def test_setting_an_attribute_to_what_it_was_changes_nothing():
    block = hybridized(lambda b, x: x * b.factor, factor=2.0)
    for _ in range(5):
        block.factor = float("2")
        assert block(np.ones(1)).item() == 2
    assert block.runs == 2


def test_who_sets_attributes_before_each_call_is_run_step_by_step():
    block = hybridized(lambda b, x: x * b.factor, factor=0)
    results = []
    with pytest.warns(UserWarning, match=STEPS + "what it computes changes from call to call: 16 times in a row, an attribute or a global value"):
        for i in range(25):
            block.factor = i
            results.append(block(np.ones(1)).item())
    assert results == list(range(25))


def test_an_attribute_that_follows_a_schedule_has_traces_all_along():
    block = hybridized(lambda b, x: x * b.factor, factor=0)
    for epoch in range(40):
        block.factor = epoch
        assert [block(np.ones(1)).item() for _ in range(4)] == [epoch] * 4
    assert len(traces(block)) == 1


def test_of_many_shapes_the_last_run_step_by_step():
    block = hybridized(lambda b, x: x * x.shape[0])
    with pytest.warns(UserWarning, match="Block was traced 16 times, since the shapes, types or modes that it reads differ from call") as said:
        for count in [*range(1, 25), *range(1, 25)]:
            assert block(np.ones(count)).tolist() == [count] * count
    assert len(said) == 1 and len(traces(block)) == 16 and all(t.verified for t in traces(block))


# -- side effects, and what a run is -------------------------------------------------------------------------------------------

def test_each_call_runs_forward_at_most_once():
    def forward(b, x):
        b.count += 1
        return x * b.count if x.sum() > 0 else x  # a counter, and values

    block = hybridized(forward, count=0)
    with pytest.warns(UserWarning, match=STEPS + "values of arrays were read"):
        assert [block(np.ones(1)).item() for _ in range(4)] == [1, 2, 3, 4]


def test_parameters_that_wait_for_their_shapes_do_not_make_forward_run_twice():
    class Net(nn.HybridBlock):
        def __init__(self):
            super().__init__()
            self.runs, self.inside = 0, nn.Dense(2, flatten=False)

        def forward(self, x):
            self.__dict__["runs"] += 1
            return self.inside(x) * x.shape[0]

    net = Net()
    net.initialize(mx.init.One())
    net.hybridize()
    assert [net(np.ones((2, 3))).tolist() for _ in range(3)] == [[[6, 6], [6, 6]]] * 3
    assert net.runs == 2 and net.inside.weight.shape == (2, 3)


def test_moving_averages_and_gradients_are_those_of_eager_calls():
    class Net(nn.HybridBlock):
        def __init__(self):
            super().__init__()
            self.norm, self.dense = nn.BatchNorm(in_channels=3), nn.Dense(2, in_units=3)

        def forward(self, x):
            return self.dense(self.norm(x)) / x.shape[0]

    results = []
    for hybridize in (False, True):
        net = Net()
        net.initialize(mx.init.One())
        if hybridize:
            net.hybridize()
        trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1})
        for count in (2, 3, 2, 3, 4, 2):
            with autograd.record():
                loss = (net(rows(count, 3)) ** 2).sum()
            loss.backward()
            trainer.step(1)
        results.append([p.data().asnumpy() for p in net.collect_params().values()])
    for a, b in zip(*results):
        onp.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


def test_draws_of_mx_np_are_those_of_eager_calls():
    def draws(block):
        mx.random.seed(3)
        return [block(np.zeros((3,))).tolist() for _ in range(5)]

    def forward(b, x):
        return x + np.random.uniform(size=x.shape)

    assert draws(hybridized(forward)) == draws(Block(forward))


def test_results_are_not_marked_and_arguments_stay_as_they_were():
    block, x = hybridized(lambda b, x: (x, x * b.array), array=np.ones(2)), np.ones(2)
    for i in range(3):
        same, other = block(x)
        assert record_of(same) is record_of(other) is record_of(x) is None
        assert i or record_of(block.array) is None
        with autograd.record():
            out = block(x)[1]
            with pytest.raises(mx.MXNetError, match="cannot differentiate"):
                out.backward()
        out += 1
    assert block(x)[1].tolist() == [1, 1]


@pytest.mark.parametrize("forward, reason", [
    (lambda b, x: x * np.nonzero(x)[0].shape[0], "it reads a shape that depends on values, those of the inputs of _npx_nonzero"),
    (lambda b, x: x.sum() / np.unique(x).size, "it reads a shape that depends on values, those of the inputs of _npi_unique"),
    (lambda b, x: (mx.random.seed(1), x + np.random.uniform(size=(3,)))[1], "it calls mx.random.seed")])
def test_shapes_that_depend_on_values_and_seeds_have_no_place_in_a_graph(forward, reason):
    block = hybridized(forward)
    with pytest.warns(UserWarning, match=reason):
        for values in ([1., 0, 2], [1, 0, 2], [1, 0, 0], [1, 2, 3], [0, 0, 1]):
            assert block(np.array(values)).tolist() == forward(block, np.array(values)).tolist()


def test_an_argument_that_is_returned_is_the_argument():
    block, x = hybridized(lambda b, x, y: (y, x + 1, [x])), np.ones(1)
    for _ in range(5):
        first, second, (third,) = block(x, x * 2)
        assert third is x and first is not x and (first.item(), second.item()) == (2, 2)
    single = hybridized(lambda b, x: x)
    assert all(single(x) is x for _ in range(5))


def test_the_same_array_twice_may_be_two_another_time():
    block, x = hybridized(lambda b, x, y: x * 2 + y * x), np.array([3.])
    for _ in range(3):
        x.attach_grad()
        with autograd.record():
            out = block(x, x)
        out.backward()
        assert out.item() == 15 and x.grad.item() == 8
        assert block(x, np.array([1.])).item() == 9


def test_arguments_of_other_structure_have_traces_of_their_own():
    def forward(b, x, more=None):
        if more is None:
            return x
        if isinstance(more, (list, tuple)):
            return sum(more, x) * (2 if isinstance(more, tuple) else 1)
        return x * more

    eager, traced = Block(forward), hybridized(forward)
    x = np.array([3.])
    for args in [(x,), (x, None), (x, x), (x, [x]), (x, (x,)), (x, [x, x])] * 3:
        assert traced(*args).item() == eager(*args).item()
    assert len(traces(traced)) == 6


def test_what_forward_leaves_in_attributes_is_what_an_eager_call_leaves():
    def forward(b, x):
        if b.state is None:
            b.state = np.zeros((1,))
        b.seen, b.shape, b.items["x"] = [x, x * 2], x.shape, [x]
        return x + b.state

    block = hybridized(forward, state=None, seen=[], shape=None, items={})
    with pytest.warns(UserWarning, match=STEPS + "it changes Python values") as said:
        for i in range(4):
            x = np.full((1,), float(i))
            assert block(x).item() == i
            assert block.seen[0] is x and block.items["x"][0] is x and type(block.shape) is tuple
            assert block.seen[1].item() == 2 * i and record_of(block.seen[1]) is record_of(block.state) is None
    assert len(said) == 1


CALLS = []


def late(block, x):
    block.count += 1
    return x * (1 if block.count < 4 else 2)


@pytest.mark.parametrize("forward, attributes, left", [
    (late, {"count": 0}, lambda b: b.count), (lambda b, x: (b.seen.append(x * 2), x)[1], {"seen": []}, lambda b: [s.item() for s in b.seen]),
    (lambda b, x: (setattr(b, "last", x * 2), x + 1)[1], {"last": None}, lambda b: b.last.item()),
    (lambda b, x: (setattr(b, "last", [x.shape, len(CALLS)]), CALLS.append(1), x)[2], {"last": None}, lambda b: len(CALLS)),
    (lambda b, x: (b.table.update(a=b.table["a"] + 1), x)[1], {"table": {"a": 0}}, lambda b: b.table)],
    ids=["counter", "list", "array", "global", "dict"])
def test_what_each_call_changes_is_changed_by_each_call(forward, attributes, left):
    CALLS.clear()
    eager = Block(forward, **copy.deepcopy(attributes))
    expected = [(eager(np.full((1,), float(i))).item(), copy.deepcopy(left(eager))) for i in range(6)]
    CALLS.clear()
    block = hybridized(forward, **copy.deepcopy(attributes))
    with pytest.warns(UserWarning, match=STEPS + "it changes Python values"):
        assert [(block(np.full((1,), float(i))).item(), copy.deepcopy(left(block))) for i in range(6)] == expected


def test_what_only_the_first_run_sets_up_is_forgiven():
    def forward(b, x):
        if b.state is None:
            b.state = np.zeros((1,))
        return x + b.state

    block, x = hybridized(forward, state=None), np.ones(1)
    assert [block(x).item() for _ in range(4)] == [1] * 4 and block.runs == 3
    for value in (5, 6):
        block.state[:] = value
        assert block(x).item() == 1 + value
    assert len(traces(block)) == 1 and block.runs == 3


@pytest.mark.parametrize("keep, reason", [
    (lambda b, x: setattr(b, "state", [x * 1]), "it replaces an array in an attribute that it reads"),
    (lambda b, x: b.state.__setitem__(0, x * 1), "it replaces an array in an attribute that it reads"),
    (lambda b, x: b.state.insert(0, x * 1), "an array that it takes from elsewhere is another")])
def test_state_that_a_call_hands_to_the_next_runs_step_by_step(keep, reason):
    """Even where the first two states are equal."""
    block = hybridized(lambda b, x: (x + b.state[0], keep(b, x))[0], state=[np.zeros(1)])
    with pytest.warns(UserWarning, match="runs step by step.*" + reason):
        assert [block(np.full((1,), float(i))).item() for i in range(6)] == [0, 1, 3, 5, 7, 9]


def test_another_array_of_equal_values_is_the_one_that_is_used():
    block, x = hybridized(lambda b, x: x * b.factor, factor=np.ones(1)), np.ones(1)
    assert [block(x).item() for _ in range(4)] == [1] * 4
    block.factor = np.ones(1)
    assert [block(x).item() for _ in range(4)] == [1] * 4
    block.factor[:] = 3
    assert block(x).item() == 3


def test_errors_of_forward_are_those_of_an_eager_call():
    def forward(b, x):
        if x.shape[0] > 2:
            raise KeyError("too long")
        return x * 2

    block = hybridized(forward)
    for _ in range(3):
        assert block(np.ones(2)).tolist() == [2, 2]
        with pytest.raises(KeyError, match="too long"):
            block(np.ones(3))
    assert not mx.autograd.is_recording() and len(traces(block)) == 1


# -- blocks in blocks, files, threads ------------------------------------------------------------------------------------------

def test_a_container_is_traced_by_running_it_and_children_read_shapes():
    net = nn.HybridSequential()
    net.add(Block(lambda b, x: x * x.shape[0]), nn.Dense(1, use_bias=False, flatten=False), Block(lambda b, x: x.reshape(x.shape[0], -1)))
    net.initialize(mx.init.One())
    net.hybridize()
    for count in (1, 2, 3) * 3:
        assert net(np.ones((count, 2, 2))).tolist() == [[2 * count, 2 * count]] * count
    assert net[0].runs == 6


def test_a_container_around_what_has_no_graph_runs_step_by_step():
    net = nn.HybridSequential()
    net.add(nn.Dense(1, use_bias=False), Block(lambda b, x: x * 2 if x.sum() > 0 else x))
    net.initialize(mx.init.One())
    net.hybridize()
    with pytest.warns(UserWarning, match="runs step by step") as said:
        assert [net(np.full((1, 2), value)).item() for value in (1, -1, 2, -2)] == [4, -2, 8, -4]
    assert sorted(str(w.message).split()[0] for w in said) == ["Block", "HybridSequential"]  # the child by itself, too
    with pytest.raises(RuntimeError, match="export: there is no graph of this block, which runs step by step: values of arrays"):
        net.export("unused")


def test_what_is_exported_is_the_graph_of_the_last_call(tmp_path):
    block = hybridized(lambda b, x: x * x.shape[0])
    for count in (1, 2, 1, 2, 1):
        block(np.ones(count))
    block.export(str(tmp_path / "one"))
    block(np.ones(2))
    block.export(str(tmp_path / "two"))
    again = [gluon.SymbolBlock.imports(str(tmp_path / f"{name}-symbol.json"), ["data"]) for name in ("one", "two")]
    assert [net(np.ones(1)).item() for net in again] == [1, 2]


@pytest.mark.parametrize("flags", [{}, {"static_alloc": True}, {"static_alloc": True, "static_shape": True}, {"backend": "native"},
                                   {"backend": "kernels"}], ids=str)
def test_the_short_way_of_calls_knows_what_was_read(flags):
    class Net(nn.HybridBlock):
        def __init__(self):
            super().__init__()
            self.dense, self.factor = nn.Dense(2, in_units=3), 1

        def forward(self, x):
            return self.dense(x) * (x.shape[0] * self.factor + 100 * autograd.is_training())

    net = Net()
    net.initialize(mx.init.One())
    net.hybridize(**flags)
    for factor in (1, 1, 2):
        net.factor = factor
        for count in (1, 1, 1, 1, 2, 1, 2, 2, 2):
            assert net(np.ones((count, 3))).tolist() == [[3 * count * factor] * 2] * count
        with autograd.train_mode():
            assert net(np.ones((1, 3))).tolist() == [[3 * (factor + 100)] * 2]


def test_a_named_backend_is_prepared_for_without_a_call():
    block = Block(lambda b, x: x * x.shape[0])
    block.optimize_for(np.ones(2), backend="native")
    assert block.runs == 1 and len(traces(block)) == 1
    assert [block(np.ones(n)).tolist() for n in (2, 3, 2, 3)] == [[2, 2], [3, 3, 3]] * 2
    decides = Block(lambda b, x: x if x.sum() > 0 else -x)
    with pytest.raises(mx.MXNetError, match="values of arrays were read"), pytest.warns(UserWarning, match="step by step"):
        decides.optimize_for(np.ones(2), backend="native")


def test_several_contexts():
    class Net(nn.HybridBlock):
        def __init__(self):
            super().__init__()
            self.weight = gluon.Parameter("weight", shape=(1,), init="ones")

        def forward(self, x):
            return x * self.weight.data(x.ctx) * x.shape[0] + np.zeros((1,), ctx=x.ctx)

    net = Net()
    contexts = [mx.cpu(0), mx.cpu(1)]
    net.initialize(ctx=contexts)
    net.hybridize()
    for count in (1, 2, 1, 2, 1, 2):
        for ctx in contexts:
            with autograd.record():
                out = net(np.ones(count, ctx=ctx))
            out.backward()
            assert out.tolist() == [count] * count and out.ctx == ctx
            assert net.weight.grad(ctx).item() == count ** 2


def test_threads_share_traces_and_each_gets_its_own_results():
    class Net(nn.HybridBlock):
        def __init__(self):
            super().__init__()
            self.dense = nn.Dense(1, in_units=3, use_bias=False)

        def forward(self, x):
            return self.dense(x) * x.shape[0] * (2 if autograd.is_training() else 1)

    net = Net()
    net.initialize(mx.init.One())
    net.hybridize()
    wrong, barrier = [], threading.Barrier(6)

    def call(number):
        barrier.wait()
        for i in range(60):
            count = 1 + (number + i) % 3
            with mx.np_shape(True), mx.util.np_array(True), autograd.train_mode() if number % 2 else autograd.predict_mode():
                out = net(np.ones((count, 3))).tolist()
            if out != [[3 * count * (1 + number % 2)]] * count:
                wrong.append((number, i, out))

    threads = [threading.Thread(target=call, args=(i,)) for i in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong and len(traces(net)) == 6


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, lambda net: pickle.loads(pickle.dumps(net))], ids=["copy", "deepcopy", "pickle"])
def test_copies_trace_anew(duplicate):
    net = ByAttribute()
    net.hybridize()
    for count in (1, 2, 1, 2, 1):
        net(np.ones(count))
    other = duplicate(net)
    other.factor = 3
    for count in (1, 2, 3, 1, 2, 3):
        assert net(np.ones(count)).tolist() == [count] * count
        assert other(np.ones(count)).tolist() == [3 * count] * count
    assert other._traces.block is other


class ByAttribute(nn.HybridBlock):
    def __init__(self):
        super().__init__()
        self.factor = 1

    def forward(self, x):
        return x * self.factor * x.shape[0]


def test_changed_children_types_and_parameters_are_noticed():
    net = ByChildren()
    net.initialize(mx.init.One())
    net.hybridize()
    x = np.ones((2, 3))
    assert [net(x).tolist() for _ in range(3)] == [[[3], [3]]] * 3
    net.layers.add(nn.Dense(2, in_units=1, use_bias=False))
    net.layers[1].initialize(mx.init.One())
    assert [net(x).tolist() for _ in range(3)] == [[[3, 3], [3, 3]]] * 3
    net.layers[0].weight.set_data(np.full((1, 3), 2.0))
    assert net(x).tolist() == [[6, 6], [6, 6]]
    net.cast("float64")
    assert [net(x.astype("float64")).dtype for _ in range(3)] == [onp.float64] * 3


class ByChildren(nn.HybridBlock):
    def __init__(self):
        super().__init__()
        self.layers = nn.HybridSequential()
        self.layers.add(nn.Dense(1, in_units=3, use_bias=False))

    def forward(self, x):
        for layer in self.layers._children.values():
            x = layer(x)
        return x


def test_parameters_of_blocks_in_lists_are_used():
    class Net(nn.HybridBlock):
        def __init__(self):
            super().__init__()
            self.others = [nn.Dense(1, in_units=2, use_bias=False)]

        def forward(self, x):
            return self.others[0](x)

    net = Net()
    net.others[0].initialize(mx.init.One())
    net.hybridize()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the unregistered block
        assert [net(np.ones((1, 2))).item() for _ in range(3)] == [2] * 3
        net.others[0].weight.set_data(np.full((1, 2), 2.0))
        assert net(np.ones((1, 2))).item() == 4


def test_who_watches_operators_sees_those_of_the_first_call_too():
    block, names = hybridized(lambda b, x: x * x.shape[0]), []
    block.register_op_hook(lambda name, op, handle: names.append(op))
    for _ in range(3):
        block(np.ones(2))
    assert names == ["_npi_multiply_scalar"] * 3


# -- pieces --------------------------------------------------------------------------------------------------------------------

def test_describe_and_rebuild():
    Pair = __import__("collections").namedtuple("Pair", "a b")
    arrays, x, y = [], np.ones(1), mx.nd.ones(1)
    structure = describe((x, [None, (y,)], Pair(x, None)), arrays)
    assert [id(a) for a in arrays] == [id(x), id(y), id(x)]
    again = rebuild(structure, iter([1, 2, 3]))
    assert again == (1, [None, (2,)], Pair(3, None)) and type(again[2]) is Pair
    for wrong in (3, {"a": x}, "text", mx.nd.ones((2, 2)).tostype("csr")):
        with pytest.raises(mx.MXNetError, match=r"takes and returns dense arrays, None, and \(nested\) lists and tuples of them, received"):
            describe([wrong], [])


def test_differences_between_graphs_are_named():
    def graph(forward) -> CachedTrace:
        block = hybridized(forward)
        block._prefix = ""  # what constants are named after
        block(np.ones(2))
        return traces(block)[0]

    base = graph(lambda b, x: x * 2 + np.array([1., 2]))
    assert base.difference(graph(lambda b, x: x * 2 + np.array([1., 2]))) == ""
    assert base.difference(graph(lambda b, x: x * 2 + np.array([1., 3]))) == "an array that it takes from elsewhere is another, or has other values"
    assert "has the attributes {'scalar': '2.0'}, then {'scalar': '3.0'}" in base.difference(graph(lambda b, x: x * 3 + np.array([1., 2])))
    assert "_npi_add is computed, then _npi_subtract" == base.difference(graph(lambda b, x: x * 2 - np.array([1., 2])))
    assert base.difference(graph(lambda b, x: x * 2)) == "it has 4 steps, then 2"
    assert base.difference(graph(lambda b, x: [x * 2 + np.array([1., 2])])) == "its results have another structure"
