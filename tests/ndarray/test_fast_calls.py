"""Who may take a fast call, that those who may do, and that all calls give the same."""
import pathlib
import re

import numpy as np
import pytest
import torch

import mxnet as mx
from mxnet import nd
from mxnet.ndarray import NDArray, dispatch, fast_calls
from mxnet.ndarray.fast_calls import eligibility, fast, in_place, number, operand
from mxnet.ops.registry import Operator, get
from recorded import record_of

CPU1 = mx.cpu(1)
GENERAL = object()  # what the general way returns here


def general(*args, **kwargs):
    return GENERAL


def negate(x):
    return -x


def scale(x, *, factor: float = 2.0):
    return x * factor


def subtract(x, y):
    return x - y


def weigh(x, y, z=None, *, factor: float = 2.0):
    return x + factor * y if z is None else x + factor * y + z


def halves(x, *, axis: int = 0):
    return torch.chunk(x, 2, axis)


def fails(x):
    raise ValueError("no")


def call(fn, cls=NDArray, **options):
    return fast(Operator("_test", fn, **options), cls, general)


@pytest.fixture
def observed():
    names = []
    dispatch.observer = lambda name, *args: names.append(name)
    yield names
    dispatch.observer = None


def marked():
    x = nd.ones((2,))
    x.attach_grad()
    return x


def recorded():
    with mx.autograd.record():
        return marked() * 2


class Derived(NDArray):
    pass


# -- the test ----------------------------------------------------------------------------------------------------------------


def test_arrays_of_the_class_itself_are_eligible():
    assert eligibility(NDArray)(nd.ones((2,))) and eligibility(mx.np.ndarray)(mx.np.ones((2,)))
    assert eligibility(NDArray)(nd.ones((2,), ctx=CPU1))


@pytest.mark.parametrize("other", [
    lambda: 1.0, lambda: None, lambda: np.ones(2), lambda: mx.np.ones((2,)), lambda: Derived(torch.ones(2)), marked, recorded,
    lambda: nd.ones((2, 2)).tostype("csr"), lambda: nd.ones((2, 2)).tostype("row_sparse")],
    ids=["number", "None", "numpy", "mx.np", "derived", "marked", "recorded", "csr", "row_sparse"])
def test_what_is_not_eligible(other):
    assert not eligibility(NDArray)(other())
    assert call(negate)(other()) is GENERAL


def test_nothing_is_eligible_while_a_profiler_observes_who_is_told_of_calls_that_would_be(observed):
    x, y = nd.ones((2,)), nd.ones((2,))
    assert not eligibility(NDArray)(x)
    observed.clear()
    minus = number(get("_minus_scalar"), NDArray, general)
    found = call(negate)(x), call(scale)(x, factor=3), call(weigh)(x, y), minus(x, 3)
    assert [r.asnumpy()[0] for r in found] == [-1, 3, 3, -2]
    assert [h.shape for h in call(halves, num_outputs=2)(x)] == [(1,), (1,)]
    both = operand(get("broadcast_add"), get("_plus_scalar"), NDArray, general)
    assert both(x, y).asnumpy()[0] == both(x, 1).asnumpy()[0] == 2
    assert observed == ["_test", "_test", "_test", "_minus_scalar", "_test", "broadcast_add", "_plus_scalar"]


@pytest.mark.parametrize("other", [marked, recorded, lambda: Derived(torch.ones(2)), lambda: nd.ones((2,), ctx=CPU1)])
def test_others_go_the_general_way_while_a_profiler_observes(observed, other):
    assert call(subtract)(nd.ones((2,)), other()) is GENERAL and call(subtract)(other(), nd.ones((2,))) is GENERAL
    assert call(fails)(nd.ones((2,))) is GENERAL


def test_who_draws_takes_fast_calls_on_every_processor():
    result = call(negate, stochastic=True)(nd.ones((2,), ctx=CPU1))
    assert result.asnumpy().tolist() == [-1, -1] and result.context == CPU1


def test_the_test_is_written_in_one_place():
    """Elsewhere "nothing to record, nobody observes" would be a second test, which may forget the third condition, as two of four once did."""
    root = pathlib.Path(mx.__file__).parent
    found = {str(path.relative_to(root)) for path in root.rglob("*.py")
             if re.search(r"_autograd is None and |and \w+\._autograd is None|dispatch\.observer is None", path.read_text())}
    assert found == {"ndarray/fast_calls.py"}


# -- the makers -----------------------------------------------------------------------------------------------------------------


def test_the_results_are_arrays_of_the_class_on_the_device_of_the_input():
    x = mx.np.array([1.0, 2.0], ctx=CPU1)
    result = call(negate, mx.np.ndarray)(x)
    assert type(result) is mx.np.ndarray and result.ctx == CPU1 and result.asnumpy().tolist() == [-1, -2]
    assert record_of(result) is None


def test_attributes_are_parsed():
    x, y, z = nd.array([1, 2]), nd.array([10, 20]), nd.array([100, 200])
    assert call(scale)(x).asnumpy().tolist() == [2, 4]
    assert call(scale)(x, factor="3").asnumpy().tolist() == call(scale)(x, 3).asnumpy().tolist() == [3, 6]
    assert call(weigh)(x, y, z, factor=3).asnumpy().tolist() == [131, 262]
    assert call(weigh)(x, y, factor=3).asnumpy().tolist() == [31, 62]
    assert call(subtract)(y, x).asnumpy().tolist() == [9, 18]


def test_any_number_of_inputs():
    join = call(lambda *data: torch.cat(data))
    x = nd.array([1, 2])
    assert join(x).asnumpy().tolist() == [1, 2] and join(x, x, x).asnumpy().tolist() == [1, 2] * 3
    for args in ((), ([x, x],), (x, 1.0), (x, marked()), (x, nd.ones((2,), ctx=CPU1)), (x, nd.ones((2, 2)))):
        assert join(*args) is GENERAL
    assert join(x, out=x) is join(x, data=[x]) is GENERAL


def test_a_list_of_several_results_is_computed_once():
    calls = []

    def counted(x, *, axis: int = 0):
        calls.append(axis)
        return halves(x, axis=axis)

    first, second = call(counted, num_outputs=2)(nd.array([[1, 2], [3, 4]]), axis=1)
    assert first.asnumpy().tolist() == [[1], [3]] and second.asnumpy().tolist() == [[2], [4]] and calls == [1]

    def pair(x, y):
        calls.append("pair")
        return y, x

    results = call(pair, num_outputs=2)(nd.array([1]), nd.array([2]))
    assert [r.asscalar() for r in results] == [2, 1] and calls == [1, "pair"]


@pytest.mark.parametrize("make", [
    lambda x: call(negate)(), lambda x: call(negate)(x, x), lambda x: call(negate)(x, out=x), lambda x: call(negate)(x, factor=2),
    lambda x: call(scale)(x, 3.0, 4.0), lambda x: call(scale)(x, 3.0, factor=4.0), lambda x: call(scale)(marked(), 3.0),
    lambda x: call(scale)(x, 3.0, out=x), lambda x: call(scale)(x, out=x), lambda x: call(scale)(data=x), lambda x: call(scale)(x, unknown=2),
    lambda x: call(scale)(x, factor="two"),
    lambda x: call(subtract)(), lambda x: call(subtract)(lhs=x),
    lambda x: call(subtract)(x), lambda x: call(subtract)(x, y=x), lambda x: call(subtract)(x, 1.0), lambda x: call(subtract)(x, x, out=x),
    lambda x: call(subtract)(x, nd.ones((2,), ctx=CPU1)), lambda x: call(subtract)(x, nd.ones((3,))), lambda x: call(subtract)(x, marked()),
    lambda x: call(subtract)(marked(), x),
    lambda x: call(weigh)(x), lambda x: call(weigh)(x, x, z=x), lambda x: call(weigh)(x, x, None), lambda x: call(weigh)(x, x, x, x),
    lambda x: call(weigh)(x, x, nd.ones((2,), ctx=CPU1)), lambda x: call(weigh)(x, x, marked()), lambda x: call(weigh)(x, nd.ones((3,))),
    lambda x: call(weigh)(x, x, out=x)])
def test_all_other_calls_go_the_general_way(make):
    assert make(nd.ones((2,))) is GENERAL


def test_the_general_way_gets_the_arguments_and_no_name():
    seen = []
    function = fast(Operator("_test", scale), NDArray, lambda *args, **kwargs: seen.append((args, kwargs)))
    x = nd.ones((2,))
    assert function(x, name="layer").asnumpy().tolist() == [2, 2]  # a name is for graphs
    function(x, 5, out=x, name="layer", factor=3)
    assert seen == [((x, 5), {"out": x, "factor": 3})]


def test_operators_that_write_to_inputs_have_no_fast_call():
    assert call(negate, mutates=("x",)) is general


def test_operators_without_fixed_inputs_have_no_fast_call():
    for name in ("Custom", "_zeros", "Dropout"):  # any number of inputs with names; none, on a device; one, asking whether training is on
        assert fast(get(name), NDArray, general) is general


def test_numbers():
    add = number(get("_plus_scalar"), NDArray, general)
    x = nd.array([1, 2])
    assert add(x, 2).asnumpy().tolist() == [3, 4] and add(x, 0.5).asnumpy().tolist() == [1.5, 2.5]
    for other in (True, np.float32(2), "2", x):
        assert add(x, other) is GENERAL
    assert add(marked(), 2) is GENERAL and add(3, 2) is GENERAL
    assert number(Operator("_test", weigh), NDArray, general)(x, 2) is GENERAL  # raises: no `scalar`


def test_operands():
    multiply = operand(get("broadcast_mul"), get("_mul_scalar"), NDArray, general, torch.mul)
    x, y = nd.array([1, 2]), nd.array([[3], [4]])
    assert multiply(x, y).asnumpy().tolist() == [[3, 6], [4, 8]] and multiply(x, 2).asnumpy().tolist() == [2, 4]
    assert multiply(x, nd.ones((3,))) is GENERAL and multiply(x, nd.ones((2,), ctx=CPU1)) is GENERAL
    assert multiply(marked(), x) is GENERAL and multiply(x, marked()) is GENERAL and multiply(2, x) is GENERAL


def test_a_number_is_rounded_to_half_precision_as_in_mxnet():
    """MXNet 1.9.1 rounds the number to the array's type before it computes."""
    for array in (nd.array, mx.np.array):
        x = array([0, 1, 2, 3, 5], dtype="float16")
        expected = np.array([0, 0.0010004, 0.0020008, 0.0030022, 0.005001], "float16")
        assert (x * 0.001).asnumpy().tolist() == expected.tolist() == (0.001 * x).asnumpy().tolist()
        values = (x * 2 ** 40).asnumpy()
        assert np.isnan(values[0]) and np.isinf(values[1:]).all()


def test_in_place():
    x, y = nd.array([1, 2]), nd.array([10, 20])
    memory = x.as_torch()
    add = in_place(torch.Tensor.add_, NDArray, general)
    assert add(x, y) is x and memory.tolist() == [11, 22]
    for other in (2, nd.ones((2,), dtype="float64"), nd.ones((2,), ctx=CPU1), nd.ones((3,)), recorded()):
        assert add(x, other) is GENERAL
    assert add(nd.ones((2,), dtype="int32"), nd.ones((2,), dtype="int32")) is GENERAL
    assert in_place(None, NDArray, general)(x, y) is GENERAL
    weight = marked()
    assert add(weight, y) is weight and weight.asnumpy().tolist() == [11, 21]
    with mx.autograd.record(), pytest.raises(mx.MXNetError, match="Inplace operations"):
        add(weight, y)


# -- who shares it ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("compute", [
    lambda x, y: nd.exp(x), lambda x, y: nd.sum(x, axis=0), lambda x, y: nd.broadcast_add(x, y), lambda x, y: nd.dot(x, y),
    lambda x, y: nd.sum(x, axis=1), lambda x, y: nd.sum(x, axis=-1, keepdims=True), lambda x, y: nd.sum(x, axis=(0, 1)),
    lambda x, y: nd.sum(x, axis=[0]), lambda x, y: nd.sum(x, axis=0, exclude=True), lambda x, y: nd.sum(x, axis=None), lambda x, y: nd.max(x, axis=1),
    lambda x, y: nd.prod(x, axis=0), lambda x, y: nd.mean(nd.cast(x, dtype="int32"), axis=1), lambda x, y: nd.nanprod(x, axis=1),
    lambda x, y: nd.argmax(x, axis=1),
    lambda x, y: nd.norm(x, axis=0), lambda x, y: nd.dot(x, y, transpose_b=True), lambda x, y: nd.dot(x, y, transpose_a=1, transpose_b=True),
    lambda x, y: nd.clip(x, a_min=-0.0, a_max=2), lambda x, y: nd.expand_dims(x, axis=0), lambda x, y: nd.reshape(x, shape=(-1,)),
    lambda x, y: nd.sum(x, 1), lambda x, y: nd.sum(x, 1, True), lambda x, y: x.sum(1, exclude=True), lambda x, y: nd.clip(x, -1.0, 2.0),
    lambda x, y: nd.dot(x, y, True), lambda x, y: nd.softmax(x, axis=0), lambda x, y: x.softmax(),
    lambda x, y: nd.concat(x, y, dim=0), lambda x, y: nd.concat(x), lambda x, y: nd.stack(x, y, axis=-1), lambda x, y: nd.add_n(x, y, x),
    lambda x, y: nd.concat(x, y, num_args=2, dim=1), lambda x, y: nd.FullyConnected(x, y, num_hidden=2, no_bias=True), lambda x, y: nd.where(x, x, y),
    lambda x, y: nd.split(x, num_outputs=2), lambda x, y: x.exp(), lambda x, y: x.as_np_ndarray() + 1,
    lambda x, y: x + y, lambda x, y: x + 1, lambda x, y: 2 - x, lambda x, y: 2 * x, lambda x, y: x > y,
    lambda x, y: nd.add(x, y), lambda x, y: nd.add(x, 2),
    lambda x, y: x[0], lambda x, y: x[:1], lambda x, y: x.reshape((4,)),
    lambda x, y: mx.np.add(x.as_np_ndarray(), y.as_np_ndarray()), lambda x, y: mx.np.exp(x.as_np_ndarray()),
    lambda x, y: x.as_np_ndarray() < y.as_np_ndarray(), lambda x, y: 2 ** x.as_np_ndarray(), lambda x, y: x.as_np_ndarray()[:1],
    lambda x, y: x.as_np_ndarray().reshape_view(4), lambda x, y: mx.npx.relu(x.as_np_ndarray())])
def test_fast_and_general_calls_give_the_same(compute, observed, monkeypatch):
    def values():
        results = compute(nd.array([[1, -2], [3, 4]]), nd.array([[5, 6], [0, -8]]))
        return [(type(r), r.dtype, r.ctx, r.asnumpy().tolist()) for r in (results if isinstance(results, list) else [results])]

    told = values()
    with monkeypatch.context() as patch:
        patch.setattr(fast_calls, "watched", lambda *args: None)
        slow = values()
    assert told == slow
    dispatch.observer = None
    monkeypatch.setattr(dispatch, "run", None)  # the general way would fail
    assert values() == values() == values() == slow


def test_in_place_operators_are_fast_calls(monkeypatch):
    monkeypatch.setattr(dispatch, "run", None)
    for x in (nd.array([1, 2]), mx.np.array([1.0, 2.0])):
        before = x
        x += x
        x *= type(x)._new(torch.tensor([3.0, 4.0]), x.ctx)
        assert x is before and x.asnumpy().tolist() == [6, 16]


def test_functions_of_numpy_keep_their_arguments():
    x = mx.np.array([1.0, 4.0])
    out = mx.np.zeros((2,))
    assert mx.np.sqrt(x, out) is out and out.asnumpy().tolist() == [1, 2]
    assert mx.np.add(x, x, out) is out and out.asnumpy().tolist() == [2, 8]
    assert mx.np.add(x1=x, x2=1).asnumpy().tolist() == [2, 5] and mx.np.sqrt(x=x).asnumpy().tolist() == [1, 2]
    assert mx.np.sqrt(4) == 2 and mx.np.add(1, 2) == 3
    with pytest.raises(NotImplementedError, match="where"):
        mx.np.sqrt(x, where=False)
    with pytest.raises(TypeError, match="not supported"):
        mx.np.sqrt(nd.ones((2,)))


# -- what draws ----------------------------------------------------------------------------------------------------------------------


def follows_the_seed(draw):
    """Whether what `draw` does on cpu(1) is decided by the seed, and goes on."""
    def values():
        results = draw()
        return [r.asnumpy().tolist() for r in (results if isinstance(results, list) else [results])]

    mx.random.seed(5)
    first, other = values(), values()
    mx.random.seed(5)
    return values() == first != other and values() == other


X = nd.arange(64, ctx=CPU1).reshape((8, 8))
IMAGE = nd.arange(192, ctx=CPU1).reshape((8, 8, 3))


def many(function, *args, **kwargs):
    return [function(*args, **kwargs) for _ in range(20)]


def dropped(hybridize):
    net = mx.gluon.nn.Dropout(0.5)
    if hybridize:
        net.hybridize()
    with mx.autograd.record():
        return net(X)


@pytest.mark.parametrize("draw", [
    lambda: nd.shuffle(X), lambda: nd.random.shuffle(X),
    lambda: many(nd.image.random_flip_left_right, IMAGE), lambda: many(nd.image.random_flip_top_bottom, IMAGE),
    lambda: many(mx.npx.image.random_flip_left_right, IMAGE.as_np_ndarray()),
    lambda: many(mx.gluon.data.vision.transforms.RandomFlipLeftRight(), IMAGE),
    lambda: nd.image.random_brightness(IMAGE, min_factor=0.0, max_factor=2.0),
    lambda: nd.image.random_color_jitter(IMAGE, brightness=0.5, contrast=0.5, saturation=0.5, hue=0.5),
    lambda: nd.image.random_lighting(IMAGE),
    lambda: dropped(False), lambda: dropped(True), lambda: nd.Dropout(X, mode="always"),
    lambda: nd.random.uniform(shape=(4,), ctx=CPU1), lambda: nd.random.normal(shape=(4,), out=nd.zeros((4,), ctx=CPU1)),
    lambda: nd.random.multinomial(nd.ones((8,), ctx=CPU1) / 8, shape=20), lambda: nd.sample_uniform(X[0], X[1], shape=2),
    lambda: mx.np.random.uniform(size=(4,), ctx=CPU1), lambda: mx.np.random.uniform(size=(4,), out=mx.np.zeros((4,), ctx=CPU1)),
    lambda: mx.np.random.lognormal(size=(4,), out=mx.np.zeros((4,), ctx=CPU1)),
    lambda: mx.np.random.normal(mx.np.zeros((4,), ctx=CPU1), mx.np.ones((4,), ctx=CPU1))])
def test_a_seed_decides_what_is_drawn_on_any_processor(draw):
    assert follows_the_seed(draw)
