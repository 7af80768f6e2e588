import pathlib
import sys

import numpy as np
import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "examples"))
import wide_network  # noqa: E402  # examples are no package

import mxnet as mx  # noqa: E402


@pytest.mark.parametrize("stype, optimizer, sampled", [("default", {"optimizer": "adamax", "optimizer_params": {"epsilon": 1e-8}}, False),
                                                       ("csr", {}, False), ("csr", {}, True)])
def test_both_forms_of_input_learn(stype, optimizer, sampled):
    mx.random.seed(1)
    columns, classes = wide_network.samples(np.random.default_rng(0), 16, 400, 50)
    net = wide_network.module(stype, 16, 400, 50, kv_store=mx.kv.create("local"), sampled=sampled, **optimizer)
    rng = np.random.default_rng(1) if sampled else None
    losses = []
    for _ in range(12):
        made = wide_network.batch(stype, columns, classes, 400, 50, rng)
        wide_network.step(net, made)
        losses.append(wide_network.loss(net, made))
    assert losses[0] == pytest.approx(np.log(50), abs=0.05) and losses[-1] < 0.5 * losses[0]
