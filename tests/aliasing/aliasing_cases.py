"""Calls whose results may share memory with their inputs or with one another, and how that is seen: by writing to one and reading the others.

Remex (`test_aliasing.py`) and MXNet 1.9.1 (`record_aliasing.py`) run them. Only numpy and an `mxnet` are needed. This file has the operators: the
samples of `records.py`, and more that leave an array as it is. `aliasing_calls` has functions and methods, `aliasing_programs` and `aliasing_data`
have programs.
"""
import contextlib
import functools
import json
import pathlib
import sys

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "ops"))
from records import RECORDS, Sample  # noqa: E402

import mxnet as mx  # noqa: E402


# -- how sharing is seen -----------------------------------------------------------------------------------------------
def other(values):
    """Values of the same type, each different from the one given."""
    return ~values if values.dtype == bool else np.where(values == 50, 51, 50).astype(values.dtype)


def sequence(*shape, dtype="float32"):
    return (np.arange(int(np.prod(shape))) + 1).reshape(shape).astype(dtype)


def is_dense(array):
    return isinstance(array, mx.nd.NDArray) and array.stype == "default"


def write(array, key, values):
    array[key if array.ndim else ()] = values


def relations(arrays):
    """Return what a write to one of the arrays changes besides, as a sorted list of texts.

    ``a=b``: each shows what is written to the other; ``a>b``: `b` shows what is written to `a`; ``a*``: a write to one element changes others.

    Parameters
    ----------
    arrays : dict of str to NDArray
    """
    arrays = {name: a for name, a in arrays.items() if is_dense(a) and a.size}
    found, texts = set(), []
    now = {name: a.asnumpy() for name, a in arrays.items()}
    for name, array in arrays.items():
        if array.size > 1:
            first = (slice(0, 1),) * array.ndim
            write(array, first, other(now[name])[first])
            changed = array.asnumpy() != now[name]
            if np.sum(changed & ~(np.isnan(now[name]) if now[name].dtype.kind == "f" else False)) > 1:
                texts.append(f"{name}*")
        write(array, slice(None), other(now[name]))
        after = {n: a.asnumpy() for n, a in arrays.items()}
        found |= {(name, n) for n in arrays if n != name and not same(now[n], after[n])}
        now = after
    for a, b in found:
        if (b, a) not in found:
            texts.append(f"{a}>{b}")
        elif a < b:
            texts.append(f"{a}={b}")
    return sorted(texts)


def same(first, second):
    """Return whether two arrays hold the same values, NaN included."""
    return np.array_equal(first, second, equal_nan=first.dtype.kind == "f")


def named(prefix, arrays):
    return {f"{prefix}{i}": a for i, a in enumerate(arrays)}


def flat(result):
    """The arrays in a result."""
    if isinstance(result, mx.nd.NDArray):
        return [result]
    if isinstance(result, dict):
        result = list(result.values())
    return [a for r in result for a in flat(r)] if isinstance(result, (list, tuple)) else []


# -- programs ----------------------------------------------------------------------------------------------------------
PROGRAMS = {}  # each returns its arrays by name; `aliasing_programs` and `aliasing_data` fill it


def program(function):
    """Register a function that returns arrays by name."""
    PROGRAMS[function.__name__] = function
    return function


def several(cases):
    """Register a program for each case: the decorated function gets the case."""
    def register(function):
        for name, case in cases.items():
            PROGRAMS[f"{function.__name__}: {name}"] = functools.partial(function, case)
        return function
    return register


def array(*shape, dtype="float32"):
    return mx.nd.array(sequence(*shape, dtype=dtype), dtype=dtype)


def run(name):
    """The relations of the arrays in a program."""
    arrays = PROGRAMS[name]()
    mx.nd.waitall()
    with mx.util.np_shape(True), mx.util.np_array(any(isinstance(a, mx.np.ndarray) for a in arrays.values())):
        return relations(arrays)


# -- operators ---------------------------------------------------------------------------------------------------------
# Calls that leave the array as it is, or nearly: where an implementation is tempted to hand it on.
IDENTITIES = [
    ("transpose", (2, 3), {"axes": (0, 1)}), ("transpose", (4,), {}), ("transpose", (1, 3), {}), ("transpose", (2, 1, 3), {"axes": (1, 0, 2)}),
    ("SwapAxis", (2, 3), {"dim1": 0, "dim2": 0}), ("SwapAxis", (2, 1), {"dim1": 0, "dim2": 1}), ("SwapAxis", (2, 3), {"dim1": 0, "dim2": 1}),
    ("slice", (2, 3), {"begin": (0, 0), "end": (2, 3)}), ("slice", (2, 3), {"begin": (0,), "end": (1,)}),
    ("slice", (2, 3), {"begin": (None,), "end": (None,)}),
    ("slice_axis", (2, 3), {"axis": 0, "begin": 0, "end": None}), ("slice_axis", (2, 3), {"axis": 0, "begin": 0, "end": 1}),
    ("tile", (2, 3), {"reps": (1, 1)}), ("tile", (2, 3), {"reps": ()}), ("repeat", (2, 3), {"repeats": 1}),
    ("repeat", (2, 3), {"repeats": 1, "axis": 0}),
    ("broadcast_to", (2, 3), {"shape": (2, 3)}), ("broadcast_to", (1, 3), {"shape": (2, 3)}), ("broadcast_to", (2, 3), {"shape": (0, 0)}),
    ("broadcast_axis", (1, 3), {"axis": 0, "size": 1}), ("broadcast_axis", (1, 3), {"axis": (0,), "size": (2,)}), ("broadcast_axis", (2, 3), {}),
    ("Cast", (2, 3), {"dtype": "float32"}), ("amp_cast", (2, 3), {"dtype": "float32"}), ("clip", (2, 3), {"a_min": 0, "a_max": 99}),
    ("depth_to_space", (1, 1, 2, 2), {"block_size": 1}), ("space_to_depth", (1, 1, 2, 2), {"block_size": 1}),
    ("SliceChannel", (2, 3), {"num_outputs": 1}), ("SliceChannel", (1, 3), {"num_outputs": 1, "squeeze_axis": True, "axis": 0}),
    ("SliceChannel", (4, 3), {"num_outputs": 2, "axis": 0}), ("_split_v2", (2, 3), {"indices": (0,), "axis": 0, "sections": 1}),
    ("_split_v2", (2, 3), {"indices": (0, 1), "axis": 0}), ("Reshape", (2, 3), {"shape": (2, 3)}), ("Reshape", (2, 3), {"shape": (0, 0)}),
    ("Reshape", (2, 3), {"shape": (-1,)}), ("Flatten", (2, 3), {}), ("Flatten", (2, 3, 1), {}), ("squeeze", (2, 3), {}), ("squeeze", (1, 3), {}),
    ("squeeze", (2, 1), {"axis": 1}), ("expand_dims", (2, 3), {"axis": 0}), ("_copy", (2, 3), {}), ("BlockGrad", (2, 3), {}),
    ("make_loss", (2, 3), {}),
    ("MakeLoss", (2, 3), {}), ("relu", (2, 3), {}), ("abs", (2, 3), {}), ("Dropout", (2, 3), {"p": 0.0}), ("Dropout", (2, 3), {"p": 0.5}),
    ("Dropout", (2, 3), {"p": 0.5, "mode": "always"}), ("identity", (2, 3), {}), ("Activation", (2, 3), {"act_type": "relu"}),
    ("LeakyReLU", (2, 3), {"act_type": "leaky"}), ("_plus_scalar", (2, 3), {"scalar": 0.0}), ("_mul_scalar", (2, 3), {"scalar": 1.0}),
    ("_div_scalar", (2, 3), {"scalar": 1.0}), ("_power_scalar", (2, 3), {"scalar": 1.0}), ("_minus_scalar", (2, 3), {"scalar": 0.0}),
    ("round", (2, 3), {}), ("fix", (2, 3), {}), ("ceil", (2, 3), {}), ("sum", (2, 1), {"axis": 1}), ("sum", (2, 3), {"axis": ()}),
    ("sum", (1, 3), {"axis": 0}),
    ("mean", (2, 1), {"axis": 1}), ("max", (2, 1), {"axis": 1}), ("min", (2, 1), {"axis": 1, "keepdims": True}), ("prod", (1, 3), {"axis": 0}),
    ("norm", (2, 1), {"axis": 1, "ord": 1}), ("sort", (4,), {}), ("sort", (1,), {}), ("reverse", (1, 3), {"axis": 0}),
    ("reverse", (2, 3), {"axis": ()}),
    ("Pad", (1, 1, 2, 2), {"mode": "constant", "pad_width": (0,) * 8}), ("Pad", (1, 1, 2, 2), {"mode": "edge", "pad_width": (0,) * 8}),
    ("UpSampling", (1, 1, 2, 2), {"scale": 1, "sample_type": "nearest", "num_args": 1}),
    ("Pooling", (1, 1, 2, 2), {"kernel": (1, 1), "pool_type": "max"}),
    ("Pooling", (1, 1, 2, 2), {"kernel": (1, 1), "pool_type": "avg"}), ("Pooling", (1, 1, 1, 1), {"global_pool": True, "pool_type": "avg"}),
    ("_contrib_AdaptiveAvgPooling2D", (1, 1, 2, 2), {"output_size": (2, 2)}), ("_contrib_BilinearResize2D", (1, 1, 2, 2), {"height": 2, "width": 2}),
    ("Crop", (1, 1, 2, 2), {"num_args": 1, "h_w": (2, 2)}), ("diag", (4,), {}), ("diag", (1, 1), {}), ("cumsum", (1, 3), {"axis": 0}),
    ("smooth_l1", (2, 3), {}), ("L2Normalization", (2, 3), {}), ("SequenceReverse", (1, 2, 3), {}), ("SequenceMask", (2, 2, 3), {}),
    ("SequenceLast", (1, 2, 3), {}), ("_image_flip_left_right", (2, 2, 3), {}), ("_image_crop", (2, 2, 3), {"x": 0, "y": 0, "width": 2, "height": 2}),
    ("_image_resize", (2, 2, 3), {"size": (2, 2)}), ("_image_normalize", (3, 2, 2), {"mean": (0.0,), "std": (1.0,)}),
    ("_image_random_flip_left_right", (2, 2, 3), {}), ("_image_random_brightness", (2, 2, 3), {"min_factor": 1.0, "max_factor": 1.0}),
    ("_image_random_contrast", (2, 2, 3), {"min_factor": 1.0, "max_factor": 1.0}),
    ("_image_random_saturation", (2, 2, 3), {"min_factor": 1.0, "max_factor": 1.0}),
    ("_image_adjust_lighting", (2, 2, 3), {"alpha": (0.0, 0.0, 0.0)}), ("_image_random_hue", (2, 2, 3), {"min_factor": 1.0, "max_factor": 1.0}),
    ("_image_random_lighting", (2, 2, 3), {"alpha_std": 0.0}), ("_image_to_tensor", (1, 1, 1), {}), ("_cvimresize", (2, 2, 3), {"w": 2, "h": 2}),
    ("_contrib_gradientmultiplier", (2, 3), {"scalar": 1.0}), ("_contrib_quadratic", (2, 3), {"a": 0.0, "b": 1.0, "c": 0.0}),
    ("_contrib_div_sqrt_dim", (2, 1), {}), ("IdentityAttachKLSparseReg", None, {}), ("_contrib_round_ste", (2, 3), {}),
    ("_shuffle", (1, 3), {}), ("cast_storage", (2, 3), {"stype": "default"}), ("_npi_flip", (1, 3), {"axis": 0}),
    ("_npi_rot90", (2, 3), {"k": 0, "axes": (0, 1)}),
    ("_npi_rot90", (2, 3), {"k": 4, "axes": (0, 1)}), ("_npi_broadcast_to", (2, 3), {"shape": (2, 3)}), ("_np_reshape", (2, 3), {"newshape": (2, 3)}),
    ("_np_reshape", (2, 3), {"newshape": (-1,)}), ("_npx_reshape", (2, 3), {"newshape": (-4,)}), ("_np_squeeze", (2, 3), {}),
    ("_np_squeeze", (1, 3), {}),
    ("_np_squeeze", (), {}), ("_np_transpose", (2, 3), {"axes": (0, 1)}), ("_np_transpose", (4,), {}), ("_np_transpose", (1, 3), {}),
    ("_np_moveaxis", (2, 3), {"source": (0,), "destination": (0,)}), ("_np_moveaxis", (2, 1), {"source": (0,), "destination": (1,)}),
    ("_np_roll", (2, 3), {"shift": (0,)}), ("_np_roll", (2, 3), {"shift": (3,), "axis": (1,)}), ("_np_atleast_1d", (2, 3), {"num_args": 1}),
    ("_np_atleast_1d", (), {"num_args": 1}), ("_np_atleast_2d", (4,), {"num_args": 1}), ("_np_atleast_3d", (2, 3), {"num_args": 1}),
    ("_np_copy", (2, 3), {}), ("_np_copy", (), {}), ("_np_diag", (1, 1), {}), ("_np_diagflat", (1,), {}), ("_np_diagonal", (2, 2), {}),
    ("_np_diagonal", (1, 1), {}), ("_npi_tril", (1, 1), {}), ("_npi_diff", (2, 3), {"n": 0}),
    ("_npi_pad", (2, 3), {"pad_width": ((0, 0), (0, 0)), "mode": "constant"}),
    ("_npi_pad", (2, 3), {"pad_width": ((0, 0), (0, 0)), "mode": "edge"}), ("_npi_around", (2, 3), {"decimals": 0}),
    ("_npi_expand_dims", (2, 3), {"axis": 0}),
    ("_npi_nan_to_num", (2, 3), {}), ("_npi_hsplit", (2, 4), {"indices": (), "axis": 1, "sections": 1}),
    ("_npi_hsplit", (2, 4), {"indices": (), "axis": 1, "sections": 2}),
    ("_npi_dsplit", (2, 2, 2), {"indices": (), "axis": 2, "sections": 1}), ("_npi_concatenate", (2, 3), {"num_args": 1, "axis": 0}),
    ("_npi_stack", (2, 3), {"num_args": 1, "axis": 0}), ("_npi_vstack", (2, 3), {"num_args": 1}), ("_npi_hstack", (2, 3), {"num_args": 1}),
    ("_npi_dstack", (2, 2, 1), {"num_args": 1}), ("_npi_column_stack", (2, 3), {"num_args": 1}), ("_np_sum", (2, 1), {"axis": 1}),
    ("_np_sum", (), {}),
    ("_np_prod", (2, 1), {"axis": 1}), ("_np_max", (2, 1), {"axis": 1}), ("_np_min", (), {}), ("_npi_mean", (), {}), ("_npi_unique", (4,), {}),
    ("_npi_average", (1,), {"weighted": False}), ("_npi_percentile", (1,), {"q_scalar": 50.0}), ("_npi_squeeze", (1, 3), {}),
    ("_npi_add_scalar", (2, 3), {"scalar": 0.0}), ("_npi_multiply_scalar", (2, 3), {"scalar": 1.0}), ("_npi_power_scalar", (2, 3), {"scalar": 1.0}),
    ("_npi_true_divide_scalar", (2, 3), {"scalar": 1.0}), ("_npi_pinv_scalar_rcond", (1, 1), {}), ("_npi_fix", (2, 3), {}),
    ("_npi_absolute", (2, 3), {}),
    ("_npi_cast", (2, 3), {"dtype": "float32"}), ("_npi_einsum", (2, 3), {"num_args": 1, "subscripts": "ij->ij"}),
    ("_npi_einsum", (2, 3), {"num_args": 1, "subscripts": "ij->ji"}),
    ("_npi_einsum", (2, 2), {"num_args": 1, "subscripts": "ii->i"}), ("_npi_diag_indices_from", (2, 2), {}), ("_npx_relu", (2, 3), {}),
    ("_npx_cond", None, {}),
    ("Concat", (2, 3), {"num_args": 1, "dim": 0}), ("stack", (2, 3), {"num_args": 1, "axis": 0}), ("add_n", (2, 3), {"num_args": 1}),
    ("_rnn_param_concat", (4,), {"num_args": 1, "dim": 0}), ("khatri_rao", (2, 3), {"num_args": 1}), ("amp_multicast", (2, 3), {"num_outputs": 1}),
    ("_linalg_extractdiag", (1, 1), {}), ("_linalg_makediag", (1, 1), {"offset": 0}), ("_linalg_extracttrian", (1, 1), {}),
    ("_linalg_maketrian", (1,), {}),
    ("_linalg_potri", (1, 1), {}), ("_linalg_sumlogdiag", (1, 1), {}), ("_np_trace", (1, 1), {}), ("_npi_logical_not", (2, 3), {}),
]
MANY = [
    ("Concat", [(2, 3), (2, 3)], {"num_args": 2, "dim": 0}), ("stack", [(2, 3), (2, 3)], {"num_args": 2, "axis": 0}),
    ("Concat", [(2, 3), (0, 3)], {"num_args": 2, "dim": 0}),
    ("broadcast_like", [(2, 3), (2, 3)], {}), ("broadcast_like", [(1, 3), (2, 3)], {}), ("reshape_like", [(2, 3), (3, 2)], {}),
    ("reshape_like", [(2, 3), (2, 3)], {}),
    ("slice_like", [(2, 3), (2, 3)], {}), ("slice_like", [(2, 3), (1, 3)], {}), ("_identity_with_attr_like_rhs", [(2, 3), (2, 3)], {}),
    ("amp_multicast", [(2, 3), (2, 3)], {"num_outputs": 2}), ("add_n", [(2, 3), (2, 3)], {"num_args": 2}), ("take", [(2, 3), (1,)], {}),
    ("elemwise_add", [(2, 3), (2, 3)], {}), ("broadcast_add", [(2, 3), (1, 1)], {}), ("_np_atleast_1d", [(2, 3), (4,)], {"num_args": 2}),
    ("_npi_concatenate", [(2, 3), (2, 3)], {"num_args": 2, "axis": 0}), ("_npi_stack", [(2, 3), (2, 3)], {"num_args": 2, "axis": 0}),
    ("_npx_reshape_like", [(2, 3), (3, 2)], {}), ("_npi_where_rscalar", [(2, 3), (2, 3)], {"scalar": 1.0}),
    ("_slice_assign", [(2, 3), (1, 3)], {"begin": (0, 0), "end": (1, 3)}),
    ("_slice_assign", [(2, 3), (2, 3)], {"begin": (0, 0), "end": (2, 3)}), ("where", [(2, 3), (2, 3), (2, 3)], {}), ("maximum", [(2, 3), (2, 3)], {}),
    ("_maximum", [(2, 3), (2, 3)], {}), ("Crop", [(1, 1, 2, 2), (1, 1, 2, 2)], {"num_args": 2}), ("_grad_add", [(2, 3), (2, 3)], {}),
    ("SequenceMask", [(2, 2, 3), (2,)], {"use_sequence_length": True}), ("SequenceReverse", [(2, 2, 3), (2,)], {"use_sequence_length": True}),
    ("BatchNorm", [(2, 3, 1, 1), (3,), (3,), (3,), (3,)], {}), ("BatchNorm", [(2, 3, 1, 1), (3,), (3,), (3,), (3,)], {"output_mean_var": True}),
    ("BatchNorm", [(2, 3, 1, 1), (3,), (3,), (3,), (3,)], {"output_mean_var": True, "use_global_stats": True}),
    ("LayerNorm", [(2, 3), (3,), (3,)], {"output_mean_var": True}),
    ("RNN", [(1, 1, 1), (4,), (1, 1, 1)], {"state_size": 1, "num_layers": 1, "mode": "rnn_tanh", "state_outputs": True}),
    ("Embedding", [(2,), (2, 3)], {"input_dim": 2, "output_dim": 3}), ("_contrib_boolean_mask", [(2, 3), (2,)], {}),
    ("_np_dot", [(2, 2), (2, 2)], {}),
    ("_npi_matmul", [(1, 1), (1, 1)], {}), ("_npi_kron", [(1, 1), (2, 3)], {}), ("_npi_column_stack", [(2, 3), (2, 3)], {"num_args": 2}),
    ("SoftmaxOutput", [(2, 3), (2,)], {}), ("LinearRegressionOutput", [(2, 3), (2, 3)], {}), ("MAERegressionOutput", [(2, 3), (2, 3)], {}),
    ("SVMOutput", [(2, 3), (2,)], {}), ("_scatter_set_nd", [(2, 3), (1, 3), (1, 1)], {"shape": (2, 3)}), ("_npi_share_memory", [(2, 3), (2, 3)], {}),
]


def samples():
    """All samples of operators: (operator, number, sample)."""
    extra = {}
    for name, shape, attributes in IDENTITIES:
        if shape is not None:
            extra.setdefault(name, []).append(Sample([sequence(*shape)], attributes))
    for name, shapes, attributes in MANY:
        extra.setdefault(name, []).append(Sample([sequence(*shape) for shape in shapes], attributes))
    for name in {**RECORDS, **extra}:
        for number, sample in enumerate([*extra.get(name, ()), *RECORDS.get(name, ())]):
            yield name, number, sample


def semantics(name):
    """MXNet's NumPy mode around operators that belong to it."""
    stack = contextlib.ExitStack()
    if name.startswith("_np"):
        stack.enter_context(mx.util.np_shape(True))
        stack.enter_context(mx.util.np_array(True))
    return stack


def arrays_of(name, sample):
    make = mx.np.array if name.startswith("_np") else mx.nd.array
    return [make(a, dtype=a.dtype) for a in sample.inputs]


def strings(sample):
    return {k: str(v) for k, v in sample.attributes.items()}


def outputs_of(invoke, name, sample):
    mx.random.seed(1)
    return invoke(name, arrays_of(name, sample), strings(sample), None, name.startswith("_np"))


def symbol_of(name, sample, count):
    """A Symbol of the operator with variables ``x0``, ``x1``, ..., and its visible outputs."""
    nodes = [{"op": "null", "name": f"x{i}", "inputs": []} for i in range(len(sample.inputs))]
    node = {"op": name, "name": "node", "inputs": [[i, 0, 0] for i in range(len(nodes))], "attrs": strings(sample)}
    text = {"nodes": [*nodes, node], "arg_nodes": list(range(len(nodes))), "heads": [[len(nodes), i, 0] for i in range(count)],
            "attrs": {"mxnet_version": ["int", 10901]}}
    symbol = mx.sym.load_json(json.dumps(text))
    return symbol.as_np_ndarray() if name.startswith("_np") else symbol


def training(sample):
    return mx.autograd.train_mode() if sample.training else mx.autograd.predict_mode()


def record(arrays, sample):
    """Ask for the gradients of all arrays that may have one, and record."""
    for array in arrays:
        if array.dtype in (np.float16, np.float32, np.float64):
            array.attach_grad()
    return mx.autograd.record(train_mode=sample.training)


def eager(invoke, name, sample):
    arrays = arrays_of(name, sample)
    with training(sample):
        outputs = invoke(name, arrays, strings(sample), None, name.startswith("_np"))
    return {**named("x", arrays), **named("y", outputs)}


def recorded(invoke, name, sample):
    arrays = arrays_of(name, sample)
    with record(arrays, sample):
        outputs = invoke(name, arrays, strings(sample), None, name.startswith("_np"))
    return {**named("x", arrays), **named("y", outputs)}


def into_out(invoke, name, sample):
    arrays = arrays_of(name, sample)
    empty = mx.np.empty if name.startswith("_np") else mx.nd.empty
    with training(sample):
        results = outputs_of(invoke, name, sample)
        with mx.util.np_shape(True):
            out = [empty(o.shape, dtype=o.dtype) for o in results]
        invoke(name, arrays, strings(sample), out, name.startswith("_np"))
    return {**named("x", arrays), **named("y", out)}


def executor(invoke, name, sample):
    arrays = dict(named("x", arrays_of(name, sample)))
    symbol = symbol_of(name, sample, len(outputs_of(invoke, name, sample)))
    bound = symbol.bind(mx.cpu(), {n: arrays[n] for n in symbol.list_arguments()}, aux_states={n: arrays[n] for n in symbol.list_auxiliary_states()},
                        grad_req="null")
    return {**arrays, **named("y", bound.forward(is_train=sample.training))}


def hybridized(invoke, name, sample):
    """By a graph as `HybridBlock` runs it, twice: ``y`` is what the first call has returned, ``z`` the second."""
    arrays, op = _traced(invoke, name, sample)
    with training(sample):
        return {**arrays, **named("y", flat(op())), **named("z", flat(op()))}


def hybridized_recorded(invoke, name, sample):
    arrays, op = _traced(invoke, name, sample)
    with record(arrays.values(), sample):
        return {**arrays, **named("y", flat(op()))}


def _traced(invoke, name, sample):
    arrays = dict(named("x", arrays_of(name, sample)))
    symbol = symbol_of(name, sample, len(outputs_of(invoke, name, sample)))
    return arrays, functools.partial(mx.nd.CachedOp(symbol), *[arrays[n] for n in symbol.list_inputs()])


FRONTS = {f.__name__: f for f in (eager, recorded, into_out, executor, hybridized, hybridized_recorded)}


def ask(invoke, front, name, sample):
    """The relations of the arrays in a call of an operator."""
    with semantics(name):
        arrays = FRONTS[front](invoke, name, sample)
        mx.nd.waitall()
        return relations(arrays)
