import contextlib

import numpy as np
import pytest
import torch

from mxnet import kernels
from mxnet.kernels.nn import roi_pooling
from mxnet.ops.spatial import regions as operators

needs_compiler = pytest.mark.skipif(kernels.load("nn/roi_pooling") is None, reason="no C++ compiler")
# Of the operators; PSROIPooling and ROIAlign refuse the last three rows, regions of images that there are not.
ROIS = torch.tensor([[0, 0, 0, 15, 15], [1, 3, 2, 9, 20], [1, 7, 7, 7, 7], [0, 12, 9, 4, 3], [0, -30, -8, 5, 300], [1, 40, 40, 80, 90],
                     [0, 1e30, -1e30, 1e30, 1e30], [2, 0, 0, 9, 9], [-1, 0, 0, 9, 9], [1e18, 0, 0, 9, 9]])


def data(channels=5):
    # More channels than are worked on at once wouldn't be a block; few different values make ties.
    return torch.from_numpy(np.random.RandomState(0).randint(0, 7, (2, channels, 9, 11)).astype("float32"))


def both(function, maps, without_kernels):
    """(result, gradient) of the kernel, and of torch."""
    found = []
    for context in (contextlib.nullcontext, without_kernels):
        with context():
            x = maps.clone().requires_grad_()
            y = function(x)
            if y.requires_grad:  # with no regions torch's doesn't
                y.backward(torch.arange(1.0, y.numel() + 1).reshape(y.shape) / max(y.numel(), 1))
            with torch.no_grad():
                torch.testing.assert_close(function(maps), y, rtol=0, atol=0, equal_nan=True)
            found.append((y.detach(), torch.zeros_like(x) if x.grad is None else x.grad))
    return found


def operator(name, **attributes):
    function = {"max": operators.roi_pooling, "align": operators.roi_align, "sensitive": operators.psroi_pooling}[name]
    function = getattr(function, "function", function)
    return lambda x, rois: function(x, rois, **attributes)


CASES = [("max", 5, len(ROIS), {"pooled_size": (3, 2), "spatial_scale": 0.5}), ("max", 70, len(ROIS), {"pooled_size": (7, 7), "spatial_scale": 1}),
         ("align", 5, 6, {"pooled_size": (3, 2), "spatial_scale": 0.5, "sample_ratio": 2}),
         ("align", 33, 6, {"pooled_size": (2, 4), "spatial_scale": 1}),
         ("align", 12, 6, {"pooled_size": (3, 2), "spatial_scale": 0.5, "position_sensitive": True, "aligned": True}),
         ("sensitive", 18, 7, {"spatial_scale": 0.5, "output_dim": 2, "pooled_size": 3}),
         ("sensitive", 9, 7, {"spatial_scale": 0.5, "output_dim": 2, "pooled_size": 5, "group_size": 2})]


@needs_compiler
@pytest.mark.parametrize("name, channels, count, attributes", CASES)
@pytest.mark.parametrize("empty", [False, True])
def test_the_kernels_compute_what_torch_does(name, channels, count, attributes, empty, without_kernels):
    rois = ROIS[:0 if empty else count]
    function = operator(name, **attributes)
    for found, expected in zip(*both(lambda x: function(x, rois), data(channels), without_kernels)):
        torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)


@needs_compiler
def test_regions_of_images_that_there_are_not_are_zero():
    assert operator("max", pooled_size=(2, 2), spatial_scale=1)(data() + 1, ROIS[-3:]).count_nonzero() == 0


@needs_compiler
def test_tables_from_anywhere_stay_inside_the_map():
    far = torch.tensor([[-2**62], [2**62], [-5]])
    out = roi_pooling.largest(data() + 1, torch.tensor([0, 1, 0]), (far, far.flip(0), far, far.flip(0)), None)
    assert out.shape == (3, 5, 1, 1) and out[:, :, 0, 0].tolist() == [[0] * 5] * 3
    whole = roi_pooling.largest(data(), torch.tensor([1]), (far[:1], far[1:2], far[:1], far[1:2]), None)
    torch.testing.assert_close(whole[0, :, 0, 0], data()[1].amax((1, 2)))


@needs_compiler
def test_nan_counts_where_it_is_read(without_kernels):
    maps = data()
    maps[0, 0, 1, 1] = maps[0, 0, 0, 3] = float("nan")
    function = operator("max", pooled_size=(2, 2), spatial_scale=1)
    found, expected = both(lambda x: function(x, ROIS[:3]), maps, without_kernels)
    assert found[0][0, 0].isnan().tolist() == [[True, False], [False, False]]
    torch.testing.assert_close(found[0], expected[0], rtol=0, atol=0, equal_nan=True)
    aligned = operator("align", pooled_size=(1, 1), spatial_scale=1, sample_ratio=1)(maps, torch.tensor([[0.0, 5, 5, 8, 8]]))
    assert not aligned.isnan().any()  # far from the NaNs


@needs_compiler
def test_regions_of_nan_read_nothing_outside():
    rois = torch.full((2, 5), float("nan"))
    rois[:, 0] = 0
    assert operator("max", pooled_size=(2, 2), spatial_scale=1)(data(), rois).shape == (2, 5, 2, 2)
    assert operator("align", pooled_size=(2, 2), spatial_scale=1)(data(), rois).count_nonzero() == 0
    assert operator("sensitive", spatial_scale=1, output_dim=1, pooled_size=2)(data(), rois).shape == (2, 1, 2, 2)


@needs_compiler
@pytest.mark.parametrize("name, channels, attributes", [(c[0], c[1], c[3]) for c in CASES[1:6:2]])
def test_the_gradient_can_be_differentiated(name, channels, attributes):
    x = data(channels).requires_grad_()
    y = operator(name, **attributes)(x, ROIS[:2])
    gradient, = torch.autograd.grad((y ** 2).sum() / 2, x, create_graph=True)
    second, = torch.autograd.grad((gradient * x.detach()).sum(), x)
    # The operators are linear where their choices stay: the Hessian times x is the gradient itself.
    torch.testing.assert_close(second, gradient.detach(), rtol=1e-4, atol=1e-4)


def test_without_a_compiler_torch_computes(without_kernels):
    maps = torch.arange(16.0).reshape(1, 1, 4, 4)
    with without_kernels():
        out = operator("max", pooled_size=(2, 2), spatial_scale=1)(maps, torch.tensor([[0.0, 0, 0, 3, 3]]))
    assert out.tolist() == [[[[5, 7], [13, 15]]]]


@pytest.mark.parametrize("maps", [data().double(), data().transpose(2, 3), data().to("meta")])
def test_other_arrays_are_not_for_the_kernels(maps):
    bins = [torch.zeros(1, 2, dtype=torch.int64)] * 4
    assert roi_pooling.largest(maps, torch.zeros(1, dtype=torch.int64), bins, lambda _: "torch's") == "torch's"
