import contextlib

import numpy as np
import pytest
import torch

import mxnet as mx
from interrupt_checks import at_each_point
from mxnet import autograd, nd
from mxnet.base import MXNetError
from recorded import record_of


def variable(values, **kwargs):
    x = nd.array(values)
    x.attach_grad(**kwargs)
    return x


def test_gradients_of_a_chain():
    x = variable([1, 2, 3])
    with autograd.record():
        y = (x * x + 2 * x).sum()
    y.backward()
    assert x.grad.asnumpy().tolist() == [4, 6, 8]


def test_grad_req_add_and_null():
    x, y = variable([1.0], grad_req="add"), variable([1.0], grad_req="null")
    for _ in range(3):
        with autograd.record():
            z = x * 5 + y
        z.backward()
    assert x.grad.asscalar() == 15
    assert y.grad.asscalar() == 0
    with pytest.raises(KeyError, match="grad_req must be one of"):
        x.attach_grad(grad_req="sum")


def test_the_gradient_array_stays_the_same_object():
    x = variable([1.0, 2.0])
    held = x.grad
    with autograd.record():
        y = x * 3
    y.backward()
    assert held is x.grad and held.asnumpy().tolist() == [3, 3]


def test_a_gradient_that_is_a_view_is_written_in_place():
    buffer = nd.zeros((2, 2))
    x = nd.ones((2,))
    autograd.mark_variables([x], [buffer[1]])
    with autograd.record():
        y = x * 4
    y.backward()
    assert buffer.asnumpy().tolist() == [[0, 0], [4, 4]]


def test_no_two_gradients_share_memory():
    x, y = variable([1.0]), variable([1.0])
    with autograd.record():
        z = x + y
    z.backward()
    x.grad[:] = 9
    assert y.grad.asscalar() == 1


def test_head_gradients():
    x = variable(np.ones((3, 2)))
    with autograd.record():
        a, b, c = nd.split(x, axis=0, num_outputs=3, squeeze_axis=True)
    autograd.backward([a, b, c], [None, nd.array([1, 2]), nd.array([5, 4])])
    assert x.grad.asnumpy().tolist() == [[1, 1], [1, 2], [5, 4]]


def test_fresh_grad_is_set_by_backward():
    x = variable([1.0])
    assert x._fresh_grad is False
    with autograd.record():
        y = x * 2
    y.backward()
    assert x._fresh_grad is True
    x._fresh_grad = False
    assert x._fresh_grad is False


def test_writing_between_forward_and_backward_uses_the_new_values():
    x, w = variable([2.0]), nd.array([3.0])
    with autograd.record():
        y = x * w
    w[:] = 10
    y.backward()
    assert x.grad.asscalar() == 10


def test_inplace_on_recorded_arrays_is_refused():
    x = variable([1.0, 2.0])
    with autograd.record():
        y = x * 2
        for change in (lambda: y.__iadd__(1), lambda: x.__setitem__(0, 5), lambda: nd.sqrt(y, out=y)):
            with pytest.raises(mx.MXNetError, match="Inplace operations .* not supported"):
                change()
    x[0] = 5
    assert x.asnumpy().tolist() == [5, 2]


@pytest.mark.parametrize("fill", [
    lambda z, x: x.copyto(z), lambda z, x: z.__setitem__(slice(None), x), lambda z, x: z.__setitem__(Ellipsis, x),
    lambda z, x: z.__setitem__(slice(0, 2), x),
    lambda z, x: z.__setitem__((slice(None),), x.reshape((1, 2)))])
def test_copies_into_a_new_array_are_recorded(fill):
    x, z = variable([1.0, 2.0]), nd.zeros((2,), dtype="float64")
    view = z.reshape((2, 1))
    for _ in range(2):
        with autograd.record():
            fill(z, x * x)
            y = z.astype("float32") * 3 + x
        y.backward()
        assert x.grad.asnumpy().tolist() == [7, 13] and view.asnumpy().tolist() == [[1], [4]]
        z = z.detach()
    z[0] = 5
    assert view.asnumpy().tolist() == [[5], [4]]


def test_values_that_are_repeated_into_a_new_array_are_recorded():
    x, z = variable([1.0, 2.0]), nd.zeros((3, 2))
    with autograd.record():
        z[:] = x * x
        y = z.sum() + nd.array(x, dtype="float64").astype("float32").sum()
    y.backward()
    assert x.grad.asnumpy().tolist() == [7, 13]
    with autograd.record():
        with pytest.raises(ValueError, match=r"cannot assign values of shape \(2,\) to a selection of shape \(3,\)"):
            nd.zeros((3,))[:] = x * 2
        with pytest.raises(mx.MXNetError, match="Inplace operations .* not supported"):
            nd.zeros((3,))[0] = x[0]


def test_views_of_a_gradient_see_it():
    x = variable([[1.0, 2.0]])
    views = [x.grad.reshape((2,)), x.grad[:], nd.from_dlpack(x.grad.to_dlpack_for_write())]
    for factor in (3, 4):
        with autograd.record():
            y = x * factor
        y.backward()
        assert [v.asnumpy().ravel().tolist() for v in (x.grad, *views)] == [[factor, factor]] * 4
    x.grad.reshape((2,))[0] = 9
    assert x.grad.asnumpy().tolist() == [[9, 4]]


def test_a_graph_is_freed_unless_retained():
    x = variable([1.0])
    with autograd.record():
        y = x + 1
    y.backward(retain_graph=True)
    y.backward()
    with pytest.raises(mx.MXNetError, match="retain_graph=True"):
        y.backward()


# Values of the real MXNet: what was differentiated has become a constant.


def rounds(call, x, state, times=3):
    """The gradients of `x` behind each of several rounds, in which `state` goes on from round to round."""
    gradients = []
    for _ in range(times):
        with autograd.record():
            head, state = call(x, state)
        head.backward()
        gradients.append(x.grad.asnumpy().tolist())
    return gradients


@pytest.mark.parametrize("grad_req, expected", [("write", [[2, 4], [2, 4], [2, 4]]), ("add", [[2, 4], [4, 8], [6, 12]])])
@pytest.mark.parametrize("module", [nd, mx.np])
def test_a_loss_may_go_on_from_round_to_round(module, grad_req, expected):
    x = module.array([1.0, 2.0])
    x.attach_grad(grad_req=grad_req)

    def call(x, loss):
        loss = loss + x * x
        return loss, loss

    assert rounds(call, x, module.zeros((2,))) == expected


def test_backward_inside_of_record_goes_on_behind_it():
    x = variable([1.0, 2.0])
    with autograd.record():
        y = x * x
        y.backward()
        assert x.grad.asnumpy().tolist() == [2, 4]
        (y * 3 + x).backward()
        assert x.grad.asnumpy().tolist() == [1, 1]
        y += 1  # no longer a part of the computation
        for i, expected in enumerate([[2, 4], [4, 8], [6, 12]]):
            (x * x * (i + 1)).backward()
            assert x.grad.asnumpy().tolist() == expected


def test_everything_on_the_way_becomes_constant():
    x = variable([1.0, 2.0, 3.0])
    with autograd.record():
        square = x * x
        column = square.reshape((3, 1))
        first, rest = column[0], column[1:]
    rest.backward()
    assert x.grad.asnumpy().tolist() == [0, 4, 6]
    assert [record_of(a) for a in (square, column, rest)] == [None] * 3
    with autograd.record():
        y = square[1] * x[0] + rest[0] * x[1]
    y.backward()
    assert x.grad.asnumpy().tolist() == [4, 4, 0]
    assert record_of(first) is not None  # no head depended on it


def test_the_other_outputs_of_a_call_become_constant():
    x = variable([1.0, 2.0, 3.0, 4.0])
    with autograd.record():
        a, b = nd.split(x * x, num_outputs=2, axis=0)
    a.backward()
    assert x.grad.asnumpy().tolist() == [2, 4, 0, 0]
    with autograd.record():
        y = (b * x[:2]).sum()
    y.backward()
    assert x.grad.asnumpy().tolist() == [9, 16, 0, 0]


def test_grad_makes_constants_too_unless_retained():
    x = variable([1.0, 2.0])
    for retain, expected in ((False, [1, 4]), (True, [3, 12])):
        with autograd.record():
            y = x * x
        assert autograd.grad(y, [x], retain_graph=retain)[0].asnumpy().tolist() == [2, 4]
        with autograd.record():
            z = y * x
        z.backward()
        assert x.grad.asnumpy().tolist() == expected


def test_an_array_that_was_marked_on_the_way_stays_a_variable():
    x = variable([1.0, 2.0])
    with autograd.record():
        h = x * x
        h.attach_grad()
        y = h * 2
    y.backward()
    assert h.grad.asnumpy().tolist() == [2, 2]
    with autograd.record():
        z = h * h
    z.backward()
    assert h.grad.asnumpy().tolist() == [2, 8] and x.grad.asnumpy().tolist() == [0, 0]


def test_two_heads_of_one_graph_need_retain_graph():
    x = variable([1.0, 2.0])
    with autograd.record():
        y = x * x
        a, b = y * 2, y * 3
    a.backward()
    with pytest.raises(mx.MXNetError, match="differentiated before and has been freed; pass retain_graph=True"):
        b.backward()


class Halves(autograd.Function):
    def forward(self, x):
        return x * 2, x * 3

    def backward(self, a, b):
        a[:] = a * 2  # what a function gets belongs to it
        return a + b


def test_a_function_goes_on_from_its_own_output():
    x = variable([1.0, 2.0])

    def call(x, state):
        head, state = Halves()(x * state)
        return head.sum(), state

    assert rounds(call, x, nd.ones((2,))) == [[2, 2], [6, 12], [18, 72]]


@pytest.mark.parametrize("hybridize", [False, True])
@pytest.mark.parametrize("cell, expected", [
    ("RNNCell", [30.8030, 33.2530, 33.6324]), ("LSTMCell", [14.2918, 16.6310, 17.7793]), ("GRUCell", [8.2485, 9.3689, 10.1471]),
    ("RNN", [281.5812, 302.2925, 302.3428]), ("LSTM", [154.4287, 167.0313, 166.3379]), ("GRU", [94.4581, 115.4153, 118.7213])])
def test_the_state_of_a_recurrent_network_is_carried_without_detaching(cell, expected, hybridize):
    net = getattr(mx.gluon.rnn, cell)(3, input_size=4)
    net.initialize(mx.init.Constant(0.1))
    if hybridize:
        net.hybridize()
    state = net.begin_state(batch_size=2)
    data = nd.ones((2, 4) if cell.endswith("Cell") else (5, 2, 4))
    totals = []
    for _ in range(3):
        with autograd.record():
            out, state = net(data, state)
            loss = out.sum()
        loss.backward()
        totals.append(sum(p.grad().sum().asscalar() for p in net.collect_params().values() if p.grad_req != "null"))
    np.testing.assert_allclose(totals, expected, rtol=1e-5)


def test_sparse_results_become_constants():
    weight = nd.ones((4, 2)).tostype("row_sparse")
    weight.attach_grad(stype="row_sparse")

    def embed(weight, state):
        state = state + nd.sparse.Embedding(nd.array([0, 2]), weight, input_dim=4, output_dim=2, sparse_grad=True) * 2
        return state, state

    assert rounds(embed, weight, nd.zeros((2, 2)), 2) == [[[2, 2], [0, 0], [2, 2], [0, 0]]] * 2
    matrix, weight = nd.array([[1, 0, 2], [0, 3, 0]]).tostype("csr"), variable(np.ones((3, 2)))

    def product(weight, state):
        state = state + nd.sparse.dot(matrix, weight)
        return state, state

    assert rounds(product, weight, nd.zeros((2, 2)), 2) == [[[1, 1], [3, 3], [2, 2]]] * 2


# Gradients are arrays of their own.

VIEWS = {
    "reshape": lambda x: x.reshape((-1,)), "reshape operator": lambda x: nd.reshape(x, shape=(-1,)), "flatten": lambda x: x.flatten(),
    "expand_dims": lambda x: x.expand_dims(0), "None": lambda x: x[None], "stack": nd.stack, "concat": nd.concat, "copy": lambda x: x.copy(),
    "squeeze": lambda x: x.expand_dims(0).squeeze(), "identity": nd.identity, "slice": lambda x: x[:], "transpose": lambda x: x.T,
    "broadcast_to": lambda x: nd.broadcast_to(x, shape=(2, 2)), "swapaxes": lambda x: nd.swapaxes(x, 0, 1), "plus": lambda x: x + 1,
    "split": lambda x: nd.split(x, num_outputs=1), "tile": lambda x: nd.tile(x, reps=(1, 1)), "Cast": lambda x: x.astype("float32"),
}


@pytest.mark.parametrize("view", VIEWS)
def test_a_gradient_is_not_the_head_gradient(view):
    x = variable([[1.0, 2.0], [3.0, 4.0]])
    with autograd.record():
        y = VIEWS[view](x)
    head = nd.ones(y.shape)
    y.backward(head, retain_graph=True)
    gradient, = autograd.grad(y, [x], [head])
    head[:] = 7
    assert x.grad.asnumpy().tolist() == gradient.asnumpy().tolist() == [[1, 1], [1, 1]]
    gradient[:] = 5
    assert x.grad.asnumpy().tolist() == [[1, 1], [1, 1]]


class Sum(mx.gluon.HybridBlock):
    def hybrid_forward(self, F, a, b):
        return F.square(F.expand_dims(a, 0) + F.expand_dims(b, 0))


@pytest.mark.parametrize("view", [*VIEWS, "hybridized"])
def test_gradients_of_different_arrays_share_no_memory(view):
    net = Sum()
    net.hybridize()
    a, b = variable([[1.0, 2.0], [3.0, 4.0]]), variable([[2.0, 2.0], [2.0, 2.0]])
    with autograd.record():
        total = (net(a, b) if view == "hybridized" else (VIEWS[view](a) + VIEWS[view](b)) ** 2).sum()
    total.backward()
    a.grad[:] = 0
    assert b.grad.asnumpy().tolist() == ([[10, 12], [14, 16]] if view == "plus" else [[6, 8], [10, 12]])


def test_clipping_scales_each_gradient_once():
    a, b = variable([1.0, 1.0]), variable([2.0, 2.0])
    with autograd.record():
        y = ((nd.reshape(a, shape=(1, 2)) + nd.reshape(b, shape=(1, 2))) ** 2).sum()
    y.backward()
    assert round(mx.gluon.utils.clip_global_norm([a.grad, b.grad], 1.0), 4) == 12.0
    np.testing.assert_allclose([a.grad.asnumpy(), b.grad.asnumpy()], np.full((2, 2), 0.5), rtol=1e-5)


def test_a_gradient_that_the_user_still_holds_is_copied():
    held = []

    class Keeps(autograd.Function):
        def forward(self, x):
            return x * 1

        def backward(self, gradient):
            held.append(gradient * 2)
            return held[0]

    x = variable([1.0, 2.0])
    with autograd.record():
        y = Keeps()(x)
    y.backward()
    held[0][:] = 9
    assert x.grad.asnumpy().tolist() == [2, 2]


def test_gradients_in_the_users_hands_can_be_written_to():
    class Clears(autograd.Function):
        def forward(self, x):
            return x * 1

        def backward(self, gradient):
            gradient[:, 1] = 0  # behind a sum torch has one number in the place of all
            gradient += 1
            return nd.clip(gradient, 0, 1.5, out=gradient)

    x = variable([[1.0, 2.0], [3.0, 4.0]])
    with autograd.record():
        y = Clears()(x).sum()
    y.backward()
    assert x.grad.asnumpy().tolist() == [[1.5, 1], [1.5, 1]]
    with autograd.record():
        y = x.sum()
    gradient, = autograd.grad(y, [x])
    gradient[0, 0] = 5
    nd.sgd_update(x, gradient, lr=1, out=gradient)
    assert gradient.asnumpy().tolist() == [[-4, 1], [2, 3]]
    assert torch.from_dlpack(gradient).is_contiguous()


def test_what_was_not_recorded_cannot_be_differentiated():
    x = variable([1.0])
    with pytest.raises(mx.MXNetError, match="not part of a recorded computation"):
        (x * 2).backward()


def test_scopes():
    assert not autograd.is_recording() and not autograd.is_training()
    with autograd.record():
        assert autograd.is_recording() and autograd.is_training()
        with autograd.pause():
            assert not autograd.is_recording() and not autograd.is_training()
        with autograd.predict_mode():
            assert autograd.is_recording() and not autograd.is_training()
    with autograd.train_mode():
        assert not autograd.is_recording() and autograd.is_training()
    assert autograd.set_recording(True) is False
    assert autograd.set_recording(False) is True


def test_detach_and_attach_cut_the_graph():
    x = variable([3.0])
    with autograd.record():
        y = (x * 2).detach()
        z = x * y
    z.backward()
    assert x.grad.asscalar() == 6
    with autograd.record():
        y = x * 2
        y.attach_grad()
        z = y * y
    z.backward()
    assert y.grad.asscalar() == 12
    assert x.grad.asscalar() == 6


def test_grad_and_higher_orders():
    x = variable([2.0])
    with autograd.record():
        y = x * x * x
        first, = autograd.grad(y, [x], create_graph=True)
        second, = autograd.grad(first, x, create_graph=True)
    second.backward()
    assert (first.asscalar(), second.asscalar(), x.grad.asscalar()) == (12, 12, 6)
    with pytest.raises(mx.MXNetError, match="variable 0 is not part of"):
        with autograd.record():
            y = x * 2
        autograd.grad(y, [nd.ones((1,))])


def test_indexing_copies_and_contexts_are_differentiable():
    x = variable([1.0, 2.0, 3.0])
    with autograd.record():
        y = x[1:] * 2
        z = (y.copyto(mx.cpu(1)).as_in_context(mx.cpu(0)) + x[nd.array([0, 0])]).sum()
    z.backward()
    assert x.grad.asnumpy().tolist() == [2, 2, 2]


class Scale(autograd.Function):
    def __init__(self, factor):
        super().__init__()
        self.factor = factor

    def forward(self, x, y):
        self.save_for_backward(y)
        return x * y, x + y

    def backward(self, dp, ds):
        y, = self.saved_tensors
        return dp * y * self.factor + ds, ds


def test_custom_functions():
    x, y = variable([2.0]), variable([3.0])
    with autograd.record():
        product, total = Scale(10)(x, y)
        z = product + total
    z.backward()
    assert (product.asscalar(), total.asscalar()) == (6, 5)
    assert (x.grad.asscalar(), y.grad.asscalar()) == (31, 1)
    f = Scale(1)
    f(x, y)
    with pytest.raises(mx.MXNetError, match="can be called once"):
        f(x, y)


def test_get_symbol():
    x, z = variable([1.0]), variable([1.0])
    with autograd.record():
        y = x * x + 2 * z - 1
    symbol = autograd.get_symbol(y)
    assert symbol.list_arguments() == ["var0", "var1"]
    assert symbol.eval(var0=nd.array([3]), var1=nd.array([5]))[0].asscalar() == 18
    with pytest.raises(mx.MXNetError, match="not computed inside"):
        autograd.get_symbol(nd.ones((1,)))


def test_get_symbol_of_a_variable_and_of_a_copy():
    x = nd.array([1.0, 2.0])
    x.attach_grad()
    assert autograd.get_symbol(x).list_outputs() == ["var0"]
    with autograd.record():
        y = (x * 2).copy()
        for _ in range(2000):  # deeper than Python's recursion limit
            y = y + 1
    symbol = autograd.get_symbol(y)
    assert symbol.bind(mx.cpu(), {"var0": x}).forward()[0].asnumpy().tolist() == [2002, 2004]
    with pytest.raises(TypeError, match="an NDArray expected, received ndarray"):
        autograd.get_symbol(x.asnumpy())


@pytest.mark.parametrize("shape", [(3, 2), (6,), (1, 6), (2, 1, 3)])
def test_a_head_gradient_of_equal_size_is_read_in_order(shape):
    x = nd.arange(1, 7).reshape((2, 3))
    x.attach_grad()
    head = nd.arange(1, 7).reshape(shape)
    with autograd.record():
        y = x * x
    y.backward(head)
    assert x.grad.asnumpy().tolist() == [[2, 8, 18], [32, 50, 72]]
    with autograd.record():
        y = x * x
    assert autograd.grad(y, [x], head)[0].asnumpy().tolist() == [[2, 8, 18], [32, 50, 72]]
    with autograd.record():
        y = x * x
    with pytest.raises(mx.MXNetError, match=r"a head gradient of shape \(7,\) for a head of shape \(2, 3\)"):
        y.backward(nd.ones(7))


def test_what_no_gradient_reaches_gets_zero():
    x, y = variable([1.0, 2.0]), variable([1.0], grad_req="add")
    x.grad[:] = 7
    y.grad[:] = 7
    with autograd.record():
        z = nd.stop_gradient(x) * 2 + (y > 0)
    z.backward()
    assert x.grad.asnumpy().tolist() == [0, 0] and x._fresh_grad
    assert y.grad.asscalar() == 7


def test_gradients_flow_into_torch():
    t = torch.ones(2, requires_grad=True)
    with autograd.record():
        x = nd.from_torch(t * 3)
        y = (x * x).sum()
    y.backward()
    assert t.grad.tolist() == [18, 18]
    assert not (nd.from_torch(t) * 2).as_torch().requires_grad


def test_a_head_gradient_may_have_more_rows_than_its_head():
    x = mx.nd.ones((3, 2))
    x.attach_grad()
    with mx.autograd.record():
        y = x * 2
    y.backward(mx.nd.arange(8).reshape((4, 2)))
    assert x.grad.asnumpy().tolist() == [[0, 2], [4, 6], [8, 10]]


def test_ctrl_c_does_not_leave_a_scope_recording():
    x = mx.nd.ones((3,))
    x.attach_grad()

    def work():
        with autograd.record(), autograd.pause(train_mode=True):
            x + x
        with autograd.predict_mode():
            x + x

    def check():
        assert not autograd.is_recording() and not autograd.is_training() and torch.is_grad_enabled()

    assert at_each_point(work, check) > 30


def test_a_scope_that_is_entered_twice_is_left_twice():
    scope = autograd.record()
    with autograd.pause(), scope:
        with scope:
            assert autograd.is_recording()
        assert autograd.is_recording()
        with pytest.raises(ValueError), autograd.predict_mode():
            assert not autograd.is_training()
            raise ValueError
        assert autograd.is_training()
    assert not autograd.is_recording()


def test_scopes_in_a_stack():
    with contextlib.ExitStack() as stack:
        stack.enter_context(autograd.record())
        stack.enter_context(autograd.predict_mode())
        assert autograd.is_recording() and not autograd.is_training()
    assert not autograd.is_recording()


@pytest.mark.parametrize("function", [nd.abs, nd.sign, nd.round])
def test_second_derivatives_that_are_zero_everywhere_have_memory(function):
    """Torch has no memory for some of them; values as from the real MXNet where it has the operator's second derivative."""
    x = nd.array([1.5, -2, 3])
    x.attach_grad()
    with autograd.record():
        dx = autograd.grad(function(x) * 2, x, create_graph=True, retain_graph=True)[0]
        again = autograd.grad(dx * x, x, create_graph=True, retain_graph=True)[0]
        third = autograd.grad(dx, x, create_graph=True, retain_graph=True)[0]
    dx.backward()
    assert third.asnumpy().tolist() == x.grad.asnumpy().tolist() == [0, 0, 0]
    assert again.asnumpy().tolist() == dx.asnumpy().tolist()
    for zeros in (third.detach(), x.grad):
        zeros[:] = 7
        assert zeros.asnumpy().tolist() == [7, 7, 7]


def test_a_gradient_that_was_differentiated_leaves_what_it_came_from():
    """As MXNet, whose graph of a gradient does not hold the result that it is the gradient of."""
    x, w = nd.array([[1, 2]]), nd.array([[3, 4], [5, 6]])
    for array in (x, w):
        array.attach_grad()
    with autograd.record():
        y = nd.FullyConnected(x, w, num_hidden=2, no_bias=True)
        dx = autograd.grad(y, x, nd.array([[1, 10]]), create_graph=True, retain_graph=True)[0]
        ddw = autograd.grad(dx, w, nd.array([[1, 1]]), create_graph=False)[0]
        dw = autograd.grad(y, w, nd.array([[1, 10]]), create_graph=True, retain_graph=True)[0]
    assert dx.asnumpy().tolist() == [[53, 64]] and ddw.asnumpy().tolist() == [[1, 1], [10, 10]] and dw.asnumpy().tolist() == [[1, 2], [10, 20]]
    with pytest.raises(MXNetError, match="not part of a recorded computation"):
        dx.backward()
