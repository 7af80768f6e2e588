"""Pooling of images with their channels last: what the operator computes, into any part of an array."""
import functools

import numpy as np
import pytest
import torch

import mxnet as mx
from mxnet import kernels
from mxnet.kernels.nn import pooling_nhwc
from mxnet.kernels.nn.pooling_nhwc import Pooling
from mxnet.ops.nn.pooling import pooling

LAST = torch.channels_last


@pytest.fixture(autouse=True)
def kernel():
    if kernels.load("nn/pooling_nhwc") is None:
        pytest.skip("no C++ compiler")


def numbers(*shape):
    return torch.from_numpy(np.random.RandomState(0).normal(size=shape).astype("float32")).contiguous(memory_format=LAST)


def layer_of(data, otherwise=None, **attributes):
    """The layer that pools as the operator does, and what that makes of the data in double precision."""
    operator = functools.partial(pooling.fn, **attributes)
    expected = operator(data.double())
    whole = attributes.get("global_pool")
    kernel = data.shape[2:] if whole else attributes["kernel"]
    layer = Pooling(otherwise or operator, expected.shape[2:], kernel, attributes.get("stride") or (1, 1), attributes.get("pad") or (0, 0),
                    attributes["pool_type"] == "avg", attributes.get("count_include_pad") is not False)
    return layer, expected


def never(data):
    raise AssertionError("the kernel should have done it")


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("kind", [{"pool_type": "max"}, {"pool_type": "avg"}, {"pool_type": "avg", "count_include_pad": False}],
                         ids=["max", "average", "average without padding"])
def test_windows(kind, threads, monkeypatch):
    monkeypatch.setattr(torch, "get_num_threads", lambda: threads)
    rng = np.random.RandomState(1)
    for _ in range(60):
        n, channels, h, w = rng.randint(1, 4), rng.choice([16, 17, 24, 64, 80, 200]), rng.randint(5, 30), rng.randint(5, 30)
        kernel = tuple(int(k) for k in rng.randint(1, 5, 2))
        pad = tuple(int(rng.randint(0, k)) for k in kernel)
        stride, convention = tuple(int(s) for s in rng.randint(1, 4, 2)), ["valid", "full"][rng.randint(2)]
        data = numbers(n, channels, h, w)
        try:
            layer, expected = layer_of(data, never, kernel=kernel, stride=stride, pad=pad, pooling_convention=convention, **kind)
            found = layer(data)
        except AssertionError:  # a window behind the data
            assert any((size - 1) * s - p >= whole for size, s, p, whole in zip(expected.shape[2:], stride, pad, (h, w)))
            continue
        torch.testing.assert_close(found.double(), expected, rtol=1e-5, atol=1e-6)
        assert found.is_contiguous(memory_format=LAST)
        before, behind = (int(b) for b in rng.randint(0, 20, 2))
        into = torch.full((n, before + channels + behind, *expected.shape[2:]), 7.0).contiguous(memory_format=LAST)
        assert layer(data, into=into, first=before) is into
        torch.testing.assert_close(into[:, before:before + channels].double(), expected, rtol=1e-5, atol=1e-6)
        assert (into[:, :before] == 7).all() and (into[:, before + channels:] == 7).all()


@pytest.mark.parametrize("kind", ["max", "avg"])
def test_all_of_an_image(kind):
    data = numbers(2, 40, 7, 9)
    layer, expected = layer_of(data, never, global_pool=True, pool_type=kind)
    torch.testing.assert_close(layer(data).double(), expected, rtol=1e-5, atol=1e-6)


def test_what_is_not_a_number_stays_and_what_is_infinite():
    data = numbers(1, 16, 4, 4)
    data[0, 3, 0, 0], data[0, 4, 1, 1], data[0, 5, :2, :2] = float("nan"), float("inf"), -float("inf")
    layer, _ = layer_of(data, never, kernel=(2, 2), stride=(2, 2), pool_type="max")
    found = layer(data)
    assert found[0, 3, 0, 0].isnan() and found.isnan().sum() == 1
    assert found[0, 4, 0, 0] == float("inf") and found[0, 5, 0, 0] == -float("inf")


def test_what_the_kernel_cannot_do_goes_to_the_function():
    few = numbers(2, 3, 6, 6)
    layer, expected = layer_of(few, kernel=(2, 2), stride=(2, 2), pool_type="max")
    torch.testing.assert_close(layer(few).double(), expected)
    into = torch.zeros(2, 5, 3, 3)
    assert layer(few, into=into, first=1) is into
    torch.testing.assert_close(into[:, 1:4].double(), expected)
    assert (into[:, ::4] == 0).all()


def test_windows_outside_of_the_image_are_refused():
    data, into = numbers(1, 16, 4, 4), numbers(1, 16, 5, 5)
    with pytest.raises(mx.MXNetError, match=r"kernel nn/pooling_nhwc.forward_float32: \(p - 1\) \* stride_h - pad_h < h does not hold"):
        pooling_nhwc._forward((data, into), (1, 1, 1, 1, 0, 0, 0, 0, 0))
    with pytest.raises(mx.MXNetError, match="0 <= pad_h < kernel_h does not hold"):
        pooling_nhwc._forward((data, into), (2, 2, 1, 1, 2, 1, 0, 0, 0))
