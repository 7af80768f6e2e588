import warnings

import numpy as np
import pytest
import torch

from mxnet.ops import host_arrays

GRID = np.arange(6, dtype="float32").reshape(2, 3)


def read_only(array):
    array = array.copy()
    array.setflags(write=False)
    return array


def field():
    records = np.zeros((2, 3), [("other", "u1"), ("wanted", "f4")])
    records["wanted"] = GRID
    return records["wanted"]


LAYOUTS = {
    "negative columns": GRID[:, ::-1].copy()[:, ::-1], "negative rows": GRID[::-1].copy()[::-1], "rot90": np.rot90(np.rot90(GRID, -1).copy()),
    "transposed": GRID.T.copy().T, "strided": np.repeat(GRID, 2, 1)[:, ::2], "read-only": read_only(GRID),
    "unaligned": np.ndarray((2, 3), "f4", b"x" + GRID.tobytes(), 1), "field": field(),
    "masked": np.ma.masked_greater(GRID, 2), "big-endian": GRID.astype(">f4"), "big-endian, reversed": GRID.astype(">f4")[::-1].copy()[::-1],
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", [None, torch.float32, torch.int64, torch.bfloat16])
@pytest.mark.parametrize("copy", [False, True])
def test_any_layout(layout, dtype, copy):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = host_arrays.as_tensor(LAYOUTS[layout], dtype, copy)
    assert found.dtype is (dtype or torch.float32) and found.tolist() == [[0, 1, 2], [3, 4, 5]]
    if copy:
        assert found.is_contiguous()
        found.zero_()
        assert LAYOUTS[layout].sum() == (15 if layout != "masked" else 3)


def test_memory_is_shared_where_it_can_be():
    array = GRID.copy()
    host_arrays.as_tensor(array).zero_()
    assert not array.any()
    host_arrays.as_tensor(array, copy=True).fill_(1)
    assert not array.any()


def test_one_row_reversed_counts_as_contiguous_for_numpy():
    array = np.ones((1, 1, 3), "float32")[:, ::-1]
    assert array.flags.c_contiguous and array.strides[1] < 0
    assert host_arrays.as_tensor(array).shape == (1, 1, 3)


@pytest.mark.parametrize("shape", [(), (0,), (2, 0), (0, 3)])
@pytest.mark.parametrize("dtype", ["float32", ">f8", "bool", "longdouble"])
def test_no_axes_and_no_elements(shape, dtype):
    found = host_arrays.as_tensor(np.ones(shape, dtype))
    assert tuple(found.shape) == shape and found.numel() in (0, 1)


@pytest.mark.parametrize("dtype, expected", [
    (">f2", torch.float16), (">i2", torch.int16), (">u2", torch.uint16), (">i4", torch.int32), (">u8", torch.uint64), ("longdouble", torch.float64),
    ("bool", torch.bool), ("uint32", torch.uint32)])
def test_types_without_a_wish(dtype, expected):
    found = host_arrays.as_tensor(np.array([0, 1], dtype))
    assert found.dtype is expected and found.tolist() == [0, 1]


def test_bfloat16_as_mxnet_gives_it_to_numpy():
    bits = np.zeros(2, [("bfloat16", np.uint16)])
    bits["bfloat16"] = 0x3F80
    assert host_arrays.as_tensor(bits).dtype is torch.bfloat16
    assert host_arrays.as_tensor(bits[::-1]).tolist() == [1, 1] and host_arrays.as_tensor(bits, torch.int32).tolist() == [1, 1]


@pytest.mark.parametrize("values, dtype, expected", [
    (["1.5", "nan"], torch.float32, [1.5, "nan"]), ([b"1", b"2"], torch.int64, [1, 2]), ([1, None], torch.float16, [1, "nan"]),
    (["1", "2"], torch.bfloat16, [1, 2]), ([True, None], torch.float64, [1, "nan"])])
def test_what_can_be_read_as_numbers(values, dtype, expected):
    found = host_arrays.as_tensor(np.array(values), dtype)
    assert found.dtype is dtype and str(found.tolist()).replace(".0", "") == str(expected).replace("'", "")


@pytest.mark.parametrize("values, dtype", [
    (["a"], torch.float32), (["1.5"], torch.int32), ([None], torch.int32), ([None], None), (["1"], None), ([1j], None),
    ([[1], [2, 3]], torch.float32)])
def test_what_cannot(values, dtype):
    with pytest.raises((TypeError, ValueError)):
        host_arrays.as_tensor(values, dtype)


def test_complex_numbers_are_real_where_numpy_converts_them():
    with pytest.warns(np.exceptions.ComplexWarning):
        assert host_arrays.as_tensor(np.array([1 + 2j]), torch.float32).tolist() == [1]
    with pytest.raises(TypeError, match="real numbers expected, received 3j"):
        host_arrays.as_tensor(3j, torch.float32)


@pytest.mark.parametrize("tensor, device, staged", [
    (torch.zeros(1 << 14), "cuda:0", True), (torch.zeros(1 << 14), "cpu", False), (torch.zeros((1 << 14) - 1), "cuda:0", False),
    (torch.zeros(1, device="meta").expand(1 << 14), "cuda:0", False), (torch.zeros(1).expand((1 << 26) + 1), "cuda:0", False),
    (torch.zeros(1 << 14, requires_grad=True), "cuda:0", False)])
def test_copies_to_a_gpu_go_through_pinned_memory(monkeypatch, tensor, device, staged):
    """Of 64 KiB to 256 MiB, from the host; recorded ones not."""
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: False)
    monkeypatch.setattr(host_arrays, "_pinned", lambda tensor: "pinned")
    found = host_arrays.staged(tensor, torch.device(device))
    assert found == "pinned" if staged else found is tensor


def test_without_a_gpu_nothing_is_staged():
    tensor = torch.zeros(1 << 14)
    assert host_arrays.staged(tensor, torch.device("cuda:0")) is tensor
