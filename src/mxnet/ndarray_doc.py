"""Documentation of operators on arrays, written apart from them."""


class NDArrayDoc:
    """What is written about an operator in Python only: the docstring of a subclass named ``<operator>Doc``."""
