import pytest

import mxnet as mx
from mxnet.gluon import nn
from mxnet.gluon.summary import _shapes, print_summary

SUMMARY = """\
--------------------------------------------------------------------------------
        Layer (type)                                Output Shape         Param #
================================================================================
               Input                                      (4, 3)               0
             Dense-1                                      (4, 2)               8
             Dense-2                                      (4, 2)               6
             Dense-3                                      (4, 2)               6
               Net-4                                      (4, 2)               0
================================================================================
Parameters of all layers that ran, shared ones counted each time
   Total params: 20
   Trainable params: 18
   Non-trainable params: 2
Shared params in forward computation graph: 6
Unique parameters in model: 14
--------------------------------------------------------------------------------
"""


def test_summary(net, capsys):
    net.a.bias.grad_req = "null"
    net.summary(mx.nd.ones((4, 3)))
    assert capsys.readouterr().out == SUMMARY
    assert not net._forward_hooks
    net.hybridize()
    with pytest.raises(AssertionError, match="summary: n_dense0 is hybridized"):
        net.summary(mx.nd.ones((4, 3)))


def test_layers_in_a_row_have_no_line_of_their_own(capsys):
    net = nn.HybridSequential()
    net.add(nn.Dense(2, in_units=1), nn.Activation("relu"))
    net.initialize()
    print_summary(net, [mx.nd.ones((3, 1))])
    rows = [line.split() for line in capsys.readouterr().out.splitlines()[3:6]]
    assert rows == [["Input", "(3,", "1)", "0"], ["Dense-1", "(3,", "2)", "4"], ["Activation-2", "(3,", "2)", "0"]]


@pytest.mark.parametrize("arrays, text", [
    (lambda x: x, "(2, 3)"), (lambda x: [x], "(2, 3)"), (lambda x: [x, x], "(2, 3), (2, 3)"), (lambda x: [x, [x, None]], "(2, 3), [(2, 3), None]")])
def test_shapes_of_nested_lists(arrays, text):
    assert _shapes(arrays(mx.nd.ones((2, 3)))) == text


def test_nothing_stays_behind_after_an_error(net):
    with pytest.raises(Exception, match="."):
        print_summary(net, [mx.nd.ones((1, 99))])
    assert not net._forward_hooks and not net.a._forward_hooks
