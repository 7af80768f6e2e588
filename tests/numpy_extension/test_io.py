"""npx.save and npx.load, and the switches."""
import pytest

import mxnet as mx
from mxnet import np, npx


def test_save_and_load(tmp_path):
    with mx.np_shape():
        file = str(tmp_path / "arrays")
        npx.save(file, {"a": np.array([1.0, 2.0]), "b": np.ones(())})
        found = npx.load(file)
        assert {k: (type(v), v.tolist()) for k, v in found.items()} == {"a": (np.ndarray, [1.0, 2.0]), "b": (np.ndarray, 1.0)}
        npx.save(file, np.zeros((0, 2)))
        assert npx.load(file)[0].shape == (0, 2)
        with pytest.raises(TypeError, match="use mx.nd.save"):
            npx.save(file, [mx.nd.ones(1)])


def test_switches():
    npx.set_np()
    try:
        assert npx.is_np_array() and npx.is_np_shape()
    finally:
        npx.reset_np()
    assert not npx.is_np_array() and not npx.is_np_shape()


def test_constraint_check():
    assert npx.constraint_check(np.array([True, True], dtype="bool"), "never").item() is True
    with pytest.raises(ValueError, match="all must hold"):
        npx.constraint_check(np.array([True, False], dtype="bool"), "all must hold")


def test_reshape_codes():
    x = np.ones((2, 3, 4, 1))
    assert npx.reshape(x, (-2, -5, -3)).shape == (2, 12)
    assert npx.reshape(x, (-2, -4)).shape == (2, 3, 4, 1)
    assert npx.reshape(x, (-6, 1, 2, -4)).shape == (1, 2, 3, 4, 1)
    assert npx.reshape(x, (-1, -2), reverse=True).shape == (24, 1)
    with pytest.raises(mx.MXNetError, match="drops an axis of size 1"):
        npx.reshape(x, (-3, -4))
