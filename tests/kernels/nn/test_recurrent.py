"""The kernel of recurrent layers, its gradients, and what it leaves to torch."""
import warnings

import numpy as np
import pytest
import torch

import mxnet as mx
from kernel_limits import used_from
from mxnet import kernels
from mxnet.kernels.gemm import matmul
from mxnet.kernels.nn import recurrent

pytestmark = pytest.mark.skipif(kernels.load("nn/recurrent") is None, reason="no C++ compiler")


MODES = {"lstm": 4, "gru": 3, "rnn_tanh": 1, "rnn_relu": 1}  # with their gates
BRIEF = pytest.mark.skipif(not recurrent._KERNELS["lstm"][0].available(T="bfloat16"), reason="no instructions for bfloat16")


def arrays(steps, batch, width, size, layers=1, directions=1, scale=1.0, mode="lstm", projection=None):
    """Data, states, and the cells' weights and biases, in double precision."""
    random = np.random.RandomState(0)

    def numbers(*shape, scale=scale):
        return torch.from_numpy(random.normal(size=shape) * scale)
    rows = MODES[mode] * size
    out = projection or size
    cells = [[numbers(rows, width if layer == 0 else out * directions, scale=scale * width ** -0.5), numbers(rows, out, scale=out ** -0.5),
              numbers(rows), numbers(rows), *([numbers(projection, size, scale=size ** -0.5)] if projection else [])]
             for layer in range(layers) for _ in range(directions)]
    return numbers(steps, batch, width), [numbers(layers * directions, batch, n) for n in (out, size)[:2 if mode == "lstm" else 1]], cells


def on_torch(mode, data, states, cells, layers, directions, counts=None):
    flat, hidden = [t for cell in cells for t in cell], states if mode == "lstm" else states[0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a projection is nothing for oneDNN
        if counts is None:
            out, *last = getattr(torch._VF, mode)(data, hidden, flat, True, layers, 0.0, False, directions == 2, False)
        else:
            out, *last = getattr(torch._VF, mode)(data, counts, hidden, flat, True, layers, 0.0, False, directions == 2)
    return out, tuple(last)


def in_single(data, states, cells, dtype=torch.float32):
    return data.to(dtype), [t.to(dtype) for t in states], [[t.to(dtype) for t in cell] for cell in cells]


def gradients(function, mode, data, states, cells, *more, heads=(0, 1, 2)):
    """The gradients of all inputs for heads drawn at random; `heads` says which of output, hidden and cell state have one."""
    inputs = [t.requires_grad_() for t in (data, *states, *(t for cell in cells for t in cell))]
    out, last = function(mode, data, states, cells, *more)
    random = np.random.RandomState(1)
    results = [(out, *last)[i] for i in heads]
    return torch.autograd.grad(results, inputs, [torch.from_numpy(random.normal(size=tuple(r.shape))).to(r.dtype) for r in results])


@pytest.fixture(params=[1, 3])
def threads(request, monkeypatch):
    used_from(monkeypatch, 0, recurrent)
    monkeypatch.setattr(torch, "get_num_threads", lambda: request.param)


# steps, batch, width, size, layers, directions
SHAPES = {"one row": (5, 1, 7, 64, 1, 1), "two rows": (4, 2, 32, 32, 1, 1), "three rows, both directions": (4, 3, 5, 96, 2, 2),
          "the fewest that are packed": (3, 4, 8, 32, 1, 1), "tiles of several sizes": (3, 13, 40, 64, 1, 1),
          "many rows, both directions": (6, 29, 16, 160, 2, 2), "one step": (1, 7, 16, 32, 3, 1)}
# Numbers of units that are no whole number of vectors.
RAGGED = {"40 units": (3, 32, 8, 40, 2, 1), "one unit": (3, 5, 3, 1, 1, 1), "few rows, both directions": (3, 2, 5, 27, 2, 2),
          "one row, more than a panel": (4, 1, 3, 35, 1, 1), "half a panel": (3, 13, 9, 48, 1, 1), "blocks of threads": (2, 7, 4, 100, 1, 2)}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("shape", [*SHAPES, *RAGGED])
def test_it_computes_what_torch_computes_in_double_precision(shape, mode, threads):
    *sizes, layers, directions = (SHAPES | RAGGED)[shape]
    double = arrays(*sizes, layers, directions, mode=mode)
    single = in_single(*double)
    assert recurrent.suits(mode, *single, layers, directions)
    expected, last = on_torch(mode, *double, layers, directions)
    for recorded in (False, True):  # without a gradient to come, less is kept
        with torch.set_grad_enabled(recorded):
            out, found = recurrent.run(mode, *[single[0].requires_grad_(recorded), *single[1:]], layers, directions)
        for f, e in zip((out, *found), (expected, *last), strict=True):
            assert f.requires_grad is recorded
            torch.testing.assert_close(f.detach().double(), e, rtol=1e-5, atol=1e-5 * max(1.0, float(e.abs().max())))


@pytest.mark.parametrize("mode, heads", [("lstm", (0, 1, 2)), ("lstm", (2,)), *((mode, heads) for mode in MODES for heads in ((0, 1), (0,), (1,)))],
                         ids=str)
@pytest.mark.parametrize("shape", [*SHAPES, *RAGGED])
def test_its_gradients_are_those_in_double_precision(shape, mode, heads, threads):
    *sizes, layers, directions = (SHAPES | RAGGED)[shape]
    double = arrays(*sizes, layers, directions, mode=mode)
    single = in_single(*double)
    found = gradients(recurrent.run, mode, *single, layers, directions, heads=heads)
    for f, e in zip(found, gradients(on_torch, mode, *double, layers, directions, heads=heads), strict=True):
        torch.testing.assert_close(f.double(), e, rtol=1e-4, atol=1e-5 * max(1.0, float(e.abs().max())))


# steps, batch, width, size, layers, directions; the projection, and how many rows the steps have
MORE = {"one projected row": (5, 1, 7, 96, 1, 1, 32, None), "projected rows, both directions": (4, 13, 40, 64, 2, 2, 96, None),
        "one row for some time": (4, 2, 7, 64, 1, 1, None, [2, 2, 1, 1]), "three rows, both directions": (5, 3, 8, 32, 2, 2, None, [3, 2, 2, 1, 1]),
        "many rows, both directions": (6, 29, 16, 64, 2, 2, None, [29, 29, 17, 4, 4, 2]),
        "20 units, both directions": (4, 6, 5, 20, 1, 2, None, [6, 5, 2, 1]),
        "projected rows of their own lengths": (4, 9, 16, 64, 2, 2, 32, [9, 9, 5, 2])}


@pytest.mark.parametrize("mode, case", [(mode, case) for mode in MODES for case in MORE if mode == "lstm" or MORE[case][6] is None])
@pytest.mark.parametrize("dtype", [torch.float32, pytest.param(torch.bfloat16, marks=BRIEF), pytest.param("wide", marks=BRIEF)], ids=str)
def test_projections_and_lengths(case, mode, dtype, threads, monkeypatch):
    *sizes, layers, directions, projection, counts = MORE[case]
    if dtype == "wide":
        monkeypatch.setattr(recurrent, "_in_float32", lambda dtype: True)
        monkeypatch.setattr(recurrent, "_MANY", 8)
        dtype = torch.bfloat16
    double = arrays(*sizes, layers, directions, mode=mode, projection=projection)
    more = (layers, directions) if counts is None else (layers, directions, torch.tensor(counts))
    if counts is not None:
        double = torch.cat([rows[:n] for rows, n in zip(double[0], counts)]), *double[1:]
    low = in_single(*double, dtype=dtype)
    double = in_single(*low, dtype=torch.float64)  # the same numbers
    assert recurrent.suits(mode, *low, *more) is (dtype is torch.float32 or sizes[3] % 32 == 0)
    if dtype is torch.bfloat16 and sizes[3] % 32:
        return
    expected, expected_last = on_torch(mode, *double, *more)
    with torch.no_grad():
        out, last = recurrent.run(mode, *low, *more)
    heads = (0, 1, 2) if mode == "lstm" else (0, 1)
    found = gradients(recurrent.run, mode, *low, *more, heads=heads)
    gradient = gradients(on_torch, mode, *double, *more, heads=heads)
    near = {torch.float32: 2e-5, torch.bfloat16: 0.06}[dtype]
    for f, e in zip((out, *last), (expected, *expected_last), strict=True):
        assert f.dtype is dtype and float((f.double() - e).abs().max() / e.abs().max()) < near
    for f, e in zip(found, gradient, strict=True):
        assert f.dtype is dtype and (float((f.double() - e).norm() / e.norm()) < 2 * near or mode == "rnn_relu" and dtype is torch.bfloat16)


@pytest.mark.parametrize("reverse", [False, True])
def test_a_gradient_of_a_gradient_of_projected_rows_that_end_early(reverse, threads):
    counts, results = torch.tensor([3, 2, 1]), []
    double = arrays(3, 3, 8, 32, directions=2, projection=64)
    double = double[0].flatten(0, 1)[:6], *double[1:]
    for function, (data, states, cells) in ((recurrent.run, in_single(*double)), (on_torch, double)):
        data.requires_grad_()
        out, last = function("lstm", data, states, cells, 1, 2, counts)
        kept = last[0][1 if reverse else 0]
        first, = torch.autograd.grad((out * out).sum() + kept.sum() + last[1].sum(), data, create_graph=True)
        results.append((first.detach().double(), torch.autograd.grad((first * first).sum(), data)[0].double()))
    for f, e in zip(*results):
        torch.testing.assert_close(f, e, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("mode, case", [(mode, case) for mode in MODES for case in (*SHAPES, *RAGGED, *MORE)
                                        if mode == "lstm" or case not in MORE or MORE[case][6] is None])
@pytest.mark.parametrize("dtype", [torch.float32, pytest.param(torch.bfloat16, marks=BRIEF), pytest.param("wide", marks=BRIEF)], ids=str)
def test_weights_in_order_give_the_same_numbers(case, mode, dtype, threads, monkeypatch):
    *sizes, layers, directions, projection, counts = MORE[case] if case in MORE else (*(SHAPES | RAGGED)[case], None, None)
    if dtype != torch.float32 and sizes[3] % 32:
        pytest.skip("bfloat16 needs whole vectors")
    monkeypatch.setattr(matmul, "prefers_onednn_layout", lambda dtype: True)
    if dtype == "wide":
        monkeypatch.setattr(recurrent, "_in_float32", lambda dtype: True)
        monkeypatch.setattr(recurrent, "_MANY", 8)
        dtype = torch.bfloat16
    data, states, cells = in_single(*arrays(*sizes, layers, directions, mode=mode, projection=projection), dtype=dtype)
    more = (layers, directions)
    if counts is not None:
        data, more = torch.cat([rows[:n] for rows, n in zip(data, counts)]), (*more, torch.tensor(counts))
    ordered, near = recurrent.Ordered(), 1e-5 if dtype is torch.float32 else 0.02
    with torch.no_grad():
        expected, expected_last = recurrent.run(mode, data, states, cells, *more)
        for _ in range(2):  # made, and found again
            out, last = recurrent.run(mode, data, states, cells, *more, ordered=ordered)
            for f, e in zip((out, *last), (expected, *expected_last), strict=True):
                assert f.dtype is dtype
                torch.testing.assert_close(f.float(), e.float(), rtol=near, atol=near * max(1.0, float(e.abs().max())))
        for t in (t for cell in cells for t in cell[:2]):
            t.zero_()
        for cell in cells[:directions]:
            assert len(cell) == 4 or cell[4].any()
        still, _ = recurrent.run(mode, data, states, cells, *more, ordered=ordered)
    assert torch.equal(still, out)  # from what was made of the weights, not the weights


def test_counts_that_contradict_the_rows_stay_inside():
    kernel = recurrent._KERNELS["lstm"][0]
    for counts in ([9, -1, 1 << 40], [2, 5, 5], [-3, -3, -3], [2, 2, 2]):
        out = torch.full((5, 32), 7.0)
        kernel((torch.zeros(5, 128), torch.zeros(128, 32), None, None, None, torch.zeros(2, 32), torch.zeros(2, 32), out, torch.tensor(counts)),
               (3, 0, 0, 0))
        written = {9: 2, 2: 5 if counts[1:] == [2, 2] or counts[1] == 5 else 2, -3: 0}[counts[0]]
        assert int((out == 0).all(1).sum()) == written and int((out == 7).all(1).sum()) == 5 - written


def test_many_rows_are_multiplied_as_floats_where_these_are_faster(monkeypatch):
    seen = []

    def product(*given):
        seen.append({t.dtype for t in given})
        return given[0]
    for wide, count in ((False, 256), (True, 255), (True, 256)):
        monkeypatch.setattr(recurrent, "_in_float32", lambda dtype, wide=wide: wide and dtype is torch.bfloat16)
        for dtype in (torch.bfloat16, torch.float32):
            assert recurrent._multiply(product, torch.ones(count, 2, dtype=dtype), torch.ones(2, 2, dtype=dtype)).dtype is dtype
    assert seen == [{torch.bfloat16}, {torch.float32}] * 2 + [{torch.float32}] * 2


@BRIEF
@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("shape", SHAPES)
def test_bfloat16_is_as_near_as_its_digits(shape, mode, wide, threads, monkeypatch):
    monkeypatch.setattr(recurrent, "_in_float32", lambda dtype: wide)
    *sizes, layers, directions = SHAPES[shape]
    brief = in_single(*arrays(*sizes, layers, directions, mode=mode), dtype=torch.bfloat16)
    assert recurrent.suits(mode, *brief, layers, directions)
    double = in_single(*brief, dtype=torch.float64)  # the same numbers
    expected, last = on_torch(mode, *double, layers, directions)
    with torch.no_grad():
        out, found = recurrent.run(mode, *brief, layers, directions)
    for f, e in zip((out, *found), (expected, *last), strict=True):
        assert f.dtype is torch.bfloat16
        assert float((f.double() - e).abs().max() / e.abs().max()) < 0.06
    found = gradients(recurrent.run, mode, *brief, layers, directions, heads=(0, 1))
    for f, e in zip(found, gradients(on_torch, mode, *double, layers, directions, heads=(0, 1)), strict=True):
        assert f.dtype is torch.bfloat16
        assert float((f.double() - e).norm() / e.norm()) < 0.1 or mode == "rnn_relu"  # where rounding decides what a kink lets pass


@pytest.mark.parametrize("mode", ["lstm", "gru", "rnn_tanh"])
@pytest.mark.parametrize("scale", [1e-3, 30.0])
def test_the_functions_of_the_gates_far_and_near(scale, mode, threads):
    double = arrays(3, 2, 8, 32, scale=scale, mode=mode)
    out, last = recurrent.run(mode, *in_single(*double), 1, 1)
    expected, expected_last = on_torch(mode, *double, 1, 1)
    # Far from zero, it is the rounding of the sums that limits.
    rtol, atol = (2e-6, 1e-10 if mode == "lstm" else 1e-7) if scale < 1 else (1e-4, 1e-3)
    torch.testing.assert_close(out.double(), expected, rtol=rtol, atol=atol)
    torch.testing.assert_close(last[-1].double(), expected_last[-1], rtol=rtol, atol=atol)


@pytest.mark.parametrize("mode", MODES)
def test_infinity_saturates_and_nan_stays(mode, threads):
    data, states, cells = in_single(*arrays(1, 3, 4, 32, mode=mode))
    data[0, 0, 0], data[0, 1, 0] = float("nan"), float("inf")
    out, last = recurrent.run(mode, data, states, cells, 1, 1)
    expected, expected_last = on_torch(mode, data, states, cells, 1, 1)
    assert torch.isnan(out[0, 0]).all() and not torch.isnan(out[0, 2]).any()
    torch.testing.assert_close(out, expected, rtol=1e-5, atol=1e-6, equal_nan=True)
    torch.testing.assert_close(last[-1], expected_last[-1], rtol=1e-5, atol=1e-6, equal_nan=True)


@pytest.mark.parametrize("mode", MODES)
def test_gradients_can_be_taken_twice(mode, threads):
    data, states, cells = in_single(*arrays(3, 2, 8, 32, directions=2, mode=mode))
    data.requires_grad_()
    out, _ = recurrent.run(mode, data, states, cells, 1, 2)
    first = torch.autograd.grad(out.sum(), data, retain_graph=True)[0]
    assert torch.equal(first, torch.autograd.grad(out.sum(), data)[0])


@pytest.mark.parametrize("mode", MODES)
def test_a_gradient_of_a_gradient(mode, threads):
    double = arrays(3, 2, 8, 32, directions=2, mode=mode)
    results = []
    for function, (data, states, cells) in ((recurrent.run, in_single(*double)), (on_torch, double)):
        data.requires_grad_()
        out, last = function(mode, data, states, cells, 1, 2)
        first, = torch.autograd.grad((out * out).sum() + last[-1].sum(), data, create_graph=True)
        results.append((first.detach().double(), torch.autograd.grad((first * first).sum(), data)[0].double()))
    for f, e in zip(*results):
        torch.testing.assert_close(f, e, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("change", ["double precision", "size", "projected size", "projection", "empty", "counts", "small"])
def test_what_it_leaves_to_torch(change, monkeypatch):
    if change != "small":
        used_from(monkeypatch, 0, recurrent)
    projection = 24 if change == "projected size" else None
    dtype = torch.bfloat16 if change == "size" else torch.float32
    data, states, cells = in_single(*arrays(3, 2, 8, 24 if change == "size" else 32, projection=projection), dtype=dtype)
    if change == "double precision":
        data = data.double()
    if change == "projection":
        cells[0].append(cells[0][0])  # of another size than the state
    if change == "empty":
        data = data[:0]
    counts = torch.tensor([2.0, 2.0, 2.0]) if change == "counts" else None
    assert not recurrent.suits("lstm", data if counts is None else data.flatten(0, 1), states, cells, 1, 1, counts)


def test_the_kernel_is_chosen_by_what_torch_has_instead():
    def suits(mode, *sizes, counts=None):
        data, states, cells = in_single(*arrays(*sizes, mode=mode))
        return recurrent.suits(mode, data if counts is None else data.flatten(0, 1), states, cells, 1, 1, counts)
    whole, ragged = (48, 32, 8, 32), (48, 32, 8, 40)
    assert suits("lstm", *whole) and not suits("lstm", *ragged) and suits("lstm", 40, 20, 8, 200)  # oneDNN has LSTM
    assert all(suits(mode, *sizes) for mode in ("gru", "rnn_tanh") for sizes in (whole, ragged))  # and torch takes step by step
    assert suits("gru", 48, 1, 8, 40) and not suits("gru", 4, 1, 8, 40)
    assert suits("lstm", *ragged, counts=torch.full((48,), 32))


@pytest.mark.parametrize("layer", ["LSTM", "GRU", "RNN"])
def test_the_operator_runs_on_it(layer, monkeypatch):
    calls, run = [], recurrent.run
    monkeypatch.setattr(recurrent, "run", lambda *a: calls.append(1) or run(*a))
    layer = getattr(mx.gluon.rnn, layer)(256, num_layers=2)
    layer.initialize(mx.init.Uniform(0.1))
    x = mx.nd.random.uniform(shape=(4, 8, 256))
    with mx.autograd.record():
        out = layer(x)
    out.backward()
    assert len(calls) == 1
    monkeypatch.setattr(recurrent, "suits", lambda *a: False)
    np.testing.assert_allclose(out.asnumpy(), layer(x).asnumpy(), rtol=1e-5, atol=5e-6)  # sums of 512 in another order
    assert len(calls) == 1
