"""AlexNet: Krizhevsky, Sutskever and Hinton, NIPS 2012."""
import mxnet as mx

from .layers import classifier, conv, images, pool, relu


def _lrn(x):
    return mx.sym.LRN(x, alpha=0.0001, beta=0.75, knorm=2, nsize=5)


def get_symbol(num_classes, dtype="float32", **kwargs):
    """The network, for images of 224 by 224."""
    x = _lrn(relu(conv(images(dtype), 96, 11, stride=4, name="conv1")))
    x = _lrn(relu(conv(pool(x, "max", 3, stride=2), 256, 5, pad=2, name="conv2")))
    x = pool(x, "max", 3, stride=2)
    for i, filters in enumerate((384, 384, 256), start=3):
        x = relu(conv(x, filters, 3, pad=1, name=f"conv{i}"))
    x = mx.sym.Flatten(pool(x, "max", 3, stride=2))
    for name in ("fc1", "fc2"):
        x = mx.sym.Dropout(relu(mx.sym.FullyConnected(x, num_hidden=4096, name=name)), p=0.5)
    return classifier(x, num_classes, dtype, name="fc3")
