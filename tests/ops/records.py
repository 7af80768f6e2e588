"""One record per operator: sample inputs and attributes, and how exact the results are.

`test_records.py` runs every check of every operator from them, and `scripts/differential.py` makes its cases out of them. What the
comparisons with the oracle already hold (`array_cases.py`, `nn/oracle_cases.py`) are records, too. Only numpy is needed.
"""
import dataclasses
import pathlib
import struct
import sys
import zlib

import numpy as np

sys.path[:0] = [str(pathlib.Path(__file__).parent), str(pathlib.Path(__file__).parent / "nn")]
import array_cases  # noqa: E402
import oracle_cases  # noqa: E402

RECORDS: dict = {}  # operator -> samples


@dataclasses.dataclass
class Sample:
    """One call: `gradient` names the positions of the inputs with a gradient; None means every floating-point one."""

    inputs: list
    attributes: dict = dataclasses.field(default_factory=dict)
    gradient: tuple | None = None
    tolerance: float = 2e-5
    training: bool = True


EXEMPT = {
    "Custom": "runs what a program registers; tests/test_operator.py",
    "_foreach": "its attributes are subgraphs; tests/symbol", "_while_loop": "its attributes are subgraphs; tests/symbol",
    "_cond": "its attributes are subgraphs; tests/symbol", "_CachedOp": "it runs a subgraph; tests/symbol/test_fused.py",
    "_cvimread": "reads a file; tests/image", "cast_storage": "about sparse arrays; tests/ndarray",
    "_npi_mvn_fallback": "not MXNet's operator; tests/numpy/test_random.py",
    "_npi_resize_fallback": "not MXNet's operator; tests/numpy/functions/test_shape.py",
    "_sparse_retain": "about sparse arrays; tests/ndarray", "_imdecode": "never runs; tests/ops/test_image.py",
}

IMPERATIVE = {"_cvimdecode": "the size is in the file", "_zeros_without_dtype": "has no type of its own in a graph"}

# Where MXNet's gradient is not the derivative of the function, or there is none to compare.
GRADIENT_IS_NOT_THE_DERIVATIVE = {
    "BlockGrad": "stops it", "_contrib_gradientmultiplier": "is scaled", "_contrib_round_ste": "passes straight through",
    "_contrib_sign_ste": "passes straight through", "IdentityAttachKLSparseReg": "has the penalty's added",
    "_linalg_potrf": "is that of a symmetric matrix", "_linalg_syevd": "is that of a symmetric matrix", "_contrib_ROIAlign": "goes to the data only",
    "_npi_cholesky": "is that of a symmetric matrix", "_npi_eigh": "is that of a symmetric matrix", "_npi_eigvalsh": "is that of a symmetric matrix",
}

NO_DERIVATIVE_HERE = {
    "Correlation-3": "equal patches: the absolute value's kink", "Cast-1": "float16 rounds", "Pooling-1": "a window of padding alone is -inf",
    "softmax_cross_entropy-1": "saturated, where MXNet's gradient is still that of the softmax",
    "BatchNorm_v1-0": "what it returns besides, mean and variance, has no gradient in MXNet",
    "LayerNorm-3": "what it returns besides has no gradient in MXNet", "GroupNorm-2": "what it returns besides has no gradient in MXNet",
}

_random = np.random.RandomState(7)


def real(*shape, low=-1.5, high=1.5, dtype="float32"):
    """Different numbers, none of them near an integer or a half: no operator has a kink there."""
    count = int(np.prod(shape))
    values = low + (high - low) * (_random.permutation(count) + 0.37) / max(count, 1)
    return np.where(np.abs(values * 2 - np.round(values * 2)) < 0.05, values + 0.04, values).reshape(shape).astype(dtype)


def positive(*shape, low=0.3, high=2.6, dtype="float32"):
    return real(*shape, low=low, high=high, dtype=dtype)


def whole(high, *shape, low=0, dtype="float32"):
    return _random.randint(low, high, shape).astype(dtype)


def add(operator, *inputs, gradient=None, tolerance=2e-5, training=True, **attributes):
    RECORDS.setdefault(operator, []).append(Sample(list(inputs), attributes, gradient, tolerance, training))


for case in array_cases.CASES:
    add(case["operator"], *case["inputs"], gradient=case["grad"], tolerance=case["tolerance"], **case["attributes"])
for name, inputs, attributes, training in oracle_cases.CASES:
    add(name, *(oracle_cases.values(spec, i) for i, spec in enumerate(inputs)), training=training, **attributes)

# -- elementwise -------------------------------------------------------------------------------------------------------
for name in ("abs negative sign square cbrt rcbrt exp expm1 sin cos tan arctan sinh cosh tanh arcsinh degrees radians round rint floor ceil trunc "
             "fix relu sigmoid softsign erf logical_not _copy BlockGrad make_loss zeros_like ones_like reciprocal").split():
    add(name, real(2, 3))
for name in "sqrt rsqrt log log2 log10 log1p gamma gammaln".split():
    add(name, positive(2, 3))
for name in "arcsin arccos arctanh erfinv".split():
    add(name, real(2, 3, low=-0.9, high=0.9))
add("arccosh", positive(2, 3, low=1.1))
add("_identity_with_attr_like_rhs", real(2, 3), real(2, 3), gradient=(0,))
for dtype in ("float64", "float16", "int32"):
    add("Cast", real(2, 3), dtype=dtype)
add("amp_cast", real(2, 3), dtype="float16", tolerance=1e-3)
add("amp_multicast", real(2, 3), real(2, 3, dtype="float16"), num_outputs=2, tolerance=1e-3)
add("amp_multicast", real(2, 3), real(2, 3, dtype="float16"), num_outputs=2, cast_narrow=True, tolerance=1e-3)
add("clip", real(2, 3), a_min=-0.7, a_max=0.9)
add("smooth_l1", real(2, 3))
add("smooth_l1", real(2, 3), scalar=2.0)
for name in "add sub mul div".split():
    add(f"elemwise_{name}", real(2, 3), positive(2, 3))
    add(f"broadcast_{name}", real(2, 1, 3), positive(4, 1))
for name in "mod power hypot maximum minimum".split():
    add(f"_{name}", positive(2, 3), positive(2, 3, high=1.7))
    add(f"broadcast_{name}", positive(2, 1, 3), positive(4, 1, high=1.7))
for name in "equal not_equal greater greater_equal lesser lesser_equal logical_and logical_or logical_xor".split():
    add(f"_{name}", whole(3, 2, 3), whole(3, 2, 3))
    add(f"broadcast_{name}", whole(3, 2, 1, 3), whole(3, 4, 1))
    add(f"_{name}_scalar", whole(3, 2, 3), scalar=1.0)
add("_grad_add", real(2, 3), real(2, 3))
add("_scatter_elemwise_div", real(2, 3), positive(2, 3))
add("add_n", real(2, 3), real(2, 3), real(2, 3), num_args=3)
add("where", whole(2, 2, 3), real(2, 3), real(2, 3), gradient=(1, 2))
add("where", whole(2, 3), real(3, 2), real(3, 2), gradient=(1, 2))
add("_contrib_allclose", real(2, 3), real(2, 3))
for name in "plus minus rminus mul div rdiv mod rmod power rpower maximum minimum hypot".split():
    add(f"_{name}_scalar", positive(2, 3), scalar=1.3)
add("_scatter_plus_scalar", real(2, 3), scalar=1.3)
add("_scatter_minus_scalar", real(2, 3), scalar=1.3)

# -- reductions --------------------------------------------------------------------------------------------------------
for name in "sum mean prod nansum nanprod max min _square_sum".split():
    for attributes in ({}, {"axis": 1}, {"axis": (0, -1), "keepdims": True}, {"axis": 1, "exclude": True}):
        if name != "_square_sum" or "exclude" not in attributes:
            add(name, real(2, 3, 4), **attributes)
for attributes in ({}, {"axis": 1}, {"ord": 1, "axis": 0, "keepdims": True}, {"axis": (0, 1)}):
    add("norm", real(2, 3), **attributes)
for attributes in ({"axes": (0,)}, {"axes": (0, 2), "keepdims": True}):
    add("moments", real(2, 3, 4), **attributes)
for name in ("argmax", "argmin"):
    for attributes in ({}, {"axis": 1}, {"axis": -1, "keepdims": True}):
        add(name, real(2, 3, 4), **attributes)
add("argmax_channel", real(2, 3))

# -- arrays out of nothing ---------------------------------------------------------------------------------------------
add("_zeros", shape=(2, 3))
add("_ones", shape=(2, 3), dtype="int32")
add("_full", shape=(2, 3), value=1.5)
add("_set_value", src=2.5, shape=(2, 3))
add("_zeros_without_dtype", shape=(2, 3))
add("_eye", N=3, M=4, k=1)
add("_arange", start=1.0, stop=7.0, step=1.5)
add("_arange", start=4.0, repeat=2, dtype="int32")
add("_linspace", start=0.0, stop=1.0, num=5)
add("_contrib_arange_like", real(2, 3))
add("_contrib_arange_like", real(2, 3), axis=-1, start=2.0)

# -- indexing, images and the rest -------------------------------------------------------------------------------------
add("_backward_gather_nd", real(4, 2), np.array([[0, 1, 0, 2]], "float32"), shape=(3, 2))
add("_scatter_set_nd", real(3, 2), real(2, 2), np.array([[0, 2]], "float32"), shape=(3, 2), gradient=())
for name in ("_image_random_flip_left_right", "_image_random_flip_top_bottom", "_image_random_lighting"):
    add(name, positive(4, 5, 3), gradient=())
add("_image_random_color_jitter", positive(4, 5, 3), brightness=0.1, contrast=0.1, saturation=0.1, hue=0.1, gradient=())


def _picture():
    """A PNG file of 3 by 2 pixels."""
    def chunk(kind, content):
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))
    rows = b"".join(b"\0" + bytes(range(9 * y, 9 * y + 9)) for y in range(2))
    return np.frombuffer(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 3, 2, 8, 2, 0, 0, 0)) + chunk(b"IDAT", zlib.compress(rows))
                         + chunk(b"IEND", b""), "uint8")


add("_cvimdecode", _picture())
add("_contrib_count_sketch", real(2, 4), np.array([[0, 2, 1, 2]], "float32"), np.array([[1, -1, 1, -1]], "float32"), out_dim=3, gradient=(0,))
add("_contrib_fft", real(2, 4), gradient=())
add("_contrib_ifft", real(2, 8), gradient=())
add("_contrib_hawkesll", positive(2, 3), positive(3, high=0.9), positive(3), positive(2, 3), positive(2, 4), whole(3, 2, 4, dtype="int32"),
    np.array([4, 3], "float32"), np.array([12, 11], "float32"))
add("Dropout", real(3, 4), p=0.4)
add("Dropout", real(3, 4), p=0.4, training=False)
add("_contrib_backward_gradientmultiplier", real(2, 3), scalar=1.5)
add("_contrib_SparseEmbedding", np.array([1, 0, 3], "int32"), real(4, 2), input_dim=4, output_dim=2)
add("_contrib_ModulatedDeformableConvolution", real(1, 2, 5, 5), real(1, 18, 3, 3, low=-0.45, high=0.45), positive(1, 9, 3, 3, high=0.95),
    real(2, 2, 3, 3), real(2), kernel=(3, 3), num_filter=2, gradient=(0, 2, 3, 4), tolerance=1e-4)

# -- optimizers --------------------------------------------------------------------------------------------------------
_w = (2, 3)


def _half():
    return real(*_w, dtype="float16")


for name, states in {"sgd_update": 0, "sgd_mom_update": 1, "nag_mom_update": 1, "adam_update": 2, "rmsprop_update": 1, "ftrl_update": 2,
                     "ftml_update": 3, "signsgd_update": 0, "signum_update": 1, "_sparse_adagrad_update": 1}.items():
    for more in ({}, {"wd": 0.1, "rescale_grad": 0.5, ("clip_grad" if name == "ftml_update" else "clip_gradient"): 0.3}):
        if name != "_sparse_adagrad_update" or not more:
            add(name, real(*_w), real(*_w), *[positive(*_w) for _ in range(states)], lr=0.1, **more, **({"t": 2} if name == "ftml_update" else {}))
add("rmspropalex_update", real(*_w), real(*_w), positive(*_w, low=4.0, high=5.0), real(*_w), real(*_w), lr=0.1)
add("_contrib_group_adagrad_update", real(*_w), real(*_w), positive(2, 1), lr=0.1)
for name, states in {"mp_sgd_update": 0, "mp_sgd_mom_update": 1, "mp_nag_mom_update": 1}.items():
    add(name, _half(), _half(), *[real(*_w) for _ in range(states)], real(*_w), lr=0.1, tolerance=1e-3)
_one = np.array([1.0], "float32")
add("_adamw_update", real(*_w), real(*_w), positive(*_w), positive(*_w), _one, lr=0.1, eta=1.0)
add("_mp_adamw_update", _half(), _half(), positive(*_w), positive(*_w), real(*_w), _one, lr=0.1, eta=1.0, tolerance=1e-3)
add("lamb_update_phase1", real(*_w), real(*_w), positive(*_w), positive(*_w), t=2, wd=0.1)
add("lamb_update_phase2", real(*_w), real(*_w), _one, 2 * _one, lr=0.1)
add("mp_lamb_update_phase1", _half(), _half(), positive(*_w), positive(*_w), real(*_w), t=2, wd=0.1, tolerance=1e-3)
add("mp_lamb_update_phase2", _half(), real(*_w), _one, 2 * _one, real(*_w), lr=0.1, tolerance=1e-3)
for low, states, attributes in (
        ("multi_sgd_update", 0, {}), ("multi_sgd_mom_update", 1, {}), ("multi_mp_sgd_update", 0, {}), ("multi_mp_sgd_mom_update", 1, {}),
        ("_multi_adamw_update", 2, {"etas": (1.0, 0.5)}), ("_multi_mp_adamw_update", 2, {"etas": (1.0, 0.5)}),
        ("_multi_lamb_update", 2, {"step_count": (1, 2)}), ("_multi_mp_lamb_update", 2, {"step_count": (1, 2)})):
    half = "_mp_" in low
    kind = "float16" if half else "float32"
    tensors = [t for _ in range(2) for t in (real(*_w, dtype=kind), real(*_w, dtype=kind), *[positive(*_w) for _ in range(states)],
                                             *([real(*_w)] if half else []))]
    if "adamw" in low:
        tensors.append(_one)
    lamb = "lamb" in low
    rates = {"learning_rates" if lamb else "lrs": (0.1, 0.2), "wds": (0.0, 0.1), "num_tensors" if lamb else "num_weights": 2}
    add(low, *tensors, **rates, **attributes, tolerance=1e-3 if half else 2e-5)
    if "sgd" in low:
        tensors += [np.array([0.1, 0.2], "float32"), np.array([0.0, 0.1], "float32")]
        add(f"preloaded_{low}", *tensors, num_weights=2, tolerance=1e-3 if half else 2e-5)
add("multi_sum_sq", real(2, 3), real(4), num_arrays=2)
add("multi_lars", positive(3), positive(3), positive(3), positive(3), eta=0.1, eps=1e-6)
add("all_finite", real(2, 3))
add("all_finite", np.array([1, np.inf], "float32"))
add("multi_all_finite", real(2, 3), np.array([np.nan], "float32"), num_arrays=2)
add("reset_arrays", real(2, 3), real(4), num_arrays=2)

# -- random numbers: the same seed gives the same numbers everywhere ---------------------------------------------------
for name, attributes in {"uniform": {"low": -1.0, "high": 2.0}, "normal": {"loc": 1.0, "scale": 2.0}, "gamma": {"alpha": 2.0, "beta": 0.5},
                         "exponential": {"lam": 2.0}, "poisson": {"lam": 3.0}, "negative_binomial": {"k": 3, "p": 0.4},
                         "generalized_negative_binomial": {"mu": 2.0, "alpha": 0.3}}.items():
    add(f"_random_{name}", shape=(3, 4), **attributes)
    add(f"_random_{name}_like", real(3, 4), **attributes, gradient=())
    parameters = [np.array([v, v], "float32") for v in attributes.values()]
    add(f"_sample_{name}", *parameters, shape=(3,), gradient=())
add("_random_randint", low=-3, high=9, shape=(3, 4))
add("_sample_multinomial", np.array([[0.2, 0.3, 0.5], [0.9, 0.05, 0.05]], "float32"), shape=(4,), gradient=())
add("_sample_multinomial", np.array([[0.2, 0.3, 0.5], [0.9, 0.05, 0.05]], "float32"), shape=(4,), get_prob=True, gradient=())
add("_sample_unique_zipfian", range_max=50, shape=(2, 6))
add("_shuffle", real(4, 2))
for is_log in (False, True):
    add("_random_pdf_uniform", real(2, 4, low=0.1, high=0.9), np.array([0, -1], "float32"), np.array([1, 2], "float32"), is_log=is_log)
    add("_random_pdf_normal", real(2, 4), real(2), positive(2), is_log=is_log)
    add("_random_pdf_gamma", positive(2, 4), positive(2), positive(2), is_log=is_log, tolerance=1e-4)
    add("_random_pdf_exponential", positive(2, 4), positive(2), is_log=is_log)
    add("_random_pdf_poisson", whole(5, 2, 4), positive(2), is_log=is_log, gradient=(1,))
    for name in ("negative_binomial", "generalized_negative_binomial"):
        add(f"_random_pdf_{name}", whole(5, 2, 4), positive(2, low=1.2), positive(2, high=0.8), is_log=is_log, gradient=(1, 2), tolerance=1e-4)
    add("_random_pdf_dirichlet", np.array([[[0.2, 0.3, 0.5], [0.6, 0.3, 0.1]]], "float32"), positive(1, 3), is_log=is_log, tolerance=1e-4)

import numpy_records  # noqa: E402, F401  adds those of the NumPy operators

add("digamma", positive(2, 3))  # last: all records draw their inputs from one generator
add("_contrib_cumprod", real(3, 4), axis=1)
add("_contrib_cumprod", whole(5, 2, 3), axis=0, gradient=())
for reduction in ("none", "add", "mul", "max", "min"):
    add("_contrib_scatter_reduce", real(3, 4), np.array([[2, 0, 1, -1]]), real(1, 4), axis=0, reduction=reduction)
add("_contrib_bit_shift", np.array([16, -8, 5], "int32"), np.array([1, 40, -1], "int32"), direction="LEFT")
add("_contrib_bit_shift", np.array([[16], [8]], "uint8"), np.array([1, 9], "uint8"), direction="RIGHT")
add("_contrib_bitcast", real(2, 3), dtype="int32")
for mode in ("linear", "cubic", "nearest"):
    add("_contrib_grid_sample", real(2, 2, 4, 5), real(2, 3, 3, 2, low=-0.9, high=0.9), mode=mode, gradient=(0,))
add("_contrib_grid_sample", real(1, 2, 3, 4, 5), real(1, 2, 2, 3, 3), padding_mode="border", align_corners=True, gradient=(0,))
