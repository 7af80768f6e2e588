import pytest

from mxnet.interop.from_torch.values import reshape_codes, same, same_shape


@pytest.mark.parametrize("old, new, codes", [
    ((2, 3), (6,), (False, (6,))), ((2, 3), (3, 2), (False, (3, 2))), ((1,), (), (False, (1,))),
])
def test_codes_of_sizes_that_are_known(old, new, codes):
    assert reshape_codes(old, new) == codes


def test_sizes():
    assert same(2, 2) and not same(2, 3)
    assert same_shape((1, 2), (1, 2)) and not same_shape((1,), (1, 1))
