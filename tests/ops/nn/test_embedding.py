"""Embedding. More values: `test_against_oracle`."""
import pytest
import torch

from mxnet import MXNetError
from mxnet.ops import get

EMBEDDING = get("Embedding")
ATTRIBUTES = {"input_dim": 3, "output_dim": 2}


def test_fractions_are_truncated_and_numbers_out_of_range_clipped():
    table = torch.tensor([[0.0, 1], [2, 3], [4, 5]])
    assert EMBEDDING(torch.tensor([1.9, -4.0, 9.0]), table, **ATTRIBUTES).tolist() == [[2, 3], [0, 1], [4, 5]]
    data = torch.tensor([5, 0])
    assert EMBEDDING(data, table, **ATTRIBUTES).tolist() == [[4, 5], [0, 1]]
    assert data.tolist() == [5, 0]


def test_inference():
    every = EMBEDDING.with_defaults(ATTRIBUTES)
    assert EMBEDDING.shape_inference([(4, -1), None], [None], **every) == ([(4, -1), (3, 2)], [(4, -1, 2)])
    assert EMBEDDING.dtype_inference([torch.int32, None], [None], **every) == ([torch.int32, torch.float32], [torch.float32])
    every["dtype"] = "float16"
    assert EMBEDDING.dtype_inference([torch.float32, None], [None], **every) == ([torch.float32, torch.float16], [torch.float16])
    assert EMBEDDING.dtype_inference([torch.float32, torch.float64], [None], **every)[1] == [torch.float64]


def test_a_table_of_another_size_is_refused():
    with pytest.raises(MXNetError, match=r"`weight` must have shape \(3, 2\), received \(4, 2\)"):
        EMBEDDING(torch.tensor([0]), torch.ones(4, 2), **ATTRIBUTES)
