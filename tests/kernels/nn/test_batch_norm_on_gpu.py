"""The GPU's batch norm without a GPU: this file run as a program computes layers in Triton's interpreter, which is chosen when triton is imported.

Numbers of real GPUs are compared in tests/gpu/test_training.py.
"""
import itertools
import json
import os
import subprocess
import sys

import pytest
import torch

from batch_norm_checks import TOLERANCES, arranged, faults, layer
from kernel_limits import used_from
from mxnet.kernels.nn import batch_norm_on_gpu as on_gpu
from mxnet.kernels.runtime import channel_kernels
from triton_programs import interpreted_results, needs_triton, repair_interpreter

SIZES = {"odd": (3, 7, 5, 9), "few channels": (2, 3, 31, 33), "one tile": (1, 64, 8, 8),
         "many rows": (2, 64, 13, 17), "many channels": (1, 200, 3, 5),
         "two axes": (70, 20), "a row": (1, 5, 1, 1), "one channel": (4, 1, 9, 5)}
SIZES_ONCE = {**SIZES, "as ResNet's last": (1, 2048, 3, 3)}
FLAGS = list(itertools.product([False, True], repeat=4))  # relu, residual, fix_gamma, bias
CASES = [*((dtype, "odd", *flags) for dtype in TOLERANCES for flags in FLAGS),
         *((dtype, size, True, residual, False, False) for dtype in TOLERANCES for size in SIZES if size != "odd" for residual in (False, True)),
         ("float16", "as ResNet's last", True, True, False, True)]


def constant_channel():
    """Results of a channel that is the same number everywhere, which no float of a sum shows exactly, beside one that is not."""
    x = arranged(torch.randn(4, 2, 17, 19))
    x[:, 0] = 1234.567
    mean, var = torch.zeros(2), torch.ones(2)
    out = on_gpu.batch_norm(x, torch.ones(2), torch.full((2,), 0.25), mean, var, fix_gamma=False, eps=1e-5, momentum=0.0)
    return [out[:, 0].unique().tolist() == [0.25], mean[0].item() == x[0, 0, 0, 0].item(), var[0].item() == 0]


def far_mean():
    """How far result and variance are from those of double precision, where the mean is 10,000 times the deviation."""
    x = arranged(torch.randn(8, 3, 29, 31) + 1e4)
    mean, var = torch.zeros(3), torch.ones(3)
    out = on_gpu.batch_norm(x, torch.ones(3), torch.zeros(3), mean, var, eps=1e-5, momentum=0.0)
    wide = x.double()
    exact, average = torch.var_mean(wide, (0, 2, 3), correction=0)
    expected = (wide - average.view(-1, 1, 1)) / exact.view(-1, 1, 1).sqrt()
    return [(out - expected).abs().max().item() < 2e-3, (var / exact - 1).abs().max().item() < 1e-4]


def nan_and_infinity():
    """A number that is none stays in its channel, and ReLU lets it pass; so does a gradient that overflowed."""
    x, dout = (arranged(torch.randn(2, 3, 4, 5)) for _ in range(2))
    x[1, 1, 2, 3] = float("nan")
    dout[0, 2, 0, 0] = float("inf")
    x[0, 2, 0, 0] = 9  # where the ReLU is on
    x.requires_grad_()
    out = on_gpu.batch_norm(x, torch.ones(3), torch.zeros(3), torch.zeros(3), torch.ones(3), relu=True)
    out.backward(dout)
    others = torch.stack([out[:, 0], out[:, 2], x.grad[:, 0]])
    return [out[:, 1].isnan().all().item(), others.isfinite().all().item(), x.grad[:, 1].isnan().all().item(),
            not x.grad[:, 2].isfinite().any().item()]


def only_what_is_needed():
    """Gradients that nobody asks for are not made; without any, nothing is kept."""
    x, gamma, beta = arranged(torch.randn(2, 3, 4, 5)), torch.ones(3), torch.zeros(3).requires_grad_()
    out = on_gpu.batch_norm(x, gamma, beta, torch.zeros(3), torch.ones(3), fix_gamma=False)
    out.sum().backward()
    plain = on_gpu.batch_norm(x, gamma, beta.detach(), torch.zeros(3), torch.ones(3), fix_gamma=False)
    return [x.grad is None and gamma.grad is None, beta.grad.tolist() == [40, 40, 40], plain.grad_fn is None, torch.equal(plain, out)]


def gradient_in_another_order():
    """Gradients that come with their channels first, or as one number, are put in order."""
    x = arranged(torch.randn(2, 3, 4, 5)).requires_grad_()
    found = []
    for arrange in (arranged, torch.Tensor.contiguous):
        x.grad = None
        out = on_gpu.batch_norm(x, torch.ones(3), torch.zeros(3), torch.zeros(3), torch.ones(3), relu=True)
        out.backward(arrange(torch.arange(120.0).view(2, 3, 4, 5)))
        found.append(x.grad)
    return [torch.equal(*found), found[0].is_contiguous(memory_format=torch.channels_last)]


def second_derivatives():
    """Gradients of gradients are torch's: as a penalty of gradients needs them."""
    found = []
    x, added, dout = (arranged(torch.randn(4, 3, 4, 5)) for _ in range(3))
    for residual in (False, True):
        penalties = []
        for dtype in (torch.float32, torch.float64):
            leaves = [t.to(dtype).requires_grad_() for t in (x, torch.tensor([0.5, 1, 2]), torch.tensor([0.1, 0, -0.1]), added)]
            if dtype is torch.float32:
                bias = torch.ones(3).requires_grad_()
                out = on_gpu.batch_norm(*leaves[:3], torch.zeros(3), torch.ones(3), leaves[3] if residual else None, bias=bias, relu=True,
                                        fix_gamma=False, eps=1e-3)
                of_bias, = torch.autograd.grad(out, bias, dout, create_graph=True)
                found.append(of_bias.tolist() == [0, 0, 0])
            else:
                out = torch.nn.functional.batch_norm(leaves[0], None, None, *leaves[1:3], True, 0.1, 1e-3)
                out = torch.relu(out + leaves[3] if residual else out)
            wanted = leaves if residual else leaves[:3]
            first = torch.autograd.grad(out, wanted, dout.to(dtype), create_graph=True)
            second = torch.autograd.grad(sum((g ** 2).sum() for g in first), wanted, allow_unused=True, materialize_grads=True)
            penalties.append([*first, *second])
        found += [torch.allclose(a.double(), b, rtol=1e-4, atol=1e-4) for a, b in zip(*penalties, strict=True)]
    return found


def smoke_tests():
    """The tests of the first use run."""
    return [test() is None for dtype in channel_kernels.TYPES for test in on_gpu.kernels.smoke_tests(torch.device("cpu"), dtype)]


OTHERS = {f.__name__: f for f in (constant_channel, far_mean, nan_and_infinity, only_what_is_needed, gradient_in_another_order, second_derivatives,
                                  smoke_tests)}


def main():
    """Write what each case differs in, as JSON."""
    repair_interpreter()
    used_from(pytest.MonkeyPatch(), 0, channel_kernels)
    found = {"as large GPUs are shared": faults(*layer((4, 130, 23, 29), "float32", True, True, False, True), TOLERANCES["float32"])}
    channel_kernels.PARTS, channel_kernels.PROGRAMS = 16, (4, 3)  # few programs with several tiles each, as many take the interpreter long
    for dtype, size, *flags in CASES:
        found[name_of((dtype, size, *flags))] = faults(*layer(SIZES_ONCE[size], dtype, *flags), TOLERANCES[dtype])
    torch.manual_seed(0)
    found.update((name, other()) for name, other in OTHERS.items())
    print(json.dumps(found))


def name_of(case):
    dtype, size, *flags = case
    return "-".join([dtype, size, *(f for f, on in zip(("relu", "residual", "fix_gamma", "bias"), flags) if on)])


@needs_triton
def test_the_kernels_compute_what_torch_does_in_double_precision():
    """And at the edges; one test, so that one program computes all cases."""
    results = interpreted_results(__file__)
    assert set(results) == {*map(name_of, CASES), "as large GPUs are shared", *OTHERS}
    assert {case: faults for case, faults in results.items() if case not in OTHERS and faults != []} == {}
    assert {case: results[case] for case in OTHERS if not results[case] or results[case] != [True] * len(results[case])} == {}


def arguments(**changed):
    given = {"data": arranged(torch.zeros(2, 64, 16, 16)), "gamma": torch.ones(64), "beta": torch.zeros(64), "moving_mean": torch.zeros(64),
             "moving_var": torch.ones(64)}
    return {**given, **changed}


WRONG = {
    "channels first": {"data": torch.zeros(2, 64, 16, 16)}, "double": {"data": torch.zeros(2 * 256, 64).double()},
    "empty": {"data": torch.zeros(0, 64)},
    "small": {"data": torch.zeros(2, 64)}, "three axes": {"data": torch.zeros(2, 64, 256)}, "half gamma": {"gamma": torch.ones(64).half()},
    "short": {"moving_var": torch.ones(1)}, "expanded": {"beta": torch.ones(1).expand(64)}, "strided": {"moving_mean": torch.ones(128)[::2]},
    "bias": {"bias": torch.ones(63)}, "residual": {"residual": torch.ones(2, 64, 1, 1)}, "type": {"residual": torch.zeros(2, 64, 16, 16).half()},
    "integers": {"bias": torch.ones(64).long()}}


@pytest.mark.parametrize("name", WRONG)
def test_what_does_not_fit_is_left_to_torch(name, monkeypatch):
    monkeypatch.setattr(on_gpu.kernels, "available", lambda device, dtype: True)
    monkeypatch.setattr(on_gpu._Fused, "apply", lambda *_: "the kernels")
    assert on_gpu.batch_norm(**arguments()) == "the kernels"
    assert on_gpu.batch_norm(**arguments(**WRONG[name])) is None


def test_without_triton_no_kernel_is_available(monkeypatch):
    monkeypatch.setattr(channel_kernels, "installed", lambda: False)
    assert not on_gpu.kernels.available(torch.device("cuda", 0), torch.float16)
    assert on_gpu.batch_norm(**arguments()) is None


def test_triton_is_not_imported_with_mxnet():
    code = "import sys, mxnet; print('triton' in sys.modules)"
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env, timeout=120).stdout == "False\n"


if __name__ == "__main__":
    main()
