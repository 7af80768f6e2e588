"""Fully connected layers that keep their weights in the order in which few rows read them."""
import pytest
import torch

from kernel_limits import used_from
from mxnet import MXNetError, kernels
from mxnet.kernels.gemm import prepacked_skinny
from mxnet.kernels.runtime import contract, libraries

needs_compiler = pytest.mark.skipif(kernels.load("gemm/prepacked_skinny") is None, reason="no C++ compiler")


def layer(k, c, **options):
    generator = torch.Generator().manual_seed(k * c)
    weight, bias = torch.randn(k, c, generator=generator), torch.randn(k, generator=generator)
    return prepacked_skinny.Dense(weight, bias, True, **options), weight, bias


@needs_compiler
@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("brief", [False, True], ids=["float32", "bfloat16"])
@pytest.mark.parametrize("k, c", [(1, 1), (5, 3), (31, 64), (32, 7), (33, 130), (100, 17), (64, 256), (40, 300)])
def test_it_multiplies_as_exactly_as_single_precision_does(k, c, brief, threads, monkeypatch):
    used_from(monkeypatch, 0, prepacked_skinny)
    monkeypatch.setattr(torch, "get_num_threads", lambda: threads)
    dense, weight, bias = layer(k, c, brief=brief)
    if brief:
        weight = weight.bfloat16()
    for n in (1, 2, 3, 4, 5, 8, 12, 13):
        data = torch.linspace(-1, 1, n * c).view(n, c)
        exact = data.double() @ weight.double().t() + bias.double()
        torch.testing.assert_close(dense(data).double(), exact, rtol=1e-5, atol=3e-5)


@needs_compiler
@pytest.mark.parametrize("brief", [False, True], ids=["float32", "bfloat16"])
def test_processors_without_wide_vectors_take_turns_at_pieces_of_a_panel(brief, monkeypatch, tmp_path):
    used_from(monkeypatch, 0, prepacked_skinny)
    monkeypatch.setattr(libraries, "FLAGS", [f for f in libraries.FLAGS if not f.startswith("-march")] + ["-mavx2", "-mfma"])
    monkeypatch.setenv("MXNET_HOME", str(tmp_path))
    clear()
    try:
        for k, c in ((33, 128), (40, 129), (70, 300)):
            dense, weight, bias = layer(k, c, brief=brief)
            for n in range(1, 13):
                data = torch.linspace(-1, 1, n * c).view(n, c)
                exact = data.double() @ (weight.bfloat16() if brief else weight).double().t() + bias.double()
                torch.testing.assert_close(dense(data).double(), exact, rtol=1e-5, atol=3e-5)
    finally:
        clear()


def clear():
    kernels.load.cache_clear()
    contract.forget()


@needs_compiler
def test_shapes_relu_and_no_bias(monkeypatch):
    used_from(monkeypatch, 0, prepacked_skinny)
    weight = torch.tensor([[1.0, 2, 3, 4], [-1, -1, -1, -1]])
    data = torch.arange(8.0).view(2, 2, 2)
    for brief in (False, True):
        assert prepacked_skinny.Dense(weight, None, True, True, brief)(data).tolist() == [[20, 0], [60, 0]]
    assert prepacked_skinny.Dense(weight[:, :2], torch.ones(2), False)(data).tolist() == [[[3, 0], [9, -4]], [[15, -8], [21, -12]]]
    assert prepacked_skinny.Dense(weight, None, True)(data.transpose(1, 2)).shape == (2, 2)


@needs_compiler
def test_numbers_that_are_none_stay_in_their_row(monkeypatch):
    used_from(monkeypatch, 0, prepacked_skinny)
    dense, weight, _ = layer(40, 8, brief=True)
    data = torch.ones(3, 8)
    data[1, 3] = float("nan")
    found = dense(data)
    assert found[1].isnan().all() and not found[[0, 2]].isnan().any()
    weight[5, 2] = float("inf")
    found = prepacked_skinny.Dense(weight, None, True, brief=True)(torch.ones(1, 8))[0]
    assert found[5] == float("inf") and found.isfinite().sum() == 39


def test_small_weights_and_many_rows_are_left_to_others(monkeypatch):
    monkeypatch.setattr(prepacked_skinny._pack, "plan", None)
    dense, weight, bias = layer(4, 6)
    torch.testing.assert_close(dense(torch.ones(2, 6)), weight.sum(1).expand(2, 4) + bias)
    used_from(monkeypatch, 0, prepacked_skinny)
    torch.testing.assert_close(dense(torch.ones(13, 6)), weight.sum(1).expand(13, 4) + bias)


@needs_compiler
def test_panels_of_another_size_are_refused():
    with pytest.raises(MXNetError, match=r"`panels` must be T \(cells\) for .*cells=256, k=33, received float32 \(128,\)"):
        prepacked_skinny._multiply((torch.ones(1, 4), torch.ones(32 * 4), torch.ones(33)))
