"""Tests of the networks of benchmarks/loss_curves.py and `run.py --tasks steps`: every style takes MXNet 1.9.1's steps. Nothing is timed."""
import pathlib
import sys

import numpy as np
import pytest

import mxnet as mx

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "benchmarks"))
import torch  # noqa: E402

import loss_curves  # noqa: E402
from harness import tasks, torch_models, train_models, worker_protocol, workloads  # noqa: E402

# Losses of the first three steps, four examples each, as MXNet 1.9.1 has them in all three styles.
LOSSES = {("resnet8", "sgd"): [3.23269, 2.48953, 2.02545], ("resnet8", "adam"): [3.23269, 2.48845, 2.02461],
          ("lm1x16", "sgd"): [6.94133, 6.91006, 6.89039], ("lm1x16", "adam"): [6.94133, 6.91718, 6.90207],
          ("encoder1x16", "sgd"): [7.28148, 7.11912, 7.48088], ("encoder1x16", "adam"): [7.28148, 7.09723, 7.44682],
          ("deepar1x8", "sgd"): [0.75774, 0.07718, 0.33803], ("deepar1x8", "adam"): [0.75774, 0.08747, 0.38359]}


@pytest.mark.parametrize("style", tasks.STYLES)
@pytest.mark.parametrize("name, optimizer", LOSSES)
def test_the_first_steps_are_those_of_mxnet(name, optimizer, style):
    step = train_models.stepper(name, 4, style, optimizer)
    losses = [float(step(*map(mx.nd.array, workloads.batch(name, 4, seed)))) for seed in range(3)]
    np.testing.assert_allclose(losses, LOSSES[name, optimizer], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", ["lenet", "resnet8", "lm2x16", "encoder2x16", "deepar2x8"])
def test_torch_computes_the_same_network(name, tmp_path):
    net, _ = train_models.initialized(name, 2)
    train_models.write(name, str(tmp_path))
    x, _ = workloads.batch(name, 3)
    output = torch_models.load(name, str(tmp_path)).train()(torch.from_numpy(x)).detach().numpy()
    with mx.autograd.train_mode():
        np.testing.assert_allclose(output, net(mx.nd.array(x)).asnumpy(), rtol=1e-4, atol=1e-5)


def test_the_largest_difference_and_where_the_limit_is_passed():
    assert loss_curves.difference([1.0, 2.0], [1.0, 2.0]) == (0.0, 1, None)
    assert loss_curves.difference([1.0, 2.004, 3.003], [1.0, 2.0, 3.0]) == (pytest.approx(0.002), 2, 2)
    assert loss_curves.as_text(0.002, 3, 2) == "2.0e-03 (step 3; over 0.001 from step 2)"


def test_what_is_no_number_is_as_far_away_as_can_be():
    assert loss_curves.difference([1.0, float("nan")], [1.0, 2.0])[0] == float("inf")


def test_a_perturbation_moves_weights_by_one_unit_in_the_last_place():
    def values(ulp_seed):
        net = train_models.initialized("mlp1x8", 2, ulp_seed)[0]
        return [parameter.data().asnumpy() for parameter in net.collect_params().values()]
    for plain, moved in zip(values(None), values(0), strict=True):
        if plain.ndim == 1:
            assert plain.tolist() == moved.tolist()
        else:
            assert (np.abs(plain.view(np.int32) - moved.view(np.int32)) == 1).all()


def test_calls_warm_up_until_tuning_has_ended():
    calls = []

    def call():
        calls.append(1)
    call.settled = lambda: len(calls) >= 17
    worker = worker_protocol.Worker(lambda row: (call, lambda: [0.0]))
    worker.do_prepare({"task": "scoring"}, 0.0, None)
    assert len(calls) == 17
    del call.settled, calls[:]
    worker.do_prepare({"task": "scoring"}, 0.0, None)
    assert len(calls) == worker_protocol.WARM_UP_CALLS


def test_a_round_is_over_when_what_its_calls_left_behind_is_done():
    left, seen = [], []
    worker = worker_protocol.Worker(None, lambda: (seen.append(len(left)), left.clear()))
    worker.call, worker.calls = lambda: left.append(1), 3
    assert set(worker.do_round()) == {"wall", "cpu"} and not left
    assert seen == [0, 3]  # what was left before a round is no part of it
    assert worker.do_many(2)["value"] > 2 ** 20 and seen == [0, 3, 2]
