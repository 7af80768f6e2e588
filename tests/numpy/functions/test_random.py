"""mx.np.random: shapes, types, moments, gradients, errors."""
import collections
import itertools

import pytest

import mxnet as mx
from mxnet import autograd, np, npx


@pytest.fixture(autouse=True)
def numpy_semantics():
    npx.set_np()
    mx.random.seed(7)
    yield
    npx.reset_np()


# name, arguments, mean, standard deviation of the distribution
MOMENTS = [("uniform", (2, 4), 3.0, 0.57735), ("normal", (1.0, 2.0), 1.0, 2.0), ("exponential", (2.0,), 2.0, 2.0), ("gamma", (3.0, 2.0), 6.0, 3.4641),
           ("rayleigh", (1.0,), 1.25331, 0.65514), ("gumbel", (0.0, 1.0), 0.57722, 1.28255), ("logistic", (1.0, 0.5), 1.0, 0.9069),
           ("weibull", (2.0,), 0.88623, 0.46325), ("pareto", (5.0,), 0.25, 0.32275), ("power", (3.0,), 0.75, 0.19365),
           ("beta", (2.0, 3.0), 0.4, 0.2), ("chisquare", (4.0,), 4.0, 2.82843), ("lognormal", (0.0, 0.5), 1.13315, 0.6039)]


@pytest.mark.parametrize("name, arguments, mean, deviation", MOMENTS, ids=[m[0] for m in MOMENTS])
def test_moments(name, arguments, mean, deviation):
    x = getattr(np.random, name)(*arguments, size=(200, 100))
    assert x.shape == (200, 100) and x.dtype == "float32"
    assert x.mean().item() == pytest.approx(mean, abs=0.05 * deviation)
    assert x.std().item() == pytest.approx(deviation, rel=0.06)


def test_shapes_and_types():
    assert np.random.uniform().shape == () and np.random.normal(size=3).shape == (3,)
    assert np.random.normal(np.zeros((2, 1)), np.ones(3)).shape == (2, 3)
    assert np.random.uniform(np.zeros(2), 1.0, size=(4, 2), dtype="float64").dtype == "float64"
    assert npx.random.normal_n(np.zeros(2), 1.0, batch_shape=(5,)).shape == (5, 2)
    assert np.random.rand(2, 3).shape == np.random.randn(2, 3).shape == (2, 3)
    assert np.random.randint(3).shape == () and np.random.randint(2, 5, size=(2,)).dtype == "int64"
    assert np.random.multivariate_normal(np.zeros(2), np.eye(2), size=(3,)).shape == (3, 2)


@pytest.mark.parametrize("population, count", [(4, 4), (5, 2), (5, 3), (4, 3), (7, 2), (6, 1)])
@pytest.mark.parametrize("of", ["number", "array", "weights"])
def test_every_order_of_choice_without_replacement_is_as_likely(population, count, of):
    mx.random.seed(3)
    what = np.arange(population) if of == "array" else population
    weights = np.ones(population) / population if of == "weights" else None
    orders = list(itertools.permutations(range(population), count))
    drawn = [np.random.choice(what, count, replace=False, p=weights).asnumpy() for _ in range(40 * len(orders))]
    counts = collections.Counter(tuple(map(int, order)) for order in drawn)
    assert len(counts) == len(orders)
    chi_square = sum((counts[order] - 40) ** 2 / 40 for order in orders)
    freedom = len(orders) - 1
    assert abs(chi_square - freedom) < 4 * (2 * freedom) ** .5


def test_choice_multinomial_shuffle_bernoulli():
    assert sorted(np.random.choice(5, 5, replace=False).tolist()) == [0, 1, 2, 3, 4]
    assert np.random.choice(np.array([4.0, 5.0]), 3, p=np.array([0.0, 1.0])).tolist() == [5.0, 5.0, 5.0]
    counts = np.random.multinomial(10, [0.5, 0.5], size=3)
    assert counts.shape == (3, 2) and counts.sum(axis=1).tolist() == [10, 10, 10]
    x = np.arange(20)
    np.random.shuffle(x)
    assert sorted(x.tolist()) == list(range(20)) and x.tolist() != list(range(20))
    assert npx.random.bernoulli(prob=np.array([0.0, 1.0])).tolist() == [0.0, 1.0]


def test_gradient_flows_to_the_parameters():
    loc, scale = np.array([1.0]), np.array([2.0])
    loc.attach_grad()
    scale.attach_grad()
    with autograd.record():
        x = np.random.normal(loc, scale, size=(50, 1))
    x.backward()
    assert loc.grad.item() == 50.0
    assert scale.grad.item() == pytest.approx(((x - 1) / 2).sum().item(), rel=1e-4)


@pytest.mark.parametrize("draw, text", [
    (lambda: np.random.normal(0, -1, size=2), "`scale` must be at least 0"),
    (lambda: np.random.weibull(0, size=2), "`a` must be above 0"),
    (lambda: np.random.gamma(-1.0, size=2), "`shape` must be above 0"),
    (lambda: npx.random.bernoulli(prob=2.0), "`prob` must be at least 0 and at most 1"),
    (lambda: npx.random.bernoulli(prob=0.5, logit=0.5), "exactly one of prob and logit expected, received prob=0.5, logit=0.5"),
    (lambda: np.random.multinomial(2, [[0.5], [0.5]]), "pvals must be a vector"),
])
def test_bad_parameters(draw, text):
    with pytest.raises(ValueError, match=text):
        draw()


def test_laplace_and_f_have_their_moments():
    mx.np.random.seed(3)
    x = mx.np.random.laplace(1, 2, size=40000)
    assert abs(x.mean().item() - 1) < 0.05 and abs(x.std().item() - 2 * 2**0.5) < 0.08
    f = mx.np.random.f(4, 40, size=40000)
    assert abs(f.mean().item() - 40 / 38) < 0.05
    mx.np.random.seed(3)
    assert (mx.np.random.laplace(1, 2, size=40000) == x).all().item()
    with pytest.raises(mx.MXNetError, match="`scale` must be at least 0"):
        mx.np.random.laplace(0, -1)


def test_counts_of_many_distributions():
    n, p = np.array([4.0, 6.0]), np.array([[0.0, 1.0, 0.0], [0.5, 0.25, 0.25]])
    counts = npx.random.multinomial(n, p, shape=1000)
    assert counts.shape == (2, 1000, 3) and counts.dtype == "float32" and counts.sum(-1).min(1).tolist() == [4.0, 6.0]
    assert counts.mean(1).tolist() == [[0.0, 4.0, 0.0], pytest.approx([3.0, 1.5, 1.5], abs=0.15)]
    assert npx.random.multinomial(n, p).shape == (2, 3) and npx.random.multinomial(n, p, dtype="int32").dtype == "int32"
    with pytest.raises(mx.MXNetError, match=r"`p` must have the axes of `n`, and one more, received shapes \(2,\) and \(3,\)"):
        npx.random.multinomial(n, p[0])
