"""Contracts: the arguments they accept and reject, the texts of errors, and the cache of results."""
import pytest
import torch

from mxnet import MXNetError, kernels
from mxnet.kernels.nn import max_pooling, nms, roi_pooling
from mxnet.kernels.random import generators
from mxnet.kernels.runtime import contract
from mxnet.kernels.runtime.contract import Contract

OVERLAPS = nms._overlaps  # a kernel of two arrays
needs_compiler = pytest.mark.skipif(kernels.load("nn/nms") is None, reason="no C++ compiler")


@pytest.fixture
def declare():
    """Declare a contract that ends with the test."""
    declared = []
    yield lambda *args, **kwargs: declared.append(Contract(*args, **kwargs)) or declared[-1]
    for each in declared:
        contract._contracts.remove(each)


@pytest.fixture
def some(declare):
    return declare("some", {"data": "T (n, c) strided", "table": "T (c, 2 * n) optional", "images": "float32 (n, c, h, h) last optional"},
                integers=("step",), where={"half": "c // step"}, preconditions=("half >= 1",), work="n * c")


@pytest.mark.parametrize("table", [None, torch.ones(3, 4)])
def test_what_fits(some, table):
    names = some.check((torch.ones(3, 2).t(), table, None), (2,))
    assert {k: names[k] for k in ("n", "c", "step", "half", "T", "table")} == \
        {"n": 2, "c": 3, "step": 2, "half": 1, "T": "float32", "table": table is not None}


DATA = torch.ones(2, 3)


@pytest.mark.parametrize("arrays, integers, message", [
    ((None, None, None), (1,), r"`data` must be T \(n, c\) strided, received None"),
    ((DATA, None), (1,), "it takes 3 arrays and 1 integers, received 2 and 1"),
    ((DATA, None, None), (), "it takes 3 arrays and 1 integers, received 3 and 0"),
    ((torch.ones(2), None, None), (1,), r"`data` must be T \(n, c\) strided on a CPU, received float32 \(2,\) with strides \(1,\) on cpu"),
    ((torch.ones(2, 3, device="meta"), None, None), (1,), r"`data` must be .* received float32 \(2, 3\) with strides \(3, 1\) on meta"),
    ((DATA, torch.ones(3, 4).double(), None), (1,), r"`table` must be T \(c, 2 \* n\) optional on a CPU, received float64 \(3, 4\)"),
    ((DATA, torch.ones(4, 3).t(), None), (1,), r"`table` must be .* received float32 \(3, 4\) with strides \(1, 3\)"),
    ((DATA, torch.ones(1, 4).expand(3, 4), None), (1,), r"`table` must be .* received float32 \(3, 4\) with strides \(0, 1\)"),
    ((DATA, torch.ones(3, 5), None), (1,), r"`table` must be .* for step=1, T=float32, n=2, c=3, half=3, received float32 \(3, 5\)"),
    ((DATA, None, torch.ones(2, 3, 4, 5).contiguous(memory_format=torch.channels_last)), (1,), "`images` must be .* for .*h=4"),
    ((DATA, None, torch.ones(2, 3, 4, 4)), (1,), "`images` must be .* last optional on a CPU, received .* with strides"),
    ((DATA, None, None), (4,), "half >= 1 does not hold for step=4"),
    ((DATA, None, None), (0,), "half = c // step does not exist for step=0"),
    ((DATA, None, None), (1 << 40,), "`step` must lie within 32 bits, received 1099511627776"),
    ((DATA, None, None), (1.5,), "`step` must be a whole number, received 1.5"),
])
def test_what_does_not(some, arrays, integers, message):
    assert some.check(arrays, integers) is None
    with pytest.raises(MXNetError, match=f"^kernel some: {message}"):
        raise some.error(arrays, integers)


@pytest.mark.parametrize("wrong", [torch.ones(2, 3).to_sparse(), "text", [[1.0]], torch.ones(2, 3).numpy()], ids=lambda w: type(w).__name__)
def test_what_is_no_dense_tensor(some, wrong):
    assert some.check((wrong, None, None), (1,)) is None
    assert some.check((DATA, None, None), (1,)) is not None  # which looks like the sparse one
    with pytest.raises(MXNetError, match="kernel some: `data` must be a dense tensor of torch's own, received"):
        raise some.error((wrong, None, None), (1,))


def test_another_class_of_tensors(some):
    class Other(torch.Tensor):
        pass

    assert some.check((DATA, None, None), (1,)) is not None
    assert some.check((DATA.as_subclass(Other), None, None), (1,)) is None
    assert some.check((torch.nn.Parameter(DATA), None, None), (1,)) is not None


def test_little_work_is_not_worth_it(some):
    assert some.check((DATA, None, None), (1,), 6) is not None
    assert some.check((DATA, None, None), (1,), 7) is None


def test_it_checks_once_for_each_set_of_shapes(some, monkeypatch):
    asked, solve = [], some._solve
    monkeypatch.setattr(some, "_solve", lambda *a: asked.append(1) or solve(*a))
    for _ in range(3):
        some.check((torch.ones(2, 3), None, None), (1,))
        some.check((torch.ones(3, 2), None, None), (9,))  # an error is cached, too
    assert len(asked) == 2
    for arrays in ((torch.ones(4, 3), None, None), (torch.ones(2, 3).double(), None, None), (torch.ones(3, 2).t(), None, None),
                   (torch.ones(2, 3), torch.ones(3, 4), None)):
        some.check(arrays, (1,))
    some.check((torch.ones(2, 3), None, None), (2,))
    assert len(asked) == 7


def test_an_error_is_not_taken_for_that_of_an_equal_integer(some):
    assert some.check((DATA, None, None), (1.0,)) is None
    assert some.check((DATA, None, None), (1,)) is not None


def test_results_of_checks_do_not_fill_the_memory(some, monkeypatch):
    monkeypatch.setattr(contract, "_MOST_CHECKED", 5)
    for n in range(1, 30):
        assert some.check((torch.ones(n, 3), None, None), (1,))["n"] == n
    assert len(some._checked) <= 5


def test_a_wrong_declaration():
    with pytest.raises(ValueError, match=r"a: 'float32 n, c' declares no array"):
        contract._Array.parsed("a", "float32 n, c")


@needs_compiler
def test_a_kernel_called_with_what_it_cannot_take_is_an_error():
    with pytest.raises(MXNetError, match=r"kernel nn/nms.overlaps: `rhs` must be float32 \(m, 4\) for n=2, m=3, received float32 \(3, 5\)"):
        OVERLAPS((torch.ones(2, 4), torch.ones(3, 5)))
    with pytest.raises(MXNetError, match=r"kernel nn/max_pooling.forward: 0 <= pad_h < kernel_h does not hold"):
        max_pooling._forward((torch.ones(1, 1, 9, 9),), (2, 2, 1, 1, 2, 0, False))


@needs_compiler
def test_a_sparse_tensor_is_not_taken_for_the_dense_one_that_came_before():
    dense = torch.ones(1).as_strided((0, 4), (0, 0))
    assert OVERLAPS((dense, torch.ones(3, 4)))[0].shape == (0, 3)
    with pytest.raises(MXNetError, match="kernel nn/nms.overlaps: .*storage"):
        OVERLAPS((torch.ones(0, 4).to_sparse(), torch.ones(3, 4)))


@needs_compiler
def test_no_result_is_smaller_than_nothing():
    with pytest.raises(MXNetError, match=r"kernel random/generators.order: its result would be int64 \(n\) for n=-1"):
        generators._order((torch.zeros((generators.STATES + 2) * generators.ROW, dtype=torch.uint32),), (-1,), (0,))


@needs_compiler
def test_no_count_is_gone_through_for_an_empty_result():
    none = torch.zeros(0, dtype=torch.int64), torch.zeros(0, 2, 0), torch.zeros(0, 2, 3), torch.zeros(0, 1, 2, 2)
    gradient, = roi_pooling._weighted_backward(none, (contract._LARGEST,))
    assert gradient.shape == (contract._LARGEST, 1, 0, 3)


@needs_compiler
def test_results_are_made_as_declared():
    out, = OVERLAPS((torch.ones(2, 4), torch.ones(3, 4)))
    assert out.shape == (2, 3) and out.dtype is torch.float32


def test_where_nothing_compiles_there_is_no_plan(without_kernels):
    with without_kernels():
        assert OVERLAPS.plan((torch.ones(2, 4), torch.ones(3, 4))) is None
        with pytest.raises(MXNetError, match="kernel nn/nms.overlaps: it cannot run on this machine"):
            OVERLAPS((torch.ones(2, 4), torch.ones(3, 4)))


def test_of_a_flat_array_only_the_number_of_elements_counts(declare):
    one = declare("flat", {"data": "T (n) flat", "other": "float32 (n) flat optional"})
    assert one.check((torch.ones(2, 3), torch.ones(6)), ())["n"] == 6
    assert one.check((torch.ones(()), None), ())["n"] == 1
    assert one.check((torch.ones(2, 3), torch.ones(5)), ()) is None
    assert one.check((torch.ones(3, 2).t(), None), ()) is None
    assert "`other` must be float32 (n) flat optional for T=float32, n=6" in str(one.error((torch.ones(2, 3), torch.ones(5)), ()))
