"""Compiled graphs with their calls written down: the results of the graph itself, whoever calls when and on which memory."""
import threading

import numpy as np
import pytest
import torch

import mxnet as mx
from mxnet import nd, profiler
from mxnet.gluon import nn
from mxnet.graph.backends.cpu import batch_tiling, mlp_fusion, static_plan


@pytest.fixture(autouse=True)
def small(kernels_compute_all):
    """Kernels compute the smallest layers."""


class Mixed(nn.HybridBlock):
    """Kernels with a residual, a concatenation and a depthwise convolution, and in between what has none."""

    def __init__(self, outputs=1):
        super().__init__()
        self.outputs = outputs
        with self.name_scope():
            self.one, self.two = nn.Conv2D(16, 3, padding=1, in_channels=3), nn.Conv2D(16, 3, padding=1, in_channels=16)
            self.each, self.three = nn.Conv2D(16, 3, padding=1, groups=16, in_channels=16), nn.Conv2D(24, 1, in_channels=32)
            self.last = nn.Dense(5, in_units=24 * 3 * 3)

    def hybrid_forward(self, F, x):
        first = F.relu(self.one(x))
        middle = F.tanh(self.two(first) + first)  # which no kernel computes
        joined = F.concat(self.each(middle), self.two(middle), dim=1)
        pooled = F.Pooling(self.three(joined), kernel=(2, 2), stride=(2, 2), pool_type="max")
        out = self.last(pooled)
        return out if self.outputs == 1 else [out, first, joined]


def image(seed=0, images=2):
    return nd.array(np.random.RandomState(seed).uniform(-1, 1, (images, 3, 6, 6)))


def compiled(net, x):
    """The network on the backend, behind its first call."""
    net.initialize(mx.init.Xavier())
    net(x)
    net.hybridize(backend="kernels")
    net(x)
    state, = net._cached_op.handle.states.values()
    assert isinstance(state.function, static_plan.StaticPlan)
    return state.function


def numbers(arrays):
    return [a.asnumpy() for a in arrays] if isinstance(arrays, (list, tuple)) else [arrays.asnumpy()]


def expected(net, x):
    net.hybridize(active=False)
    found = numbers(net(x))
    net.hybridize(backend="kernels")
    return found


@pytest.mark.parametrize("outputs", [1, 3])
def test_each_call_gives_the_results_of_the_graph(outputs):
    net = Mixed(outputs)
    compiled(net, image())
    inputs = [image(seed) for seed in range(4)]
    wanted = [expected(net, x) for x in inputs]
    found = [net(x) for x in inputs]  # all alive: no call writes to what another one returned
    for f, w in zip(found, wanted):
        for one, other in zip(numbers(f), w, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


def pooled(*last):
    """Images that become one pixel, and what comes behind them."""
    net = nn.HybridSequential()
    net.add(nn.Conv2D(24, 3, in_channels=3), nn.GlobalAvgPool2D(), *last)
    return net


@pytest.mark.parametrize("images", [1, 3])
@pytest.mark.parametrize("last, sizes", [
    (lambda: [nn.Dense(5)], (5,)), (lambda: [nn.Flatten(), nn.Dense(5, activation="relu")], (5,)), (lambda: [nn.Dense(1100)], (1100,)),
    (lambda: [nn.Dense(1100, activation="relu")], (1100,)),
    (lambda: [nn.Conv2D(7, 1), nn.Flatten()], (7,)), (lambda: [nn.Conv2D(7, 1)], (7, 1, 1))])
def test_what_comes_behind_the_last_pixel_is_planned_as_well(last, sizes, images, monkeypatch):
    monkeypatch.setattr(mlp_fusion, "SMALL_WEIGHT", 24 * 1000)  # 24 to 1100 is large
    net = pooled(*last())
    run = compiled(net, image(images=images))
    inputs = [image(seed, images) for seed in range(3)]
    wanted = [expected(net, x)[0] for x in inputs]
    found = [net(x) for x in inputs]
    for f, w in zip(found, wanted):
        assert f.shape == (images, *sizes)
        np.testing.assert_allclose(f.asnumpy(), w, rtol=1e-4, atol=1e-5)
    assert not [s for s in run._steps[torch.get_num_threads()].steps if isinstance(s, static_plan.OtherCall)]


def test_images_in_any_order_in_memory():
    net = Mixed()
    run = compiled(net, image())
    inputs = given(net, image(1))
    x, want = inputs[0], run(*inputs)[0]
    for other in (x.contiguous(memory_format=torch.channels_last), x.repeat_interleave(2, 3)[..., ::2]):
        assert torch.equal(run(other, *inputs[1:])[0], want)


class Pixel(nn.HybridBlock):
    """What a kernel computes of one pixel, and another pixel, which no kernel reads."""

    def __init__(self):
        super().__init__()
        self.one = nn.Conv2D(16, 1, in_channels=16)

    def hybrid_forward(self, F, x, other):
        return [F.flatten(self.one(x)), F.flatten(other)]


def test_a_pixel_that_no_kernel_reads_in_any_order_in_memory():
    net, (x, other) = Pixel(), nd.array(np.random.RandomState(0).uniform(-1, 1, (2, 2, 16, 1, 1)))
    net.initialize(mx.init.Xavier())
    wanted = numbers(net(x, other))
    net.hybridize(backend="kernels")
    net(x, other)
    state, = net._cached_op.handle.states.values()
    read = [n for n in state.program.graph.nodes if n.op == "placeholder" and n.users]  # weights are built in
    assert len(read) == 2
    for given in (other._data, other._data.repeat_interleave(2, 1)[:, ::2]):
        tensors = iter((x._data, given))
        inputs = [next(tensors) if n in read else torch.empty(0) for n in state.program.graph.nodes if n.op == "placeholder"]
        for found, want in zip(state.function(*inputs), wanted, strict=True):
            np.testing.assert_allclose(found.numpy(), want, rtol=1e-4, atol=1e-5)


def test_threads_at_once():
    net = Mixed()
    compiled(net, image())
    wanted = {seed: expected(net, image(seed))[0] for seed in range(4)}
    net(image())
    run, = [s.function for s in net._cached_op.handle.states.values()]
    start, wrong = threading.Barrier(4), []

    def call(seed):
        x = image(seed)
        start.wait()
        for _ in range(50):
            if not np.allclose(net(x).asnumpy(), wanted[seed], rtol=1e-4, atol=1e-5):
                wrong.append(seed)
    threads = [threading.Thread(target=call, args=(seed,)) for seed in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong
    assert 1 <= len(run.idle[torch.get_num_threads()]) <= 5  # as many lists of calls as ran at once


def test_another_number_of_threads(monkeypatch):
    net, x = Mixed(), image()
    run = compiled(net, x)
    before = net(x).asnumpy()
    monkeypatch.setattr(torch, "get_num_threads", lambda: 7)
    for _ in range(2):
        np.testing.assert_allclose(run(*given(net, x))[0].numpy(), before, rtol=1e-5, atol=1e-6)
    assert sorted(run._steps)[-1] == 7


def given(net, x):
    state, = net._cached_op.handle.states.values()
    count = sum(n.op == "placeholder" for n in state.program.graph.nodes)
    return [x._data, *[torch.empty(0)] * (count - 1)]  # weights are built in


def test_a_call_that_fails_leaves_the_next_one_right():
    net, x = Mixed(), image()
    run = compiled(net, x)
    want = net(x).asnumpy()
    idle = run.idle[torch.get_num_threads()][0]
    broken = next(i for i, item in enumerate(idle.items) if not isinstance(item, list))
    step, idle.items[broken] = idle.items[broken], lambda env: 1 / 0
    with pytest.raises(ZeroDivisionError):
        run(*given(net, x))
    idle.items[broken] = step
    np.testing.assert_array_equal(net(x).asnumpy(), want)


def test_arrays_that_are_over_give_their_place_to_others():
    net = nn.HybridSequential()
    for i in range(6):
        net.add(nn.Conv2D(16, 3, padding=1, in_channels=3 if i == 0 else 16))
    x = image()
    run = compiled(net, x)
    net(x)
    idle, each = run.idle[torch.get_num_threads()][0], 2 * 16 * 6 * 6 * 4
    frame = 2 * 8 * 8 * 3 * 4  # of the first layer
    assert each < idle._size < 2 * each + frame + 16 * 64  # two layers' at a time, of which the last makes an array of its own
    assert sum(len(item) for item in idle.items if isinstance(item, list)) == 6


def test_places_are_disjoint_while_they_are_needed():
    rng = np.random.RandomState(3)
    for _ in range(50):
        arrays = []
        for first in sorted(rng.randint(0, 30, 40)):
            array = static_plan.PlannedArray((rng.randint(1, 300),), by_kernel=True)
            array.first, array.last = first, first + rng.randint(0, 8)
            arrays.append(array)
        over = {}
        for array in arrays:
            over.setdefault(array.last, []).append(array)
        places = static_plan.assign_places(arrays, over)
        for i, a in enumerate(arrays):
            assert places[a] % 64 == 0
            for b in arrays[:i]:
                if a.first <= b.last and b.first <= a.last:
                    assert places[a] + a.bytes <= places[b] or places[b] + b.bytes <= places[a]
        assert max(places[a] + a.bytes for a in arrays) < sum(a.bytes + 63 for a in arrays)


def test_parts_of_a_batch_one_after_the_other(monkeypatch):
    monkeypatch.setattr(batch_tiling, "limits", batch_tiling.Limits(2_000, 5_000, 200, image=0, rereads=0))
    net, x = nn.HybridSequential(), image(images=6)
    for i in range(3):
        net.add(nn.Conv2D(16, 3, padding=1, in_channels=3 if i == 0 else 16))
    net.add(nn.Dense(4))
    run = compiled(net, x)
    assert "on 2 of 6 images at a time" in net.explain()
    for seed in (1, 2):
        other = image(seed, images=6)
        np.testing.assert_allclose(net(other).asnumpy(), expected(net, other)[0], rtol=1e-4, atol=1e-5)
    calls = [item for item in run.idle[torch.get_num_threads()][0].items if isinstance(item, list)]
    assert sum(map(len, calls)) == 3 * 3 + 1  # each convolution once for each part, and the dense layer


def test_a_profile_names_the_layers(tmp_path):
    net, x = Mixed(), image()
    compiled(net, x)
    profiler.set_config(filename=str(tmp_path / "profile.json"), profile_all=True, aggregate_stats=True)
    profiler.set_state("run")
    net(x).wait_to_read()
    profiler.set_state("stop")
    table = profiler.dumps(reset=True)
    profiler.dump()  # so that nothing is left for the next test
    assert "Convolution" in table and "Pooling" in table and "tanh" in table


def test_what_has_no_kernels_is_not_planned():
    net, x = nn.Dense(3, in_units=4), nd.ones((2, 4))
    net.initialize()
    net.hybridize(backend="kernels")
    net(x)
    state, = net._cached_op.handle.states.values()
    assert not isinstance(state.function, static_plan.StaticPlan)


def test_another_default_type():
    net, x = Mixed(3), image()
    run = compiled(net, x)
    want = [a.asnumpy() for a in net(x)]
    torch.set_default_dtype(torch.float16)
    try:
        run.idle.clear(), run._steps.clear()
        found = [[a.clone() for a in run(*given(net, x))] for _ in range(3)]
    finally:
        torch.set_default_dtype(torch.float32)
    for arrays in found:
        for f, w in zip(arrays, want, strict=True):
            assert f.dtype is torch.float32
            np.testing.assert_allclose(f.numpy(), w, rtol=1e-4, atol=1e-5)
