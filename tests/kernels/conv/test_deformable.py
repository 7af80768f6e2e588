import pytest
import torch

from kernel_limits import used_from
from mxnet import kernels
from mxnet.kernels.conv import deformable
from mxnet.ops import get

pytestmark = pytest.mark.skipif(kernels.load("conv/deformable") is None, reason="no C++ compiler")

CASES = {
    "one group": ((2, 5, 7, 9), 6, {"kernel": (3, 3), "pad": (1, 1)}),
    "vectors": ((1, 40, 6, 6), 4, {"kernel": (3, 2)}),
    "strides and dilation": ((1, 16, 9, 11), 3, {"kernel": (2, 3), "stride": (2, 1), "dilate": (2, 3), "pad": (0, 2)}),
    "groups of filters": ((2, 6, 5, 5), 4, {"kernel": (3, 3), "pad": (1, 1), "num_group": 2}),
    "groups of offsets": ((1, 36, 5, 5), 2, {"kernel": (3, 3), "pad": (1, 1), "num_deformable_group": 2}),
    "both": ((1, 12, 4, 5), 6, {"kernel": (1, 2), "num_group": 3, "num_deformable_group": 2}),
    "no image": ((0, 3, 4, 4), 2, {"kernel": (2, 2)}),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("reach", [0.4, 6.0])  # a fraction of a pixel; and far out of the image
@pytest.mark.parametrize("modulated", [False, True])
def test_values_are_those_of_double_precision(name, reach, modulated, monkeypatch):
    used_from(monkeypatch, 0, deformable)
    shape, filters, attributes = CASES[name]
    generator = torch.Generator().manual_seed(len(name))
    operator = get("_contrib_ModulatedDeformableConvolution" if modulated else "_contrib_DeformableConvolution")
    taps = attributes["kernel"][0] * attributes["kernel"][1]
    size = [(s + 2 * p - (k - 1) * d - 1) // t + 1 for s, k, t, d, p in zip(
        shape[2:], attributes["kernel"], attributes.get("stride", (1, 1)), attributes.get("dilate", (1, 1)), attributes.get("pad", (0, 0)))]
    groups = attributes.get("num_deformable_group", 1)
    sizes = [shape, (shape[0], 2 * taps * groups, *size), *([(shape[0], taps * groups, *size)] if modulated else []),
             (filters, shape[1] // attributes.get("num_group", 1), *attributes["kernel"]), (filters,)]
    inputs = [torch.randn(s, generator=generator) for s in sizes]
    inputs[1] = (inputs[1] * reach).mul(8).round().div(8)  # exact: no place is on another side of a border in single precision
    made, real = [], deformable.patches
    monkeypatch.setattr("mxnet.ops.spatial.deformable.compiled_patches", lambda *a: made.append(real(*a)) or made[-1])
    found = operator(*inputs, num_filter=filters, **attributes)
    expected = operator(*[i.double() for i in inputs], num_filter=filters, **attributes)
    assert [m is not None for m in made] == [True, False]
    torch.testing.assert_close(found.double(), expected, rtol=1e-5, atol=1e-5)


def test_a_place_that_is_no_number_reads_nothing():
    data = torch.ones(1, 64, 4, 4)
    offset = torch.zeros(1, 2, 4, 4)
    offset[0, 0, 0] = torch.tensor([float("nan"), float("inf"), -float("inf"), 1e30])
    out = deformable.patches(data, offset, None, 1, (1, 1), (1, 1), (1, 1), (0, 0), False)
    assert (out[0, 0] == 0).all() and (out[0, 1:] == 1).all()


@pytest.mark.parametrize("offset, groups", [(torch.zeros(1, 2, 4, 4), 3), (torch.zeros(1, 4, 4, 4), 1), (torch.zeros(2, 2, 4, 4), 1)])
def test_what_does_not_fit_is_refused(offset, groups):
    assert deformable.patches(torch.ones(1, 64, 4, 4), offset, None, groups, (1, 1), (1, 1), (1, 1), (0, 0), False) is None


def test_gradients_are_left_to_torch():
    data = torch.ones(1, 64, 4, 4, requires_grad=True)
    arguments = torch.zeros(1, 2, 4, 4), None, 1, (1, 1), (1, 1), (1, 1), (0, 0), False
    assert deformable.patches(data, *arguments) is None
    with torch.no_grad():
        assert deformable.patches(data, *arguments).shape == (1, 4, 4, 1, 64)
