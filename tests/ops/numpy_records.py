"""Records of the NumPy operators (``_np_*``, ``_npi_*``, ``_npx_*``); `records` imports this file last. Only numpy is needed.

Operators that are a classic one under another name (``_npi_take``) have that one's record.
"""
import numpy as np
from records import add, positive, real, whole

HALF = 5e-3  # tolerance of float16


def integers(*values, dtype="int32"):
    return np.array(values, dtype)


def flags(*shape):
    return whole(2, *shape).astype(bool)


# -- elementwise -------------------------------------------------------------------------------------------------------
for name in "abs negative sign square cbrt exp expm1 sin cos tan arctan sinh cosh tanh arcsinh degrees radians rint floor ceil trunc fix".split():
    add(f"_npi_{name}", real(2, 3))
    add(f"_npi_{name}", real())
    add(f"_npi_{name}", integers([-2, 0, 3]))
for name in "sqrt log log2 log10 log1p reciprocal".split():
    add(f"_npi_{name}", positive(2, 3))
    add(f"_npi_{name}", positive(0, 3))
    add(f"_npi_{name}", integers([1, 2, 9]))
for name in "arcsin arccos arctanh".split():
    add(f"_npi_{name}", real(2, 3, low=-0.9, high=0.9))
    add(f"_npi_{name}", real(low=-0.9, high=0.9, dtype="float64"))
add("_npi_arccosh", positive(2, 3, low=1.1))
add("_npi_arccosh", positive(0, low=1.1))
for name in "isnan isinf isfinite isposinf isneginf".split():
    add(f"_npi_{name}", np.array([[0.5, np.nan], [np.inf, -np.inf]], "float32"))
    add(f"_npi_{name}", integers(1, 0))
    add(f"_npi_{name}", np.array(np.inf, "float64"))
add("_npi_logical_not", whole(2, 2, 3))
add("_npi_logical_not", flags(3))
add("_npi_bitwise_not", integers([0, -5, 7]))
add("_npi_bitwise_not", flags(3))
add("_np_copy", real(2, 3))
add("_np_copy", real(0, 2))
add("_npi_around", real(2, 3))
add("_npi_around", real(2, 3), decimals=1)
add("_npi_around", integers(14, -27), decimals=-1)
add("_npi_nan_to_num", np.array([[0.5, np.nan], [np.inf, -np.inf]], "float32"), gradient=())
add("_npi_nan_to_num", np.array([np.nan, np.inf, -np.inf, 2], "float64"), nan=1.5, posinf=7.0, neginf=-7.0, gradient=())
add("_npi_nan_to_num", real(2, 3))
for name in ("relu", "sigmoid"):
    add(f"_npx_{name}", real(2, 3))
    add(f"_npx_{name}", real())
add("_npx_constraint_check", flags(2) | True)
add("_npx_constraint_check", np.array(True), msg="never")

for name in "add subtract multiply true_divide power mod copysign arctan2 hypot ldexp".split():
    add(f"_npi_{name}", positive(2, 1, 3), positive(4, 1, high=1.7))
    add(f"_npi_{name}", positive(), positive(2, 3, high=1.7))
    add(f"_npi_{name}", positive(0, 3), positive(3))
for name in "add subtract multiply true_divide power mod".split():
    add(f"_npi_{name}", positive(2, 3), integers([1, 2, 1]))
    add(f"_npi_{name}", integers([7, 3, 2]), positive(2, 3, dtype="float64"))
    add(f"_npi_{name}", integers([7, 5, 2]), integers([3], [2]))
    if name != "true_divide":  # MXNet's division refuses floating-point types that differ
        add(f"_npi_{name}", positive(2, 3, dtype="float16"), positive(3), tolerance=HALF)
for name in "equal not_equal greater greater_equal less less_equal".split():
    add(f"_npi_{name}", whole(3, 2, 1, 3), whole(3, 4, 1))
    add(f"_npi_{name}", whole(3, 3, dtype="int32"), integers(1).reshape(()))
    add(f"_npi_{name}", whole(3, 0, 3), whole(3, 3))
    add(f"_npi_{name}_scalar", whole(3, 2, 3), scalar=1.0, is_int=False)
    add(f"_npi_{name}_scalar", whole(3, 3, dtype="int32"), scalar=1, is_int=True)
for name in "bitwise_and bitwise_or bitwise_xor lcm".split():
    add(f"_npi_{name}", whole(9, 2, 1, 3, dtype="int32"), whole(9, 4, 1, dtype="int32"))
    add(f"_npi_{name}", whole(9, 2, 3, dtype="int64"), integers(6, dtype="int64").reshape(()))
    add(f"_npi_{name}_scalar", whole(9, 2, 3, dtype="int32"), scalar=6)
    if name != "lcm":
        add(f"_npi_{name}", flags(2, 3), flags(3))
for name in "add subtract rsubtract multiply true_divide rtrue_divide mod rmod power rpower copysign rcopysign arctan2 rarctan2 ldexp rldexp".split():
    add(f"_npi_{name}_scalar", positive(2, 3), scalar=1.3, is_int=False)
    add(f"_npi_{name}_scalar", positive(), scalar=2, is_int=True)
    add(f"_npi_{name}_scalar", integers(7, 5, 2), scalar=3, is_int=True)
    add(f"_npi_{name}_scalar", integers(7, 5, 2), scalar=1.5, is_int=False)
    add(f"_npi_{name}_scalar", positive(0, 3), scalar=1.3, is_int=False)

# -- reductions --------------------------------------------------------------------------------------------------------
for name in "_np_sum _np_prod _np_max _np_min _npi_mean _npi_std _npi_var".split():
    for attributes in ({}, {"axis": -2}, {"axis": (0, -1), "keepdims": True}):
        add(name, real(2, 3, 4), **attributes)
    add(name, real())
    if name not in ("_npi_std", "_npi_var"):  # of nothing, there is none
        add(name, real(0, 3), axis=1)
    add(name, integers([3, -1], [2, 5]), axis=0)
for name in "_np_sum _np_prod _npi_mean _npi_std _npi_var".split():
    add(name, integers([3, 1], [2, 5]), dtype="float64")
for name in ("_np_sum", "_np_prod"):
    add(name, integers([3, 1], [2, 5], dtype="int8"), axis=1)
    add(name, real(0, 3), axis=0)
add("_np_sum", flags(2, 3))
add("_npi_std", real(2, 3), ddof=1, axis=1)
add("_npi_var", real(2, 3), ddof=1, keepdims=True)
for name in ("_np_all", "_np_any"):
    add(name, whole(2, 2, 3))
    add(name, flags(2, 3), axis=-1)
    add(name, integers([0, 2]), axis=0, keepdims=True)
    add(name, whole(2, 0, 3), axis=0)
for name in ("_npi_argmax", "_npi_argmin"):
    add(name, real(2, 3))
    add(name, real(2, 3), axis=-1)
    add(name, whole(9, 2, 3, dtype="int32"), axis=0, keepdims=True)
add("_npi_average", real(2, 3), positive(2, 3))
add("_npi_average", real(2, 3), positive(3), axis=1)
add("_npi_average", real(2, 3), axis=-1, weighted=False)
add("_npi_average", real(2, 3), positive(2), axis=0, returned=True)
add("_npi_norm", real(2, 3), gradient=(0,))
add("_npi_percentile", real(2, 3), np.array([10.0, 80.0], "float32"))
add("_npi_percentile", real(2, 3), axis=-1, q_scalar=30.0, keepdims=True)
add("_npi_percentile", whole(9, 4, dtype="int32"), q_scalar=50.0, interpolation="lower")
add("_npi_polyval", real(3), real(2, 2))
add("_npi_polyval", real(4), real())
add("_npi_polyval", integers(1, 2), integers(3, 0))

# -- arrays out of nothing ---------------------------------------------------------------------------------------------
for name in ("zeros", "ones"):
    add(f"_npi_{name}", shape=(2, 3))
    add(f"_npi_{name}", shape=(), dtype="float64")
    add(f"_npi_{name}", shape=(0, 2), dtype="int32")
add("_npi_identity", shape=(3, 3))
add("_npi_identity", shape=(2, 2), dtype="int64")
add("_npi_eye", N=3, M=4, k=-1)
add("_npi_eye", N=2, dtype="int32")
add("_npi_arange", start=1.0, stop=7.0, step=2.0)
add("_npi_arange", start=3, dtype="int64")
add("_npi_arange", start=5, stop=2, step=-0.5, dtype="float64")
add("_npi_logspace", start=0.0, stop=2.0, num=5)
add("_npi_logspace", start=0.0, stop=2.0, num=4, endpoint=False, base=2.0, dtype="float64")
for name in "blackman hamming hanning".split():
    add(f"_npi_{name}", M=5)
    add(f"_npi_{name}", M=1, dtype="float64")
    add(f"_npi_{name}", M=0)
add("_npi_indices", dimensions=(2, 3))
add("_npi_indices", dimensions=(4,), dtype="float32")
add("_npi_full_like", real(2, 3), fill_value=1.5)
add("_npi_full_like", real(), fill_value=2, dtype="int32")

# -- shapes ------------------------------------------------------------------------------------------------------------
for n in (1, 2, 3):
    add(f"_np_atleast_{n}d", real(), real(2), num_args=2)
    add(f"_np_atleast_{n}d", real(2, 3), num_args=1)
    add(f"_np_atleast_{n}d", real(0), real(1, 2, 3, 4), num_args=2)
add("_np_diag", real(3))
add("_np_diag", real(3, 4), k=1)
add("_np_diag", real(2), k=-1)
add("_np_diagflat", real(2, 2))
add("_np_diagflat", real(3), k=-2)
add("_np_diagonal", real(3, 4))
add("_np_diagonal", real(2, 3, 4), offset=1, axis1=-1, axis2=0)
add("_np_trace", real(3, 4))
add("_np_trace", real(2, 3, 4), offset=-1, axis1=1, axis2=-1)
add("_np_trace", integers([1, 2], [3, 4]))
add("_np_moveaxis", real(2, 3, 4), source=(0,), destination=(-1,))
add("_np_moveaxis", real(2, 3, 4), source=(0, 1), destination=(-1, -2))
for prefix in ("_np_", "_npx_"):
    add(f"{prefix}reshape", real(2, 3, 4), newshape=(4, -1))
    add(f"{prefix}reshape", real(1, 1), newshape=())
    add(f"{prefix}reshape", real(0, 3), newshape=(3, 0))
add("_npx_reshape", real(2, 3, 4), newshape=(-2, -5))
add("_npx_reshape", real(2, 3, 4), newshape=(-6, 1, 2, -4))
add("_np_roll", real(2, 3), shift=(1,))
add("_np_roll", real(2, 3), shift=(-1, 2), axis=(0, 1))
add("_np_roll", real(0, 3), shift=(1,))
add("_np_squeeze", real(1, 3, 1))
add("_np_squeeze", real(1, 3, 1), axis=-1)
add("_np_transpose", real(2, 3, 4))
add("_np_transpose", real(2, 3, 4), axes=(1, -1, 0))
add("_np_transpose", real())
add("_npi_broadcast_to", real(3), shape=(2, 3))
add("_npi_broadcast_to", real(), shape=(2,))
add("_npi_broadcast_to", real(1, 3), shape=(0, 3))
add("_npi_diff", real(2, 4))
add("_npi_diff", real(4, 3), n=2, axis=0)
add("_npi_diff", integers(1, 4, 9), n=1)
add("_npi_ediff1d", real(2, 3))
add("_npi_ediff1d", real(4), to_begin_scalar=-1.5, to_end_scalar=9.0)
add("_npi_ediff1d", real(4), real(2), real(1), to_begin_arr_given=True, to_end_arr_given=True)
add("_npi_flip", real(2, 3), axis=(0,))
add("_npi_flip", real(2, 3), axis=(1,))  # MXNet refuses negative axes here
add("_npi_flip", real(2, 3, 2), axis=(0, 2))
add("_npi_rot90", real(2, 3), axes=(0, 1))
add("_npi_rot90", real(2, 3, 2), k=3, axes=(0, -1))
add("_npi_tril", real(3, 4))
add("_npi_tril", real(2, 3, 3), k=-1)
add("_npi_tril", real(3), k=1)
for mode in "constant edge reflect symmetric maximum minimum".split():
    add("_npi_pad", real(3, 4), pad_width=((1, 2), (0, 1)), mode=mode)
add("_npi_pad", real(3), pad_width=((2, 1),), constant_value=1.5)

# -- joining and splitting ---------------------------------------------------------------------------------------------
add("_npi_concatenate", real(2, 3), real(1, 3), num_args=2, axis=0)
add("_npi_concatenate", real(2, 3), real(2, 0), num_args=2, axis=-1)
add("_npi_column_stack", real(3), real(3, 2), num_args=2)
add("_npi_column_stack", real(), real(), num_args=2)
add("_npi_dstack", real(2, 3), real(2, 3), num_args=2)
add("_npi_dstack", real(2), real(2), num_args=2)
add("_npi_hstack", real(2, 1), real(2, 3), num_args=2)
add("_npi_hstack", real(2), real(3), num_args=2)
add("_npi_vstack", real(3), real(2, 3), num_args=2)
add("_npi_vstack", real(), real(), num_args=2)
add("_npi_hsplit", real(2, 4), indices=(), axis=1, sections=2)
add("_npi_hsplit", real(4), indices=(0, 1, 3), axis=0)
add("_npi_dsplit", real(2, 2, 4), indices=(), axis=2, sections=4)
add("_npi_dsplit", real(2, 2, 4), indices=(0, 1), axis=2)

# -- finding, inserting, deleting --------------------------------------------------------------------------------------
add("_npx_nonzero", whole(2, 2, 3))
add("_npx_nonzero", flags(3))
add("_npx_nonzero", whole(2, 0, 3))
add("_npi_unique", whole(4, 2, 3))
add("_npi_unique", whole(4, 7, dtype="int32"), return_index=True, return_inverse=True, return_counts=True)
add("_npi_unique", whole(2, 4, 2), axis=0, return_counts=True)
add("_npi_bincount", integers(1, 3, 1))
add("_npi_bincount", integers(1, 3, 1), real(3), has_weights=True, minlength=6, gradient=())
add("_npi_bincount", integers(2, 0, dtype="int64"), minlength=1)
add("_npi_where", flags(2, 1), real(2, 3), real(3))
add("_npi_where", integers(0, 2), real(2), real())
add("_npi_where", whole(2, 0, 3), real(3), real(3), gradient=(1, 2))
for name in "lr":
    add(f"_npi_where_{name}scalar", flags(2, 1), real(2, 3), scalar=1.5)
    add(f"_npi_where_{name}scalar", integers(0, 2), real(2), scalar=-2.0)
add("_npi_where_scalar2", flags(2, 3), x=1.5, y=-2.0)
add("_npi_where_scalar2", whole(2, 3), x=1.0, y=0.0)
add("_npi_boolean_mask_assign_scalar", real(2, 3), np.array([True, False]), value=1.5)
add("_npi_boolean_mask_assign_scalar", real(2, 3), np.array([True, False, True]), value=-1.0, start_axis=1)
add("_npi_boolean_mask_assign_tensor", real(2, 3), np.array([True, False]), real(1, 3), gradient=())
add("_npi_boolean_mask_assign_tensor", real(3), np.array([True, False, True]), real(2), gradient=())
add("_npi_delete", real(2, 4), int_ind=-2, axis=1)
add("_npi_delete", real(2, 4), start=0, stop=6, step=3)
add("_npi_delete", real(4), integers(0, 2, dtype="int64"), axis=0, gradient=(0,))
add("_npi_insert_scalar", real(2, 3), real(2), int_ind=1, axis=1)
add("_npi_insert_scalar", real(2, 3), int_ind=-1, val=1.5)
add("_npi_insert_slice", real(4), real(2), start=0, stop=4, step=2, axis=0)
add("_npi_insert_slice", real(2, 3), start=0, stop=2, val=2.0, axis=-1)
add("_npi_insert_tensor", real(4), real(2), integers(1, 3, dtype="int64"), axis=0, gradient=(0, 1))
add("_npi_insert_tensor", real(2, 3), integers(0, 2, dtype="int64"), val=2.0, axis=1, gradient=(0,))
add("_npi_diag_indices_from", real(3, 3))
add("_npi_diag_indices_from", real(2, 2, 2))
add("_npi_share_memory", real(2, 3), real(2, 3))

# -- linear algebra ----------------------------------------------------------------------------------------------------
def _regular(*batch, n=3, dtype="float32"):
    return (real(*batch, n, n) + 4 * np.eye(n)).astype(dtype)


def _symmetric(*batch, n=3):
    a = real(*batch, n, n)
    return (a + np.swapaxes(a, -1, -2) + np.diag(np.arange(n) * 3.0 + 5)).astype("float32")


for a, b in (((2, 3), (3, 4)), ((3,), (3,)), ((2, 2, 3), (3,)), ((), (2, 3)), ((2, 0), (0, 3)), ((2, 3), (2, 3, 4))):
    add("_np_dot", real(*a), real(*b))
for a, b in (((2, 3), (3, 4)), ((3,), (2, 3, 4)), ((2, 1, 2, 3), (4, 3, 2)), ((0, 3), (3, 2))):
    add("_npi_matmul", real(*a), real(*b))
add("_npi_tensordot", real(2, 3, 4), real(4, 3), a_axes_summed=(1, 2), b_axes_summed=(1, 0))
add("_npi_tensordot", real(2, 3), real(3), a_axes_summed=(-1,), b_axes_summed=(0,))
add("_npi_tensordot_int_axes", real(2, 3), real(3, 4), axes=1)
add("_npi_tensordot_int_axes", real(2), real(3), axes=0)
add("_npi_tensordot_int_axes", real(2, 3), real(2, 3), axes=2)
add("_npi_einsum", real(2, 3), real(3, 4), num_args=2, subscripts="ij,jk->ik")
add("_npi_einsum", real(3, 3), num_args=1, subscripts="ii")
add("_npi_einsum", real(2, 3), real(3, 4), real(4), num_args=3, subscripts="ij,jk,k", optimize=1)
add("_npi_cholesky", _symmetric())
add("_npi_cholesky", _symmetric(2))
add("_npi_solve", _regular(), real(3, 2))
add("_npi_solve", _regular(2), real(2, 3, 1))
add("_npi_solve", _regular(), real(3))
add("_npi_tensorinv", real(4, 2, 2) + np.eye(4, dtype="float32").reshape(4, 2, 2) * 4, ind=1, tolerance=1e-4)
add("_npi_tensorinv", (np.eye(4) * 4 + real(4, 4)).reshape(2, 2, 4).astype("float32"), ind=2, tolerance=1e-4)
add("_npi_tensorsolve", (np.eye(4) * 4 + real(4, 4)).reshape(2, 2, 4).astype("float32"), real(2, 2), tolerance=1e-4)
add("_npi_pinv_scalar_rcond", real(3, 2), rcond=1e-5, gradient=(), tolerance=1e-4)
add("_npi_pinv_scalar_rcond", _symmetric(), hermitian=True, rcond=1e-5, gradient=(), tolerance=1e-4)
add("_npi_pinv", real(2, 3, 2), np.array([1e-5, 1e-5], "float32"), gradient=(), tolerance=1e-4)
add("_npi_svd", real(2, 3), tolerance=1e-4)
add("_npi_svd", real(2, 2, 3), tolerance=1e-4)
for name in ("eig", "eigvals"):
    add(f"_npi_{name}", _symmetric(), tolerance=1e-4)
    add(f"_npi_{name}", np.array([[2, 1], [0, 5]], "float64"), tolerance=1e-4)
for name in ("eigh", "eigvalsh"):
    add(f"_npi_{name}", _symmetric(), tolerance=1e-4)
    add(f"_npi_{name}", _symmetric(2), UPLO="U", tolerance=1e-4)

# -- random numbers: the same seed gives the same numbers everywhere ---------------------------------------------------
for name, parameters in {"normal": {"loc": 1.0, "scale": 2.0}, "laplace": {"loc": 1.0, "scale": 2.0},
                         "uniform": {"low": -1.0, "high": 2.0}, "gamma": {"shape": 2.0, "scale": 0.5},
                         "gumbel": {"loc": 1.0, "scale": 2.0}, "logistic": {"loc": 1.0, "scale": 2.0}, "exponential": {"scale": 2.0},
                         "rayleigh": {"scale": 2.0}, "pareto": {"a": 3.0}, "powerd": {"a": 3.0}, "weibull": {"a": 3.0},
                         "normal_n": {"loc": 1.0, "scale": 2.0}, "uniform_n": {"low": -1.0, "high": 2.0}}.items():
    add(f"_npi_{name}", size=(3, 4), **parameters)
    add(f"_npi_{name}", **parameters)
    arrays = [np.array([v, v + 1], "float32") for v in parameters.values()]
    # MXNet's gradient goes only to some of the parameters.
    add(f"_npi_{name}", *arrays, size=(3,) if name.endswith("_n") else (3, 2), gradient=(), **dict.fromkeys(parameters))
add("_npi_bernoulli", size=(3, 4), prob=0.3, logit=None, is_logit=False)
add("_npi_bernoulli", size=(3, 4), logit=0.3, is_logit=True, prob=None, dtype="int32")
add("_npi_bernoulli", np.array([0.2, 0.9], "float32"), size=(3, 2), prob=None, logit=None, is_logit=False, gradient=())
add("_npi_choice", a=9, size=(2, 3))
add("_npi_choice", a=9, size=(4,), replace=False)
add("_npi_choice", np.array([0.2, 0.3, 0.5], "float32"), a=3, size=(4,), weighted=True, gradient=())
add("_npi_multinomial", n=9, pvals=(0.2, 0.3, 0.5))
add("_npi_multinomial", n=9, pvals=(0.2, 0.3, 0.5), size=(2,))

# MXNet 2's.
add("_npx__random_multinomial", np.array([4, 0], "float32"), np.array([[0.2, 0.3, 0.5], [1, 0, 0]], "float32"), shape=(2,), gradient=())
for name in ("masked_softmax", "masked_log_softmax"):
    _finite = (0,) if name == "masked_softmax" else ()  # the logarithm of 0 has no differences
    add(name, real(2, 3, 4), np.array([[True, False, True, True]] * 3), gradient=_finite)
    add(name, real(2, 3), np.array([[True], [False]]), gradient=_finite, axis=0, temperature=2.0)
add("_contrib_group_norm", real(2, 4, 3), real(4), real(4), num_groups=2, tolerance=1e-4)
for name in ("gelu_erf", "gelu_tanh"):
    add("LeakyReLU", real(2, 3), act_type=name)
# -- what MXNet 2.0 added ----------------------------------------------------------------------------------------------
for name in "floor_divide fmod fmax fmin logaddexp".split():
    add(f"_npi_{name}", real(2, 3), positive(3))
    add(f"_npi_{name}_scalar", real(2, 3), scalar=2.0)
    add(f"_npi_{name}", integers([-7, 3]), integers([[2], [-2]]))
for name in "rfloor_divide rfmod".split():
    add(f"_npi_{name}_scalar", positive(2, 3), scalar=7.0)
for name in "and or xor".split():
    add(f"_npi_logical_{name}", whole(2, 2, 3), flags(3))
    add(f"_npi_logical_{name}_scalar", whole(2, 3), scalar=1.0)
add("_npi_gcd", integers([12, -7, 0]), integers([[18], [21]]))
add("_npi_gcd_scalar", integers([12, -7, 0]), scalar=18.0)
for name in "left right".split():
    add(f"_npi_bitwise_{name}_shift", integers([12, -7, 1]), integers([[0], [3]]))
    add(f"_npi_bitwise_{name}_shift_scalar", integers([12, -7, 1]), scalar=2.0)
    add(f"_npi_rbitwise_{name}_shift_scalar", integers([0, 3, 1]), scalar=5.0)
add("_npi_triu", real(2, 3, 3), k=1)
add("_npi_triu", real(3))
add("_npi_tri", N=3, M=4, k=-1, dtype="int32")
add("_npi_tri", N=2)
add("_npi_kron", real(2, 3), real(3, 2))
add("_npi_kron", real(2), real(2, 2))
add("_npi_cross", real(2, 3), real(2, 3))
add("_npi_cross", real(3, 2), real(2), a_axis=0)
add("_npi_cross", real(4, 2), real(4, 2))
add("_npi_cumprod", positive(2, 3), axis=1)
add("_npi_cumprod", positive(2, 3))
add("_npx_index_add", real(3, 4), integers([0, 2, 0], dtype="int64"), real(3, 4))
add("_npx_index_update", real(3, 4), integers([0, 2], [1, 3], dtype="int64"), real(2))
add("_contrib_sldwin_atten_score", real(2, 5, 2, 3), real(2, 5, 2, 3), integers(1, 2), w=2)
add("_contrib_sldwin_atten_score", real(1, 4, 2, 3), real(1, 4, 2, 3), integers(1, 1), w=1, symmetric=False)
add("_contrib_sldwin_atten_mask_like", real(2, 5, 2, 5), integers(1, 2), integers(5, 3), w=2)
add("_contrib_sldwin_atten_context", real(2, 5, 2, 5), real(2, 5, 2, 3), integers(1, 2), w=2)
add("_npx_quantized_reshape", integers(1, -2, 3, 4, dtype="int8"), real(1), real(1), newshape=(2, -1))
add("_npx_quantized_transpose", integers([1, -2, 3], dtype="int8"), real(1), real(1))
