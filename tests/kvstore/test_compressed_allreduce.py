"""Sums of compressed gradients: their codes, and what three workers make of them."""
import pytest
import torch

from job_checks import outputs
from mxnet import MXNetError
from mxnet.kvstore.compressed_allreduce import _paired, _restored, _shortened, _unpaired
from mxnet.kvstore.compression import make_compression


@pytest.mark.parametrize("kind, unit", [("2bit", 0.25), ("1bit", 1)])
def test_codes_say_what_is_sent(kind, unit):
    compression = make_compression({"type": kind, "threshold": 0.25})
    gradient = torch.randn(100, generator=torch.Generator().manual_seed(0))
    packed = compression.compress(gradient, torch.zeros(100))
    expected = compression.decompress(packed, gradient.shape)
    assert torch.equal(compression.code.numbers(packed)[:100] * unit, expected) and compression.code.unit == unit


@pytest.mark.parametrize("most, wide", [(1, torch.int8), (7, torch.int8), (8, torch.int8), (127, torch.int8), (300, torch.int32)])
@pytest.mark.parametrize("count", [0, 1, 2, 999])
def test_sums_survive_their_journey(most, wide, count):
    sums = torch.randint(-most, most + 1, (count,), dtype=wide)
    sent = _shortened(_paired(sums, most))
    assert torch.equal(_unpaired(sent, count, most, "push"), sums)


def test_what_is_mostly_zero_is_short():
    codes = torch.zeros(100_000, dtype=torch.uint8)
    codes[::50] = 0b11000000
    assert _shortened(codes).numel() < 15_000


def test_damaged_bytes_are_refused():
    sent = _shortened(torch.arange(200, dtype=torch.uint8))
    with pytest.raises(MXNetError, match="push: another worker sent compressed gradients of more than 100 bytes"):
        _restored(sent, 100, "push")
    with pytest.raises(MXNetError, match="damaged"):
        _restored(torch.full((50,), 255, dtype=torch.uint8), 100, "push")


def test_three_workers_send_less_than_a_fifteenth():
    said = outputs("""
        kv.set_gradient_compression({'type': '2bit', 'threshold': 0.5})
        shapes = {'a': (701, 33), 'b': (5,), 'c': (1000, 999)}
        kv.init(list(shapes), [mx.nd.zeros(s) for s in shapes.values()])
        values, totals, sent = [], {}, []
        for step in range(3):
            # What worker i pushes is known to all, so that each can say what the sum must be.
            pushed = [[np.random.RandomState(10 * step + i + 100 * k).normal(0, 0.4, s).astype('f') for k, s in enumerate(shapes.values())]
                      for i in range(kv.num_workers)]
            out = [mx.nd.zeros(s) for s in shapes.values()]
            before = kv._group.sent
            kv.pushpull(list(shapes), [mx.nd.array(p) for p in pushed[kv.rank]], out=out)
            sent.append(kv._group.sent - before)
            for k, o in enumerate(out):
                expected = 0
                for i in range(kv.num_workers):
                    rest = totals.setdefault((k, i), 0) + pushed[i][k]
                    code = (rest >= 0.5) * np.float32(0.5) - (rest <= -0.5) * np.float32(0.5)
                    totals[k, i] = rest - code
                    expected = expected + code
                np.testing.assert_array_equal(o.asnumpy(), expected)
        dense = 2 * (kv.num_workers - 1) / kv.num_workers * 4 * sum(int(np.prod(s)) for s in shapes.values())
        print(max(sent) < dense / 15)
    """, workers=3, kind="dist_sync")
    assert said == [["True"]] * 3
