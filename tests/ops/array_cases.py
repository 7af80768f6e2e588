"""What is compared with MXNet 1.9.1 of the shape, indexing, sort, sequence, linalg, image and spatial families.

`record_array_oracle.py` runs the cases there, `test_arrays_against_oracle.py` here. Only numpy is needed.
"""
import numpy as np

CASES = []
_random = np.random.RandomState(0)  # its stream is frozen, so both sides make the same inputs


def add(operator, *inputs, grad=(), tolerance=2e-5, **attributes):
    """A case: the inputs, and which of them get a gradient that is to be compared."""
    CASES.append({"operator": operator, "inputs": inputs, "grad": tuple(grad), "tolerance": tolerance, "attributes": attributes})


def real(*shape, dtype="float32"):
    return _random.uniform(-1, 1, shape).astype(dtype)


def whole(high, *shape, low=0, dtype="float32"):
    return _random.randint(low, high, shape).astype(dtype)


def numbers(*values, dtype="float32"):
    return np.array(values, dtype)


def positive_definite(n, *batch):
    m = _random.rand(*batch, n, n).astype("float32")
    return m @ np.swapaxes(m, -1, -2) + 2 * np.eye(n, dtype="float32")


def boxes(*shape, largest=0.5):
    corner = _random.uniform(0, 1, (*shape, 2))
    return np.concatenate([corner, corner + _random.uniform(0.05, largest, (*shape, 2))], -1).astype("float32")


def regions(n, images=2, size=40):
    corner = _random.uniform(0, size, (n, 2))
    return np.concatenate([_random.randint(0, images, (n, 1)), corner, corner + _random.uniform(1, size, (n, 2))], 1).astype("float32")


# -- shape -------------------------------------------------------------------------------------------------------------
for shape in ((-1,), (0, -1), (-2,), (-3, 0), (0, -3), (-4, 1, 2, -2), (4, -1), (-4, -1, 1, 0, 0), (0, 0, -4, 2, -1)):
    add("Reshape", real(2, 3, 4), grad=[0], shape=shape)
add("Reshape", real(10, 5, 4), grad=[0], shape=(-1, 0), reverse=True)
add("Reshape", real(10, 5, 4), grad=[0], shape=(-1, 0))
add("Reshape", real(2, 3, 5, 5), shape=(-2, -3), reverse=True)
add("Reshape", real(2, 3, 4), target_shape=(2, 0))
add("Reshape", real(2, 3, 4), target_shape=(3, 0), keep_highest=True)
add("reshape_like", real(2, 3, 4), real(6, 4), grad=[0])
add("reshape_like", real(30, 7), real(15, 2, 4), lhs_end=1, rhs_end=2)
add("reshape_like", real(30, 12), real(4, 2, 2, 3), lhs_begin=-1, rhs_begin=1)
add("Flatten", real(2, 3, 4), grad=[0])
for axes in ({}, {"axes": (1, 0, 2)}):
    add("transpose", real(2, 3, 4), grad=[0], **axes)
for axis in (-1, 1):
    add("expand_dims", real(2, 3), grad=[0], axis=axis)
for axis in ({}, {"axis": (0, 2)}, {"axis": -1}):
    add("squeeze", real(1, 3, 1), grad=[0], **axis)
add("SwapAxis", real(2, 3, 4), grad=[0], dim1=0, dim2=-1)
for begin, end, step in (((1, None), (None, 2), {}), ((None, None), (None, 0), {"step": (-1, -2)}),
                         ((-2, 1), (3, -1), {"step": (None, 1)}), ((2,), (None,), {"step": (-1,)})):
    add("slice", real(4, 5), grad=[0], begin=begin, end=end, **step)
add("slice_axis", real(4, 5), grad=[0], axis=1, begin=-3, end=-1)
add("slice_axis", real(4, 5), grad=[0], axis=0, begin=1, end=None)
add("slice_like", real(4, 5), real(2, 3), grad=[0, 1])
add("slice_like", real(4, 5), real(2, 3), grad=[0], axes=(-1,))
add("_slice_assign", real(4, 5), real(2, 2), begin=(1, 0), end=(3, 4), step=(1, 2))
add("_slice_assign", real(4, 5), real(4, 5), begin=(None, None), end=(None, None), step=(-1, 1))
add("_slice_assign_scalar", real(4, 5), begin=(1, 0), end=(3, 4), step=(1, 2), scalar=7.5)
add("Concat", real(2, 3), real(2, 1), grad=[0, 1], num_args=2, dim=1)
add("Concat", real(2, 3), real(1, 3), grad=[0, 1], num_args=2, dim=-2)
add("_rnn_param_concat", real(3), real(4), num_args=2, dim=0)
add("stack", real(2, 3), real(2, 3), grad=[0, 1], num_args=2, axis=-1)
add("SliceChannel", real(2, 6), grad=[0], num_outputs=3)
add("SliceChannel", real(3, 6), grad=[0], num_outputs=3, axis=0, squeeze_axis=True)
add("SliceChannel", real(2, 6), grad=[0], num_outputs=1)
add("_split_v2", real(2, 7), grad=[0], indices=(), sections=3)
add("_split_v2", real(2, 7), grad=[0], indices=(0, 2, 3), axis=-1)
add("_split_v2", real(2, 2), grad=[0], indices=(0, 1), axis=0, squeeze_axis=True)
for reps in ((2, 1, 2), (2,)):
    add("tile", real(2, 3), grad=[0], reps=reps)
for axis in ({}, {"axis": -1}):
    add("repeat", real(2, 3), grad=[0], repeats=2, **axis)
for axis in ((0, 1), 1):
    add("reverse", real(2, 3), grad=[0], axis=axis)
for mode in ("constant", "edge", "reflect"):
    add("Pad", real(1, 2, 3, 4), grad=[0], mode=mode, pad_width=(0, 0, 0, 0, 1, 2, 3, 1), constant_value=3)
    add("Pad", real(1, 2, 3, 4, 3), grad=[0], mode=mode, pad_width=(0, 0, 0, 0, 1, 2, 3, 1, 1, 1))
add("broadcast_to", real(1, 3), grad=[0], shape=(2, 0))
add("broadcast_axis", real(1, 3, 1), grad=[0], axis=(0, 2), size=(2, 4))
add("broadcast_like", real(1, 3), real(5, 3), grad=[0])
add("broadcast_like", real(1, 3), real(5, 6), grad=[0], lhs_axes=(0,), rhs_axes=(-1,))
add("diag", real(3), grad=[0], k=-1)
add("diag", real(3, 4), grad=[0], k=1)
add("diag", real(2, 3, 4), grad=[0], axis1=2, axis2=0, k=-1)
add("depth_to_space", real(2, 8, 2, 3), grad=[0], block_size=2)
add("space_to_depth", real(2, 3, 4, 6), grad=[0], block_size=2)
add("shape_array", real(2, 3))
add("size_array", real(2, 3))
add("Crop", real(1, 2, 5, 6), num_args=1, h_w=(3, 2), offset=(1, 2))
add("Crop", real(1, 2, 5, 6), real(1, 1, 2, 3), num_args=2, center_crop=True)

# -- indexing ----------------------------------------------------------------------------------------------------------
for mode in ("clip", "wrap"):
    add("take", real(4, 5), whole(8, 2, 3, low=-3), grad=[0], mode=mode)
    add("take", real(4, 5), whole(8, 2, 3, low=-3, dtype="int32"), grad=[0], mode=mode, axis=-1)
    add("pick", real(4, 5), whole(8, 4, low=-3), grad=[0], mode=mode)
    add("pick", real(4, 5, 2), whole(8, 4, 1, 2, low=-3), grad=[0], mode=mode, axis=1, keepdims=True)
add("pick", real(4, 5, 2), whole(2, 5, 2, dtype="int32"), grad=[0], axis=0)
add("batch_take", real(4, 5), whole(7, 4, low=-2, dtype="int32"))
add("gather_nd", real(3, 4, 2), whole(3, 2, 5), grad=[0])
add("gather_nd", real(3, 4, 2), whole(2, 3, 2, 2, low=-1))
add("scatter_nd", real(3, 2), numbers([0, 1, 3]), grad=[0], shape=(5, 2))
add("one_hot", whole(5, 3, 2), depth=4)
add("one_hot", whole(5, 3, 2, dtype="int32"), depth=4, on_value=2.5, off_value=-1, dtype="float16")
add("_ravel_multi_index", whole(3, 2, 5), shape=(4, 5))
add("_unravel_index", whole(20, 6), shape=(2, 5, 2))
add("_unravel_index", whole(20, 6, dtype="int64"), shape=(-1, 5))
add("_contrib_index_copy", real(4, 2), numbers(2, 0), real(2, 2), grad=[0, 2])
add("_contrib_index_array", real(2, 3))
add("_contrib_index_array", real(2, 3), axes=(-1, 0))
add("fill_element_0index", real(3, 4), real(3), whole(4, 3))
add("_onehot_encode", whole(4, 3), real(3, 4))
add("_contrib_boolean_mask", real(4, 3), numbers(1, 0, 0, 2), grad=[0])
add("cumsum", real(3, 4), grad=[0])
add("cumsum", whole(9, 3, 4, dtype="int8"), axis=0)
add("cumsum", whole(9, 3, 4, dtype="int32"), axis=0, dtype="float64")
add("_histogram", real(50), bin_cnt=7, range=(-0.9, 0.8))
add("_histogram", real(50, dtype="float64"), bin_cnt=7, range=(-0.9, 0.8))
add("_histogram", whole(20, 50), numbers(1, 3, 3, 9))
add("_histogram", whole(20, 50, dtype="int32"), bin_cnt=6, range=(1, 17))
add("_histogram", whole(20, 50), bin_cnt=1, range=(3, 9))

# -- sort --------------------------------------------------------------------------------------------------------------
for axis in (-1, 0, None):
    for is_ascend in (False, True):
        for kind in ("indices", "value", "both", "mask"):
            add("topk", real(4, 5), grad=[0] if kind == "value" else [], axis=axis, k=2, is_ascend=is_ascend, ret_typ=kind)
        add("sort", real(4, 5), grad=[0], axis=axis, is_ascend=is_ascend)
        add("argsort", real(4, 5), axis=axis, is_ascend=is_ascend)
add("argsort", whole(3, 4, 5), axis=0)
add("topk", real(50), k=3, dtype="int32")
add("topk", whole(4, 6, dtype="int32"), k=0, ret_typ="both")
add("topk", real(3, 4, 5), grad=[0], k=2, axis=1, ret_typ="value")
add("topk", real(4, 5, dtype="float16"), k=2, ret_typ="both", dtype="float16")

# -- sequence ----------------------------------------------------------------------------------------------------------
for operator in ("SequenceMask", "SequenceLast", "SequenceReverse"):
    add(operator, real(4, 3, 2), numbers(1, 4, 2), grad=[0], use_sequence_length=True)
    add(operator, real(4, 3), numbers(1, 4, 2, dtype="int32"), grad=[0], use_sequence_length=True)
    add(operator, real(4, 3, 2, 2), numbers(1, 4, 2, dtype="int64"), grad=[0], use_sequence_length=True)
    add(operator, real(4, 3, 2))
add("SequenceMask", real(3, 4, 2), numbers(1, 4, 2), grad=[0], use_sequence_length=True, axis=1, value=5)
add("SequenceLast", real(3, 4, 2), numbers(1, 4, 2), grad=[0], use_sequence_length=True, axis=1)
add("SequenceMask", whole(5, 4, 3, dtype="int32"), numbers(1, 4, 2), use_sequence_length=True, value=-1)

# -- linalg ------------------------------------------------------------------------------------------------------------
for ta in (False, True):
    for tb in (False, True):
        swap = {"transpose_a": ta, "transpose_b": tb}
        add("dot", real(*((4, 3) if ta else (3, 4))), real(*((2, 4) if tb else (4, 2))), grad=[0, 1], **swap)
        add("dot", real(*((4, 2, 3) if ta else (2, 3, 4))), real(*((5, 2, 4) if tb else (4, 5, 2))), grad=[0, 1], **swap)
        a, b = real(*((2, 4, 3) if ta else (2, 3, 4))), real(*((2, 5, 4) if tb else (2, 4, 5)))
        add("batch_dot", a, b, grad=[0, 1], **swap)
        add("_linalg_gemm2", a, b, grad=[0, 1], alpha=2, **swap)
        add("_linalg_gemm", a, b, real(2, 3, 5), grad=[0, 1, 2], alpha=2, beta=3, **swap)
add("dot", real(4), real(4), grad=[0, 1])
add("dot", real(3, 4), real(4), grad=[0, 1])
add("dot", real(4), real(4, 2), grad=[0, 1])
add("batch_dot", real(2, 3, 4, 5), real(2, 3, 5, 2), grad=[0, 1])
add("_linalg_gemm2", real(3, 2, 4), real(4, 2, 5), grad=[0, 1], axis=0)
add("_linalg_gemm2", real(2, 3, 6, 4), real(2, 4, 6, 5), grad=[0, 1], axis=1)
for lower in (True, False):
    add("_linalg_potrf", positive_definite(4, 2), grad=[0], tolerance=1e-4, lower=lower)
    factor = np.linalg.cholesky(positive_definite(4))
    add("_linalg_potri", np.ascontiguousarray(factor if lower else factor.T), grad=[0], tolerance=1e-4, lower=lower)
for transpose in (False, True):
    for rightside in (False, True):
        for lower in (False, True):
            for operator in ("_linalg_trmm", "_linalg_trsm"):
                add(operator, real(3, 3) + 3 * np.eye(3, dtype="float32"), real(*((5, 3) if rightside else (3, 5))), grad=[0, 1],
                    tolerance=1e-4, transpose=transpose, rightside=rightside, lower=lower, alpha=1.5)
    add("_linalg_syrk", real(2, 3, 4), grad=[0], transpose=transpose, alpha=2)
add("_linalg_gelqf", real(3, 4), grad=[0], tolerance=1e-4)
add("_linalg_gelqf", real(2, 3, 3), grad=[0], tolerance=1e-4)
add("_linalg_syevd", positive_definite(4), grad=[0], tolerance=1e-3)
add("_linalg_sumlogdiag", positive_definite(4), grad=[0])
add("_linalg_sumlogdiag", positive_definite(3, 2), grad=[0])
for offset in (-1, 0, 2):
    add("_linalg_extractdiag", real(2, 4, 4), grad=[0], offset=offset)
    add("_linalg_makediag", real(2, 4), grad=[0], offset=offset)
for offset in (-1, 0, 2):
    for lower in (False, True):
        add("_linalg_extracttrian", real(5, 5), grad=[0], offset=offset, lower=lower)
        add("_linalg_maketrian", real(2, 10), grad=[0], offset=offset, lower=lower)
add("_linalg_inverse", positive_definite(4, 2), grad=[0], tolerance=1e-4)
add("_linalg_det", positive_definite(3), grad=[0], tolerance=1e-4)
add("_linalg_det", real(2, 3, 3), grad=[0], tolerance=1e-4)
add("_linalg_slogdet", real(2, 3, 3), grad=[0], tolerance=1e-3)
add("khatri_rao", real(2, 3), real(4, 3), real(2, 3), num_args=3)

# -- image -------------------------------------------------------------------------------------------------------------
# MXNet leaves the middle of odd sizes unset when it flips.
bytes_image, batch = whole(255, 4, 6, 3, dtype="uint8"), whole(255, 2, 4, 5, 3, dtype="uint8")
for image in (bytes_image, bytes_image.astype("float32"), batch):
    add("_image_to_tensor", image)
    for size in (2, (3, 2), (9, 8)):
        for interp in (0, 1):
            add("_image_resize", image, size=size, interp=interp)
    add("_image_resize", image, size=2, keep_ratio=True)
    add("_image_crop", image, x=1, y=2, width=2, height=1)
for image in (bytes_image, bytes_image.astype("float32")):
    add("_image_flip_left_right", image)
    add("_image_flip_top_bottom", image)
    for factor in (0.5, 1.7):  # limits that leave nothing to chance
        for what in ("brightness", "contrast", "saturation"):
            add(f"_image_random_{what}", image, tolerance=1e-3, min_factor=factor, max_factor=factor)
    for factor in (0.0, 0.1, 0.9):
        # Bytes are truncated, not rounded, so a last digit can count as one.
        add("_image_random_hue", image, tolerance=1.01 if image.dtype == np.uint8 else 1e-3, min_factor=factor, max_factor=factor)
    add("_image_adjust_lighting", image, tolerance=1e-3, alpha=(0.1, -0.2, 0.3))
    add("_cvimresize", image, w=3, h=2)
    add("_cvcopyMakeBorder", image, top=1, bot=2, left=0, right=1, value=7)
add("_cvcopyMakeBorder", bytes_image, top=1, bot=2, left=0, right=1, values=(1, 2, 3))
add("_cvcopyMakeBorder", bytes_image, top=1, bot=2, left=0, right=1, type=1)
add("_image_normalize", real(3, 4, 5), grad=[0], mean=(0.1, 0.2, 0.3), std=(1, 2, 3))
add("_image_normalize", real(2, 1, 4, 5), grad=[0], mean=0.5, std=(2,))
add("_image_crop", bytes_image.astype("float32"), grad=[0], x=1, y=2, width=2, height=1)

# -- spatial: sampling -------------------------------------------------------------------------------------------------
add("BilinearSampler", real(2, 3, 5, 6), real(2, 2, 4, 3) * 1.3, grad=[0, 1], tolerance=1e-4)
add("GridGenerator", real(2, 6), grad=[0], tolerance=1e-4, transform_type="affine", target_shape=(3, 4))
add("GridGenerator", real(2, 2, 3, 4), grad=[0], tolerance=1e-4, transform_type="warp")
add("SpatialTransformer", real(2, 3, 5, 6), real(2, 6) / 2 + numbers(1, 0, 0, 0, 1, 0), grad=[0, 1], tolerance=1e-3,
    target_shape=(4, 5), transform_type="affine", sampler_type="bilinear")
add("UpSampling", real(2, 3, 4, 5), grad=[0], scale=2, sample_type="nearest", num_args=1)
add("UpSampling", real(2, 3, 4, 4), real(2, 1, 2, 2), grad=[0, 1], scale=2, sample_type="nearest", num_args=2)
add("UpSampling", real(2, 3, 4, 4), real(2, 3, 2, 2), grad=[0, 1], scale=2, sample_type="nearest", num_args=2, multi_input_mode="sum")
for scale, kernel in ((2, 4), (3, 5)):
    add("UpSampling", real(2, 3, 4, 4), real(3, 1, kernel, kernel), grad=[0, 1], tolerance=1e-4, scale=scale, sample_type="bilinear",
        num_filter=3, num_args=2)
for align_corners in (True, False):
    add("_contrib_BilinearResize2D", real(2, 3, 4, 5), grad=[0], tolerance=1e-4, height=7, width=3, align_corners=align_corners)
add("_contrib_BilinearResize2D", real(2, 3, 4, 5), real(1, 1, 6, 7), tolerance=1e-4, mode="like")
add("_contrib_BilinearResize2D", real(2, 3, 4, 5), tolerance=1e-4, scale_height=1.6, scale_width=0.7)
for mode in ("odd_scale", "to_even_down", "to_even_up", "to_odd_down", "to_odd_up"):
    add("_contrib_BilinearResize2D", real(1, 2, 4, 5), tolerance=1e-4, mode=mode, scale_height=2, scale_width=2)
for size in ((), (3,), (2, 4)):
    add("_contrib_AdaptiveAvgPooling2D", real(2, 3, 7, 5), grad=[0], output_size=size)
add("im2col", real(2, 3, 6, 7), grad=[0], kernel=(3, 2), stride=(2, 1), dilate=(1, 2), pad=(1, 0))
add("col2im", real(2, 18, 15), grad=[0], output_size=(6, 7), kernel=(3, 2), stride=(2, 1), dilate=(1, 2), pad=(1, 0))

# -- spatial: regions --------------------------------------------------------------------------------------------------
add("ROIPooling", real(2, 3, 12, 10), regions(6), grad=[0, 1], pooled_size=(3, 4), spatial_scale=0.25)
add("ROIPooling", np.maximum(real(2, 3, 12, 10), 0), regions(6), grad=[0], pooled_size=(7, 7), spatial_scale=0.25)
add("ROIPooling", real(2, 3, 12, 10), numbers([0, -9, -9, 4, 5], [1, 100, 100, 120, 120], [5, 1, 1, 9, 9]), pooled_size=(3, 4),
    spatial_scale=0.5)
for aligned in (False, True):
    for ratio in (-1, 2):
        add("_contrib_ROIAlign", real(2, 3, 12, 10), regions(6), grad=[0, 1], tolerance=1e-4, pooled_size=(3, 4), spatial_scale=0.25,
            sample_ratio=ratio, aligned=aligned)
add("_contrib_ROIAlign", real(2, 18, 12, 10), regions(6), grad=[0], tolerance=1e-4, pooled_size=(3, 3), spatial_scale=0.25,
    position_sensitive=True)
add("_contrib_ROIAlign", real(2, 24, 12, 10), regions(6), grad=[0], tolerance=1e-4, pooled_size=(3, 4), spatial_scale=0.25,
    position_sensitive=True, sample_ratio=2)
for ratio in (-1, 2):
    add("_contrib_RROIAlign", real(2, 3, 12, 10), np.concatenate([regions(5), 90 * real(5, 1)], 1), tolerance=1e-4, pooled_size=(3, 4),
        spatial_scale=0.25, sampling_ratio=ratio)
for channels, groups in ((18, {}), (8, {"group_size": 2})):
    add("_contrib_PSROIPooling", real(2, channels, 12, 10), regions(6), tolerance=1e-4, spatial_scale=0.25, output_dim=2, pooled_size=3,
        **groups)
add("_contrib_DeformablePSROIPooling", real(2, 18, 12, 10), regions(6), tolerance=1e-4, spatial_scale=0.25, output_dim=2, pooled_size=3,
    group_size=3, no_trans=True, sample_per_part=2)
add("_contrib_DeformablePSROIPooling", real(2, 8, 12, 10), regions(6), real(6, 4, 2, 2), tolerance=1e-4, spatial_scale=0.25, output_dim=2,
    pooled_size=4, group_size=2, part_size=2, sample_per_part=3, trans_std=0.3)
add("_contrib_DeformableConvolution", real(2, 4, 6, 7), 2 * real(2, 36, 6, 7), real(6, 4, 3, 3), real(6), grad=[0, 1, 2, 3], tolerance=1e-3,
    kernel=(3, 3), pad=(1, 1), num_filter=6, num_deformable_group=2)
add("_contrib_DeformableConvolution", real(2, 4, 6, 7), 2 * real(2, 12, 2, 3), real(6, 2, 2, 3), grad=[0, 1, 2], tolerance=1e-3,
    kernel=(2, 3), stride=(2, 2), dilate=(2, 1), pad=(0, 0), num_filter=6, num_group=2, no_bias=True)
for is_multiply in (True, False):
    add("Correlation", real(2, 3, 8, 9), real(2, 3, 8, 9), grad=[0, 1], tolerance=1e-4, kernel_size=3, max_displacement=2, stride1=2,
        stride2=1, pad_size=2, is_multiply=is_multiply)
    add("Correlation", real(1, 2, 10, 10), real(1, 2, 10, 10), grad=[0, 1], tolerance=1e-4, max_displacement=4, stride2=2, pad_size=4,
        is_multiply=is_multiply)

add("Correlation", whole(3, 1, 2, 6, 6), whole(3, 1, 2, 6, 6), grad=[0, 1], pad_size=1, is_multiply=False)

# -- spatial: boxes ----------------------------------------------------------------------------------------------------
found = np.concatenate([whole(3, 2, 20, 1), _random.uniform(0, 1, (2, 20, 1)), boxes(2, 20)], -1).astype("float32")
for how in ({}, {"id_index": 0, "overlap_thresh": 0.3}, {"out_format": "center"}, {"topk": 0}, {"valid_thresh": 2},
            {"in_format": "center", "out_format": "corner", "overlap_thresh": 0.2},
            {"id_index": 0, "overlap_thresh": 0.3, "force_suppress": True, "valid_thresh": 0.4, "topk": 6, "background_id": 1}):
    add("_contrib_box_nms", found, grad=[0], **how)
for how in ({"threshold": 0.2}, {"threshold": 0.5, "is_ascend": True}, {"threshold": 0.1, "topk": 2}):
    add("_contrib_bipartite_matching", _random.rand(2, 5, 7).astype("float32"), **how)
add("_contrib_box_iou", boxes(2, 3), boxes(5))
add("_contrib_box_iou", boxes(2, 3), boxes(5), format="center")
add("_contrib_box_encode", whole(2, 2, 6), whole(3, 2, 6), boxes(2, 6), boxes(2, 3), numbers(0.1, 0.2, 0.3, 0.1),
    numbers(0.1, 0.1, 0.2, 0.2), tolerance=1e-4)
add("_contrib_box_decode", real(2, 6, 4), boxes(1, 6), tolerance=1e-4)
add("_contrib_box_decode", real(2, 6, 4), boxes(1, 6), tolerance=1e-4, format="corner", clip=0.3, std0=0.1, std2=0.3)
for how in ({}, {"sizes": (0.5, 0.3), "ratios": (1, 2, 0.5), "clip": True},
            {"sizes": (0.5, 0.3), "ratios": (2, 0.5), "steps": (0.1, 0.2), "offsets": (0.3, 0.6)}):
    add("_contrib_MultiBoxPrior", real(1, 2, 3, 5), **how)
truth = np.concatenate([whole(3, 3, 4, 1), boxes(3, 4)], -1).astype("float32")
truth[0, 2:] = truth[2] = -1
anchors = boxes(1, 30)
for how in ({}, {"overlap_threshold": -1}, {"overlap_threshold": 0.3, "negative_mining_ratio": 2, "ignore_label": -7,
                                            "negative_mining_thresh": 0.6, "variances": (0.1, 0.2, 0.3, 0.4)}):
    add("_contrib_MultiBoxTarget", anchors, truth, real(3, 4, 30), **how)
likely = np.ascontiguousarray(_random.dirichlet(np.ones(4), (2, 30)).transpose(0, 2, 1)).astype("float32")
for how in ({}, {"threshold": 0.5, "nms_threshold": 0.3, "force_suppress": True, "clip": False}, {"threshold": 0.3, "nms_topk": 5},
            {"nms_threshold": -1, "threshold": 0.4}):
    add("_contrib_MultiBoxDetection", likely, real(2, 120), anchors, **how)
for iou_loss in (False, True):
    add("_contrib_Proposal", _random.rand(1, 24, 5, 6).astype("float32"), real(1, 48, 5, 6) * 0.3, numbers([80, 90, 1]), tolerance=1e-3,
        rpn_pre_nms_top_n=100, rpn_post_nms_top_n=20, output_score=True, iou_loss=iou_loss)
    add("_contrib_MultiProposal", _random.rand(2, 12, 5, 6).astype("float32"), real(2, 24, 5, 6) * 0.3, numbers([80, 90, 1], [60, 96, 0.7]),
        tolerance=1e-3, rpn_pre_nms_top_n=100, rpn_post_nms_top_n=20, output_score=True, scales=(2, 4), iou_loss=iou_loss, threshold=0.5)


def head_gradient(shape, dtype):
    """The incoming gradient: different numbers without order."""
    return (((np.arange(int(np.prod(shape))) * 271 + 7) % 499) / 250.0 - 1).astype(dtype).reshape(shape)
