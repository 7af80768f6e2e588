"""Building blocks of the networks of the zoo."""
from ....util import is_np_array
from ... import nn
from ...contrib.nn import HybridConcurrent
from ...hybrid_block import HybridBlock


class Classifier(HybridBlock):
    """A network of two parts: ``features``, and ``output`` that makes class scores of them."""

    features: nn.HybridSequential
    output: HybridBlock

    def hybrid_forward(self, F, x):
        """Return the scores, (N, classes)."""
        return self.output(self.features(x))


def activate(F, x):
    """max(x, 0), with either kind of array."""
    return (F.npx.activation if is_np_array() else F.Activation)(x, act_type="relu")


def chain(*layers):
    """Layers in a row that share the names of the block around them."""
    row = nn.HybridSequential(prefix="")
    row.add(*layers)
    return row


def side_by_side(*branches):
    """Branches on one input; their outputs are joined along the channels."""
    block = HybridConcurrent(axis=1, prefix="")
    block.add(*branches)
    return block


def relu():
    """Return an activation layer."""
    return nn.Activation("relu")


def conv3x3(channels, stride, in_channels):
    """Return a convolution that keeps the size of the image but for the stride."""
    return nn.Conv2D(channels, kernel_size=3, strides=stride, padding=1, use_bias=False, in_channels=in_channels)


def named(name, description, build, *fixed, **options):
    """Return a constructor of the zoo: `build` with its first arguments, and options, fixed.

    Parameters
    ----------
    name, description : str
        Of the constructor.
    build : callable
        One of the ``get_...`` functions.
    """

    def constructor(**kwargs):
        return build(*fixed, **{**kwargs, **options})

    constructor.__name__ = constructor.__qualname__ = name
    constructor.__module__ = build.__module__
    constructor.__doc__ = f"""{description}; see `{build.__name__}` for the parameters.

    Example
    -------
    >>> net = mx.gluon.model_zoo.vision.{name}(classes=10)
    >>> net(mx.sym.var('data')).infer_shape(data=(1, 3, 224, 224))[1]
    [(1, 10)]
    """
    return constructor
