"""Convolution layers."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...base import numeric_types
from ...suggestions import shortened, suggests_arguments
from ..hybrid_block import HybridBlock
from ..utils import UsageError
from .activations import Activation

if TYPE_CHECKING:
    from ...initializer import Initializer
    from ..parameter_dict import ParameterDict

__all__ = ["Conv1D", "Conv2D", "Conv3D", "Conv1DTranspose", "Conv2DTranspose", "Conv3DTranspose", "ReflectionPad2D"]


def as_sizes(value: Any, ndim: int, what: str) -> Any:
    """Return a number for each of `ndim` axes."""
    if isinstance(value, numeric_types):
        return (value,) * ndim
    if len(value) != ndim:
        raise UsageError(f"{what} must be a number or a list of {ndim} ints, received {shortened(value)}")
    return value


def check_layout(layout: str, allowed: Any) -> None:
    if layout not in allowed:
        raise UsageError(f"layout must be {' or '.join(repr(name) for name in allowed)}, received {shortened(layout)}")


class _Conv(HybridBlock):
    """The base of the convolutions.

    Parameters
    ----------
    op_name : str
        The operator: ``'Convolution'`` or ``'Deconvolution'``.
    adj : tuple of int, optional
        Added to the size of the output of a deconvolution.
    """

    out_pad: tuple[int, ...]

    @suggests_arguments
    def __init__(self, channels: int, kernel_size: Any, strides: Any, padding: Any, dilation: Any, groups: int, layout: str, in_channels: int = 0,
                 activation: str | None = None, use_bias: bool = True, weight_initializer: Initializer | str | None = None,
                 bias_initializer: Initializer | str | None = "zeros", op_name: str = "Convolution", adj: tuple[int, ...] | None = None,
                 prefix: str | None = None, params: ParameterDict | None = None) -> None:
        super().__init__(prefix=prefix, params=params)
        ndim = len(kernel_size)
        self._channels, self._in_channels, self._op_name = channels, in_channels, op_name
        self._kwargs: dict[str, Any] = {
            "kernel": kernel_size, "stride": as_sizes(strides, ndim, "strides"), "dilate": as_sizes(dilation, ndim, "dilation"),
            "pad": as_sizes(padding, ndim, "padding"), "num_filter": channels, "num_group": groups, "no_bias": not use_bias, "layout": layout}
        if adj is not None:
            self._kwargs["adj"] = adj
        transposed = op_name.lower() == "deconvolution"
        first, second = (in_channels, channels // groups) if transposed else (channels, in_channels // groups)
        shape = (first, second, *kernel_size) if layout[1] == "C" else (first, *kernel_size, second)
        with self.name_scope():
            self.weight = self.params.get("weight", shape=shape, init=weight_initializer, allow_deferred_init=True)
            self.bias = self.params.get("bias", shape=(channels,), init=bias_initializer, allow_deferred_init=True) if use_bias else None
            self.act = Activation(activation, prefix=f"{activation}_") if activation is not None else None

    def _alias(self) -> str:
        return "conv"

    def hybrid_forward(self, F: Any, x: Any, weight: Any, bias: Any = None) -> Any:
        """Return the convolved array, in the layout of the input."""
        inputs = (x, weight) if bias is None else (x, weight, bias)
        out = getattr(F, self._op_name)(*inputs, name="fwd", **self._kwargs)
        return self.act(out) if self.act is not None else out

    def __repr__(self) -> str:
        options, ndim, shape = self._kwargs, len(self._kwargs["kernel"]), self.weight.shape
        parts = [f"{shape[1] or None} -> {shape[0]}", f"kernel_size={options['kernel']}", f"stride={options['stride']}"]
        if options["pad"] != (0,) * ndim:
            parts.append(f"padding={options['pad']}")
        if options["dilate"] != (1,) * ndim:
            parts.append(f"dilation={options['dilate']}")
        if getattr(self, "out_pad", (0,) * ndim) != (0,) * ndim:
            parts.append(f"output_padding={self.out_pad}")
        if options["num_group"] != 1:
            parts.append(f"groups={options['num_group']}")
        if self.bias is None:
            parts.append("bias=False")
        if self.act:
            parts.append(str(self.act))
        return f"{type(self).__name__}({', '.join(parts)})"


class Conv1D(_Conv):
    """Convolution over one axis.

    Parameters
    ----------
    channels : int
        The number of outputs for each position.
    kernel_size, strides, padding, dilation : int or tuple of 1 int
    groups : int
        Split the channels into groups that don't see each other.
    layout : {'NCW'}
    activation : str, optional
        See `Activation`; none by default.
    use_bias : bool
    weight_initializer, bias_initializer : str or Initializer, optional
    in_channels : int
        0 waits for the first batch.
    prefix, params
        As for `Block`.

    Example
    -------
    >>> layer = mx.gluon.nn.Conv1D(channels=4, kernel_size=3, padding=1)
    >>> layer.initialize()
    >>> layer(mx.nd.ones((2, 3, 10))).shape
    (2, 4, 10)
    """

    def __init__(self, channels: int, kernel_size: int | tuple[int], strides: int | tuple[int] = 1, padding: int | tuple[int] = 0,
                 dilation: int | tuple[int] = 1, groups: int = 1, layout: str = "NCW", activation: str | None = None, use_bias: bool = True,
                 weight_initializer: str | Initializer | None = None, bias_initializer: str | Initializer | None = "zeros", in_channels: int = 0,
                 **kwargs: Any) -> None:
        check_layout(layout, ("NCW",))
        super().__init__(channels, as_sizes(kernel_size, 1, "kernel_size"), strides, padding, dilation, groups, layout, in_channels,
                         activation, use_bias, weight_initializer, bias_initializer, kwargs.pop("op_name", "Convolution"), **kwargs)


class Conv2D(_Conv):
    """Convolution over two axes.

    Parameters
    ----------
    channels : int
        The number of outputs for each position.
    kernel_size, strides, padding, dilation : int or tuple of 2 int
    groups : int
        Split the channels into groups that don't see each other.
    layout : {'NCHW', 'NHWC'}
    activation : str, optional
        See `Activation`; none by default.
    use_bias : bool
    weight_initializer, bias_initializer : str or Initializer, optional
    in_channels : int
        0 waits for the first batch.
    prefix, params
        As for `Block`.

    Example
    -------
    >>> import mxnet as mx
    >>> layer = mx.gluon.nn.Conv2D(8, kernel_size=3, padding=1)
    >>> layer.initialize()
    >>> layer(mx.nd.ones((1, 3, 10, 10))).shape, layer.weight.shape
    ((1, 8, 10, 10), (8, 3, 3, 3))
    """

    def __init__(self, channels: int, kernel_size: int | tuple[int, int], strides: int | tuple[int, int] = (1, 1),
                 padding: int | tuple[int, int] = (0, 0), dilation: int | tuple[int, int] = (1, 1), groups: int = 1, layout: str = "NCHW",
                 activation: str | None = None, use_bias: bool = True, weight_initializer: str | Initializer | None = None,
                 bias_initializer: str | Initializer | None = "zeros", in_channels: int = 0, **kwargs: Any) -> None:
        check_layout(layout, ("NCHW", "NHWC"))
        super().__init__(channels, as_sizes(kernel_size, 2, "kernel_size"), strides, padding, dilation, groups, layout, in_channels,
                         activation, use_bias, weight_initializer, bias_initializer, kwargs.pop("op_name", "Convolution"), **kwargs)


class Conv3D(_Conv):
    """Convolution over three axes.

    Parameters
    ----------
    channels : int
        The number of outputs for each position.
    kernel_size, strides, padding, dilation : int or tuple of 3 int
    groups : int
        Split the channels into groups that don't see each other.
    layout : {'NCDHW', 'NDHWC'}
    activation : str, optional
        See `Activation`; none by default.
    use_bias : bool
    weight_initializer, bias_initializer : str or Initializer, optional
    in_channels : int
        0 waits for the first batch.
    prefix, params
        As for `Block`.

    Example
    -------
    >>> layer = mx.gluon.nn.Conv3D(channels=4, kernel_size=3)
    >>> layer.initialize()
    >>> layer(mx.nd.ones((2, 1, 5, 6, 7))).shape
    (2, 4, 3, 4, 5)
    """

    def __init__(self, channels: int, kernel_size: int | tuple[int, int, int], strides: int | tuple[int, int, int] = (1, 1, 1),
                 padding: int | tuple[int, int, int] = (0, 0, 0), dilation: int | tuple[int, int, int] = (1, 1, 1), groups: int = 1,
                 layout: str = "NCDHW", activation: str | None = None, use_bias: bool = True, weight_initializer: str | Initializer | None = None,
                 bias_initializer: str | Initializer | None = "zeros", in_channels: int = 0, **kwargs: Any) -> None:
        check_layout(layout, ("NCDHW", "NDHWC"))
        super().__init__(channels, as_sizes(kernel_size, 3, "kernel_size"), strides, padding, dilation, groups, layout, in_channels,
                         activation, use_bias, weight_initializer, bias_initializer, kwargs.pop("op_name", "Convolution"), **kwargs)


class Conv1DTranspose(_Conv):
    """Transposed convolution over one axis: the gradient of `Conv1D` with respect to its input.

    Parameters
    ----------
    channels : int
        The number of outputs for each position.
    kernel_size, strides, padding, dilation : int or tuple of 1 int
    output_padding : int or tuple of 1 int
        Added to the size of the output, at one side; strides leave it open.
    groups : int
        Split the channels into groups that don't see each other.
    layout : {'NCW'}
    activation : str, optional
        See `Activation`; none by default.
    use_bias : bool
    weight_initializer, bias_initializer : str or Initializer, optional
    in_channels : int
        0 waits for the first batch.
    prefix, params
        As for `Block`.

    Example
    -------
    >>> layer = mx.gluon.nn.Conv1DTranspose(channels=4, kernel_size=2, strides=2)
    >>> layer.initialize()
    >>> layer(mx.nd.ones((2, 3, 10))).shape
    (2, 4, 20)
    """

    def __init__(self, channels: int, kernel_size: int | tuple[int], strides: int | tuple[int] = 1, padding: int | tuple[int] = 0,
                 output_padding: int | tuple[int] = 0, dilation: int | tuple[int] = 1, groups: int = 1, layout: str = "NCW",
                 activation: str | None = None, use_bias: bool = True, weight_initializer: str | Initializer | None = None,
                 bias_initializer: str | Initializer | None = "zeros", in_channels: int = 0, **kwargs: Any) -> None:
        check_layout(layout, ("NCW",))
        self.outpad = as_sizes(output_padding, 1, "output_padding")
        super().__init__(channels, as_sizes(kernel_size, 1, "kernel_size"), strides, padding, dilation, groups, layout, in_channels,
                         activation, use_bias, weight_initializer, bias_initializer, kwargs.pop("op_name", "Deconvolution"), self.outpad,
                         **kwargs)


class Conv2DTranspose(_Conv):
    """Transposed convolution over two axes: the gradient of `Conv2D` with respect to its input.

    Parameters
    ----------
    channels : int
        The number of outputs for each position.
    kernel_size, strides, padding, dilation : int or tuple of 2 int
    output_padding : int or tuple of 2 int
        Added to the size of the output, at one side; strides leave it open.
    groups : int
        Split the channels into groups that don't see each other.
    layout : {'NCHW', 'NHWC'}
    activation : str, optional
        See `Activation`; none by default.
    use_bias : bool
    weight_initializer, bias_initializer : str or Initializer, optional
    in_channels : int
        0 waits for the first batch.
    prefix, params
        As for `Block`.

    Example
    -------
    >>> layer = mx.gluon.nn.Conv2DTranspose(channels=4, kernel_size=2, strides=2)
    >>> layer.initialize()
    >>> layer(mx.nd.ones((2, 3, 8, 8))).shape
    (2, 4, 16, 16)
    """

    def __init__(self, channels: int, kernel_size: int | tuple[int, int], strides: int | tuple[int, int] = (1, 1),
                 padding: int | tuple[int, int] = (0, 0), output_padding: int | tuple[int, int] = (0, 0), dilation: int | tuple[int, int] = (1, 1),
                 groups: int = 1, layout: str = "NCHW", activation: str | None = None, use_bias: bool = True,
                 weight_initializer: str | Initializer | None = None, bias_initializer: str | Initializer | None = "zeros", in_channels: int = 0,
                 **kwargs: Any) -> None:
        check_layout(layout, ("NCHW", "NHWC"))
        self.outpad = as_sizes(output_padding, 2, "output_padding")
        super().__init__(channels, as_sizes(kernel_size, 2, "kernel_size"), strides, padding, dilation, groups, layout, in_channels,
                         activation, use_bias, weight_initializer, bias_initializer, kwargs.pop("op_name", "Deconvolution"), self.outpad,
                         **kwargs)


class Conv3DTranspose(_Conv):
    """Transposed convolution over three axes: the gradient of `Conv3D` with respect to its input.

    Parameters
    ----------
    channels : int
        The number of outputs for each position.
    kernel_size, strides, padding, dilation : int or tuple of 3 int
    output_padding : int or tuple of 3 int
        Added to the size of the output, at one side; strides leave it open.
    groups : int
        Split the channels into groups that don't see each other.
    layout : {'NCDHW', 'NDHWC'}
    activation : str, optional
        See `Activation`; none by default.
    use_bias : bool
    weight_initializer, bias_initializer : str or Initializer, optional
    in_channels : int
        0 waits for the first batch.
    prefix, params
        As for `Block`.

    Example
    -------
    >>> layer = mx.gluon.nn.Conv3DTranspose(channels=4, kernel_size=2, strides=2)
    >>> layer.initialize()
    >>> layer(mx.nd.ones((2, 1, 3, 4, 5))).shape
    (2, 4, 6, 8, 10)
    """

    def __init__(self, channels: int, kernel_size: int | tuple[int, int, int], strides: int | tuple[int, int, int] = (1, 1, 1),
                 padding: int | tuple[int, int, int] = (0, 0, 0), output_padding: int | tuple[int, int, int] = (0, 0, 0),
                 dilation: int | tuple[int, int, int] = (1, 1, 1), groups: int = 1, layout: str = "NCDHW", activation: str | None = None,
                 use_bias: bool = True, weight_initializer: str | Initializer | None = None, bias_initializer: str | Initializer | None = "zeros",
                 in_channels: int = 0, **kwargs: Any) -> None:
        check_layout(layout, ("NCDHW", "NDHWC"))
        self.outpad = as_sizes(output_padding, 3, "output_padding")
        super().__init__(channels, as_sizes(kernel_size, 3, "kernel_size"), strides, padding, dilation, groups, layout, in_channels,
                         activation, use_bias, weight_initializer, bias_initializer, kwargs.pop("op_name", "Deconvolution"), self.outpad,
                         **kwargs)


class ReflectionPad2D(HybridBlock):
    """Pads height and width with a mirror image of the array; layout NCHW.

    Parameters
    ----------
    padding : int or tuple of 8 int
        The sizes before and after each axis; those of the first two axes must be 0.
    prefix, params
        As for `Block`.

    Raises
    ------
    UsageError
        If `padding` is neither.

    Example
    -------
    >>> mx.gluon.nn.ReflectionPad2D(1)(mx.nd.array([[[[1, 2], [3, 4]]]])).asnumpy()
    array([[[[4., 3., 4., 3.],
             [2., 1., 2., 1.],
             [4., 3., 4., 3.],
             [2., 1., 2., 1.]]]], dtype=float32)
    """

    def __init__(self, padding: int | tuple[int, ...] = 0, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        if isinstance(padding, numeric_types):
            padding = (0,) * 4 + (padding,) * 4
        if len(padding) != 8:
            raise UsageError(f"padding must be a number or a tuple of 8 ints, received {shortened(padding)}")
        self._padding = padding

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """Return the larger array."""
        return F.pad(x, mode="reflect", pad_width=self._padding)
