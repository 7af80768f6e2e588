import pytest

from mxnet import np, npx
from mxnet.numpy_op_signature import _get_builtin_op


def test_functions_by_the_names_of_their_operators():
    assert _get_builtin_op("_np_sum") is np.sum and _get_builtin_op("_npx_relu") is npx.relu
    assert _get_builtin_op("_npx__image_to_tensor") is npx.image.to_tensor
    assert _get_builtin_op("FullyConnected") is None and _get_builtin_op("_npi_add") is None


@pytest.mark.parametrize("name", ["_np_nothing", "_npx_nothing"])
def test_names_without_a_function(name):
    with pytest.raises(ValueError, match="Cannot find operator nothing in module mxnet.numpy"):
        _get_builtin_op(name)
