"""The GPU's maximum pooling without a GPU: this file run as a program computes it in Triton's interpreter, which is chosen when triton is imported.

Real GPUs are compared in tests/gpu/test_training.py.
"""
import itertools
import json
import types

import pytest
import torch
from torch.utils import checkpoint

from kernel_limits import used_from
from max_pooling_checks import WINDOWS, pooling_faults, torchs
from mxnet.kernels.nn import max_pooling, max_pooling_on_gpu
from mxnet.kernels.nn.max_pooling_on_gpu import KERNEL, TORCH, Window, kernels, max_pool2d
from mxnet.kernels.runtime import channel_kernels, measurement, tuning
from mxnet.ops.nn import training_layers
from triton_programs import interpreted_results, needs_triton, repair_interpreter

SIZES = {"odd channels": (2, 7, 13, 9), "one channel": (3, 1, 8, 11), "several tiles": (1, 70, 8, 9)}
FEW = ["2x2", "overlapping", "gaps, beyond the data"]
CASES = [*itertools.product(["float32"], SIZES, WINDOWS, ["alone"]), *itertools.product(["float16", "bfloat16"], ["odd channels"], FEW, ["alone"]),
         *itertools.product(["float32", "float16", "bfloat16"], SIZES, FEW, ["bias", "bias and relu"])]
PLAIN = WINDOWS["overlapping"]


def numbers(*shape):
    return torch.randn(*shape).contiguous(memory_format=torch.channels_last)


def gradient_in_another_order():
    """Gradients that come with their channels first, or as one number, are put in order."""
    x, results = numbers(2, 3, 9, 8), []
    for dout in (torch.randn(2, 3, 5, 4), torch.ones(()).expand(2, 3, 5, 4), numbers(2, 3, 4, 5).transpose(2, 3)):
        leaves = [x.clone().requires_grad_() for _ in range(2)]
        for pool, leaf in zip((max_pool2d, torchs), leaves):
            pool(leaf, PLAIN).backward(dout)
        results.append(torch.allclose(leaves[0].grad, leaves[1].grad, atol=1e-6))
    return results


def second_derivatives():
    """Gradients of gradients are torch's: as a penalty of gradients needs them."""
    values, results = numbers(2, 3, 9, 8), []
    for window, biased, relu in [*((window, False, False) for window in WINDOWS.values()), (PLAIN, True, False), (PLAIN, True, True)]:
        penalties = []
        for ours in (True, False):
            x = values.to(torch.float32 if ours else torch.float64).requires_grad_()
            bias = torch.tensor([-1, 0, 1], dtype=x.dtype, requires_grad=True) if biased else None
            out = (max_pool2d if ours else torchs)(x * x, window, bias, relu)
            dout = torch.linspace(-1, 1, out.numel(), dtype=x.dtype).view(out.shape).requires_grad_()
            first = torch.autograd.grad(out ** 2, [x, bias][:1 + biased], dout, create_graph=True)
            penalties.append([*first, *torch.autograd.grad(sum((g ** 2).sum() for g in first), [x, dout])])
        results += [torch.allclose(a.double(), b, rtol=1e-4, atol=1e-4) for a, b in zip(*penalties, strict=True)]
    return results


def only_what_is_needed():
    """Gradients that nobody asks for are not computed."""
    results = []
    for needs in ((True, False), (False, True), (True, True)):
        x, bias = (t.requires_grad_(need) for t, need in zip((numbers(2, 3, 8, 8), torch.zeros(3)), needs))
        max_pool2d(x, PLAIN, bias, True).sum().backward()
        results += [(t.grad is not None) is need for t, need in zip((x, bias), needs)]
        gradients = torch.autograd.grad(max_pool2d(x, PLAIN, bias, True).sum(), [t for t in (x, bias) if t.requires_grad], create_graph=True)
        results += [torch.allclose(a, b) for a, b in zip(gradients, (t.grad for t in (x, bias) if t.requires_grad), strict=True)]
    return results


def sums_in_single_precision():
    """Gradients of half precision are added in float32, and rounded once."""
    x = torch.zeros(1, 1, 5, 5, dtype=torch.float16)
    x[0, 0, 2, 2] = 1
    leaf = x.requires_grad_()
    dout = torch.tensor([2048.0, *[1.0] * 8], dtype=torch.float16).view(1, 1, 3, 3)
    max_pool2d(leaf, Window((3, 3), (1, 1), (0, 0), False)).backward(dout)
    return [leaf.grad[0, 0, 2, 2].item() == 2056]


def saves_a_byte_for_each_result():
    out = max_pool2d(numbers(2, 8, 8, 8).requires_grad_(), WINDOWS["2x2"])
    saved, = out.grad_fn.saved_tensors
    return [saved.dtype is torch.uint8, saved.shape == out.shape]


def recomputed():
    """A part that is computed again in backward has the same gradients."""
    x, results = numbers(2, 3, 8, 9), []
    for again in (False, True):
        leaf = x.clone().requires_grad_()

        def part(data):
            return max_pool2d(data * 2, PLAIN) * 3

        out = checkpoint.checkpoint(part, leaf, use_reentrant=False) if again else part(leaf)
        results.append([out, *torch.autograd.grad(out.square().sum(), leaf)])
    return [torch.equal(a, b) for a, b in zip(*results)]


def smoke_tests():
    """The tests of the first use run."""
    return [test() is None for dtype in channel_kernels.TYPES for window in (PLAIN, WINDOWS["gaps"]) for channels in (1, 20, 64)
            for behind in ((None, False), (torch.float32, False), (dtype, True))
            for test in kernels.smoke_tests(torch.device("cpu"), dtype, window, channels, *behind)]


OTHERS = {f.__name__: f for f in (gradient_in_another_order, second_derivatives, only_what_is_needed, sums_in_single_precision,
                                  saves_a_byte_for_each_result, recomputed, smoke_tests)}


def main():
    """Write what each case differs in, as JSON."""
    repair_interpreter()
    used_from(pytest.MonkeyPatch(), 0, channel_kernels)
    results = {name_of(case): pooling_faults(max_pool2d, SIZES[size], dtype, WINDOWS[window], "bias" in behind, "relu" in behind)
               for case in CASES for dtype, size, window, behind in [case]}
    torch.manual_seed(0)
    results.update((name, other()) for name, other in OTHERS.items())
    print(json.dumps(results))


def name_of(case):
    return "-".join(case)


@needs_triton
def test_the_kernels_compute_what_torch_does():
    """And at the edges; one test, so that one program computes all cases."""
    results = interpreted_results(__file__)
    assert set(results) == {*map(name_of, CASES), *OTHERS}
    assert {case: faults for case, faults in results.items() if case not in OTHERS and faults != []} == {}
    assert {case: results[case] for case in OTHERS if not results[case] or results[case] != [True] * len(results[case])} == {}


@pytest.mark.parametrize("ceil", [False, True])
def test_the_number_of_windows_is_torchs(ceil):
    for size, k, s, p in itertools.product(range(1, 9), range(1, 6), range(1, 5), range(3)):
        if 2 * p <= k <= size + 2 * p:
            expected = torch.max_pool2d(torch.zeros(1, 1, size, size), k, s, p, 1, ceil).shape[2:]
            assert Window((k, k), (s, s), (p, p), ceil).counts((size, size)) == list(expected)


LAST = numbers(2, 64, 16, 16)
WRONG = {"channels first": (LAST.contiguous(), PLAIN), "double": (LAST.double(), PLAIN), "small": (numbers(2, 64, 4, 4), PLAIN),
         "large windows": (LAST, Window((8, 8), (2, 2), (0, 0), False)), "far apart": (LAST, Window((2, 2), (8, 8), (0, 0), False)),
         "mostly padding": (LAST, Window((2, 2), (2, 2), (2, 2), False)), "beyond the data": (LAST, Window((1, 20), (1, 2), (0, 0), False)),
         "too many pixels": (torch.empty(1 << 30, 1, 1, 2, device="meta"), Window((1, 2), (1, 1), (0, 1), False)),
         "two axes": (torch.zeros(2 * 256, 64), PLAIN)}


@pytest.mark.parametrize("name", WRONG)
def test_what_does_not_fit_is_left_to_torch(name, monkeypatch):
    asked = []
    monkeypatch.setattr(kernels, "available", lambda device, dtype, *variant: asked.append((dtype, *variant)))
    assert max_pool2d(LAST, PLAIN) is None and asked == [(torch.float32, PLAIN, 64, None, False)]
    assert max_pool2d(*WRONG[name]) is None and len(asked) == 1


@pytest.mark.parametrize("bias", [torch.ones(1), torch.ones(64).long(), torch.ones(128)[::2], torch.ones(64, 1)])
def test_a_bias_that_does_not_fit_is_left_to_torch(bias, monkeypatch):
    asked = []
    monkeypatch.setattr(kernels, "available", lambda device, dtype, *variant: asked.append(variant))
    assert max_pool2d(LAST, PLAIN, torch.ones(64).half(), True) is None and asked == [(PLAIN, 64, torch.float16, True)]
    assert max_pool2d(LAST, PLAIN, bias) is None and len(asked) == 1


@pytest.mark.parametrize("channels, alike", [(1, 1), (7, 7), (64, 64), (96, 64), (100, 68), (512, 64)])
def test_numbers_of_channels_share_what_is_compiled(channels, alike, monkeypatch):
    asked = []
    monkeypatch.setattr(kernels, "available", lambda device, dtype, *variant: asked.append(variant))
    max_pool2d(numbers(1, channels, 128, 128), PLAIN)
    assert asked == [(PLAIN, alike, None, False)]


class OnGPU(torch.Tensor):
    """A tensor that says it is on a GPU."""

    is_cuda = True
    __torch_function__ = torch._C._disabled_torch_function_impl


def test_only_training_on_a_gpu_asks_for_the_kernels(monkeypatch):
    """Where they return nothing torch computes."""
    asked = []
    monkeypatch.setattr(max_pooling_on_gpu, "max_pool2d", lambda data, window: asked.append(window))
    window = (3, 3), (2, 2), (1, 1), False
    for data in (LAST, LAST.clone().requires_grad_(), LAST.as_subclass(OnGPU)):
        assert max_pooling.max_pool2d(data, *window).shape == (2, 64, 8, 8)
    assert not asked
    with torch.no_grad():
        max_pooling.max_pool2d(LAST.clone().as_subclass(OnGPU).requires_grad_(), *window)
    assert not asked and max_pooling.max_pool2d(LAST.clone().as_subclass(OnGPU).requires_grad_(), *window).requires_grad
    assert asked == [Window(*window)]


@pytest.mark.parametrize("milliseconds, fastest", [((1.0, 2.0), KERNEL), ((2.0, 1.0), TORCH), ((1.0, 0.99), KERNEL)])
def test_the_faster_of_both_is_chosen_by_the_gpus_clock(milliseconds, fastest, monkeypatch):
    """Both have run before they are timed; a narrow lead is none, as the kernels need less memory."""
    ran, times = [], itertools.cycle(milliseconds)
    monkeypatch.setattr(kernels, "start", lambda name, *arguments: ran.append(name))
    monkeypatch.setattr(measurement, "gpu_milliseconds", lambda run: next(times))
    assert max_pooling_on_gpu.fastest(LAST, PLAIN) == fastest
    assert ran == ["max_pool", "max_pool_gradient"] and [next(times), next(times)] == list(milliseconds)


def test_without_memory_for_torchs_operator_the_kernels_run(monkeypatch):
    def start(*_):
        raise torch.OutOfMemoryError

    monkeypatch.setattr(kernels, "start", start)
    assert max_pooling_on_gpu.fastest(LAST, PLAIN) == KERNEL


def test_a_choice_counts_for_poolings_of_a_size(monkeypatch):
    """Nothing is timed in a capture, or where it is not allowed: then the kernels run."""
    timed, capturing, allowed = [], [True], [True]
    monkeypatch.setattr(max_pooling_on_gpu, "fastest", lambda data, window: timed.append(data.shape) or TORCH)
    monkeypatch.setattr(measurement, "cuda", types.SimpleNamespace(is_current_stream_capturing=lambda: capturing[0]))
    monkeypatch.setattr(tuning, "allowed", lambda: allowed[0])
    choices = max_pooling_on_gpu.Choices()

    def choice(count=2, window=PLAIN, tensor=OnGPU):
        return choices.choose(LAST[:1].expand(count, -1, -1, -1).as_subclass(tensor), window)

    assert choice() == KERNEL
    capturing[0], allowed[0] = False, False
    assert choice() == choice(tensor=torch.Tensor) == KERNEL and not timed
    allowed[0] = True
    assert [choice(), choice(), choice(3), choice(4), choice(window=WINDOWS["2x2"])] == [TORCH] * 5
    assert [shape[0] for shape in timed] == [2, 4, 2]
    capturing[0] = True
    assert choice() == TORCH
    monkeypatch.setattr(torch, "are_deterministic_algorithms_enabled", lambda: True)
    assert choice() == KERNEL


@pytest.mark.parametrize("relu", [False, True])
def test_the_layer_with_a_bias_is_its_operators_where_no_kernel_is(relu, monkeypatch):
    """On a GPU the kernels are asked first, with the attributes as torch has them."""
    asked = []
    monkeypatch.setattr(max_pooling_on_gpu, "max_pool2d", lambda *arguments: asked.append(arguments[1:]))
    bias = torch.linspace(-1, 1, 64)
    for attributes, window in (({"kernel": (3, 3), "stride": (2, 2), "pad": (1, 1)}, Window((3, 3), (2, 2), (1, 1), False)),
                               ({"kernel": (2, 2), "pooling_convention": "full"}, Window((2, 2), (1, 1), (0, 0), True))):
        for leaf in (LAST.clone().requires_grad_(), LAST.clone().as_subclass(OnGPU).requires_grad_()):
            out = training_layers.max_pool_with_bias(leaf, bias, relu, pool_type="max", **attributes)
            torch.testing.assert_close(out.as_subclass(torch.Tensor), torchs(LAST, window, bias, relu))
        assert asked[0][0] == window and asked[0][2] is relu and len(asked) == 2  # and by Pooling itself
        asked.clear()
    leaf = LAST.clone().as_subclass(OnGPU).requires_grad_()
    training_layers.max_pool_with_bias(leaf, bias, relu, kernel=(2, 2), stride=(1, 1, 5), pad=(0, 0, 0))
    assert asked == [(Window((2, 2), (1, 1), (0, 0), False),)]


if __name__ == "__main__":
    main()
