"""mx.nd.sparse as programs see it."""
import pathlib
import pickle

import pytest

import mxnet as mx
from mxnet.ndarray import sparse
from mxnet.ops import OPERATORS


def test_names_that_programs_use():
    assert sparse is mx.nd.sparse and sparse.CSRNDArray is mx.nd.CSRNDArray and sparse.gs_retain is sparse.retain
    for name in ("add", "array", "cast_storage", "csr_matrix", "divide", "dot", "empty", "multiply", "row_sparse_array", "subtract", "zeros"):
        assert callable(getattr(sparse, name))
    assert "dot" in dir(sparse) and sparse.abs(mx.nd.array([-1])).asscalar() == 1
    with pytest.raises(AttributeError, match="no_such_operator"):
        sparse.no_such_operator


def test_no_module_of_the_folder_hides_an_operator():
    modules = {p.stem for p in pathlib.Path(sparse.__file__).parent.glob("*.py")} - {"__init__"}
    assert len(modules) > 5 and not modules & {n.removeprefix("_sparse_") for n in OPERATORS}


@pytest.mark.parametrize("stype", ["csr", "row_sparse"])
def test_pickles_name_the_public_module(stype):
    array = mx.nd.array([[0, 1], [0, 0]]).tostype(stype)
    text = pickle.dumps(array, protocol=0)
    assert b"mxnet.ndarray.sparse\n" in text and pickle.loads(text).asnumpy().tolist() == [[0, 1], [0, 0]]
