import pytest

from openvino_checks import check, numbers, refusal, registered_in

CASES = {
    "Convolution": [([numbers(2, 4, 6, 6), numbers(6, 2, 3, 3), numbers(6)],
                     dict(kernel=(3, 3), num_filter=6, num_group=2, stride=(2, 1), pad=(1, 0))),
                    ([numbers(1, 3, 8), numbers(4, 3, 3)], dict(kernel=(3,), num_filter=4, no_bias=True, dilate=(2,)))],
    "Deconvolution": [([numbers(1, 4, 5, 5), numbers(4, 3, 4, 4)], dict(kernel=(4, 4), stride=(2, 2), pad=(1, 1), num_filter=6, num_group=2)),
                      ([numbers(1, 2, 3, 3), numbers(2, 3, 3, 3), numbers(3)],
                       dict(kernel=(3, 3), stride=(2, 2), adj=(1, 1), num_filter=3, no_bias=False))],
}


@pytest.mark.parametrize("name", registered_in("nn.convolution"))
def test_each_gives_what_its_operator_gives(name):
    check(name, CASES.get(name, ()))


def test_what_stays_on_torch():
    data, weight = numbers(1, 5, 5, 3), numbers(4, 3, 3, 3)
    assert refusal("Convolution", data, weight, kernel=(3, 3), num_filter=4, no_bias=True, layout="NHWC") == "Convolution: layout NHWC"
    assert refusal("Deconvolution", numbers(1, 3, 5, 5), numbers(3, 4, 3, 3), kernel=(3, 3), num_filter=4, target_shape=(7, 7)) == \
        "Deconvolution: layout or target_shape"
