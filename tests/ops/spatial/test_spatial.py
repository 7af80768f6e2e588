"""Errors and shape inference of the spatial operators; values and gradients are compared in test_arrays_against_oracle.py."""
import numpy as np
import pytest

import mxnet as mx
from mxnet.base import MXNetError
from mxnet.ops import get
from mxnet.ops.spatial.boxes import greedy_suppression


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
    (lambda: mx.nd.ROIPooling(zeros(1, 1, 4, 4), zeros(2, 4), pooled_size=(2, 2), spatial_scale=1),
     r"`rois` must be .*\(number of rois, 5\)"),
    (lambda: mx.nd.contrib.PSROIPooling(zeros(1, 5, 4, 4), zeros(1, 5), spatial_scale=1, output_dim=2, pooled_size=2),
     "= 8 channels, received 5"),
    (lambda: mx.nd.contrib.DeformableConvolution(zeros(1, 2, 4, 4), zeros(1, 3, 4, 4), zeros(2, 2, 3, 3), zeros(2), kernel=(3, 3),
                                                 pad=(1, 1), num_filter=2), r"`offset` must have shape \(1, 18, 4, 4\), received \(1, 3, 4, 4\)"),
    (lambda: mx.nd.Correlation(zeros(1, 1, 4, 4), zeros(1, 1, 4, 4), kernel_size=2), "`kernel_size` must be odd"),
    (lambda: mx.nd.Correlation(zeros(1, 1, 4, 4), zeros(1, 1, 4, 4), max_displacement=4), "don't fit in data"),
    (lambda: mx.nd.contrib.box_nms(zeros(3, 4)), "the last axis must hold a score, 4 coordinates"),
    (lambda: mx.nd.contrib.box_nms(zeros(3, 6), score_index=3), "score_index=3 is out of range or conflicts"),
    (lambda: mx.nd.contrib.box_iou(zeros(3, 5), zeros(3, 4)), "last dimension of lhs must be 4"),
    (lambda: mx.nd.contrib.bipartite_matching(zeros(3), threshold=1), "must have at least 2 axes"),
    (lambda: mx.nd.contrib.MultiBoxPrior(zeros(1, 1, 2, 2), steps=(1, -1)), "must specify both step_y and step_x"),
    (lambda: mx.nd.contrib.MultiBoxTarget(zeros(1, 3, 4), zeros(1, 2, 5), zeros(1, 2, 4)), "number of anchors mismatch: 3 anchors"),
    (lambda: mx.nd.contrib.MultiBoxDetection(zeros(1, 2, 3), zeros(1, 8), zeros(1, 3, 4)), "number of anchors mismatch"),
    (lambda: mx.nd.contrib.Proposal(zeros(2, 24, 3, 3), zeros(2, 48, 3, 3), zeros(2, 3)), "use MultiProposal for several"),
    (lambda: mx.nd.contrib.Proposal(zeros(1, 22, 3, 3), zeros(1, 44, 3, 3), zeros(1, 3)), r"must have 2 \* 12 channels"),
    (lambda: mx.nd.UpSampling(zeros(1, 1, 2, 2), zeros(1, 1, 2, 2), scale=2, sample_type="nearest", num_args=1),
     "UpSampling expects 1 inputs .* received 2"),
    (lambda: mx.nd.UpSampling(zeros(1, 1, 2, 2), zeros(1, 2, 2, 2), scale=2, sample_type="nearest", multi_input_mode="sum"),
     "the number of channels must be 1 .* received 2 in input 1"),
    (lambda: mx.nd.UpSampling(zeros(1, 1, 2, 2), zeros(2, 1, 2, 2), scale=2, sample_type="nearest"),
     r"input 1 must become 1 maps of 4 x 4 .* received shape \(2, 1, 2, 2\)"),
    (lambda: mx.nd.UpSampling(zeros(1, 1, 2, 2), scale=0, sample_type="nearest"), "`scale` must be an integer of at least 1, received 0"),
    (lambda: mx.nd.contrib.BilinearResize2D(zeros(1, 1, 4, 4), scale_height=2), "`scale_width` must be given with `scale_height`=2.0"),
    (lambda: mx.nd.contrib.BilinearResize2D(zeros(1, 1, 4, 4), scale_height=0.1, scale_width=2), "the new size must be above 0"),
    (lambda: mx.nd.ROIPooling(zeros(1, 1, 4, 4), zeros(1, 5), pooled_size=(2, 2), spatial_scale=2),
     "`spatial_scale` must be a number from 0 to 1, received 2"),
    (lambda: mx.nd.contrib.RROIAlign(zeros(1, 1, 4, 4), mx.nd.array([[-1, 1, 1, 2, 2, 0]]), pooled_size=(2, 2), spatial_scale=1),
     "must be that of an image, from 0 to 0, received -1"),
    (lambda: mx.nd.contrib.ROIAlign(zeros(1, 1, 4, 4), mx.nd.array([[1, 1, 1, 2, 2]]), pooled_size=(2, 2), spatial_scale=1),
     "must be that of an image, from 0 to 0, received 1"),
    (lambda: mx.nd.contrib.PSROIPooling(zeros(1, 4, 4, 4), mx.nd.array([[-1, 1, 1, 2, 2]]), spatial_scale=1, output_dim=1, pooled_size=2),
     "must be that of an image, from 0 to 0, received -1"),
    (lambda: mx.nd.contrib.DeformablePSROIPooling(zeros(1, 4, 4, 4), zeros(1, 5), zeros(1, 2, 4, 4), spatial_scale=1, output_dim=1, group_size=2,
                                                  pooled_size=2, part_size=1),
     r"`trans` must have shape \(1, 2 \* classes, 1, 1\).* received \(1, 2, 4, 4\)"),
    (lambda: mx.nd.contrib.DeformablePSROIPooling(zeros(1, 4, 4, 4), zeros(1, 5), spatial_scale=1, output_dim=1, group_size=3, pooled_size=2,
                                                  no_trans=True), "= 9 channels, received 4"),
    (lambda: mx.nd.contrib.DeformableConvolution(zeros(1, 2, 4, 4), zeros(1, 18, 4, 4), zeros(2, 2, 3, 3), kernel=(3, 3), pad=(1, 1),
                                                 num_filter=2), "expected a bias with no_bias=False, received none"),
    (lambda: mx.nd.contrib.DeformableConvolution(zeros(1, 2, 4, 4), zeros(1, 18, 4, 4), zeros(2, 2, 3, 3), kernel=(3, 3), pad=(1, 1),
                                                 num_filter=3, no_bias=True), r"`weight` must have shape \(3, 2, 3, 3\), received \(2, 2, 3, 3\)"),
    (lambda: mx.nd.contrib.DeformableConvolution(zeros(1, 2, 4, 4), zeros(1, 18, 4, 4), zeros(2, 2, 3, 3), kernel=(3, 3), pad=(1, 1),
                                                 num_filter=2, no_bias=True, layout="NCW"), "`layout` must be 'NCHW', received 'NCW'"),
    (lambda: mx.nd.contrib.ModulatedDeformableConvolution(zeros(1, 2, 4, 4), zeros(1, 18, 4, 4), zeros(1, 9, 4, 4), zeros(2, 2, 3, 3), kernel=(3, 3),
                                                          pad=(1, 1), num_filter=0, no_bias=True), "`num_filter` must be an integer of at least 1"),
    (lambda: mx.nd.Correlation(zeros(1, 1, 4, 4), zeros(2, 1, 4, 4)), r"must have one shape, received \(1, 1, 4, 4\) and \(2, 1, 4, 4\)"),
    (lambda: mx.nd.contrib.box_nms(zeros(3, 6), id_index=0, score_index=0), "id_index=0 must not be score_index=0"),
    (lambda: mx.nd.contrib.box_encode(zeros(1, 2), zeros(2, 2), zeros(2, 2, 4), zeros(2, 3, 4), zeros(4), zeros(4)),
     r"received \(1, 2\), \(2, 2\), \(2, 2, 4\), \(2, 3, 4\)"),
    (lambda: mx.nd.contrib.box_decode(zeros(2, 3, 4), zeros(1, 2, 4)), r"anchors \(1, N, 4\), received \(2, 3, 4\) and \(1, 2, 4\)"),
    (lambda: mx.nd.contrib.MultiBoxPrior(zeros(1, 1, 2, 2), offsets=(2, 0)), r"`offsets` must be 2 numbers from 0 to 1, received \(2.0, 0.0\)"),
    (lambda: mx.nd.contrib.MultiBoxTarget(zeros(1, 3, 4), zeros(1, 2, 5), zeros(1, 2, 3), negative_mining_ratio=1, negative_mining_thresh=0),
     "`negative_mining_thresh` must be above 0"),
    (lambda: mx.nd.contrib.MultiBoxDetection(zeros(1, 2, 3), zeros(1, 12), zeros(1, 3, 4), variances=(1,)),
     r"`variances` must have 4 numbers, received \(1.0,\)"),
    (lambda: mx.nd.contrib.Proposal(zeros(1, 24, 3, 3), zeros(1, 48, 3, 3), mx.nd.array([[64, 48, 1]])),
     "must reach over each image: received feature_stride=16, a feature map of 3 x 3"),
    (lambda: mx.nd.contrib.MultiProposal(zeros(1, 24, 3, 3), zeros(1, 48, 3, 3), zeros(1, 3), rpn_post_nms_top_n=-1),
     "`rpn_post_nms_top_n` must be at least 0"),
    (lambda: mx.nd.contrib.MultiProposal(zeros(1, 24, 3, 3), zeros(2, 48, 3, 3), zeros(1, 3)), r"`bbox_pred` must have shape \(1, 48, 3, 3\)"),
])
def test_errors(call, message):
    with pytest.raises(MXNetError, match=message):
        call()


def test_hard_negatives_that_do_not_exist():
    anchors = mx.nd.array([[[0, 0, 1, 1], [0, 0, 0.9, 1], [0, 0, 1, 0.9]]])
    with pytest.raises(MXNetError, match="only 0 anchors overlap .* asks for 2"):
        mx.nd.contrib.MultiBoxTarget(anchors, mx.nd.array([[[0, 0, 0, 1, 1]]]), zeros(1, 2, 3), overlap_threshold=0.95,
                                       negative_mining_ratio=3)


def test_suppression():
    boxes = np.array([[0, 0, 10, 10], [1, 1, 11, 11], [20, 20, 30, 30], [0, 0, 10, 10]], float)
    assert greedy_suppression(boxes, 0.5).tolist() == [True, False, True, False]
    assert greedy_suppression(boxes, 0.5, classes=np.array([0, 1, 0, 0])).tolist() == [True, True, True, False]
    assert greedy_suppression(boxes, 0.5, limit=1).tolist() == [True, False, False, False]
    assert greedy_suppression(boxes, 1.0).tolist() == [True, True, True, True]
    assert greedy_suppression(boxes, 1.0, inclusive=True).tolist() == [True, True, True, False]
    assert greedy_suppression(np.zeros((0, 4)), 0.5).tolist() == []


def test_arguments_depend_on_attributes():
    x = mx.sym.var("x")
    assert mx.sym.UpSampling(x, scale=2, sample_type="bilinear", num_filter=3, num_args=2, name="u").list_arguments() == ["x", "u_weight"]
    assert mx.sym.UpSampling(x, scale=2, sample_type="nearest", num_args=1).list_arguments() == ["x"]
    convolution = mx.sym.contrib.DeformableConvolution(x, mx.sym.var("o"), kernel=(3, 3), pad=(1, 1), num_filter=6, name="d")
    assert convolution.list_arguments() == ["x", "o", "d_weight", "d_bias"]
    assert convolution.infer_shape(x=(2, 4, 5, 5))[0] == [(2, 4, 5, 5), (2, 18, 5, 5), (6, 4, 3, 3), (6,)]
    assert mx.sym.contrib.MultiBoxTarget(x, x, x, name="t").list_outputs() == ["t_loc_target", "t_loc_mask", "t_cls_target"]
    assert mx.sym.contrib.Proposal(x, x, x, name="p").list_outputs() == ["p_output"]
    assert mx.sym.contrib.Proposal(x, x, x, output_score=True, name="p").list_outputs() == ["p_output", "p_score"]


def test_modulated_convolution_with_full_mask_is_the_plain_one():
    """MXNet has it for GPUs only; inside the image it must agree with DeformableConvolution."""
    torch = pytest.importorskip("torch")
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


def test_im2col_and_col2im_take_any_number_of_axes():
    data = mx.nd.arange(6).reshape((1, 1, 6))
    columns = mx.nd.im2col(data, kernel=(3,), stride=(1,), pad=(1,))
    assert columns.asnumpy()[0].tolist() == [[0, 0, 1, 2, 3, 4], [0, 1, 2, 3, 4, 5], [1, 2, 3, 4, 5, 0]]
    back = mx.nd.col2im(columns, output_size=(6,), kernel=(3,), pad=(1,))
    assert back.asnumpy().ravel().tolist() == [0, 3, 6, 9, 12, 10]
    assert mx.nd.im2col(mx.nd.zeros((1, 2, 4, 4, 4)), kernel=(2, 2, 3), stride=(2, 1, 1)).shape == (1, 24, 12)


def test_position_sensitive_pooling_reads_the_first_channels():
    """Values of MXNet."""
    data = mx.nd.array((np.arange(648) * 37 % 11 / 11).reshape(2, 9, 6, 6))
    regions = mx.nd.array([[0, 1, 1, 4, 4], [1, 0, 0, 3, 5]])
    out = mx.nd.contrib.PSROIPooling(data, regions, spatial_scale=1, output_dim=1, pooled_size=2)
    expected = [0.56818178, 0.63636369, 0.36363637, 0.43181822, 0.34848484, 0.33333334, 0.57575756, 0.56060606]
    np.testing.assert_allclose(out.asnumpy().ravel(), expected, rtol=1e-5)
    out = mx.nd.contrib.DeformablePSROIPooling(data, regions, spatial_scale=1, no_trans=True, sample_per_part=2, output_dim=1, pooled_size=2,
                                               group_size=2)
    expected = [0.48295456, 0.42613637, 0.46590909, 0.53409094, 0.375, 0.47727272, 0.55681819, 0.47159094]
    np.testing.assert_allclose(out.asnumpy().ravel(), expected, rtol=1e-5)


def test_columns_of_no_images():
    get_columns, get_image = get("im2col"), get("col2im")
    torch = pytest.importorskip("torch")
    assert get_columns(torch.ones(0, 3, 4, 4), kernel=(2, 2)).shape == (0, 12, 9)
    assert get_image(torch.ones(0, 12, 9), output_size=(4, 4), kernel=(2, 2)).shape == (0, 3, 4, 4)
