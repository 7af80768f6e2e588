"""The pieces that the networks of this folder are made of."""
import mxnet as mx

AUTOMATIC = (None, None, None)


def pair(size):
    """3 as (3, 3); a pair as it is."""
    return size if isinstance(size, tuple) else (size, size)


def same(kernel):
    """The padding that keeps the size of an image under a kernel of odd size and stride 1."""
    return tuple(side // 2 for side in pair(kernel))


def image_size(image_shape):
    """'3,224,224' as (3, 224, 224).

    Raises
    ------
    ValueError
        If it is not channels, height and width.
    """
    try:
        channels, height, width = (int(side) for side in image_shape.split(","))
    except (AttributeError, ValueError):
        raise ValueError(f"image_shape must be 'channels,height,width' such as '3,224,224', received {image_shape!r}") from None
    return channels, height, width


def images(dtype="float32", identity=False):
    """The input, cast to float16 if the network computes in it. `identity` adds the node 'id' that some checkpoints hold."""
    data = mx.sym.Variable("data")
    if dtype == "float16":
        return mx.sym.Cast(data, dtype="float16")
    return mx.sym.identity(data, name="id") if identity else data


def conv(x, num_filter, kernel=1, stride=1, pad=0, **options):
    """A convolution; sizes are numbers or pairs."""
    return mx.sym.Convolution(x, num_filter=num_filter, kernel=pair(kernel), stride=pair(stride), pad=pair(pad), **options)


def pool(x, pool_type, kernel, stride=1, pad=0, **options):
    """A pooling; sizes are numbers or pairs."""
    return mx.sym.Pooling(x, pool_type=pool_type, kernel=pair(kernel), stride=pair(stride), pad=pair(pad), **options)


def relu(x, name=None):
    """max(x, 0)"""
    return mx.sym.Activation(x, act_type="relu", name=name)


def conv_bn(x, num_filter, kernel=1, stride=1, pad=0, names=AUTOMATIC, norm=None, activation=relu, **options):
    """Convolution, batch norm and activation.

    Parameters
    ----------
    names : tuple of str
        The names of the three.
    norm : dict, optional
        The attributes of the batch norm.
    activation : callable, optional
        ``activation(x, name=...)``; None leaves it out.
    """
    x = conv(x, num_filter, kernel, stride, pad, name=names[0], **options)
    x = mx.sym.BatchNorm(x, name=names[1], **norm or {})
    return activation(x, name=names[2]) if activation else x


def classifier(x, num_classes, dtype="float32", name=None):
    """The last layer and its softmax, which is computed in float32."""
    x = mx.sym.FullyConnected(x, num_hidden=num_classes, name=name)
    if dtype == "float16":
        x = mx.sym.Cast(x, dtype="float32")
    return mx.sym.SoftmaxOutput(x, name="softmax")
