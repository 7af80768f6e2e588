"""The loss scale over many steps."""
import numpy as np
import pytest

import mxnet as mx
from mxnet.contrib.amp.loss_scaler import LossScaler


@pytest.fixture
def parameter():
    parameter = mx.gluon.Parameter("w", shape=(2,))
    parameter.initialize(ctx=[mx.cpu(0), mx.cpu(1)])
    return parameter


def test_grows_after_2000_steps(parameter):
    scaler, seen = LossScaler(), []
    for step in range(4001):
        assert scaler.has_overflow([parameter]) is False
        if step in (1999, 2000, 3999, 4000):
            seen.append(scaler.loss_scale)
    assert seen == [65536, 131072, 131072, 262144]


def test_does_not_grow_beyond_its_limit(parameter):
    scaler = LossScaler()
    scaler._loss_scale = scaler._next_loss_scale = 2.0 ** 24
    for _ in range(2001):
        scaler.has_overflow([parameter])
    assert scaler.loss_scale == 2.0 ** 24


@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan])
@pytest.mark.parametrize("device", [0, 1])
def test_overflow_halves(parameter, value, device):
    parameter.grad(mx.cpu(device))[1] = value
    scaler, seen = LossScaler(), []
    for _ in range(3):
        assert scaler.has_overflow([parameter]) is True
        seen.append(scaler.loss_scale)
    assert seen == [65536, 32768, 16384]


def test_overflow_starts_the_count_anew(parameter):
    scaler = LossScaler()
    for _ in range(1999):
        scaler.has_overflow([parameter])
    parameter.grad(mx.cpu(0))[:] = np.inf
    scaler.has_overflow([parameter])
    parameter.grad(mx.cpu(0))[:] = 0
    for _ in range(1999):
        scaler.has_overflow([parameter])
    assert scaler._next_loss_scale == 32768


def test_parameters_without_gradient():
    fixed = mx.gluon.Parameter("w", shape=(2,), grad_req="null")
    fixed.initialize()
    assert LossScaler().has_overflow([fixed]) is False


def test_sparse_gradient():
    parameter = mx.gluon.Parameter("w", shape=(3, 2), grad_stype="row_sparse")
    parameter.initialize()
    scaler = LossScaler()
    assert scaler.has_overflow([parameter]) is False
    parameter._grad[0] = mx.nd.sparse.row_sparse_array(([[1., np.inf]], [2]), shape=(3, 2))
    assert scaler.has_overflow([parameter]) is True
