"""One step of each rule, computed by hand. The optimizers' results next to those of MXNet 1.9.1 are in tests/optimizer."""
import math

import pytest
import torch

from mxnet.ops.optimizer_update import rules


def t(*values):
    return torch.tensor(values, dtype=torch.float64)


def close(found, expected):
    torch.testing.assert_close(found, t(*expected), rtol=1e-12, atol=1e-12)


def test_the_gradient_is_scaled_then_decayed_then_clipped():
    g, w = t(4, -8), t(10, 10)
    close(rules.rescaled(g, 0.5, -1), [2, -4])
    close(rules.rescaled(g, 0.5, 3), [2, -3])
    close(rules.decayed(g, w, 0.1, 0.5, -1), [3, -3])
    close(rules.decayed(g, w, 0.1, 0.5, 2), [2, -2])
    assert rules.rescaled(g, 1, -1) is g and rules.decayed(g, w, 0, 1, -1) is g
    close(g, [4, -8])


@pytest.mark.parametrize("clip, expected", [(-1, [1 - 0.1 * (2 + 0.5)]), (1, [1 - 0.1 * (1 + 0.5)])])
def test_sgd(clip, expected):
    close(rules.sgd(t(1), t(4), 0.1, 0.5, 0.5, clip), expected)  # decay is not clipped
    momentum = t(2)
    step = 0.9 * 2 + expected[0] - 1
    close(rules.sgd_momentum(t(1), t(4), momentum, 0.1, 0.9, 0.5, 0.5, clip), [1 + step])
    close(momentum, [step])


def test_nag():
    momentum = t(2)
    close(rules.nag_momentum(t(1), t(4), momentum, 0.1, 0.9, 0.5, 0.5, -1), [1 - 1.8 + 1.9 * (1.8 - 0.2 - 0.05)])
    close(momentum, [1.8 - 0.2 - 0.05])


def test_moments_move():
    mean, var = t(1), t(2)
    rules.moments(t(3), mean, var, 0.5, 0.75)
    close(mean, [2])
    close(var, [3.75])


def test_adam_and_adamw_decay_differently():
    g = 2 + 0.1 * 1  # the decay is part of the gradient
    close(rules.adam(t(1), t(4), t(0), t(0), 0.1, 0.5, 0.75, 1e-8, 0.1, 0.5, -1), [1 - 0.1 * 0.5 * g / (0.5 * g + 1e-8)])
    # ... or of the weight
    close(rules.adamw(t(1), t(4), t(0), t(0), 0.1, 2, 0.5, 0.75, 1e-8, 0.1, 0.5, -1), [0.8 - 2 * 0.1 * 1 / (1 + 1e-8)])


def test_lamb():
    mean, var = t(0), t(0)
    close(rules.lamb_direction(t(1), t(2), mean, var, 0.5, 0.75, 0, 1, True, 0.1, 1, -1), [1 + 0.1])  # the bias is corrected for
    close(rules.lamb_direction(t(1), t(2), t(0), t(0), 0.5, 0.75, 0, 1, False, 0.1, 1, -1), [1 / 1 + 0.1])
    step = rules.lamb_step
    close(step(t(1), t(2), t(3), t(4), 0.1, -1, -1), [1 - 2 * 0.75 * 0.1])
    close(step(t(1), t(2), t(3), t(4), 0.1, 8, -1), [1 - 2 * 2 * 0.1])
    close(step(t(1), t(2), t(3), t(4), 0.1, -1, 2), [1 - 2 * 0.5 * 0.1])
    close(step(t(1), t(2), t(0), t(4), 0.1, -1, -1), [1 - 2 * 0.1])  # without a norm the ratio is 1


def test_rmsprop():
    n = t(2)
    close(rules.rmsprop(t(1), t(4), n, 0.1, 0.5, 0, 0, 1, -1, -1), [1 - 0.1 * 4 / 3])
    close(n, [9])
    close(rules.rmsprop(t(1), t(4), t(2), 0.1, 0.5, 0, 0, 1, -1, 0.5), [0.5])
    n, g, delta = t(2), t(0), t(1)
    close(rules.rmsprop_centered(t(1), t(4), n, g, delta, 0.1, 0.5, 0.9, 0, 0, 1, -1, -1), [1 + 0.9 - 0.4 / math.sqrt(5)])
    close(delta, [0.9 - 0.4 / math.sqrt(5)])


def test_ftrl_gives_zeros():
    z, n = t(0, 0), t(0, 0)
    found = rules.ftrl(t(0, 0), t(0.5, 3), z, n, 0.1, 1, 1, 0, 1, -1)
    close(found, [0, -2 / ((3 + 1) / 0.1)])
    close(z, [0.5, 3])
    close(n, [0.25, 9])


def test_ftml():
    d, v, z = t(0), t(0), t(0)
    found = rules.ftml(t(1), t(2), d, v, z, 0.1, 0.5, 0.75, 0, 1, 0, 1, -1)
    close(d, [0.5 / 0.1 * 2])
    close(v, [1])
    close(z, [1 - 10])
    close(found, [0.9])


def test_signs():
    close(rules.signsgd(t(1, 1), t(5, -5), 0.1, 0.5), [0.95 - 0.1, 0.95 + 0.1])
    momentum = t(-4, 4)
    close(rules.signum(t(1, 1), t(2, -2), momentum, 0.1, 0.5, 0, 1, -1, 0.5), [0.95 - 0.1, 0.95 + 0.1])
    close(momentum, [-3, 3])


def test_adagrad():
    history = t(9)
    close(rules.adagrad(t(1), t(4), history, 0.1, 0, 0.5, 1, -1), [1 - 0.1 * 4 / 5 - 0.1 * 0.5])
    close(history, [25])
    history = torch.zeros(2, 1, dtype=torch.float64)
    found = rules.group_adagrad(torch.ones(2, 2, dtype=torch.float64), torch.tensor([[1.0, 7], [3, 3]], dtype=torch.float64), history, 0.1, 1, -1, 0)
    torch.testing.assert_close(history, torch.tensor([[25.0], [9]], dtype=torch.float64))  # the mean of the squares of each row
    torch.testing.assert_close(found, torch.tensor([[1 - 0.02, 1 - 0.14], [0.9, 0.9]], dtype=torch.float64))
