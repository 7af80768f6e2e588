"""Feature maps: resizing, and pooling over regions."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..builder import INT64, Unsupported
from ..registry import exports

if TYPE_CHECKING:
    from ..builder import Builder, Value


@exports("UpSampling", ignores=("num_args", "workspace", "multi_input_mode"))
def up_sampling(on: Builder, x: Value, *others: Value, scale: int, sample_type: str, num_filter: int) -> Value:
    if sample_type == "bilinear":
        pad = (scale - 1 + 1) // 2
        return on.ConvTranspose(x, others[0], kernel_shape=[2 * scale - scale % 2] * 2, strides=[scale] * 2, pads=[pad] * 4, group=num_filter)
    if others:
        raise Unsupported("more than one input; enlarge each by itself, then join them with Concat")
    return _resized(on, x, np.array([1, 1, scale, scale], np.float32), None, mode="nearest", coordinate_transformation_mode="asymmetric",
                     nearest_mode="floor")


@exports("_contrib_BilinearResize2D")
def bilinear_resize(on: Builder, x: Value, like: Value | None = None, *, height: int | None, width: int | None, scale_height: Any, scale_width: Any,
                    mode: str, align_corners: bool) -> Value:
    if None not in on.shape[2:]:
        sizes = list(on.shape[2:])
    elif mode == "like":
        sizes = on.dims(like)[2:]
    elif mode == "size" and scale_height is not None:
        sizes = [s if isinstance(s, int) else on.cast(on.Mul(on.cast(s, np.float32), float(k)), INT64)
                 for s, k in zip(on.dims(x)[2:], (scale_height, scale_width))]
    else:
        raise Unsupported(f"mode={mode!r} of an input whose size may vary")
    # `pytorch_half_pixel` takes the first pixel, as MXNet does, where one is left.
    transformation = "align_corners" if align_corners else "pytorch_half_pixel"
    return _resized(on, x, None, on.sizes([*on.dims(x)[:2], *sizes]), mode="linear", coordinate_transformation_mode=transformation)


def _resized(on, x, scales, sizes, **attributes):
    """Resize `x` by scales or to sizes. Before opset 13 an omitted input is an empty array."""
    nothing = None if on.opset >= 13 else on.const([], np.float32)
    return on.Resize(x, nothing, scales if scales is not None else nothing, sizes, **attributes)


@exports("_contrib_AdaptiveAvgPooling2D")
def adaptive_avg_pooling(on: Builder, x: Value, *, output_size: Any) -> Value:
    height, width = output_size if len(output_size) == 2 else tuple(output_size[:1]) * 2 or (1, 1)
    if (height, width) == (1, 1):
        return on.GlobalAveragePool(x)
    if None in x.shape[2:]:
        raise Unsupported("the size of the input must not vary")
    rows, columns = (_shares(size, areas, x.dtype) for size, areas in zip(x.shape[2:], (height, width)))
    return on.MatMul(on.MatMul(rows, x, dtype=x.dtype), columns.T.copy())


def _shares(size, areas, dtype):
    """Return the weight of each of `size` positions in the mean of each area: (areas, size)."""
    shares = np.zeros((areas, size), dtype)
    for i in range(areas):
        begin, end = i * size // areas, -(-(i + 1) * size // areas)
        shares[i, begin:end] = 1 / (end - begin)
    return shares


@exports("ROIPooling")
def roi_pooling(on: Builder, x: Value, rois: Value, *, pooled_size: Any, spatial_scale: float) -> Value:
    return on.MaxRoiPool(x, rois, pooled_shape=list(pooled_size), spatial_scale=float(spatial_scale))


@exports("_contrib_ROIAlign")
def roi_align(on: Builder, x: Value, rois: Value, *, pooled_size: Any, spatial_scale: float, sample_ratio: int, position_sensitive: bool,
              aligned: bool) -> Value:
    """Write RoiAlign, with zeros for regions whose batch index is -1."""
    if position_sensitive or aligned:
        raise Unsupported("position_sensitive=True and aligned=True have no counterpart")
    image, boxes = on.split(rois, [1, 4], 1)
    height, width = pooled_size if len(pooled_size) == 2 else tuple(pooled_size) * 2
    image = on.squeeze(image, 1)
    # Since opset 16 another default moves boxes by half a pixel.
    transformation = "output_half_pixel" if on.opset >= 16 else None
    pooled = on.RoiAlign(x, boxes, on.Max(on.cast(image, INT64), on.const(0, INT64)), mode="avg", output_height=height, output_width=width,
                         sampling_ratio=max(sample_ratio, 0), spatial_scale=float(spatial_scale),
                         coordinate_transformation_mode=transformation)
    return on.Where(on.per_channel(on.Less(image, 0.0), 4, 0), on.const(0, x.dtype), pooled)
