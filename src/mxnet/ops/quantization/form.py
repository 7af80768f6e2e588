"""An operator on quantized arrays, derived from the corresponding operator on real numbers."""
import functools
import inspect
from collections.abc import Callable
from typing import Annotated, Any, Optional, Union, get_args

import torch

from ...base import MXNetError
from ..registry import Operator, op
from ..schema import Device, Training
from .arithmetic import EIGHT_BITS, Quantized, check_types, ranged
from .plan import Plan

Int8 = Annotated[Quantized, (torch.int8,)]
Uint8 = Annotated[Quantized, (torch.uint8,)]
EightBits = Annotated[Quantized, EIGHT_BITS]

SHIFTED = ("{}_scale", "{}_shift")  # the `ends` of what `quantize_asym` makes
ResultType = Union[torch.dtype, Callable[[list, dict], torch.dtype]]


def type_of_first(types: list, attributes: dict) -> torch.dtype:
    """The result's type where it is that of the first input."""
    return types[0]


def quantized_form(of: Operator, name: str, *, ends: tuple[str, str] = ("min_{}", "max_{}"), result: ResultType = type_of_first,
                   real: Optional[Callable[[dict], bool]] = None, when: Callable[[dict], bool] = lambda attributes: True, must: bool = False,
                   calibrated: bool = False, adds: Optional[dict[str, str]] = None, **options: Any) -> Callable[[Callable], Operator]:
    """Register the decorated function as the operator `name`, the form of the operator `of` on quantized arrays.

    The function's positional parameters are inputs of `of`, by their names. One that is annotated with `Int8`, `Uint8` or `EightBits` comes
    as `Quantized`; the ends of its range are further inputs behind all arrays. Its keyword-only parameters are attributes: those of `of`, with
    their defaults there, and with an annotation also ones that only the quantized form has. It returns `Quantized`, which makes three outputs.
    All attributes of `of`, which inputs are in use, the states and the shapes are taken from there::

        @quantized_form(activation, "_contrib_quantized_act")
        def quantized_act(data: EightBits, *, act_type):
            return data.with_values(data.values.clamp(min=0))

    Parameters
    ----------
    ends : tuple of str
        Format strings for the names of the two ends of an input's range.
    result : torch.dtype or callable
        The type of the first output, or ``result(types of the arrays, attributes)``.
    real : callable, optional
        ``real(attributes)`` is true where the outputs are real numbers, and as many as those of `of`. Never so by default.
    when : callable, optional
        ``when(attributes)`` is true for the uses of `of` that this form replaces when a network is quantized. By default all.
    must : bool
        See `Plan.must`.
    calibrated : bool
        It cannot do without the calibrated range of its result.
    adds : dict of str to str, optional
        Attributes that files have and nothing here reads.
    **options
        Of `op`, in place of those that follow from `of`.

    Raises
    ------
    TypeError
        If `of` has no such input, or has no such attribute and the parameter no annotation.
    """
    def register(function: Callable) -> Operator:
        form = _Form(of, name, ends, function, real)
        derived = {"num_outputs": 3 if real is None else form.outputs, "output_names": ("output", "min_output", "max_output"),
                   "inputs_rule": form.input_names, "mutates": of.mutates, "no_gradient": True}
        operator = op(name, **{**derived, **options})(form.callable())
        operator.key_var_num_args = None  # where there is a count it counts the arrays, a third of the inputs
        operator.shape_rule(form.shapes)
        operator.dtype_rule(functools.partial(form.types, result))
        operator.computes_quantized = True
        if calibrated:
            operator.calibrates = "output", 0
        of.quantized, of.quantization = operator, functools.partial(form.plan, operator, result, when, must, adds or {})
        return operator
    return register


class _Form:
    """The quantized form of an operator, derived from the signatures of the two functions."""

    def __init__(self, of: Operator, name: str, ends: tuple[str, str], function: Callable, real: Optional[Callable[[dict], bool]]) -> None:
        self.of, self.name, self.ends, self.function, self.real = of, name, ends, function, real
        parameters = inspect.signature(function).parameters.values()
        arrays = [p for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.VAR_POSITIONAL)]
        unknown = [p.name for p in arrays if p.name not in of.inputs]
        given = [p for p in parameters if p.kind is p.KEYWORD_ONLY]
        unknown += [p.name for p in given if p.name not in of.attributes and p.annotation is p.empty]
        if unknown:
            raise TypeError(f"operator {name}{inspect.signature(function)}: {of} has no {', '.join(unknown)}; inputs and attributes are "
                            "called as there, and further attributes need an annotation")
        self.allowed = {p.name: next(iter(get_args(p.annotation)[1:]), None) for p in arrays}
        self.optional = [p.name for p in arrays if p.default is None]
        self.signature = inspect.Signature([*self._inputs(), *self._attributes(given)])
        self.defaults = {p.name: p.default for p in self.signature.parameters.values() if p.kind is p.KEYWORD_ONLY and p.default is not p.empty}

    def _inputs(self) -> list[inspect.Parameter]:
        if self.of.variadic:
            return [inspect.Parameter(next(iter(self.allowed)), inspect.Parameter.VAR_POSITIONAL)]
        ranged = [n for n, types in self.allowed.items() if types]
        names = [*self.allowed, *(end.format(n) for n in ranged for end in self.ends)]
        first = next((i for i, n in enumerate(names) if n in self.optional), len(names))
        return [inspect.Parameter(n, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=inspect.Parameter.empty if i < first else None)
                for i, n in enumerate(names)]

    def _attributes(self, given: list[inspect.Parameter]) -> list[inspect.Parameter]:
        counts = [inspect.Parameter("num_args", inspect.Parameter.KEYWORD_ONLY, annotation=int)] if self.of.variadic else []
        theirs = [p for p in inspect.signature(self.of.raw).parameters.values()
                  if p.kind is p.KEYWORD_ONLY and p.annotation not in (Training, Device)]
        return [*counts, *theirs, *(p for p in given if p.name not in self.of.attributes)]

    def arrays(self, attributes: dict) -> dict[str, Any]:
        """The arrays in use, with the types that they may have (None for one that is not quantized)."""
        if self.of.variadic:
            types, = self.allowed.values()
            return {f"arg{i}": types for i in range(attributes["num_args"])}
        if not self.optional or self.of.inputs_rule is None:
            return self.allowed
        used = self.of.inputs_rule(attributes)
        return {n: types for n, types in self.allowed.items() if n in used or n not in self.optional}

    def input_names(self, attributes: dict) -> tuple[str, ...]:
        """The names of the inputs in use: the arrays, and the ends of the ranges of those that are quantized."""
        arrays = self.arrays(attributes)
        return (*arrays, *(end.format(n) for n, types in arrays.items() if types for end in self.ends))

    def _is_real(self, attributes: dict) -> bool:
        return self.real is not None and self.real(attributes)

    def outputs(self, attributes: dict) -> int:
        """The number of outputs: the result and its range, or as many real ones as the other operator has."""
        return self.of.outputs(attributes) if self._is_real(attributes) else 3

    def callable(self) -> Callable:
        """The function of the operator, over tensors."""
        function, defaults = self.function, self.defaults
        fixed = None if self.of.variadic or self.optional else self.arrays({}).items()

        @functools.wraps(function)
        def form(*given, **attributes):
            attributes = {**defaults, **attributes}
            arrays = self.arrays(attributes).items() if fixed is None else fixed
            tensors = [t for t in given if t is not None]  # unused inputs may be None
            inputs, count, at = [], len(tensors), len(arrays)
            for (name, types), tensor in zip(arrays, tensors):
                if types is not None:
                    if at + 2 > count:
                        break
                    if tensor.dtype not in types:
                        check_types(self.name, types, **{name: tensor})
                    tensor = Quantized(tensor, tensors[at], tensors[at + 1])
                    at += 2
                inputs.append(tensor)
            if at != count or len(inputs) != len(arrays):
                names = self.input_names(attributes)
                raise MXNetError(f"{self.name} expects {len(names)} inputs ({', '.join(names)}), received {count}")
            for (name, _), given_array in zip(arrays, inputs):
                if type(given_array) is Quantized:
                    ranged(self.name, name, *given_array)
            result = function(*inputs, **attributes)
            return tuple(result) if type(result) is Quantized else result

        form.__signature__ = self.signature  # type: ignore[attr-defined]
        return form

    def shapes(self, in_shapes: list, out_shapes: list, **attributes: Any) -> tuple[list, list]:
        """The shape rule of the operator on real numbers, and one element for each end of a range."""
        n = len(self.arrays(attributes))
        ins, outs, ranges = list(in_shapes[:n]), list(out_shapes), [(1,)] * (len(in_shapes) - n)
        results = outs if self._is_real(attributes) else outs[:1]
        if self.of.shape_inference is not None:
            ins, results = self.of.shape_inference(ins, results, **{name: attributes[name] for name in self.of.attributes})
        return [*ins, *ranges], [*results, *[(1,)] * (len(outs) - len(results))]

    def plan(self, operator: Operator, result: ResultType, when: Callable, must: bool, adds: dict, attributes: dict,
             channel_wise: bool) -> Optional[Plan]:
        """Return the plan for a use of the operator on real numbers, or None; see `plan_of`."""
        if not when(attributes):
            return None
        arrays = self.arrays({"num_args": 0, **self.defaults, **attributes})
        real = frozenset(i for i, types in enumerate(arrays.values()) if types is None)
        shifted = frozenset(range(len(arrays))) - real if self.ends == SHIFTED else frozenset()
        first = result if isinstance(result, torch.dtype) else result([torch.int8] * max(len(arrays), 1), {**self.defaults, **attributes})
        return Plan(operator, adds, must, real, shifted, first == torch.int32, self._is_real({**self.defaults, **attributes}))

    def types(self, result: ResultType, in_types: list, out_types: list, **attributes: Any) -> tuple[list, list]:
        """Infer types: an array with a single allowed type has that type, and ranges are float32."""
        known = [torch.float32 if types is None else types[0] if len(types) == 1 else None for types in self.arrays(attributes).values()]
        ins = [t or k for t, k in zip(in_types, [*known, *[torch.float32] * (len(in_types) - len(known))])]
        first = result if isinstance(result, torch.dtype) else result(ins[:len(known)], attributes)
        return ins, [first, *[torch.float32] * (len(out_types) - 1)]
