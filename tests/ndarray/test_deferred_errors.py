"""Errors that arrive where values are waited for; who raises what when is MXNet 1.9.1's answer."""
import pytest

import mxnet as mx
from mxnet import nd


def wrong(shape=(2, 3)):
    return nd.random.normal(0, -1, shape)


WRONG = r"_random_normal: `scale` must be above 0, received scale=-1"


@pytest.mark.parametrize("make", [
    lambda: nd.random.uniform(2, 1, (2,)), lambda: nd.random.gamma(-1, 1, (2,)), lambda: nd.random.exponential(-1, (2,)),
    lambda: nd.random.poisson(-1, (2,)), lambda: nd.random.negative_binomial(-1, .5, (2,)),
    lambda: nd.random.generalized_negative_binomial(-1, .5, (2,)), lambda: nd.random.randint(5, 2, (2,)),
    lambda: nd.random.normal_like(nd.ones((2,)), 0, -1), lambda: nd.take(nd.ones((3,)), nd.array([5, 0]), mode="raise")])
def test_who_waits_gets_the_error_once(make):
    x = make()
    assert x.shape == (2,)
    with pytest.raises(mx.MXNetError, match="received") as caught:
        x.wait_to_read()
    assert type(caught.value) is mx.MXNetError
    x.wait_to_read()
    nd.waitall()


@pytest.mark.parametrize("wait", [lambda x: x.asnumpy(), lambda x: x.wait_to_read(), str, lambda x: x.sum().asscalar(), lambda x: nd.waitall()])
def test_ways_to_wait(wait):
    x = wrong()
    with pytest.raises(mx.MXNetError, match=WRONG):
        wait(x)
    nd.waitall()


def test_what_is_known_without_values():
    x = wrong()
    assert (x.shape, x.size, x.ndim, len(x), x.stype, x.context) == ((2, 3), 6, 2, 2, "default", mx.cpu()) and x.dtype.__name__ == "float32"
    with pytest.raises(mx.MXNetError, match=WRONG):
        nd.waitall()
    x.asnumpy()


@pytest.mark.parametrize("use", [
    lambda x: x + 1, lambda x: nd.dot(nd.ones((4, 2)), x), lambda x: x.copyto(mx.cpu(1)), lambda x: x[1], lambda x: x.reshape((3, 2)),
    lambda x: x.astype("int32"), lambda x: nd.split(x, 3)[2], lambda x: nd.concat(nd.ones((1, 3)), x, dim=0),
    lambda x: nd.relu(x * 2 - 1).sum(axis=0), lambda x: list(x)[1],
    lambda x: x.__iadd__(1)])
def test_what_is_made_of_it_has_the_error_too(use):
    x = wrong()
    y = use(x)
    assert y.shape == use(nd.ones((2, 3))).shape
    with pytest.raises(mx.MXNetError, match=WRONG):
        y.asnumpy()
    x.asnumpy()  # raised once for all


def test_networks_go_on_with_it():
    for hybridize in (False, True):
        net = mx.gluon.nn.Dense(4)
        net.initialize()
        if hybridize:
            net.hybridize()
        y = net(wrong())
        with pytest.raises(mx.MXNetError, match=WRONG):
            y.asnumpy()


def test_what_is_there_already_is_not_written():
    held = nd.ones((2, 3))
    for write in (lambda: nd.random.normal(0, -1, (2, 3), out=held), lambda: held.__setitem__(slice(None), wrong()), lambda: held.__iadd__(wrong())):
        with pytest.raises(mx.MXNetError, match=WRONG):
            write()
    assert held.asnumpy().tolist() == [[1] * 3] * 2
    nd.waitall()


def test_errors_of_shapes_and_types_come_at_once():
    for call in (lambda: nd.dot(nd.ones((2, 3)), nd.ones((2, 3))), lambda: nd.Dropout(nd.ones((2,)), p=2), lambda: wrong().reshape((7,))):
        with pytest.raises(mx.MXNetError):
            call()
    with pytest.raises(mx.MXNetError):
        nd.waitall()


def test_errors_of_random_numbers_are_one_others_are_not():
    first, second = wrong(), wrong()
    with pytest.raises(mx.MXNetError, match=WRONG):
        first.asnumpy()
    second.asnumpy()
    taken = [nd.take(nd.ones((3,)), nd.array([5]), mode="raise") for _ in range(2)]
    for t in taken:
        with pytest.raises(mx.MXNetError, match="take: indices out of bound"):
            t.asnumpy()
    nd.waitall()


def test_waiting_for_all_forgets_all():
    wrong(), nd.take(nd.ones((3,)), nd.array([5]), mode="raise")
    with pytest.raises(mx.MXNetError):
        nd.waitall()
    nd.waitall()
