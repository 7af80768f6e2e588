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
        numbers = list(range(30))  # more than the first message has
        print(r.agree('many', *numbers) == [numbers] * 2)
        calls = [(f'the work of {r.rank}', 1), ('lists', *[7] * (1 + 20 * r.rank)), ('types', 1), ('a failure', 1)]
        for doing, *numbers in calls:
            try:
                if doing == 'a failure' and r.rank:
                    r.fail(doing, mx.MXNetError('mine'))
                r.agree(doing, *numbers, about={'width': 3, 'dtype': ['float16', 'float64'][r.rank]} if doing == 'types' else None)
            except mx.MXNetError as error:
                print(error)
        print(r.agree('the end', r.rank))
    """, kind="dist_sync")
    common = ["[0, 3, 7] [[1, 9], [2, 9]] 10", "[1.0, 2.0, 2.0] [1.0, 2.0]"]
    last = ["[1.0, 0.0] [3.0, 3.0]", "True"]
    rule = "All ranks make the same calls in the same order, with the same arguments"
    errors = [[f"the work of {rank}: worker {rank} and worker {1 - rank} do not do the same: worker {1 - rank} calls the work of {1 - rank}. {rule}",
               f"lists: worker {rank} and worker {1 - rank} do not do the same. {rule}",
               f"types: worker {rank} and worker {1 - rank} do not do the same: dtype is {mine} on worker {rank} and {other} on worker {1 - rank}. "
               f"{rule}",
               failure, "[[0], [1]]"]
              for rank, mine, other, failure in ((0, "float16", "float64", f"a failure: worker 1 has failed with the error: mine. {rule}"),
                                                 (1, "float64", "float16", "mine"))]
    assert found == [[*common, "[[0.0, 3.0]]", "[0.0, 10.0, 11.0, 12.0]", *last, *errors[0]],
                     [*common, "[[6.0, 9.0], [12.0, 15.0]]", "[1.0, 2.0]", *last, *errors[1]]]
