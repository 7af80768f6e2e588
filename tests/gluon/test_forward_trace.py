import copy
import pickle

import numpy as onp
import pytest

import mxnet as mx
from mxnet import MXNetError, autograd, np, npx
from mxnet.gluon.forward_trace import ForwardTrace, ReadShape
from recorded import record_of


@pytest.fixture(autouse=True)
def numpy_style():
    npx.set_np()


@pytest.mark.parametrize("use, axes", [
    (lambda s: s[0], {0}), (lambda s: s[-1], {2}), (lambda s: s[1:], {1, 2}), (lambda s: s[::2], {0, 2}), (lambda s: s[5:], set()), (len, set()),
    (bool, set()), (list, {0, 1, 2}), (tuple, {0, 1, 2}), (lambda s: (*s,), {0, 1, 2}), (lambda s: s == (2, 3, 4), {0, 1, 2}),
    (lambda s: (2, 3, 4) == s, {0, 1, 2}), (lambda s: s != (2,), {0, 1, 2}), (hash, {0, 1, 2}), (lambda s: (1,) + s, {0, 1, 2}),
    (lambda s: s + (1,), {0, 1, 2}), (lambda s: 2 * s, {0, 1, 2}), (lambda s: s * 2, {0, 1, 2}), (lambda s: 3 in s, {0, 1, 2}),
    (lambda s: s.index(3), {0, 1, 2}), (lambda s: s.count(3), {0, 1, 2}), (max, {0, 1, 2}), (sorted, {0, 1, 2}), (str, {0, 1, 2}), (repr, {0, 1, 2}),
    (lambda s: f"{s}", {0, 1, 2}), (lambda s: {s: 1}, {0, 1, 2}), (onp.prod, {0, 1, 2}), (onp.zeros, {0, 1, 2}),
    (lambda s: s < (3,), {0, 1, 2}), (copy.copy, {0, 1, 2}), (copy.deepcopy, {0, 1, 2}), (lambda s: pickle.loads(pickle.dumps(s)), {0, 1, 2}),
    (reversed, {0, 1, 2}), (lambda s: onp.ones((2, 3, 4)).reshape(s), {0, 1, 2}), (lambda s: np.zeros(s), {0, 1, 2})])
def test_a_shape_notes_how_it_is_used(use, axes):
    read = set()
    found, expected = use(ReadShape((2, 3, 4), read)), use((2, 3, 4))
    if hasattr(expected, "shape"):
        found, expected = found.shape, expected.shape
    assert (list(found) == list(expected)) if use is reversed else (type(found), found) == (type(expected), expected)
    assert read == axes


def test_a_shape_that_is_no_use_is_refused_as_any():
    for wrong in (lambda s: s[3], lambda s: s["a"], lambda s: s.index(9)):
        with pytest.raises((IndexError, TypeError, ValueError)):
            wrong(ReadShape((2, 3), set()))


def noted(function, *arrays):
    trace = ForwardTrace()
    given = [trace.input(a, mx.sym.var(f"x{i}").as_np_ndarray()) for i, a in enumerate(arrays)]
    try:
        with trace.noting():
            out = function(*given)
    finally:
        trace.end()
    return trace, trace.release(out), [trace.reads.get(record_of(a)) for a in given]


@pytest.mark.parametrize("function, axes, by_type", [
    (lambda x: x + x.shape[0], {0}, False), (lambda x: x + x.size, {0, 1}, False), (lambda x: x + x.ndim, set(), False),
    (lambda x: x + len(x), {0}, False), (lambda x: sum(x), {0}, False), (lambda x: x.T, None, False),
    (lambda x: x if x.dtype == "f4" else -x, None, True),
    (lambda x: x * 2 + x.sum(axis=-1, keepdims=True), None, False), (lambda x: x[:, 0], set(), False), (lambda x: x.reshape(-1), None, False),
    (lambda x: x[[0, 1], [1, 1]], {0, 1}, False)])
def test_what_is_read_of_an_argument(function, axes, by_type):
    x = np.array([[1., 2, 3], [4, 5, 6]])
    trace, out, (reads,) = noted(function, x)
    assert not trace.failure and out.tolist() == function(x).tolist() and record_of(out) is record_of(x) is None
    assert (reads is None) if axes is None and not by_type else (reads.axes if reads.by_shape else None, reads.by_type) == (axes, by_type)


@pytest.mark.parametrize("function, reason", [
    (lambda x: x * x.sum().item(), "values of arrays were read"), (lambda x: x[x > 1], "can't select by a mask"),
    (lambda x: x.__iadd__(1), "writes to an array in place"), (lambda x: np.add(x, x, out=np.zeros(2)), "writes to an array in place"),
    (lambda x: np.array(x.as_torch().numpy()), "values of arrays were read"), (lambda x: np.isclose(x, x) * 1.0, "isclose is computed by NumPy")])
def test_a_run_that_has_no_graph_goes_on(function, reason):
    trace, out, _ = noted(function, np.array([1., 2]))
    assert reason in trace.failure and record_of(out) is None
    assert out.tolist() == function(np.array([1., 2])).tolist()
    assert not autograd.is_recording()


@pytest.mark.parametrize("scope, fails", [
    (autograd.record, True), (autograd.pause, False), (autograd.train_mode, True), (autograd.predict_mode, False)])
def test_scopes_that_change_nothing_are_noted_and_others_have_no_graph(scope, fails):
    def function(x):
        with scope():
            inside = autograd.is_recording(), autograd.is_training()
            y = x * 2
        assert inside == {autograd.record: (True, True), autograd.train_mode: (False, True)}.get(scope, (False, False))
        assert not autograd.is_recording() and not autograd.is_training()
        return y

    trace, out, _ = noted(function, np.ones(2))
    assert ("changes autograd's mode" in trace.failure) == fails and out.tolist() == [2, 2]
    assert fails or trace.modes
    assert not autograd.is_recording() and not autograd.is_training()


def test_recording_outside_goes_on_inside():
    x = np.array([1., 2])
    x.attach_grad()
    for function in (lambda x: x * x, lambda x: x * x if x.sum() > 0 else x):
        with autograd.record():
            _, y, _ = noted(function, x)
        y.backward()
        assert x.grad.tolist() == [2, 4]
    with autograd.record():
        _, y, _ = noted(lambda x: x * 2, np.ones(2))
        z = np.ones(2)
        z += 1  # nothing that a gradient flows through
        with pytest.raises(MXNetError, match="Inplace operations"):
            noted(lambda x: x.__iadd__(1), x * 2)
    assert record_of(y) is None


def test_arrays_in_a_recorded_run_may_be_written_to_where_an_eager_call_may():
    def function(x):
        y, z = x * 2, x * 3
        y += 1
        z[0] = 7
        return y + z

    with autograd.record():
        trace, out, _ = noted(function, np.ones(2))
    assert trace.failure and out.tolist() == [10, 6]


def test_attach_grad_inside_reaches_the_argument():
    def function(x):
        x.attach_grad()
        with autograd.record():
            y = (x * x).sum()
        y.backward()
        return x.grad

    x = np.array([3.])
    trace, out, _ = noted(function, x)
    assert "attach_grad" in trace.failure and out.tolist() == x.grad.tolist() == [6]


def test_indexing_shares_memory_as_in_an_eager_call():
    def function(x):
        x[0][:] = 5
        return x

    x = np.zeros((2, 2))
    assert noted(function, x)[1] is x and x.tolist() == [[5, 5], [0, 0]]
