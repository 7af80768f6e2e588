import numpy as np
import pytest

import mxnet as mx

W = np.arange(8).reshape(4, 2) / 4


def gradient():
    return mx.nd.sparse.row_sparse_array(([[1, 2], [3, 4]], [1, 3]), shape=(4, 2))


def test_lazy_updates_leave_other_rows_alone():
    w, mom = mx.nd.array(W), mx.nd.ones((4, 2))
    mx.nd.sgd_mom_update(w, gradient(), mom, lr=.5, momentum=.5, wd=.5, out=w)
    assert mom.asnumpy().tolist() == [[1, 1], [-.125, -.6875], [1, 1], [-1.375, -1.9375]]
    assert w.asnumpy().tolist() == [[0, .25], [.375, .0625], [1, 1.25], [.125, -.1875]]


def test_other_updates_move_every_row():
    w, mom = mx.nd.array(W), mx.nd.ones((4, 2))
    mx.nd.sgd_mom_update(w, gradient(), mom, lr=.5, momentum=.5, wd=.5, lazy_update=False, out=w)
    assert mom.asnumpy().tolist() == [[.5, .4375], [-.125, -.6875], [.25, .1875], [-1.375, -1.9375]]


def test_without_out_the_weight_stays():
    for stype in ("default", "row_sparse"):
        w = mx.nd.array(W + 1).tostype(stype)
        new = mx.nd.sgd_update(w, gradient(), lr=.5)
        assert new.stype == stype and w.asnumpy().tolist() == (W + 1).tolist()
        assert new.asnumpy().tolist() == [[1, 1.25], [1, .75], [2, 2.25], [1, .75]]


def test_a_weight_of_few_rows_stores_all_of_them_afterwards():
    w, mean, var = (mx.nd.sparse.zeros("row_sparse", (4, 2)) for _ in range(3))
    mx.nd.adam_update(w, gradient(), mean, var, lr=1, out=w)
    assert [len(a.indices) for a in (w, mean, var)] == [4, 4, 4]
    np.testing.assert_allclose(mean.asnumpy(), [[0, 0], [.1, .2], [0, 0], [.3, .4]], 1e-5)
    np.testing.assert_allclose(w.asnumpy(), [[0, 0], [-3.16228] * 2, [0, 0], [-3.16228] * 2], 1e-5)


def test_an_empty_gradient_changes_nothing():
    w, history = mx.nd.array(W), mx.nd.ones((4, 1))
    none = mx.nd.sparse.zeros("row_sparse", (4, 2))
    mx.nd.contrib.group_adagrad_update(w, none, history, lr=1, out=w)
    assert w.asnumpy().tolist() == W.tolist() and history.asnumpy().tolist() == [[1]] * 4


def test_only_the_rows_are_touched():
    # Its other rows are not even looked at: not a number stays what it is.
    w = mx.nd.full((4, 2), np.nan)
    w[1] = w[3] = 1
    mx.nd.sgd_update(w, gradient(), lr=.5, wd=.5, out=w)
    np.testing.assert_array_equal(w.asnumpy(), [[np.nan] * 2, [.25, -.25], [np.nan] * 2, [-.75, -1.25]])


@pytest.mark.parametrize("stype", ["default", "row_sparse"])
def test_a_gradient_that_is_recorded_through_sees_the_new_weight(stype):
    w = mx.nd.array(W + 1).tostype(stype)
    w.attach_grad()
    with mx.autograd.record():
        (w * w).backward()
    mx.nd.sgd_update(w, gradient(), lr=.5, out=w)
    with mx.autograd.record():
        (w * w).backward()
    assert w.grad.asnumpy().tolist() == [[2, 2.5], [2, 1.5], [4, 4.5], [2, 1.5]]
