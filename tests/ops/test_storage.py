import pytest
import torch

import mxnet as mx
from mxnet.ops import get


def test_in_graphs_the_values_are_all_there_is():
    x = mx.sym.var("x")
    for stype in ("default", "csr", "row_sparse"):
        found = mx.sym.cast_storage(x, stype=stype).eval(x=mx.nd.array([[0, 1], [2, 0]]))[0]
        assert found.asnumpy().tolist() == [[0, 1], [2, 0]]
    with pytest.raises(mx.MXNetError, match="stype.*must be one of .*received 'coo'"):
        mx.sym.cast_storage(x, stype="coo")
    source = torch.ones(2)
    assert get("cast_storage")(source, stype="csr").data_ptr() != source.data_ptr()


def test_rows_that_are_not_listed_become_zero():
    x = torch.arange(6.0).reshape(3, 2).requires_grad_()
    found = get("_sparse_retain")(x, torch.tensor([2.0, 0.0]))
    assert found.tolist() == [[0, 1], [0, 0], [4, 5]]
    found.sum().backward()
    assert x.grad.tolist() == [[1, 1], [0, 0], [1, 1]]
    assert get("_sparse_retain")(torch.ones(2, 2, 2), torch.tensor([], dtype=torch.int64)).sum() == 0
