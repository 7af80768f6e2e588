"""The operators that arrays and Symbols also have as methods: those that say so (the trait ``method``)."""
from ..ops.registry import OPERATORS


def names():
    """The methods' names: each the name or an alias of an operator, which is also that of the function."""
    return [name for name, op in OPERATORS.items() if op.method == name or op.method is True and name == op.name]


def attach(cls, function_of, share=None):
    """Give `cls` the methods.

    `function_of(name)` returns the operator's function for that kind of array, ``share(name, array, ...)`` calls one whose result
    shares the array's memory.
    """
    for name in names():
        setattr(cls, name, _method(name, function_of, share))


def _method(name, function_of, share):
    function = None  # made at the first call: making all of them at import would cost time

    def method(self, *args, **kwargs):
        nonlocal function
        if function is None:
            function = function_of(name)
        return function(self, *args, **kwargs)

    if OPERATORS[name].shares_memory and OPERATORS[name].num_inputs == 1:
        # `inplace` asks for a result that shares memory; for a Symbol it makes no difference.
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
