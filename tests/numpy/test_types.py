import numpy as onp
import pytest

from mxnet import np


def test_limits():
    assert np.finfo(np.float16).max == 65504 and np.finfo(np.ones(1)).bits == 32 and np.iinfo("uint32").max == 2**32 - 1
    assert np.iinfo(np.array([1], dtype="int8")) == (8, 127, -128)
    with pytest.raises(ValueError, match="Invalid integer data type"):
        np.iinfo("float32")


def test_conversions():
    assert np.can_cast(np.ones(1, dtype="int8"), "int16") and not np.can_cast("int16", "int8")
    with pytest.raises(TypeError, match="can_cast: types or arrays expected, received 'int99' and 'int8'"):
        np.can_cast("int99", "int8")


def test_the_table_of_common_types():
    table = np._type_promotion_table
    assert table[onp.dtype("int8"), onp.dtype("uint8")] == onp.int16 and table[onp.dtype("int64"), onp.dtype("float16")] == onp.float16
    assert (onp.dtype("uint64"), onp.dtype("int64")) not in table and table[onp.dtype("bool"), onp.dtype("uint32")] == onp.uint32
    assert np._STR_2_DTYPE_["float"] == onp.float64 and np._DTYPE_2_STR_[np.dtype("uint16")] == "uint16" and len(np.numeric_dtypes) == 11
