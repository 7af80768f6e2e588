"""The Symbol: a computation that is described first and run later."""
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from .. import files, util
from ..base import MXNetError, NotImplementedForSymbol
from ..ops import dtypes
from ..ops.shapes import known
from ..suggestions import did_you_mean, shortened
from . import inference, serialization
from .node import Entry, Node, auxiliary, copy_graph, topological
from .serialization import HIDDEN_KEYS, annotation, is_annotation

if TYPE_CHECKING:
    from ._attached import Methods as _Methods  # members attached later: methods that are operators, Python's arithmetic
else:
    _Methods = object


class Symbol(_Methods):
    """One or more outputs of a graph of operators.

    Symbols come from `mx.sym.var` and the operators of ``mx.sym``.

    Example
    -------
    >>> import mxnet as mx
    >>> a, b = mx.sym.var('a'), mx.sym.var('b')
    >>> c = a + b
    >>> c.list_arguments()
    ['a', 'b']
    >>> c.eval(a=mx.nd.ones((2,)), b=mx.nd.ones((2,)))[0].asnumpy()
    array([2., 2.], dtype=float32)
    """

    __slots__ = ("_outputs",)
    __array_priority__ = 1000.0

    def __init__(self, handle: Iterable[Entry]):
        self._outputs = list(handle)

    # -- properties -------------------------------------------------------------------------------------------------

    @property
    def name(self) -> str | Any:  # typed as str, since Optional would need a check at every use
        """The name of the operator or variable; None for a group of several."""
        nodes = {id(n): n for n, _ in self._outputs}
        return next(iter(nodes.values())).name if len(nodes) == 1 else None

    @property
    def handle(self) -> list[Entry]:
        """The outputs of the Symbol as (node, output) pairs, in place of MXNet's pointer into its library."""
        return self._outputs

    def __repr__(self) -> str:
        if self.name is None:
            return f"<{type(self).__name__} group [{', '.join(n.name for n, _ in self._outputs)}]>"
        return f"<{type(self).__name__} {self.name}>"

    def __len__(self) -> int:
        return len(self._outputs)

    def __iter__(self) -> Iterator["Symbol"]:
        return (self[i] for i in range(len(self)))

    def __bool__(self) -> bool:
        raise NotImplementedForSymbol(self.__bool__, "bool")

    def __hash__(self) -> int:
        return id(self) >> 4

    def __getitem__(self, index: str | int | np.integer | slice) -> "Symbol":
        if isinstance(index, str):
            positions = [i for i, n in enumerate(self.list_outputs()) if n == index]
            if not positions:
                raise ValueError(f"no output is named {index!r}; the outputs are {', '.join(self.list_outputs())}"
                                 f"{did_you_mean(index, self.list_outputs())}")
            if len(positions) > 1:
                raise ValueError(f"{len(positions)} outputs are named {index!r}; choose one by its number, {positions}")
            index = positions[0]
        if isinstance(index, slice):
            picked = self._outputs[index]
            if not picked:
                raise IndexError(f"{index} selects none of {len(self)} outputs")
            return type(self)(picked)
        if not isinstance(index, (int, np.integer)):
            raise TypeError(f"a Symbol's outputs are chosen by number, name or slice, received {shortened(index)}")
        if not 0 <= index < len(self._outputs):
            raise IndexError(f"output {index} of a Symbol with {len(self._outputs)}")
        return type(self)([self._outputs[index]])

    def __setitem__(self, index: Any, value: Any) -> None:
        raise NotImplementedForSymbol(self.__setitem__, None, index)

    def __copy__(self) -> "Symbol":
        return self.__deepcopy__(None)

    def __deepcopy__(self, memo: dict | None) -> "Symbol":
        return type(self)(copy_graph(self._outputs))

    def __getstate__(self) -> dict[str, str]:
        return {"handle": self.tojson()}

    def __setstate__(self, state: Mapping[str, str]) -> None:
        self._outputs = serialization.load(state["handle"], "pickled Symbol")

    def _nodes(self) -> list[Node]:
        return topological(self._outputs)

    def list_inputs(self) -> list[str]:
        """Return the names of all variables, in the order the graph meets them."""
        return [n.name for n in self._nodes() if n.op is None]

    def list_arguments(self) -> list[str]:
        """Return the names of the variables that are no auxiliary states."""
        nodes = self._nodes()
        aux = auxiliary(nodes)
        return [n.name for n in nodes if n.op is None and id(n) not in aux]

    def list_auxiliary_states(self) -> list[str]:
        """Return the names of the variables that operators write to, such as the moving averages of BatchNorm."""
        nodes = self._nodes()
        aux = auxiliary(nodes)
        return [n.name for n in nodes if id(n) in aux]

    def list_outputs(self) -> list[str]:
        """Return the names of the outputs: ``<name>_output``, or the operator's names for them."""
        return [node.output_names()[i] for node, i in self._outputs]

    def get_internals(self) -> "Symbol":
        """Return a group of every output of every node."""
        return type(self)([(n, i) for n in self._nodes() for i in range(n.num_outputs())])

    def get_children(self) -> "Symbol | None":
        """Return the direct inputs of the outputs, as a group; None for a variable."""
        nodes = list({id(n): n for n, _ in self._outputs}.values())
        entries = [e for n in nodes for e in n.inputs]
        return type(self)(entries) if entries else None

    @property
    def is_var(self) -> bool:
        """True for a variable."""
        return len(self._outputs) == 1 and self._outputs[0][0].op is None

    # -- annotations ---------------------------------------------------------------------------------------------------

    def _single_node(self) -> Node:
        nodes = {id(n): n for n, _ in self._outputs}
        if len(nodes) != 1:
            raise MXNetError(f"attributes belong to one node; this is a group of {len(nodes)}: select one with [...]")
        return next(iter(nodes.values()))

    def attr(self, key: str) -> str | None:
        """Return the value of an attribute or annotation, a string; None if there is none."""
        node = self._single_node()
        return node.name if key == "name" else _visible(node.attrs).get(key)

    def list_attr(self, recursive: bool = False) -> dict[str, str]:
        """Attributes and annotations of this node.

        Raises
        ------
        DeprecationWarning
            If `recursive`: `attr_dict` does that.
        """
        if recursive:
            raise DeprecationWarning("list_attr(recursive=True) is gone; call attr_dict()")
        return _visible(self._single_node().attrs) if len({id(n) for n, _ in self._outputs}) == 1 else {}

    def attr_dict(self) -> dict[str, dict[str, str]]:
        """Return the attributes and annotations of all nodes that have any, by node name."""
        return {n.name: _visible(n.attrs) for n in self._nodes() if n.attrs}

    def _set_attr(self, **kwargs: str) -> None:
        """Set annotations of this node, attributes of its operator, or its ``name``.

        Raises
        ------
        MXNetError
            If the operator has no such attribute, or it takes no such value.
        """
        for key, value in kwargs.items():
            if not isinstance(value, str):
                raise ValueError(f"attributes are strings, received {key}={value!r}")
            node = self._single_node()
            if key == "name":
                node.name = value
                continue
            stored = annotation(key, value, node.op and node.op.name)
            if node.op is not None and not is_annotation(stored) and node.op.attributes:
                node.op.parse({k: v for k, v in {**node.attrs, stored: value}.items() if k == stored or k in node.op.attributes})
            node.attrs[stored] = value
            node._parsed = None

    # -- composition ---------------------------------------------------------------------------------------------------

    def __call__(self, *args: Any, **kwargs: Any) -> "Symbol":
        """Return a copy of the graph with variables replaced: ``net(data=other)``."""
        out = self.__copy__()
        out._compose(*args, **kwargs)
        return out

    def _compose(self, *args: Any, **kwargs: Any) -> None:
        name = kwargs.pop("name", None)
        if args and kwargs:
            raise TypeError(f"Symbols by position or by name expected, received {len(args)} by position and {sorted(kwargs)} by name")
        for value in (*args, *kwargs.values()):
            if not isinstance(value, Symbol):
                raise TypeError(f"Compose expect `Symbol` as arguments, received {type(value).__name__}")
            if len(value._outputs) != 1:
                raise MXNetError(f"composition takes single outputs, received a group of {len(value._outputs)}")
        nodes = self._nodes()
        variables = {n.name: n for n in nodes if n.op is None}
        if self.is_var and len(args) == 1:
            self._outputs = list(args[0]._outputs)
            return
        if args:
            raise MXNetError(f"composition of a graph takes its inputs by name: net(data=x); received {len(args)} by position")
        for key in kwargs:
            if key not in variables:
                raise MXNetError(f"Symbol.ComposeKeyword argument name {key} not found. Candidate arguments: {', '.join(variables)}")
        replacement = {id(variables[k]): v._outputs[0] for k, v in kwargs.items()}
        for node in nodes:
            node.inputs = [replacement.get(id(n), (n, i)) for n, i in node.inputs]
        self._outputs = [replacement.get(id(n), (n, i)) for n, i in self._outputs]
        if name and len({id(n) for n, _ in self._outputs}) == 1 and not self._outputs[0][0].inputs:
            self._outputs[0][0].name = name

    def _gen_atomic_symbol(self) -> "Symbol":
        """Return the operator alone, with fresh variables for its inputs."""
        node = self._single_node()
        if node.op is None:
            raise MXNetError(f"an operator's Symbol expected, received the variable {node.name!r}")
        fresh = [(Node(None, f"{node.name}_{n}", {}), 0) for n in node.input_names()]
        copy = Node(node.op, node.name, dict(node.attrs), fresh, node.subgraphs)
        return type(self)([(copy, i) for i in range(copy.num_outputs())])

    # -- inference -----------------------------------------------------------------------------------------------------

    def infer_shape(self, *args: Any, **kwargs: Any) -> tuple[Any, Any, Any]:
        """Return the shapes of arguments, outputs and auxiliary states.

        Parameters
        ----------
        *args, **kwargs : tuple of int
            Shapes of arguments, by position or by name. A size of 0 is unknown.

        Returns
        -------
        three lists of tuples, or three times None where the shapes don't suffice.

        Raises
        ------
        MXNetError
            If shapes contradict each other.
        """
        result = self._infer_shape(False, args, kwargs)
        if result is None:
            import warnings
            warnings.warn(self._left_open(args, kwargs), stacklevel=2)
            return None, None, None
        return result

    def _left_open(self, args: tuple, kwargs: dict[str, Any]) -> str:
        """Return the error message for given shapes that do not suffice."""
        partial = self._infer_shape(True, args, kwargs)
        unknown = [f"{n}: {s}" for n, s in zip(self.list_arguments(), partial[0])
                   if s is None or (not util.is_np_shape() and (not s or 0 in s)) or (util.is_np_shape() and -1 in s)]
        return ("the shapes given leave those of other arguments open (0 stands for an unknown size); give some of these too:"
                f"\n\t{', '.join(unknown)}")

    def infer_shape_partial(self, *args: Any, **kwargs: Any) -> tuple[Any, Any, Any]:
        """Infer shapes as far as possible: like `infer_shape`, but unknown sizes are 0, unknown shapes ``()``."""
        return self._infer_shape(True, args, kwargs, probe=True)

    def _infer_shape(self, partial: bool, args: tuple, kwargs: dict[str, Any], probe: bool = False) -> Any:
        given = self._by_name(args, kwargs, "shapes")
        for name, shape in given.items():
            if not isinstance(shape, (tuple, list)):
                raise TypeError(f"infer_shape: a tuple expected as the shape of {name}, received {type(shape).__name__}")
        shapes, nodes = inference.infer_shapes(self._outputs, {k: inference.from_user(v) for k, v in given.items()}, probe_operators=probe)
        aux = auxiliary(nodes)
        variables = [n for n in nodes if n.op is None]
        groups = [[shapes[id(n), 0] for n in variables if id(n) not in aux], [shapes[id(n), i] for n, i in self._outputs],
                  [shapes[id(n), 0] for n in variables if id(n) in aux]]
        if not partial and not all(known(s) for g in groups for s in g):
            return None
        return tuple([inference.to_user(s) for s in g] for g in groups)

    def infer_type(self, *args: Any, **kwargs: Any) -> tuple[Any, Any, Any]:
        """Return the element types of arguments, outputs and auxiliary states; arguments and result as for `infer_shape`."""
        result = self._infer_type(args, kwargs)
        if any(t is None for g in result for t in g):
            return None, None, None
        return result

    def infer_type_partial(self, *args: Any, **kwargs: Any) -> tuple[Any, Any, Any]:
        """Infer types as far as possible: like `infer_type`, with None for unknown ones."""
        return self._infer_type(args, kwargs)

    def _infer_type(self, args: tuple, kwargs: dict[str, Any]) -> Any:
        given = self._by_name(args, kwargs, "types")
        types, nodes = inference.infer_types(self._outputs, {k: dtypes.to_torch(v) for k, v in given.items()})
        aux = auxiliary(nodes)
        variables = [n for n in nodes if n.op is None]
        groups = ([types[id(n), 0] for n in variables if id(n) not in aux], [types[id(n), i] for n, i in self._outputs],
                  [types[id(n), 0] for n in variables if id(n) in aux])
        return tuple([dtypes.to_numpy(t) if t is not None else None for t in g] for g in groups)

    def _by_name(self, args: tuple, kwargs: dict[str, Any], what: str) -> dict[str, Any]:
        if args and kwargs:
            raise ValueError(f"Can only specify known argument {what} either by positional or kwargs way, received {len(args)} by position and "
                             f"{sorted(kwargs)} by name")
        names = self.list_arguments()
        if args:
            if len(args) > len(names):
                raise MXNetError(f"{len(args)} {what} for {len(names)} arguments ({', '.join(names)})")
            return {n: a for n, a in zip(names, args) if a is not None}
        known_names = set(names) | set(self.list_auxiliary_states())
        for key in kwargs:
            if key not in known_names:
                raise MXNetError(f"argument name {key} not found; candidates: {', '.join(names)}{did_you_mean(key, names)}")
        return {k: v for k, v in kwargs.items() if v is not None}

    # -- files -----------------------------------------------------------------------------------------------------------

    def tojson(self, remove_amp_cast: bool = True) -> str:
        """Return the graph as JSON text, in the format of MXNet 1.9.1; casts inserted by AMP are omitted if `remove_amp_cast`."""
        outputs = self._outputs
        if remove_amp_cast and any(n.op is not None and n.op.amp == "cast" for n in self._nodes()):
            outputs = _without_amp_casts(copy_graph(outputs))
        return serialization.dump(outputs)

    def save(self, fname: str, remove_amp_cast: bool = True) -> None:
        """Write the JSON text to a file, whole or not at all."""
        if not isinstance(fname, str):
            raise TypeError(f"fname need to be string, received {type(fname).__name__}")
        files.write_bytes(fname, self.tojson(remove_amp_cast).encode())

    def debug_str(self) -> str:
        """Return a listing of the graph, for people."""
        nodes = self._nodes()
        aux = auxiliary(nodes)
        lines = ["Symbol Outputs:"] + [f"\toutput[{k}]={n.name}({i})" for k, (n, i) in enumerate(self._outputs)]
        for node in nodes:
            if node.op is None:
                lines.append(f"Variable:{node.name}")
                continue
            lines += ["-" * 20, f"Op:{node.op.name}, Name={node.name}", "Inputs:"]
            lines += [f"\targ[{k}]={n.name}({i})" + (f" version={int(id(n) in aux)}" if n.op is None else "")
                      for k, (n, i) in enumerate(node.inputs)]
            if node.attrs:
                lines += ["Attrs:"] + [f"\t{k}={v}" for k, v in sorted(node.attrs.items())]
        return "\n".join(lines) + "\n"

    def gradient(self, wrt: Any) -> NoReturn:
        """Not offered, as in MXNet 1.x: bind with ``args_grad`` and call ``backward``."""
        raise MXNetError("Symbol.gradient: a graph's gradient is not available as a Symbol; bind with args_grad and call backward()")

    def as_nd_ndarray(self) -> "Symbol":
        """This Symbol for ``mx.sym`` functions."""
        return self




def _visible(attrs: Mapping[str, str]) -> dict[str, str]:
    """Return attributes in their public form: ``__lr_mult__`` also as ``lr_mult``."""
    out = dict(attrs)
    for key in HIDDEN_KEYS:
        if f"__{key}__" in attrs:
            out[key] = attrs[f"__{key}__"]
    return out


def _without_amp_casts(outputs: list[Entry]) -> list[Entry]:
    def source(node: Node, index: int) -> Entry:
        while node.op is not None and node.op.amp == "cast":
            node, index = node.inputs[index]
        return node, index

    for node in topological(outputs):
        node.inputs = [source(n, i) for n, i in node.inputs]
    return [source(n, i) for n, i in outputs]


def _needs_values(name: str) -> Callable:
    def method(self: Any, *args: Any, **kwargs: Any) -> NoReturn:
        raise NotImplementedForSymbol(name, None, *args)

    method.__name__ = name
    method.__doc__ = "Needs values, which a Symbol does not have; raises `NotImplementedForSymbol`."
    return method


for _name in ("wait_to_read", "asnumpy", "asscalar", "copy", "as_in_context", "detach", "backward", "copyto", "attach_grad", "to_dlpack_for_read",
              "to_dlpack_for_write", "tostype"):
    if not hasattr(Symbol, _name):
        setattr(Symbol, _name, _needs_values(_name))
