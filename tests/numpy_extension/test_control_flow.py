"""Loops and branches over mx.np arrays."""
import pytest

import mxnet as mx
from mxnet import gluon, np, npx


def test_foreach_is_recorded():
    x = np.array([1.0, 2.0, 3.0])
    x.attach_grad()
    with mx.autograd.record():
        outputs, state = npx.foreach(lambda row, s: (row * s, s + row), x, np.array(1.0))
        outputs.sum().backward()
    assert outputs.tolist() == [1, 4, 12] and state.item() == 7 and x.grad.tolist() == [6, 5, 4]


def test_while_loop_ends_by_its_condition_or_the_number_of_steps():
    outputs, (n, total) = npx.while_loop(lambda n, s: n <= 3, lambda n, s: (n + s, [n + 1, s + n]), [np.array(1), np.array(0)], max_iterations=5)
    assert outputs.tolist() == [1, 3, 6, 0, 0] and (n.item(), total.item()) == (4, 6)
    outputs, (n,) = npx.while_loop(lambda n: n < 9, lambda n: (n, [n + 1]), [np.array(1)], max_iterations=2)
    assert outputs.tolist() == [1, 2] and n.item() == 3
    with pytest.raises(ValueError, match="max_iterations should be specified"):
        npx.while_loop(lambda n: n < 9, lambda n: (n, [n + 1]), [np.array(1)])


@pytest.mark.parametrize("value, expected", [(3.0, 4.0), (7.0, 6.0)])
def test_cond(value, expected):
    x = np.array(value)
    assert npx.cond(lambda x: x < 5, lambda x: x + 1, lambda x: x - 1, x).item() == expected
    assert npx.cond(lambda a, b: a < b, lambda a, b: a + 1, lambda a, b: a - 1, [x, np.array(5.0)]).item() == expected
    assert npx.cond(x < 5, lambda: x + 1, lambda: x - 1, ()).item() == expected
    with pytest.raises(TypeError, match="functions expected as then_func and else_func, received 1"):
        npx.cond(x < 5, 1, lambda: x, ())
    with pytest.raises(ValueError, match="Cannot convert pred to python bool"):
        npx.cond(np.ones(2), lambda: x, lambda: x, ())


def test_a_loop_in_a_hybridized_forward():
    class Sums(gluon.HybridBlock):
        def forward(self, x):
            outputs, state = npx.foreach(lambda row, s: (row + s, row + s), x, np.zeros(2))
            return outputs * 2, state

    npx.set_np()
    net = Sums()
    net.hybridize()
    for rows in (2, 2, 3, 2):
        outputs, state = net(np.ones((rows, 2)))
        assert outputs.tolist() == [[2.0 * i] * 2 for i in range(1, rows + 1)] and state.tolist() == [rows, rows]


def test_a_branch_in_a_hybridized_forward_decides_at_each_call():
    class Branch(gluon.HybridBlock):
        def forward(self, x):
            return npx.cond(lambda x: x.sum() > 0, lambda x: x + 1, lambda x: x - 1, x)

    npx.set_np()
    net = Branch()
    net.hybridize()
    with pytest.warns(UserWarning):  # what decides by values runs step by step
        found = [net(np.full((1,), v)).item() for v in (1.0, -1.0, 2.0, -2.0)]
    assert found == [2, -2, 3, -3]
