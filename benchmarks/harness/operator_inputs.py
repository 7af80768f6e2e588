"""Large inputs for `operators.py`: {operator: (inputs, attributes)}, of realistic sizes.

A tuple is the shape of an array of numbers between 0.1 and 1; anything else is the array itself. Of operators that are not here, element-wise ones
and optimizers get their small inputs repeated; the others are measured on small inputs only.
"""
import numpy as np

_random = np.random.RandomState(0)


def integers(high, *shape, dtype="float32"):
    return _random.randint(0, high, shape).astype(dtype)


def boxes(*shape, size=1.0):
    """Return corners (x1, y1, x2, y2) with sides up to a fifth of `size`."""
    start = _random.uniform(0, 0.8, (*shape, 2))
    return np.concatenate([start, start + _random.uniform(0.02, 0.2, (*shape, 2))], -1).astype("float32") * np.float32(size)


def rois(count, images, size):
    return np.concatenate([integers(images, count, 1), boxes(count, size=size)], 1)


def detections(images, count):
    """Return inputs of box_nms: class, score, corners."""
    return np.concatenate([integers(20, images, count, 1), _random.uniform(0, 1, (images, count, 1)).astype("float32"), boxes(images, count)], 2)


def positive_definite(*shape):
    a = _random.uniform(-1, 1, shape).astype("float32")
    return a @ a.swapaxes(-1, -2) + shape[-1] * np.eye(shape[-1], dtype="float32")


def sorted_indices(high, count):
    return np.sort(_random.permutation(high)[:count]).astype("float32")


_FEATURES, _SEQUENCE, _CUBE, _SQUARE = (16, 64, 56, 56), (64, 32, 256), (64, 128, 128), (1024, 1024)
_NORM = [_FEATURES, (64,), (64,), (64,), (64,)]
_PHOTO = integers(256, 480, 640, 3, dtype="uint8")
_LSTM = 4 * 256 * (256 + 256 + 2)

LARGE = {
    # networks
    "Convolution": ([_FEATURES, (64, 64, 3, 3), (64,)], {"kernel": (3, 3), "pad": (1, 1), "num_filter": 64}),
    "Convolution_v1": ([_FEATURES, (64, 64, 3, 3), (64,)], {"kernel": (3, 3), "pad": (1, 1), "num_filter": 64}),
    "Deconvolution": ([(8, 32, 28, 28), (32, 32, 4, 4)], {"kernel": (4, 4), "stride": (2, 2), "pad": (1, 1), "num_filter": 32}),
    "FullyConnected": ([(128, 1024), _SQUARE, (1024,)], {"num_hidden": 1024}),
    "Pooling": ([_FEATURES], {"kernel": (3, 3), "stride": (2, 2), "pad": (1, 1), "pool_type": "max"}),
    "Pooling_v1": ([_FEATURES], {"kernel": (3, 3), "stride": (2, 2), "pad": (1, 1), "pool_type": "max"}),
    "BatchNorm": (_NORM, {"fix_gamma": False}), "BatchNorm_v1": (_NORM, {"fix_gamma": False}),
    "_contrib_SyncBatchNorm": (_NORM, {"fix_gamma": False, "key": "large"}),
    "LayerNorm": ([_SEQUENCE, (256,), (256,)], {}), "GroupNorm": ([_FEATURES, (8,), (8,)], {"num_groups": 8}),
    "InstanceNorm": ([_FEATURES, (64,), (64,)], {}), "L2Normalization": ([_SQUARE], {}), "LRN": ([(8, 64, 56, 56)], {"nsize": 5}),
    "Activation": ([_CUBE], {"act_type": "relu"}), "LeakyReLU": ([_CUBE], {"act_type": "leaky", "slope": 0.3}),
    "Dropout": ([_SQUARE], {"p": 0.4}), "softmax": ([_SQUARE], {}), "log_softmax": ([_SQUARE], {}), "softmin": ([_SQUARE], {}),
    "SoftmaxActivation": ([_SQUARE], {}), "softmax_cross_entropy": ([(1024, 1000), integers(1000, 1024)], {}),
    "SoftmaxOutput": ([(1024, 1000), integers(1000, 1024)], {}), "SVMOutput": ([(1024, 1000), integers(1000, 1024)], {}),
    "Embedding": ([integers(50000, 64, 50), (50000, 128)], {"input_dim": 50000, "output_dim": 128}),
    "RNN": ([(35, 32, 256), (_LSTM,), (1, 32, 256), (1, 32, 256)], {"mode": "lstm", "state_size": 256, "num_layers": 1}),
    "CTCLoss": ([(100, 32, 64), integers(63, 32, 20) + 1], {}),
    "_contrib_interleaved_matmul_selfatt_qk": ([(128, 8, 3 * 512)], {"heads": 8}),
    "_contrib_interleaved_matmul_selfatt_valatt": ([(128, 8, 3 * 512), (64, 128, 128)], {"heads": 8}),
    "_contrib_interleaved_matmul_encdec_qk": ([(128, 8, 512), (128, 8, 1024)], {"heads": 8}),
    "_contrib_interleaved_matmul_encdec_valatt": ([(128, 8, 1024), (64, 128, 128)], {"heads": 8}),
    # products
    "dot": ([(512, 512), (512, 512)], {}), "batch_dot": ([(32, 128, 128), (32, 128, 128)], {}),
    "_linalg_gemm": ([(8, 256, 256)] * 3, {}), "_linalg_gemm2": ([(8, 256, 256)] * 2, {}), "_linalg_syrk": ([(8, 256, 256)], {}),
    "_linalg_potrf": ([positive_definite(8, 128, 128)], {}), "_linalg_inverse": ([positive_definite(8, 128, 128)], {}),
    "_linalg_slogdet": ([positive_definite(64, 16, 16)], {}), "_linalg_sumlogdiag": ([positive_definite(64, 16, 16)], {}),
    "_linalg_det": ([positive_definite(64, 16, 16)], {}), "_linalg_trmm": ([positive_definite(8, 128, 128), (8, 128, 128)], {}),
    "_linalg_trsm": ([positive_definite(8, 128, 128), (8, 128, 128)], {}), "_linalg_syevd": ([positive_definite(128, 128)], {}),
    "_linalg_gelqf": ([(8, 64, 128)], {}), "khatri_rao": ([(64, 64), (256, 64)], {"num_args": 2}),
    # reductions, order
    **{n: ([_CUBE], {"axis": 2}) for n in ("sum", "mean", "prod", "max", "min", "nansum", "nanprod", "norm", "argmax", "argmin")},
    "argmax_channel": ([_SQUARE], {}), "moments": ([_CUBE], {"axes": (0, 2)}), "cumsum": ([_CUBE], {"axis": 1}),
    "topk": ([(256, 4096)], {"k": 5}), "sort": ([(256, 4096)], {}), "argsort": ([(256, 4096)], {}),
    "_histogram": ([(1 << 20,)], {"bin_cnt": 100, "range": (0.0, 1.0)}), "_shuffle": ([(65536, 16)], {}),
    # shapes
    "transpose": ([_CUBE], {}), "SwapAxis": ([_CUBE], {"dim1": 0, "dim2": 1}), "Flatten": ([_CUBE], {}), "Reshape": ([_CUBE], {"shape": (-1,)}),
    "expand_dims": ([_CUBE], {"axis": 0}), "slice": ([_SQUARE], {"begin": (100, 100), "end": (900, 900)}),
    "slice_axis": ([_CUBE], {"axis": 1, "begin": 10, "end": 110}), "slice_like": ([_SQUARE, (800, 900)], {}),
    "Concat": ([(512, 1024), (512, 1024)], {"dim": 1, "num_args": 2}), "stack": ([(512, 1024), (512, 1024)], {"axis": 1, "num_args": 2}),
    "SliceChannel": ([_CUBE], {"num_outputs": 4, "axis": 2}), "_split_v2": ([_CUBE], {"indices": (), "axis": 2, "sections": 4}),
    "tile": ([(256, 512)], {"reps": (2, 4)}), "repeat": ([(256, 512)], {"repeats": 8, "axis": 1}), "reverse": ([_CUBE], {"axis": 2}),
    "Pad": ([(16, 32, 56, 56)], {"mode": "constant", "pad_width": (0, 0, 0, 0, 1, 1, 1, 1)}), "diag": ([_SQUARE], {}),
    "broadcast_to": ([(64, 1, 128)], {"shape": _CUBE}), "broadcast_axis": ([(64, 1, 128)], {"axis": 1, "size": 128}),
    "broadcast_like": ([(64, 1, 128), _CUBE], {}), "depth_to_space": ([_FEATURES], {"block_size": 2}),
    "space_to_depth": ([_FEATURES], {"block_size": 2}), "Crop": ([_FEATURES], {"num_args": 1, "h_w": (48, 48), "offset": (4, 4)}),
    **{n: ([_CUBE, (128, 1)], {}) for n in ("broadcast_add", "broadcast_sub", "broadcast_mul", "broadcast_div", "broadcast_maximum",
                                            "broadcast_minimum", "broadcast_power", "broadcast_greater", "broadcast_equal")},
    # indices
    "take": ([(50000, 128), integers(50000, 4096)], {}), "pick": ([(4096, 256), integers(256, 4096)], {}),
    "batch_take": ([(4096, 256), integers(256, 4096, dtype="int32")], {}), "gather_nd": ([(256, 256, 16), integers(256, 2, 16384)], {}),
    "scatter_nd": ([(4096, 64), sorted_indices(8192, 4096)[None]], {"shape": (8192, 64)}), "one_hot": ([integers(1000, 1024)], {"depth": 1000}),
    "where": ([integers(2, *_CUBE), _CUBE, _CUBE], {}), "_contrib_boolean_mask": ([(8192, 128), integers(2, 8192)], {}),
    "_contrib_index_copy": ([(8192, 128), sorted_indices(8192, 4096), (4096, 128)], {}),
    **{n: ([(128, 64, 128), integers(127, 64) + 1], {"use_sequence_length": True}) for n in ("SequenceMask", "SequenceLast", "SequenceReverse")},
    # images and detection
    "UpSampling": ([(8, 32, 56, 56)], {"scale": 2, "sample_type": "nearest", "num_args": 1}),
    "BilinearSampler": ([(8, 32, 56, 56), (8, 2, 56, 56)], {}),
    "GridGenerator": ([(16, 6)], {"transform_type": "affine", "target_shape": (112, 112)}),
    "SpatialTransformer": ([(8, 32, 56, 56), (8, 6)], {"target_shape": (56, 56), "transform_type": "affine", "sampler_type": "bilinear"}),
    "_contrib_BilinearResize2D": ([(8, 32, 56, 56)], {"height": 112, "width": 112}),
    "_contrib_AdaptiveAvgPooling2D": ([_FEATURES], {"output_size": (7, 7)}),
    "im2col": ([(8, 32, 56, 56)], {"kernel": (3, 3), "pad": (1, 1)}),
    "col2im": ([(8, 288, 3136)], {"output_size": (56, 56), "kernel": (3, 3), "pad": (1, 1)}),
    "ROIPooling": ([(2, 256, 38, 50), rois(128, 2, 600)], {"pooled_size": (7, 7), "spatial_scale": 0.0625}),
    "_contrib_ROIAlign": ([(2, 256, 38, 50), rois(128, 2, 600)], {"pooled_size": (7, 7), "spatial_scale": 0.0625, "sample_ratio": 2}),
    "_contrib_PSROIPooling": ([(1, 490, 38, 50), rois(128, 1, 600)], {"spatial_scale": 0.0625, "output_dim": 10, "pooled_size": 7}),
    "_contrib_DeformableConvolution": ([(2, 64, 28, 28), (2, 18, 28, 28), (64, 64, 3, 3), (64,)],
                                       {"kernel": (3, 3), "pad": (1, 1), "num_filter": 64}),
    "Correlation": ([(2, 64, 48, 64), (2, 64, 48, 64)], {"kernel_size": 1, "max_displacement": 4, "stride1": 1, "stride2": 1, "pad_size": 4}),
    "_contrib_box_nms": ([detections(4, 1000)], {"overlap_thresh": 0.5, "topk": 400, "coord_start": 2, "score_index": 1, "id_index": 0}),
    "_contrib_box_iou": ([boxes(2000), boxes(200)], {}), "_contrib_bipartite_matching": ([(4, 500, 50)], {"threshold": 0.2}),
    "_contrib_MultiBoxPrior": ([(1, 8, 64, 64)], {"sizes": (0.2, 0.3), "ratios": (1, 2, 0.5)}),
    "_contrib_MultiBoxTarget": ([boxes(1, 4000), np.concatenate([integers(20, 8, 10, 1), boxes(8, 10)], 2), (8, 21, 4000)], {}),
    "_contrib_MultiBoxDetection": ([(4, 21, 4000), (4, 16000), boxes(1, 4000)], {"nms_topk": 400}),
    "_contrib_Proposal": ([(1, 24, 38, 50), (1, 48, 38, 50), np.array([[608, 800, 1]], "float32")], {}),
    "_image_to_tensor": ([_PHOTO], {}), "_image_resize": ([_PHOTO], {"size": 224}), "_image_flip_left_right": ([_PHOTO], {}),
    "_image_flip_top_bottom": ([_PHOTO], {}), "_image_crop": ([_PHOTO], {"x": 100, "y": 100, "width": 224, "height": 224}),
    "_image_normalize": ([(3, 480, 640)], {"mean": (0.1, 0.2, 0.3), "std": (1, 2, 3)}),
    "_image_random_brightness": ([_PHOTO], {"min_factor": 0.5, "max_factor": 0.6}),
    "_image_random_contrast": ([_PHOTO], {"min_factor": 0.5, "max_factor": 0.6}),
    "_image_random_saturation": ([_PHOTO], {"min_factor": 0.5, "max_factor": 0.6}),
    "_image_random_hue": ([_PHOTO], {"min_factor": 0.1, "max_factor": 0.2}),
    # creation, random numbers
    "_zeros": ([], {"shape": _SQUARE}), "_ones": ([], {"shape": _SQUARE}), "_full": ([], {"shape": _SQUARE, "value": 1.5}),
    "_arange": ([], {"start": 0.0, "stop": float(1 << 20)}), "_eye": ([], {"N": 1024}),
    **{f"_random_{n}": ([], {"shape": _SQUARE, **a}) for n, a in {
        "uniform": {}, "normal": {}, "gamma": {"alpha": 2.0}, "exponential": {"lam": 2.0}, "poisson": {"lam": 3.0},
        "negative_binomial": {"k": 3, "p": 0.4}, "generalized_negative_binomial": {"mu": 2.0, "alpha": 0.3},
        "randint": {"low": 0, "high": 100}}.items()},
    **{f"_sample_{n}": ([(1024,)] * k, {"shape": (256,)}) for n, k in (
        ("uniform", 2), ("normal", 2), ("gamma", 2), ("exponential", 1), ("poisson", 1))},
    "_sample_multinomial": ([np.full((64, 1000), 0.001, "float32")], {"shape": (64,)}),
    # optimizers of several arrays
    "all_finite": ([_SQUARE], {}), "multi_all_finite": ([_SQUARE, _SQUARE], {"num_arrays": 2}),
    "multi_sum_sq": ([_SQUARE, _SQUARE], {"num_arrays": 2}),
}
