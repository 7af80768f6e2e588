import numpy as np
import pytest

import mxnet as mx


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


def test_devices_draw_their_own_numbers():
    a, b = mx.cpu(0), mx.cpu(1)
    draw(a), draw(b)  # so that both have a generator
    mx.random.seed(7)
    first = draw(a), draw(b)
    assert first[0] != first[1]
    mx.random.seed(7, ctx=a)
    mx.random.seed(7, ctx=b)
    assert draw(a) == draw(b) == first[0]
    mx.random.seed(7)
    assert draw(b) == first[1]
    mx.random.seed(9, ctx=a)
    assert draw(a) != first[0]


@pytest.mark.parametrize("value", ["a", 3.5, None])
def test_seeds_are_integers(value):
    with pytest.raises(ValueError, match="seed_state must be int"):
        mx.random.seed(value)


def test_contexts_are_contexts():
    with pytest.raises(TypeError, match="expected a Context"):
        mx.random.seed(1, ctx=3)
