"""Activations with a random or learned part. Values: `test_against_oracle`."""
import pytest
import torch

from mxnet import MXNetError
from mxnet.ops import get, random_state

LEAKY = get("LeakyReLU")


def test_selu():
    data = torch.tensor([-1.0, 0.0, 2.0], requires_grad=True)
    out = LEAKY(data, act_type="selu")
    torch.testing.assert_close(out, torch.tensor([-1.1113307, 0.0, 2.101402]))
    out.sum().backward()  # the derivative of the function, where MXNet 1.9.1 gives 0.59 at -1
    torch.testing.assert_close(data.grad[0], torch.tensor(1.0507010 * 1.6732632 * 0.36787944))


def test_rrelu_draws_slopes_while_training():
    data = torch.full((1000,), -1.0)
    random_state.seed(3)
    out, slopes = LEAKY(data, act_type="rrelu", lower_bound=0.2, upper_bound=0.4, training=True)
    assert torch.equal(out, -slopes)
    assert slopes.min() >= 0.2 and slopes.max() <= 0.4 and slopes.std() > 0.05
    random_state.seed(3)
    assert torch.equal(LEAKY(data, act_type="rrelu", lower_bound=0.2, upper_bound=0.4, training=True)[1], slopes)


def test_rrelu_takes_the_mean_slope_otherwise():
    out, slopes = LEAKY(torch.tensor([-1.0, 2.0]), act_type="rrelu")
    torch.testing.assert_close(out, torch.tensor([-0.2295, 2.0]))
    assert slopes.tolist() == [0.0, 0.0]
    assert LEAKY.list_output_names({"act_type": "rrelu"}) == ("output", "mask")


def test_gamma_is_an_input_of_prelu_only():
    assert LEAKY.input_names({"act_type": "prelu"}) == ("data", "gamma")
    assert LEAKY.input_names({}) == ("data",)
    every = LEAKY.with_defaults({"act_type": "prelu"})
    assert LEAKY.shape_inference([(2, 3, 4), None], [None], **every) == ([(2, 3, 4), (3,)], [(2, 3, 4)])
    assert LEAKY.shape_inference([(5,), None], [None], **every)[0][1] == (5,)
    assert LEAKY.shape_inference([(2, 3, 4), (1,)], [None], **every)[0][1] == (1,)
    with pytest.raises(MXNetError, match=r"gamma must broadcast to data, received shapes \(4,\) and \(2, 3, 4\)"):
        LEAKY.shape_inference([(2, 3, 4), (4,)], [None], **every)


def test_slopes_for_instances_and_channels():
    data = -torch.ones(2, 3, 2)
    out = LEAKY(data, torch.tensor([[1.0, 2, 3], [4, 5, 6]]), act_type="prelu")
    assert out[:, :, 0].tolist() == [[-1.0, -2, -3], [-4, -5, -6]]
    assert LEAKY(data, torch.tensor([2.0, 4.0]), act_type="prelu")[:, 0, 0].tolist() == [-2.0, -4.0]
    with pytest.raises(MXNetError, match="gamma must broadcast to data"):
        LEAKY(data, torch.ones(2, 1, 2), act_type="prelu")


def test_unknown_activation():
    with pytest.raises(MXNetError, match="Activation: `act_type` must be one of 'relu', 'sigmoid', .*, received 'swish'"):
        get("Activation").parse({"act_type": "swish"})


def test_gamma_belongs_to_prelu():
    with pytest.raises(MXNetError, match=r"`gamma` belongs to act_type='prelu' only, received act_type='leaky' and one of shape \(3,\)"):
        LEAKY(torch.ones(2, 3), torch.ones(3))
    with pytest.raises(MXNetError, match="received act_type='prelu' and none"):
        LEAKY(torch.ones(2, 3), act_type="prelu")


def test_activations_of_mxnet_2():
    data = torch.tensor([-200.0, 0.0, 1.0])
    activation = get("Activation")
    assert activation(data, act_type="log_sigmoid").tolist() == pytest.approx([-200.0, -0.6931472, -0.3132617])
    assert activation(data, act_type="mish").tolist() == pytest.approx([0.0, 0.0, 0.8650984])
