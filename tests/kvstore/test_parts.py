import collections

import torch

from mxnet.kvstore.parts import cut, divide


def test_small_keys_are_spread_by_their_names():
    servers = collections.Counter(divide(("store 0", f"layer{i}_weight"), (10, 10), 4)[0].server for i in range(400))
    assert sorted(servers) == [0, 1, 2, 3] and min(servers.values()) > 70
    assert divide("w", (10, 10), 4) == divide("w", (10, 10), 4) == [(1, 0, 10, False)]


def test_large_keys_are_divided(monkeypatch):
    monkeypatch.setenv("MXNET_KVSTORE_BIGARRAY_BOUND", "12")
    assert divide("w", (5, 3), 2) == [(0, 0, 2, False), (1, 2, 5, False)]
    assert divide("w", (2, 7), 3) == [(0, 0, 4, True), (1, 4, 9, True), (2, 9, 14, True)]  # fewer rows than servers
    assert len(divide("w", (2, 7), 3, sparse=True)) == 1  # rows are not divided
    assert len(divide("w", (11,), 2)) == 1
    assert divide("w", (12,), 1)[0] == (0, 0, 12, False)
    value = torch.arange(14).view(2, 7)
    assert torch.equal(torch.cat([cut(value, part) for part in divide("w", (2, 7), 3)]).view(2, 7), value)
    value = torch.arange(15).view(5, 3)
    assert torch.equal(torch.cat([cut(value, part) for part in divide("w", (5, 3), 2)]), value)
    assert cut(torch.tensor(3), divide("w", (), 2)[0]).item() == 3
