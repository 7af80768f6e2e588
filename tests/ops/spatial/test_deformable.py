"""Errors and shapes; values and gradients are compared in test_arrays_against_oracle.py."""
import pytest
import torch

import mxnet as mx
from mxnet import MXNetError
from mxnet.ops import get


def zeros(*shape):
    return mx.nd.zeros(shape)


@pytest.mark.parametrize("call, message", [
    (lambda: mx.nd.contrib.DeformableConvolution(zeros(1, 2, 4, 4), zeros(1, 3, 4, 4), zeros(2, 2, 3, 3), zeros(2), kernel=(3, 3),
                                                 pad=(1, 1), num_filter=2), r"`offset` must have shape \(1, 18, 4, 4\), received \(1, 3, 4, 4\)"),
    (lambda: mx.nd.contrib.DeformableConvolution(zeros(1, 2, 4, 4), zeros(1, 18, 4, 4), zeros(2, 2, 3, 3), kernel=(3, 3), pad=(1, 1),
                                                 num_filter=2), "expected a bias with no_bias=False, received none"),
    (lambda: mx.nd.contrib.DeformableConvolution(zeros(1, 2, 4, 4), zeros(1, 18, 4, 4), zeros(2, 2, 3, 3), kernel=(3, 3), pad=(1, 1),
                                                 num_filter=3, no_bias=True), r"`weight` must have shape \(3, 2, 3, 3\), received \(2, 2, 3, 3\)"),
    (lambda: mx.nd.contrib.DeformableConvolution(zeros(1, 2, 4, 4), zeros(1, 18, 4, 4), zeros(2, 2, 3, 3), kernel=(3, 3), pad=(1, 1),
                                                 num_filter=2, no_bias=True, layout="NCW"), "`layout` must be 'NCHW', received 'NCW'"),
    (lambda: mx.nd.contrib.ModulatedDeformableConvolution(zeros(1, 2, 4, 4), zeros(1, 18, 4, 4), zeros(1, 9, 4, 4), zeros(2, 2, 3, 3), kernel=(3, 3),
                                                          pad=(1, 1), num_filter=0, no_bias=True), "`num_filter` must be an integer of at least 1"),
])
def test_errors(call, message):
    with pytest.raises(MXNetError, match=message):
        call()


def test_modulated_convolution_with_full_mask_is_the_plain_one():
    """MXNet has it for GPUs only; inside the image it must agree with DeformableConvolution."""
    generator = torch.Generator().manual_seed(0)
    data, weight, bias = (torch.randn(*s, generator=generator) for s in ((1, 2, 6, 6), (3, 2, 3, 3), (3,)))
    offset = 0.4 * torch.rand(1, 18, 4, 4, generator=generator)
    attributes = {"kernel": (3, 3), "num_filter": 3}
    plain = get("_contrib_DeformableConvolution")(data, offset, weight, bias, **attributes)
    modulated = get("_contrib_ModulatedDeformableConvolution")
    full = modulated(data, offset, torch.ones(1, 9, 4, 4), weight, bias, **attributes)
    half = modulated(data, offset, torch.full((1, 9, 4, 4), 0.5), weight, bias, **attributes)
    # Beyond the last row the plain one repeats it, the modulated one fades to zero.
    torch.testing.assert_close(full[:, :, :3, :3], plain[:, :, :3, :3])
    torch.testing.assert_close(2 * (half - bias.reshape(-1, 1, 1)), full - bias.reshape(-1, 1, 1))


def test_arguments_and_their_shapes():
    convolution = mx.sym.contrib.DeformableConvolution(mx.sym.var("x"), mx.sym.var("o"), kernel=(3, 3), pad=(1, 1), num_filter=6, name="d")
    assert convolution.list_arguments() == ["x", "o", "d_weight", "d_bias"]
    assert convolution.infer_shape(x=(2, 4, 5, 5))[0] == [(2, 4, 5, 5), (2, 18, 5, 5), (6, 4, 3, 3), (6,)]
