import numpy as np
import pytest

from mxnet import MXNetError
from onnx_import_checks import agrees, model_of, node, run

R = np.random.RandomState(5)


@pytest.mark.parametrize("parts", [1, 2])
@pytest.mark.parametrize("attributes", [{}, {"inverse": 1}, {"axis": 2}])
def test_transforms(parts, attributes):
    agrees(node("DFT", "x", **attributes), {"x": R.randn(2, 5, 6, parts).astype("float32")}, rtol=1e-4, atol=1e-5)


def test_one_half_and_other_lengths():
    data = R.randn(2, 6, 1).astype("float32")
    agrees(node("DFT", "x", onesided=1), {"x": data}, rtol=1e-4, atol=1e-5)
    for length in (4, 9):
        agrees(node("DFT", "x n"), {"x": data}, {"n": np.array(length)}, rtol=1e-4, atol=1e-5)
    half = np.fft.rfft(data[..., 0], axis=1)
    model = model_of([node("DFT", "x - a", inverse=1, onesided=1)], {"x": (2, 4, 2)}, {"a": np.array(1)}, opset=20)
    (found,) = run(model, x=np.stack([half.real, half.imag], -1).astype("float32"))
    np.testing.assert_allclose(found, data, atol=1e-5)
    with pytest.raises(MXNetError, match="the last axis holds real and imaginary parts; a transform goes along another"):
        run(model_of([node("DFT", "x", axis=2)], {"x": (2, 4, 2)}))


@pytest.mark.parametrize("onesided", [0, 1])
def test_transforms_of_parts(onesided):
    signal = R.randn(2, 20, 1).astype("float32")
    agrees(node("STFT", "x s w", onesided=onesided), {"x": signal}, {"s": np.array(3), "w": np.hanning(8).astype("float32")}, rtol=1e-4, atol=1e-5)
    agrees(node("STFT", "x s - n", onesided=onesided), {"x": signal}, {"s": np.array(3), "n": np.array(8)}, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("operator", ["HannWindow", "HammingWindow", "BlackmanWindow"])
@pytest.mark.parametrize("periodic", [0, 1])
def test_windows(operator, periodic):
    agrees(node(operator, "n", periodic=periodic), {"n": np.array(7)}, rtol=1e-4, atol=1e-6)


def test_mel():
    constants = {"b": np.array(8), "n": np.array(16), "r": np.array(8192), "l": np.float32(0), "h": np.float32(4096)}
    agrees([node("MelWeightMatrix", "b n r l h", "m"), node("MatMul", "x m")], {"x": R.rand(2, 9).astype("float32")}, constants, rtol=1e-4)
