"""Sampling of feature maps at computed positions."""
import math

import numpy as np
import torch

from .....base import MXNetError
from .....ops.registry import get
from ..reading import UnsupportedFeature
from ..registry import translates
from ..reshaping import reshape
from .dense import window
from .elemwise import cast_to
from .slicing import padded


@translates("GridSample")
def grid_sample(g, data, grid, *, mode="linear", padding_mode="zeros", align_corners=0):
    """Values at the points of a grid, between pixels."""
    mode = {"bilinear": "linear", "bicubic": "cubic"}.get(mode, mode)
    return g.op("_contrib_grid_sample", data, grid, mode=mode, padding_mode=padding_mode, align_corners=bool(align_corners))


@translates("DeformConv")
def deform_conv(g, data, weight, offset, bias=None, mask=None, *, kernel_shape=None, strides=None, pads=None, dilations=None, group=1,
                offset_group=1):
    """A convolution whose sampling positions are shifted by offsets."""
    sizes = g.fixed(weight, "DeformConv")
    kernel = tuple(kernel_shape or sizes[2:])
    if len(kernel) != 2:
        raise UnsupportedFeature(f"DeformConv over {len(kernel)} axes; expected 2")
    strides, dilations, widths = window(g, data, kernel, strides, pads, dilations, "NOTSET")
    if any(before != behind or before < 0 for before, behind in widths):
        data = padded(g, data, [(0, 0), (0, 0), *widths])
        widths = [(0, 0)] * len(kernel)
    inputs = [data, offset, *([] if mask is None else [mask]), weight, *([] if bias is None else [bias])]
    name = "_contrib_DeformableConvolution" if mask is None else "_contrib_ModulatedDeformableConvolution"
    return g.op(name, *inputs, kernel=kernel, stride=strides, dilate=dilations, pad=tuple(w[0] for w in widths), num_filter=sizes[0], num_group=group,
                num_deformable_group=offset_group, no_bias=bias is None)


@translates("Col2Im")
def col2im(g, data, image_shape, block_shape, *, dilations=None, pads=None, strides=None):
    """Columns (batch, channels * block, blocks) added up at their places in an image."""
    image, block = image_shape.integers("image_shape"), block_shape.integers("block_shape")
    axes = len(image)
    strides, dilations = tuple(strides or (1,) * axes), tuple(dilations or (1,) * axes)
    pads = tuple(pads or (0,) * 2 * axes)
    if not len(block) == len(strides) == len(dilations) == len(pads) // 2 == axes or min((*image, *block, *strides, *dilations)) < 1:
        raise MXNetError(f"image_shape {image}, block_shape {block}, strides {strides}, dilations {dilations} and pads {pads} do not fit together")
    padded_sizes = [n + pads[i] + pads[i + axes] for i, n in enumerate(image)]
    counts = [(n - (k - 1) * d - 1) // s + 1 for n, k, d, s in zip(padded_sizes, block, dilations, strides)]
    batch, rows, columns = g.fixed(data, "Col2Im")
    area = math.prod(block)
    if math.prod(counts) != columns or rows % area or max(math.prod(padded_sizes), area * columns) > 1 << 24:
        raise MXNetError(f"data of shape {(batch, rows, columns)} for {math.prod(counts)} blocks of {area} elements")
    places = [np.arange(k)[:, None] * d + np.arange(c)[None] * s for k, d, c, s in zip(block, dilations, counts, strides)]
    flat = np.zeros((1,) * 2 * axes, "int64")
    for i, place in enumerate(places):
        target = [1] * 2 * axes
        target[i], target[axes + i] = place.shape
        flat = flat * padded_sizes[i] + place.reshape(target)
    channels = rows // area
    apart = g.op("Reshape", data, shape=(batch * channels, area * columns))
    total = g.op("_backward_gather_nd", g.op("transpose", apart, axes=(1, 0)), g.array(flat.reshape(1, -1)),
                 shape=(math.prod(padded_sizes), batch * channels))
    images = g.op("Reshape", g.op("transpose", total, axes=(1, 0)), shape=(batch, channels, *padded_sizes))
    return padded(g, images, [(0, 0), (0, 0), *((-pads[i], -pads[i + axes]) for i in range(axes))])


@translates("MaxUnpool")
def max_unpool(g, data, indices, output_shape=None, *, kernel_shape, pads=None, strides=None):
    """The values at the places from which a MaxPool took them, 0 elsewhere."""
    sizes, axes = g.fixed(data, "MaxUnpool"), len(kernel_shape)
    strides, _, widths = window(g, data, tuple(kernel_shape), strides, pads, None, "NOTSET")
    own = (*sizes[:2], *((n - 1) * s + k - sum(w) for n, s, k, w in zip(sizes[2:], strides, kernel_shape, widths)))
    wanted = own if output_shape is None else output_shape.integers("output_shape")
    if len(wanted) != axes + 2 or wanted[:2] != sizes[:2] or min(wanted) < 1 or math.prod(wanted) > 1 << 28:
        raise MXNetError(f"a result of shape {wanted} of data of shape {sizes}")
    places = g.op("Reshape", cast_to(g, indices, "int64"), shape=(1, -1))
    if wanted != own:  # the places are those in an image of the own size
        places = g.op("Reshape", _moved(g, places, own, wanted), shape=(1, -1))
    flat = g.op("_scatter_set_nd", g.op("_zeros", shape=(math.prod(wanted),), dtype=(g.dtype(data) or np.dtype("float32")).name),
                reshape(g, data, [(-1,)]), places, shape=(math.prod(wanted),))
    return g.op("Reshape", flat, shape=wanted)


def _moved(g, places, own, wanted):
    """Convert flat positions in an array of one shape to those in a larger one."""
    order = np.arange(math.prod(own))
    table = np.ravel_multi_index(np.unravel_index(order, own), wanted, mode="clip").astype("int64")
    return g.op("take", g.array(table), places)


@translates("ImageDecoder")
def image_decoder(g, encoded, *, pixel_format="RGB"):
    """The pixels of an encoded image."""
    if pixel_format not in ("RGB", "BGR", "Grayscale"):
        raise MXNetError(f"`pixel_format` must be RGB, BGR or Grayscale, received {pixel_format!r:.40}")
    content = torch.from_numpy(encoded.constant("encoded_stream").copy())
    image = get("_cvimdecode")(content, to_rgb=pixel_format != "BGR").numpy()
    if pixel_format == "Grayscale":
        image = ((image.astype("int32") @ np.array([[19595], [38470], [7471]], "int32") + (1 << 15)) >> 16).astype("uint8")
    return g.array(image)
