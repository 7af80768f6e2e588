"""Functions and methods out of the operator registry."""
import torch

from mxnet.ops.schema import Axes, Ends, Floats, Shape

_KINDS = {int: "_Int", float: "_Number", bool: "_Flag", str: "str", torch.dtype: "_DType", Shape: "_Sizes", Axes: "_Sizes | None",
          Floats: "_Number | Sequence[_Number]",
          Ends: "_Sizes"}


def annotation(attribute):
    """The type of what users may give for an attribute."""
    text = f"Literal[{', '.join(map(repr, attribute.choices))}]" if attribute.choices else _KINDS[attribute.kind]
    if attribute.choices and "float32" in attribute.choices:
        text += " | type | _numpy.dtype[Any]"
    return text if not attribute.optional or text.endswith("None") else text + " | None"


def _attributes(op, required):
    return [f"{a.name}: {annotation(a)}{'' if a.required and required else ' = ...'}" for a in op.attributes.values()]


def _rest(op, array):
    """Return the parameters that every call has after inputs and attributes."""
    rest = []
    if op.wants_device:
        rest.append("ctx: _Context | None = ...")
    if op.key_var_num_args and op.key_var_num_args not in op.attributes:
        rest.append(f"{op.key_var_num_args}: int = ...")
    symbolic = array.endswith("Symbol")
    several = "" if op.num_outputs == 1 else f" | Sequence[{array}]"
    rest += ["attr: dict[str, str] | None = ..."] if symbolic else [f"out: {array}{several} | None = ..."]
    rest.append("name: str | None = ...")
    if op.names_inputs:  # an operator such as `Custom` takes what the class behind it takes
        rest.append("**kwargs: Any")
    elif symbolic:
        rest.append("**kwargs: Unpack[_Annotations]")
    return rest


def _inputs(op, array, all_optional):
    """The parameters for inputs, and whether one of them may be left out."""
    if op.variadic:
        # One input may stand for all: a list of arrays.
        return [f"{n}: {array}" for n in op.inputs[:-1]] + [f"*{op.inputs[-1]}: {array} | Sequence[{array}]"], True
    first = next(iter(op.attributes.values()), None)
    # softmax(x, -1): a first attribute that need not be given may also stand at the place of an input that need not be given.
    instead = f" | {annotation(first)}" if first is not None and not first.required else ""
    parts = [f"{n}: {array}{instead} | None = ..." if n in op.optional_inputs else f"{n}: {array} | None = ..." if all_optional else f"{n}: {array}"
             for n in op.inputs]
    return parts, all_optional or bool(op.optional_inputs)


def result(op, array):
    """Return the type of a result; where the number of outputs depends on the attributes, that of the simplest case."""
    if array.endswith("Symbol") or op.num_outputs == 1:
        return array
    if not callable(op.num_outputs):
        return f"list[{array}]"
    # With the attributes left at their defaults; `| Any` keeps a checker from insisting on that.
    try:
        return f"{array} | Any" if op.outputs({}) == 1 else f"list[{array}] | Any"
    except Exception:  # it takes an attribute that has no default
        return f"list[{array}] | Any"


def parameters(op, array):
    """The parameters of the function of an operator, in order."""
    symbolic = array.endswith("Symbol")
    inputs, may_lack = _inputs(op, array, symbolic)
    if op.variadic:
        return [*inputs, *_attributes(op, True), *_rest(op, array)]
    # A parameter without a default cannot follow one that has one, but by name. Symbols of one input are often followed by an attribute.
    by_name = may_lack and any(a.required for a in op.attributes.values()) and not (symbolic and len(op.inputs) == 1)
    return [*inputs, *(["*"] if by_name else []), *_attributes(op, by_name or not may_lack), *_rest(op, array)]


def function(name, op, array):
    """The line of ``mx.nd.<name>``, or of another front end with other arrays."""
    return f"def {name}({', '.join(_ordered(parameters(op, array)))}) -> {result(op, array)}: ..."


def method(name, op, array):
    """The lines of the method of that name: the function without its first input."""
    given = parameters(op, array)
    rest = given if op.variadic else given[1:]  # x.stack(y): the array itself is the first of any number
    if op.view is not None and op.num_inputs == 1:
        behind = len(rest) - rest[-1].startswith("**")
        rest = [*rest[:behind], "inplace: bool = ...", *rest[behind:]]
    lines = [f"    def {name}({', '.join(_ordered(['self', *rest]))}) -> {result(op, array)}: ..."]
    if name == "transpose":  # the axes one by one
        lines = ["    @overload", f"    def {name}(self, *axes: int) -> {array}: ...", "    @overload", *lines]
    return "\n".join(lines)


def _ordered(parts):
    """Parameters without a default before those with one, up to the first that is given by name only."""
    end = next((i for i, p in enumerate(parts) if p.startswith("*")), len(parts))
    head = parts[:end]
    if all("=" not in p for p in head) or all("=" in p for p in head[[("=" in p) for p in head].index(True):]):
        return parts
    # An attribute that must be given stands behind one that need not: all from there on are given by name.
    first = ["=" in p for p in head].index(True)
    return [*head[:first], "*", *head[first:], *parts[end + (end < len(parts) and parts[end] == "*"):]]
