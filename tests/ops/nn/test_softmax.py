"""Softmax: types, lengths, inference. Values: `test_against_oracle`."""
import pytest
import torch

from mxnet import MXNetError
from mxnet.ops import get

SOFTMAX = get("softmax")


def test_result_type():
    data = torch.tensor([[1.0, 2.0]])
    assert SOFTMAX(data.half(), dtype="float32").dtype == torch.float32
    assert SOFTMAX(data, dtype="float16").dtype == torch.float16
    assert SOFTMAX(data.double(), dtype="float32").dtype == torch.float32
    assert SOFTMAX(data.int()).dtype == torch.float32
    every = SOFTMAX.with_defaults({"dtype": "float16"})
    assert SOFTMAX.dtype_inference([torch.float32], [None], **every) == ([torch.float32], [torch.float16])


def test_length_zero_gives_zeros_and_no_gradient():
    data = torch.tensor([[1.0, 2.0], [3.0, 3.0]], requires_grad=True)
    out = SOFTMAX(data, torch.tensor([0, 2]), use_length=True)
    assert out.tolist() == [[0.0, 0.0], [0.5, 0.5]]
    out[:, 0].sum().backward()
    assert data.grad.tolist() == [[0.0, 0.0], [0.25, -0.25]]


def test_inference():
    every = SOFTMAX.with_defaults({"axis": 1, "use_length": True})
    assert SOFTMAX.shape_inference([(2, 3, 4), None], [None], **every) == ([(2, 3, 4), (2, 4)], [(2, 3, 4)])
    assert SOFTMAX.shape_inference([None, None], [(2, 3, 4)], **every)[0] == [(2, 3, 4), (2, 4)]
    assert SOFTMAX.input_names({"use_length": True}) == ("data", "length") and SOFTMAX.input_names({}) == ("data",)
    with pytest.raises(MXNetError, match="softmax: axis 4 is out of range for data with 3 axes"):
        SOFTMAX.shape_inference([(2, 3, 4)], [None], **SOFTMAX.with_defaults({"axis": 4}))
    entropy = get("softmax_cross_entropy")
    assert entropy.shape_inference([(4, 3), None], [None]) == ([(4, 3), (4,)], [(1,)])


@pytest.mark.parametrize("name", ["log_softmax", "softmin"])
def test_only_softmax_knows_lengths(name):
    with pytest.raises(MXNetError, match=f"{name}: `use_length` is only for softmax"):
        get(name)(torch.ones(2, 3), use_length=True)


def test_a_length_and_use_length_belong_together():
    data, length = torch.ones(2, 3), torch.tensor([1, 2])
    with pytest.raises(MXNetError, match=r"received use_length=False and a length of shape \(2,\)"):
        SOFTMAX(data, length)
    with pytest.raises(MXNetError, match="received use_length=True and no length"):
        SOFTMAX(data, use_length=True)
    with pytest.raises(MXNetError, match="softmax: `length` must be of an integer type, received float32"):
        SOFTMAX(data, length.float(), use_length=True)


def test_softmax_activation_over_channels_needs_more_axes():
    activation = get("SoftmaxActivation")
    with pytest.raises(MXNetError, match=r"mode='channel' needs data with at least 3 axes, received shape \(2, 3\)"):
        activation(torch.ones(2, 3), mode="channel")
    assert activation(torch.ones(1, 2, 1), mode="channel").tolist() == [[[0.5], [0.5]]]


def test_masked_softmax():
    masked, logarithm = get("_npx_masked_softmax"), get("_npx_masked_log_softmax")
    data, mask = torch.tensor([[0.0, 1.0, 2.0], [1.0, 1.0, 1.0]], requires_grad=True), torch.tensor([[1, 0, 1], [0, 0, 0]])
    out = masked(data, mask)
    assert out.tolist() == [[pytest.approx(0.11920292), 0, pytest.approx(0.88079708)], [0, 0, 0]]  # all masked: 0, not NaN
    out[0, 0].backward()
    assert data.grad.tolist() == [[pytest.approx(0.10499359), 0, pytest.approx(-0.10499359)], [0, 0, 0]]
    assert masked(torch.tensor([[0.0, 2.0]]), torch.tensor([True, True]), temperature=2.0).tolist()[0] == pytest.approx([0.26894142, 0.73105858])
    assert masked(torch.zeros(2, 2), torch.tensor([[True], [False]]), axis=0).tolist() == [[1, 1], [0, 0]]
    assert logarithm(torch.tensor([0.0, 5.0, 0.0]), torch.tensor([1, 0, 1])).tolist() == pytest.approx([-0.69314718, -torch.inf, -0.69314718])
    with pytest.raises(MXNetError, match=r"masked_softmax: `mask` must broadcast to the shape of `data`, received shapes \(2,\) and \(1, 3\)"):
        masked(torch.zeros(1, 3), torch.ones(2))
