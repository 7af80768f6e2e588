"""Small fully connected layers in one call: what they compute, and what they refuse."""
import itertools
import random
import re

import pytest
import torch

from mxnet import MXNetError, kernels
from mxnet.kernels.gemm import fused_mlp, prepacked_skinny
from mxnet.kernels.gemm.fused_mlp import BETWEEN, MOST, FusedMLP, Layer, fits

needs_compiler = pytest.mark.skipif(kernels.load("gemm/prepacked_skinny") is None, reason="no C++ compiler")
WIDTHS = (1, 2, 5, 15, 16, 17, 31, 32, 33, 63, 64, 65, 100)


def layers(widths, bias=True, relu=True, seed=0):
    """Layers from each width to the next; `bias` and `relu` for all of them, or one after another."""
    generator = torch.Generator().manual_seed(seed)
    each = zip(itertools.pairwise(widths), *[itertools.cycle(v if isinstance(v, list) else [v]) for v in (bias, relu)])
    return [Layer(torch.randn(k, c, generator=generator) / c ** 0.5, torch.randn(k, generator=generator) if has_bias else None, rectified)
            for (c, k), has_bias, rectified in each]


def exact(data, layers, flatten=True):
    found = data.double()
    if flatten:
        found = found.flatten(1)
    for weight, bias, relu in layers:
        found = found @ weight.double().t() + (0 if bias is None else bias.double())
        found = found.clamp(min=0) if relu else found
    return found


def same(found, expected):
    assert found.dtype is torch.float32 and found.is_contiguous()
    torch.testing.assert_close(found.double(), expected, rtol=1e-5, atol=1e-5)


@needs_compiler
@pytest.mark.parametrize("seed", range(40))
def test_it_computes_as_exactly_as_single_precision_does(seed, monkeypatch):
    choice = random.Random(seed)
    monkeypatch.setattr(torch, "get_num_threads", lambda: seed % 3 + 1)
    count = seed % MOST + 1
    chosen = layers([choice.choice(WIDTHS) for _ in range(count + 1)], [choice.random() < 0.5 for _ in range(count)],
                    [choice.random() < 0.5 for _ in range(count)], seed)
    run = FusedMLP(chosen, True)
    for rows in choice.sample(range(1, 41), 4):  # other numbers of rows in turn, and the last one again
        for _ in range(2):
            data = torch.randn(rows, chosen[0].weight.shape[1])
            before = data.clone()
            same(run(data), exact(data, chosen))
            assert torch.equal(data, before)


@needs_compiler
@pytest.mark.parametrize("threads", [1, 2, 3])
def test_layers_that_threads_share(threads, monkeypatch):
    monkeypatch.setattr(torch, "get_num_threads", lambda: threads)
    chosen = layers([300, 500, 37, 400], True, [True, False, True])  # of 14 rows, so that the first and the last multiply two million times
    data = torch.randn(14, 300)
    same(FusedMLP(chosen, True)(data), exact(data, chosen))


@needs_compiler
@pytest.mark.parametrize("shape, flatten, out", [
    ((2, 3, 4), True, (2, 6)), ((2, 3, 12), False, (2, 3, 6)), ((2, 2, 3, 2), True, (2, 6)), ((2, 3, 1, 12), False, (2, 3, 1, 6)),
    ((3, 12), False, (3, 6)), ((1, 1, 12), False, (1, 1, 6)), ((5, 12, 1, 1), True, (5, 6))])
def test_data_of_more_axes(shape, flatten, out):
    chosen = layers([12, 9, 6], True, [True, False])
    data = torch.randn(shape)
    found = FusedMLP(chosen, flatten)(data)
    assert found.shape == out
    same(found, exact(data, chosen, flatten))


@needs_compiler
@pytest.mark.parametrize("flatten, data", [
    (True, lambda: torch.randn(12, 5).t()), (True, lambda: torch.randn(10, 12)[::2]), (True, lambda: torch.randn(5, 24)[:, ::2]),
    (True, lambda: torch.randn(5, 4, 3).transpose(1, 2)), (False, lambda: torch.randn(5, 12, 2).transpose(1, 2)),
    (True, lambda: torch.randn(1, 12).expand(5, 12)), (False, lambda: torch.randn(3, 5, 12).transpose(0, 1))])
def test_data_that_is_not_contiguous(flatten, data):
    chosen, data = layers([12, 9, 6]), data()
    run = FusedMLP(chosen, flatten)
    same(run(data), exact(data, chosen, flatten))
    same(run(data.contiguous()), exact(data, chosen, flatten))


@needs_compiler
def test_weights_and_biases_that_are_not_contiguous():
    wide = torch.randn(12, 18)
    chosen = [Layer(wide[:, ::2].t(), torch.randn(18)[::2], True), Layer(torch.randn(4, 9), None, False)]
    data = torch.randn(3, 12)
    same(FusedMLP(chosen, True)(data), exact(data, chosen))


@needs_compiler
def test_it_keeps_what_the_weights_were():
    chosen = layers([12, 9, 6])
    data = torch.randn(3, 12)
    run, expected = FusedMLP(chosen, True), exact(data, chosen)
    for layer in chosen:
        layer.weight.zero_()
        layer.bias.zero_()
    same(run(data), expected)


@needs_compiler
def test_numbers_that_are_none_stay_in_their_row():
    chosen = layers([12, 40, 7], True, [True, False])
    data = torch.ones(3, 12)
    data[1, 3] = float("nan")
    found = FusedMLP(chosen, True)(data)
    assert found[1].isnan().all()
    same(found[[0, 2]], exact(data[[0, 2]], chosen))
    infinite = [Layer(torch.full((1, 2), 3.0), None, True)]
    assert FusedMLP(infinite, True)(torch.tensor([[float("inf"), 1], [-float("inf"), 1]])).tolist() == [[float("inf")], [0]]


@needs_compiler
def test_each_call_has_a_result_of_its_own():
    run = FusedMLP(layers([12, 9, 6]), True)
    first = run(torch.ones(2, 12))
    before = first.clone()
    run(torch.zeros(2, 12))
    assert torch.equal(first, before)


@needs_compiler
def test_as_many_numbers_between_layers_as_there_is_room_for(monkeypatch):
    chosen = layers([3, BETWEEN // 4, 5, BETWEEN // 4, 2])
    run, data = FusedMLP(chosen, True), torch.randn(4, 3)
    assert fits(4, chosen) and not fits(5, chosen) and not fits(0, chosen)
    same(run(data), exact(data, chosen))
    with pytest.raises(MXNetError, match=rf"kernel gemm/prepacked_skinny.chain_float32: n \* max\(.*\) <= {BETWEEN} does not hold for .*n=5, c=3"):
        run(torch.randn(5, 3))
    same(run(data), exact(data, chosen))  # what was refused leaves nothing behind
    assert not fits(1, layers([1] * (MOST + 2))) and fits(1, layers([1] * (MOST + 1)))
    monkeypatch.setattr(prepacked_skinny, "available", lambda: False)
    assert not fits(4, chosen)


@needs_compiler
@pytest.mark.parametrize("data, said", [
    (torch.ones(3, 5), r"`panels` must be float32 (cells) for "),
    (torch.ones(3, 4).double(), r"`rows` must be float32 (n, c) on a CPU, received float64 (3, 4)"),
    (torch.ones(3, 4, device="meta"), r"`rows` must be float32 (n, c) on a CPU, received float32 (3, 4) with strides (4, 1) on meta"),
    (torch.ones(0, 4), "min(n, c, k1) >= 1 does not hold for "),
    (torch.ones(3, 2, 3), r"`panels` must be float32 (cells) for ")], ids=["width", "type", "device", "no rows", "width of all axes"])
def test_what_does_not_fit_is_refused(data, said):
    run = FusedMLP(layers([4, 9, 6]), True)
    for _ in range(2):
        with pytest.raises(MXNetError, match=re.escape(f"kernel gemm/prepacked_skinny.chain_float32: {said}")):
            run(data)
        assert run(torch.ones(3, 4)).shape == (3, 6)


@needs_compiler
@pytest.mark.parametrize("integers, cells, columns, said", [
    ([9, 0, 6, 0, 0, 0, 0, 0, 0], 128, 64, "k2 > 0 or k3 == 0 does not hold for "),
    ([9, -6, 0, 0, 0, 0, 0, 0, 0], 128, 32, "min(k1, k2, k3, k4, k5, k6, k7, k8) >= 0 does not hold for "),
    ([9, 6, 0, 0, 0, 0, 0, 0, 256], 416, 64, "0 <= relu_mask < 256 does not hold for "),
    ([9, 6, 0, 0, 0, 0, 0, 0, -1], 416, 64, "0 <= relu_mask < 256 does not hold for "),
    ([9, 40, 0, 0, 0, 0, 0, 0, 0], 416, 64, "`panels` must be float32 (cells) for "),
    ([9, 6, 0, 0, 0, 0, 0, 0, 0], 416, 32, "`bias` must be float32 (columns) for "),
    ([9, 6, 0, 0, 0, 0, 0, 0], 416, 64, "it takes 3 arrays and 9 integers, received 3 and 8")])
def test_the_contract_rejects_wrong_sizes(integers, cells, columns, said):
    with pytest.raises(MXNetError, match=re.escape(f"kernel gemm/prepacked_skinny.chain_float32: {said}")):
        fused_mlp._fused_mlp((torch.ones(3, 4), torch.ones(cells), torch.ones(columns)), integers)


@needs_compiler
@pytest.mark.parametrize("dtype", [torch.float64, torch.float16])
def test_torchs_default_type_changes_nothing(dtype):
    chosen, data = layers([4, 9, 6]), torch.ones(3, 4)
    run = FusedMLP(chosen, True)
    torch.set_default_dtype(dtype)
    try:
        found = run(data)
    finally:
        torch.set_default_dtype(torch.float32)
    same(found, exact(data, chosen))


@pytest.mark.skipif(any(kernels.load(name) is None for name in ("gemm/prepacked_skinny", "runtime/denormals")), reason="no C++ compiler")
@pytest.mark.parametrize("rows, heavy", [(1, False), (8, True)])
def test_denormal_numbers_of_many_multiplications_count_as_zero(rows, heavy):
    run = FusedMLP([Layer(torch.ones(1024, 4096), None, False)], True)
    for _ in range(2):
        found = run(torch.full((rows, 4096), 1e-40))
        assert (found == 0).all() if heavy else (found > 4e-37).all()


@needs_compiler
def test_it_is_told_by_the_operators_name():
    assert FusedMLP(layers([4, 2]), True).__name__ == "FullyConnected"
