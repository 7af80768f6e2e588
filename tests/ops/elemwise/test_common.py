import pytest
import torch

from mxnet import MXNetError
from mxnet.ops.elemwise import common


@pytest.mark.parametrize("lhs, rhs, expected", [
    ((2, 3), (2, 3), (2, 3)), ((2, 1), (1, 3), (2, 3)), ((3,), (2, 3), (2, 3)), ((2, 1), (2, -1), (2, -1)), ((2, 3), (2, -1), (2, 3)),
    ((), (4,), (4,)), ((0, 1), (1, 3), (0, 3))])
def test_shapes_of_broadcasting(lhs, rhs, expected):
    assert common.broadcast_rule([lhs, rhs], [None]) == ([lhs, rhs], [expected])
    assert common.broadcast_rule([rhs, lhs], [None]) == ([rhs, lhs], [expected])


def test_nothing_is_known_of_the_result_while_an_input_is_unknown():
    assert common.broadcast_rule([None, (2,)], [(5, 2)]) == ([None, (2,)], [(5, 2)])
    with pytest.raises(MXNetError, match=r"shapes \(2, 3\) and \(2, 4\) can't be broadcast"):
        common.broadcast_rule([(2, 3), (2, 4)], [None])
    with pytest.raises(MXNetError, match="incompatible"):
        common.broadcast_rule([(2, 3), (2, 1)], [(5, 5)])


def test_comparisons_are_0_and_1_in_the_type_of_the_data():
    for dtype in (torch.float32, torch.int8, torch.float16):
        found = common.truth(torch.gt, torch.tensor([1, 2, 3], dtype=dtype), 2)
        assert found.dtype is dtype and found.tolist() == [0, 0, 1]
    x = torch.ones(2, requires_grad=True)
    assert not common.truth(torch.eq, x, x).requires_grad


@pytest.mark.parametrize("value, dtype, expected", [
    (3.9, torch.int32, 3), (-3.9, torch.int32, -3), (300, torch.uint8, 44), (-1, torch.uint8, 255), (128, torch.int8, -128),
    (2 ** 31, torch.int32, -2 ** 31), (2 ** 63, torch.int64, -2 ** 63)])
def test_numbers_become_integers_as_in_c(value, dtype, expected):
    assert common.wrap_integer(value, dtype) == expected


def test_refusals_name_both_inputs():
    a, b = torch.ones(2), torch.ones(3, dtype=torch.int32)
    with pytest.raises(MXNetError, match="^op: .* one data type, received float32 and int32; convert one with astype"):
        common.refuse_types("op", a, b)
    with pytest.raises(MXNetError, match=r"^op: .* one shape, received \(2,\) and \(3,\); .*broadcast_\*"):
        common.refuse_shapes("op", a, b)
