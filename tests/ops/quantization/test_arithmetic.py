"""What quantized integers stand for."""
import pytest
import torch

from mxnet import MXNetError
from mxnet.ops.quantization.arithmetic import Quantized, calibrated, check_types, levels, product_range, ranged, store

ENDS = torch.tensor([-3.0]), torch.tensor([2.0])


def test_levels():
    assert [levels(t) for t in (torch.int8, torch.uint8, torch.int32)] == [127.5, 255.5, 2.0 ** 31]


def test_real_numbers():
    q = Quantized(torch.tensor([-127, 0, 51], dtype=torch.int8), *ENDS)
    assert q.limit.tolist() == [3] and q.unit.item() == pytest.approx(3 / 127.5)
    assert q.real().tolist() == pytest.approx([-127 * 3 / 127.5, 0, 1.2])
    other = q.with_values(torch.tensor([1], dtype=torch.uint8))
    assert other.values.tolist() == [1] and other.low.tolist() == [-3] and other.low is not q.low and other.unit.item() == pytest.approx(3 / 255.5)


def test_store():
    assert store(torch.tensor([0.5, 1.5, -2.5, 300, -300]), torch.int8).tolist() == [0, 2, -2, 127, -128]
    assert store(torch.tensor([-1.0, 255.4]), torch.uint8).tolist() == [0, 255]


def test_calibrated():
    low, high = calibrated(-1, 2.5, torch.ones(2, dtype=torch.int8))
    assert (low.tolist(), high.tolist(), low.dtype) == ([-1], [2.5], torch.float32)
    assert calibrated(None, 1.0, low) is None and calibrated(1.0, None, low) is None


def test_product_range():
    a, b = (Quantized(torch.ones(1, dtype=torch.int8), *ENDS) for _ in range(2))
    low, high = product_range(a, b)
    assert high.item() == pytest.approx(9 / 127 ** 2 * 2 ** 31) and low.item() == -high.item()
    assert product_range(a._replace(values=a.values.to(torch.uint8)), b)[1].item() == pytest.approx(9 / 127 / 255 * 2 ** 31)


def test_ranges():
    values, (low, high) = torch.ones(1, dtype=torch.int8), ENDS
    assert ranged("f", "x", values, low, high).limit.item() == 3
    with pytest.raises(MXNetError, match=r"f: the ends of the range of `x` must be one float32 number each, received float16 of shape \(1,\)"):
        ranged("f", "x", values, low, high.half())
    with pytest.raises(MXNetError, match=r"must be one float32 number each, received float32 of shape \(2,\)"):
        ranged("f", "x", values, low.repeat(2), high)
    with pytest.raises(MXNetError, match=r"f: the range of `x` is from .* to inf, which no integers can stand for; calibrate"):
        ranged("f", "x", values, low, high / 0)
    assert ranged("f", "x", values, low, high / 0, finite=False).limit.item() == float("inf")


def test_types():
    with pytest.raises(MXNetError, match="f: `x` must be int8 or uint8, received float32"):
        check_types("f", (torch.int8, torch.uint8), x=torch.ones(1))
    check_types("f", (torch.int8,), x=torch.ones(1, device="meta"))  # shapes are inferred without types
