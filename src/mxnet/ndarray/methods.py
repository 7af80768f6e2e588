"""The operators that arrays and Symbols also have as methods: one table for both."""

METHODS = """
abs arccos arccosh arcsin arcsinh arctan arctanh argmax argmax_channel argmin argsort broadcast_axes broadcast_like broadcast_to cbrt
ceil clip cos cosh degrees depth_to_space diag exp expand_dims expm1 fix flatten flip floor log log10 log1p log2 log_softmax max mean
min nanprod nansum norm one_hot ones_like pad pick prod radians rcbrt reciprocal relu repeat reshape_like rint round rsqrt shape_array
sigmoid sign sin sinh size_array slice slice_axis slice_like softmax softmin sort space_to_depth split sqrt square squeeze sum swapaxes
take tan tanh tile topk transpose trunc zeros_like
""".split()
# These also take `inplace`, which asks for a result that shares memory; for a Symbol it makes no difference.
RESHAPING = {"expand_dims", "flatten", "squeeze"}


def attach(cls, function_of, share=None):
    """Give `cls` the methods.

    `function_of(name)` returns the operator's function for that kind of array, ``share(name, array, ...)`` calls one whose result
    shares the array's memory.
    """
    for name in METHODS:
        setattr(cls, name, _method(name, function_of, share))


def _method(name, function_of, share):
    function = None  # made at the first call: making all of them at import would cost time

    def method(self, *args, **kwargs):
        nonlocal function
        if function is None:
            function = function_of(name)
        return function(self, *args, **kwargs)

    if name in RESHAPING:
        plain, operator = method, name

        def method(self, *args, inplace=False, **kwargs):
            if inplace and share is not None:
                return share(operator, self, *args, **kwargs)
            return plain(self, *args, **kwargs)

    elif name == "transpose":
        plain = method

        def method(self, *axes, **kwargs):
            if len(axes) == 1 and isinstance(axes[0], (tuple, list)):
                axes = axes[0]
            return plain(self, axes=tuple(axes), **kwargs) if axes else plain(self, **kwargs)

    method.__name__ = method.__qualname__ = name
    method.__doc__ = f"`{name}` of this array; see the function of that name for its arguments."
    return method
