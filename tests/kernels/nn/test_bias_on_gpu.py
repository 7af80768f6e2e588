"""The GPU's biases without a GPU: this file run as a program computes them in Triton's interpreter, which is chosen when triton is imported.

Numbers of real GPUs are compared in tests/gpu/test_training.py.
"""
import itertools
import json

import pytest
import torch
from torch.utils import checkpoint

import mxnet as mx
from batch_norm_checks import TOLERANCES, arranged, faults
from bias_checks import ROUNDED, biased
from kernel_limits import used_from
from mxnet.graph.backends import registry
from mxnet.kernels.nn.bias_on_gpu import add_bias, kernels
from mxnet.kernels.runtime import channel_kernels
from mxnet.ops.nn import training_layers
from residual import lowered
from triton_programs import interpreted_results, needs_triton, repair_interpreter

SIZES = {"odd": (3, 7, 5, 9), "few channels": (2, 3, 31, 33), "one tile": (1, 64, 8, 8), "many rows": (2, 64, 13, 17),
         "many channels": (1, 200, 3, 5), "two axes": (70, 20), "a row": (1, 5, 1, 1), "one channel": (4, 1, 9, 5), "a number": (1, 1)}
CASES = list(itertools.product(TOLERANCES, SIZES, (False, True)))


def numbers(*shape):
    return arranged(torch.randn(*shape))


def nan_and_infinity():
    """ReLU lets what is no number pass, and its gradient, too, as torch's does."""
    x, bias, dout = numbers(2, 4, 4, 5), torch.tensor([0.5, float("inf"), float("nan"), -1]), numbers(2, 4, 4, 5)
    x[0, 0, 0, 0], x[1, 0, 1, 1], x[0, 1, 2, 2], x[1, 3, 0, 0] = float("nan"), float("inf"), -float("inf"), -float("inf")
    dout[1, 3, 3, 3] = float("nan")
    results = []
    for ours in (True, False):
        leaves = [t.clone().requires_grad_() for t in (x, bias)]
        out = add_bias(leaves[0].clone(), leaves[1], True) if ours else torch.relu(leaves[0] + leaves[1].view(-1, 1, 1))
        results.append([out, *torch.autograd.grad(out, leaves, dout)])
    return [torch.allclose(a, b, equal_nan=True, rtol=1e-5, atol=1e-5) for a, b in zip(*results)] + [
        results[0][0][:, 2].isnan().all().item(), (results[0][0][1, 3, 0, 0] == 0).item()]


def only_what_is_needed():
    """Gradients that nobody asks for are not computed; without any, nothing is saved. Without a ReLU the data's is the incoming one."""
    x, bias, dout, results = numbers(2, 3, 4, 5), torch.randn(3), numbers(2, 3, 4, 5), []
    expected = torch.where(x + bias.view(3, 1, 1) <= 0, 0, dout)
    for relu in (False, True):
        dx = expected if relu else dout
        for data, vector in ((x.clone().requires_grad_(), bias), (x, bias.clone().requires_grad_())):
            out = add_bias(data.clone(), vector, relu)
            out.backward(dout)
            grads = data.grad, vector.grad
            if data.requires_grad:
                results += [grads[1] is None, torch.equal(grads[0], dx)]
            else:
                results += [grads[0] is None, torch.allclose(grads[1], dx.sum((0, 2, 3)), atol=1e-5)]
        results.append(add_bias(x.clone(), bias, relu).grad_fn is None)
    data, vector = x.clone().requires_grad_(), bias.clone().requires_grad_()
    results.append(torch.autograd.grad(add_bias(data.clone(), vector), [data, vector], dout)[0].data_ptr() == dout.data_ptr())
    results.append(not add_bias(data.clone(), vector).grad_fn.saved_tensors)
    return results


def gradient_in_another_order():
    """Gradients that come with their channels first, or as one number, are put in order."""
    x, bias, results = numbers(2, 3, 4, 5), torch.randn(3), []
    on = x + bias.view(3, 1, 1) > 0
    for dout in (torch.randn(2, 3, 4, 5), torch.ones(()).expand(2, 3, 4, 5), numbers(2, 3, 5, 4).transpose(2, 3)):
        for relu in (False, True):
            leaves = [x.clone().requires_grad_(), bias.clone().requires_grad_()]
            dx, dbias = torch.autograd.grad(add_bias(leaves[0].clone(), leaves[1], relu), leaves, dout)
            expected = dout * on if relu else dout
            results += [torch.equal(dx, expected), torch.allclose(dbias, expected.sum((0, 2, 3)), atol=1e-5)]
    return results


def second_derivatives():
    """Gradients of gradients are torch's: as a penalty of gradients needs them."""
    values, results = [numbers(4, 3, 4, 5), torch.randn(3), numbers(4, 3, 4, 5)], []
    for relu in (False, True):
        penalties = []
        for ours in (True, False):
            x, bias, dout = (t.to(torch.float32 if ours else torch.float64).requires_grad_() for t in values)
            out = add_bias(x * x, bias, relu) if ours else x * x + bias.view(3, 1, 1)
            out = torch.relu(out) if relu and not ours else out
            first = torch.autograd.grad(out, [x, bias], dout, create_graph=True)
            second = torch.autograd.grad(sum((g ** 2).sum() for g in first), [x, dout])
            penalties.append([*first, *second])
        results += [torch.allclose(a.double(), b, rtol=1e-4, atol=1e-4) for a, b in zip(*penalties, strict=True)]
    return results


def the_same_at_each_run():
    """Sums are joined in a fixed order."""
    x, bias, dout = numbers(8, 24, 19, 17), torch.randn(24), numbers(8, 24, 19, 17)
    results = []
    for _ in range(2):
        leaves = [x.clone().requires_grad_(), bias.clone().requires_grad_()]
        results.append(torch.autograd.grad(add_bias(leaves[0].clone(), leaves[1], True), leaves, dout))
    return [torch.equal(a, b) for a, b in zip(*results)]


def overwritten_results():
    """Torch knows that the data was overwritten: a gradient that needs its former values, or the result after another change, is an error."""
    results = []
    for needs_former_values in (True, False):
        y, bias = torch.exp(numbers(2, 3, 4, 5).requires_grad_()), torch.randn(3, requires_grad=True)  # the gradient of exp reads its result
        out = add_bias(y if needs_former_values else y.clone(), bias, True)
        if not needs_former_values:
            out.mul_(2)
        try:
            out.sum().backward()
            results.append(False)
        except RuntimeError as error:
            results.append("modified by an inplace operation" in str(error))
    return results


def recomputed():
    """A part that is computed again in backward has the same gradients."""
    x, bias, results = numbers(2, 3, 4, 5), torch.randn(3), []
    for again in (False, True):
        leaves = [x.clone().requires_grad_(), bias.clone().requires_grad_()]

        def part(data, vector):
            return add_bias(data * 2, vector, True) * 3

        out = checkpoint.checkpoint(part, *leaves, use_reentrant=False) if again else part(*leaves)
        results.append([out, *torch.autograd.grad(out.square().sum(), leaves)])
    return [torch.equal(a, b) for a, b in zip(*results)]


def a_network():
    """A graph as it trains on a GPU: two convolutions with ReLU, one of them before a pooling, which adds the bias, and one alone."""
    x = mx.sym.var("x")
    for i, last in enumerate((mx.sym.relu, lambda y: mx.sym.Pooling(mx.sym.relu(y), kernel=(2, 2), stride=(2, 2), pool_type="max"), mx.sym.tanh)):
        x = last(mx.sym.Convolution(x, kernel=(3, 3), pad=(1, 1), num_filter=6, name=f"conv{i}"))
    module, plain = lowered(x), lowered(x)
    registry.prepare(module, torch.device("cuda"), training=True)
    fused = [node for node in module.graph.nodes if node.target is training_layers.add_bias]
    for node in fused:
        node.target = add_bias  # arrays of a processor are left to torch
    module.recompile()
    inputs, results = [numbers(2, 6, 9, 8), *(numbers(*shape) for _ in range(3) for shape in ((6, 6, 3, 3), (6,)))], []
    for graph in (module, plain):
        leaves = [t.clone().requires_grad_() for t in inputs]
        out, = graph(*leaves)
        results.append([out, *torch.autograd.grad(out.square().sum(), leaves)])
    return [len(fused) == 2, *(torch.allclose(a, b, rtol=1e-4, atol=1e-5) for a, b in zip(*results))]


def smoke_tests():
    """The tests of the first use run."""
    return [test() is None for dtype in channel_kernels.TYPES for test in kernels.smoke_tests(torch.device("cpu"), dtype)]


OTHERS = {f.__name__: f for f in (nan_and_infinity, only_what_is_needed, gradient_in_another_order, second_derivatives, the_same_at_each_run,
                                  overwritten_results, recomputed, a_network, smoke_tests)}


def main():
    """Write what each case differs in, as JSON."""
    repair_interpreter()
    used_from(pytest.MonkeyPatch(), 0, channel_kernels)
    found = {"as large GPUs are shared": faults(*biased((4, 130, 23, 29), "float32", True), TOLERANCES["float32"], ROUNDED)}
    channel_kernels.PARTS, channel_kernels.PROGRAMS = 16, (4, 3)  # few programs with several tiles each, as many take the interpreter long
    for dtype, size, relu in CASES:
        found[name_of((dtype, size, relu))] = faults(*biased(SIZES[size], dtype, relu), TOLERANCES[dtype], ROUNDED)
    torch.manual_seed(0)
    found.update((name, other()) for name, other in OTHERS.items())
    print(json.dumps(found))


def name_of(case):
    dtype, size, relu = case
    return f"{dtype}-{size}{'-relu' * relu}"


@needs_triton
def test_the_kernels_compute_what_torch_does_in_double_precision():
    """And at the edges; one test, so that one program computes all cases."""
    results = interpreted_results(__file__)
    assert set(results) == {*map(name_of, CASES), "as large GPUs are shared", *OTHERS}
    assert {case: faults for case, faults in results.items() if case not in OTHERS and faults != []} == {}
    assert {case: results[case] for case in OTHERS if not results[case] or results[case] != [True] * len(results[case])} == {}


WRONG = {"channels first": {"data": torch.zeros(2, 64, 16, 16)}, "double": {"data": torch.zeros(2 * 256, 64).double()},
         "empty": {"data": torch.zeros(0, 64)}, "small": {"data": torch.zeros(2, 64)}, "three axes": {"data": torch.zeros(2, 64, 256)},
         "short": {"bias": torch.ones(1)}, "expanded": {"bias": torch.ones(1).expand(64)}, "strided": {"bias": torch.ones(128)[::2]},
         "integers": {"bias": torch.ones(64).long()}, "two axes": {"bias": torch.ones(64, 1)}}


@pytest.mark.parametrize("name", WRONG)
def test_what_does_not_fit_is_left_to_torch(name, monkeypatch):
    asked = []
    monkeypatch.setattr(kernels, "available", lambda device, dtype: asked.append(dtype))
    arguments = {"data": arranged(torch.zeros(2, 64, 16, 16)), "bias": torch.ones(64)}
    assert add_bias(**arguments) is None and asked == [torch.float32]
    assert add_bias(**{**arguments, **WRONG[name]}) is None and len(asked) == 1


if __name__ == "__main__":
    main()
