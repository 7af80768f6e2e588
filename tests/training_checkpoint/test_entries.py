import torch

from mxnet.training_checkpoint.entries import Entry, share_of


def test_large_arrays_are_divided_and_small_ones_go_to_the_rank_with_least():
    entries = {name: Entry((size,), torch.float32, [(0, torch.arange(size, dtype=torch.float32))])
               for name, size in (("large", 300_001), ("a", 10), ("b", 30), ("c", 5), ("d", 4))}
    shares = [share_of(entries, rank, 3) for rank in range(3)]
    assert [[(begin, len(tensor)) for begin, tensor in share["large"].pieces] for share in shares] == [
        [(0, 100_000)], [(100_000, 100_000)], [(200_000, 100_001)]]
    assert [sorted(share) for share in shares] == [["a", "large"], ["b", "large"], ["c", "d", "large"]]
    assert share_of(entries, 0, 1)["large"].pieces[0][1].shape == (300_001,)
