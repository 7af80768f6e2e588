"""LeNet: LeCun, Bottou, Bengio, Haffner, "Gradient-based learning applied to document recognition", 1998."""
import mxnet as mx

from .layers import classifier, conv, images, pool, relu


def _locate(data):
    """The network that finds the affine transform of a spatial transformer; it learns slowly."""
    x = pool(relu(conv(data, 30, 5, stride=2)), "max", 2, stride=2)
    x = pool(relu(conv(x, 60, 3, pad=1)), "avg", 2, global_pool=True)
    return mx.sym.FullyConnected(mx.sym.Flatten(x), num_hidden=6, name="stn_loc", attr={"lr_mult": "0.01"})


def get_symbol(num_classes=10, add_stn=False, dtype="float32", **kwargs):
    """The network, for images of 28 by 28.

    Parameters
    ----------
    add_stn : bool
        Straighten the image with a spatial transformer first.
    """
    x = images(dtype)
    if add_stn:
        x = mx.sym.SpatialTransformer(x, loc=_locate(x), target_shape=(28, 28), transform_type="affine", sampler_type="bilinear")
    for filters in (20, 50):
        x = pool(mx.sym.Activation(conv(x, filters, 5), act_type="tanh"), "max", 2, stride=2)
    x = mx.sym.FullyConnected(mx.sym.Flatten(x), num_hidden=500)
    return classifier(mx.sym.Activation(x, act_type="tanh"), num_classes, dtype)
