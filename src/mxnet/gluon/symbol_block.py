"""`SymbolBlock`: a block out of a Symbol, such as an exported network or a part of one."""
from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

from .. import symbol
from ..base import MXNetError, mx_real_t
from ..context import ctx_or_device, current_context
from ..ndarray import NDArray
from ..ndarray.dispatch import mode
from ..symbol import Symbol
from ..util import version
from .hybrid_block import HybridBlock
from .nested import flatten, regroup
from .parameter import Parameter, ParameterDict
from .utils import UsageError

if TYPE_CHECKING:
    from ..context import Context


class SymbolBlock(HybridBlock):
    """A block that computes a Symbol.

    Parameters
    ----------
    outputs : Symbol or list of Symbol
    inputs : Symbol or list of Symbol
        The variables of `outputs` that the block gets when it is called. All others become parameters, with their `lr_mult`, `wd_mult` and `init`.
    params : ParameterDict, optional
        Parameters to share, such as ``net.collect_params()``.

    Raises
    ------
    UsageError
        If an input is no variable, or a variable is row_sparse.

    Example
    -------
    >>> import mxnet as mx
    >>> data = mx.sym.var('data')
    >>> hidden = mx.sym.FullyConnected(data, num_hidden=4, name='fc1')
    >>> net = mx.gluon.SymbolBlock(mx.sym.relu(hidden), data)
    >>> net.initialize()
    >>> net(mx.nd.ones((2, 3))).shape
    (2, 4)
    >>> sorted(net.collect_params().keys())
    ['fc1_bias', 'fc1_weight']
    """

    @staticmethod
    def imports(symbol_file: str, input_names: str | list[str], param_file: str | None = None, ctx: Context | list[Context] | None = None,
                allow_missing: bool = False, ignore_extra: bool = False, *, device: Context | list[Context] | None = None) -> SymbolBlock:
        """Return a block out of the files of `HybridBlock.export` or `Module.save_checkpoint`.

        Parameters
        ----------
        symbol_file : str
        input_names : str or list of str
            The variables that are inputs.
        param_file : str, optional
            Without it, call `initialize` or `load_parameters`.
        ctx : Context or list of Context, optional
            Where the parameters go; the CPU by default. `device` is its name in MXNet 2.
        allow_missing, ignore_extra : bool
            Accept that parameters, or entries of the file, have no counterpart.

        Returns
        -------
        SymbolBlock
        """
        outputs = symbol.load(symbol_file)
        names = [input_names] if isinstance(input_names, str) else input_names
        # With a file its types decide, so the inputs must not.
        inputs = [symbol.var(name, dtype=mx_real_t if param_file is None else None) for name in names]
        block = SymbolBlock(outputs, inputs)
        if param_file is not None:
            block._by_name().load(param_file, ctx_or_device(ctx, device), allow_missing, ignore_extra, cast_dtype=True, dtype_source="saved")
        return block

    def __init__(self, outputs: Symbol | list[Symbol], inputs: Symbol | list[Symbol], params: ParameterDict | None = None) -> None:
        super().__init__(prefix=None, params=None)
        self._prefix = ""
        self._params = ParameterDict("", params)
        if isinstance(inputs, Symbol) and len(inputs.list_outputs()) == 1:
            inputs = [inputs]
        if isinstance(outputs, (list, tuple)) and len(outputs) == 1:
            outputs = outputs[0]
        variables, self._in_format = flatten(inputs, "input")
        parts, self._out_format = flatten(outputs, "output")
        for variable in variables:
            if len(variable.get_internals().list_outputs()) != 1:
                raise UsageError(f"SymbolBlock: inputs must be variables, received {variable}, the output of an operator")
        out = symbol.Group(parts) if len(parts) > 1 else parts[0]
        attributes = out.attr_dict()
        for name, own in attributes.items():
            if own.get("__storage_type__") == "1":
                raise UsageError(f"SymbolBlock: all Parameters must be dense, '{name}' is row_sparse")
        arguments, aux = out.list_arguments(), out.list_auxiliary_states()
        argument_types, aux_types = _infer_param_types(variables, out, arguments, aux)
        input_names = {variable.name for variable in variables}
        for name, dtype in zip(arguments + aux, argument_types + aux_types):
            if name not in input_names:
                options = {"grad_req": "null"} if name in aux else {}
                if params is None or name not in params.keys():  # a shared one has settings of its own
                    options.update(_settings(name, attributes.get(name, {})))
                self.params.get(name, allow_deferred_init=True, dtype=dtype, **options)
        self._cached_graph = variables, out
        cut = len(_common_prefix(list(self._params.keys())))
        self._reg_params = {name[cut:]: parameter for name, parameter in self._params.items()}

    def __repr__(self) -> str:
        inputs, out = self._cached_graph
        return f"{type(self).__name__}(\n{out} : {len(inputs)} -> {len(out.list_outputs())}\n)"

    def forward(self, x: Any, *args: Any) -> Any:
        """Compute the outputs, of arrays or of Symbols.

        Raises
        ------
        UsageError
            If the inputs are something else, or not those the block was made for.
        """
        if isinstance(x, NDArray):
            if mode.tracing is not None:
                mode.tracing.fail(f"{self.name} is a SymbolBlock, whose graph can't become a part of the traced one")
            if x._ctx is current_context():
                return self._call_cached_op(x, *args)
            with x._ctx:
                return self._call_cached_op(x, *args)
        if not isinstance(x, Symbol):
            raise UsageError(f"SymbolBlock takes NDArrays or Symbols, received {type(x)}")
        given, fmt = flatten([x, *args], "input")
        if fmt != self._in_format:
            raise UsageError(f"Invalid input format: the block was made for {self._in_format}, received {fmt}")
        inputs, out = self._cached_graph
        out = copy.copy(out)
        out._compose(**{variable.name: arg for variable, arg in zip(inputs, given)})
        return regroup(list(out), self._out_format)

    def hybrid_forward(self, F: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
        """Not used: the Symbol is the computation."""
        raise NotImplementedError("a SymbolBlock computes its Symbol; call the block")

    def _collect_params_with_prefix(self, prefix: str = "") -> dict[str, Parameter]:
        """Return the parameters by structural name: in MXNet 1 their names without the common prefix, in MXNet 2 the whole names."""
        if version() == "1.9":
            return super()._collect_params_with_prefix(prefix)
        return {f"{prefix}.{name}" if prefix else name: parameter for name, parameter in self._params.items()}

    def _clear_cached_op(self) -> None:
        graph = self._cached_graph
        super()._clear_cached_op()
        self._cached_graph = graph

    def cast(self, dtype: Any) -> None:
        """Convert all parameters to another type; those of batch normalization stay float32 where others become float16."""
        super().cast(dtype)
        if str(getattr(dtype, "__name__", dtype)) != "float16":
            return
        names = set(self._cached_graph[1].list_inputs())
        for name in names:
            for kind in ("running", "moving"):
                if name.endswith(f"{kind}_var"):
                    siblings = [name[:-len(f"{kind}_var")] + ending for ending in (f"{kind}_var", f"{kind}_mean", "gamma", "beta")]
                    if names.issuperset(siblings):
                        for sibling in siblings:
                            self.params.get(sibling).cast("float32")

    def reset_ctx(self, ctx: Context | list[Context] | None) -> None:
        """Move all parameters to another context, or list of contexts, with those a backend has added."""
        parameters = self._by_name()
        for is_arg, parameter in self._cached_op_args:
            if not is_arg and parameter.name not in parameters:
                parameter.reset_ctx(ctx)
        parameters.reset_ctx(ctx)


def _settings(name: str, attributes: dict[str, str]) -> dict[str, Any]:
    """Return the settings in a variable's annotations: factors of the learning rate and weight decay, and an initializer."""
    settings: dict[str, Any] = {}
    for setting in ("lr_mult", "wd_mult"):
        if f"__{setting}__" in attributes:
            try:
                settings[setting] = float(attributes[f"__{setting}__"])
            except ValueError as error:
                raise MXNetError(f"SymbolBlock: {setting} of the variable '{name}' must be a number: {error}") from None
    if attributes.get("__init__"):
        settings["init"] = attributes["__init__"]
    return settings


def _common_prefix(names: Any):
    """Return the longest common prefix of the names."""
    if not names:
        return ""
    first, last = min(names), max(names)
    for i, character in enumerate(first):
        if character != last[i]:
            return first[:i]
    return first


def _infer_param_types(in_params: Any, out_params: Any, arg_params: list[str], aux_params: list[str],
                       default_dtype: Any = mx_real_t):
    """Return the types of the arguments and auxiliary states of a Symbol, as far as its inputs settle them; else `default_dtype`."""
    arguments = aux = None
    types = {variable.name: (variable.infer_type()[0] or [None])[0] for variable in in_params}
    if all(dtype is not None for dtype in types.values()):
        try:
            arguments, _, aux = out_params.infer_type(**types)
        except MXNetError:
            pass  # contradictory annotations: the defaults serve
    if arguments is None or len(arguments) != len(arg_params):
        arguments = [default_dtype] * len(arg_params)
    if aux is None or len(aux) != len(aux_params):
        aux = [default_dtype] * len(aux_params)
    return arguments, aux
