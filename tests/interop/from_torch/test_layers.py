import pytest
import torch
import torch.nn.functional as F
from torch import nn

import mxnet as mx
from torch_checks import check, real

IMAGES = real(2, 4, 8, 6)


def test_layers():
    check([
        nn.Conv2d(4, 6, 3), nn.Conv2d(4, 6, (3, 1), stride=(2, 1), padding=(1, 0), dilation=2, bias=False),
        nn.Conv2d(4, 8, 3, groups=2, padding="same"),
        nn.ConvTranspose2d(4, 6, 3, stride=2, padding=1, output_padding=1), nn.ConvTranspose2d(4, 4, 2, groups=2, bias=False),
        nn.MaxPool2d(2), nn.MaxPool2d(3, 2, 1), nn.MaxPool2d(3, 2, ceil_mode=True), nn.AvgPool2d(2), nn.AvgPool2d(3, 2, 1, count_include_pad=False),
        nn.AdaptiveAvgPool2d(1), nn.AdaptiveAvgPool2d((4, 3)), nn.AdaptiveAvgPool2d((3, 4)), nn.AdaptiveAvgPool2d((8, 6)), nn.AdaptiveMaxPool2d(1),
        nn.AdaptiveMaxPool2d((2, 3)),
        nn.GroupNorm(2, 4), nn.InstanceNorm2d(4, affine=True), nn.LayerNorm((8, 6)), nn.LayerNorm(6, elementwise_affine=False), nn.Softmax(1),
        nn.LogSoftmax(-1),
        nn.Upsample(scale_factor=2), nn.Upsample(scale_factor=2, mode="bilinear", align_corners=True), nn.Linear(6, 3), nn.Linear(6, 3, bias=False),
    ], IMAGES, atol=1e-4)


@pytest.mark.parametrize("layer, shape", [
    (nn.Conv1d(3, 4, 3, padding=1), (2, 3, 7)), (nn.Conv3d(2, 3, 2), (2, 2, 3, 4, 5)), (nn.MaxPool1d(2), (2, 3, 8)),
    (nn.AvgPool3d(2), (2, 2, 4, 4, 4)),
    (nn.AdaptiveAvgPool1d(2), (2, 3, 8)), (nn.Linear(3, 4), (2, 3)), (nn.Linear(3, 4), (2, 2, 5, 3)),
], ids=str)
def test_other_ranks(layer, shape):
    check(layer, real(*shape), atol=1e-4)


def test_products():
    check([
        lambda a, b: a @ b, lambda a, b: torch.matmul(a[:, None], b[:, None]), lambda a, b: torch.bmm(a, b),
        lambda a, b: torch.einsum("bij,bjk->bik", a, b), lambda a, b: torch.baddbmm(a[:, :, :1], a, b, beta=2, alpha=0.5),
    ], real(2, 3, 4), real(2, 4, 5) * 0.7)


def test_products_with_constants():
    check([
        lambda a: a @ torch.linspace(-1, 1, 20).reshape(4, 5), lambda a: a[:, 0] @ torch.linspace(-1, 1, 4),
        lambda a: torch.addmm(torch.linspace(0, 1, 3), a[:, 0], torch.linspace(-1, 1, 12).reshape(4, 3)),
    ], real(2, 3, 4))


def test_batch_norm_follows_mxnets_modes():
    norm = nn.BatchNorm2d(4, momentum=0.3)
    with torch.no_grad():
        norm.weight.copy_(torch.tensor([1.0, 2, 3, 4]))
        norm.running_mean.fill_(0.5)
    for training in (False, True):
        block = check(norm.train(training), IMAGES, gradient=False) if not training else mx.gluon.from_torch(norm, IMAGES)
        assert sorted(block.params) == ["bias", "running_mean", "running_var", "weight"]
        assert block.params["running_mean"].grad_req == "null"
    before = norm.running_mean.clone()
    with mx.autograd.record():
        out = block(mx.nd.from_torch(IMAGES))
    assert torch.allclose(out.as_torch().detach(), F.batch_norm(IMAGES, None, None, norm.weight, norm.bias, True), atol=1e-4)
    assert torch.allclose(norm.running_mean, 0.7 * before + 0.3 * IMAGES.mean((0, 2, 3)), atol=1e-5)  # the memory is torch's


def test_batch_norm_without_weights():
    check(nn.BatchNorm2d(4, affine=False).eval(), IMAGES)


@pytest.mark.parametrize("layer", [nn.Dropout(0.25), nn.Dropout2d(0.25)], ids=str)
def test_dropout_follows_mxnets_modes(layer):
    block = mx.gluon.from_torch(layer.eval(), IMAGES)
    assert (block(mx.nd.from_torch(IMAGES)).as_torch() == IMAGES).all()
    with mx.autograd.train_mode():
        out = block(mx.nd.from_torch(IMAGES)).as_torch()
    assert 0 < (out == 0).sum() < out.numel() and torch.allclose(out[out != 0], IMAGES[out != 0] / 0.75)


@pytest.mark.parametrize("layer, error", [
    (nn.MaxPool2d(2, dilation=2), r"aten.max_pool2d.default \(node max_pool2d, in 0\) has no counterpart in MXNet where `dilation` is not 1"),
    (nn.BatchNorm2d(4, track_running_stats=False), "aten.batch_norm.default .* where there are no running statistics"),
    (nn.Conv2d(4, 4, 2, padding="same"), "where `padding` is 'same', and an axis needs more behind than before"),
    (nn.AvgPool2d(2, divisor_override=3), "where `divisor_override` is given"),
    (nn.Upsample(size=(9, 6)), r"where the image is not enlarged by a whole number along both axes: \(8, 6\) becomes \(9, 6\)"),
], ids=str)
def test_what_has_no_counterpart(layer, error):
    with pytest.raises(mx.MXNetError, match=error):
        mx.gluon.from_torch(nn.Sequential(layer), IMAGES)


def test_frozen_layers_stay_frozen_in_a_module_that_trains():
    norm = nn.BatchNorm2d(4).eval()
    module = nn.Sequential(nn.Conv2d(4, 4, 1), norm, nn.Dropout(0.5).eval())
    assert module.training
    before = norm.running_mean.clone()
    check(module, IMAGES, atol=1e-4)  # which records in training mode
    assert torch.equal(norm.running_mean, before)


def test_factors_of_which_no_whole_pixels_result():
    check(nn.Upsample(scale_factor=1.5, mode="bilinear"), IMAGES, atol=1e-4)
    with pytest.raises(mx.MXNetError, match=r"enlarged by \(1.3, 1.3\), of which no whole number of pixels results: \(8, 6\) becomes \(10, 7\)"):
        mx.gluon.from_torch(nn.Upsample(scale_factor=1.3, mode="bilinear"), IMAGES)
