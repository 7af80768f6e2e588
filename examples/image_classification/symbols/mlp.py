"""A multilayer perceptron with two hidden layers."""
import mxnet as mx

from .layers import classifier, images, relu


def get_symbol(num_classes=10, dtype="float32", **kwargs):
    """The network. Hidden layers of 128 and 64."""
    x = mx.sym.Flatten(images(dtype))
    for i, size in enumerate((128, 64), start=1):
        x = relu(mx.sym.FullyConnected(x, num_hidden=size, name=f"fc{i}"), name=f"relu{i}")
    return classifier(x, num_classes, dtype, name="fc3")
