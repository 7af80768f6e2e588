"""Drawing classes, different classes, and another order; the streams themselves are our own."""
import math

import numpy as np
import pytest
import torch

import mxnet as mx
from mxnet import MXNetError
from mxnet.kernels.random import generators as compiled
from mxnet.ops.random import choices

needs_compiler = pytest.mark.skipif(not compiled.available(), reason="no C++ compiler")
internal = mx.nd._internal
N = 20000


@pytest.fixture(autouse=True)
def seed():
    mx.random.seed(7)


class TestMultinomial:
    def test_shapes(self):
        one, two = mx.nd.array([0, 1]), mx.nd.array([[0, 1], [1, 0]])
        assert mx.nd.sample_multinomial(one).asnumpy().tolist() == [1]
        assert mx.nd.sample_multinomial(one, shape=3).asnumpy().tolist() == [1, 1, 1]
        y = mx.nd.sample_multinomial(two, shape=(1, 2))
        assert y.dtype == np.int32 and y.asnumpy().tolist() == [[[1, 1]], [[0, 0]]]
        assert mx.nd.sample_multinomial(mx.nd.ones((2, 3, 4)), dtype="float32").shape == (2, 3)

    def test_frequencies(self):
        y = mx.nd.sample_multinomial(mx.nd.array([0.2, 0.8]), shape=N).asnumpy()
        assert abs(y.mean() - 0.8) < 0.02

    def test_logarithms_carry_the_gradient(self):
        p = mx.nd.array([[0.25, 0.75], [1, 0]])
        p.attach_grad()
        with mx.autograd.record():
            classes, logarithms = mx.nd.sample_multinomial(p, get_prob=True)
        logarithms.backward()
        first = int(classes.asnumpy()[0])
        np.testing.assert_allclose(logarithms.asnumpy(), [np.log([0.25, 0.75][first]), 0], rtol=1e-5)
        np.testing.assert_allclose(p.grad.asnumpy(), [[4, 0] if first == 0 else [0, 4 / 3], [1, 0]], rtol=1e-5)

    def test_in_a_graph(self):
        s = mx.sym.sample_multinomial(mx.sym.Variable("p"), shape=(5,), get_prob=True)
        assert s.infer_shape(p=(2, 3))[1] == [(2, 5), (2, 5)]
        assert s.infer_type(p="float64")[1] == [np.int32, np.float64]

    def test_no_chance(self):
        with pytest.raises(MXNetError, match="_sample_multinomial"):
            mx.nd.sample_multinomial(mx.nd.array([-1, 2]))


@needs_compiler
@pytest.mark.parametrize("rows, classes, draws", [(1, 2000, 33), (40, 97, 5), (3, 1024, 1), (5, 700, 0), (2000, 1, 3)])
def test_classes_are_those_of_torch(rows, classes, draws):
    chances = torch.rand(rows, classes) * (torch.rand(rows, classes) > 0.3)
    chances[::2] /= chances[::2].sum(1, keepdim=True) + 1e-30
    chances[:, -1] += 1e-3
    numbers = torch.rand(rows, draws)
    found, right = compiled.classes(chances.t().contiguous().t(), numbers)
    assert right and torch.equal(found, choices._classes_on_torch(chances, numbers)[0])


@needs_compiler
@pytest.mark.parametrize("wrong", [-1e-3, float("nan")])
def test_many_chances_of_which_one_is_none(wrong):
    chances = torch.ones(30, 50)
    chances[29, 49] = wrong
    assert compiled.classes(chances, torch.rand(30, 2))[1] is False
    with pytest.warns(UserWarning, match="hold negative numbers, or nothing but zeros; probabilities are expected"):
        assert mx.nd.sample_multinomial(mx.nd.array(chances.numpy())).asnumpy().max() < 50
    chances[29] = 0
    assert compiled.classes(chances, torch.rand(30, 2))[1] is False


@pytest.mark.parametrize("row, counts", [([0, 0, 0], [0, 0, 100]), ([-0.2, 0.7, 0.5], [0, 54, 46]), ([float("nan"), 0.5, 0.5], [100, 0, 0]),
                                         ([-1.1, -0.4, -2], [0, 0, 100])])
def test_rows_without_probabilities_are_searched_as_mxnet_does(row, counts):
    mx.random.seed(1)
    with pytest.warns(UserWarning, match="probabilities are expected"):
        classes = mx.nd.sample_multinomial(mx.nd.array([[0.5, 0.5, 0], row]), shape=100).asnumpy()
    assert set(classes[0]) == {0, 1}
    mx.random.seed(1)
    with pytest.warns(UserWarning, match="probabilities are expected"):
        assert np.bincount(mx.nd.sample_multinomial(mx.nd.array(row), shape=100).asnumpy(), minlength=3).tolist() == counts


def test_shuffle_moves_rows():
    x = mx.nd.arange(40).reshape((20, 2))
    y = mx.nd.shuffle(x).asnumpy()
    assert (y[:, 1] - y[:, 0] == 1).all() and sorted(y[:, 0]) == list(range(0, 40, 2)) and (y != x.asnumpy()).any()


class TestUniqueZipfian:
    def test_classes(self):
        classes, tries = internal._sample_unique_zipfian(range_max=50, shape=(3, 20))
        assert classes.dtype == np.int64 and classes.shape == (3, 20) and tries.shape == (3,)
        for row, count in zip(classes.asnumpy(), tries.asnumpy()):
            assert len(set(row)) == 20 <= count and 0 <= row.min() and row.max() < 50

    def test_refusals(self):
        with pytest.raises(MXNetError, match=r"`shape` must be \(rows, classes\), received \(3,\)"):
            internal._sample_unique_zipfian(range_max=50, shape=(3,))
        with pytest.raises(MXNetError, match="5 different classes cannot be drawn out of 4"):
            internal._sample_unique_zipfian(range_max=4, shape=(1, 5))
        for shape in ((-1, 3), (3, -5)):
            with pytest.raises(MXNetError, match=r"`shape` must be \(rows, classes\), received"):
                internal._sample_unique_zipfian(range_max=50, shape=shape)
        for range_max in (-3, 0, 1 << 63):
            with pytest.raises(MXNetError, match="`range_max` must be an integer from 1 to 4503599627370496"):
                internal._sample_unique_zipfian(range_max=range_max, shape=(1, 1))

    def test_all_of_many_classes(self):
        """The last of them would be drawn after more than a hundred million others."""
        classes, tries = internal._sample_unique_zipfian(range_max=10**6, shape=(1, 10**6))
        assert np.array_equal(np.sort(classes.asnumpy()[0]), np.arange(10**6)) and 5e7 < tries.asnumpy()[0] < 1e9
        classes, tries = internal._sample_unique_zipfian(range_max=50, shape=(20000, 0))
        assert classes.shape == (20000, 0) and not tries.asnumpy().any()

    def test_both_ways_draw_alike(self):
        from mxnet.ops.random import choices
        mx.random.seed(5)
        found = []
        for draw in (choices._drawn, choices._raced):
            classes, tries = torch.zeros(4000, 4, dtype=torch.int64), torch.zeros(4000, dtype=torch.int64)
            draw(6, classes, tries)
            assert all(len(set(row)) == 4 for row in classes.tolist())
            found.append([*(classes == 0).double().mean(0).tolist(), tries.double().mean().item() / 10, tries.double().std().item() / 10])
        assert found[0][0] == pytest.approx(math.log(2) / math.log(7), abs=0.03)
        assert found[0] == pytest.approx(found[1], abs=0.04)
