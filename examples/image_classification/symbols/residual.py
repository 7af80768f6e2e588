"""Common parts of ResNet v1, ResNet v2 and ResNeXt: the table of depths, the first layers and the stages."""
import mxnet as mx

from .layers import conv, image_size, images, pool, relu

NORM = {"fix_gamma": False, "eps": 2e-5, "momentum": 0.9}
UNITS = {
    18: (2, 2, 2, 2), 34: (3, 4, 6, 3), 50: (3, 4, 6, 3), 101: (3, 4, 23, 3), 152: (3, 8, 36, 3), 200: (3, 24, 36, 3),
    269: (3, 30, 48, 8),
}


def plan(num_layers, small):
    """Return the units of each stage, the filters of the first layer and of each stage, and True for bottleneck units.

    Raises
    ------
    ValueError
        For a depth that no such network has.
    """
    if not small:
        if num_layers not in UNITS:
            raise ValueError(f"num_layers must be one of {sorted(UNITS)} for images of this size, received {num_layers}")
        bottleneck = num_layers >= 50
        return UNITS[num_layers], (64, 256, 512, 1024, 2048) if bottleneck else (64, 64, 128, 256, 512), bottleneck
    bottleneck = num_layers >= 164
    units, rest = divmod(num_layers - 2, 9 if bottleneck else 6)
    if rest or units < 1:
        raise ValueError("num_layers must be 6n+2 and below 164, or 9n+2 from 164 on, for small images such as CIFAR's; "
                         f"received {num_layers}")
    return (units,) * 3, (16, 64, 128, 256) if bottleneck else (16, 16, 32, 64), bottleneck


def norm(x, name):
    """A batch norm as all these networks have it."""
    return mx.sym.BatchNorm(x, name=name, **NORM)


def norm_relu(x, name, relu_name):
    """A batch norm and its activation."""
    return relu(norm(x, name), relu_name)


def stages(unit, num_layers, image_shape, dtype, small_up_to=28, normalize_input=True, small_norm=False, **options):
    """The network up to its last stage.

    Parameters
    ----------
    unit : callable
        ``unit(x, filters, stride, matching, name, bottleneck, **options)`` makes one residual unit; `matching` says that
        input and output have one shape.
    small_up_to : int
        The height of the largest image that gets the three stages made for CIFAR.
    normalize_input, small_norm : bool
        Whether a batch norm comes before the first convolution, and after that of a small network.
    """
    _, height, _ = image_size(image_shape)
    units, filters, bottleneck = plan(num_layers, height <= small_up_to)
    x = images(dtype, identity=True)
    if normalize_input:
        x = mx.sym.BatchNorm(x, name="bn_data", **{**NORM, "fix_gamma": True})
    workspace = options.get("workspace", 256)
    if height <= 32:
        x = conv(x, filters[0], 3, pad=1, no_bias=True, workspace=workspace, name="conv0")
        if small_norm:
            x = norm(x, "bn0")
    else:
        x = conv(x, filters[0], 7, stride=2, pad=3, no_bias=True, workspace=workspace, name="conv0")
        x = pool(norm_relu(x, "bn0", "relu0"), "max", 3, stride=2, pad=1)
    for stage, (count, width) in enumerate(zip(units, filters[1:]), start=1):
        for i in range(1, count + 1):
            stride = 2 if i == 1 and stage > 1 else 1
            x = unit(x, width, stride, i > 1, f"stage{stage}_unit{i}", bottleneck, **options)
    return x


def pooled(x):
    """The mean over the image, flat."""
    return mx.sym.Flatten(pool(x, "avg", 7, global_pool=True, name="pool1"))
