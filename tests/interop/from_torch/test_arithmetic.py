import pytest
import torch
import torch.nn.functional as F

import mxnet as mx
from torch_checks import check, real

X, Y = real(2, 3, 4), real(3, 1).abs() + 0.5


def test_real_numbers():
    check([
        lambda x: x + 2, lambda x: 3 - x, lambda x: torch.add(x, x * x, alpha=2), lambda x: torch.sub(x, 1, alpha=3), lambda x: x * 0.5 / 3,
        lambda x: 2 / (x + 4),
        lambda x: (x + 3) ** 2, lambda x: (x + 3) ** 0.5, lambda x: x.maximum(x * x), lambda x: x.clamp(-1, 1), lambda x: x.clamp(min=0.5),
        lambda x: x.clamp_max(0.5),
        lambda x: x.exp() + x.sin() * x.cos(), lambda x: (x + 3).log() - (x + 3).rsqrt(), lambda x: x.abs().sqrt(), lambda x: -x.erf(),
        lambda x: x.square().reciprocal(),
        F.relu, F.relu6, F.silu, F.mish, F.hardswish, F.hardsigmoid, F.gelu, lambda x: F.gelu(x, approximate="tanh"), F.leaky_relu, F.elu, F.selu,
        F.softplus,
        lambda x: F.softplus(x, beta=2), F.logsigmoid, F.hardtanh, torch.sigmoid, torch.tanh, lambda x: F.prelu(x, torch.full((3,), 0.2)),
    ], X)


def test_steps():
    check([
        lambda x: x.floor() + x.ceil() + x.trunc() + x.sign(), lambda x: x.remainder(0.7), lambda x: torch.div(x, 0.3, rounding_mode="floor"),
        lambda x: x // 0.3,
        lambda x: x.round(decimals=1),
    ], X, gradient=False)


def test_operands_are_spread():
    class Scale(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.factor, self.offset = torch.nn.Parameter(Y), torch.nn.Parameter(torch.tensor(0.25))

        def forward(self, x):
            return (x * self.factor - self.offset) / self.factor + self.factor[:, 0][None, :, None]

    check(Scale(), X)


def test_truth_values():
    check([
        lambda x: torch.where(x > 0, x, x * 0.1), lambda x: x.masked_fill(x.le(0.2), -1.0), lambda x: torch.where((x > 0) & ~(x > 1), 1.0, x),
        lambda x: x * (x != 1), lambda x: torch.where((x < -1) | (x >= 1), x, 0.0), lambda x: x * (x > 0).float(),
        lambda x: x * (x.int() == 1).to(x.dtype),
        lambda x: torch.where(torch.tensor([True, False, True, True]), x, -x),
    ], X)


def test_integers_and_types():
    check([lambda x: x * 2 + 1, lambda x: (x / 2).to(torch.float32), lambda x: x + 0.5], torch.arange(6).reshape(2, 3), gradient=False)
    check(lambda x: x.half().float(), X, atol=1e-3)


def test_what_is_written_in_place_is_read_later():
    def function(x):
        y = x * 2
        z = y.mul_(3)
        y += 1
        return y * z

    check([function, lambda x: F.relu_(x * 2) + F.relu(x + 1, inplace=True)], X)


def test_bits_have_no_counterpart():
    with pytest.raises(mx.MXNetError, match=r"operator aten.__and__.Scalar \(node and_1\) has no counterpart in MXNet where it computes with bits; "
                                            r"write this part of the module with other operators \(docs/torch.md\), or leave it in torch"):
        check(lambda x: x & 3, torch.arange(4), gradient=False)


def test_softplus_has_no_threshold():
    with pytest.raises(mx.MXNetError, match="aten.softplus.default .* where `threshold` is 2: MXNet's softrelu has none"):
        mx.gluon.from_torch(torch.nn.Softplus(threshold=2), X)
