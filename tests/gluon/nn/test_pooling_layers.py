"""Pooling layers: shapes, representations and errors."""
import pytest

from layer_checks import check_layer
from mxnet.gluon import nn


@pytest.mark.parametrize("layer,shape,expected", [
    (lambda: nn.MaxPool1D(), (1, 2, 7), (1, 2, 3)),
    (lambda: nn.MaxPool1D(3, ceil_mode=True), (1, 2, 7), (1, 2, 3)),
    (lambda: nn.MaxPool2D(3, 2, 1), (1, 2, 7, 7), (1, 2, 4, 4)),
    (lambda: nn.MaxPool2D((2, 3), layout="NHWC"), (1, 6, 6, 2), (1, 3, 2, 2)),
    (lambda: nn.MaxPool3D(), (1, 2, 4, 4, 4), (1, 2, 2, 2, 2)),
    (lambda: nn.AvgPool1D(2, 1), (1, 2, 5), (1, 2, 4)),
    (lambda: nn.AvgPool2D(3, 2, 1, count_include_pad=False), (1, 2, 7, 7), (1, 2, 4, 4)),
    (lambda: nn.AvgPool3D(2, ceil_mode=True), (1, 2, 5, 5, 5), (1, 2, 3, 3, 3)),
    (lambda: nn.GlobalMaxPool1D(), (1, 2, 5), (1, 2, 1)),
    (lambda: nn.GlobalAvgPool2D(), (1, 2, 5, 5), (1, 2, 1, 1)),
    (lambda: nn.GlobalMaxPool2D(layout="NHWC"), (1, 5, 5, 2), (1, 1, 1, 2)),
    (lambda: nn.GlobalAvgPool3D(), (1, 2, 3, 3, 3), (1, 2, 1, 1, 1)),
])
def test_shapes(layer, shape, expected):
    check_layer(layer(), shape, expected)


@pytest.mark.parametrize("layer,text", [
    (lambda: nn.AvgPool2D(ceil_mode=True),
     "AvgPool2D(size=(2, 2), stride=(2, 2), padding=(0, 0), ceil_mode=True, global_pool=False, pool_type=avg, layout=NCHW)"),
    (lambda: nn.GlobalMaxPool1D(),
     "GlobalMaxPool1D(size=(1,), stride=(1,), padding=(0,), ceil_mode=True, global_pool=True, pool_type=max, layout=NCW)"),
])
def test_repr(layer, text):
    assert repr(layer()) == text


@pytest.mark.parametrize("make,message", [
    (lambda: nn.MaxPool2D(layout="NCW"), "2D pooling has layouts NCHW and NHWC, received 'NCW'"),
    (lambda: nn.AvgPool1D((2, 2)), "pool_size must be a number or a list of 1 ints"),
])
def test_errors(make, message):
    with pytest.raises(AssertionError, match=message):
        make()
