"""Deformable convolutions, whose sampling positions are learned."""
from __future__ import annotations

from typing import Any

from ...hybrid_block import HybridBlock
from ...nn import Activation
from ...nn.conv_layers import as_sizes, check_layout
from ...parameter import Parameter

__all__ = ["DeformableConvolution", "ModulatedDeformableConvolution"]


class _Deformable(HybridBlock):
    """The base of both: an ordinary convolution computes, at each position, `_per_point` numbers for each point of the kernel."""

    _per_point = 2
    _offset_first = True  # the order of the parameters, which random initializers follow

    def __init__(self, channels, kernel_size, strides, padding, dilation, groups, num_deformable_group, layout, use_bias, in_channels,
                 activation, weight_initializer, bias_initializer, offset_weight_initializer, offset_bias_initializer, offset_use_bias,
                 op_name, adj, prefix, params):
        super().__init__(prefix=prefix, params=params)
        check_layout(layout, ("NCHW", "NHWC"))
        self._channels, self._in_channels, self._op_name = channels, in_channels, op_name
        kernel = as_sizes(kernel_size, 2, "kernel_size")
        common = {"kernel": kernel, "stride": as_sizes(strides, 2, "strides"), "dilate": as_sizes(dilation, 2, "dilation"),
                  "pad": as_sizes(padding, 2, "padding"), "num_group": groups, "layout": layout, **({"adj": adj} if adj else {})}
        points = kernel[0] * kernel[1] * num_deformable_group
        self.offset_split_index = 2 * points
        self._kwargs_offset = {**common, "num_filter": self._per_point * points, "no_bias": not offset_use_bias}
        self._kwargs_deformable_conv = {**common, "num_filter": channels, "num_deformable_group": num_deformable_group,
                                        "no_bias": not use_bias}
        with self.name_scope():
            offset = ("offset", self._per_point * points, in_channels // groups, offset_weight_initializer, offset_bias_initializer,
                      offset_use_bias)
            main = ("deformable_conv", channels, 0, weight_initializer, bias_initializer, use_bias)
            for name, rows, inputs, weight_init, bias_init, biased in (offset, main) if self._offset_first else (main, offset):
                shape = (rows, *kernel, inputs) if layout == "NHWC" and name == "offset" else (rows, inputs, *kernel)
                setattr(self, f"{name}_weight", self.params.get(f"{name}_weight", shape=shape, init=weight_init, allow_deferred_init=True))
                setattr(self, f"{name}_bias", self.params.get(f"{name}_bias", shape=(rows,), init=bias_init,
                                                              allow_deferred_init=True) if biased else None)
            self.act = Activation(activation, prefix=f"{activation}_") if activation else None

    deformable_conv_weight: Parameter
    deformable_conv_bias: Parameter | None

    def hybrid_forward(self, F, x, offset_weight, deformable_conv_weight, offset_bias=None, deformable_conv_bias=None):
        """Return the convolved array."""
        offset = F.Convolution(x, offset_weight, *([] if offset_bias is None else [offset_bias]), cudnn_off=True, **self._kwargs_offset)
        inputs = {"data": x, "weight": deformable_conv_weight, **self._where(F, offset)}
        if deformable_conv_bias is not None:
            inputs["bias"] = deformable_conv_bias
        out = getattr(F.contrib, self._op_name)(name="fwd", **inputs, **self._kwargs_deformable_conv)
        return self.act(out) if self.act is not None else out

    def _where(self, F, offset):
        return {"offset": offset}

    def __repr__(self):
        options, shape = self._kwargs_deformable_conv, self.deformable_conv_weight.shape
        parts = [f"{shape[1] or None} -> {shape[0]}", f"kernel_size={options['kernel']}", f"stride={options['stride']}"]
        if options["pad"] != (0, 0):
            parts.append(f"padding={options['pad']}")
        if options["dilate"] != (1, 1):
            parts.append(f"dilation={options['dilate']}")
        if options["num_group"] != 1:
            parts.append(f"groups={options['num_group']}")
        if self.deformable_conv_bias is None:
            parts.append("bias=False")
        if self.act:
            parts.append(str(self.act))
        return f"{type(self).__name__}({', '.join(parts)})"


class DeformableConvolution(_Deformable):
    """2-D convolution that samples its input at learned offsets (arXiv:1703.06211).

    Parameters
    ----------
    channels : int
        The number of outputs for each position.
    kernel_size, strides, padding, dilation : int or tuple of 2 int
    groups : int
        Split the channels into groups that don't see each other.
    num_deformable_group : int
        Groups of channels with offsets of their own.
    layout : {'NCHW'}
    use_bias, offset_use_bias : bool
    in_channels : int
        0 waits for the first batch.
    activation : str, optional
        See `Activation`; none by default.
    weight_initializer, bias_initializer, offset_weight_initializer, offset_bias_initializer : str or Initializer, optional
    op_name : str
        The operator of ``F.contrib``.
    adj : tuple of int, optional
    prefix, params
        As for `Block`.
    """

    def __init__(self, channels: int, kernel_size: int | tuple[int, int] = (1, 1), strides: int | tuple[int, int] = (1, 1),
                 padding: int | tuple[int, int] = (0, 0), dilation: int | tuple[int, int] = (1, 1), groups: int = 1, num_deformable_group: int = 1,
                 layout: str = "NCHW", use_bias: bool = True, in_channels: int = 0, activation: str | None = None, weight_initializer: Any = None,
                 bias_initializer: Any = "zeros", offset_weight_initializer: Any = "zeros", offset_bias_initializer: Any = "zeros",
                 offset_use_bias: bool = True, op_name: str = "DeformableConvolution", adj: Any = None, prefix: str | None = None,
                 params: Any = None):
        super().__init__(channels, kernel_size, strides, padding, dilation, groups, num_deformable_group, layout, use_bias, in_channels,
                         activation, weight_initializer, bias_initializer, offset_weight_initializer, offset_bias_initializer,
                         offset_use_bias, op_name, adj, prefix, params)

    def _alias(self):
        return "deformable_conv"


class ModulatedDeformableConvolution(_Deformable):
    """`DeformableConvolution` that also learns how much each sample counts (arXiv:1811.11168).

    Parameters
    ----------
    channels, kernel_size, strides, padding, dilation, groups, num_deformable_group, layout, use_bias, in_channels, activation, \
weight_initializer, bias_initializer, offset_weight_initializer, offset_bias_initializer, offset_use_bias, op_name, adj, prefix, params
        As for `DeformableConvolution`.
    """

    _per_point = 3
    _offset_first = False

    def __init__(self, channels: int, kernel_size: int | tuple[int, int] = (1, 1), strides: int | tuple[int, int] = (1, 1),
                 padding: int | tuple[int, int] = (0, 0), dilation: int | tuple[int, int] = (1, 1), groups: int = 1, num_deformable_group: int = 1,
                 layout: str = "NCHW", use_bias: bool = True, in_channels: int = 0, activation: str | None = None, weight_initializer: Any = None,
                 bias_initializer: Any = "zeros", offset_weight_initializer: Any = "zeros", offset_bias_initializer: Any = "zeros",
                 offset_use_bias: bool = True, op_name: str = "ModulatedDeformableConvolution", adj: Any = None, prefix: str | None = None,
                 params: Any = None):
        super().__init__(channels, kernel_size, strides, padding, dilation, groups, num_deformable_group, layout, use_bias, in_channels,
                         activation, weight_initializer, bias_initializer, offset_weight_initializer, offset_bias_initializer,
                         offset_use_bias, op_name, adj, prefix, params)

    def _alias(self):
        return "modulated_deformable_conv"

    def _where(self, F, offset):
        cut = self.offset_split_index
        return {"offset": F.slice_axis(offset, axis=1, begin=0, end=cut),
                "mask": F.sigmoid(F.slice_axis(offset, axis=1, begin=cut, end=None)) * 2}
