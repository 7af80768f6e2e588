import pathlib
import sys

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "examples"))
import resumable_training  # noqa: E402  # examples are no package

import mxnet as mx  # noqa: E402


def _weights(net):
    return [p.data().asnumpy() for p in net.collect_params().values()]


def test_a_training_in_two_parts_is_the_one_in_one(tmp_path):
    parts = []
    for folder, ends in ("whole", [4]), ("parts", [2, 4]):
        mx.random.seed(1)
        np.random.seed(1)
        losses = []
        for end in ends:
            net, more = resumable_training.train(tmp_path / folder, end)
            losses += more
        parts.append((_weights(net), losses))
    (whole, losses), (again, others) = parts
    assert losses == others and losses[-1] < 0.5 * losses[0]
    assert all((a == b).all() for a, b in zip(whole, again))
