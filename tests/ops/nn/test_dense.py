"""FullyConnected: shapes inferred from parts, errors. Values: `test_against_oracle`."""
import pytest
import torch

from mxnet import MXNetError
from mxnet.ops import get

DENSE = get("FullyConnected")


def infer(data, out=None, bias=None, **attributes):
    return DENSE.shape_inference([data, None, bias], [out], **DENSE.with_defaults(DENSE.parse(attributes)))


def test_inference():
    assert infer((5, 2, 3), num_hidden=4) == ([(5, 2, 3), (4, 6), (4,)], [(5, 4)])
    assert infer((5, 2, 3), num_hidden=4, flatten=False) == ([(5, 2, 3), (4, 3), (4,)], [(5, 2, 4)])
    assert infer((-1, 3), (7, 4), num_hidden=4) == ([(7, 3), (4, 3), (4,)], [(7, 4)])
    assert infer((7, -1, 3), num_hidden=4) == ([(7, -1, 3), (4, -1), (4,)], [(7, 4)])
    assert infer((7, 3), bias=(4, 1), num_hidden=4)[0][2] == (4, 1)
    assert infer(None, (7, 4), num_hidden=4) == ([None] * 3, [(7, 4)])


def test_bias_may_be_a_column():
    data, weight, bias = torch.ones(1, 2), torch.ones(2, 2), torch.tensor([[1.0], [2.0]])
    assert DENSE(data, weight, bias, num_hidden=2).tolist() == [[3.0, 4.0]]


def test_empty_batch():
    assert DENSE(torch.ones(0, 2, 3), torch.ones(4, 6), num_hidden=4, no_bias=True).shape == (0, 4)


def test_errors():
    with pytest.raises(MXNetError, match=r"`weight` must have `num_hidden` = 3 rows, received shape \(4, 2\)"):
        DENSE(torch.ones(1, 2), torch.ones(4, 2), num_hidden=3, no_bias=True)
    with pytest.raises(MXNetError, match=r"FullyConnected's weight: expected shape \(4, 6\), received \(4, 5\)"):
        DENSE.shape_inference([(5, 6), (4, 5), None], [None], **DENSE.with_defaults({"num_hidden": 4}))
    with pytest.raises(MXNetError, match="FullyConnected: required argument `num_hidden`"):
        DENSE.parse({})


def test_the_bias_and_no_bias_must_agree():
    data, weight, bias = torch.ones(1, 2), torch.ones(3, 2), torch.ones(3)
    with pytest.raises(MXNetError, match=r"FullyConnected: expected no bias with no_bias=True, received one of shape \(3,\)"):
        DENSE(data, weight, bias, num_hidden=3, no_bias=True)
    with pytest.raises(MXNetError, match="FullyConnected: expected a bias with no_bias=False, received none"):
        DENSE(data, weight, num_hidden=3)
    with pytest.raises(MXNetError, match=r"FullyConnected: `bias` must have shape \(3,\), received \(1, 3\)"):
        DENSE(data, weight, bias.view(1, 3), num_hidden=3)
    with pytest.raises(MXNetError, match="FullyConnected: `num_hidden` must be an integer of at least 1, received '0'"):
        DENSE.parse({"num_hidden": "0"})
