import warnings

import numpy as np
import pytest
import torch

import mxnet as mx
from mxnet import kernels, nd
from mxnet.gluon import nn
from mxnet.kernels.nn import optimizer_update
from mxnet.ndarray import memory_format
from mxnet.optimizer import steps
from mxnet.test_utils import assert_almost_equal
from optimizer_checks import START, make, run
from residual import numbers


@pytest.mark.parametrize("optimizer", ["sgd", "adam", "nag", "rmsprop", "lamb"])
def test_optimizers_follow_the_order_in_memory(optimizer):
    results = []
    for hybrid in (False, True):
        mx.random.seed(4)
        net = nn.Conv2D(4, 3, in_channels=2)
        net.initialize(mx.init.Normal(1))
        net.hybridize(hybrid)
        trainer = mx.gluon.Trainer(net.collect_params(), optimizer, {"learning_rate": 0.1, **({"momentum": 0.9} if optimizer == "sgd" else {})})
        for _ in range(3):
            with mx.autograd.record():
                loss = (net(nd.array(numbers(2, 2, 5, 5, seed=1).numpy())) ** 2).sum()
            loss.backward()
            trainer.step(1)
        results.append(net.weight.data().asnumpy())
    np.testing.assert_allclose(*results, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("dtype, lr, passes", [("float32", 0.1, 1), ("float32", 1e-9, 0), ("float64", 0.1, 0)])
def test_momentum_takes_one_pass_where_its_rounding_allows(dtype, lr, passes, monkeypatch):
    fused, seen = torch._fused_sgd_, []
    monkeypatch.setattr(torch, "_fused_sgd_", lambda *args, **kwargs: (seen.append(1), fused(*args, **kwargs)))
    weight, grad, momentum = mx.nd.array([1, 2], dtype=dtype), mx.nd.array([3, 4], dtype=dtype), mx.nd.array([0.5, 0.5], dtype=dtype)
    mx.optimizer.SGD(learning_rate=lr, momentum=0.9, wd=0.5, rescale_grad=0.5).update(0, weight, grad, momentum)
    expected = 0.45 - lr * np.array([1.5 + 0.5, 2 + 1])
    np.testing.assert_allclose(momentum.asnumpy(), expected, rtol=1e-6 if dtype == "float32" else 1e-15)
    np.testing.assert_allclose(weight.asnumpy(), [1, 2] + expected, rtol=1e-6 if dtype == "float32" else 1e-15)
    assert len(seen) == passes


@pytest.mark.parametrize("name, kwargs", [("sgd", {"momentum": 0.9}), ("sgd", {}), ("lars", {"momentum": 0.9}), ("lamb", {})])
@pytest.mark.parametrize("multi_precision", [False, True])
def test_several_weights_at_once_are_updated_as_one_by_one(name, kwargs, multi_precision):
    rng = np.random.RandomState(0)
    names = dict(enumerate(["a_weight", "b_bias", "c_weight"]))
    dtype = "float16" if multi_precision else "float32"
    start = [rng.randn(*s) for s in ((4, 5), (3,), (2, 2))]
    weights = []
    for together in (False, True):
        updater = make(name, wd=0.1, param_idx2name=names, multi_precision=multi_precision, **kwargs)
        rng.seed(1)
        ws = [mx.nd.array(w, dtype=dtype) for w in start]
        for _ in range(3):
            gs = [mx.nd.array(rng.randn(*w.shape), dtype=dtype) for w in ws]
            if together:
                updater([0, 1, 2], gs, ws)
            else:
                for i in range(3):
                    updater(i, gs[i], ws[i])
        weights.append(ws)
    for one, other in zip(*weights):
        assert_almost_equal(one, other, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("clip", [None, 0.3])
def test_one_pass_over_a_large_weight_does_the_same(clip):
    rng = np.random.RandomState(0)
    size = 1 << 19  # more than a core's cache holds
    w, g = rng.randn(size).astype("float32"), rng.randn(size).astype("float32")
    weight, updater = mx.nd.array(w), make("sgd", momentum=0.9, wd=0.1, rescale_grad=0.5, clip_gradient=clip)
    mom = np.zeros_like(w)
    for _ in range(2):
        updater(0, mx.nd.array(g), weight)
        scaled = 0.5 * g if clip is None else np.clip(0.5 * g, -clip, clip)
        mom = 0.9 * mom - 0.1 * (scaled + 0.1 * w)
        w = w + mom
    np.testing.assert_allclose(weight.asnumpy(), w, rtol=1e-4, atol=1e-6)


def adam_by_hand(w, g, t, clip):
    """Return a weight after `t` updates from nothing by the gradient `g`."""
    mean = square = np.zeros_like(w)
    for i in range(1, t + 1):
        scaled = 0.5 * g + 0.1 * w
        scaled = scaled if clip is None else np.clip(scaled, -clip, clip)
        mean, square = 0.9 * mean + 0.1 * scaled, 0.999 * square + 0.001 * scaled ** 2
        w = w - 0.1 * np.sqrt(1 - 0.999 ** i) / (1 - 0.9 ** i) * mean / (np.sqrt(square) + 1e-8)
    return w


@pytest.mark.skipif(kernels.load("nn/optimizer_update") is None, reason="no C++ compiler")
@pytest.mark.parametrize("clip", [None, 0.0, 0.3])
def test_adam_updates_weights_of_all_sizes_in_one_call(clip, monkeypatch):
    calls, together = [], optimizer_update.adam_together
    monkeypatch.setattr(optimizer_update, "adam_together", lambda *args: calls.append(len(args[0])) or together(*args))
    monkeypatch.setattr(steps, "adam", None)  # it is not called
    rng = np.random.RandomState(0)
    values = [rng.randn(*shape) for shape in ((3,), (1 << 17,), (4, 3, 5, 5), (1,))]
    gradients = [rng.randn(*v.shape) for v in values]
    weights, grads = [mx.nd.array(v) for v in values], [mx.nd.array(g) for g in gradients]
    memory_format.channels_last(weights[2])
    memory_format.channels_last(grads[2])
    updater = make("adam", wd=0.1, rescale_grad=0.5, clip_gradient=clip)
    for _ in range(3):
        updater(list(range(4)), grads, weights)
    for w, v, g in zip(weights, values, gradients):
        np.testing.assert_allclose(w.asnumpy(), adam_by_hand(v, g, 3, clip or None), rtol=1e-4, atol=1e-5)
    assert calls == [4, 4, 4]


@pytest.mark.parametrize("odd", ["float64", "mixed", "sparse"])
def test_adam_updates_what_the_kernel_does_not_take(odd):
    rng = np.random.RandomState(0)
    values, gradients = rng.randn(3, 2, 4), rng.randn(3, 2, 4)
    dtypes = {"float64": ["float64"] * 3, "mixed": ["float32", "float64", "float32"]}.get(odd, ["float32"] * 3)
    weights, grads = ([mx.nd.array(a, dtype=t) for a, t in zip(arrays, dtypes)] for arrays in (values, gradients))
    if odd == "sparse":
        grads[1] = grads[1].tostype("row_sparse")
    updater = make("adam", wd=0.1, rescale_grad=0.5)
    for _ in range(2):
        updater([0, 1, 2], grads, weights)
    for w, v, g in zip(weights, values, gradients):
        np.testing.assert_allclose(w.asnumpy(), adam_by_hand(v, g, 2, None), rtol=1e-4, atol=1e-5)


def test_gradients_are_left_alone():
    for name in ("sgd", "adam", "adadelta", "nag", "rmsprop", "adamax", "nadam", "dcasgd"):
        grad = mx.nd.array([1.0, 2.0])
        make(name, rescale_grad=0.5, wd=0.1)(0, grad, mx.nd.ones((2,)))
        assert grad.asnumpy().tolist() == [1.0, 2.0], name


def test_only_arrays_are_updated():
    with pytest.raises(mx.MXNetError, match="`grad` is ndarray"):
        mx.optimizer.SGD().update(0, mx.nd.ones((2,)), np.ones(2), None)


def test_weights_being_trained_are_written_in_place():
    weight = mx.nd.ones((2,))
    weight.attach_grad()
    with mx.autograd.record():
        loss = (weight * weight).sum()
    loss.backward()
    tensor = weight.as_torch()
    make("sgd", momentum=0.9)(0, weight.grad, weight)
    np.testing.assert_allclose(tensor.detach().numpy(), [0.8, 0.8], rtol=1e-6)
    with mx.autograd.record():
        (weight * weight).sum().backward()
    np.testing.assert_allclose(weight.grad.asnumpy(), [1.6, 1.6], rtol=1e-6)


def test_no_optimizer_warns_about_numbers():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for name in ("adam", "nag", "ftml", "signum"):
            run(make(name), mx.nd.array(START))


@pytest.mark.parametrize("size", [3, 1 << 20])
def test_states_outlive_a_momentum(size):
    """Those that were saved with one are loaded by an optimizer without, and operators have 0 by default."""
    weight, grad, state = mx.nd.ones((size,)), mx.nd.ones((size,)), mx.nd.full((size,), 7)
    updater = mx.optimizer.get_updater(mx.optimizer.SGD(learning_rate=0.5))
    updater.states, updater.states_synced = {0: state}, {0: True}
    updater(0, grad, weight)
    assert weight.asnumpy()[[0, -1]].tolist() == [0.5, 0.5] and state.asnumpy()[[0, -1]].tolist() == [-0.5, -0.5]
    mx.nd.sgd_mom_update(weight, grad, state, lr=0.25, out=weight)
    assert weight.asnumpy()[[0, -1]].tolist() == [0.25, 0.25]


def test_rows_in_several_pieces():
    """A gradient of more rows than are updated at a time."""
    count, width = 5000, 128  # 2,048 rows of float32 at a time
    weight, momentum = mx.nd.ones((2 * count, width)), mx.nd.ones((2 * count, width))
    sparse = [array.tostype("row_sparse") for array in (weight, momentum)]
    rows = np.arange(0, 2 * count, 2)
    values = np.repeat(np.arange(count, dtype="float32")[:, None], width, 1)
    grad = mx.nd.sparse.row_sparse_array((values, rows), shape=weight.shape)
    sgd = mx.optimizer.SGD(learning_rate=0.5, momentum=0.5, rescale_grad=1, wd=0)
    sgd.update(0, sparse[0], grad, sparse[1])
    # momentum: 0.5 - 0.5 * gradient
    expected = np.ones((2 * count, 1), "float32")
    expected[::2, 0] += 0.5 - 0.5 * np.arange(count)
    np.testing.assert_array_equal(sparse[0].asnumpy(), np.broadcast_to(expected, weight.shape))
