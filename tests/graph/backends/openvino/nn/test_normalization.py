import pytest

from openvino_checks import check, numbers, refusal, registered_in

CASES = {"BatchNorm_v1": [([numbers(2, 3, 4), *(numbers(3, seed=i, low=0.5) for i in range(4))], dict(fix_gamma=f)) for f in (True, False)]}


@pytest.mark.parametrize("name", registered_in("nn.normalization"))
def test_each_gives_what_its_operator_gives(name):
    check(name, CASES.get(name, ()))


def test_what_stays_on_torch():
    data, per_channel = numbers(2, 3, 4), numbers(3)
    assert refusal("LayerNorm", data, numbers(4), numbers(4), output_mean_var=True) == "LayerNorm: output_mean_var"
    assert refusal("GroupNorm", data, per_channel, per_channel, num_groups=3, output_mean_var=True) == "GroupNorm: output_mean_var"
    assert refusal("BatchNorm", data, *[per_channel] * 4, output_mean_var=True) == "BatchNorm: output_mean_var"
    assert refusal("InstanceNorm", numbers(2, 3), per_channel, per_channel) == "InstanceNorm: fewer than three axes"
