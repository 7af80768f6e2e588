"""VGG: Simonyan and Zisserman, 2014 (arXiv:1409.1556)."""
import mxnet as mx

from .layers import classifier, conv, images, pool, relu

FILTERS = (64, 128, 256, 512, 512)
DEPTHS = {11: (1, 1, 2, 2, 2), 13: (2, 2, 2, 2, 2), 16: (2, 2, 3, 3, 3), 19: (2, 2, 4, 4, 4)}


def get_symbol(num_classes, num_layers=11, batch_norm=False, dtype="float32", **kwargs):
    """The network, for images of 224 by 224.

    Parameters
    ----------
    num_layers : int
        11, 13, 16 or 19.
    batch_norm : bool
        Normalize after each convolution.

    Raises
    ------
    ValueError
        For another number of layers.
    """
    if num_layers not in DEPTHS:
        raise ValueError(f"vgg: num_layers must be one of {sorted(DEPTHS)}, received {num_layers}")
    x = images(dtype)
    for stage, (filters, depth) in enumerate(zip(FILTERS, DEPTHS[num_layers]), start=1):
        for i in range(1, depth + 1):
            x = conv(x, filters, 3, pad=1, name=f"conv{stage}_{i}")
            if batch_norm:
                x = mx.sym.BatchNorm(x, name=f"bn{stage}_{i}")
            x = relu(x, name=f"relu{stage}_{i}")
        x = pool(x, "max", 2, stride=2, name=f"pool{stage}")
    x = mx.sym.Flatten(x, name="flatten")
    for i in (6, 7):
        x = relu(mx.sym.FullyConnected(x, num_hidden=4096, name=f"fc{i}"), name=f"relu{i}")
        x = mx.sym.Dropout(x, p=0.5, name=f"drop{i}")
    return classifier(x, num_classes, dtype, name="fc8")
