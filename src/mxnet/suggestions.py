"""Suggestions for unknown names: errors about a name end with similarly spelled known names."""
from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Iterable
from typing import Any

_RELU = "put the addition and an Activation behind a BatchNorm: on a GPU they train as one kernel here anyway"
_GROUP = "SyncBatchNorm normalizes over several devices"
_CUDNN = "torch has cuDNN choose its algorithms"
# Names that exist only in NVIDIA's builds of MXNet, their replacements, and the names that identify the context in which they occur.
OF_NVIDIA = {**dict.fromkeys(("BatchNormAddRelu", "FusedBatchNormAddRelu"), (_RELU, {"BatchNorm"})), "act_type": (_RELU, {"momentum"}),
             **dict.fromkeys(("bn_group", "xbuf_ptr"), (_GROUP, {"momentum"})),
             **dict.fromkeys(("cudnn_algo_fwd", "cudnn_algo_bwd_data", "cudnn_algo_bwd_filter", "cudnn_algo_verbose", "cudnn_algo_fwd_prec",
                              "cudnn_algo_bwd_prec", "cudnn_tensor_core", "cudnn_tensor_core_only"), (_CUDNN, {"kernel", "kernel_size"}))}


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return ``"; did you mean 'a' or 'b'?"``, the names in `known` that are spelled much like `name`; nothing where none is.

    For names that exist only in NVIDIA's builds of MXNet it returns their replacement.

    Example
    -------
    >>> from mxnet.suggestions import did_you_mean
    >>> did_you_mean("sdg", ["sgd", "adam"])
    "; did you mean 'sgd'?"
    """
    import difflib  # only failures need it
    if not isinstance(name, str):
        return ""
    place, beside = OF_NVIDIA.get(name, ("", frozenset()))
    if beside and not beside.isdisjoint(known):
        return f", which only NVIDIA's own MXNet has: {place}."
    spelled: dict[str, str] = {}
    for candidate in known:
        spelled.setdefault(candidate.lower(), candidate)
    close = [spelled[c] for c in difflib.get_close_matches(name.lower(), spelled, 3)]
    close += [c for c in spelled.values() if len(name) > 1 and "".join(word[:1] for word in c.split("_")) == name and c not in close]
    return f"; did you mean {' or '.join(map(repr, close))}?" if close else ""


class MissingAttributeError(AttributeError):
    """A module has no attribute of the requested name; the text lists similarly spelled ones.

    The similar names are computed when the text is read, since programs probe modules with `hasattr`.
    """

    def __init__(self, module: str, name: str):
        super().__init__(f"module '{module}' has no attribute '{name}'", obj=self)  # `obj` disables Python's own suggestions
        self._module, self._missing = module, name

    def __reduce__(self) -> tuple[Any, ...]:
        return AttributeError, (str(self),)

    def __str__(self) -> str:
        names = [n for n in dir(sys.modules.get(self._module)) if n.startswith("_") == self._missing.startswith("_")]
        return f"{self.args[0]}{did_you_mean(self._missing, names)}"


def suggests_arguments(init: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate an ``__init__`` that receives keywords from subclasses: the error for an unknown keyword lists similarly spelled ones."""
    @functools.wraps(init)
    def checked(self, *args, **kwargs):
        try:
            init(self, *args, **kwargs)
        except TypeError as error:
            unknown = [k for k in kwargs if k not in inspect.signature(init).parameters]
            if not unknown:
                raise
            raise TypeError(f"{type(self).__name__}: {unexpected_argument(type(self), unknown[0])}") from error

    return checked


def _arguments(cls):
    """Return the names of the arguments that a class accepts, and True if it accepts any other keyword as well."""
    known: dict[str, Any] = {}
    for base in cls.__mro__:
        if "__init__" in vars(base) and base is not object:
            parameters = inspect.signature(base.__init__).parameters
            known.update({n: None for n, p in parameters.items() if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY) and n != "self"})
            if all(p.kind is not p.VAR_KEYWORD for p in parameters.values()):
                return known, False
    return known, True


def unknown_arguments(cls: type, keywords: Iterable[str]) -> list[str]:
    """Return those of the keywords that no ``__init__`` of a class accepts; none if it accepts any keyword."""
    known, more = _arguments(cls)
    return [] if more else [k for k in keywords if k not in known]


def unexpected_argument(cls: type, name: str) -> str:
    """Return the error text for a keyword that no ``__init__`` of a class accepts, with the accepted arguments."""
    known, _ = _arguments(cls)
    hint = did_you_mean(name, known)
    return f"unexpected argument '{name}'{hint + ' The' if hint else '; the'} arguments are {', '.join(known)}"


def shortened(value: Any, length: int = 80) -> str:
    """Return the shortened ``repr`` of a value for an error's text; for an array its type and shape."""
    shape = getattr(value, "shape", None)
    if isinstance(shape, tuple) and hasattr(value, "dtype"):
        return f"an array of shape {shape} and type {value.dtype}"
    if isinstance(value, (list, tuple)) and len(value) > 8:
        return f"a {type(value).__name__} of {len(value)} items"
    text = repr(value)
    return text if len(text) <= length else f"{text[:length - 3]}..."


def type_names(values: Iterable[Any]) -> str:
    """Return the names of the values' types for an error's text, each once; "nothing" where there is no value.

    Example
    -------
    >>> from mxnet.suggestions import type_names
    >>> type_names([1, "a", 2])
    'int, str'
    """
    return ", ".join(sorted({type(value).__name__ for value in values})) or "nothing"
