import numpy as np
import pytest

import mxnet as mx
from mxnet.compat import helpers
from mxnet.numpy import multiarray, utils
from mxnet.symbol.numpy import _symbol as np_symbol


def test_lists_and_dicts():
    base = [0]
    mx.notebook.callback._extend(base, [1, 2, 3])
    assert base == [0, 2, 3] and helpers.flatten([[1], [2, 3]]) == [1, 2, 3]
    assert mx.test_utils._sorted_items({"b": 1, "a": 2}) == [("a", 2), ("b", 1)] and list(mx.test_utils._sorted_dict({"b": 1, "a": 2})) == ["a", "b"]
    assert [mx.numpy_dispatch_protocol._find_duplicate(s) for s in ("abca", "abc")] == ["a", None]

    class Frame(dict):
        columns = property(lambda self: list(self))

    frame = Frame(a=1)
    mx.notebook.callback._add_new_columns(frame, {"a": 2, "b": 3})
    assert frame == {"a": 1, "b": None}


def test_the_function_for_the_operands():
    one = mx.nd.ones(1)
    dispatch = mx.nd.ndarray._ufunc_helper
    assert dispatch(2, 3, None, lambda a, b: a - b, None) == -1
    assert dispatch(one, one, lambda a, b: "arrays", None, None) == "arrays"
    assert dispatch(one, 3, None, None, lambda a, b: (a.asscalar(), b)) == dispatch(3, one, None, None, lambda a, b: (a.asscalar(), b)) == (1, 3)
    assert dispatch(2, one, None, None, None, lambda a, b: b) == 2
    with pytest.raises(TypeError, match="an NDArray or a number expected, received <class 'str'>"):
        dispatch(one, "a", None, None, None)
    x = mx.sym.var("a").as_np_ndarray()
    dispatch = np_symbol._ufunc_helper
    assert dispatch(2, x, None, None, lambda a, scalar, is_int, out: (a.name, scalar, is_int)) == ("a", 2, False)
    assert dispatch(x, 2, None, None, lambda a, scalar, is_int, out: (scalar, is_int)) == (2, True)
    assert dispatch(x, x, lambda a, b, out: "Symbols", None, None) == "Symbols" and dispatch(1, 2, None, lambda a, b, out: a + b, None) == 3
    with pytest.raises(TypeError, match="a Symbol or a number expected"):
        dispatch(x, "a", None, None, None)


def test_unary_functions():
    x = mx.sym.var("a").as_np_ndarray()
    assert np_symbol._unary_func_helper(3, None, lambda v: v + 1) == 4 and np_symbol._unary_func_helper(x, lambda v, out: v.name, None) == "a"
    with pytest.raises(TypeError, match="a Symbol of mx.sym.np or a number expected"):
        np_symbol._unary_func_helper("a", None, None)


def test_random_numbers_by_the_kind_of_parameters():
    def number(*args, **kwargs):
        return "number", args, kwargs["shape"]

    def sampler(*args, **kwargs):
        return "sampler", len(args), kwargs["shape"]

    one = mx.nd.ones(1)
    draw = mx.nd.random._random_helper
    assert draw(number, sampler, [1, 2], mx.base._Null, None, None, None, {}) == ("number", (1, 2), 1)
    assert draw(number, sampler, [one], 3, None, None, None, {}) == ("sampler", 1, 3)
    with pytest.raises(AssertionError, match="of one type expected, received <class 'int'> and <class 'mxnet.ndarray.ndarray.NDArray'>"):
        draw(number, sampler, [1, one], 1, None, None, None, {})
    with pytest.raises(ValueError, match="arrays, Symbols or numbers expected .*, received <class 'str'>"):
        draw(number, sampler, ["a"], 1, None, None, None, {})
    draw = mx.sym.random._random_helper
    assert draw(number, sampler, [mx.sym.var("a")], 1, None, {})[0] == "sampler" and draw(number, sampler, [1], 1, None, {})[0] == "number"


def test_kinds_of_arrays():
    classic = mx.optimizer.optimizer._as_classic
    one = mx.np.ones(1)
    assert type(classic(one, True)) is type(classic([one], True)[0]) is mx.nd.NDArray and classic((1,), False) == (1,)
    for value in (one, [one]):
        with pytest.raises(ValueError, match="arrays of mx.nd expected, received some of mx.np"):
            classic(value, False)
    rescale = mx.nd.contrib._get_rescale_grad
    assert rescale(2.5, mx.cpu(1)).context == mx.cpu(1) and rescale(mx.nd.array([3.0])).asscalar() == 3
    x = mx.np.arange(6)
    multiarray._reshape_view(x, 3, 2)[0, 0] = 7
    assert x[0] == 7 and mx.nd.ndarray._int64_enabled() is True
    check = mx.gluon.block._check_all_np_ndarrays
    check([one, (one, 3)])
    with pytest.raises(TypeError, match="arrays of mx.np or Symbols of mx.sym.np expected, received <class 'mxnet.ndarray.ndarray.NDArray'>"):
        check([one, (mx.nd.ones(1),)])


def test_kinds_of_symbols():
    x, kind = mx.sym.var("a"), mx.gluon.utils._check_same_symbol_type
    assert kind([x, x]) is mx.sym.Symbol and kind([x.as_np_ndarray()]) is mx.sym.np._Symbol
    with pytest.raises(TypeError, match="Symbols of one kind expected, received some of mx.sym and some of mx.sym.np"):
        kind([x, x.as_np_ndarray()])


def test_graphs():
    net = mx.sym.FullyConnected(mx.sym.var("d"), num_hidden=2, name="f") + mx.sym.var("e")
    contrib = mx.sym.contrib
    assert [s.name for s in contrib._get_graph_inputs(net)] == ["d", "f_weight", "f_bias", "e"]
    assert contrib._get_sym_uniq_name(mx.sym.split(mx.sym.var("q"), num_outputs=2, name="sp")[1]) == "sp-1"
    contrib._check_data([1, 2], int, "no")
    with pytest.raises(AssertionError, match="^no$"):
        contrib._check_data([1, "a"], int, "no")
    infer = mx.gluon.nn.conv_layers._infer_weight_shape
    assert infer("Convolution", (0, 3, 0, 0), {"kernel": (3, 3), "num_filter": 8}) == [(0, 3, 0, 0), (8, 3, 3, 3), (8,)]
    with mx.np_shape(True), mx.np_array(True):
        assert infer("convolution", (-1, 3, -1, -1), {"kernel": (3, 3), "num_filter": 8})[1:] == [(8, 3, 3, 3), (8,)]


def test_interpolation():
    method = mx.image.image._get_interp_method
    assert [method(9), method(9, (1, 1, 2, 2)), method(9, (2, 2, 1, 1)), method(9, (1, 2, 2, 1)), method(3)] == [2, 2, 3, 1, 3]
    with pytest.raises(ValueError, match="Unknown interp method 11"):
        method(11)


def test_parts_of_data():
    data = [("a", mx.nd.array([1, 2, 3])), ("b", mx.nd.array([[1, 0], [0, 2], [3, 3]]).tostype("csr"))]
    picked = mx.io._getdata_by_idx(data, [2, 0])
    assert [(k, v.stype, v.asnumpy().tolist()) for k, v in picked] == [("a", "default", [3, 1]), ("b", "csr", [[3, 3], [1, 0]])]
    assert mx.io.io._slice_along_batch_axis(mx.nd.array([[1, 2, 3]]), slice(1, 3), 1).asnumpy().tolist() == [[2, 3]]


def test_parts_of_sparse_arrays():
    sparse = mx.nd.sparse
    assert sparse._csr_matrix_from_definition([1.0, 2.0], [0, 2], [0, 1, 2]).asnumpy().tolist() == [[1, 0, 0], [0, 0, 2]]
    assert sparse._row_sparse_ndarray_from_definition([[1.0, 2.0]], [1]).asnumpy().tolist() == [[0, 0], [1, 2]]
    for make in (lambda: sparse._csr_matrix_from_definition([1.0], [0], [0, 1], indptr_type="int32"),
                 lambda: sparse._row_sparse_ndarray_from_definition([[1.0]], [0], indices_type="int32")):
        with pytest.raises(ValueError, match="keeps its indices as int64, received int32"):
            make()
    assert sparse._prepare_default_dtype(np.zeros(1, "int8"), None) == "int8" and sparse._prepare_default_dtype([1], None) is np.float32
    assert sparse._prepare_src_array([1, 2], "int8").dtype == "int8"
    with pytest.raises(TypeError, match="values that make an array expected"):
        sparse._prepare_src_array(["a"], "int8")
    sparse._check_shape((1, 2), None)
    with pytest.raises(ValueError, match=r"one shape expected, received \(1, 2\) and \(1, 3\)"):
        sparse._check_shape((1, 2), (1, 3))


def test_cells():
    cells, module = [mx.rnn.LSTMCell(2, prefix="a_"), mx.rnn.GRUCell(3, prefix="b_")], mx.rnn.rnn_cell
    assert module._cells_state_shape(cells) == [(0, 2), (0, 2), (0, 3)] and len(module._cells_state_info(cells)) == 3
    assert [s.name.split("_")[0] for s in module._cells_begin_state(cells)] == ["a", "a", "b"]
    args = {f"{p}_{k}": mx.nd.arange(n * 2).reshape((n, 2)) if k.endswith("weight") else mx.nd.arange(n)
            for p, n in (("a", 8), ("b", 9)) for k in ("i2h_weight", "i2h_bias", "h2h_weight", "h2h_bias")}
    apart = module._cells_unpack_weights(cells, args)
    assert len(apart) == 28 and apart["b_h2h_z_bias"].asnumpy().tolist() == [3, 4, 5]
    again = module._cells_pack_weights(cells, apart)
    assert {k: v.asnumpy().tolist() for k, v in again.items()} == {k: v.asnumpy().tolist() for k, v in args.items()}


def test_functions_of_numpy():
    assert utils._get_np_op("svd") is np.linalg.svd and mx.np._STR_2_DTYPE_["float"] is np.float64 and utils._ONP_OP_MODULES[0] is np
    with pytest.raises(ValueError, match="NumPy has no function 'nope'"):
        utils._get_np_op("nope")
