"""What `explain` says of the choice: that native is the fastest only where others were tried."""
import pytest
import torch

from mxnet import gluon, nd
from mxnet.graph.tuning import inference_states, policy


@pytest.fixture(autouse=True)
def no_kernels_of_our_own(monkeypatch):
    """Networks of a fully connected layer serve here because they are small: these are about other candidate backends."""
    monkeypatch.setattr(policy, "mlp_candidates", lambda *args: [])


def network():
    net = gluon.nn.Dense(3, in_units=4)
    net.initialize()
    net.hybridize(static_alloc=True, static_shape=True)
    return net


class Slow:
    """A backend that gives the right results, late, or wrong ones."""

    name, specializes, trains, freezes = "slow", True, False, True

    def __init__(self, wrong):
        self.wrong = wrong

    def compile(self, program):
        forward = program.module.forward

        def run(*inputs):
            for _ in range(50):
                found = forward(*inputs)
            return [f + 1 if self.wrong else f for f in found]

        return run


def test_without_others_nothing_is_said_to_be_the_fastest(monkeypatch):
    monkeypatch.setattr(policy, "candidate_backends", lambda device, all_backends=False: [])
    net = network()
    net(nd.ones((2, 4)))
    assert "native" in net.explain() and inference_states.FASTEST not in net.explain()


def test_a_contest_that_native_won(monkeypatch):
    monkeypatch.setattr(policy, "candidate_backends", lambda device, all_backends=False: [Slow(False)])
    net = network()
    net(nd.ones((2, 4)))
    assert inference_states.FASTEST in net.explain() and net._cached_op.handle.settled


def test_others_with_other_results(monkeypatch, recwarn):
    monkeypatch.setattr(policy, "candidate_backends", lambda device, all_backends=False: [Slow(True)])
    net = network()
    net(nd.ones((2, 4)))
    assert "since slow gives other results" in net.explain() and inference_states.FASTEST not in net.explain()


def test_a_candidate_is_not_settled():
    candidate = inference_states.Warmup(lambda *inputs: list(inputs), 1.0)
    assert candidate.holds([torch.ones(1)])
    net = gluon.nn.Dense(3, in_units=4)
    net.initialize()
    net.hybridize()
    net(nd.ones((2, 4)))
    assert not net._cached_op.handle.settled
