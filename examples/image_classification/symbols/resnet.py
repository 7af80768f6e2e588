"""ResNet v2: He et al., "Identity mappings in deep residual networks", arXiv:1603.05027."""
from .layers import classifier, conv
from .residual import norm_relu, pooled, stages


def _unit(x, filters, stride, matching, name, bottleneck, workspace):
    """Batch norm and activation come before each convolution."""
    inner = filters // 4
    layers = [(inner, 1, 1), (inner, 3, stride), (filters, 1, 1)] if bottleneck else [(filters, 3, stride), (filters, 3, 1)]
    y = first = norm_relu(x, f"{name}_bn1", f"{name}_relu1")
    for i, (width, kernel, step) in enumerate(layers, start=1):
        if i > 1:
            y = norm_relu(y, f"{name}_bn{i}", f"{name}_relu{i}")
        y = conv(y, width, kernel, step, pad=kernel // 2, no_bias=True, workspace=workspace, name=f"{name}_conv{i}")
    if not matching:
        x = conv(first, filters, 1, stride, no_bias=True, workspace=workspace, name=f"{name}_sc")
    return y + x


def get_symbol(num_classes, num_layers, image_shape, conv_workspace=256, dtype="float32", **kwargs):
    """The network.

    Parameters
    ----------
    num_layers : int
        18, 34, 50, 101, 152, 200 or 269; for images of up to 28 by 28, 6n+2 below 164 and 9n+2 from there on.
    image_shape : str
        Such as '3,224,224'.

    Raises
    ------
    ValueError
        For another number of layers.
    """
    x = stages(_unit, num_layers, image_shape, dtype, workspace=conv_workspace)
    return classifier(pooled(norm_relu(x, "bn1", "relu1")), num_classes, dtype, name="fc1")
