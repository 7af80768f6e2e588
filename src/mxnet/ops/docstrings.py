"""Docstrings of operators that are registered from a table: a description, and an example from one line of text."""
from typing import Any


def with_example(doc: str, example: str) -> str:
    """Append an example to `doc`: a call and its printed result, as ``"mx.np.hanning(3) -> array([0., 1., 0.])"``."""
    call, result = example.split(" -> ")
    return f"""{doc}

    Example
    -------
    >>> {call}
    {result}
    """


def with_sample(doc: str, function: str, sample: Any) -> str:
    """Append an example to `doc`: a call of `function`, such as ``mx.nd.sqrt``, on arrays.

    The sample names the arrays, the attributes if there are any, and the elements of the result: ``"[1, 2] and [3, 4] -> [4., 6.]"``,
    ``"[[1, 2], [3, 4]]; axis=1 -> [3., 7.]"``. The result is float32, or of another type that ``mx.np`` shows.
    """
    inputs, result = sample.split(" -> ")
    arrays, _, attributes = inputs.partition("; ")
    space = function[:5]
    arguments = [f"{space}.array({a})" for a in arrays.split(" and ")] + ([attributes] if attributes else [])
    call = f"{function}({', '.join(arguments)})"
    if space == "mx.np":  # the repr of its arrays omits the default type
        return with_example(doc, f"{call} -> array({result})")
    return with_example(doc, f"{call}.asnumpy() -> array({result}, dtype=float32)")
