import pytest

import mxnet as mx
from mxnet import np, npx


@pytest.fixture(autouse=True)
def numpy_semantics():
    npx.set_np()
    yield
    npx.reset_np()


def test_operators_on_images_give_arrays_of_numpy():
    x = np.array([[[0, 255, 51]]], dtype="uint8")
    found = npx.image.to_tensor(x)
    assert type(found) is np.ndarray and found.shape == (3, 1, 1) and found.flatten().tolist() == pytest.approx([0, 1, 0.2])
    assert npx.image.flip_left_right(np.arange(6).reshape(1, 2, 3)).tolist() == [[[3, 4, 5], [0, 1, 2]]]


def test_the_rest_is_that_of_mx_image():
    assert npx.image.ImageIter is mx.image.ImageIter and npx.image.imresize is mx.image.imresize
    with pytest.raises(AttributeError, match="no_such_thing"):
        npx.image.no_such_thing
