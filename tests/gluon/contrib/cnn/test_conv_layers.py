"""Convolutions of gluon.contrib."""
import numpy as np
import pytest

import mxnet as mx
from mxnet import gluon
from mxnet.gluon.contrib import cnn


@pytest.mark.parametrize("kind", [cnn.DeformableConvolution, cnn.ModulatedDeformableConvolution])
def test_deformable_convolution_without_offsets_is_a_convolution(kind):
    layer = kind(4, 3, padding=1, activation="relu")
    assert repr(layer) == f"{kind.__name__}(None -> 4, kernel_size=(3, 3), stride=(1, 1), padding=(1, 1), Activation(relu))"
    layer.initialize()
    plain = gluon.nn.Conv2D(4, 3, padding=1, activation="relu", in_channels=2)
    plain.initialize()
    x = mx.nd.array(np.sin(np.arange(50)).reshape(1, 2, 5, 5))
    layer(x)
    plain.weight.set_data(layer.deformable_conv_weight.data())
    for hybridize in (False, True):
        layer.hybridize(hybridize)  # offsets start as zeros, and so the mask as 2 * sigmoid(0) = 1
        np.testing.assert_allclose(layer(x).asnumpy(), plain(x).asnumpy(), atol=1e-5)
    assert layer.offset_weight.shape == (18 if kind is cnn.DeformableConvolution else 27, 2, 3, 3)
