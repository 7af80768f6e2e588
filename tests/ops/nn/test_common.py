import pytest
import torch

from mxnet import MXNetError
from mxnet.ops.nn import common

F16, F32, F64 = torch.float16, torch.float32, torch.float64


def test_what_is_learnt_is_put_into_the_list():
    shapes = [(2, -1), None]
    common.assign(shapes, 0, (-1, 3), "weight")
    common.assign(shapes, 1, (4,), "bias")
    common.assign(shapes, 2, (5,), "not there")
    assert shapes == [(2, 3), (4,)]
    with pytest.raises(MXNetError, match=r"weight: expected shape \(2, 4\), received \(2, 3\)"):
        common.assign(shapes, 0, (2, 4), "weight")


def test_the_place_of_the_channels():
    assert [common.channels_last(x) for x in ("NHWC", "NWC", "NCHW", None)] == [True, True, False, False]
    t = torch.zeros(2, 5, 6, 3)
    first = common.to_channels_first(t)
    assert first.shape == common.shape_to_channels_first(t.shape) == (2, 3, 5, 6) and first.data_ptr() == t.data_ptr()
    assert common.to_channels_last(first).shape == common.shape_to_channels_last(first.shape) == (2, 5, 6, 3)


def test_the_class_of_each_instance():
    p = torch.tensor([[0.5, 0.5], [0.25, 0.75], [0.25, 0.75]])
    found = common.minus_one_hot(p, torch.tensor([[1], [0], [7]]), 1)
    assert found.tolist() == [[0.5, -0.5], [-0.75, 0.75], [0.25, 0.75]] and p[0].tolist() == [0.5, 0.5]  # 7 is no class
    assert common.minus_one_hot(torch.zeros(1, 2), torch.tensor([[1]]), 1, amount=3.0).tolist() == [[0, 3]]


def test_a_bias_that_was_switched_off():
    assert common.bias_inputs({"no_bias": True}) == ("data", "weight") and len(common.bias_inputs({"no_bias": False})) == 3
    common.check_bias("op", None, True)
    common.check_bias("op", torch.ones(2), False)
    with pytest.raises(MXNetError, match="op: expected a bias with no_bias=False, received none"):
        common.check_bias("op", None, False)
    with pytest.raises(MXNetError, match=r"op: expected no bias with no_bias=True, received one of shape \(2,\)"):
        common.check_bias("op", torch.ones(2), True)


def test_types():
    assert [common.param_type(t) for t in (F16, torch.bfloat16, F32, F64)] == [F32, F32, F32, F64]
    assert common.norm_types([F16, None], [None, None]) == ([F16, F32], [F16, F32])
    assert common.norm_types([None, F64], [F64, None, None]) == ([F64, F64], [F64, F64, F64])
    assert common.norm_types([None], [None]) == ([None], [None])


def test_axes():
    assert [common.check_axis(a, 3, "op") for a in (0, 2, -1, -3)] == [0, 2, 2, 0]
    for axis in (3, -4):
        with pytest.raises(MXNetError, match=f"op: axis {axis} is out of range for data with 3 axes"):
            common.check_axis(axis, 3, "op")
