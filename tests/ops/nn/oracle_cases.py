"""What is compared with MXNet 1.9.1, for both sides: `record_oracle.py` runs it there, `test_against_oracle.py` here.

A case is (operator, inputs, attributes, training). An input is a shape, for which `values` makes numbers, or a list of numbers itself
with the type behind it. Only numpy is needed.
"""
import numpy as np

CASES = []


def add(operator, *inputs, train=True, **attributes):
    CASES.append((operator, inputs, attributes, train))


def values(spec, position):
    """An input of a case. The numbers of a shape are spread over -1.5..1.5 without order or ties, other ones at each position."""
    if isinstance(spec, tuple) and len(spec) == 2 and isinstance(spec[1], str):
        content, dtype = spec
        if isinstance(content, list):
            return np.array(content, dtype)
        return (values(content, position) if not dtype.startswith("+") else np.abs(values(content, position)) + 0.25).astype(
            dtype.lstrip("+"))
    n = int(np.prod(spec))
    mixed = (np.arange(n) * 389 + 101 * position) % 1009
    return (mixed / 336.0 - 1.5).astype("float32").reshape(spec)


def head_gradient(shape, dtype):
    """The incoming gradient."""
    n = int(np.prod(shape))
    return (((np.arange(n) * 271 + 7) % 499) / 250.0 - 1).astype(dtype).reshape(shape)


# Convolution and deconvolution
for kernel, shape in (((3,), (2, 4, 6)), ((3, 2), (1, 4, 5, 6)), ((2, 1, 2), (1, 4, 3, 3, 4))):
    n = len(kernel)
    for more in ({}, {"stride": (2,) * n, "pad": (1,) * n}, {"dilate": (2,) * n, "pad": (2,) * n}):
        add("Convolution", shape, (2, 4, *kernel), (2,), kernel=kernel, num_filter=2, **more)
        if not (n == 3 and "dilate" in more):  # MXNet's library refuses that
            add("Deconvolution", shape, (4, 2, *kernel), kernel=kernel, num_filter=2, **more)
    add("Convolution", shape, (4, 2, *kernel), kernel=kernel, num_filter=4, num_group=2, no_bias=True)
    add("Deconvolution", shape, (4, 1, *kernel), kernel=kernel, num_filter=2, num_group=2)
add("Convolution", ((1, 2, 4, 4), "float64"), ((2, 2, 3, 3), "float64"), ((2,), "float64"), kernel=(3, 3), num_filter=2)
add("Convolution_v1", (1, 2, 4, 4), (2, 2, 3, 3), (2,), kernel=(3, 3), num_filter=2, pad=(1, 1))
add("Deconvolution", (1, 2, 3, 3), (2, 2, 3, 3), (2,), kernel=(3, 3), num_filter=2, stride=(2, 2), adj=(1, 1), pad=(1, 1), no_bias=False)
add("Deconvolution", (1, 2, 3, 3), (2, 2, 3, 3), kernel=(3, 3), num_filter=2, stride=(2, 2), target_shape=(7, 7))

# Dense and embedding
add("FullyConnected", (2, 2, 3), (4, 6), (4,), num_hidden=4)
add("FullyConnected", (2, 2, 3), (4, 3), (4,), num_hidden=4, flatten=False)
add("FullyConnected", ((2, 3), "float64"), ((4, 3), "float64"), num_hidden=4, no_bias=True)
for dtype in ("int32", "int64", "uint8"):
    add("Embedding", ([[0, 3], [2, 2]], dtype), (4, 3), input_dim=4, output_dim=3)
add("Embedding", ([-2, 7, 1], "int32"), (4, 3), input_dim=4, output_dim=3)

# Pooling
for shape in ((1, 2, 9), (1, 2, 7, 8), (1, 1, 5, 6, 5)):
    n = len(shape) - 2
    for pool_type in ("max", "avg", "sum"):
        for convention in ("valid", "full"):
            for more in ({"stride": (2,) * n, "pad": (1,) * n}, {"stride": (2,) * n, "pad": (2,) * n}):
                add("Pooling", shape, kernel=(3,) * n, pool_type=pool_type, pooling_convention=convention, **more)
        add("Pooling", shape, pool_type=pool_type, global_pool=True)
    add("Pooling", shape, kernel=(3,) * n, pool_type="avg", stride=(2,) * n, pad=(1,) * n, count_include_pad=False)
    add("Pooling", shape, kernel=(3,) * n, pool_type="avg", stride=(2,) * n, pad=(1,) * n, count_include_pad=False,
        pooling_convention="full")
    for p in (1, 2, 3):
        add("Pooling", shape, kernel=(2,) * n, pool_type="lp", p_value=p, pad=(1,) * n, stride=(2,) * n)
add("Pooling", (1, 1, 9), kernel=(2,), stride=(3,), pool_type="avg", pooling_convention="full")
add("Pooling", (1, 1, 6), kernel=(2,), stride=(3,), pool_type="max", pooling_convention="full")
for pool_type in ("max", "avg", "sum"):
    add("Pooling", (1, 7, 2), kernel=(3,), stride=(2,), pool_type=pool_type, layout="NWC")
    add("Pooling", (1, 5, 6, 2), kernel=(3, 3), stride=(2, 2), pad=(1, 1), pool_type=pool_type, layout="NHWC")
    add("Pooling", (1, 5, 6, 2), pool_type=pool_type, global_pool=True, layout="NHWC")
    for convention in ("valid", "full"):
        add("Pooling_v1", (1, 2, 5, 6), kernel=(3, 3), stride=(2, 2), pad=(1, 1), pool_type=pool_type, pooling_convention=convention)
    add("Pooling_v1", (1, 2, 4, 4), kernel=(2, 2), global_pool=True, pool_type=pool_type)

# Activations
for name in ("relu", "sigmoid", "softrelu", "softsign", "tanh"):
    for dtype in ("float32", "float64", "float16"):
        add("Activation", ([-30, -2, -0.5, 0, 0.5, 2, 30], dtype), act_type=name)
add("hard_sigmoid", ([-3, -2.5, -1, 0, 1, 2.5, 3], "float32"))
add("hard_sigmoid", ([-3, -1, 0, 1, 3], "float32"), alpha=0.5, beta=0.25)
for name in ("leaky", "elu", "gelu"):
    add("LeakyReLU", ([-3, -1, -0.1, 0, 0.1, 1, 3], "float32"), act_type=name, slope=0.3)
for gamma in ((3,), (1,)):
    add("LeakyReLU", (2, 3, 2), gamma, act_type="prelu")
add("LeakyReLU", (4, 3), (3,), act_type="prelu")

# Softmax
for name in ("softmax", "log_softmax", "softmin"):
    for attributes in ({}, {"axis": 1}, {"axis": 0, "temperature": 2.0}):
        add(name, (2, 3, 4), **attributes)
    add(name, ((2, 3), "float16"), dtype="float32")
    add(name, (2, 3), dtype="float64")
add("softmax", (2, 3, 4), ([[0, 1, 4], [2, 3, 1]], "int32"), use_length=True)
add("softmax", (2, 3, 4), ([[0, 1, 2, 3], [3, 2, 1, 0]], "int32"), use_length=True, axis=1, temperature=0.5)
add("softmax", (4,), ([2], "int32"), use_length=True)
add("SoftmaxActivation", (2, 3))
add("SoftmaxActivation", (2, 3, 4), mode="channel")
add("softmax_cross_entropy", (3, 4), ([1, 3, 0], "float32"))
add("softmax_cross_entropy", ([[-50, 50], [0, 0]], "float32"), ([0, 1], "float32"))

# Output layers
labels = [0, 1, 2, 1, -1, 5]
for attributes in ({}, {"grad_scale": 2.5}, {"use_ignore": True, "ignore_label": 1}, {"normalization": "batch"}, {"normalization": "valid"},
                   {"normalization": "valid", "use_ignore": True, "ignore_label": 1}, {"smooth_alpha": 0.1},
                   {"smooth_alpha": 0.1, "use_ignore": True, "ignore_label": 2}):
    add("SoftmaxOutput", (6, 3), (labels, "float32"), **attributes)
    add("SoftmaxOutput", (2, 3, 3), ([labels[:3], labels[3:]], "float32"), preserve_shape=True, **attributes)
    add("SoftmaxOutput", (2, 3, 3), ([labels[:3], labels[3:]], "float32"), multi_output=True, **attributes)
    add("SoftmaxOutput", (2, 3), (2, 3), **attributes)
for name in ("LinearRegressionOutput", "LogisticRegressionOutput", "MAERegressionOutput"):
    add(name, (4, 3), (4, 3))
    add(name, (4, 1), (4,), grad_scale=3.0)
    add(name, (2, 3, 2), (2, 6))
for attributes in ({}, {"use_linear": True}, {"margin": 0.3, "regularization_coefficient": 0.7}):
    add("SVMOutput", (4, 3), ([0, 1, 2, 5], "float32"), **attributes)
for attributes in ({}, {"grad_scale": 3.0}, {"normalization": "batch"}, {"normalization": "valid", "valid_thresh": 0.3}):
    add("MakeLoss", (3, 4), **attributes)
add("IdentityAttachKLSparseReg", ((3, 4), "+float32"), ([0.2, 0.4, 0.6, 0.8], "float32"), penalty=0.5)

# Normalization
for shape, attributes in (((4, 3, 2, 2), {}), ((4, 3), {}), ((2, 3, 4), {"momentum": 0.5, "eps": 0.01}), ((2, 3, 2, 2, 2), {}),
                          ((3, 2, 3), {"axis": -1}), ((2, 3, 2), {"use_global_stats": True}), ((1, 3, 1, 1), {}),
                          ((2, 3, 4), {"output_mean_var": True})):
    for fix_gamma in (True, False):
        for train in (True, False):
            add("BatchNorm", shape, (3,), (3,), (3,), ((3,), "+float32"), fix_gamma=fix_gamma, train=train, **attributes)
add("BatchNorm", ((4, 3, 2), "float64"), *[((3,), "float64")] * 3, ((3,), "+float64"), fix_gamma=False)
add("BatchNorm", ((4, 3, 2), "float16"), (3,), (3,), (3,), ((3,), "+float32"), fix_gamma=False)
for train in (True, False):
    add("BatchNorm_v1", (4, 3, 2, 2), (3,), (3,), (3,), ((3,), "+float32"), fix_gamma=False, output_mean_var=True, train=train)
    add("_contrib_SyncBatchNorm", (4, 3, 2, 2), (3,), (3,), (3,), ((3,), "+float32"), fix_gamma=False, key=f"sync{train}", train=train)
add("_contrib_BatchNormWithReLU", (4, 3, 2, 2), (3,), (3,), (3,), ((3,), "+float32"), fix_gamma=False)
for attributes, n in (({}, 4), ({"axis": 1, "eps": 0.1}, 3), ({"axis": 0}, 2), ({"output_mean_var": True}, 4)):
    add("LayerNorm", (2, 3, 4), (n,), (n,), **attributes)
for attributes in ({"num_groups": 1}, {"num_groups": 2, "eps": 0.1}, {"num_groups": 4, "output_mean_var": True}):
    add("GroupNorm", (2, 4, 3), *[(attributes["num_groups"],)] * 2, **attributes)
add("InstanceNorm", (2, 3, 4), (3,), (3,))
add("InstanceNorm", (2, 3, 2, 3), (3,), (3,), eps=0.1)
for mode in ("instance", "channel", "spatial"):
    add("L2Normalization", (2, 3, 2, 2), mode=mode, eps=0.1)
add("LRN", (1, 5, 2, 2), nsize=3)
add("LRN", (1, 6, 2, 2), nsize=5, alpha=0.5, beta=0.5, knorm=1.0)


# Recurrent layers
def packed(mode, inputs, size, layers, directions):
    gates, total = {"lstm": 4, "gru": 3}.get(mode, 1), 0
    for layer in range(layers):
        total += directions * gates * size * ((inputs if layer == 0 else size * directions) + size + 2)
    return total


for mode in ("rnn_relu", "rnn_tanh", "lstm", "gru"):
    for layers, both in ((1, False), (2, True)):
        directions = 1 + both
        state = (layers * directions, 2, 3)
        add("RNN", (4, 2, 2), (packed(mode, 2, 3, layers, directions),), *[state] * (2 if mode == "lstm" else 1), mode=mode, state_size=3,
            num_layers=layers, bidirectional=both, state_outputs=True)

# Connectionist temporal classification
first, last = [[2, 3, 0], [1, 2, 2], [4, 0, 0]], [[2, 3, -1], [1, 2, 2], [0, -1, -1]]
for dtype in ("float32", "int32"):
    add("CTCLoss", (6, 3, 5), (first, dtype))
    add("CTCLoss", (6, 3, 5), (last, dtype), blank_label="last")
add("CTCLoss", (6, 3, 5), (first, "float32"), ([4, 6, 3], "float32"), use_data_lengths=True)
add("CTCLoss", (6, 3, 5), (first, "float32"), ([2, 3, 1], "float32"), use_label_lengths=True)
add("CTCLoss", (6, 3, 5), (last, "float32"), ([4, 6, 3], "float32"), ([2, 3, 1], "float32"), use_data_lengths=True, use_label_lengths=True,
    blank_label="last")

# Attention and the rest
add("_contrib_div_sqrt_dim", (2, 3))
add("_contrib_interleaved_matmul_selfatt_qk", (3, 2, 12), heads=2)
add("_contrib_interleaved_matmul_selfatt_valatt", (3, 2, 12), (4, 3, 3), heads=2)
add("_contrib_interleaved_matmul_encdec_qk", (4, 2, 4), (3, 2, 8), heads=2)
add("_contrib_interleaved_matmul_encdec_valatt", (3, 2, 8), (4, 2, 3), heads=2)
add("_contrib_quadratic", (2, 3), a=1.0, b=2.0, c=3.0)
add("_contrib_round_ste", ([-1.5, -0.5, -0.2, 0, 0.5, 1.5, 2.5], "float32"))
add("_contrib_sign_ste", ([-1.5, 0, 2.5], "float32"))
add("_contrib_gradientmultiplier", (2, 3), scalar=-0.5)
