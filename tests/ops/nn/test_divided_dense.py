"""Ranks whose parts of a divided layer do not fit together. Its values are tested in `symbol/test_split_layers`."""
from job_checks import outputs


def test_other_sizes_and_types_are_errors_on_all_ranks():
    found = outputs("""
        import torch
        from mxnet.kvstore.ranks import ranks
        from mxnet.ops.nn.divided_dense import DividedDense
        second = kv.rank == 1
        for units, width, dtype in (4, 3 + second, torch.float32), (4, 3, [torch.float32, torch.float64][second]), (4 + 2 * second, 3, torch.float32):
            layer = DividedDense('head', {'num_hidden': units, 'no_bias': True}, [torch.device('cpu')], ranks(), True)
            try:
                layer.raw(torch.ones(2, width, dtype=dtype), torch.ones(units // 2, width, dtype=dtype))
            except mx.MXNetError as error:
                print(str(error).split(': ')[2].split('.')[0])
    """, kind="dist_sync")
    differences = ("features", 3, 4), ("dtype", "float32", "float64"), ("units", 4, 6)
    assert found == [[f"{name} is {(a, b)[rank]} on worker {rank} and {(b, a)[rank]} on worker {1 - rank}" for name, a, b in differences]
                     for rank in range(2)]
