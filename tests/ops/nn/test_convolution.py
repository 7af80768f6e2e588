"""Convolution and Deconvolution: layouts, shapes inferred from parts, errors. Values: `test_against_oracle`."""
import os
import subprocess
import sys

import pytest
import torch

import mxnet as mx
from mxnet import MXNetError
from mxnet.ops import get

CONVOLUTION, DECONVOLUTION = get("Convolution"), get("Deconvolution")


def infer(operator, data, out=None, inputs=3, **attributes):
    parsed = operator.with_defaults(operator.parse(attributes))
    ins, outs = operator.shape_inference([data] + [None] * (inputs - 1), [out], **parsed)
    return ins, outs[0]


@pytest.mark.parametrize("kernel, layout", [((2,), "NWC"), ((2, 3), "NHWC"), ((2, 1, 2), "NDHWC")])
def test_channels_last_is_channels_first_with_axes_moved(kernel, layout):
    generator = torch.Generator().manual_seed(0)
    n = len(kernel)
    data, weight, bias = (torch.randn(s, generator=generator) for s in ((2, 4, *range(5, 5 + n)), (6, 2, *kernel), (6,)))
    attributes = {"kernel": kernel, "num_filter": 6, "num_group": 2, "stride": (2,) * n, "pad": (1,) * n}
    first = CONVOLUTION(data, weight, bias, **attributes)
    last = CONVOLUTION(data.movedim(1, -1).contiguous(), weight.movedim(1, -1).contiguous(), bias, layout=layout, **attributes)
    torch.testing.assert_close(last.movedim(-1, 1), first)

    weight = torch.randn((4, 3, *kernel), generator=generator)
    first = DECONVOLUTION(data, weight, **attributes)
    last = DECONVOLUTION(data.movedim(1, -1).contiguous(), weight.movedim(1, -1).contiguous(), layout=layout, **attributes)
    torch.testing.assert_close(last.movedim(-1, 1), first)


def test_half_precision():
    data, weight = torch.ones(1, 2, 3, 3, dtype=torch.float16), torch.full((1, 2, 2, 2), 0.5, dtype=torch.float16)
    out = CONVOLUTION(data, weight, kernel=(2, 2), num_filter=1, no_bias=True)
    assert out.dtype == torch.float16 and out.unique().tolist() == [4.0]


def test_parameters_are_inferred():
    attributes = {"kernel": (3, 5), "num_filter": 8, "num_group": 2, "stride": (2, 1), "pad": (1, 0)}
    assert infer(CONVOLUTION, (4, 6, 10, 12), **attributes) == ([(4, 6, 10, 12), (8, 3, 3, 5), (8,)], (4, 8, 5, 8))
    assert infer(CONVOLUTION, (4, 10, 12, 6), layout="NHWC", **attributes) == ([(4, 10, 12, 6), (8, 3, 5, 3), (8,)], (4, 5, 8, 8))
    assert infer(DECONVOLUTION, (4, 6, 10, 12), inputs=2, **attributes) == ([(4, 6, 10, 12), (6, 4, 3, 5)], (4, 8, 19, 16))
    assert infer(DECONVOLUTION, (1, 6, 4, 4), inputs=2, kernel=(4, 4), num_filter=2, stride=(2, 2), target_shape=(8, 8)) == \
        ([(1, 6, 4, 4), (6, 2, 4, 4)], (1, 2, 8, 8))


def test_sizes_are_inferred_from_the_output():
    attributes = {"kernel": (3, 3), "num_filter": 4, "pad": (1, 0)}
    ins, out = infer(CONVOLUTION, (-1, 3, -1, -1), (2, 4, 7, 7), **attributes)
    assert ins[0] == (2, 3, 7, 9) and out == (2, 4, 7, 7)
    ins, out = infer(CONVOLUTION, (-1, 3, 7, -1), None, **attributes)
    assert ins == [(-1, 3, 7, -1), (4, 3, 3, 3), (4,)] and out == (-1, 4, 7, -1)
    ins, _ = infer(CONVOLUTION, (-1, -1, -1, -1), (2, 4, 7, 7), stride=(2, 1), **attributes)
    assert ins[0] == (2, -1, -1, 9) and ins[1] == (4, -1, 3, 3)
    assert infer(CONVOLUTION, None, (2, 4, 7, 7), **attributes) == ([None, None, None], (2, 4, 7, 7))


@pytest.mark.parametrize("operator", [CONVOLUTION, get("Convolution_v1")])
def test_convolution_errors(operator):
    with pytest.raises(MXNetError, match=r"`kernel` \(3,\) needs 3-D data, received shape \(1, 3, 9, 9\)"):
        infer(operator, (1, 3, 9, 9), kernel=(3,), num_filter=1)
    with pytest.raises(MXNetError, match="kernel size exceeds input: a kernel that reaches over 5 does not fit size 4 padded by 0"):
        infer(operator, (1, 3, 9, 4), kernel=(3, 3), dilate=(1, 2), num_filter=1)
    with pytest.raises(MXNetError, match="`num_group` 2 does not divide the 3 channels"):
        infer(operator, (1, 3, 9, 9), kernel=(3, 3), num_filter=4, num_group=2)
    with pytest.raises(MXNetError, match="`num_filter` must be a positive multiple of `num_group`, received 3 and 2"):
        infer(operator, (1, 4, 9, 9), kernel=(3, 3), num_filter=3, num_group=2)
    with pytest.raises(MXNetError, match=r"`stride` must be 2 numbers of at least 1, as `kernel` \(3, 3\), received \(1,\)"):
        infer(operator, (1, 4, 9, 9), kernel=(3, 3), num_filter=3, stride=(1,))
    with pytest.raises(MXNetError, match="Convolution.*required argument `num_filter`"):
        operator.parse({"kernel": (3, 3)})


def test_a_weight_that_contradicts_the_attributes_is_refused():
    data, weight = torch.ones(1, 1, 5, 5), torch.ones(2, 1, 3, 3)
    with pytest.raises(MXNetError, match=r"Convolution's weight: expected shape \(3, 1, 3, 3\), received \(2, 1, 3, 3\)"):
        CONVOLUTION(data, weight, kernel=(3, 3), num_filter=3, no_bias=True)
    with pytest.raises(MXNetError, match=r"Convolution's weight: expected shape \(2, 1, 1, 3\)"):
        CONVOLUTION(data, weight, kernel=(1, 3), num_filter=2, no_bias=True)
    with pytest.raises(MXNetError, match="needs 4-D data"):
        CONVOLUTION(data[0], weight, kernel=(3, 3), num_filter=2, no_bias=True)
    with pytest.raises(MXNetError, match=r"Deconvolution's weight: expected shape \(1, 4, 3, 3\), received \(2, 1, 3, 3\)"):
        DECONVOLUTION(data, weight, kernel=(3, 3), num_filter=4)


def test_deconvolution_errors():
    with pytest.raises(MXNetError, match=r"too big target shape \(50, 50\)"):
        infer(DECONVOLUTION, (1, 2, 4, 4), inputs=2, kernel=(3, 3), num_filter=1, target_shape=(50, 50))
    with pytest.raises(MXNetError, match=r"`adj` \(2, 0\) must be smaller than `stride` \(2, 1\)"):
        infer(DECONVOLUTION, (1, 2, 4, 4), inputs=2, kernel=(3, 3), num_filter=1, stride=(2, 1), adj=(2, 0))


def test_bias_is_an_input_unless_switched_off():
    assert CONVOLUTION.input_names(CONVOLUTION.parse({"kernel": "(1,1)", "num_filter": "1"})) == ("data", "weight", "bias")
    assert CONVOLUTION.input_names(CONVOLUTION.parse({"kernel": "(1,1)", "num_filter": "1", "no_bias": "True"})) == ("data", "weight")
    assert DECONVOLUTION.input_names(DECONVOLUTION.parse({"kernel": (1,), "num_filter": 1})) == ("data", "weight")


@pytest.mark.parametrize("operator, bias, no_bias, message", [
    (CONVOLUTION, torch.ones(2), True, r"Convolution: expected no bias with no_bias=True, received one of shape \(2,\)"),
    (CONVOLUTION, None, False, "Convolution: expected a bias with no_bias=False, received none"),
    (DECONVOLUTION, torch.ones(2), True, r"Deconvolution: expected no bias with no_bias=True, received one of shape \(2,\)"),
    (DECONVOLUTION, None, False, "Deconvolution: expected a bias with no_bias=False, received none"),
])
def test_the_bias_and_no_bias_must_agree(operator, bias, no_bias, message):
    with pytest.raises(MXNetError, match=message):
        operator(torch.ones(1, 2, 4), torch.ones(2, 2, 3), bias, kernel=(3,), num_filter=2, no_bias=no_bias)


@pytest.mark.parametrize("operator", [CONVOLUTION, DECONVOLUTION])
@pytest.mark.parametrize("attributes, message", [
    ({"stride": (1,)}, r"`stride` must be 2 numbers of at least 1, as `kernel` \(3, 3\), received \(1,\)"),
    ({"dilate": (1, 1, 1)}, r"`dilate` must be 2 numbers of at least 1, .* received \(1, 1, 1\)"),
    ({"pad": (1,)}, r"`pad` must be 2 numbers of at least 0, .* received \(1,\)"),
    ({"layout": "NCW"}, r"`layout` must name the 4 axes that `kernel` \(3, 3\) asks for, received 'NCW'"),
    ({"layout": "NDHWC"}, "`layout` must name the 4 axes"),
])
def test_each_attribute_has_a_number_for_each_axis(operator, attributes, message):
    with pytest.raises(MXNetError, match=message):
        operator(torch.ones(1, 2, 5, 5), torch.ones(2, 2, 3, 3), kernel=(3, 3), num_filter=2, no_bias=True, **attributes)


def test_a_target_shape_has_a_size_for_each_axis():
    with pytest.raises(MXNetError, match=r"`target_shape` must have 2 sizes, as `kernel` \(3, 3\), received \(5,\)"):
        DECONVOLUTION(torch.ones(1, 2, 5, 5), torch.ones(2, 2, 3, 3), kernel=(3, 3), num_filter=2, target_shape=(5,), no_bias=True)
    with pytest.raises(MXNetError, match=r"`adj` \(1,\) must be smaller than `stride` \(1,\)"):  # torch would go by the dilation
        DECONVOLUTION(torch.ones(1, 1, 5), torch.ones(1, 1, 2), kernel=(2,), num_filter=1, dilate=(2,), adj=(1,), no_bias=True)


def test_int8_saturates():
    data, weight = torch.tensor([[[100, 50, -100, 7]]], dtype=torch.int8), torch.tensor([[[2, 1]]], dtype=torch.int8)
    out = CONVOLUTION(data, weight, kernel=(2,), num_filter=1, no_bias=True)
    assert out.dtype == torch.int8 and out.tolist() == [[[127, 0, -128]]]
    out = CONVOLUTION(data, weight, torch.tensor([5], dtype=torch.int8), kernel=(2,), dilate=(2,), num_filter=1)
    assert out.tolist() == [[[105, 112]]]


def test_bounds():
    for operator in (CONVOLUTION, DECONVOLUTION):
        with pytest.raises(MXNetError, match=f"{operator.name}: `num_filter` must be an integer of at least 1, received 0"):
            operator.parse({"kernel": (3,), "num_filter": 0})


@pytest.mark.parametrize("name", ["Convolution", "Convolution_v1"])
@pytest.mark.parametrize("what", ["pad", "dilate"])
def test_sizes_beyond_32_bits_are_refused(name, what):
    """With a pad of 2**61 torch read memory of others."""
    with pytest.raises(MXNetError, match=rf"`{what}` must lie below 2\*\*31, received \(2305843009213693952, 1\)"):
        getattr(mx.nd, name)(mx.nd.ones((1, 2, 4, 4)), mx.nd.ones((2, 2, 3, 3)), mx.nd.ones(2), kernel=(3, 3), num_filter=2, **{what: (2 ** 61, 1)})


@pytest.mark.parametrize("layout, pad", [(None, (0, 0)), (None, (1, 0)), ("NHWC", (0, 0))])
def test_filters_of_one_pixel_over_few_channels_with_a_step(layout, pad):
    """oneDNN writes beyond the gradient of these filters where data lie channels last; so the step is taken before."""
    generator = torch.Generator().manual_seed(0)
    data = torch.randn((2, 3, 6, 7), generator=generator).contiguous(memory_format=torch.channels_last)
    weight = torch.randn((4, 3, 1, 1), generator=generator)
    given = [t if layout is None else t.permute(0, 2, 3, 1) for t in (data, weight)]
    given[1] = given[1].clone().requires_grad_()
    out = CONVOLUTION(*given, kernel=(1, 1), num_filter=4, stride=(2, 3), pad=pad, no_bias=True, layout=layout)
    wide, filters = data.double(), weight.double().requires_grad_()
    expected = torch.conv2d(wide, filters, None, (2, 3), pad)
    torch.testing.assert_close(out if layout is None else out.permute(0, 3, 1, 2), expected.float())
    out.square().sum().backward()
    expected.square().sum().backward()
    gradient = given[1].grad if layout is None else given[1].grad.permute(0, 3, 1, 2)
    torch.testing.assert_close(gradient, filters.grad.float())


@pytest.mark.parametrize("pad, adj, bias", [((0, 0), (), False), ((1, 0), (1, 1), True)])
def test_transposed_filters_of_one_pixel_for_few_channels_with_a_step(pad, adj, bias):
    generator = torch.Generator().manual_seed(0)
    data = torch.randn((2, 5, 4, 3), generator=generator).contiguous(memory_format=torch.channels_last)
    weight, offset = torch.randn((5, 3, 1, 1), generator=generator).requires_grad_(), torch.randn(3, generator=generator)
    out = DECONVOLUTION(data, weight, offset if bias else None, kernel=(1, 1), num_filter=3, stride=(2, 3), pad=pad, adj=adj, no_bias=not bias)
    filters = weight.detach().double().requires_grad_()
    expected = torch.conv_transpose2d(data.double(), filters, offset.double() if bias else None, (2, 3), pad, adj or 0)
    torch.testing.assert_close(out, expected.float())
    out.square().sum().backward()
    expected.square().sum().backward()
    torch.testing.assert_close(weight.grad, filters.grad.float())


@pytest.mark.skipif(sys.platform != "linux", reason="glibc looks at its heap")
@pytest.mark.parametrize("operator, shape, pixels", [("Convolution", (16, 3, 1, 1), 36), ("Deconvolution", (3, 6, 1, 1), 144)])
def test_their_gradient_stays_within_its_memory(operator, shape, pixels):
    code = f"""
import torch
from mxnet.ops import get
x, w = torch.ones(4, 3, 12, 12).contiguous(memory_format=torch.channels_last), torch.ones({shape}, requires_grad=True)
for _ in range(30):
    get("{operator}")(x, w, kernel=(1, 1), num_filter={max(shape)}, stride=(2, 2), no_bias=True).sum().backward()
    others = [torch.empty(n) for n in (7, 33, 100, 300)]
print(w.grad.sum().item())
"""
    env = {**os.environ, "MALLOC_CHECK_": "3", "LD_PRELOAD": "libc_malloc_debug.so.0", "OMP_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env, timeout=300)
    assert done.returncode == 0 and float(done.stdout) == 30 * shape[0] * shape[1] * 4 * pixels, done.stderr
