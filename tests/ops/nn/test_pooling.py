"""Pooling: rounding, borders, errors. More values: `test_against_oracle`."""
import numpy as np
import pytest
import torch

import mxnet as mx
from mxnet import MXNetError
from mxnet.ops import get

POOLING = get("Pooling")


def infer(data, **attributes):
    parsed = POOLING.with_defaults(POOLING.parse(attributes))
    return POOLING.shape_inference([data], [None], **parsed)[1][0]


@pytest.mark.parametrize("convention, expected", [("valid", [2.0, 4.0]), ("full", [2.0, 4.0, 5.0]), ("same", [2.0, 4.0, 5.0])])
def test_conventions(convention, expected):
    data = torch.arange(1.0, 6).view(1, 1, 5)
    out = POOLING(data, kernel=(2,), stride=(2,), pooling_convention=convention)
    assert out.flatten().tolist() == expected
    assert infer((1, 1, 5), kernel=(2,), stride=(2,), pooling_convention=convention) == tuple(out.shape)


def test_same_counts_what_is_there():
    data = torch.arange(1.0, 6).view(1, 1, 5)
    assert POOLING(data, kernel=(3,), stride=(2,), pooling_convention="same", pool_type="avg").flatten().tolist() == [2.0, 4.0, 5.0]
    assert POOLING(data, kernel=(3,), stride=(2,), pooling_convention="same", pool_type="sum").flatten().tolist() == [6.0, 12.0, 5.0]


def test_the_maximum_goes_to_one_place_only():
    data = torch.ones(1, 1, 2, 2, requires_grad=True)
    POOLING(data, kernel=(2, 2)).sum().backward()
    assert data.grad.flatten().tolist() == [1.0, 0.0, 0.0, 0.0]
    data.grad = None
    POOLING(data, global_pool=True).sum().backward()
    assert data.grad.flatten().tolist() == [1.0, 0.0, 0.0, 0.0]


@pytest.mark.parametrize("p", [2, 3])
def test_lp_has_no_gradient_at_zero(p):
    data = torch.zeros(1, 1, 4, requires_grad=True)
    POOLING(data, kernel=(2,), pool_type="lp", p_value=p).sum().backward()
    assert data.grad.flatten().tolist() == [0.0] * 4


def test_half_precision():
    data = torch.arange(16, dtype=torch.float16).view(1, 1, 4, 4)
    for pool_type, expected in (("max", [5, 7, 13, 15]), ("avg", [2.5, 4.5, 10.5, 12.5]), ("sum", [10, 18, 42, 50])):
        out = POOLING(data, kernel=(2, 2), stride=(2, 2), pool_type=pool_type)
        assert out.dtype == torch.float16 and out.flatten().tolist() == expected


@pytest.mark.parametrize("attributes, outs, gradients", [
    ({"kernel": (1, 2)}, [57.38, 44.97, 30.02], [0.76, 1.277, 1.443, 0.009995]),
    ({"global_pool": True}, [60.0], [0.695, 0.4443, 0.25, 0.002499])])
def test_powers_beyond_half_precision(attributes, outs, gradients):
    """50 to the power of 3 is more than float16 holds; the roots are MXNet's on a CPU."""
    data = mx.nd.array([[[[50.0, 40.0, 30.0, 3.0]]]], dtype="float16")
    data.attach_grad()
    with mx.autograd.record():
        out = mx.nd.Pooling(data, pool_type="lp", p_value=3, **attributes)
    out.backward()
    assert out.dtype == data.grad.dtype == np.float16
    np.testing.assert_allclose(out.asnumpy().ravel(), outs, rtol=1e-3)
    np.testing.assert_allclose(data.grad.asnumpy().ravel(), gradients, rtol=2e-3)


def test_partial_shapes():
    assert infer((-1, 3, -1, 8), kernel=(2, 2), stride=(2, 2)) == (-1, 3, -1, 4)
    assert infer((-1, 3, -1, 8), global_pool=True) == (-1, 3, 1, 1)
    assert infer((2, -1, 8, 3), global_pool=True, layout="NHWC") == (2, 1, 1, 3)
    assert infer((2, 7, 8, 3), kernel=(3, 3), layout="NHWC", stride=(2, 2), pooling_convention="full") == (2, 3, 4, 3)
    assert infer(None, kernel=(2, 2)) is None


def test_errors():
    with pytest.raises(MXNetError, match=r"a kernel of at most 5 expected, the padded size of the data; received 7"):
        infer((1, 1, 5, 5), kernel=(7, 7))
    with pytest.raises(MXNetError, match="`kernel` must be given where `global_pool` is not set"):
        POOLING(torch.ones(1, 1, 5, 5))
    with pytest.raises(MXNetError, match=r"`kernel` must have 2 sizes for 4-D data, received \(3, 3, 3\)"):
        POOLING(torch.ones(1, 1, 5, 5), kernel=(3, 3, 3))
    with pytest.raises(MXNetError, match="`p_value` must be 1, 2 or 3 for pool_type 'lp', received None"):
        infer((1, 1, 5, 5), kernel=(2, 2), pool_type="lp")
    with pytest.raises(MXNetError, match=r"`stride` must be 2 sizes of at least 1, received \(0, 1\)"):
        infer((1, 1, 5, 5), kernel=(2, 2), stride=(0, 1))
    with pytest.raises(MXNetError, match="convention 'same' is for 3-D data"):
        infer((1, 1, 5, 5), kernel=(2, 2), pooling_convention="same")
    with pytest.raises(MXNetError, match=r"convention 'same' is for 3-D data without padding, received shape .* and pad \(1,\)"):
        POOLING(torch.ones(1, 1, 5), kernel=(2,), pad=(1,), pooling_convention="same")
    with pytest.raises(MXNetError, match="data must have 3 to 5 axes"):
        infer((4, 5), kernel=(2,))
    with pytest.raises(MXNetError, match="data must have 3 to 5 axes"):
        POOLING(torch.ones(4, 5), global_pool=True, pool_type="avg")
    with pytest.raises(MXNetError, match="`p_value` must be 1, 2 or 3"):
        POOLING(torch.ones(1, 1, 5), kernel=(2,), pool_type="lp")
    with pytest.raises(MXNetError, match="`pool_type` must be one of 'avg', 'lp', 'max', 'sum', received 'median'"):
        POOLING.parse({"kernel": (2, 2), "pool_type": "median"})


def test_old_pooling_pads_a_maximum_with_zeros():
    data = torch.full((1, 1, 2, 2), -1.0)
    attributes = {"kernel": (2, 2), "stride": (2, 2), "pad": (1, 1)}
    assert POOLING(data, **attributes).flatten().tolist() == [-1.0] * 4
    assert get("Pooling_v1")(data, **attributes).flatten().tolist() == [0.0] * 4


def test_numbers_beyond_the_axes_are_not_read():
    data = torch.tensor([[[1.0, 5.0, 2.0, 4.0]]])
    assert POOLING(data, kernel=(2,), stride=(2, 7), pad=(0, 3)).tolist() == [[[5.0, 4.0]]]
    assert infer((1, 1, 4), kernel=(2,), stride=(2, 7), pad=(0, 3)) == (1, 1, 2)
    with pytest.raises(MXNetError, match=r"`stride` must be 2 sizes of at least 1, received \(2,\)"):
        POOLING(torch.ones(1, 1, 4, 4), kernel=(2, 2), stride=(2,))


@pytest.mark.parametrize("attributes", [{"kernel": (3,)}, {"global_pool": True}])
def test_the_layout_names_each_axis(attributes):
    with pytest.raises(MXNetError, match="`layout` must name 3 axes for 3-D data, received 'NCHW'"):
        POOLING(torch.ones(1, 2, 9), layout="NCHW", **attributes)


@pytest.mark.parametrize("attributes, expected", [
    ({"kernel": (2, 2)}, [[0, 3, 2], [4, 4, 0], [0, 0, 0]]),
    ({"kernel": (2, 2), "stride": (2, 2), "pooling_convention": "full"}, [[0, 1, 2], [1, 0, 0], [3, 3, 4]]),
    ({"kernel": (2, 2), "stride": (2, 2), "pad": (1, 1)}, [[1, 2, 2], [3, 4, 0], [0, 0, 0]]),
    ({"global_pool": True}, [[0, 1, 1], [1, 0, 0], [0, 0, 0]]),
    ({"kernel": (2, 2), "pool_type": "avg", "pad": (1, 0)}, [[1, 2.5, 1.5], [2, 4.5, 2.5], [3, 6.5, 3.5]]),
    ({"kernel": (2, 2), "pool_type": "sum", "stride": (2, 2), "pooling_convention": "full"}, [[1, 1, 2], [1, 1, 2], [3, 3, 4]]),
])
def test_the_old_pooling_gives_each_of_equal_maxima_the_gradient(attributes, expected):
    data = torch.tensor([[[[1.0, 3, 3], [3, 2, 0], [0, 0, -1]]]], requires_grad=True)
    out = get("Pooling_v1")(data, **attributes)
    out.backward(torch.arange(1.0, 1 + out.numel()).view(out.shape))
    assert data.grad[0, 0].tolist() == expected


def test_the_old_pooling_is_for_maps():
    pooling = get("Pooling_v1")
    for shape, kernel in (((1, 2, 9), (3,)), ((1, 1, 4, 4, 4), (2, 2, 2))):
        with pytest.raises(MXNetError, match=r"Pooling_v1: data must be \(N, C, H, W\), received shape"):
            pooling(torch.ones(shape), kernel=kernel)
    with pytest.raises(MXNetError, match=r"Pooling_v1: `pad` must be 2 sizes of at least 0, received \(1,\)"):
        pooling(torch.ones(1, 1, 4, 4), kernel=(2, 2), pad=(1,))


@pytest.mark.parametrize("kind, expected", [
    ("avg", [0.75, 1.375, 1.0833333]), ("sum", [36, 66, 52]), ("lp", [15.6204994, 22.4944438, 20.4939015]), ("max", [9, 11, 11])])
def test_volumes_that_only_their_padding_makes_as_large_as_the_kernel(kind, expected):
    data = torch.arange(12.0).reshape(1, 1, 2, 3, 2)
    out = get("Pooling")(data, kernel=(4, 3, 4), pad=(1, 1, 2), pool_type=kind, p_value=2)
    assert out.shape == (1, 1, 1, 3, 3) and torch.allclose(out[0, 0, 0], torch.tensor(expected, dtype=torch.float32)[:, None].expand(3, 3))


def test_padding_that_does_not_count():
    data = torch.arange(12.0).reshape(1, 1, 2, 3, 2).requires_grad_()
    out = get("Pooling")(data, kernel=(4, 3, 4), pad=(1, 1, 2), pool_type="avg", count_include_pad=False)
    out.sum().backward()
    assert out[0, 0, 0, :, 0].tolist() == [4.5, 5.5, 6.5] and data.grad[0, 0, 0].tolist() == [[0.625] * 2, [1] * 2, [0.625] * 2]


@pytest.mark.parametrize("pool_type", ["max", "sum", "avg", "lp"])
def test_steps_beyond_the_data(pool_type):
    data = torch.arange(16.0).reshape(1, 2, 1, 8)
    options = {"kernel": (3, 3), "pool_type": pool_type, "pooling_convention": "full", "pad": (2, 2), "p_value": 2}
    far, near = (get("Pooling")(data, stride=(2, s), **options) for s in (1 << 40, 100))
    assert far.tolist() == near.tolist() and far.shape == (1, 2, 2, 2)


def test_padding_far_beyond_the_kernel_is_refused():
    with pytest.raises(MXNetError, match="elements of padding; kernels of size"):
        get("Pooling").raw(torch.ones((1, 2, 9)), kernel=(3,), stride=(63,), pad=(2 ** 31,), pool_type="max", pooling_convention="full")


def test_padding_of_no_map_is_bounded_too():
    with mx.np_shape(), pytest.raises(MXNetError, match=r"pad=\(4294967297, 1\) around data of shape \(0, 7, 8, 2\) makes 541165879800 elements"):
        mx.nd.Pooling(mx.nd.zeros((0, 7, 8, 2)), kernel=(3, 3), pool_type="avg", stride=(2, 2), pad=(2 ** 32 + 1, 1), count_include_pad=False,
                      pooling_convention="full")
