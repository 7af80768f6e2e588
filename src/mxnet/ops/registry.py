"""The operator registry: one decorated function is one operator.

The function takes and returns torch tensors. Its positional parameters are the inputs (``=None`` for an optional one,
``*data`` for any number), its keyword-only parameters the attributes; see `schema` for what their annotations mean::

    @op("clip")
    def clip(data, *, a_min: float, a_max: float):
        return torch.clamp(data, a_min, a_max)

Further properties of an operator are registered below the function: ``@clip.gradient``, ``@clip.shape_rule``, ...
"""
import functools
import importlib
import inspect
import types
import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal, NamedTuple, Optional

import numpy as np
import torch

from ..base import MXNetError
from ..suggestions import did_you_mean, shortened
from . import dtypes, schema
from .integers import RecordedIntegers, differentiated
from .schema import MAX_COUNT, AtLeast0, Attribute, Device, Training
from .shapes import unify
from .traits import Attributes, Traits

OPERATORS: dict[str, "Operator"] = {}  # every name and alias -> Operator

# Families that are imported on demand, by the prefix of their names: not every program needs them.
ON_DEMAND = {"_np": "mxnet.ops.numpy", "_contrib_onnx": "mxnet.contrib.onnx.onnx2mx.running"}


MAX_BOUND = 1024  # sets of attributes that `Operator.bound` remembers: then it begins anew
MAX_OUTPUTS = 4 * MAX_COUNT  # the sampling of graphs returns up to four arrays for each that it gets


class UnknownOperatorError(MXNetError):
    """A file or program names an operator that is not registered.

    Check the spelling against ``mx.operator.get_all_registered_operators()``. An operator of a custom library must be
    loaded (``mx.library.load``) or registered (``mx.operator.register``) before the graph that uses it.
    """


class Operator(Traits):
    """An operator: the function, the information from its signature, and its `Traits`.

    Attributes
    ----------
    name : str
        The name in JSON files.
    fn : callable
        The function over torch tensors, with MXNet's gradient where one is registered.
    inputs : tuple of str
        The names of the inputs; of the one variadic parameter if `variadic`.
    attributes : dict of str to Attribute
        In the order of the signature.
    mutates : tuple of str
        Inputs that a call writes to. A Symbol lists them as auxiliary states, unless `updates` is set.
    """

    quantized: "Operator | None" = None  # the operator on quantized arrays that stands for this one, see `quantization.form`
    quantization: "Callable | None" = None  # the plan for a use of it in a network that is quantized, see `quantization.plan`
    computes_quantized = False  # True for such an operator
    calibrates: "tuple[Literal['input', 'output'], int] | None" = None  # the input or output whose calibrated range it takes
    raw: Callable
    fn: Callable
    own_gradient: Callable | None = None  # as `gradient` has registered it
    view: Callable | None = None  # the function whose result shares the memory of the first input, where there is one
    inputs: tuple[str, ...]
    optional_inputs: frozenset[str]
    mutates: tuple[str, ...]
    renamed: dict[str, str] = {}  # attribute names in old files
    graph_argument: str | None = None  # the argument that is the graph of a use, as JSON
    may_hold_graph = False  # True if its nodes in files may hold a graph, which adds nothing to their attributes
    names_inputs = False  # True where the inputs of a variadic operator have names of their own (`Custom`)
    partial_shapes = True  # False if the shape rule is a program's own, which may index the shape of every input (`Custom`)

    def __init__(self, name: str, fn: Callable, *, aliases: Sequence[str] = (), num_outputs: Any = 1, output_names: Any = None,
                 inputs_rule: Any = None, mutates: Sequence[str] = (), mutates_rule: Any = None, loss: bool = False, no_gradient: bool = False,
                 same_shape: bool = False, key_var_num_args: Any = None, frontend: bool = True, initial: Any = None, shares_memory: bool = False,
                 **traits: Any):
        self.name, self.fn, self.raw, self.aliases = name, fn, fn, tuple(aliases)
        if shares_memory:
            self.view, self.fn = fn, functools.update_wrapper(_copying(fn), fn)
            self.raw = self.fn
        self.__doc__, self.__name__ = fn.__doc__, fn.__name__
        self.num_outputs, self.output_names, self.inputs_rule = num_outputs, output_names, inputs_rule
        self.mutates, self.mutates_rule, self.loss, self.no_gradient = tuple(mutates), mutates_rule, loss, no_gradient
        self.same_shape = same_shape
        self.shape_inference: Callable | None = _same_shape if same_shape else None
        self.dtype_inference: Any = None
        self.sized: Any = None
        self.gradient_storage: Any = None
        self.initial = initial or {}
        self.key_var_num_args: Any = key_var_num_args
        self.frontend = frontend
        self.wants_training = self.wants_device = None
        self.inputs, self.optional_inputs, self.variadic = (), frozenset(), False
        self._declared: dict[str, Any] = {}  # the parameters that are attributes
        self._required: list[str] = []
        self._read_signature(fn)
        self.num_inputs = -1 if self.variadic else len(self.inputs)
        self.simple = (num_outputs == 1 and not self._declared and not self.variadic and not self.wants_training
                       and not self.optional_inputs)
        self.mutated_indices = tuple(self.inputs.index(m) for m in self.mutates)
        self._bound: dict[Any, Any] = {}  # see `bound`
        self._num_bound = 0
        self._seen: set[tuple[tuple[str, Any], ...]] = set()  # attributes of earlier calls
        self.set_traits(name, {"complete_rule": "shape", **traits} if same_shape else traits)

    def _read_signature(self, fn: Callable) -> None:
        inputs, optional = [], []
        for p in _parameters(fn):
            if p.kind is _P.KEYWORD_ONLY:
                if p.annotation is Training:
                    self.wants_training = p.name
                elif p.annotation is Device:
                    self.wants_device = p.name
                elif p.annotation is _P.empty:
                    raise TypeError(f"operator {self.name}{inspect.signature(fn)}: attribute `{p.name}` needs an annotation")
                else:
                    self._declared[p.name] = p
                    if p.default is _P.empty:
                        self._required.append(p.name)
            elif p.kind is _P.VAR_POSITIONAL:
                self.variadic = True
                inputs.append(p.name)
            elif p.kind is _P.VAR_KEYWORD:
                raise TypeError(f"operator {self.name}{inspect.signature(fn)}: `**{p.name}` says nothing about its attributes")
            else:
                inputs.append(p.name)
                if p.default is None:
                    optional.append(p.name)
        self.inputs, self.optional_inputs = tuple(inputs), frozenset(optional)
        if self.variadic and self.key_var_num_args is None and "num_args" in self._declared:
            self.key_var_num_args = "num_args"

    @functools.cached_property
    def attributes(self) -> dict[str, Attribute]:
        """The attributes by name, made at the first use: a program uses few of the operators that an import defines."""
        return {name: Attribute(self.name, name, p.annotation, None if p.default is _P.empty else p.default, p.default is _P.empty)
                for name, p in self._declared.items()}

    def __repr__(self) -> str:
        return f"<operator {self.name}>"

    def __call__(self, *tensors: Any, **attributes: Any) -> Any:
        return self.fn(*tensors, **attributes)

    @property
    def in_graph(self) -> Callable:
        """The function that a lowered graph calls: the view where there is one, since only outputs of graphs need memory of their own."""
        return self.view or self.fn

    def parse(self, given: dict[str, Any], partial: bool = False) -> Attributes:
        """Checked attributes, by name, out of raw ones (values or strings).

        Attributes that were not given are left to the function's defaults.

        Raises
        ------
        MXNetError
            If an attribute is unknown, missing or not of its type.
        """
        attributes = self.attributes
        parsed = {}
        for name, value in given.items():
            attribute = attributes.get(name)
            if attribute is None:
                if name == self.key_var_num_args or (name == "ctx" and self.wants_device) or name in _IGNORED:
                    continue
                if name.startswith(_OF_CUDNN) and "cudnn_tune" in attributes:
                    if str(value) not in _NO_WISH:
                        warnings.warn(f"{self.name}: no effect of {name}={value!r}{did_you_mean(name, attributes)}", stacklevel=4)
                    continue
                if not attributes and not self.variadic:
                    # MXNet ignores attributes passed to an operator that has none, and programs rely on it (its own CosineEmbeddingLoss).
                    warnings.warn(f"{self.name} has no attributes: `{name}` is ignored", stacklevel=4)
                    continue
                raise MXNetError(self._unknown_argument(name))
            try:
                parsed[name] = attribute.parse(value)
            except (ValueError, TypeError, OverflowError):
                choices = dtypes.NAME_TO_TORCH if attribute.kind is schema.DType else attribute.choices or ()
                raise MXNetError(f"{self.name}: `{name}` must be {attribute.expected}{' or None' if attribute.optional else ''}, "
                                 f"received {shortened(value)}{did_you_mean(value, choices)}") from None
        if not partial:
            for name in self._required:
                if name not in parsed:
                    raise MXNetError(f"{self.name}: required argument `{name}` ({attributes[name].expected}) was not given")
        return parsed

    def _unknown_argument(self, name: str) -> str:
        known = [*(() if self.variadic else self.inputs), *self.attributes]
        inputs = "any number of inputs" if self.variadic else f"inputs {', '.join(self.inputs) or 'none'}"
        lines = "".join(f"\n    {a.description()}" for a in self.attributes.values())
        return (f"{self.name}: cannot find argument '{name}'{did_you_mean(name, known)}\n"
                f"Possible arguments: {inputs}; attributes:{lines or ' none'}")

    def bound(self, given: dict[str, Any]) -> Any:
        """Return the raw function with these attributes as its defaults, whose calls take tensors only; its `keywords` are those parsed.

        It is made at the second call with the same attributes, and stored in a tree, below each attribute's name, type and value: 1, 1.0 and True
        are equal. In other calls the attributes are parsed.
        """
        node = self._bound
        try:
            for name in given:
                node = node[name][type(value := given[name])][value]
            return node[None]
        except (KeyError, TypeError, NotImplementedError):  # the last by arrays of mx.np, which have no hash
            pass
        parsed = self.parse(given)
        if not self._is_repeated(given):
            return functools.partial(self.raw, **parsed)
        if self._num_bound >= MAX_BOUND:
            self._bound, self._num_bound = {}, 0
        self._num_bound += 1
        node = self._bound
        for name, value in given.items():
            node = node.setdefault(name, {}).setdefault(type(value), {}).setdefault(value, {})
        function: Any = _with_attributes(self.raw, parsed) if self.view is None else _copying(_with_attributes(self.view, parsed))
        function.keywords = parsed
        node[None] = function
        return function

    def _is_repeated(self, given: dict[str, Any]) -> bool:
        """True if these attributes may be stored, and an earlier call had the same: a program with new ones in each call stores nothing.

        Those may be stored that cannot change, and for which all equal ones of the same types are parsed to the same.
        """
        for name, value in given.items():
            kind = type(value)
            if kind in _KEYS or kind is float and value and value == value:  # 0.0 == -0.0 and nan != nan: no keys
                continue
            if kind is tuple:
                attribute = self.attributes.get(name)
                if attribute is None or attribute.kind not in _TUPLES:
                    return False
                for v in value:
                    if type(v) is not int and v is not None:
                        return False
            elif not isinstance(value, (np.dtype, np.integer)):
                return False
        items = tuple(given.items())
        if items in self._seen:
            return True
        if len(self._seen) >= MAX_BOUND:
            self._seen.clear()
        self._seen.add(items)
        return False

    def parse_cached(self, given: dict[str, Any]) -> Attributes:
        """`parse` for the call path: the same attributes are parsed once."""
        return self.bound(given).keywords

    def with_defaults(self, parsed: Attributes) -> Attributes:
        """All attributes: those parsed, and the defaults of the others."""
        return {n: parsed.get(n, a.default) for n, a in self.attributes.items()}

    def input_names(self, parsed: Attributes, count: Optional[int] = None) -> tuple[str, ...]:
        """The names of the inputs that this use of the operator has.

        `count` is the number of given inputs of a variadic operator.
        """
        if self.inputs_rule is not None:
            return tuple(self.inputs_rule(self.with_defaults(parsed)))
        if self.variadic:
            fixed = self.inputs[:-1]
            return fixed + tuple(f"arg{i}" for i in range((count or 0) - len(fixed)))
        return tuple(n for n in self.inputs if n not in self.optional_inputs)

    def count(self, value: Any) -> int:
        """Return the number of inputs from the value of the attribute that counts them.

        Raises
        ------
        MXNetError
            If `value` is no number, or one that no program has inputs for.
        """
        try:
            return _COUNT.parse(value)
        except (ValueError, TypeError, OverflowError):
            raise MXNetError(f"{self.name}: `{self.key_var_num_args}` must be {_COUNT.expected}, received {value!r:.80}") from None

    def mutated_inputs(self, parsed: Attributes) -> tuple[str, ...]:
        """The names of the inputs that a use with these attributes writes to."""
        return self.mutates if self.mutates_rule is None else tuple(self.mutates_rule(self.with_defaults(parsed)))

    def writes(self, training: bool) -> bool:
        """True if a call writes to its inputs. Quantized operators only read their states."""
        return bool(self.mutates) and not self.computes_quantized and (training or not self.wants_training)

    def is_quantized(self, parsed: Attributes) -> bool:
        """True for a use that computes with quantized arrays."""
        return self.computes_quantized or bool(parsed.get("quantized"))

    def is_loss(self, parsed: Attributes) -> bool:
        """True for a use as an output layer, whose gradient ignores the incoming one."""
        return self.loss

    def outputs(self, parsed: Attributes) -> int:
        """Return the number of outputs of a use with these attributes.

        Raises
        ------
        MXNetError
            If these are more than `MAX_OUTPUTS`.
        """
        if not callable(self.num_outputs):
            return self.num_outputs
        count = self.num_outputs(self.with_defaults(parsed))
        if count > MAX_OUTPUTS:
            raise MXNetError(f"{self.name}: {count} outputs asked for, at most {MAX_OUTPUTS} are possible")
        return count

    def list_output_names(self, parsed: Attributes) -> tuple[str, ...]:
        """The suffixes of the outputs' names: ``output``, or ``output0``, ``output1``, ..., or the operator's own names."""
        n = self.outputs(parsed)
        if self.output_names is not None:
            names = self.output_names(self.with_defaults(parsed)) if callable(self.output_names) else self.output_names
            return tuple(names)[:n]
        return ("output",) if n == 1 else tuple(f"output{i}" for i in range(n))

    # -- registrations below the function --------------------------------------------------------------------------

    def gradient(self, backward: Callable, of_integers: bool = True) -> Callable:
        """Give the operator MXNet's own gradient instead of the derivative of its function; 0 for integers unless `of_integers`.

        ``backward(out_grads, inputs, outputs, **attributes)`` returns one gradient (or None) for each input; all are tuples of
        tensors. It runs under torch's autograd, so a gradient made of differentiable operations can be differentiated again.
        """
        self.fn, self.own_gradient = _with_gradient(self, backward, of_integers), backward
        return backward

    def shape_rule(self, rule: Callable) -> Callable:
        """Register shape inference that works from partial knowledge, in both directions.

        ``rule(in_shapes, out_shapes, **attributes)`` gets lists of shapes: None where nothing is known, otherwise a tuple with
        -1 for each unknown size. It returns both lists, with what it could add. Without a rule the outputs' shapes come from
        running the function on meta tensors, once all inputs are known.
        """
        self.shape_inference = rule
        return rule

    def dtype_rule(self, rule: Callable) -> Callable:
        """Register type inference: ``rule(in_types, out_types, **attributes)`` over torch types, None where unknown.

        Without a rule all unknown inputs and the outputs have the type of the first known input, or `dtype` where the operator
        has such an attribute.
        """
        self.dtype_inference = rule
        return rule

    def sizing(self, rule: Callable) -> Callable:
        """Register a rule that sizes an operator without inputs: ``rule(shape, attributes)`` returns attributes for the shape that its users need."""
        self.sized = rule
        return rule

    def gradient_storage_rule(self, rule: Callable) -> Callable:
        """Register the storage types of the inputs' gradients: ``rule(position, in_stypes, attributes)``.

        It returns ``'row_sparse'`` where only some rows of the input are needed, ``'default'`` where the gradient is dense whatever the input
        is, and None where it is stored as its input. Without a rule it is always so.
        """
        self.gradient_storage = rule
        return rule


_COUNT = Attribute("any", "num_args", AtLeast0, None, True)
# Attributes that MXNet 1.x accepts on operators of these kinds, and that have no effect here.
_OF_CUDNN, _NO_WISH = ("cudnn_algo_", "cudnn_tensor_core"), ("-1", "0", "None", "False")  # the algorithm in NVIDIA's own builds
_IGNORED = frozenset({"cudnn_tune", "cudnn_off", "workspace", "__profiler_scope__"})


_KEYS = frozenset({int, bool, str, type(None), type, torch.dtype})  # types of values that neither change nor equal others of their type
_TUPLES = (schema.Shape, schema.Ends, schema.Axes)  # kinds of attributes for which equal tuples mean the same, whatever their items' types


def _with_attributes(fn: Callable, attributes: Attributes) -> Callable:
    """Return `fn` with these defaults of its keyword-only parameters: a call with defaults is faster than one with ``**attributes``."""
    code = fn.__code__ if type(fn) is types.FunctionType else None
    if code is None or not attributes.keys() <= set(code.co_varnames[code.co_argcount:code.co_argcount + code.co_kwonlyargcount]):
        return lambda *tensors: fn(*tensors, **attributes)  # a callable object, or a decorated function
    function = types.FunctionType(code, fn.__globals__, fn.__name__, fn.__defaults__, fn.__closure__)
    function.__kwdefaults__ = {**(fn.__kwdefaults__ or {}), **attributes}
    return function


class _Parameter(NamedTuple):
    """A parameter of a signature, made in a tenth of the time of `inspect.Parameter`: hundreds of signatures are read at import."""

    name: str
    kind: Any
    default: Any
    annotation: Any


_P = inspect.Parameter


def _parameters(fn: Callable) -> Iterable:
    """The parameters of a function, in order."""
    if type(fn) is not types.FunctionType or hasattr(fn, "__wrapped__") or hasattr(fn, "__signature__"):
        return inspect.signature(fn).parameters.values()
    code, annotations, defaults = fn.__code__, fn.__annotations__, fn.__defaults__ or ()
    names, first, last = code.co_varnames, code.co_argcount, code.co_argcount + code.co_kwonlyargcount
    given = [_P.empty] * (first - len(defaults)) + list(defaults)
    parameters = [_Parameter(n, _P.POSITIONAL_OR_KEYWORD, d, annotations.get(n, _P.empty)) for n, d in zip(names[:first], given)]
    if code.co_flags & inspect.CO_VARARGS:
        parameters.append(_Parameter(names[last], _P.VAR_POSITIONAL, _P.empty, annotations.get(names[last], _P.empty)))
        last += 1
    by_name = fn.__kwdefaults__ or {}
    parameters += [_Parameter(n, _P.KEYWORD_ONLY, by_name.get(n, _P.empty), annotations.get(n, _P.empty))
                   for n in names[first:first + code.co_kwonlyargcount]]
    if code.co_flags & inspect.CO_VARKEYWORDS:
        parameters.append(_Parameter(names[last], _P.VAR_KEYWORD, _P.empty, annotations.get(names[last], _P.empty)))
    return parameters


def _same_shape(in_shapes, out_shapes, **_):
    shape = None
    for s in (*in_shapes, *out_shapes):
        shape = unify(shape, s)
    return [shape] * len(in_shapes), [shape] * len(out_shapes)


def _copying(view: Callable) -> Callable:
    """The function with a result that never shares the memory of its first input."""
    def copying(data: torch.Tensor, *others: torch.Tensor, **attributes: Any) -> torch.Tensor:
        result = view(data, *others, **attributes)
        return result.clone(memory_format=torch.contiguous_format) if result.data_ptr() == data.data_ptr() else result

    return copying


def _with_gradient(operator: Operator, backward: Callable, of_integers: bool) -> Callable:
    raw = operator.raw
    mutated = {operator.inputs.index(m) for m in operator.mutates}

    class Gradient(torch.autograd.Function):  # its call costs as much as a small operator, so it loops over as little as possible
        @staticmethod
        def forward(ctx, attributes, *tensors):
            outputs = raw(*tensors, **attributes)
            single = isinstance(outputs, torch.Tensor)
            outputs = (outputs,) if single else tuple(outputs)
            all_inputs = []
            for i, output in enumerate(outputs):
                for tensor in tensors:
                    if output is tensor:  # in-place identity: it must be another tensor for torch to record it
                        outputs = (*outputs[:i], output.view_as(output), *outputs[i + 1:])
                if not output.is_floating_point():
                    all_inputs.append(outputs[i])
            if all_inputs:
                ctx.mark_non_differentiable(*all_inputs)
            ctx.attributes, ctx.num_inputs = attributes, len(tensors)
            if mutated:
                ctx.unsaved = {i: tensors[i] for i in mutated if i < len(tensors)}
                tensors = tuple(None if i in mutated else t for i, t in enumerate(tensors))
            ctx.save_for_backward(*tensors, *outputs)
            return outputs[0] if single else outputs

        @staticmethod
        def backward(ctx, *out_grads):
            saved, count = ctx.saved_tensors, ctx.num_inputs
            inputs = saved[:count]
            if mutated:
                inputs = tuple(ctx.unsaved.get(i, t) for i, t in enumerate(inputs))
            grads = backward(out_grads, inputs, saved[count:], **ctx.attributes)
            grads = grads if isinstance(grads, tuple) else (grads,)
            needed = ctx.needs_input_grad
            gradients = [None, *grads, *[None] * (count - len(grads))]
            for i, gradient in enumerate(gradients):
                if gradient is None and needed[i]:  # an array with a gradient to be written gets zeros, as in MXNet, if the operator has none
                    gradients[i] = torch.zeros_like(inputs[i - 1])
            return tuple(gradients)

    def function(*tensors, **attributes):
        if torch.is_grad_enabled():
            for t in tensors:
                if t is not None and t.requires_grad:
                    if type(t) is RecordedIntegers:
                        return differentiated(Gradient.apply if of_integers else None, raw, attributes, tensors)
                    return Gradient.apply(attributes, *tensors)
        return raw(*tensors, **attributes)

    function.__name__ = function.__qualname__ = raw.__name__
    function.__module__, function.__doc__ = raw.__module__, raw.__doc__
    function.__wrapped__ = raw  # type: ignore[attr-defined]
    return function


def op(name: str, **options: Any) -> Callable[[Callable], Operator]:
    """Register the decorated function as the operator `name`. See `Operator` for the options.

    ``aliases``
        Further names.
    ``num_outputs``, ``output_names``
        A number and suffixes, or functions of the attributes that return these.
    ``inputs_rule``
        A function of the attributes that returns the names of the inputs in use, where that varies (``no_bias``).
    ``mutates``
        The inputs a call writes to.
    ``mutates_rule``
        A function of the attributes that returns the names of these, where a variadic operator writes to some of its inputs.
    ``loss``
        True for an output layer: its gradient ignores the incoming one.
    ``initial``
        Initializers of variables made for missing inputs: input -> [initializer, its arguments].
    ``shares_memory``
        True if the function may return a view of its first input. Graphs call it as it is (`Operator.in_graph`); all others get a copy, as in MXNet.
    ``no_gradient``
        True where MXNet registers no gradient: binding or recording for one raises.
    ``same_shape``
        True if all inputs and outputs have one shape, which is all that there is to say about shapes unless `complete_rule` says otherwise.

    All others are `Traits`: ``stochastic``, ``layout_agnostic``, ``amp``, ...
    """
    def register(fn: Callable) -> Operator:
        operator = Operator(name, fn, **options)
        for n in (name, *operator.aliases):
            if n in OPERATORS:
                raise ValueError(f"operator name {n!r} is registered twice: by {OPERATORS[n].raw.__module__} and {fn.__module__}")
            OPERATORS[n] = operator
        return operator
    return register


def alias(name: str, of: str) -> Operator:
    """Register a further name of a registered operator.

    Raises
    ------
    ValueError
        If the name is taken.
    """
    operator = OPERATORS[of]
    if OPERATORS.setdefault(name, operator) is not operator:
        raise ValueError(f"operator name {name!r} is registered twice: by {OPERATORS[name].raw.__module__} and for {of}")
    return operator


def exists(name: str) -> bool:
    """Return whether an operator of that name is registered; a family that is loaded on demand is imported for it."""
    if name in OPERATORS:
        return True
    for beginning, family in ON_DEMAND.items():
        if name.startswith(beginning):
            importlib.import_module(family)
    return name in OPERATORS


def get(name: str) -> Operator:
    """The operator of that name or alias.

    Raises
    ------
    UnknownOperatorError
        If none is registered.
    """
    try:
        return OPERATORS[name]
    except KeyError:
        if exists(name):
            return OPERATORS[name]
        raise UnknownOperatorError(f"operator '{name}' is not registered{did_you_mean(name, OPERATORS)}") from None
