"""Interleaved attention: inference and errors. Values: `test_against_oracle`."""
import pytest

from mxnet import MXNetError
from mxnet.ops import get


def infer(name, *shapes, heads=2):
    return get("_contrib_interleaved_matmul_" + name).shape_inference(list(shapes), [None], heads=heads)


def test_inference():
    assert infer("selfatt_qk", (5, 3, 24)) == ([(5, 3, 24)], [(6, 5, 5)])
    assert infer("selfatt_valatt", (5, 3, 24), None) == ([(5, 3, 24), (6, 5, 5)], [(5, 3, 8)])
    assert infer("encdec_qk", (5, 3, 8), (4, -1, -1)) == ([(5, 3, 8), (4, 3, 16)], [(6, 5, 4)])
    assert infer("encdec_valatt", (4, 3, 16), (-1, 5, -1)) == ([(4, 3, 16), (6, 5, 4)], [(5, 3, 8)])
    assert infer("selfatt_qk", (-1, 3, 24))[1] == [(6, -1, -1)]


def test_errors():
    with pytest.raises(MXNetError, match="25 features cannot be split into 3 projections for each of 2 heads"):
        infer("selfatt_qk", (5, 3, 25))
    with pytest.raises(MXNetError, match=r"projections must be \(sequence, batch, features\), received shape \(5, 24\)"):
        infer("selfatt_valatt", (5, 24), None)
    with pytest.raises(MXNetError, match=r"attention: expected shape \(6, -1, 4\), received \(5, 5, 4\)"):
        infer("encdec_valatt", (4, 3, 16), (5, 5, 4))
