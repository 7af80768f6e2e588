"""Errors and shapes; values and gradients are compared in test_arrays_against_oracle.py."""
import pytest
import torch

import mxnet as mx
from mxnet import MXNetError
from mxnet.ops import get


def zeros(*shape):
    return mx.nd.zeros(shape)


@pytest.mark.parametrize("call, message", [
    (lambda: mx.nd.GridGenerator(zeros(2, 5), transform_type="affine", target_shape=(2, 2)), r"must have shape \(N, 6\)"),
    (lambda: mx.nd.GridGenerator(zeros(2, 6), transform_type="affine"), r"`target_shape` must be \(height, width\) above 0"),
    (lambda: mx.nd.GridGenerator(zeros(2, 3, 4, 4), transform_type="warp"), r"must have shape \(N, 2, H, W\)"),
    (lambda: mx.nd.UpSampling(zeros(1, 1, 4, 4), zeros(1, 1, 3, 3), scale=2, sample_type="nearest", num_args=2),
     "does not divide the output"),
    (lambda: mx.nd.contrib.BilinearResize2D(zeros(1, 1, 4, 4), height=0, width=3), "`height` must be an integer of at least 1, received 0"),
    (lambda: mx.nd.im2col(zeros(1, 1, 4), kernel=(2, 2)), "`data` must be 4-D"),
    (lambda: mx.nd.im2col(zeros(1, 1, 2, 2), kernel=(3, 3)), "kernel size exceeds input"),
    (lambda: mx.nd.col2im(zeros(1, 5, 4), output_size=(3, 3), kernel=(2, 2)), r"expected columns \(N, C \* 4, windows\)"),
    (lambda: mx.nd.col2im(zeros(1, 4, 5), output_size=(3, 3), kernel=(2, 2)), "has 4 windows, received 5"),
    (lambda: mx.nd.UpSampling(zeros(1, 1, 2, 2), zeros(1, 1, 2, 2), scale=2, sample_type="nearest", num_args=1),
     "UpSampling expects 1 inputs .* received 2"),
    (lambda: mx.nd.UpSampling(zeros(1, 1, 2, 2), zeros(1, 2, 2, 2), scale=2, sample_type="nearest", multi_input_mode="sum"),
     "the number of channels must be 1 .* received 2 in input 1"),
    (lambda: mx.nd.UpSampling(zeros(1, 1, 2, 2), zeros(2, 1, 2, 2), scale=2, sample_type="nearest"),
     r"input 1 must become 1 maps of 4 x 4 .* received shape \(2, 1, 2, 2\)"),
    (lambda: mx.nd.UpSampling(zeros(1, 1, 2, 2), scale=0, sample_type="nearest"), "`scale` must be an integer of at least 1, received 0"),
    (lambda: mx.nd.contrib.BilinearResize2D(zeros(1, 1, 4, 4), scale_height=2), "`scale_width` must be given with `scale_height`=2.0"),
    (lambda: mx.nd.contrib.BilinearResize2D(zeros(1, 1, 4, 4), scale_height=0.1, scale_width=2), "the new size must be above 0"),
])
def test_errors(call, message):
    with pytest.raises(MXNetError, match=message):
        call()


def test_im2col_and_col2im_take_any_number_of_axes():
    data = mx.nd.arange(6).reshape((1, 1, 6))
    columns = mx.nd.im2col(data, kernel=(3,), stride=(1,), pad=(1,))
    assert columns.asnumpy()[0].tolist() == [[0, 0, 1, 2, 3, 4], [0, 1, 2, 3, 4, 5], [1, 2, 3, 4, 5, 0]]
    back = mx.nd.col2im(columns, output_size=(6,), kernel=(3,), pad=(1,))
    assert back.asnumpy().ravel().tolist() == [0, 3, 6, 9, 12, 10]
    assert mx.nd.im2col(mx.nd.zeros((1, 2, 4, 4, 4)), kernel=(2, 2, 3), stride=(2, 1, 1)).shape == (1, 24, 12)


def test_columns_of_no_images():
    get_columns, get_image = get("im2col"), get("col2im")
    assert get_columns(torch.ones(0, 3, 4, 4), kernel=(2, 2)).shape == (0, 12, 9)
    assert get_image(torch.ones(0, 12, 9), output_size=(4, 4), kernel=(2, 2)).shape == (0, 3, 4, 4)


def test_arguments_depend_on_attributes():
    x = mx.sym.var("x")
    assert mx.sym.UpSampling(x, scale=2, sample_type="bilinear", num_filter=3, num_args=2, name="u").list_arguments() == ["x", "u_weight"]
    assert mx.sym.UpSampling(x, scale=2, sample_type="nearest", num_args=1).list_arguments() == ["x"]


def test_the_weight_of_up_sampling_follows_from_the_scale():
    with pytest.raises(MXNetError, match=r"for scale=2 and 2 channels the weight must have the shape \(2, 1, 4, 4\), received \(2, 1, 3, 3\)"):
        mx.nd.UpSampling(mx.nd.ones((1, 2, 3, 3)), mx.nd.ones((2, 1, 3, 3)), scale=2, sample_type="bilinear", num_args=2)


@pytest.mark.parametrize("name, value, least", [("kernel", (-1,), 1), ("stride", (0,), 1), ("dilate", (-2,), 1), ("pad", (-1,), 0)])
def test_windows_have_sizes_and_go_forwards(name, value, least):
    attributes = {"kernel": (2,), name: value}
    message = rf": entries of `{name}` must be at least {least}, received \({value[0]},\)"
    with pytest.raises(MXNetError, match="im2col" + message):
        mx.nd.im2col(mx.nd.ones((1, 1, 4)), **attributes)
    with pytest.raises(MXNetError, match="col2im" + message):
        mx.nd.col2im(mx.nd.ones((1, 2, 3)), output_size=(4,), **attributes)


def test_no_image_has_no_grid():
    with mx.np_shape():
        out = mx.nd.SpatialTransformer(mx.nd.zeros((0, 3, 5, 6)), mx.nd.zeros((0, 6)), target_shape=(2 ** 20, 2 ** 20), transform_type="affine",
                                       sampler_type="bilinear")
    assert out.shape == (0, 3, 2 ** 20, 2 ** 20)


def test_each_image_has_a_matrix():
    with pytest.raises(MXNetError, match="SpatialTransformer: `loc` must have a matrix for each of the 1 images, received 2"):
        mx.nd.SpatialTransformer(mx.nd.ones((1, 3, 5, 6)), mx.nd.ones((2, 6)), target_shape=(4, 2147483647), transform_type="affine",
                                 sampler_type="bilinear")
