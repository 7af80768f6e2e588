"""Which operators run in float16, which in float32, and which in the type of their inputs.

Every operator is in one list: in `FP16_FUNCS` if it is safe and much faster in float16 (matrix products, convolutions), in `FP32_FUNCS`
if it loses too much (exponents, powers, reductions, normalizations, losses), in `WIDEST_TYPE_CASTS` if its inputs must be of one type,
else in `FP16_FP32_FUNCS`.
"""
from .spelling import of_two_arrays, prefixed, with_scalar

FP16_FUNCS = "Convolution Deconvolution FullyConnected RNN".split()

FP16_FP32_FUNCS = [
    *"""
    Pooling Pooling_v1 UpSampling Dropout BatchNorm BatchNorm_v1 CuDNNBatchNorm Embedding ROIPooling
    BilinearSampler GridGenerator SpatialTransformer SequenceLast SequenceMask SequenceReverse
    _rnn_param_concat _sg_mkldnn_conv _sg_mkldnn_fully_connected _TensorRT

    Reshape reshape reshape_like Flatten flatten expand_dims squeeze transpose SwapAxis swapaxes flip reverse tile repeat Pad pad
    SliceChannel split _split_v2 _split_v2_backward slice slice_axis slice_like Crop crop diag depth_to_space space_to_depth
    broadcast_to broadcast_like broadcast_axis broadcast_axes _broadcast_backward shape_array size_array

    take batch_take gather_nd scatter_nd _scatter_set_nd pick choose_element_0index fill_element_0index one_hot _onehot_encode
    ravel_multi_index _ravel_multi_index unravel_index _unravel_index _slice_assign _slice_assign_scalar _crop_assign _crop_assign_scalar
    argmax argmin argmax_channel max max_axis min min_axis sort _histogram shuffle _shuffle

    Cast cast amp_cast amp_multicast cast_storage BlockGrad stop_gradient identity _copy _copyto _CrossDeviceCopy
    _identity_with_attr_like_rhs _NoGradient _grad_add _add _cond _foreach _while_loop _CachedOp _CustomFunction

    abs sign negative round rint ceil floor trunc fix clip sqrt cbrt sin cos arctan arcsinh arccosh degrees radians erf
    relu sigmoid hard_sigmoid softsign tanh logical_not _scatter_plus_scalar _scatter_minus_scalar all_finite multi_all_finite

    _zeros _zeros_without_dtype zeros_like _ones ones_like _full _set_value _eye _arange _linspace
    normal uniform _sample_unique_zipfian

    _imdecode _cvimdecode _cvimread _cvimresize _cvcopyMakeBorder
    """.split(),
    *with_scalar("plus minus rminus mul div mod rmod maximum minimum equal not_equal greater greater_equal lesser lesser_equal "
                 "logical_and logical_or logical_xor"),
    *prefixed(". _", "random_randint"),
    *prefixed("random_ _random_ sample_ _sample_",
              "uniform normal gamma exponential poisson negative_binomial generalized_negative_binomial"),
    *(name + "_like" for name in prefixed("_random_",
                                          "uniform normal gamma exponential poisson negative_binomial generalized_negative_binomial")),
    *prefixed("sample_ _sample_", "multinomial"),
    *(name + "_update" for name in """
      sgd sgd_mom mp_sgd mp_sgd_mom multi_sgd multi_sgd_mom multi_mp_sgd multi_mp_sgd_mom signsgd signum adam _adamw _mp_adamw ftml ftrl
      rmsprop rmspropalex _sparse_sgd _sparse_sgd_mom _sparse_adam _sparse_adagrad _sparse_ftrl _contrib_group_adagrad""".split()),
    *prefixed("_sparse_", """
        Embedding FullyConnected cast_storage retain slice concat clip zeros_like stop_gradient relu sigmoid tanh
        abs sign negative round rint ceil floor trunc fix sqrt cbrt sin cos arctan sinh arcsinh arccosh degrees radians"""),
    *prefixed("_contrib_", """
        AdaptiveAvgPooling2D BilinearResize2D SparseEmbedding bipartite_matching boolean_mask index_array index_copy getnnz
        div_sqrt_dim quadratic gradientmultiplier ifft quantize quantize_v2 requantize dequantize quantized_conv quantized_fully_connected
        quantized_pooling quantized_act quantized_flatten quantized_concat quantized_elemwise_add"""),
    *prefixed("_image_", """
        to_tensor normalize crop resize flip_left_right flip_top_bottom adjust_lighting random_flip_left_right random_flip_top_bottom
        random_brightness random_contrast random_saturation random_hue random_color_jitter random_lighting"""),
]

FP32_FUNCS = [
    *"""
    exp expm1 log log2 log10 log1p square reciprocal rsqrt rcbrt broadcast_power _Power _power broadcast_hypot _Hypot _hypot
    arccos arcsin arctanh tan sinh cosh gamma gammaln erfinv smooth_l1

    sum sum_axis nansum _square_sum prod nanprod mean norm moments khatri_rao argsort topk

    softmax Softmax log_softmax softmin SoftmaxActivation SoftmaxOutput SVMOutput softmax_cross_entropy CTCLoss ctc_loss MakeLoss make_loss
    LinearRegressionOutput LogisticRegressionOutput MAERegressionOutput IdentityAttachKLSparseReg
    InstanceNorm LayerNorm GroupNorm L2Normalization LRN Convolution_v1 Custom _NDArray _Native
    """.split(),
    *with_scalar("rdiv power rpower hypot"),
    *prefixed("linalg_ _linalg_", """
        gemm gemm2 trmm trsm syrk potrf potri gelqf inverse det slogdet sumlogdiag makediag extractdiag maketrian extracttrian"""),
    "_linalg_syevd",
    *prefixed("_sparse_", """
        exp expm1 log log2 log10 log1p square rsqrt arccos arcsin arctanh tan cosh gamma gammaln mean norm
        make_loss LinearRegressionOutput LogisticRegressionOutput MAERegressionOutput"""),
    *prefixed("_contrib_", """
        CTCLoss ctc_loss SyncBatchNorm DeformableConvolution DeformablePSROIPooling MultiBoxPrior MultiBoxTarget MultiBoxDetection
        fft count_sketch hawkesll"""),
]

# (operator, attribute, its values with which the operator runs in float32)
CONDITIONAL_FP32_FUNCS = [("Activation", "act_type", ["softrelu"]), ("LeakyReLU", "act_type", "elu selu".split())]

WIDEST_TYPE_CASTS = [
    *"""
    dot batch_dot Concat concat stack where add_n ElementWiseSum Correlation
    _Plus _plus _Minus _minus _sub _Mul _mul _Div _div _Mod _mod _scatter_elemwise_div _sparse_sum
    """.split(),
    *of_two_arrays("maximum minimum equal not_equal greater greater_equal lesser lesser_equal logical_and logical_or logical_xor"),
    *prefixed(". _sparse_", "elemwise_add elemwise_sub elemwise_mul elemwise_div"),
    *prefixed("broadcast_ _sparse_broadcast_", "add plus sub minus mul div"),
    *prefixed("broadcast_", """
        mod maximum minimum equal not_equal greater greater_equal lesser lesser_equal logical_and logical_or logical_xor"""),
    *prefixed("_sparse_", "dot where add_n ElementWiseSum"),
    *prefixed("_contrib_interleaved_matmul_", "selfatt_qk selfatt_valatt encdec_qk encdec_valatt"),
    *prefixed("_contrib_", """
        Proposal MultiProposal ROIAlign PSROIPooling box_iou box_nms box_non_maximum_suppression edge_id dgl_subgraph dgl_adjacency
        dgl_graph_compact dgl_csr_neighbor_uniform_sample dgl_csr_neighbor_non_uniform_sample"""),
    *prefixed("random_pdf_ _random_pdf_", """
        uniform normal gamma exponential poisson negative_binomial generalized_negative_binomial dirichlet"""),
]

# Layers that are losses themselves: their gradient is scaled through `grad_scale`.
LOSS_OUTPUT_FUNCTIONS = "SoftmaxOutput LinearRegressionOutput LogisticRegressionOutput MAERegressionOutput".split()
