import pytest
import torch

from mxnet import MXNetError
from mxnet.ops.numpy import common

F16, F32, I32, I64 = torch.float16, torch.float32, torch.int32, torch.int64


def test_rules_of_types():
    assert common.result_is(torch.bool)([None, I32], [None]) == ([I32, I32], [torch.bool])
    assert common.promoted([I32, F16], [None]) == ([I32, F16], [F16])
    assert common.promoted([None, I64], [None]) == ([I64, I64], [I64])
    assert common.promoted([None], [F32]) == ([F32], [F32])
    assert common.from_dtype_or_input([I32], [None], dtype=F16) == ([I32], [F16])
    assert common.from_dtype_or_input([I32], [None]) == ([I32], [I32])


def test_axes_to_reduce():
    assert common.axes_of("op", None, 3) is None
    assert [common.axes_of("op", a, 3) for a in (1, -1, (2, 0), (-1,), ())] == [[1], [2], [0, 2], [2], []]
    with pytest.raises(MXNetError, match=r"op: `axis` must not name an axis twice, received \(0, -3\)"):
        common.axes_of("op", (0, -3), 3)
    with pytest.raises(MXNetError, match="op: .*3"):
        common.axes_of("op", 3, 3)


def test_types_that_an_operator_cannot_use():
    a, b, c = torch.ones(1), torch.ones(1, dtype=torch.int32), torch.ones(1)
    common.require_one_type("op", a, c)
    common.require_float("op", a, c)
    with pytest.raises(MXNetError, match="op: all inputs must have one data type, received float32 and int32"):
        common.require_one_type("op", a, c, b)
    with pytest.raises(MXNetError, match=r"op: inputs must be floating-point arrays, received int32; convert with astype\('float32'\)"):
        common.require_float("op", a, b)


def test_wrong_values_are_errors_of_both_kinds():
    assert issubclass(common.InvalidValueError, MXNetError) and issubclass(common.InvalidValueError, ValueError)
