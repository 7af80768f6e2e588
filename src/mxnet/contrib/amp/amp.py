"""The public functions of AMP: switching it on, scaling the loss, converting trained networks."""
from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

from ...base import MXNetError, classproperty
from ...context import gpu
from ...gluon import HybridBlock, SymbolBlock, Trainer
from ...gluon.utils import UsageError
from ...module import BucketingModule
from ...ops import dtypes
from ...ops.registry import OPERATORS
from ...optimizer import Optimizer
from ...suggestions import shortened
from ...symbol import Symbol
from . import lists
from .calls import Installation, Rule
from .conversion import Conversion, set_param_types
from .lists.derived import unlisted
from .loss_scaler import LossScaler

if TYPE_CHECKING:
    from ...context import Context
    from ...ndarray import NDArray

__all__ = ["init", "init_trainer", "scale_loss", "unscale", "convert_model", "convert_hybrid_block", "list_lp16_ops", "list_fp32_ops",
           "list_lp16_fp32_ops", "list_conditional_fp32_ops", "list_widest_type_cast", "list_loss_output_functions",
           "list_lp16_use_fp32_params", "convert_symbol"]

bfloat16 = dtypes.BFLOAT16_BITS


class _State:
    installation = None  # while AMP is on
    scaler = None  # the scaler of the loss layers of mx.nd and of the first Trainer
    scaler_taken = False
    initialized = classproperty(lambda cls: cls.installation is not None)


def _low_precision(dtype):
    """Return 'float16' or 'bfloat16' for any name or object of either type."""
    try:
        name = dtypes.name_of(dtypes.to_torch(dtype))
    except TypeError:
        name = None
    if name not in ("float16", "bfloat16"):
        raise UsageError(f"amp: target_dtype must be 'float16' or 'bfloat16', received {shortened(dtype)}")
    return name


# -- training ----------------------------------------------------------------------------------------------------------------


def init(target_dtype: str = "float16", target_precision_ops: Sequence[str] | None = None,
         conditional_fp32_ops: Sequence[tuple[str, str, Sequence[str]]] | None = None, fp32_ops: Sequence[str] | None = None) -> None:
    """Switch AMP on, for all functions of ``mx.nd`` and ``mx.sym`` that are called from now on. Before the network is made.

    A second call does nothing.

    Parameters
    ----------
    target_dtype : {'float16', 'bfloat16'}
    target_precision_ops, fp32_ops : list of str, optional
        The operators that run in `target_dtype`, and those that run in float32, instead of `list_lp16_ops` and `list_fp32_ops`.
    conditional_fp32_ops : list of tuple, optional
        ``(operator, attribute, values)``: the values with which it runs in float32, instead of `list_conditional_fp32_ops`.

    Raises
    ------
    UsageError
        If `target_dtype` is another type.
    AttributeError
        If a list names an operator that does not exist.

    Example
    -------
    >>> mx.contrib.amp.init(target_dtype='bfloat16')
    >>> net = mx.gluon.nn.Dense(2, in_units=3)
    >>> net.initialize()
    >>> mx.nd.FullyConnected(mx.nd.ones((1, 3)), net.weight.data(), no_bias=True, num_hidden=2).as_torch().dtype
    torch.bfloat16
    """
    if _State.installation is not None:
        return
    low = _low_precision(target_dtype)
    float32_params = list_lp16_use_fp32_params(low) or {}
    rules = {}

    def add(given, default, make):
        for item in default if given is None else given:
            name = item if isinstance(item, str) else item[0]
            if given is not None and name not in OPERATORS:
                raise AttributeError(f"amp.init: there is no operator called {name!r}")
            rules[name] = make(name, item)

    add(target_precision_ops, list_lp16_ops(low), lambda name, _: Rule(low, low, float32_params.get(name, ())))
    add(fp32_ops, list_fp32_ops(low), lambda name, _: Rule(low, "float32"))
    add(conditional_fp32_ops, list_conditional_fp32_ops(low), lambda name, item: Rule(low, "float32", condition=item[1:]))
    products, others = unlisted(low)
    add(None, [name for name in products if name not in rules], lambda name, _: Rule(low, low))
    add(None, [*list_widest_type_cast(low), *(name for name in others if name not in rules)], lambda name, _: Rule(low))
    logging.info("Using AMP")
    _State.scaler, _State.scaler_taken = LossScaler(), False
    _State.installation = Installation(rules, list_loss_output_functions(low), _State.scaler)


def init_trainer(optimizer_or_trainer: Any) -> None:
    """Make a Trainer skip steps whose gradients overflow, and adapt the loss scale to them.

    Parameters
    ----------
    optimizer_or_trainer : mxnet.gluon.Trainer

    Raises
    ------
    UsageError
        If `init` was not called before.
    TypeError
        If it is no Trainer.

    Example
    -------
    >>> mx.contrib.amp.init(target_dtype='bfloat16')
    >>> net = mx.gluon.nn.Dense(2, in_units=3)
    >>> net.initialize()
    >>> trainer = mx.gluon.Trainer(net.collect_params(), 'sgd')
    >>> mx.contrib.amp.init_trainer(trainer)
    """
    if _State.installation is None:
        raise UsageError("init_trainer: AMP is off; call amp.init() first, before the network is made")
    _require_trainer(optimizer_or_trainer)
    optimizer_or_trainer._amp_loss_scaler = LossScaler() if _State.scaler_taken else _State.scaler
    optimizer_or_trainer._amp_original_scale = optimizer_or_trainer._scale
    _State.scaler_taken = True


def _require_trainer(trainer):
    if isinstance(trainer, Optimizer):
        raise TypeError(f"amp scales losses for a gluon.Trainer, received an optimizer of type {type(trainer).__name__}; make a Trainer with it")
    if not isinstance(trainer, Trainer):
        raise TypeError(f"optimizer_or_trainer should be a Gluon Trainer or an optimizer, instead is {type(trainer)}")


@contextlib.contextmanager
def scale_loss(loss: Any, optimizer_or_trainer: Any) -> Iterator[Any]:
    """Return the loss, scaled so that its gradients don't vanish; the Trainer divides them by the same factor.

    Parameters
    ----------
    loss : NDArray or list of NDArray
    optimizer_or_trainer : mxnet.gluon.Trainer
        After `init_trainer`.

    Raises
    ------
    UsageError
        If the Trainer was not given to `init_trainer`.

    Example
    -------
    >>> mx.contrib.amp.init(target_dtype='bfloat16')
    >>> net = mx.gluon.nn.Dense(2, in_units=3)
    >>> net.initialize()
    >>> trainer = mx.gluon.Trainer(net.collect_params(), 'sgd')
    >>> mx.contrib.amp.init_trainer(trainer)
    >>> with mx.autograd.record():
    ...     loss = mx.gluon.loss.L2Loss()(net(mx.nd.ones((4, 3))), mx.nd.ones((4, 2)))
    ...     with mx.contrib.amp.scale_loss(loss, trainer) as scaled:
    ...         mx.autograd.backward(scaled)
    >>> trainer.step(batch_size=4)
    """
    trainer = optimizer_or_trainer
    scaler = getattr(trainer, "_amp_loss_scaler", None)
    if scaler is None:
        raise UsageError("scale_loss: this Trainer has no loss scaler; call amp.init_trainer(trainer) first")
    trainer._scale = trainer._amp_original_scale / scaler.loss_scale
    if isinstance(loss, (list, tuple)):
        yield [part * scaler.loss_scale for part in loss]
    else:
        yield loss * scaler.loss_scale


def unscale(optimizer_or_trainer: Any) -> None:
    """Divide the gradients by the loss scale now rather than in the step, to clip them or look at them.

    Parameters
    ----------
    optimizer_or_trainer : mxnet.gluon.Trainer

    Raises
    ------
    TypeError
        If it is no Trainer.

    Example
    -------
    >>> mx.contrib.amp.init(target_dtype='bfloat16')
    >>> net = mx.gluon.nn.Dense(1, in_units=1, use_bias=False)
    >>> net.initialize(mx.init.One())
    >>> trainer = mx.gluon.Trainer(net.collect_params(), 'sgd')
    >>> mx.contrib.amp.init_trainer(trainer)
    >>> with mx.autograd.record(), mx.contrib.amp.scale_loss(net(mx.nd.ones((1, 1))), trainer) as scaled:
    ...     mx.autograd.backward(scaled)
    >>> mx.contrib.amp.unscale(trainer)
    >>> net.weight.grad().asnumpy()   # without the loss scale
    array([[1.]], dtype=float32)
    """
    _require_trainer(optimizer_or_trainer)
    for parameter in optimizer_or_trainer._params:
        for grad in parameter._grad or ():
            (grad.data if grad._is_sparse else grad)._writable().mul_(optimizer_or_trainer._scale)
    optimizer_or_trainer._scale = 1.0


# -- conversion --------------------------------------------------------------------------------------------------------------


def convert_symbol(sym: Symbol, target_dtype: str = "float16", target_dtype_ops: Sequence[str] | None = None, fp32_ops: Sequence[str] | None = None,
                   conditional_fp32_ops: Sequence[tuple[str, str, Sequence[str]]] | None = None, excluded_sym_names: Sequence[str] | None = None,
                   data_names: Sequence[str] | None = None, cast_optional_params: bool = False) -> Symbol:
    """Return a float32 network with casts put in, so that the operators of the lists run in low precision. For inference.

    Parameters
    ----------
    sym : Symbol
    target_dtype : {'float16', 'bfloat16'}
    target_dtype_ops, fp32_ops : list of str, optional
        The operators that run in `target_dtype`, and those that run in float32, instead of `list_lp16_ops` and `list_fp32_ops`.
    conditional_fp32_ops : list of tuple, optional
        ``(operator, attribute, values)``: the values with which it runs in float32, instead of `list_conditional_fp32_ops`.
    excluded_sym_names : list of str, optional
        Names of nodes that run in float32 regardless of the lists.
    data_names : list of str, optional
        The network's data; by default all variables without a type of their own.
    cast_optional_params : bool
        True to store parameters that only low-precision operators use in that type, instead of casting them in each run.

    Returns
    -------
    Symbol
        The types of parameters are annotated.

    Raises
    ------
    UsageError
        If an argument is not of its type, or an operator is in two lists or may not be in the one it is in.
    MXNetError
        If `data_names` has a name that is no variable of the network.

    Example
    -------
    >>> net = mx.sym.FullyConnected(mx.sym.var('data'), num_hidden=2, name='fc')
    >>> 'amp_cast' in mx.contrib.amp.convert_symbol(net, target_dtype='float16').tojson(remove_amp_cast=False)
    True
    """
    if not isinstance(sym, Symbol):
        raise UsageError(f"convert_symbol: a Symbol expected, received {type(sym)}")
    low = _low_precision(target_dtype)
    target_dtype_ops = _names(target_dtype_ops, list_lp16_ops(low), "target_dtype_ops")
    fp32_ops = _names(fp32_ops, list_fp32_ops(low), "fp32_ops")
    conditional_fp32_ops = _names(conditional_fp32_ops, list_conditional_fp32_ops(low), "conditional_fp32_ops")
    excluded = _names(excluded_sym_names, [], "excluded_sym_names")
    _check_lists(low, target_dtype_ops, fp32_ops, conditional_fp32_ops)
    names, attributes = sym.list_inputs(), sym.attr_dict()
    if data_names is None:
        data_names = [name for name in names if "__dtype__" not in attributes.get(name, ())]
    elif unknown := set(data_names) - set(names):
        raise MXNetError(f"convert_symbol: data_names {sorted(unknown)} are not among the network's variables: {', '.join(names)}")
    products, others = unlisted(low)
    given = {*target_dtype_ops, *fp32_ops, *(item[0] for item in conditional_fp32_ops)}
    products, widest = [*target_dtype_ops, *(name for name in products if name not in given)], [*list_widest_type_cast(low), *others]
    conversion = Conversion(low, products, fp32_ops, widest, conditional_fp32_ops, excluded, data_names, cast_optional_params)
    outputs = conversion.run(sym._outputs)
    set_param_types(outputs, low, data_names, set(names) - set(data_names), cast_optional_params)
    return Symbol(outputs)


def _names(given, default, argument):
    if given is None:
        return list(default)
    if not isinstance(given, list):
        raise UsageError(f"{argument} should be a list, received {shortened(given)}")
    return given


def _check_lists(low, target_ops, fp32_ops, conditional):
    for item in conditional:
        if not (len(item) == 3 and isinstance(item[0], str) and isinstance(item[1], str) and isinstance(item[2], list)):
            raise UsageError(f"conditional_fp32_ops: (operator, attribute, list of values) expected, received {shortened(item)}")
    given = {"target_dtype_ops": set(target_ops), "fp32_ops": set(fp32_ops), "conditional_fp32_ops": {item[0] for item in conditional}}
    for first, second in (("target_dtype_ops", "fp32_ops"), ("target_dtype_ops", "conditional_fp32_ops"),
                          ("fp32_ops", "conditional_fp32_ops")):
        if common := given[first] & given[second]:
            raise UsageError(f"An operator may stand in one list only; both {first} and {second} have {sorted(common)}")
    allowed = {*chain(*unlisted(low)), *list_lp16_ops(low), *list_fp32_ops(low), *list_lp16_fp32_ops(low),
               *(item[0] for item in list_conditional_fp32_ops(low))}
    if illegal := set().union(*given.values()) - allowed:
        raise UsageError(f"Can only choose ops from list_lp16_ops, list_fp32_ops, list_lp16_fp32_ops and list_conditional_fp32_ops of "
                         f"mxnet.contrib.amp; not in any of them: {sorted(illegal)}")


def convert_model(sym: Symbol, arg_params: Mapping[str, NDArray], aux_params: Mapping[str, NDArray], target_dtype: str = "float16",
                  target_dtype_ops: Sequence[str] | None = None, fp32_ops: Sequence[str] | None = None,
                  conditional_fp32_ops: Sequence[tuple[str, str, Sequence[str]]] | None = None, excluded_sym_names: Sequence[str] | None = None,
                  cast_optional_params: bool = False) -> tuple[Symbol, dict[str, NDArray], dict[str, NDArray]]:
    """Return a float32 network and its parameters, converted for low precision. See `convert_symbol` for the arguments.

    Parameters
    ----------
    arg_params, aux_params : dict of str to NDArray
        As `mxnet.model.load_checkpoint` returns them.

    Returns
    -------
    sym : Symbol
    arg_params, aux_params : dict of str to NDArray
        New dicts.

    Raises
    ------
    UsageError
        If an argument is not of its type, or as in `convert_symbol`.

    Example
    -------
    >>> net = mx.sym.FullyConnected(mx.sym.var('data'), num_hidden=2, name='fc')
    >>> args = {'fc_weight': mx.nd.ones((2, 3)), 'fc_bias': mx.nd.zeros(2)}
    >>> half, args, auxiliary = mx.contrib.amp.convert_model(net, args, {}, target_dtype='float16')
    >>> 'amp_cast' in half.tojson(remove_amp_cast=False)
    True
    """
    if not isinstance(sym, Symbol):
        raise UsageError(f"convert_model: a Symbol expected, received {type(sym)}")
    for params, place in ((arg_params, "arg_params"), (aux_params, "aux_params")):
        if not isinstance(params, dict):
            raise UsageError(f"convert_model: a dict of NDArrays expected as {place}, received {type(params)}")
    data_names = [name for name in sym.list_inputs() if name not in arg_params and name not in aux_params]
    sym = convert_symbol(sym, target_dtype, target_dtype_ops, fp32_ops, conditional_fp32_ops, excluded_sym_names, data_names,
                         cast_optional_params)
    types = _annotated_types(sym)
    return sym, *({name: array.astype(types.get(name, array.dtype), copy=False) for name, array in params.items()}
                  for params in (arg_params, aux_params))


def _annotated_types(sym):
    """Return the types that a converted network requires of its variables."""
    return {name: dtypes.NAME_TO_TORCH[dtypes.FLAG_TO_NAME[int(attributes["__dtype__"])]]
            for name, attributes in sym.attr_dict().items() if attributes.get("__dtype__", "-1") != "-1"}


def convert_hybrid_block(block: HybridBlock, target_dtype: str = "float16", target_dtype_ops: Sequence[str] | None = None,
                         fp32_ops: Sequence[str] | None = None, conditional_fp32_ops: Sequence[tuple[str, str, Sequence[str]]] | None = None,
                         excluded_sym_names: Sequence[str] | None = None, ctx: Context = gpu(0), cast_optional_params: bool = False) -> HybridBlock:
    """Return a float32 block, converted for low precision. See `convert_symbol` for the other arguments.

    Parameters
    ----------
    block : HybridBlock
        Hybridized, and called at least once.
    ctx : Context
        Where the new block's parameters go.

    Returns
    -------
    SymbolBlock

    Raises
    ------
    UsageError
        If `block` is no HybridBlock, or as in `convert_symbol`.
    RuntimeError
        If it was not hybridized and called.

    Example
    -------
    >>> net = mx.gluon.nn.HybridSequential()
    >>> net.add(mx.gluon.nn.Dense(4, in_units=3), mx.gluon.nn.Dense(2, in_units=4))
    >>> net.initialize()
    >>> net.hybridize()
    >>> _ = net(mx.nd.ones((1, 3)))
    >>> half = mx.contrib.amp.convert_hybrid_block(net, target_dtype='bfloat16', ctx=mx.cpu())
    >>> half(mx.nd.ones((1, 3))).shape
    (1, 2)
    """
    if not isinstance(block, HybridBlock):
        raise UsageError(f"block input should be a HybridBlock, received {type(block)}")
    if not block._cached_graph:
        raise RuntimeError("convert_hybrid_block: there is no graph of this block yet; call hybridize() and pass a batch through the block "
                           "first")
    inputs, sym = block._cached_graph
    sym = convert_symbol(sym, target_dtype, target_dtype_ops, fp32_ops, conditional_fp32_ops, excluded_sym_names,
                         [variable.name for variable in inputs], cast_optional_params)
    types = _annotated_types(sym)
    needed, aux = set(sym.list_inputs()), set(sym.list_auxiliary_states())
    arrays = {name: parameter._reduce() for name, parameter in block._by_name().items() if name in needed}
    arrays = {name: array.astype(types.get(name, array.dtype), copy=False) for name, array in arrays.items()}
    converted = SymbolBlock(sym, inputs)
    for name, parameter in converted._by_name().items():
        if name in arrays and parameter.dtype != arrays[name].dtype:
            parameter.cast(arrays[name].dtype)
    converted._by_name().load_dict({f"{'aux' if name in aux else 'arg'}:{name}": array for name, array in arrays.items()}, ctx=ctx)
    return converted


def convert_bucketing_module(bucketing_mod: BucketingModule, target_dtype: str = "float16", target_dtype_ops: Sequence[str] | None = None,
                             fp32_ops: Sequence[str] | None = None, conditional_fp32_ops: Sequence[tuple[str, str, Sequence[str]]] | None = None,
                             excluded_sym_names: Sequence[str] | None = None, cast_optional_params: bool = False) -> BucketingModule:
    """Return a BucketingModule with float32 parameters, all its buckets converted. See `convert_symbol` for the other arguments.

    Parameters
    ----------
    bucketing_mod : BucketingModule
        Bound, with parameters.

    Returns
    -------
    BucketingModule
        Not bound.

    Raises
    ------
    UsageError
        If it is no BucketingModule, or has no buckets or parameters yet; or as in `convert_symbol`.
    """
    if not isinstance(bucketing_mod, BucketingModule):
        raise UsageError(f"module should be an instance of BucketingModule, received {type(bucketing_mod)}")
    if not bucketing_mod._buckets:
        raise UsageError("convert_bucketing_module: the module has no buckets yet; call bind() first")
    if not bucketing_mod.params_initialized:
        raise UsageError("convert_bucketing_module: the Module has no parameters yet; call init_params() first")
    arg_params, aux_params = bucketing_mod.get_params()
    symbols, converted_args, converted_aux = {}, {}, {}
    for key, module in bucketing_mod._buckets.items():
        symbols[key], args, aux = convert_model(module._symbol, arg_params, aux_params, target_dtype, target_dtype_ops, fp32_ops,
                                                conditional_fp32_ops, excluded_sym_names, cast_optional_params)
        converted_args.update(args)
        converted_aux.update(aux)
    return BucketingModule.load_dict(symbols, sym_gen=bucketing_mod._sym_gen, arg_params=converted_args, aux_params=converted_aux,
                                     default_bucket_key=bucketing_mod._default_bucket_key, **bucketing_mod._module_options)


# -- the lists ---------------------------------------------------------------------------------------------------------------


def _list_of(dtype, name):
    low = _low_precision(dtype)
    module = lists.symbol_fp16 if low == "float16" else lists.symbol_bf16
    return getattr(module, name.format("FP16" if low == "float16" else "BF16"), None)


def list_lp16_ops(target_dtype: str) -> list[Any]:
    """Return the operators that run in low precision.

    Example
    -------
    >>> 'Convolution' in mx.contrib.amp.list_lp16_ops('float16')
    True
    """
    return _list_of(target_dtype, "{}_FUNCS")


def list_fp32_ops(target_dtype: str) -> list[Any]:
    """Return the operators that run in float32.

    Example
    -------
    >>> 'SoftmaxOutput' in mx.contrib.amp.list_fp32_ops('float16')
    True
    """
    return _list_of(target_dtype, "FP32_FUNCS")


def list_lp16_fp32_ops(target_dtype: str) -> list[Any]:
    """Return the operators that run in the type of their inputs.

    Example
    -------
    >>> 'relu' in mx.contrib.amp.list_lp16_fp32_ops('float16')
    True
    """
    return _list_of(target_dtype, "{}_FP32_FUNCS")


def list_conditional_fp32_ops(target_dtype: str) -> list[Any]:
    """Return the operators that run in float32 with some values of an attribute: (operator, attribute, values).

    Example
    -------
    >>> mx.contrib.amp.list_conditional_fp32_ops('float16')[0]
    ('Activation', 'act_type', ['softrelu'])
    """
    return _list_of(target_dtype, "CONDITIONAL_FP32_FUNCS")


def list_widest_type_cast(target_dtype: str) -> list[Any]:
    """Return the operators whose inputs are cast to the widest of their types.

    Example
    -------
    >>> 'elemwise_add' in mx.contrib.amp.list_widest_type_cast('float16')
    True
    """
    return _list_of(target_dtype, "WIDEST_TYPE_CASTS")


def list_loss_output_functions(target_dtype: str) -> list[Any]:
    """Return the layers that are losses themselves.

    Example
    -------
    >>> 'SoftmaxOutput' in mx.contrib.amp.list_loss_output_functions('float16')
    True
    """
    return _list_of(target_dtype, "LOSS_OUTPUT_FUNCTIONS")


def list_lp16_use_fp32_params(target_dtype: str) -> list[Any]:
    """Inputs that stay float32 where their operator runs in low precision, by operator; None for float16, which has none.

    Example
    -------
    >>> mx.contrib.amp.list_lp16_use_fp32_params('float16')
    """
    return _list_of(target_dtype, "{}_USE_FP32_PARAMS")
