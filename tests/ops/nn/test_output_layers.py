"""Output layers: labels inferred from data, gradients that ignore or use the incoming one. Values: `test_against_oracle`."""
import numpy as np
import pytest
import torch

import mxnet as mx
from mxnet import MXNetError
from mxnet.ops import get

SOFTMAX_OUTPUT = get("SoftmaxOutput")


def infer(name, data, label=None, **attributes):
    operator = get(name)
    return operator.shape_inference([data, label], [None], **operator.with_defaults(operator.parse(attributes)))[0][1]


def test_gradient_does_not_depend_on_the_incoming_one():
    for factor in (1.0, 100.0):
        data = torch.zeros(1, 2, requires_grad=True)
        (SOFTMAX_OUTPUT(data, torch.tensor([1.0])) * factor).sum().backward()
        assert data.grad.tolist() == [[0.5, -0.5]]
    data = torch.zeros(1, 2, requires_grad=True)
    (SOFTMAX_OUTPUT(data, torch.tensor([1.0]), out_grad=True) * 10).sum().backward()
    assert data.grad.tolist() == [[5.0, -5.0]]
    assert SOFTMAX_OUTPUT.loss and get("MakeLoss").loss and get("LinearRegressionOutput").loss and get("SVMOutput").loss


@pytest.mark.parametrize("use_linear, expected", [
    (False, [[-0.5, 0.8, 3.0], [2.0, 0.0, 0.0], [1.3, 1.4, 1.5], [2.0, 3.0, 4.0]]),
    (True, [[-0.5, 0.5, 0.5], [0.5, 0.0, 0.0], [0.5, 0.5, 0.5], [0.5, 0.5, 0.5]])])
def test_labels_that_name_no_class_make_all_of_them_wrong(use_linear, expected):
    data = torch.tensor([[0.5, -0.2, 2], [1, 1.5, -3], [0.3, 0.4, 0.5], [1, 2, 3]], requires_grad=True)
    get("SVMOutput")(data, torch.tensor([0, 1.7, 5, -1]), regularization_coefficient=0.5, use_linear=use_linear).sum().backward()
    torch.testing.assert_close(data.grad, torch.tensor(expected))


def test_a_batch_of_ignored_labels_only():
    data = torch.zeros(2, 2, requires_grad=True)
    SOFTMAX_OUTPUT(data, torch.tensor([7.0, 7.0]), use_ignore=True, ignore_label=7, normalization="valid").sum().backward()
    assert data.grad.tolist() == [[0.0, 0.0], [0.0, 0.0]]


def test_half_precision():
    data = torch.zeros(2, 2, dtype=torch.float16, requires_grad=True)
    out = SOFTMAX_OUTPUT(data, torch.tensor([1.0, 0.0]), normalization="valid", use_ignore=True)
    out.sum().backward()
    assert out.dtype == torch.float16 and data.grad.tolist() == [[0.25, -0.25], [-0.25, 0.25]]


def test_labels_are_inferred():
    assert infer("SoftmaxOutput", (4, 3)) == (4,)
    assert infer("SoftmaxOutput", (4, 3, 5)) == (4, 3)
    assert infer("SoftmaxOutput", (-1, 3)) == (-1,)
    assert infer("SoftmaxOutput", (4, 3), (4, 3)) == (4, 3)
    assert infer("SoftmaxOutput", (4, 3, 5, 6), multi_output=True) == (4, 30)
    assert infer("SoftmaxOutput", (4, 3, 5, 6), (4, 5, 6), multi_output=True) == (4, 5, 6)
    assert infer("SVMOutput", (4, 3)) == (4,)
    assert infer("LinearRegressionOutput", (4, 3)) == (4, 3)
    assert infer("LogisticRegressionOutput", (4, 1)) == (4,)
    assert infer("MAERegressionOutput", (4,)) == (4,)


def test_labels_that_do_not_fit():
    with pytest.raises(MXNetError, match=r"SoftmaxOutput's label: expected shape \(4,\), received \(5,\)"):
        infer("SoftmaxOutput", (4, 3), (5,))
    with pytest.raises(MXNetError, match=r"label must have the shape \(4, 30\) or \(4, 5, 6\) for data \(4, 3, 5, 6\), received \(4, 7\)"):
        infer("SoftmaxOutput", (4, 3, 5, 6), (4, 7), multi_output=True)
    with pytest.raises(MXNetError, match=r"LinearRegressionOutput: the label's shape must be \(4, 3\), .* received \(4, 2\)"):
        infer("LinearRegressionOutput", (4, 3), (4, 2))


def test_sparse_regularization_updates_its_mean_in_backward():
    operator = get("IdentityAttachKLSparseReg")
    data, mean = torch.tensor([[0.5, 0.2], [0.7, 0.4]], requires_grad=True), torch.tensor([0.5, 0.5])
    out = operator(data, mean, momentum=0.5, penalty=1.0, sparseness_target=0.1)
    assert mean.tolist() == [0.5, 0.5]
    out.sum().backward()
    torch.testing.assert_close(mean, torch.tensor([0.55, 0.4]))
    expected = 1 - 0.1 / mean + 0.9 / (1 - mean)
    torch.testing.assert_close(data.grad, expected.expand(2, 2))
    assert operator.shape_inference([(4, 3), None], [None])[0][1] == (3,)


def test_make_loss_in_half_precision():
    data = torch.tensor([1.0, -1.0], dtype=torch.float16, requires_grad=True)
    get("MakeLoss")(data, normalization="valid", grad_scale=3.0).sum().backward()
    assert data.grad.tolist() == [3.0, 3.0]


@pytest.mark.parametrize("name, data, label, attributes, message", [
    ("SoftmaxOutput", (1, 6, 3), (6,), {}, r"SoftmaxOutput's label: expected shape \(1, 6\), received \(6,\)"),
    ("SoftmaxOutput", (1, 3, 3), (2, 3), {"multi_output": True}, r"label must have the shape \(1, 3\) or \(1, 3\) .* received \(2, 3\)"),
    ("LinearRegressionOutput", (12,), (4, 3), {}, r"LinearRegressionOutput: the label's shape must be \(12,\).* received \(4, 3\)"),
    ("LogisticRegressionOutput", (1, 3), (4, 3), {}, "LogisticRegressionOutput: the label's shape must be"),
    ("MAERegressionOutput", (1, 4, 1), (4,), {}, "MAERegressionOutput: the label's shape must be"),
    ("SVMOutput", (1, 4, 3), (4,), {}, r"SVMOutput: `label` must have shape \(1, 4\) for data \(1, 4, 3\), received \(4,\)"),
    ("IdentityAttachKLSparseReg", (4,), (4,), {}, r"expected `data` \(N, C, ...\) and `moving_avg` \(C,\), received \(4,\) and \(4,\)"),
    ("IdentityAttachKLSparseReg", (1, 3, 4), (4,), {}, r"received \(1, 3, 4\) and \(4,\)"),
])
def test_shapes_that_do_not_fit_are_refused_by_a_call(name, data, label, attributes, message):
    with pytest.raises(MXNetError, match=message):
        get(name)(torch.zeros(data), torch.zeros(label), **attributes)


@pytest.mark.parametrize("name, attribute", [("SoftmaxOutput", "smooth_alpha"), ("IdentityAttachKLSparseReg", "sparseness_target"),
                                             ("IdentityAttachKLSparseReg", "momentum")])
@pytest.mark.parametrize("value", [2, -1])
def test_bounds(name, attribute, value):
    with pytest.raises(MXNetError, match=f"{name}: `{attribute}` must be a number from 0 to 1, received {value}"):
        get(name).parse({attribute: value})


@pytest.mark.parametrize("classes", [3, 10000])  # few numbers are gone over in fewer calls
@pytest.mark.parametrize("attributes, right, wrong", [({}, -1.0, 0.0), ({"smooth_alpha": 0.5}, -0.5, -0.5)])
def test_gradient_at_the_right_class(classes, attributes, right, wrong):
    x = mx.nd.zeros((2, classes))
    x.attach_grad()
    with mx.autograd.record():
        out = mx.nd.SoftmaxOutput(x, mx.nd.array([1, classes]), **attributes)  # the second label names no class
    out.backward()
    expected = np.full((2, classes), 1 / classes + wrong / (classes - 1))
    expected[0, 1] = 1 / classes + right
    np.testing.assert_allclose(x.grad.asnumpy(), expected, rtol=1e-5)
