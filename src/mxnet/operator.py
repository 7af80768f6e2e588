"""Operators that programs define in Python: `CustomOp` and `CustomOpProp`, used as ``mx.nd.Custom`` and ``mx.sym.Custom``."""
import collections
import functools
import inspect
import itertools
import time
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from . import autograd, interrupts
from . import name as _name
from .base import MXNetError
from .context import current_context
from .lazy_modules import load_module
from .ndarray import NDArray, dispatch
from .ndarray.dispatch import mode
from .ndarray.ndarray import context_of
from .ops import dtypes, schema
from .ops.failures import first_line
from .ops.registry import OPERATORS, Operator, get
from .suggestions import did_you_mean, shortened
from .symbol import functions, inference
from .util import is_np_array

if TYPE_CHECKING:
    from .context import Context
    from .symbol import Symbol

_props: dict[Any, Any] = {}
# The module that registers operators of saved networks, which programs do not import.
_REGISTERED_BY = dict.fromkeys(("empty_like_fallback", "mvn_fallback", "resize_fallback", "unravel_index_fallback"), "mxnet.numpy_op_fallback")
_of_numpy: dict[Any, bool] = {}  # by operator: True if its arrays are of mx.np


class CustomOp:
    """The computation of a custom operator. Subclasses define `forward` and `backward`.

    Arrays are passed as lists. Results are written with `assign`, which handles the request `req`.

    Example
    -------
    >>> class Twice(mx.operator.CustomOp):
    ...     def forward(self, req, in_data, out_data, **others):
    ...         self.assign(dst=out_data[0], req=req[0], src=2 * in_data[0])
    ...
    ...     def backward(self, req, in_grad, out_grad, **others):
    ...         self.assign(dst=in_grad[0], req=req[0], src=2 * out_grad[0])
    >>> @mx.operator.register('twice')
    ... class TwiceProp(mx.operator.CustomOpProp):
    ...     def create_operator(self, ctx, shapes, dtypes):
    ...         return Twice()
    >>> mx.nd.Custom(mx.nd.array([1, 2]), op_type='twice').asnumpy()
    array([2., 4.], dtype=float32)
    """

    def forward(self, is_train: bool, req: list[str], in_data: list[NDArray], out_data: list[NDArray], aux: list[NDArray]) -> Any:
        """Compute `out_data` from `in_data`.

        Parameters
        ----------
        is_train : bool
        req : list of {'null', 'write', 'inplace', 'add'}
            The write mode of each output.
        in_data, out_data, aux : list of NDArray
        """
        raise NotImplementedError(f"{type(self).__name__} must define forward; see the example of CustomOpProp")

    def backward(self, req: list[str], out_grad: list[NDArray], in_data: list[NDArray], out_data: list[NDArray], in_grad: list[NDArray],
                 aux: list[NDArray]) -> Any:
        """Compute `in_grad` from `out_grad`; arguments as for `forward`."""
        raise NotImplementedError(f"{type(self).__name__} must define backward; see the example of CustomOpProp")

    def assign(self, dst: NDArray, req: str, src: Any) -> None:
        """Write `src` into `dst`, add it, or do nothing, depending on `req`."""
        if req in ("write", "inplace"):
            dst[:] = src
        elif req == "add":
            dst[:] = dst + src
        elif req != "null":
            raise MXNetError(f"assign: req must be 'null', 'write', 'inplace' or 'add', received {shortened(req)}")


class CustomOpProp:
    """The definition of a custom operator: its inputs, outputs, shapes, types, and its factory.

    Parameters
    ----------
    need_top_grad : bool
        False for an output layer, which ignores the incoming gradient.

    Example
    -------
    >>> import mxnet as mx
    >>> class Square(mx.operator.CustomOp):
    ...     def forward(self, req, in_data, out_data, **others):
    ...         self.assign(out_data[0], req[0], mx.nd.square(in_data[0]))
    ...     def backward(self, req, in_data, in_grad, out_grad, **others):
    ...         self.assign(in_grad[0], req[0], 2 * in_data[0] * out_grad[0])
    >>> @mx.operator.register('docs_square')
    ... class SquareProp(mx.operator.CustomOpProp):
    ...     def create_operator(self, ctx, shapes, dtypes):
    ...         return Square()
    >>> mx.nd.Custom(mx.nd.array([3]), op_type='docs_square').asscalar()
    np.float32(9.0)
    """

    def __init__(self, need_top_grad: bool = True):
        self.need_top_grad_ = need_top_grad

    def list_arguments(self) -> list[str]:
        """Return the names of the inputs."""
        return ["data"]

    def list_outputs(self) -> list[str]:
        """Return the names of the outputs."""
        return ["output"]

    def list_auxiliary_states(self) -> list[str]:
        """Return the names of the auxiliary states."""
        return []

    def infer_shape(self, in_shape: Any) -> Any:
        """Return the shapes of inputs, outputs and auxiliary states for those of the inputs (lists)."""
        return in_shape, (in_shape[0],) * len(self.list_outputs()), ()

    def infer_type(self, in_type: Any) -> Any:
        """Return the types of inputs, outputs and auxiliary states for those of the inputs."""
        return in_type, [in_type[0]] * len(self.list_outputs()), [in_type[0]] * len(self.list_auxiliary_states())

    def infer_storage_type(self, in_stype: Any) -> Any:
        """Return the storage types of inputs, outputs and auxiliary states: all dense, unless a subclass overrides this."""
        return in_stype, ["default"] * len(self.list_outputs()), ["default"] * len(self.list_auxiliary_states())

    def infer_storage_type_backward(self, ograd_stype: Any, in_stype: Any, out_stype: Any, igrad_stype: Any, aux_stype: Any) -> Any:
        """Return the storage types of the gradients."""
        return ograd_stype, in_stype, out_stype, ["default"] * len(igrad_stype), aux_stype

    def declare_backward_dependency(self, out_grad: list[int], in_data: list[int], out_data: list[int]) -> list[int]:
        """Return the arrays that `backward` reads. All arrays are kept here, so that this does not affect the result."""
        return [*(out_grad if self.need_top_grad_ else []), *in_data, *out_data]

    def create_operator(self, ctx: "Context", in_shapes: list[Any], in_dtypes: list[Any]) -> CustomOp:
        """Return a `CustomOp` for inputs of these shapes and types."""
        return CustomOp()


def register(reg_name: str) -> Callable[[type[Any]], type[Any]]:
    """Return a decorator that registers a `CustomOpProp` as ``op_type=reg_name``. A later class of the same name replaces it.

    Its operators receive ``mx.np`` arrays if NumPy arrays are active (`mx.npx.set_np`) at the registration.

    Example
    -------
    >>> class Same(mx.operator.CustomOp):
    ...     def forward(self, req, in_data, out_data, **others):
    ...         self.assign(dst=out_data[0], req=req[0], src=in_data[0])
    >>> @mx.operator.register('same')
    ... class SameProp(mx.operator.CustomOpProp):
    ...     def create_operator(self, ctx, shapes, dtypes):
    ...         return Same()
    >>> mx.nd.Custom(mx.nd.array([1, 2]), op_type='same').asnumpy()
    array([1., 2.], dtype=float32)
    """
    def do_register(prop_cls):
        if not (inspect.isclass(prop_cls) and issubclass(prop_cls, CustomOpProp)):
            raise TypeError(f"register('{reg_name}') decorates a subclass of CustomOpProp, received {shortened(prop_cls)}")
        _props[reg_name] = prop_cls
        _of_numpy[reg_name] = is_np_array()
        _prop.cache_clear()
        return prop_cls

    return do_register


def get_all_registered_operators() -> list[str]:
    """Return the names of all operators.

    Example
    -------
    >>> 'Convolution' in mx.operator.get_all_registered_operators()
    True
    """
    return sorted(OPERATORS)


OperatorArguments = collections.namedtuple("OperatorArguments", ["narg", "names", "types"])
OperatorArguments.__doc__ = """The arguments of an operator: their number, names, and types as text.

    Example
    -------
    >>> mx.operator.get_operator_arguments('relu')
    OperatorArguments(narg=1, names=['data'], types=['NDArray-or-Symbol'])
    """


def get_operator_arguments(op_name: str) -> OperatorArguments:
    """Return the number, names and types of an operator's inputs and attributes.

    Example
    -------
    >>> mx.operator.get_operator_arguments('Flatten').names
    ['data']
    """
    op = get(op_name)
    names = [*op.inputs, *op.attributes]
    types = ["NDArray-or-Symbol[]" if op.variadic and n == op.inputs[-1] else "NDArray-or-Symbol" for n in op.inputs]
    types += [_described(a) for a in op.attributes.values()]
    return OperatorArguments(len(names), names, types)


_TYPE_NAMES = {int: "int", float: "float", bool: "boolean", str: "string", schema.Shape: "Shape(tuple)", schema.Floats: "tuple of <float>",
               schema.Axes: "Shape or None"}
_OF_MXNET_2 = ("log_sigmoid", "mish")  # left out: programs compare the tables with those of 1.9
_DATA_TYPES = ("bfloat16", "bool", "float16", "float32", "float64", "int32", "int64", "int8", "uint8")


def _described(attribute):
    """Return an attribute's type and default in the format of MXNet's parameter tables."""
    choices = attribute.choices or (_DATA_TYPES if attribute.kind is schema.DType else None)
    if choices:
        listed = ", ".join(["None"] * attribute.optional + sorted(repr(str(c)) for c in choices if c not in _OF_MXNET_2))
        kind, default, comma = f"{{{listed}}}", repr(schema.to_string(attribute.default)), ","
    else:
        kind = _TYPE_NAMES[attribute.kind]
        if attribute.bounds is not None and attribute.kind is int and (attribute.bounds[0] or 0) >= 0:
            kind += " (non-negative)"
        if attribute.optional:
            kind = f"{kind.removesuffix('(tuple)').rstrip()} or None"
        default, comma = attribute.default, ", "
        if attribute.kind is bool and default is not None:
            default = int(default)
        elif isinstance(default, tuple):
            default = list(default)
        elif kind in ("int", "string", "int or None"):
            default = repr(str(default))
    return f"{kind}, required" if attribute.required else f"{kind}{comma}optional, default={default}"


@functools.lru_cache(maxsize=256)
def _prop(items):
    attributes = dict(items)
    op_type = attributes.pop("op_type", None)
    if not op_type:
        raise MXNetError("Custom: the argument `op_type`, the name of a registered operator, is missing")
    if op_type not in _props:
        if op_type in _REGISTERED_BY:
            load_module(_REGISTERED_BY[op_type])
    if op_type not in _props:
        raise MXNetError(f"Custom: no operator is registered as '{op_type}'; decorate its CustomOpProp with @mx.operator.register('{op_type}')"
                         f"{did_you_mean(op_type, _props)}")
    try:
        return _props[op_type](**attributes)
    except TypeError as error:
        raise MXNetError(f"Custom: {_props[op_type].__name__} cannot be made from {attributes}: {error}") from error


def _prop_of(attributes):
    """Return the prop for attributes, which are passed to its class as strings, as in MXNet."""
    return _prop(tuple(sorted((k, v if isinstance(v, str) else str(v)) for k, v in attributes.items() if v is not None)))


class _AnyAttribute(dict):
    """The schema of `Custom`: every attribute is a string and belongs to the prop."""

    def __contains__(self, name):
        return not (name.startswith("__") and name.endswith("__"))


class CustomOperator(Operator):
    """The operator ``Custom``, whose prop defines inputs, outputs and shapes."""

    names_inputs, partial_shapes = True, False

    def __init__(self) -> None:
        def custom(*data, op_type: str):
            """Call an operator that was registered in Python with `register`.

            Example
            -------
            >>> class Cube(mx.operator.CustomOp):
            ...     def forward(self, in_data, out_data, req, **others):
            ...         x, = in_data
            ...         self.assign(out_data[0], req[0], x * x * x)
            ...     def backward(self, in_grad, out_grad, in_data, req, **others):
            ...         x, = in_data
            ...         self.assign(in_grad[0], req[0], out_grad[0] * 3 * x * x)
            >>> @mx.operator.register('cube')
            ... class CubeProp(mx.operator.CustomOpProp):
            ...     create_operator = lambda self, *shapes_and_types: Cube()
            >>> x = mx.nd.array([1, 2])
            >>> x.attach_grad()
            >>> with mx.autograd.record():
            ...     y = mx.nd.Custom(x, op_type='cube')
            >>> y.backward()
            >>> y.asnumpy(), x.grad.asnumpy()
            (array([1., 8.], dtype=float32), array([ 3., 12.], dtype=float32))
            """

        super().__init__("Custom", custom, data_dependent=True, names_output=True, amp="float32")
        self.fn = self.raw = _run_custom
        self.attributes = _AnyAttribute(self.attributes)
        self.mutates, self.shape_inference, self.dtype_inference = (), self._infer_shape, self._infer_type
        self.wants_training = "training"

    def parse(self, given: dict[str, Any], partial: bool = False) -> Any:
        return {k: v if isinstance(v, str) else str(v) for k, v in given.items() if v is not None and k in self.attributes}

    def with_defaults(self, parsed: Any) -> Any:
        return dict(parsed)

    def input_names(self, parsed: Any, count: int | None = None) -> tuple[str, ...]:
        prop = _prop_of(parsed)
        return (*prop.list_arguments(), *prop.list_auxiliary_states())

    def mutated_inputs(self, parsed: Any) -> tuple[str, ...]:
        return _prop_of(parsed).list_auxiliary_states()

    def is_loss(self, parsed: Any) -> bool:
        return not _prop_of(parsed).need_top_grad_

    def outputs(self, parsed: Any) -> int:
        return len(_prop_of(parsed).list_outputs())

    def list_output_names(self, parsed: Any) -> tuple[str, ...]:
        return tuple(_prop_of(parsed).list_outputs())

    def _infer_shape(self, in_shapes, out_shapes, **attributes):
        prop = _prop_of(attributes)
        n = len(prop.list_arguments())
        if in_shapes[0] is None:
            return in_shapes, out_shapes
        known = [[] if s is None else list(inference.to_user(s)) for s in in_shapes[:n]]
        inferred = prop.infer_shape(known)
        ins, outs, aux = inferred if len(inferred) == 3 else (*inferred, [])
        return ([inference.from_user(s) for s in (*ins, *aux)], [inference.from_user(s) for s in outs])

    def _infer_type(self, in_types, out_types, **attributes):
        prop = _prop_of(attributes)
        n = len(prop.list_arguments())
        if in_types[0] is None:
            return in_types, out_types
        given = [dtypes.to_numpy(t or in_types[0]) for t in in_types[:n]]
        inferred = prop.infer_type(given)
        ins, outs, aux = inferred if len(inferred) == 3 else (*inferred, [])
        return [dtypes.to_torch(t) for t in (*ins, *aux)], [dtypes.to_torch(t) for t in outs]


def _run_custom(*tensors, training=False, **attributes):
    """Implement ``Custom``: make the operator and call it through torch's autograd."""
    prop = _prop_of(attributes)
    if tensors and tensors[0].device.type == "meta":
        raise NotImplementedError  # its shapes come from the prop
    n_in, n_aux = len(prop.list_arguments()), len(prop.list_auxiliary_states())
    if len(tensors) != n_in + n_aux:
        raise MXNetError(f"operator Custom expects {n_in + n_aux} inputs ({', '.join([*prop.list_arguments(), *prop.list_auxiliary_states()])}), "
                         f"received {len(tensors)}")
    ctx = current_context()
    if tensors and (tensors[0].is_cuda or ctx.device_type == "gpu"):  # the kind of host memory is known only from the current context
        ctx = context_of(tensors[0])
    shapes = [list(t.shape) for t in tensors[:n_in]]
    out_shapes = prop.infer_shape(shapes)[1]
    out_types = prop.infer_type([dtypes.to_numpy(t.dtype) for t in tensors[:n_in]])[1]
    operator = prop.create_operator(ctx, shapes, [dtypes.to_numpy(t.dtype) for t in tensors[:n_in]])
    call = _Call(attributes["op_type"], operator, prop, n_in, [tuple(s) for s in out_shapes], out_types, training, ctx)
    outputs = _CustomFunction.apply(call, *tensors)
    return outputs if len(outputs) > 1 else outputs[0]


class _Call:
    """One call of a custom operator."""

    def __init__(self, name, operator, prop, n_in, out_shapes, out_types, training, ctx):
        self.name, self.operator, self.prop, self.n_in = name, operator, prop, n_in
        self.out_shapes, self.out_types, self.training, self.ctx = out_shapes, out_types, training, ctx
        self.kind = NDArray
        if _of_numpy[name]:
            from .numpy import ndarray
            self.kind = ndarray

    @interrupts.scope
    def running(self, name, training):
        """Run the user's code in a ``with`` block without recording. A profile shows it and its operators under the operator's name."""
        outer, start = mode.custom_operator, time.perf_counter_ns()
        try:
            mode.custom_operator = name
            with autograd.pause(train_mode=training):
                yield
        finally:
            try:
                if dispatch.observer is not None:
                    dispatch.observer("pure_python", start, time.perf_counter_ns(), (), None)
            finally:
                mode.custom_operator = outer

    def run(self, name, training, method, **arguments):
        """Call a method of the user's operator. Its errors say that they are the program's own."""
        with self.running(name, training):
            try:
                method(**arguments)
            except MXNetError:
                raise
            except Exception as error:
                raise MXNetError(f"{type(self.operator).__name__} fails with {type(error).__name__}: {first_line(error)}") from error

    def arrays(self, tensors):
        return [self.kind._new(t.detach().contiguous(), self.ctx) for t in tensors]

    def new(self, shapes, types):
        return [self.kind._new(torch.zeros(s, dtype=dtypes.to_torch(t), device=self.ctx.torch_device), self.ctx) for s, t in zip(shapes, types)]


class _CustomFunction(torch.autograd.Function):
    @staticmethod
    def forward(ctx, call, *tensors):
        ins, aux = call.arrays(tensors[:call.n_in]), call.arrays(tensors[call.n_in:])
        outs = call.new(call.out_shapes, call.out_types)
        call.run(call.name, call.training, call.operator.forward, is_train=call.training, req=["write"] * len(outs), in_data=ins, out_data=outs,
                 aux=aux)
        ctx.call, ctx.ins, ctx.aux, ctx.outs = call, ins, aux, [o.detach() for o in outs]
        return tuple(o._data for o in outs)

    @staticmethod
    def backward(ctx, *out_grads):
        call = ctx.call
        grads = call.new([i.shape for i in ctx.ins], [i.dtype for i in ctx.ins])
        req = ["write" if needed else "null" for needed in itertools.islice(ctx.needs_input_grad, 1, 1 + call.n_in)]
        # Torch's gradients may be shared with other branches, or be expanded from one number; the user may write to the copies.
        owned = [g.clone(memory_format=torch.contiguous_format) for g in out_grads]
        call.run(f"_backward_{call.name}", True, call.operator.backward, req=req, out_grad=call.arrays(owned), in_data=ctx.ins, out_data=ctx.outs,
                 in_grad=grads, aux=ctx.aux)
        return (None, *(g._data if r == "write" else None for g, r in zip(grads, req)), *[None] * len(ctx.aux))


custom_function = OPERATORS["Custom"] = OPERATORS["_npi_Custom"] = CustomOperator()


class PythonOp:
    """The predecessor of `CustomOp`: an object that defines and runs one operator. Use `NumpyOp` or `NDArrayOp`, or better `CustomOp`.

    Parameters
    ----------
    need_top_grad : bool
        False for an output layer, which ignores the incoming gradient.

    Example
    -------
    >>> issubclass(mx.operator.NumpyOp, mx.operator.PythonOp)
    True
    """

    def __init__(self, need_top_grad: bool = True):
        warnings.warn(f"{type(self).__name__}: PythonOp, NumpyOp and NDArrayOp have been deprecated. Please use CustomOp", stacklevel=3)
        self.need_top_grad_ = need_top_grad
        self._op_type = None

    def __call__(self, *args: Any, **kwargs: Any) -> "Symbol":
        return self.get_symbol(*args, **kwargs)

    def get_symbol(self, *args: Any, **kwargs: Any) -> "Symbol":
        """Return a Symbol of this operator over Symbols, given by position or name."""
        raise NotImplementedError(f"{type(self).__name__} must be a NumpyOp or an NDArrayOp to become a Symbol")

    def forward(self, in_data: list[Any], out_data: list[Any]) -> None:
        """Write the results into the arrays of `out_data`; by default the first input."""
        out_data[0][:] = in_data[0]

    def backward(self, out_grad: list[Any], in_data: list[Any], out_data: list[Any], in_grad: list[Any]) -> None:
        """Write the gradients into the arrays of `in_grad`; by default 1."""
        in_grad[0][:] = 1.0

    def infer_shape(self, in_shape: Any) -> Any:
        """Return the shapes of inputs and outputs (lists) for those of the inputs."""
        return in_shape, [in_shape[0]]

    def list_outputs(self) -> list[str]:
        """Return the names of the outputs."""
        return ["output"]

    def list_arguments(self) -> list[str]:
        """Return the names of the inputs."""
        return ["data"]

    def need_top_grad(self) -> bool:
        """Return True if `backward` reads the incoming gradient."""
        return self.need_top_grad_

    def _symbol(self, hint, args, kwargs, unpack, pack):
        """Return a Symbol of the operator ``Custom``. `unpack` converts arrays to this object's operands, `pack` writes these back."""
        if self._op_type is None:
            self._op_type = f"_python_op{next(_python_ops)}"
            register(self._op_type)(_prop_class(self, unpack, pack))
        kwargs["name"] = _name.current().get(kwargs.pop("name", None), hint)
        return functions.operator_function("Custom")(*args, op_type=self._op_type, **kwargs)


_python_ops = itertools.count()


def _prop_class(python_op, unpack, pack):
    """Return the `CustomOpProp` class of a `PythonOp`."""
    class Runner(CustomOp):
        def forward(self, is_train, req, in_data, out_data, aux):
            outputs = unpack(out_data)
            python_op.forward(in_data=unpack(in_data), out_data=outputs)
            pack(outputs, out_data)

        def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
            grads = unpack(in_grad)
            python_op.backward(out_grad=unpack(out_grad if python_op.need_top_grad() else []), in_data=unpack(in_data),
                               out_data=unpack(out_data), in_grad=grads)
            pack(grads, in_grad)

    class Prop(CustomOpProp):
        def __init__(self):
            super().__init__(need_top_grad=python_op.need_top_grad())

        def list_arguments(self):
            return list(python_op.list_arguments())

        def list_outputs(self):
            return list(python_op.list_outputs())

        def infer_shape(self, in_shape):
            return python_op.infer_shape(in_shape)

        def create_operator(self, ctx, in_shapes, in_dtypes):
            return Runner()

    return Prop


class NumpyOp(PythonOp):
    """An operator whose `forward` and `backward` work on numpy arrays in place. Deprecated: use `CustomOp`.

    Example
    -------
    >>> import warnings
    >>> class Twice(mx.operator.NumpyOp):
    ...     def forward(self, in_data, out_data):
    ...         out_data[0][:] = 2 * in_data[0]
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter('ignore')   # it says to use CustomOp
    ...     twice = Twice()
    >>> twice(mx.sym.var('x')).eval(x=mx.nd.array([1, 2]))[0].asnumpy()
    array([2., 4.], dtype=float32)
    """

    def get_symbol(self, *args: Any, **kwargs: Any) -> "Symbol":
        """Return a Symbol of this operator over Symbols, given by position or name."""
        def unpack(arrays):
            return [np.array(a.asnumpy()) for a in arrays]

        def pack(values, arrays):
            for value, array in zip(values, arrays):
                array[:] = value

        return self._symbol("_native", args, kwargs, unpack, pack)


class NDArrayOp(PythonOp):
    """An operator whose `forward` and `backward` write into NDArrays. Deprecated: use `CustomOp`.

    Example
    -------
    >>> import warnings
    >>> class Twice(mx.operator.NDArrayOp):
    ...     def forward(self, in_data, out_data):
    ...         out_data[0][:] = 2 * in_data[0]
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter('ignore')   # it says to use CustomOp
    ...     twice = Twice()
    >>> twice(mx.sym.var('x')).eval(x=mx.nd.array([1, 2]))[0].asnumpy()
    array([2., 4.], dtype=float32)
    """

    def get_symbol(self, *args: Any, **kwargs: Any) -> "Symbol":
        """Return a Symbol of this operator over Symbols, given by position or name."""
        return self._symbol("_ndarray", args, kwargs, list, lambda values, arrays: None)

    def declare_backward_dependency(self, out_grad: list[int], in_data: list[int], out_data: list[int]) -> list[int]:
        """Return the numbers of the arrays that `backward` reads. All arrays are kept, so that this does not affect the result."""
        return [*(out_grad if self.need_top_grad() else []), *in_data, *out_data]


__all__ = ["CustomOp", "CustomOpProp", "NDArrayOp", "NumpyOp", "OperatorArguments", "PythonOp", "get_all_registered_operators",
           "get_operator_arguments", "register"]
