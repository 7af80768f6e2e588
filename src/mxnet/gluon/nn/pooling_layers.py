"""Pooling layers."""
from typing import Any

from ...base import numeric_types
from ...suggestions import shortened
from ..hybrid_block import HybridBlock
from ..utils import UsageError
from .conv_layers import as_sizes

__all__ = ["MaxPool1D", "MaxPool2D", "MaxPool3D", "AvgPool1D", "AvgPool2D", "AvgPool3D", "GlobalMaxPool1D", "GlobalMaxPool2D",
           "GlobalMaxPool3D", "GlobalAvgPool1D", "GlobalAvgPool2D", "GlobalAvgPool3D"]

_LAYOUTS = {1: ("NCW", "NWC"), 2: ("NCHW", "NHWC"), 3: ("NCDHW", "NDHWC")}


class _Pooling(HybridBlock):
    """The base of the pooling layers."""

    def __init__(self, pool_size, strides, padding, ceil_mode, global_pool, pool_type, layout: str, count_include_pad=None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        ndim = len(pool_size)
        if layout not in _LAYOUTS[ndim]:
            raise UsageError(f"{ndim}D pooling has layouts {' and '.join(_LAYOUTS[ndim])}, received {shortened(layout)}")
        strides = pool_size if strides is None else strides
        self._kwargs = {"kernel": pool_size, "stride": (strides,) * ndim if isinstance(strides, numeric_types) else strides,
                        "pad": (padding,) * ndim if isinstance(padding, numeric_types) else padding, "global_pool": global_pool,
                        "pool_type": pool_type, "layout": layout, "pooling_convention": "full" if ceil_mode else "valid"}
        if count_include_pad is not None:
            self._kwargs["count_include_pad"] = count_include_pad

    def _alias(self) -> str:
        return "pool"

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """Return the pooled array, in the layout of the input."""
        return F.Pooling(x, name="fwd", **self._kwargs)

    def __repr__(self) -> str:
        options = self._kwargs
        return (f"{type(self).__name__}(size={options['kernel']}, stride={options['stride']}, padding={options['pad']}, "
                f"ceil_mode={options['pooling_convention'] == 'full'}, global_pool={options['global_pool']}, "
                f"pool_type={options['pool_type']}, layout={options['layout']})")


class MaxPool1D(_Pooling):
    """The maximum of each window, over one axis.

    Parameters
    ----------
    pool_size : int or tuple of 1 int
        The size of the windows.
    strides : int or tuple of 1 int, optional
        The distance of windows; `pool_size` by default.
    padding : int or tuple of 1 int
    layout : {'NCW', 'NWC'}
    ceil_mode : bool
        Include a partial window at the end.
    prefix, params
        As for `Block`.

    Example
    -------
    >>> layer = mx.gluon.nn.MaxPool1D(pool_size=2)
    >>> layer(mx.nd.array([[[1, 3, 5, 7]]])).asnumpy()
    array([[[3., 7.]]], dtype=float32)
    """

    def __init__(self, pool_size: int | tuple[int] = 2, strides: int | tuple[int] | None = None, padding: int | tuple[int] = 0, layout: str = "NCW",
                 ceil_mode: bool = False, **kwargs: Any) -> None:
        super().__init__(as_sizes(pool_size, 1, "pool_size"), strides, padding, ceil_mode, False, "max", layout, **kwargs)


class MaxPool2D(_Pooling):
    """The maximum of each window, over two axes.

    Parameters
    ----------
    pool_size : int or tuple of 2 int
        The size of the windows.
    strides : int or tuple of 2 int, optional
        The distance of windows; `pool_size` by default.
    padding : int or tuple of 2 int
    layout : {'NCHW', 'NHWC'}
    ceil_mode : bool
        Include a partial window at the end.
    prefix, params
        As for `Block`.

    Example
    -------
    >>> layer = mx.gluon.nn.MaxPool2D(pool_size=2)
    >>> layer(mx.nd.array([[[[1, 3], [5, 7]]]])).asnumpy()
    array([[[[7.]]]], dtype=float32)
    """

    def __init__(self, pool_size: int | tuple[int, int] = (2, 2), strides: int | tuple[int, int] | None = None, padding: int | tuple[int, int] = 0,
                 layout: str = "NCHW", ceil_mode: bool = False, **kwargs: Any) -> None:
        super().__init__(as_sizes(pool_size, 2, "pool_size"), strides, padding, ceil_mode, False, "max", layout, **kwargs)


class MaxPool3D(_Pooling):
    """The maximum of each window, over three axes.

    Parameters
    ----------
    pool_size : int or tuple of 3 int
        The size of the windows.
    strides : int or tuple of 3 int, optional
        The distance of windows; `pool_size` by default.
    padding : int or tuple of 3 int
    layout : {'NCDHW', 'NDHWC'}
    ceil_mode : bool
        Include a partial window at the end.
    prefix, params
        As for `Block`.

    Example
    -------
    >>> layer = mx.gluon.nn.MaxPool3D(pool_size=2)
    >>> layer(mx.nd.ones((1, 3, 4, 6, 8))).shape
    (1, 3, 2, 3, 4)
    """

    def __init__(self, pool_size: int | tuple[int, int, int] = (2, 2, 2), strides: int | tuple[int, int, int] | None = None,
                 padding: int | tuple[int, int, int] = 0, ceil_mode: bool = False, layout: str = "NCDHW", **kwargs: Any) -> None:
        super().__init__(as_sizes(pool_size, 3, "pool_size"), strides, padding, ceil_mode, False, "max", layout, **kwargs)


class AvgPool1D(_Pooling):
    """The mean of each window, over one axis.

    Parameters
    ----------
    pool_size : int or tuple of 1 int
        The size of the windows.
    strides : int or tuple of 1 int, optional
        The distance of windows; `pool_size` by default.
    padding : int or tuple of 1 int
    layout : {'NCW', 'NWC'}
    ceil_mode : bool
        Include a partial window at the end.
    count_include_pad : bool
        Include the padding, as zeros, in the mean.
    prefix, params
        As for `Block`.

    Example
    -------
    >>> layer = mx.gluon.nn.AvgPool1D(pool_size=2)
    >>> layer(mx.nd.array([[[1, 3, 5, 7]]])).asnumpy()
    array([[[2., 6.]]], dtype=float32)
    """

    def __init__(self, pool_size: int | tuple[int] = 2, strides: int | tuple[int] | None = None, padding: int | tuple[int] = 0, layout: str = "NCW",
                 ceil_mode: bool = False, count_include_pad: bool = True, **kwargs: Any) -> None:
        super().__init__(as_sizes(pool_size, 1, "pool_size"), strides, padding, ceil_mode, False, "avg", layout, count_include_pad, **kwargs)


class AvgPool2D(_Pooling):
    """The mean of each window, over two axes.

    Parameters
    ----------
    pool_size : int or tuple of 2 int
        The size of the windows.
    strides : int or tuple of 2 int, optional
        The distance of windows; `pool_size` by default.
    padding : int or tuple of 2 int
    layout : {'NCHW', 'NHWC'}
    ceil_mode : bool
        Include a partial window at the end.
    count_include_pad : bool
        Include the padding, as zeros, in the mean.
    prefix, params
        As for `Block`.

    Example
    -------
    >>> layer = mx.gluon.nn.AvgPool2D(pool_size=2)
    >>> layer(mx.nd.array([[[[1, 3], [5, 7]]]])).asnumpy()
    array([[[[4.]]]], dtype=float32)
    """

    def __init__(self, pool_size: int | tuple[int, int] = (2, 2), strides: int | tuple[int, int] | None = None, padding: int | tuple[int, int] = 0,
                 ceil_mode: bool = False, layout: str = "NCHW", count_include_pad: bool = True, **kwargs: Any) -> None:
        super().__init__(as_sizes(pool_size, 2, "pool_size"), strides, padding, ceil_mode, False, "avg", layout, count_include_pad, **kwargs)


class AvgPool3D(_Pooling):
    """The mean of each window, over three axes.

    Parameters
    ----------
    pool_size : int or tuple of 3 int
        The size of the windows.
    strides : int or tuple of 3 int, optional
        The distance of windows; `pool_size` by default.
    padding : int or tuple of 3 int
    layout : {'NCDHW', 'NDHWC'}
    ceil_mode : bool
        Include a partial window at the end.
    count_include_pad : bool
        Include the padding, as zeros, in the mean.
    prefix, params
        As for `Block`.

    Example
    -------
    >>> layer = mx.gluon.nn.AvgPool3D(pool_size=2)
    >>> layer(mx.nd.ones((1, 3, 4, 6, 8))).shape
    (1, 3, 2, 3, 4)
    """

    def __init__(self, pool_size: int | tuple[int, int, int] = (2, 2, 2), strides: int | tuple[int, int, int] | None = None,
                 padding: int | tuple[int, int, int] = 0, ceil_mode: bool = False, layout: str = "NCDHW", count_include_pad: bool = True,
                 **kwargs: Any) -> None:
        super().__init__(as_sizes(pool_size, 3, "pool_size"), strides, padding, ceil_mode, False, "avg", layout, count_include_pad, **kwargs)


class GlobalMaxPool1D(_Pooling):
    """The maximum over the last axis, which becomes of size 1.

    Parameters
    ----------
    layout : {'NCW', 'NWC'}
    prefix, params
        As for `Block`.

    Example
    -------
    >>> mx.gluon.nn.GlobalMaxPool1D()(mx.nd.array([[[1, 2, 6]]])).asnumpy()
    array([[[6.]]], dtype=float32)
    """

    def __init__(self, layout: str = "NCW", **kwargs: Any) -> None:
        super().__init__((1,), None, 0, True, True, "max", layout, **kwargs)


class GlobalMaxPool2D(_Pooling):
    """The maximum over both axes of an image, which become of size 1.

    Parameters
    ----------
    layout : {'NCHW', 'NHWC'}
    prefix, params
        As for `Block`.

    Example
    -------
    >>> mx.gluon.nn.GlobalMaxPool2D()(mx.nd.array([[[[1, 3], [5, 7]]]])).asnumpy()
    array([[[[7.]]]], dtype=float32)
    """

    def __init__(self, layout: str = "NCHW", **kwargs: Any) -> None:
        super().__init__((1, 1), None, 0, True, True, "max", layout, **kwargs)


class GlobalMaxPool3D(_Pooling):
    """The maximum over all three axes of a volume, which become of size 1.

    Parameters
    ----------
    layout : {'NCDHW', 'NDHWC'}
    prefix, params
        As for `Block`.

    Example
    -------
    >>> mx.gluon.nn.GlobalMaxPool3D()(mx.nd.ones((2, 3, 4, 5, 6))).shape
    (2, 3, 1, 1, 1)
    """

    def __init__(self, layout: str = "NCDHW", **kwargs: Any) -> None:
        super().__init__((1, 1, 1), None, 0, True, True, "max", layout, **kwargs)


class GlobalAvgPool1D(_Pooling):
    """The mean over the last axis, which becomes of size 1.

    Parameters
    ----------
    layout : {'NCW', 'NWC'}
    prefix, params
        As for `Block`.

    Example
    -------
    >>> mx.gluon.nn.GlobalAvgPool1D()(mx.nd.array([[[1, 2, 6]]])).asnumpy()
    array([[[3.]]], dtype=float32)
    """

    def __init__(self, layout: str = "NCW", **kwargs: Any) -> None:
        super().__init__((1,), None, 0, True, True, "avg", layout, **kwargs)


class GlobalAvgPool2D(_Pooling):
    """The mean over both axes of an image, which become of size 1.

    Parameters
    ----------
    layout : {'NCHW', 'NHWC'}
    prefix, params
        As for `Block`.

    Example
    -------
    >>> mx.gluon.nn.GlobalAvgPool2D()(mx.nd.array([[[[1, 3], [5, 7]]]])).asnumpy()
    array([[[[4.]]]], dtype=float32)
    """

    def __init__(self, layout: str = "NCHW", **kwargs: Any) -> None:
        super().__init__((1, 1), None, 0, True, True, "avg", layout, **kwargs)


class GlobalAvgPool3D(_Pooling):
    """The mean over all three axes of a volume, which become of size 1.

    Parameters
    ----------
    layout : {'NCDHW', 'NDHWC'}
    prefix, params
        As for `Block`.

    Example
    -------
    >>> mx.gluon.nn.GlobalAvgPool3D()(mx.nd.ones((2, 3, 4, 5, 6))).shape
    (2, 3, 1, 1, 1)
    """

    def __init__(self, layout: str = "NCDHW", **kwargs: Any) -> None:
        super().__init__((1, 1, 1), None, 0, True, True, "avg", layout, **kwargs)
