import numpy as onp
import pytest

import mxnet as mx

xp = mx.np.array_api


@pytest.mark.parametrize("norm", ["backward", "ortho", "forward"])
@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"])
def test_transforms_along_an_axis_as_in_numpy(name, norm):
    host = onp.random.RandomState(0).rand(3, 6)
    host = host if name in ("rfft", "ihfft") else host + 1j * host[::-1]
    for n, axis in ((None, -1), (4, 0)):
        found = getattr(xp.fft, name)(xp.asarray(host), n=n, axis=axis, norm=norm)
        onp.testing.assert_allclose(found.asnumpy(), getattr(onp.fft, name)(host, n=n, axis=axis, norm=norm), atol=1e-12)


@pytest.mark.parametrize("name", ["fftn", "ifftn", "rfftn", "irfftn"])
def test_transforms_along_several_axes_as_in_numpy(name):
    host = onp.random.RandomState(0).rand(3, 4, 6)
    found = getattr(xp.fft, name)(xp.asarray(host), axes=(0, 2))
    onp.testing.assert_allclose(found.asnumpy(), getattr(onp.fft, name)(host, axes=(0, 2)), atol=1e-12)


def test_frequencies():
    onp.testing.assert_allclose(xp.fft.fftfreq(5, d=0.5).asnumpy(), onp.fft.fftfreq(5, 0.5), rtol=1e-6)
    assert xp.fft.rfftfreq(4, dtype=xp.float64).dtype == xp.float64 and xp.fft.fftshift(xp.arange(5)).tolist() == [3, 4, 0, 1, 2]
    assert xp.fft.ifftshift(xp.fft.fftshift(xp.arange(5))).tolist() == [0, 1, 2, 3, 4]
