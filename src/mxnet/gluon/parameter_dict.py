"""`ParameterDict`: the parameters of a block or of a whole network, by name."""
from __future__ import annotations

from collections.abc import Callable, ItemsView, Iterator, KeysView, ValuesView
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import initializer, ndarray
from ..base import MXNetError
from ..context import ctx_or_device
from ..ops.dtypes import to_torch
from .parameter import Constant, Parameter
from .utils import UsageError, _brief_print_list

if TYPE_CHECKING:
    from ..context import Context

_NAMING = "The names match only if both networks were made with the same prefix."


class _Together:
    """The methods of a dictionary of parameters that apply to all of them."""

    def values(self) -> Any:
        """Return the parameters."""
        raise NotImplementedError

    def initialize(self, init: Any = initializer.Uniform(), ctx: Context | list[Context] | None = None, verbose: bool = False,
                   force_reinit: bool = False, *, device: Context | list[Context] | None = None) -> None:
        """Initialize all parameters; `init` serves those that have none of their own. See `Parameter.initialize`."""
        if verbose:
            init.set_verbosity(verbose=verbose)
        ctx = ctx_or_device(ctx, device)
        for parameter in self.values():
            parameter.initialize(None, ctx, init, force_reinit=force_reinit)

    def zero_grad(self) -> None:
        """Set all gradients to 0."""
        for parameter in self.values():
            if parameter.grad_req != "null":
                parameter.zero_grad()

    def reset_ctx(self, ctx: Context | list[Context] | None) -> None:
        """Move all parameters to another context, or list of contexts."""
        for parameter in self.values():
            parameter.reset_ctx(ctx)

    def reset_device(self, device: Context | list[Context] | None) -> None:
        """MXNet 2's name of `reset_ctx`."""
        self.reset_ctx(device)

    def list_ctx(self) -> list[Context]:
        """All contexts that parameters are initialized on."""
        return list({ctx: None for parameter in self.values() for ctx in parameter.list_ctx()})

    def list_device(self) -> list[Context]:
        """MXNet 2's name of `list_ctx`."""
        return self.list_ctx()

    def setattr(self, name: str, value: Any) -> None:
        """Set an attribute of all parameters.

        Example
        -------
        >>> import mxnet as mx
        >>> net = mx.gluon.nn.Dense(2, in_units=3)
        >>> net.collect_params().setattr('grad_req', 'null')
        >>> net.weight.grad_req
        'null'
        """
        for parameter in self.values():
            setattr(parameter, name, value)

class PlacedParameters(dict, _Together):  # type: ignore[type-arg]
    """The parameters of a network by structural name (``'features.0.weight'``): the result of MXNet 2's `collect_params`."""

    prefix = ""

    def save(self, filename: str) -> None:
        """Write all parameters to a file, by these names."""
        ndarray.save(filename, {name: parameter._reduce() for name, parameter in self.items()})


class ParameterDict(_Together):
    """A dictionary of parameters whose names share a prefix.

    Parameters
    ----------
    prefix : str
        The prefix of the name of every parameter that `get` creates.
    shared : ParameterDict, optional
        Where `get` looks before it creates one; this is how blocks share weights.
    """

    def __init__(self, prefix: str = "", shared: ParameterDict | None = None) -> None:
        self._prefix = prefix
        self._params: dict[str, Parameter] = {}
        self._shared = shared
        self._by_place: Callable[[], dict[str, Parameter]] | None = None  # the same by where they are, if they are all of a network

    def __repr__(self) -> str:
        head = self._prefix + " " if self._prefix else ""
        return f"{head}(\n" + "\n".join(f"  {parameter}" for parameter in self.values()) + "\n)"

    @property
    def prefix(self) -> str:
        """The prefix of the names of the parameters that `get` creates."""
        return self._prefix

    def keys(self) -> KeysView[str]:
        """Return the names."""
        return self._params.keys()

    def values(self) -> ValuesView[Parameter]:
        """Return the parameters."""
        return self._params.values()

    def items(self) -> ItemsView[str, Parameter]:
        """Pairs of name and parameter."""
        return self._params.items()

    def __contains__(self, key: Any) -> bool:
        return key in self._params or self._by_place is not None and key in self._by_place()

    def __iter__(self) -> Iterator[str]:
        return iter(self._params)

    def __getitem__(self, key: Any) -> Parameter:
        """Return the parameter of a name: its own, or, of a whole network, the structural one (``'0.weight'``), as in MXNet 2."""
        parameter = self._params.get(key)
        if parameter is None and self._by_place is not None:
            parameter = self._by_place().get(key)
        return self._params[key] if parameter is None else parameter

    def _get_impl(self, name: str) -> Parameter | None:
        parameter = self._params.get(name)
        if parameter is None and self._shared is not None and name in self._shared._params:
            parameter = self._params[name] = self._shared._params[name]
        return parameter

    def get(self, name: str, **kwargs: Any) -> Parameter:
        """Return the parameter ``prefix + name``: from this dictionary, from the shared one, or new.

        Parameters
        ----------
        name : str
        **kwargs
            For `Parameter`. An existing one must agree, except that unknown sizes of shapes complete each other.

        Raises
        ------
        UsageError
            If an existing parameter does not agree.
        """
        return self._get_or_make(Parameter, name, kwargs)

    def _get_or_make(self, kind: type[Parameter], name: str, kwargs: dict[str, Any]) -> Parameter:
        """Do what `get` does, for a class of parameters."""
        name = self.prefix + name
        parameter = self._get_impl(name)
        if parameter is None:
            parameter = self._params[name] = kind(name, **kwargs)
            parameter._adopted = True
            return parameter
        for key, value in kwargs.items():
            existing = getattr(parameter, key, None)
            if existing is None:
                setattr(parameter, key, value)
                continue
            if key == "shape" and value is not None and len(value) == len(existing):
                if all(a == b or a <= 0 or b <= 0 for a, b in zip(value, existing)):
                    parameter._shape = tuple(b if a in (0, -1) else a for a, b in zip(value, existing))
                    continue
            elif key == "dtype" and to_torch(value) == to_torch(existing):
                continue
            if value is not None and value != existing:
                raise UsageError(f"Cannot retrieve Parameter '{name}': it exists with another {key}: "
                                 f"{existing}, requested {value}")
        return parameter

    def get_constant(self, name: str, value: Any = None) -> Any:
        """Return the constant ``prefix + name``, found as `get` does or made of `value`.

        Raises
        ------
        KeyError
            If there is none and no value to make it of.
        UsageError
            If there is one with another value, or a parameter that is no constant.
        """
        name = self.prefix + name
        parameter = self._get_impl(name)
        if parameter is None:
            if value is None:
                raise KeyError(f"There is no constant named '{name}'; to make one, pass its value")
            parameter = self._params[name] = Constant(name, value)
            parameter._adopted = True
        elif value is not None:
            if not isinstance(parameter, Constant):
                raise UsageError(f"'{name}' is an ordinary Parameter: call get() for it, or choose another name for the constant")
            value = value.asnumpy() if isinstance(value, ndarray.NDArray) else np.asarray(value)
            if parameter.shape != value.shape or not (parameter.value.asnumpy() == value).all():
                raise UsageError(f"Constant '{name}' already exists but its value doesn't match new value")
        return parameter

    def update(self, other: Any) -> None:
        """Take over all parameters of `other`.

        Raises
        ------
        UsageError
            If both have a different one of the same name.
        """
        own = self._params
        for name, parameter in other.items():
            if own.get(name, parameter) is not parameter:
                raise UsageError(f"update: each of the two has a Parameter of its own named '{name}': "
                                 f"{own[name]} and {parameter}; give the blocks different prefixes")
        own.update(other.items())

    def save(self, filename: str, strip_prefix: str = "") -> None:
        """Write all parameters to a file.

        Parameters
        ----------
        filename : str
        strip_prefix : str
            Cut from the beginning of the names.

        Raises
        ------
        ValueError
            If a name does not begin so.
        """
        arrays = {}
        for parameter in self.values():
            if not parameter.name.startswith(strip_prefix):
                raise ValueError(f"strip_prefix={strip_prefix!r} does not fit Parameter '{parameter.name}', which is shared with another Block, or "
                                 "whose Block was made outside of name_scope(). Block.save_parameters does not depend on names.")
            arrays[parameter.name[len(strip_prefix):]] = parameter._reduce()
        ndarray.save(filename, arrays)

    def load(self, filename: str, ctx: Context | list[Context] | None = None, allow_missing: bool = False, ignore_extra: bool = False,
             restore_prefix: str = "", cast_dtype: bool = False, dtype_source: str = "current", *,
             device: Context | list[Context] | None = None) -> None:
        """Read parameters from a file; see `load_dict`."""
        self._check_prefix(restore_prefix)
        ctx = ctx_or_device(ctx, device)
        self.load_dict(ndarray.load(filename), ctx, allow_missing, ignore_extra, restore_prefix, filename, cast_dtype, dtype_source)

    def _check_prefix(self, prefix: str) -> None:
        for name in self.keys() if prefix else ():
            if not name.startswith(prefix):
                raise UsageError(f"restore_prefix is '{prefix}' but Parameters name '{name}' does not start with "
                                 f"'{prefix}'; were child blocks created outside of 'with name_scope()'?")

    def load_dict(self, param_dict: Any, ctx: Context | list[Context] | None = None, allow_missing: bool = False, ignore_extra: bool = False,
                  restore_prefix: str = "", filename: str | None = None, cast_dtype: bool = False, dtype_source: str = "current", *,
                  device: Context | list[Context] | None = None) -> None:
        """Take values from a dictionary of arrays.

        Parameters
        ----------
        param_dict : dict of str to NDArray
            Names may begin with ``arg:`` or ``aux:``, as in checkpoints.
        ctx : Context or list of Context, optional
            Where parameters go that are not initialized; the CPU by default. `device` is its name in MXNet 2.
        allow_missing, ignore_extra : bool
            Accept that parameters, or entries of the dictionary, have no counterpart.
        restore_prefix : str
            Put before the names.
        filename : str, optional
            For error messages.
        cast_dtype : bool
            Accept values of another type.
        dtype_source : {'current', 'saved'}
            The type to keep then: the parameter's (current) or the file's (saved).

        Raises
        ------
        UsageError
            If names, shapes or types do not fit.
        """
        ctx = ctx_or_device(ctx, device)
        if isinstance(param_dict, list) and any(not isinstance(pair, tuple) for pair in param_dict):
            raise MXNetError(f"{filename or 'param_dict'} holds a list of {len(param_dict)} arrays without names; parameters are needed by name")
        pairs = param_dict.items() if isinstance(param_dict, dict) else param_dict
        loaded = {restore_prefix + (name[4:] if name.startswith(("arg:", "aux:")) else name): array for name, array in pairs}
        source, cut = f"file: {filename}" if filename else "param_dict", len(restore_prefix)
        if not allow_missing:
            for name in self.keys():
                if name not in loaded:
                    raise UsageError(f"{source} lacks Parameter '{name[cut:]}', it has "
                                     f"{_brief_print_list(loaded)}. {_NAMING}")
        extra = [name for name in loaded if name not in self._params]
        if extra and not ignore_extra:
            raise UsageError(f"{source} has '{extra[0][cut:]}', but there is no such Parameter here, only "
                             f"{_brief_print_list(self._params)}; ignore_extra=True leaves it out. {_NAMING}")
        for name, array in loaded.items():
            if name in self._params:
                self._params[name]._load_init(array, ctx, cast_dtype=cast_dtype, dtype_source=dtype_source)
