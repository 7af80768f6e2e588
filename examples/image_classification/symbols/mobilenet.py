"""MobileNet: Howard et al., 2017 (arXiv:1704.04861)."""
import mxnet as mx

from .layers import classifier, conv_bn, image_size, images, pool

ALPHAS = (0.25, 0.5, 0.75, 1.0)
# Input and output width, in units of 32 * alpha, and the stride of each pair of a depthwise and a pointwise convolution.
PAIRS = [(1, 2, 1), (2, 4, 2), (4, 4, 1), (4, 8, 2), (8, 8, 1), (8, 16, 2), *[(16, 16, 1)] * 5, (16, 32, 2), (32, 32, 1)]


def _unit(x, name, filters, kernel=1, stride=1, num_group=1):
    names = [f"{name}_{kind}" for kind in ("conv2d", "batchnorm", "relu")]
    return conv_bn(x, filters, kernel, stride, pad=kernel // 2, names=names, norm={"fix_gamma": True}, num_group=num_group, no_bias=True)


def get_symbol(num_classes, alpha=1, resolution=None, image_shape="3,224,224", dtype="float32", **kwargs):
    """The network.

    Parameters
    ----------
    alpha : float
        The width, relative to the full network: 0.25, 0.5, 0.75 or 1.
    resolution : int, optional
        Height and width of the images, a multiple of 32; by default that of `image_shape`.

    Raises
    ------
    ValueError
        For another width or resolution.
    """
    resolution = resolution or image_size(image_shape)[1]
    if alpha not in ALPHAS:
        raise ValueError(f"mobilenet: alpha must be one of {ALPHAS}, received {alpha}")
    if resolution % 32:
        raise ValueError(f"mobilenet: the image size must be a multiple of 32, received {resolution}")
    base = int(32 * alpha)
    x = _unit(images(dtype), "conv_1", base, 3, stride=2)
    for i, (width, out, stride) in enumerate(PAIRS, start=2):
        x = _unit(x, f"conv_{i}_dw", base * width, 3, stride, num_group=base * width)
        x = _unit(x, f"conv_{i}", base * out)
    x = pool(x, "avg", resolution // 32, name="global_pool")
    return classifier(mx.sym.Flatten(x, name="flatten"), num_classes, dtype, name="fc")
