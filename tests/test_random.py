import hashlib
import subprocess

import numpy as np
import pytest

import mxnet as mx
from forked import python
from mxnet import nd
from mxnet.gluon import nn

R, np_random = nd.random, mx.np.random


def draw(ctx=None):
    return mx.random.uniform(shape=(5,), ctx=ctx).asnumpy().tolist()


def test_seeds_repeat():
    mx.random.seed(7)
    first = draw(), draw()
    mx.random.seed(np.int64(7))
    assert (draw(), draw()) == first
    mx.random.seed(8)
    assert draw() != first[0]
    mx.random.seed(-1)
    mx.random.seed(2 ** 70)


def test_processors_share_their_generators():
    a, b = mx.cpu(0), mx.cpu(1)
    mx.random.seed(7)
    first = draw(a), draw(a)
    mx.random.seed(7)
    assert (draw(a), draw(b)) == first
    mx.random.seed(7, ctx=b)
    assert draw(a) == first[0]  # what draws from the states cannot tell; the single generator can:
    mx.random.seed(7)
    single = mx.np.random.uniform(size=3).tolist()
    mx.random.seed(7, ctx=b)
    assert mx.np.random.uniform(size=3).tolist() != single


@pytest.mark.parametrize("value", ["a", 3.5, None])
def test_seeds_are_integers(value):
    with pytest.raises(ValueError, match="seed_state must be int"):
        mx.random.seed(value)


def test_contexts_are_contexts():
    with pytest.raises(TypeError, match="expected a Context"):
        mx.random.seed(1, ctx=3)


def dropped(shape, p, dtype="float32", **kwargs):
    x = nd.ones(shape, dtype=dtype)
    with mx.autograd.record():
        return nd.Dropout(x, p=p, **kwargs)


# Each line of MXNet 1.9.1 after the ones before it, and mx.random.seed(1234) before the first.
SEQUENCE = [
    (lambda: R.uniform(-0.3, 2.7, shape=5), [1.4240396, -0.189814135, 1.28135824, 1.43013763, 2.68888402]),
    (lambda: R.uniform(shape=3, dtype='float64'), [0.49392725779647473, 0.8269394754144338, 0.7088439783318273]),
    (lambda: R.uniform(shape=3, dtype='float16'), [0.9307, 0.1121, 0.8955]),
    (lambda: R.uniform(nd.array([0, 10]), nd.array([2, 12]), shape=2), [0.195918038, 0.310779363, 10.7847824, 10.9761295]),
    (lambda: R.normal(1.3, 0.7, shape=5), [0.962115228, 1.3284471, 0.808292508, 2.29261303, 1.47294509]),
    (lambda: R.normal(shape=3, dtype='float64'), [-0.5088834234668975, -2.325990310625217, -0.8194471912100936]),
    (lambda: R.randn(2, 2), [0.0465486497, 0.232328191, -1.73339641, 1.072487]),
    (lambda: R.gamma(0.5, 2, shape=4), [0.0820981413, 0.163233876, 1.07316267, 5.7900095]),
    (lambda: R.gamma(9, 2, shape=3), [13.4401188, 19.1171951, 25.7500229]),
    (lambda: R.exponential(0.5, shape=4), [0.525504172, 0.447020382, 0.535057962, 1.18728924]),
    (lambda: R.poisson(3, shape=6), [1.0, 2.0, 4.0, 3.0, 2.0, 6.0]),
    (lambda: R.poisson(40, shape=6), [35.0, 52.0, 39.0, 37.0, 29.0, 40.0]),
    (lambda: R.negative_binomial(3, 0.4, shape=6), [3.0, 9.0, 0.0, 5.0, 4.0, 3.0]),
    (lambda: R.generalized_negative_binomial(2, 0.3, shape=6), [2.0, 0.0, 0.0, 1.0, 4.0, 3.0]),
    (lambda: R.randint(0, 1000, shape=6), [874, 918, 690, 807, 182, 208]),
    (lambda: R.randint(-5, 2 ** 40, shape=3, dtype='int64'), [407400396612, 154877100024, 538550392256]),
    (lambda: R.multinomial(nd.array([[0.1, 0.2, 0.3, 0.4]]), shape=8), [2, 0, 2, 2, 3, 3, 2, 3]),
    (lambda: R.shuffle(nd.arange(8)), [7.0, 6.0, 3.0, 4.0, 2.0, 5.0, 1.0, 0.0]),
    (lambda: R.shuffle(nd.arange(12).reshape((6, 2))), [2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 0.0, 1.0, 10.0, 11.0, 8.0, 9.0]),
    (lambda: R.uniform_like(nd.ones((2, 2))), [0.57476151, 0.984239101, 0.674154162, 0.492220581]),
    (lambda: nd._internal._sample_unique_zipfian(100, shape=(2, 5))[0], [41, 2, 0, 81, 3, 29, 4, 6, 1, 44]),
    (lambda: np_random.uniform(2, 5, size=4), [3.46419406, 2.31043124, 4.94329357, 2.46756053]),
    (lambda: np_random.uniform(size=3, dtype='float64'), [0.2925994396209717, 0.04162174090743065, 0.5321266651153564]),
    (lambda: np_random.uniform(mx.np.zeros((2, 1)), 2.5, size=(2, 2)), [1.515414, 2.47418976, 1.66055632, 0.248634368]),
    (lambda: np_random.normal(0.2, 1.7, size=5), [2.6106317, -3.07491398, 0.620009661, 1.2508384, 2.31438112]),
    (lambda: np_random.normal(size=3, dtype='float64'), [-1.6885578632354736, 0.11584771424531937, -1.145308017730713]),
    (lambda: np_random.randint(0, 1000, size=6), [929, 42, 201, 22, 889, 115]),
    (lambda: np_random.choice(17, size=6), [6, 7, 2, 5, 13, 14]),
    (lambda: np_random.choice(4, size=8, p=mx.np.array([0.1, 0.2, 0.3, 0.4])), [2, 2, 3, 2, 0, 2, 3, 2]),
    (lambda: np_random.choice(6, size=4, replace=False, p=mx.np.ones(6) / 6), [3, 5, 0, 4]),
    (lambda: np_random.multinomial(20, [0.2, 0.3, 0.5]), [5, 6, 9]),
    (lambda: np_random.gamma(3, 2, size=4), [2.90662313, 6.31666565, 8.12177563, 4.47270632]),
    (lambda: np_random.exponential(2.5, size=4), [3.70473385, 3.73724413, 7.27847338, 0.235884696]),
    (lambda: np_random.weibull(2.5, size=4), [0.972713351, 1.50850165, 0.996711612, 0.653027117]),
    (lambda: np_random.pareto(2.5, size=4), [0.0369171984, 4.76690531, 0.252235293, 0.0455976389]),
    (lambda: np_random.power(2.5, size=4), [0.880449891, 0.505174279, 0.830974817, 0.842643321]),
    (lambda: np_random.rayleigh(2.5, size=4), [1.52652979, 0.714365363, 4.24593258, 4.16638422]),
    (lambda: np_random.logistic(0.3, 2.5, size=4), [7.38404083, -2.60026169, -6.45970488, -3.05341125]),
    (lambda: np_random.gumbel(0.3, 2.5, size=4), [1.46314311, 0.417383224, 0.456233442, 0.55978632]),
    (lambda: np_random.beta(2, 3, size=3), [0.849615455, 0.231651187, 0.500280917]),
    (lambda: np_random.rand(3), [0.0672655106, 0.741666079, 0.824039221]),
    (lambda: np_random.randn(3), [-0.0581695884, -0.734591961, 0.127393544]),
    (lambda: mx.npx.random.bernoulli(prob=0.3, size=8), [1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0]),
    (lambda: mx.npx.random.bernoulli(logit=0.3, size=8), [0.0, 0.0, 1.0, 0.0, 1.0, 1.0, 1.0, 1.0]),
    (lambda: dropped(10, 0.5), [2.0, 2.0, 2.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 2.0]),
    (lambda: dropped((2, 5), 0.3), [1.42857146, 1.42857146, 1.42857146, 1.42857146, 1.42857146, 0.0, 1.42857146, 1.42857146, 0.0, 1.42857146]),
    (lambda: dropped((2, 3), 0.2, 'float64'), [1.25, 1.25, 0.0, 1.25, 1.25, 1.25]),
    (lambda: dropped((2, 5), 0.3, 'float16'), [0.0, 1.429, 1.429, 1.429, 1.429, 0.0, 1.429, 1.429, 0.0, 1.429]),
    (lambda: dropped((2, 5), 0.5, axes=(0,)), [0.0, 0.0, 0.0, 0.0, 2.0, 0.0, 0.0, 0.0, 0.0, 2.0]),
]


def test_mxnets_numbers():
    mx.random.seed(1234)
    for line, (call, expected) in enumerate(SEQUENCE):
        found = call().asnumpy()
        # Nine digits tell floats apart.
        assert found.ravel().tolist() == np.array(expected, found.dtype).tolist(), line


@pytest.mark.parametrize("size, chosen, following", [
    (1, [4], [10, 11, 15]), (5, [1, 4, 8, 14, 17], None), (15, [0, 2, 3, 5, 6, 7, 9, 10, 11, 12, 13, 15, 16, 18, 19], None), (20, range(20), None)])
def test_choice_without_replacement_takes_the_elements_that_mxnet_takes_in_an_order_of_its_own(size, chosen, following):
    mx.random.seed(5)
    assert sorted(np_random.choice(20, size=size, replace=False).tolist()) == list(chosen)
    if following:  # one element needs no order, and no further number
        assert np_random.choice(20, size=3).tolist() == following


def digest(array):
    return hashlib.md5(array.asnumpy().tobytes()).hexdigest()[:8]


# As above, of all bytes: sizes below and above those at which the work is divided.
def test_mxnets_numbers_of_many_sizes():
    mx.random.seed(1234)
    found = []
    for n in (1, 5, 1000, 100003):
        found += [R.uniform(-.3, 2.7, shape=n), R.normal(1.3, .7, shape=n), R.randint(0, 50, shape=n), np_random.uniform(-.3, 2.7, size=n),
                  np_random.normal(.2, 1.7, size=n), R.shuffle(nd.arange(n))]
    assert [digest(f) for f in found] == [
        "3a67d189", "3562e1eb", "5035334b", "3a67d189", "2a0e3b63", "f1d3ff84", "c87b1779", "a8b110d8", "c722ea7c", "e7fe14ff",
        "4e561bd2", "0efa1735", "b4ceb32b", "39c79860", "68f1f1a3", "5a604f38", "890850df", "66d3e08e", "87ad6d88", "2ae6a9f6",
        "6be3ee2f", "9c4c2da4", "4098fbe4", "0bb04464"]


# Of MXNet 1.9.1: all parameters, after mx.random.seed(1234).
@pytest.mark.parametrize("initializer, expected", [
(lambda: mx.init.Xavier(), "27ba7013"),
    (lambda: mx.init.Xavier(rnd_type='gaussian', factor_type='in', magnitude=2), "cb421661"),
    (lambda: mx.init.Normal(0.3), "2d235bf0"),
    (lambda: mx.init.Uniform(0.3), "b0117368"),
    (lambda: mx.init.MSRAPrelu(), "6a80acda"),
])
def test_initializers_draw_what_mxnets_do(initializer, expected):
    mx.random.seed(1234)
    net = nn.HybridSequential(prefix="net_")
    with net.name_scope():
        net.add(nn.Conv2D(8, 3, in_channels=3), nn.BatchNorm(in_channels=8), nn.Dense(10, in_units=200), nn.Embedding(30, 7))
    net.initialize(initializer())
    assert digest(nd.concat(*[p.data().reshape(-1) for p in net.collect_params().values()], dim=0)) == expected


MASKS = [[0.0, 2.5, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0],
         [0.0, 0.0, 0.0, 0.0, 0.0, 2.5, 2.5, 0.0]]


# MXNet's masks of a network, imperative and hybridized, and bound by Module.
def test_dropout_in_networks():
    x = nd.ones((2, 8))
    for hybridize in (False, True):
        mx.random.seed(1234)
        net = nn.HybridSequential()
        net.add(nn.Dropout(0.5), nn.Dropout(0.2))
        net.initialize()
        if hybridize:
            net.hybridize()
        with mx.autograd.record():
            out = net(x)
        assert out.asnumpy().tolist() == MASKS
    mx.random.seed(1234)
    net = mx.sym.Dropout(mx.sym.Dropout(mx.sym.var("data"), p=0.5), p=0.2).bind(mx.cpu(), {"data": x})
    assert net.forward(is_train=True)[0].asnumpy().tolist() == MASKS


def test_a_program_that_never_seeds_repeats_itself():
    program = "import mxnet as mx; print(mx.nd.random.uniform(shape=2).asnumpy().tolist(), mx.np.random.normal(size=2).tolist())"
    found = {subprocess.run([*python(), "-c", program], capture_output=True, text=True, check=True, timeout=120).stdout for _ in range(2)}
    assert found == {"[0.54881352186203, 0.5928446054458618] [2.2122063636779785, 1.1630786657333374]\n"}
