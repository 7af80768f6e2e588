"""Collectives on rows: those of one process send nothing; two processes."""
import pytest
import torch

import mxnet as mx
from job_checks import outputs
from mxnet.kvstore.ranks import ranks


def test_one_process():
    found, rows = ranks(), torch.arange(6).view(3, 2)
    assert (found.rank, found.count, found.edges(7), found.agree("a", 3, 4), found.from_first(5, "a")) == (0, 1, [0, 7], [[3, 4]], 5)
    assert found.gather(rows, [3], "a") is found.begin_scatter(rows, [3], "a")() is found.exchange(rows, [3], [3], "a") is rows
    with pytest.raises(mx.MXNetError, match="table: 2 rows can't be divided among 1 ranks with 3 contexts each"):
        found.require_rows(2, 3, "table")


def test_two_processes():
    found = outputs("""
        import torch
        from mxnet.kvstore.ranks import ranks
        r = ranks()
        size = 1 + r.rank
        print(r.edges(7), r.agree('sizes', size, 9), r.from_first(10 + r.rank, 'seed'))
        rows = torch.full((size, 2), 1. + r.rank)
        print(r.gather(rows, [1, 2], 'g')[:, 0].tolist(), r.gather(rows[:1], [1, 1], 'g')[:, 0].tolist())
        print(r.begin_scatter(torch.arange(6.).view(3, 2) * size, [1, 2], 's')().tolist())
        sent = torch.arange(3.).view(3, 1) + 10 * r.rank
        print(r.exchange(sent, [[1, 2], [3, 0]][r.rank], [[1, 3], [2, 0]][r.rank], 'e').flatten().tolist())
        top, total = torch.tensor([1. * r.rank, -r.rank]), torch.ones(2) * size
        r.max(top, 'm')
        r.sum(total, 't')
        print(top.tolist(), total.tolist())
        try:
            r.agree(f'the work of {r.rank}', 1)
        except mx.MXNetError as error:
            print('do not do the same' in str(error))
    """, kind="dist_sync")
    common = ["[0, 3, 7] [[1, 9], [2, 9]] 10", "[1.0, 2.0, 2.0] [1.0, 2.0]"]
    last = ["[1.0, 0.0] [3.0, 3.0]", "True"]
    assert found == [[*common, "[[0.0, 3.0]]", "[0.0, 10.0, 11.0, 12.0]", *last], [*common, "[[6.0, 9.0], [12.0, 15.0]]", "[1.0, 2.0]", *last]]
