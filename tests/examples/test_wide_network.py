import pathlib
import sys

import numpy as np
import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "examples"))
import wide_network  # noqa: E402  # examples are no package

import mxnet as mx  # noqa: E402


@pytest.mark.parametrize("stype, optimizer, more", [("default", {"optimizer": "adamax", "optimizer_params": {"epsilon": 1e-8}}, {}),
                                                    ("csr", {}, {}), ("csr", {}, {"sampled": True}),
                                                    ("default", {}, {"devices": [mx.cpu(1), mx.cpu(2), mx.cpu(1)]})])
def test_all_forms_of_input_and_output_learn(stype, optimizer, more):
    mx.random.seed(1)
    columns, classes = wide_network.samples(np.random.default_rng(0), 16, 400, 50)
    net = wide_network.module(stype, 16, 400, 50, kv_store=mx.kv.create("local"), **more, **optimizer)
    rng = np.random.default_rng(1) if "sampled" in more else None
    losses = []
    for _ in range(12):
        made = wide_network.batch(stype, columns, classes, 400, 50, rng)
        wide_network.step(net, made)
        losses.append(wide_network.loss(net, made))
    assert losses[0] == pytest.approx(np.log(50), abs=0.05) and losses[-1] < 0.5 * losses[0]


def test_a_split_output_layer_computes_what_a_whole_one_does():
    columns, classes = wide_network.samples(np.random.default_rng(0), 16, 400, 50)
    made = wide_network.batch("default", columns, classes, 400, 50)
    whole = wide_network.module("default", 16, 400, 50, "sgd")
    split = wide_network.module("default", 16, 400, 50, "sgd", devices=[mx.cpu(1), mx.cpu(2), mx.cpu(3)])
    values = whole.get_params()[0]
    parts = {f"fc3_{i}_{kind}": values[f"fc3_{kind}"][begin:end] for i, (begin, end) in enumerate([(0, 16), (16, 33), (33, 50)])
             for kind in ("weight", "bias")}
    split.set_params({**{name: value for name, value in values.items() if "fc3" not in name}, **parts}, {})
    assert [split._exec_group.execs[0].arg_dict[f"fc3_{i}_weight"].context for i in range(3)] == [mx.cpu(1), mx.cpu(2), mx.cpu(3)]
    for _ in range(3):
        for net in (whole, split):
            wide_network.step(net, made)
    np.testing.assert_allclose(split.get_outputs()[0].asnumpy(), whole.get_outputs()[0].asnumpy(), rtol=1e-5)
