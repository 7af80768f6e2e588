"""ResNeXt: Xie et al., 2016 (arXiv:1611.05431)."""
from .layers import classifier, conv, relu
from .residual import norm, pooled, stages


def _unit(x, filters, stride, matching, name, bottleneck, num_group, workspace):
    """Like ResNet v1's, with a grouped convolution in the middle."""
    inner = filters // 2
    layers = ([(inner, 1, 1, 1), (inner, 3, stride, num_group), (filters, 1, 1, 1)] if bottleneck
              else [(filters, 3, stride, 1), (filters, 3, 1, 1)])
    y = x
    for i, (width, kernel, step, groups) in enumerate(layers, start=1):
        if i > 1:
            y = relu(y, f"{name}_relu{i - 1}")
        y = conv(y, width, kernel, step, pad=kernel // 2, num_group=groups, no_bias=True, workspace=workspace, name=f"{name}_conv{i}")
        y = norm(y, f"{name}_bn{i}")
    if not matching:
        x = norm(conv(x, filters, 1, stride, no_bias=True, workspace=workspace, name=f"{name}_sc"), f"{name}_sc_bn")
    return relu(y + x, f"{name}_relu")


def get_symbol(num_classes, num_layers, image_shape, num_group=32, conv_workspace=256, dtype="float32", **kwargs):
    """The network; parameters and errors as for `symbols.resnet`, with the three stages for images of up to 32 by 32.

    Parameters
    ----------
    num_group : int
        How many groups the convolutions in the middle have.
    """
    x = stages(_unit, num_layers, image_shape, dtype, small_up_to=32, num_group=num_group, workspace=conv_workspace)
    return classifier(pooled(x), num_classes, dtype, name="fc1")
