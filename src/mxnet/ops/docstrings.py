"""Docstrings of operators: of those that are registered from a table, and the parameters of all for ``help()``."""
import inspect
import re
from typing import Any

_SECTION = re.compile(r"\n(?:Returns|Raises|Notes|Examples?)\n---+[ ]*\n")


def unindented(doc: str) -> str:
    """Return a docstring without the indentation of its source, as the compiler of Python 3.13 leaves it."""
    return inspect.cleandoc(doc) if "\n" in doc else doc


def with_example(doc: str, example: str) -> str:
    """Append an example to `doc`: a call and its printed result, as ``"mx.np.hanning(3) -> array([0., 1., 0.])"``."""
    call, result = example.split(" -> ")
    return f"{unindented(doc)}\n\nExample\n-------\n>>> {call}\n{result}\n"


def with_sample(doc: str, function: str, sample: str) -> str:
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


def with_parameters(op: Any, array: str) -> str | None:
    """Return an operator's docstring with the section Parameters: inputs, and attributes with their types and defaults.

    `array` is the type of the inputs, ``"NDArray"`` or ``"Symbol"``. An operator without docstring, or with a section of its own, keeps it.
    """
    if not op.__doc__:
        return None
    doc = unindented(op.__doc__)
    if "\nParameters\n" in doc:
        return doc
    several = op.inputs[-1] if op.variadic else None
    lines = [f"*{name} : any number of {array}" if name == several else f"{name} : {array}{', optional' if name in op.optional_inputs else ''}"
             for name in op.inputs]
    lines += [attribute.description() for attribute in op.attributes.values()]
    if not lines:
        return doc
    section = "\n".join(["", "Parameters", "----------", *lines]) + "\n"
    place = _SECTION.search(doc)
    if place is None:
        return f"{doc.rstrip()}\n{section}"
    return f"{doc[:place.start()].rstrip()}\n{section}{doc[place.start():]}"
