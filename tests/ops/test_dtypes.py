import numpy as np
import pytest
import torch

import mxnet as mx
from mxnet import MXNetError
from mxnet.ops import dtypes


@pytest.mark.parametrize("dtype, expected", [
    ("float32", torch.float32), (np.float16, torch.float16), (np.dtype("int8"), torch.int8), (torch.int64, torch.int64), (float, torch.float64),
    (int, torch.int64), (bool, torch.bool), (None, torch.float32), ("bfloat16", torch.bfloat16), (dtypes.BFLOAT16_BITS, torch.bfloat16),
    ("<f4", torch.float32), ("float", torch.float64), ("uint16", torch.uint16)])
def test_anything_that_names_a_type(dtype, expected):
    assert dtypes.to_torch(dtype) is expected is dtypes.to_torch(dtype)  # the second time out of a table


@pytest.mark.parametrize("dtype", ["complex64", torch.complex64, np.str_, object(), ["float32"]])
def test_anything_else_is_refused(dtype):
    with pytest.raises(TypeError, match="not understood; expected one of .*'bfloat16'"):
        dtypes.to_torch(dtype)


def test_numbers_in_files_are_those_of_mxnet():
    assert dtypes.FLAG_TO_NAME == {0: "float32", 1: "float64", 2: "float16", 3: "uint8", 4: "int32", 5: "int8", 6: "int64", 7: "bool",
                                   8: "int16", 9: "uint16", 10: "uint32", 11: "uint64", 12: "bfloat16"}
    assert all(dtypes.NAME_TO_FLAG[name] == flag for flag, name in dtypes.FLAG_TO_NAME.items())


def test_there_and_back():
    for name, t in dtypes.NAME_TO_TORCH.items():
        assert dtypes.name_of(t) == name and dtypes.to_torch(dtypes.to_numpy(t)) is t
    assert dtypes.to_numpy(torch.bfloat16)["bfloat16"] == np.uint16  # numpy has none: its bits
    with pytest.raises(MXNetError, match="torch.complex32 has no counterpart in MXNet"):
        dtypes.name_of(torch.complex32)


def test_arrays_stand_for_their_type_as_for_numpy():
    for array in (mx.nd.ones(2, dtype="int32"), mx.np.ones(2, dtype="int32"), torch.ones(2, dtype=torch.int32)):
        assert dtypes.to_torch(array) is torch.int32 and not any(array is key for key in dtypes._CACHE)
    with pytest.raises(TypeError, match="not understood"):  # NumPy's own don't
        dtypes.to_torch(np.ones(2))


@pytest.mark.parametrize("dtype", ["(", "(1,", "2f4,", ("i4", -1), (False,)])
def test_texts_that_numpy_reads_as_descriptions_of_fields(dtype):
    with pytest.raises(TypeError, match="not understood"):
        dtypes.to_torch(dtype)


def test_one_type_for_all_inputs_and_outputs():
    assert dtypes.same_type([None, torch.float16], [None]) == ([torch.float16] * 2, [torch.float16])
    assert dtypes.same_type([None], [torch.float64]) == ([torch.float64], [torch.float64])
