"""Building Symbols: a node for each call of an operator."""
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from .. import attribute, name
from ..base import MXNetError
from ..ops import dtypes
from ..ops.registry import Operator
from ..ops.schema import to_string
from ..suggestions import shortened, type_names
from .node import Entry, Node
from .serialization import annotation, is_annotation, load
from .symbol import Symbol


def create(op: Operator, inputs: Sequence[Symbol | None] | Mapping[str, Symbol], attrs: Mapping[str, Any], given_name: str | None = None,
           hint: str | None = None, user_attrs: Mapping[str, str] | None = None) -> Symbol:
    """Return a Symbol for one call of an operator.

    Parameters
    ----------
    op : mxnet.ops.Operator
    inputs : list of Symbol or None, or dict of str to Symbol
        By position or by name; missing inputs become new variables.
    attrs : dict
        The operator's attributes, as values or strings.
    given_name, hint : str
        The node's name, or the prefix of a generated one.
    user_attrs : dict, optional
        Annotations, and attributes of the operator that go before `attrs`; those of the scope are under them.

    Raises
    ------
    MXNetError
        If an attribute is unknown, missing or not of its type, or an input is no Symbol of one output.
    """
    strings = {}
    for k, v in attrs.items():
        known = op.attributes.get(k)
        if v is not None or known is not None and known.optional:
            strings[k] = dtypes.name_of(dtypes.to_torch(v)) if k == "dtype" and hasattr(v, "dtype") else to_string(v)  # an array stands for its type
    for k, v in (attribute.current().get(user_attrs) or {}).items():
        strings[k] = _text(v)
    annotations: dict[str, str] = {}
    own: dict[str, str] = {}
    for k, v in strings.items():
        key = k if k in op.attributes else annotation(k, v, op.name)
        # An operator without attributes never reads the names of a scope's attributes.
        (annotations if is_annotation(key) or not op.attributes and k not in attrs else own)[key] = v
    if op.variadic and op.key_var_num_args and op.key_var_num_args not in own:
        own[op.key_var_num_args] = str(len(inputs))
    graphs = [load(own.pop(op.graph_argument))] if op.graph_argument in own else []
    parsed = op.parse(own)
    node_name = name.current().get(given_name, hint or op.name.lower())
    node = Node(op, node_name, {**annotations, **own}, (), graphs)
    if graphs:
        parsed = node.parsed()
    names = op.input_names(parsed, len(inputs))
    if isinstance(inputs, dict):
        # An optional input that is given by name stands even where the attributes don't ask for it.
        extra = [n for n in op.inputs if n in inputs and n not in names] if not op.variadic else []
        unknown = [n for n in inputs if n not in names and n not in extra]
        if unknown:
            raise MXNetError(f"{op.name}: no input is called {unknown[0]!r}; its inputs are {', '.join(names)}")
        names = tuple(n for n in op.inputs if n in names or n in extra) if extra else names
        given = [inputs.get(n) for n in names]
    else:
        given = list(inputs)
        if not op.variadic and len(given) > len(names):
            names = op.inputs[:len(given)]
            if len(given) > len(op.inputs):
                raise MXNetError(f"{op.name} takes {len(op.inputs)} inputs ({', '.join(op.inputs)}), received {len(given)}")
        given += [None] * (len(names) - len(given))
    for input_name, value in zip(names, given):
        if value is None:
            node.inputs.append((_new_variable(op, node, input_name), 0))
        elif not isinstance(value, Symbol):
            raise MXNetError(f"{op.name}: input `{input_name}` must be a Symbol, received {shortened(value)} of type {type(value).__name__}")
        elif len(value._outputs) != 1:
            raise MXNetError(f"{op.name}: input `{input_name}` must be a single output, received a group of {len(value._outputs)}: "
                             f"{', '.join(value.list_outputs()[:4])}; select one, such as x[0]")
        else:
            node.inputs.append(value._outputs[0])
    # A Symbol of mx.sym.np makes one of its kind: Gluon's layers are traced with both.
    kind = next((type(s) for s in given if s is not None and type(s) is not Symbol), Symbol)
    return kind([(node, i) for i in range(node.num_outputs())])


def _text(value: Any) -> str:
    """Return an annotation as text; for an Initializer, the text from which it can be recreated."""
    return value if isinstance(value, str) else value.dumps() if hasattr(value, "dumps") else str(value)


def _new_variable(op: Operator, node: Node, input_name: str) -> Node:
    attrs = dict(node.attrs)
    if input_name in op.initial:
        attrs["__init__"] = json.dumps(op.initial[input_name])
    return Node(None, f"{node.name}_{input_name}", attrs)


def var(name: str, attr: Mapping[str, str] | None = None, shape: int | Sequence[int | None] | None = None, lr_mult: float | None = None,
        wd_mult: float | None = None, dtype: Any = None, init: Any = None, stype: str | None = None, **kwargs: Any) -> Symbol:
    """Return a variable: a named input of a graph.

    Parameters
    ----------
    name : str
    attr : dict of str to str, optional
        Annotations.
    shape : tuple of int, optional
        Sizes that are not known are 0.
    lr_mult, wd_mult : float, optional
        Factors of the learning rate and weight decay, for a parameter.
    dtype : str or type, optional
    init : str or Initializer, optional
        The initializer of a parameter, instead of the network's own.
    stype : str, optional
        The storage type of the array: ``'default'``, ``'csr'``, ``'row_sparse'``.
    **kwargs
        Further annotations, of the form ``__name__``.

    Raises
    ------
    TypeError
        If `name` is not a string.
    ValueError
        If a further keyword is not of the form ``__name__``, or a value of `attr` is not a string.
    """
    if not isinstance(name, str):
        raise TypeError(f"the name of a variable must be a string, received {shortened(name)}")
    attrs = dict(attribute.current().get(attr) or {})
    for key, value in attrs.items():
        if not isinstance(value, str):
            raise ValueError(f"var: annotations must be strings, received {key}={value!r}; an initializer is given as `init`")
    name = attrs.pop("name", name)
    attrs = {annotation(k, v): v for k, v in attrs.items()}
    if shape is not None:
        attrs["__shape__"] = str(tuple(int(s) if s is not None else 0 for s in (shape if not isinstance(shape, int) else (shape,))))
    for key, value in (("__lr_mult__", lr_mult), ("__wd_mult__", wd_mult)):
        if value is not None:
            attrs[key] = str(value)
    if dtype is not None:
        attrs["__dtype__"] = str(dtypes.NAME_TO_FLAG[dtypes.name_of(dtypes.to_torch(dtype))])
    if init is not None:
        attrs["__init__"] = init if isinstance(init, str) else init.dumps()
    if stype is not None:
        attrs["__storage_type__"] = str({"default": 0, "row_sparse": 1, "csr": 2}[stype])
    for key, value in kwargs.items():
        if not (key.startswith("__") and key.endswith("__")):
            raise ValueError(f"var: the annotation `{key}` must start and end with two underscores, as in `__{key.strip('_')}__`")
        attrs[key] = str(value)
    return Symbol([(Node(None, name, attrs), 0)])


Variable = var


def group(symbols: Iterable[Symbol], create_fn: Callable[[list[Entry]], Symbol] | None = None) -> Symbol:
    """Return a Symbol with all outputs of several Symbols, in order.

    Raises
    ------
    TypeError
        If `symbols` is empty or holds anything else.
    """
    symbols = list(symbols) if symbols is not None else []
    if not symbols or any(not isinstance(s, Symbol) for s in symbols):
        raise TypeError(f"Expected a list of symbols as input, received {type_names(symbols)}")
    return (create_fn or type(symbols[0]))([entry for s in symbols for entry in s._outputs])
