"""Dropout."""
import numpy as np
import pytest
import torch

import mxnet as mx
from mxnet import MXNetError
from mxnet.ops import get, random_state
from simulated_gpus import gpus

DROPOUT = get("Dropout")


def test_outside_training_a_copy():
    data = torch.arange(6.0)
    out = DROPOUT(data, p=0.5)
    assert torch.equal(out, data) and out.data_ptr() != data.data_ptr()
    assert torch.equal(DROPOUT(data, p=0.0, training=True), data)


# Small masks and large ones are drawn in different ways.
@pytest.mark.parametrize("shape, dtype", [((200, 50), torch.float32), ((201, 51), torch.float64), ((80, 50), torch.float32),
                                          ((64, 65), torch.bfloat16)])
def test_training_drops_and_scales(shape, dtype):
    data = torch.ones(*shape, dtype=dtype, requires_grad=True)
    random_state.seed(1)
    out = DROPOUT(data, p=0.2, training=True)
    assert sorted(set(out.flatten().tolist())) == [0.0, 1.25]
    assert abs((out == 0).float().mean() - 0.2) < 0.02
    assert len({tuple(row) for row in (out == 0).tolist()}) == shape[0]
    out.sum().backward()
    assert torch.equal(data.grad, out.detach())
    random_state.seed(1)
    assert torch.equal(DROPOUT(data, p=0.2, training=True), out)


def test_mode_always():
    assert (DROPOUT(torch.ones(1000), p=0.5, mode="always") == 0).any()


def test_elements_along_axes_are_dropped_together():
    out = DROPOUT(torch.ones(4, 100, 6), p=0.5, axes=(0, 2), training=True)
    assert torch.equal(out, out[:1, :, :1].expand(4, 100, 6))
    assert 0 < (out[0, :, 0] == 0).sum() < 100


def test_everything_dropped_is_nan():
    assert DROPOUT(torch.ones(5), p=1.0, training=True).isnan().all()
    with pytest.raises(MXNetError, match="Dropout: `p` must be a number from 0 to 1, received 1.5"):
        DROPOUT.parse({"p": 1.5})


def test_half_precision():
    out = DROPOUT(torch.ones(100, dtype=torch.float16), training=True)
    assert out.dtype == torch.float16 and set(out.tolist()) == {0.0, 2.0}


@pytest.mark.parametrize("axes", [(-1,), (2,), (0, 9)])
def test_axes_count_from_the_front(axes):
    with pytest.raises(MXNetError, match=r"Dropout: `axes` must be from 0 to 1 for 2-D data, received \("):
        DROPOUT(torch.ones(2, 3), axes=axes)


@pytest.mark.parametrize("dtype", ["float32", "float16", "float64"])
def test_on_a_gpu_a_mask_of_bytes_drops_data_and_gradients(dtype):
    with gpus():
        x = mx.nd.array(np.arange(1, 4001).reshape(4, 1000) % 1000 + 1, ctx=mx.gpu(0), dtype=dtype)
        x[0, 0] = np.nan
        x.attach_grad()
        with mx.autograd.record():
            y = mx.nd.Dropout(x, p=0.25)
        y.backward(retain_graph=True)
        values, gradient = y.asnumpy(), x.grad.asnumpy()
        assert np.isnan(values[0, 0]) and y.dtype == np.dtype(dtype)  # as with MXNet, which multiplies by 0
        values[0, 0], x[0, 0] = gradient[0, 0], 1
        assert set(np.unique(gradient).tolist()) == {0, float(np.float32(4 / 3).astype(dtype))}
        np.testing.assert_allclose(values, x.asnumpy() * gradient, rtol=1e-3)
        assert 0.7 < (gradient > 0).mean() < 0.8
        y.backward()
        np.testing.assert_array_equal(x.grad.asnumpy(), gradient)
        rows = mx.nd.Dropout(mx.nd.ones((8, 50), ctx=mx.gpu(0)), p=0.5, axes=(1,), mode="always").asnumpy()
        assert (rows == rows[:, :1]).all()
