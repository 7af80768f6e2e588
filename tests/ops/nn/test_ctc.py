"""CTCLoss: borders, inference, errors. Values: `test_against_oracle`."""
import pytest
import torch

from mxnet import MXNetError
from mxnet.ops import get

CTC = get("CTCLoss")


def test_a_label_that_does_not_fit_costs_nothing():
    data = torch.zeros(3, 1, 4, requires_grad=True)
    loss = CTC(data, torch.tensor([[2.0, 2.0, 2.0]]))  # repeats need blanks between them: five steps
    assert loss.tolist() == [0.0]
    loss.sum().backward()
    assert data.grad.abs().sum() == 0


def test_an_empty_label_is_all_blanks():
    loss = CTC(torch.zeros(3, 1, 4), torch.tensor([[0.0]]))
    torch.testing.assert_close(loss, torch.tensor([3 * 1.3862944]))


def test_label_lengths_may_come_as_the_third_input():
    data, label, lengths = torch.linspace(-1, 1, 24).view(4, 2, 3), torch.tensor([[1, 2], [2, 1]]), torch.tensor([1, 2])
    by_place = CTC(data, label, lengths, use_label_lengths=True)
    assert torch.equal(by_place, CTC(data, label, None, lengths, use_label_lengths=True))
    assert CTC.input_names({"use_label_lengths": True}) == ("data", "label", "label_lengths")


def test_nothing_is_read_behind_the_end():
    data = torch.linspace(-1, 1, 18).view(3, 2, 3)
    label, lengths = torch.tensor([[1], [2]]), torch.tensor([2, 3])
    clean = CTC(data, label, lengths, use_data_lengths=True)
    data[2, 0] = torch.nan
    data.requires_grad_()
    loss = CTC(data, label, lengths, use_data_lengths=True)
    assert torch.equal(loss, clean)
    loss.sum().backward()
    assert data.grad[2, 0].tolist() == [0.0, 0.0, 0.0] and data.grad.isfinite().all()


def test_half_precision():
    data = torch.linspace(-1, 1, 24).view(4, 2, 3)
    loss = CTC(data.half(), torch.tensor([[1, 2], [2, 1]]))
    assert loss.dtype == torch.float16
    torch.testing.assert_close(loss.float(), CTC(data, torch.tensor([[1, 2], [2, 1]])), atol=5e-3, rtol=1e-3)


def test_inference():
    every = CTC.with_defaults({"use_data_lengths": True})
    assert CTC.shape_inference([(7, 4, 5), (-1, 3), None], [None], **every) == ([(7, 4, 5), (4, 3), (4,)], [(4,)])
    with pytest.raises(MXNetError, match="at most 7 labels, one for each step, expected, received 8"):
        CTC.shape_inference([(7, 4, 5), (4, 8)], [None], **CTC.with_defaults({}))
    with pytest.raises(MXNetError, match=r"received shapes \(7, 4\) and \(4, 8\)"):
        CTC.shape_inference([(7, 4), (4, 8)], [None], **CTC.with_defaults({}))
    assert CTC.list_output_names({}) == ("output0",)


@pytest.mark.parametrize("lengths, attributes, message", [
    ([(2,)], {}, r"CTCLoss expects 2 inputs \(data, label\) with use_data_lengths=False and use_label_lengths=False, received 3"),
    ([], {"use_data_lengths": True}, r"CTCLoss expects 3 inputs \(data, label, data_lengths\) .* received 2"),
    ([(2,), (2,)], {"use_label_lengths": True}, r"CTCLoss expects 3 inputs \(data, label, label_lengths\) .* received 4"),
    ([(3,)], {"use_data_lengths": True}, r"CTCLoss's lengths: expected shape \(2,\), received \(3,\)"),
])
def test_lengths_are_given_where_the_attributes_ask_for_them(lengths, attributes, message):
    with pytest.raises(MXNetError, match=message):
        CTC(torch.zeros(3, 2, 4), torch.ones(2, 2), *(torch.ones(s) for s in lengths), **attributes)


@pytest.mark.parametrize("data, label, message", [
    ((3, 2, 4), (2, 4), "at most 3 labels, one for each step, expected, received 4"),
    ((3, 2, 4), (1, 2), r"CTCLoss's label: expected shape \(2, -1\), received \(1, 2\)"),
    ((3, 2), (2, 2), r"data must be \(steps, batch, classes\) and label \(batch, labels\), received shapes \(3, 2\) and \(2, 2\)"),
])
def test_shapes_that_do_not_fit(data, label, message):
    with pytest.raises(MXNetError, match=message):
        CTC(torch.zeros(data), torch.ones(label))


def test_numbers_of_no_class_do_not_lead_outside():
    data = torch.linspace(-1, 1, 24).view(3, 2, 4)
    expected = CTC(data, torch.tensor([[3.0, 1.0], [3.0, 0.0]]))
    assert torch.equal(CTC(data, torch.tensor([[9.0, 1.0], [1e6, 0.0]])), expected)
