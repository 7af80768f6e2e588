"""What MXNet 1.9.1 gives, and how it stores it: tests/data/sparse-1.9.1.json holds its answers, with arrays by these names."""
import json
import pathlib

import numpy as np
import pytest

import mxnet as mx

CASES = json.loads((pathlib.Path(__file__).parents[2] / "data" / "sparse-1.9.1.json").read_text())
SOURCES = {"1": [[0, 0, 0], [.5, 0, -.25], [0, 0, 0], [.75, .125, 0]], "2": [[0, 0, 0], [.25, .5, 0], [-.5, 0, .125], [0, 0, 0]],
           "0": np.zeros((4, 3)), "f": [[.1, .2, .3], [.4, .5, .6], [.7, .8, .9], [.3, .2, .1]]}
STYPES = {"r": "row_sparse", "c": "csr", "d": "default"}
DENSE = {"dv3": [.5, -1, 2], "dv1": [2.], "d13": [[.5, -1, 2]], "d41": [[.5], [-1], [2], [3]], "dv4": [1, 0, 1, 0], "idx": [1, 3, 2],
         "idxf": [1, 3, 3], "dv33": np.arange(9).reshape(3, 3) / 8, "d3d": np.arange(30).reshape(5, 3, 2) * .1}


def make(name):
    if name in DENSE:
        return mx.nd.array(DENSE[name])
    if name == "i64":
        return mx.nd.array([3, 1], dtype="int64")
    if name == "rv33":
        return mx.nd.sparse.row_sparse_array(([[1, 2, 3], [4, 5, 6]], [0, 2]), shape=(3, 3))
    if name == "r3d":
        return mx.nd.sparse.row_sparse_array((np.arange(12.).reshape(2, 3, 2) * .5, [1, 3]), shape=(5, 3, 2))
    if name in ("c34", "r34"):
        return mx.nd.array(np.transpose(SOURCES["1"])).tostype(STYPES[name[0]])
    return mx.nd.array(SOURCES[name[1]]).tostype(STYPES[name[0]])


def places(array):
    if array.stype == "row_sparse":
        return array.indices.asnumpy().tolist()
    if array.stype == "csr":
        starts, columns = array.indptr.asnumpy(), array.indices.asnumpy()
        return [sorted(columns[a:b].tolist()) for a, b in zip(starts, starts[1:])]
    return None


@pytest.mark.parametrize("name", sorted({c[0] for c in CASES}))
def test_results_are_stored_and_valued_as_in_mxnet(name, monkeypatch):
    monkeypatch.setenv("MXNET_STORAGE_FALLBACK_LOG_VERBOSE", "0")
    for _, inputs, attributes, out, expected in [c for c in CASES if c[0] == name]:
        arrays = [make(i) for i in inputs]
        keywords = {k: tuple(v) if isinstance(v, list) else v for k, v in attributes.items()}
        if out is not None:
            keywords["out"] = arrays[0] if out == "IN" else make(out)
        result = getattr(mx.nd._internal, name)(*arrays, **keywords)
        found = [*(result if isinstance(result, list) else [result]), *(arrays[2:] if out == "IN" else [])]
        case = f"{name}({', '.join(inputs)}, {attributes}, out={out})"
        for array, (stype, dtype, values, where) in zip(found, expected, strict=True):
            assert (array.stype, np.dtype(array.dtype).name) == (stype, dtype), case
            assert places(array) == where, case
            np.testing.assert_allclose(array.asnumpy().astype("float64"), np.array(values, dtype="float64"), 1e-3, 1e-3, err_msg=case)


def test_a_row_of_few_is_all_that_is_computed():
    # A dense array of these rows would not fit into any memory.
    rows = 1 << 45
    x = mx.nd.sparse.row_sparse_array(([[1., 2.], [3., 4.]], [5, rows - 1]), shape=(rows, 2))
    y = mx.nd.sparse.row_sparse_array(([[1., 1.]], [7]), shape=(rows, 2))
    assert (x + y).indices.asnumpy().tolist() == [5, 7, rows - 1]
    assert (x - y).data.asnumpy().tolist() == [[1, 2], [-1, -1], [3, 4]]
    assert mx.nd.square(x * 2).data.asnumpy().tolist() == [[4, 16], [36, 64]]
    assert mx.nd.sparse.retain(x, mx.nd.array([5, 6])).data.asnumpy().tolist() == [[1, 2], [0, 0]]
    assert mx.nd.add_n(x, y, x).data.asnumpy().tolist() == [[2, 4], [1, 1], [6, 8]]
    assert mx.nd.norm(x).asscalar() == pytest.approx(30 ** .5)
    assert mx.nd.clip(x, 0, 2).data.asnumpy().tolist() == [[1, 2], [2, 2]]
    picked = mx.nd.Embedding(mx.nd.array([5, 6], dtype="int64"), x, input_dim=rows, output_dim=2)
    assert picked.asnumpy().tolist() == [[1, 2], [0, 0]]


def test_retain_needs_rows():
    with pytest.raises(mx.MXNetError, match="retain needs a row_sparse array, received csr"):
        mx.nd.sparse.retain(make("c1"), mx.nd.array([1]))


def test_take_from_a_matrix_can_refuse_indices():
    with pytest.raises(mx.MXNetError, match=r"indices must be in \[0, 4\), received 1 to 4"):
        mx.nd.take(make("c1"), mx.nd.array([1, 4]), mode="raise")


def test_matrices_below_each_other_have_one_width():
    with pytest.raises(mx.MXNetError, match=r"as many columns, received shapes \(4, 3\), \(3, 4\)"):
        mx.nd.concat(make("c1"), make("c34"), dim=0)


def test_batch_norm_takes_no_sparse_arrays_with_fixed_gamma():
    ones = mx.nd.ones((3,))
    with pytest.raises(mx.MXNetError, match="fix_gamma=True takes no sparse arrays"):
        mx.nd.BatchNorm(make("r1"), ones, ones, ones, ones)
    assert mx.nd.BatchNorm(make("r1"), ones, ones, ones, ones, fix_gamma=False).shape == (4, 3)
