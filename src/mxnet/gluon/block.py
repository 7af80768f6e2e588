"""`Block`: the base class of layers and networks."""
from __future__ import annotations

import functools
import re
import threading
import warnings
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from .. import initializer, interrupts, ndarray
from .. import name as naming
from ..base import MXNetError
from ..context import ctx_or_device
from ..suggestions import suggests_arguments
from ..util import is_np_array, version
from .parameter import Parameter
from .parameter_dict import ParameterDict, PlacedParameters
from .recurrent_vectors import split_vectors
from .structure import load_structure, save_structure
from .summary import print_summary
from .utils import ExtraParameterError, HookHandle, UsageError, _brief_print_list, _indent

if TYPE_CHECKING:
    from ..context import Context
    from ..initializer import Initializer

if TYPE_CHECKING:
    # Stand above this module; programs find them here too: `compat.table` leads to them.
    from .hybrid_block import HybridBlock
    from .symbol_block import SymbolBlock

__all__ = ["Block", "HybridBlock", "SymbolBlock"]


class _Current(threading.local):
    value: _BlockScope | None = None  # the innermost scope


class _BlockScope(interrupts.Scope):
    """The context manager of ``block.name_scope()``: blocks and parameters created inside it get the block's prefix."""

    _current, _blocks = _Current(), interrupts.Blocks()

    def __init__(self, block: Block) -> None:
        self._block = block
        self._counter: dict[str, int] = {}

    @staticmethod
    def create(prefix: str | None, params: ParameterDict | None, hint: str) -> tuple[str, ParameterDict]:
        """Return the full prefix of a new block, and its ParameterDict."""
        scope = _BlockScope._current.value
        if scope is None:
            if prefix is None:
                prefix = naming.current().get(None, hint) + "_"
            return prefix, ParameterDict(prefix) if params is None else ParameterDict(params.prefix, params)
        if prefix is None:
            number = scope._counter.get(hint, 0)
            scope._counter[hint] = number + 1
            prefix = f"{hint}{number}_"
        if params is None:
            parent = scope._block.params
            params = ParameterDict(parent.prefix + prefix, parent._shared)
        else:
            params = ParameterDict(params.prefix, params)
        return scope._block.prefix + prefix, params

    def _changes(self) -> Sequence[functools.partial[None]]:
        outer = self._current.value
        inner, manager = (outer, naming.current()) if self._block._empty_prefix else (self, naming.Prefix(self._block.prefix))
        return [interrupts.both(functools.partial(setattr, self._current, "value", scope), naming_too)
                for scope, naming_too in zip((inner, outer), manager._changes())]


class Block:
    """The base of all layers and networks.

    A subclass makes its children and parameters in ``__init__``, as attributes, and computes in `forward`.

    Parameters
    ----------
    prefix : str, optional
        The prefix of the names of the block's parameters and children; by default made of the class's name and a number.
    params : ParameterDict, optional
        Parameters to share instead of making new ones, such as ``other.collect_params()``.

    Example
    -------
    >>> import mxnet as mx
    >>> class Net(mx.gluon.Block):
    ...     def __init__(self, **kwargs):
    ...         super().__init__(**kwargs)
    ...         with self.name_scope():
    ...             self.hidden = mx.gluon.nn.Dense(4, activation='relu')
    ...             self.out = mx.gluon.nn.Dense(2)
    ...     def forward(self, x):
    ...         return self.out(self.hidden(x))
    >>> net = Net()
    >>> net.initialize()
    >>> net(mx.nd.ones((3, 5))).shape
    (3, 2)
    """

    _has_row = True  # in the table that `summary` prints
    _exchanges_rows = False  # True for a split layer or its loss, which are no parts of graphs

    @suggests_arguments
    def __init__(self, prefix: str | None = None, params: ParameterDict | None = None) -> None:
        self._prefix, self._params = _BlockScope.create(prefix, params, self._alias())
        self._name, self._empty_prefix = self._prefix.removesuffix("_"), prefix == ""
        self._scope = _BlockScope(self)
        self._reg_params: dict[str, Parameter] = {}
        self._children: dict[str, Any] = OrderedDict()
        self._forward_hooks: dict[int, Callable[..., Any]] = OrderedDict()
        self._forward_pre_hooks: dict[int, Callable[..., Any]] = OrderedDict()

    def __repr__(self) -> str:
        blocks = {key: value for key, value in self.__dict__.items() if isinstance(value, Block)}
        return f"{type(self).__name__}(\n{describe_blocks(blocks)}\n)"

    def _repr_html_(self) -> str:
        from .summary import html_of
        return html_of(self)

    def __setattr__(self, name: str, value: Any) -> None:
        existing = self.__dict__.get(name)
        if isinstance(existing, (Parameter, Block)) and not isinstance(value, type(existing)):
            raise TypeError(f"Changing attribute type for {name} from {type(existing)} to {type(value)} is not allowed.")
        if isinstance(value, Parameter):
            if name in self._reg_params:
                raise UsageError(f"Attribute {name} of {self.name} is a Parameter already and can't be replaced. To share Parameters with another "
                                 "block, hand them to its constructor as params=")
            self._reg_params[name] = value
            if is_np_array() or not value.name:  # MXNet 2's style: an attribute is a parameter of the block, and names it
                if not value._adopted:
                    value.name, value._adopted = self.prefix + name, True
                self._params._params.setdefault(value.name, value)
        elif isinstance(value, Block):
            self.register_child(value, name)
        super().__setattr__(name, value)

    def _alias(self) -> str:
        return type(self).__name__.lower()

    # -- names and parameters ------------------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        """The prefix without the underscore at its end."""
        return self._name

    @property
    def params(self) -> ParameterDict:
        """The block's own parameters, without those of its children."""
        return self._params

    @property
    def prefix(self) -> str:
        """The prefix of the names of the block's parameters."""
        return self._prefix

    def name_scope(self) -> _BlockScope:
        """To be entered by ``with`` while making children, so that they get this block's prefix."""
        return self._scope

    def collect_params(self, select: str | None = None) -> ParameterDict | PlacedParameters:
        """Return the parameters of this block and all below it.

        Keyed by their own names; a structural name (``params['0.weight']``) is accepted, too. After ``mx.util.set_version('2.0')`` it is a dict by
        where they are, as in MXNet 2.

        Parameters
        ----------
        select : str, optional
            A regular expression that the names must match from their beginning on, such as ``'.*weight|.*bias'``.

        Returns
        -------
        ParameterDict or PlacedParameters
        """
        self._check_container_with_block()
        pattern = re.compile(select) if select else None
        if version() == "2.0":
            placed = self._collect_params_with_prefix()
            return PlacedParameters({n: p for n, p in placed.items() if pattern is None or pattern.match(n)})
        parameters = ParameterDict(self._params.prefix)
        parameters._by_place = self._collect_params_with_prefix if pattern is None else None
        parameters.update({n: p for n, p in self.params.items() if pattern is None or pattern.match(n)})
        for child in self._children.values():
            parameters.update(child.collect_params(select=select))
        return parameters

    def _by_name(self) -> ParameterDict:
        """Return the parameters of `collect_params`, keyed by their own names, which are the names of the graph's variables."""
        parameters = self.collect_params()
        if isinstance(parameters, ParameterDict):
            return parameters
        named = ParameterDict(self._params.prefix)
        named._params.update({parameter.name: parameter for parameter in parameters.values()})
        return named

    def _check_container_with_block(self) -> None:
        """Warn of blocks in lists and dictionaries, whose parameters `collect_params` does not find."""
        for key, value in self.__dict__.items():
            # Most containers of a block are its own tables, and empty: programs call collect_params() in every step.
            if isinstance(value, (list, tuple, dict)) and value and key not in ("_children", "_reg_params") and not key.startswith("__") \
                    and _holds_others(value, {id(child) for child in self._children.values()}):
                warnings.warn(f"{type(self).__name__}.{key} is a {type(value).__name__} with unregistered Blocks: their Parameters are left out. "
                              "Call register_child() for each of them, or keep them in an nn.Sequential or nn.HybridSequential.", stacklevel=3)

    def _collect_params_with_prefix(self, prefix: str = "") -> dict[str, Parameter]:
        """Return the parameters by structural name (``features.0.weight``), which does not depend on prefixes."""
        if prefix:
            prefix += "."
        parameters = {prefix + name: parameter for name, parameter in self._reg_params.items()}
        for name, child in self._children.items():
            parameters.update(child._collect_params_with_prefix(prefix + name))
        return parameters

    def share_parameters(self, shared: ParameterDict | dict[str, Parameter] | None) -> Block:
        """Take over parameters of another block, so that both have the same ones from then on.

        Parameters
        ----------
        shared : dict of str to Parameter, or ParameterDict
            By structural name (``features.0.weight``), or the result of ``collect_params()`` of a block of the same structure.

        Returns
        -------
        Block
            This one. Parameters that it has no place for are warned of.

        Raises
        ------
        ValueError
            If `shared` is no dict.

        Example
        -------
        >>> import mxnet as mx
        >>> one, other = mx.gluon.nn.Dense(2), mx.gluon.nn.Dense(2)
        >>> other.share_parameters(one.collect_params()).weight is one.weight
        True
        """
        if shared is None:
            return self
        if not isinstance(shared, (dict, ParameterDict)):
            raise ValueError(f"share_parameters: a dict of Parameters expected, received {type(shared)}; collect_params() gives one")
        given = {name.removeprefix(shared.prefix): parameter for name, parameter in shared.items()} if isinstance(shared, ParameterDict) else shared
        left = set(given) - self._take_parameters(given, "", self.prefix)
        if left:
            warnings.warn(f"share_parameters: {self.name} has no place for {', '.join(sorted(left))}", stacklevel=2)
        return self

    def _take_parameters(self, shared: dict[str, Parameter], path: str, root: str) -> set[str]:
        """Replace parameters of this block and its descendants by shared ones; return the names used."""
        used = set()
        for name, own in list(self._reg_params.items()):
            key = next((k for k in (path + name, own.name.removeprefix(root)) if k in shared), None)
            if key is None:
                continue
            used.add(key)
            self._params._params = {(shared[key] if p is own else p).name: shared[key] if p is own else p for p in self._params.values()}
            del self._reg_params[name], self.__dict__[name]
            setattr(self, name, shared[key])
            self._params.update({shared[key].name: shared[key]})
        for name, child in self._children.items():
            used |= child._take_parameters(shared, f"{path}{name}.", root)
        return used

    def zero_grad(self) -> None:
        """Set the gradients of all parameters to 0."""
        self.collect_params().zero_grad()

    def reset_ctx(self, ctx: Context | list[Context] | None) -> None:
        """Move all parameters to another context, or list of contexts."""
        self.collect_params().reset_ctx(ctx)

    def reset_device(self, device: Context | list[Context] | None) -> None:
        """MXNet 2's name of `reset_ctx`."""
        self.reset_ctx(device)

    def setattr(self, name: str, value: Any) -> None:
        """Set an attribute of all parameters, such as ``grad_req`` to ``'null'``."""
        self.collect_params().setattr(name, value)

    def register_child(self, block: Block, name: str | None = None) -> None:
        """Make `block` a child. A block assigned to an attribute becomes one automatically."""
        self._children[str(len(self._children)) if name is None else name] = block

    def apply(self, fn: Callable[[Any], Any]) -> Block:
        """Call ``fn(block)`` on all blocks, children first; returns this block."""
        for child in self._children.values():
            child.apply(fn)
        fn(self)
        return self

    def initialize(self, init: Initializer | str | Callable[..., Any] = initializer.Uniform(), ctx: Context | list[Context] | None = None,
                   verbose: bool = False, force_reinit: bool = False, *, device: Context | list[Context] | None = None) -> None:
        """Initialize all parameters.

        Parameters
        ----------
        init : Initializer
            For parameters without an initializer of their own.
        ctx : Context or list of Context, optional
            Where copies are kept; the current context by default. `device` is its name in MXNet 2.
        verbose : bool
            Print the initial value of each parameter.
        force_reinit : bool
            Reinitialize parameters that are initialized already.
        """
        self.collect_params().initialize(init, ctx_or_device(ctx, device), verbose, force_reinit)

    def cast(self, dtype: Any) -> None:
        """Convert all parameters to another type."""
        for child in self._children.values():
            child.cast(dtype)
        for parameter in self.params.values():
            parameter.cast(dtype)

    def hybridize(self, active: bool = True, **kwargs: Any) -> None:
        """Hybridize the children that are HybridBlocks; see `HybridBlock.hybridize`."""
        for child in self._children.values():
            child.hybridize(active, **kwargs)

    # -- calling ---------------------------------------------------------------------------------------------------------

    def __call__(self, *args: Any) -> Any:
        if self._forward_pre_hooks:
            for hook in list(self._forward_pre_hooks.values()):
                hook(self, args)
        out = self.forward(*args)
        if self._forward_hooks:
            for hook in list(self._forward_hooks.values()):
                hook(self, args, out)
        return out

    def forward(self, *args: Any) -> Any:
        """Compute the outputs; a subclass must define this."""
        raise NotImplementedError(f"{type(self).__name__} must define forward(self, *args)")

    def register_forward_pre_hook(self, hook: Callable[..., Any]) -> HookHandle:
        """Call ``hook(block, inputs)`` before every `forward`.

        Returns
        -------
        HookHandle
            Takes it off again.
        """
        handle = HookHandle()
        handle.attach(self._forward_pre_hooks, hook)
        return handle

    def register_forward_hook(self, hook: Callable[..., Any]) -> HookHandle:
        """Call ``hook(block, inputs, output)`` after every `forward`; returns a handle that takes it off again."""
        handle = HookHandle()
        handle.attach(self._forward_hooks, hook)
        return handle

    def register_op_hook(self, callback: Callable[..., Any], monitor_all: bool = False) -> None:
        """Call ``callback(name, operator, array)`` for each operator's outputs in hybridized children, and for gradients in backward.

        Parameters
        ----------
        callback : callable
            May use the array as it is, or cast it to a handle as with MXNet: ``NDArray(ctypes.cast(array, NDArrayHandle), writable=False)``.
        monitor_all : bool
            For inputs too.
        """
        for child in self._children.values():
            child.register_op_hook(callback, monitor_all)

    def summary(self, *inputs: Any) -> None:
        """Print a table of the layers with their output shapes and numbers of parameters, found by passing `inputs` through.

        In notebooks it is an HTML table.

        Raises
        ------
        UsageError
            If the network is hybridized.
        """
        print_summary(self, inputs)

    # -- files -----------------------------------------------------------------------------------------------------------

    def save_parameters(self, filename: str, deduplicate: bool = False) -> None:
        """Write all parameters, for `load_parameters` of the same structure.

        Parameters
        ----------
        filename : str
        deduplicate : bool
            Write a parameter that several blocks share only once.
        """
        parameters = self._collect_params_with_prefix()
        if deduplicate:
            last = {id(p): n for n, p in parameters.items()}
            parameters = {n: parameters[n] for n in last.values()}
        ndarray.save(filename, {name: parameter._reduce() for name, parameter in parameters.items()})

    def load_parameters(self, filename: str, ctx: Context | list[Context] | None = None, allow_missing: bool = False, ignore_extra: bool = False,
                        cast_dtype: bool = False, dtype_source: str = "current", *, device: Context | list[Context] | None = None) -> None:
        """Read a file of `save_parameters`, or of an older version of it.

        Parameters
        ----------
        filename : str
        ctx : Context or list of Context, optional
            Where parameters go that are not initialized; the CPU by default. `device` is its name in MXNet 2.
        allow_missing, ignore_extra : bool
            Accept that parameters, or entries of the file, have no counterpart.
        cast_dtype : bool
            Accept values of another type.
        dtype_source : {'current', 'saved'}
            The type to keep then: the parameter's (current) or the file's (saved).

        Raises
        ------
        UsageError
            If a parameter is missing in the file, or a shape or type does not fit.
        ExtraParameterError
            If the file has an entry that is no parameter here; it is a ValueError, too.
        """
        loaded = ndarray.load(filename)
        if not loaded and not self._collect_params_with_prefix():
            return
        if not isinstance(loaded, dict):
            raise MXNetError(f"{filename} holds a list of arrays without names; parameters are needed by name")
        if any("." in name for name in loaded) and any(name.startswith(("arg:", "aux:")) for name in loaded):  # exported by MXNet 2
            loaded = {name.removeprefix("arg:").removeprefix("aux:"): array for name, array in loaded.items()}
        self._load(loaded, filename, ctx_or_device(ctx, device), allow_missing, ignore_extra, cast_dtype, dtype_source)

    def _load(self, loaded: dict[str, Any], filename: str, ctx: Context | list[Context] | None, allow_missing: bool, ignore_extra: bool,
              cast_dtype: bool, dtype_source: str, own: bool = True) -> None:
        """Load parameters from a dict, which is emptied; with `own` the arrays belong to the caller alone and need no copy."""
        loaded = split_vectors(self, loaded)
        parameters = self._collect_params_with_prefix()
        if not any("." in name for name in loaded) and set(loaded) != set(parameters):
            # Written by save_params, ParameterDict.save or export: by the parameters' own names.
            named = self._by_name()
            named._check_prefix(self.prefix)
            named.load_dict(loaded, ctx, allow_missing, ignore_extra, self.prefix, filename, cast_dtype, dtype_source)
            return
        if not allow_missing:
            present = {id(p) for n, p in parameters.items() if n in loaded}  # a shared one may be there under any of its names
            for name, parameter in parameters.items():
                if id(parameter) not in present:
                    raise UsageError(f"'{filename}' lacks Parameter '{name}', it has {_brief_print_list(loaded)}; "
                                     "allow_missing=True leaves such Parameters as they are")
        extra = [name for name in loaded if name not in parameters]
        if extra and not ignore_extra:
            raise ExtraParameterError(f"'{filename}' has '{extra[0]}', the network has no such Parameter, only "
                                      f"{_brief_print_list(parameters)}; ignore_extra=True leaves it out")
        for name in list(loaded):
            array = loaded.pop(name)  # which leaves it to the parameter alone
            if name in parameters:
                parameters[name]._load_init(array, ctx, cast_dtype=cast_dtype, dtype_source=dtype_source, own=own)

    def load_dict(self, param_dict: dict[str, Any], ctx: Context | list[Context] | None = None, allow_missing: bool = False,
                  ignore_extra: bool = False, cast_dtype: bool = False, dtype_source: str = "current", *,
                  device: Context | list[Context] | None = None) -> None:
        """Load the parameters' values from a dict of arrays, keyed by structural name or by own name; see `load_parameters`.

        Parameters
        ----------
        param_dict : dict of str to NDArray
            Names may begin with ``arg:`` or ``aux:``, as in checkpoints.
        ctx, allow_missing, ignore_extra, cast_dtype, dtype_source, device
            As in `load_parameters`.

        Example
        -------
        >>> import mxnet as mx
        >>> net = mx.gluon.nn.Dense(2)
        >>> net.load_dict({'weight': mx.nd.ones((2, 3)), 'bias': mx.nd.zeros((2,))})
        >>> net(mx.nd.ones((1, 3))).asnumpy()
        array([[3., 3.]], dtype=float32)
        """
        arrays = {name.removeprefix("arg:").removeprefix("aux:"): array for name, array in param_dict.items()}
        self._load(arrays, "param_dict", ctx_or_device(ctx, device), allow_missing, ignore_extra, cast_dtype, dtype_source, own=False)

    def save_params(self, filename: str) -> None:
        """Write all parameters by their own names instead of structural names: the old form of `save_parameters`."""
        warnings.warn("save_params is deprecated: call save_parameters, or export for a file that SymbolBlock can load", stacklevel=2)
        try:
            self._by_name().save(filename, strip_prefix=self.prefix)
        except ValueError as error:
            raise ValueError(f"{error}\nsave_parameters does not depend on prefixes: call it in place of save_params") from None

    def load_params(self, filename: str, ctx: Context | list[Context] | None = None, allow_missing: bool = False,
                    ignore_extra: bool = False) -> None:
        """The old name of `load_parameters`."""
        warnings.warn("load_params is the old name; call load_parameters", stacklevel=2)
        self.load_parameters(filename, ctx, allow_missing, ignore_extra)

    def save(self, prefix: str) -> None:
        """Write structure and parameters, to ``<prefix>-model.json`` and ``<prefix>-model.params``, for `load`."""
        save_structure(self, f"{prefix}-model.json")
        self.save_parameters(f"{prefix}-model.params")

    def load(self, prefix: str) -> None:
        """Read the files of `save` into a network that was built in the same order.

        Names come back as they were, and hybridized blocks with the graphs they had.
        """
        load_structure(self, f"{prefix}-model.json")
        self.load_parameters(f"{prefix}-model.params")


def _holds_others(value: Any, known: set[int]) -> bool:
    """Return True if `value` holds, at any depth, a block whose id is not in `known`."""
    if isinstance(value, Block):
        return id(value) not in known
    if isinstance(value, (list, tuple)):
        return any(_holds_others(v, known) for v in value)
    return isinstance(value, dict) and any(_holds_others(v, known) for v in value.values())


def describe_blocks(blocks: dict[str, Any]) -> str:
    """Return the lines of a block's repr that show its children."""
    return "\n".join(f"  ({key}): {_indent(repr(block), 2)}" for key, block in blocks.items())
