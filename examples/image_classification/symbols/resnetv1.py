"""ResNet v1: He et al., 2015 (arXiv:1512.03385)."""
from .layers import classifier, conv, relu
from .residual import norm, pooled, stages


def _unit(x, filters, stride, matching, name, bottleneck, workspace):
    """Batch norm comes after each convolution, activation after the sum."""
    inner = filters // 4
    layers = [(inner, 1, stride), (inner, 3, 1), (filters, 1, 1)] if bottleneck else [(filters, 3, stride), (filters, 3, 1)]
    y = x
    for i, (width, kernel, step) in enumerate(layers, start=1):
        if i > 1:
            y = relu(y, f"{name}_relu{i - 1}")
        y = conv(y, width, kernel, step, pad=kernel // 2, no_bias=True, workspace=workspace, name=f"{name}_conv{i}")
        y = norm(y, f"{name}_bn{i}")
    if not matching:
        x = norm(conv(x, filters, 1, stride, no_bias=True, workspace=workspace, name=f"{name}_conv1sc"), f"{name}_sc")
    return relu(y + x, f"{name}_relu3")


def get_symbol(num_classes, num_layers, image_shape, conv_workspace=256, dtype="float32", **kwargs):
    """The network; parameters and errors as for `symbols.resnet`."""
    x = stages(_unit, num_layers, image_shape, dtype, normalize_input=False, small_norm=True, workspace=conv_workspace)
    return classifier(pooled(x), num_classes, dtype, name="fc1")
