"""Documentation of operators on arrays, separate from their definitions."""


class NDArrayDoc:
    """The base class of separate documentation: a subclass ``<operator>Doc`` has the additional docstring of an operator."""
