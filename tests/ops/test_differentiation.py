"""Tests of gradients straight from torch's engine."""
import subprocess

import pytest
import torch

from forked import python
from mxnet.ops import differentiation


def test_backward_adds_to_the_leaves():
    x, y = torch.tensor([1.0, 2.0], requires_grad=True), torch.tensor([3.0, 5.0], requires_grad=True)
    differentiation.backward([x * y, x * x], [torch.tensor([1.0, 10.0]), torch.ones(2)])
    assert x.grad.tolist() == [5, 54] and y.grad.tolist() == [1, 20]
    differentiation.backward([x * y], [torch.ones(2)], inputs=[y])
    assert x.grad.tolist() == [5, 54] and y.grad.tolist() == [2, 22]


def test_what_was_freed_and_what_is_kept():
    x = torch.tensor([3.0], requires_grad=True)
    y = x * x
    differentiation.backward([y], [torch.ones(1)], retain_graph=True)
    differentiation.backward([y], [torch.ones(1)])
    assert x.grad.tolist() == [12]
    with pytest.raises(RuntimeError, match="second time"):
        differentiation.backward([y], [torch.ones(1)])


def test_gradients_leave_the_leaves_alone_and_can_be_differentiated():
    x, other = torch.tensor([3.0], requires_grad=True), torch.tensor([1.0], requires_grad=True)
    slope, none = differentiation.gradients([x * x * x], [x, other], [torch.ones(1)], retain_graph=True, create_graph=True)
    assert slope.tolist() == [27] and none is None and x.grad is None
    assert differentiation.gradients([slope], [x], [torch.ones(1)])[0].tolist() == [18]


def test_a_gradient_of_another_size_is_refused():
    x = torch.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="invalid gradient"):
        differentiation.backward([x * 2], [torch.ones(3)])


def test_training_imports_no_symbolic_mathematics():
    code = """if True:
        import logging, sys
        logging.basicConfig(level=logging.DEBUG)  # at which torch reports every node of a graph
        import mxnet as mx
        x = mx.nd.array([1.0, 2.0])
        x.attach_grad()
        with mx.autograd.record():
            y = mx.nd.dot(x, x)
        y.backward()
        s = mx.sym.MakeLoss(mx.sym.var("x") ** 2)
        e = s.bind(mx.cpu(), {"x": x}, args_grad={"x": mx.nd.zeros(2)})
        e.forward(is_train=True)
        e.backward()
        print(x.grad.asnumpy().tolist(), e.grad_arrays[0].asnumpy().tolist(), [m for m in ("sympy", "torch._dynamo") if m in sys.modules])
    """
    done = subprocess.run([*python(), "-c", code], capture_output=True, text=True, check=True, timeout=120)
    assert done.stdout == "[2.0, 4.0] [2.0, 4.0] []\n"
    assert "Executing" not in done.stderr
