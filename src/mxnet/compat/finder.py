"""The resolution of the paths and names in `table`, by an import hook for ``mxnet.*``.

A path without a file becomes a module that forwards attributes; a module with a file gets missing attributes from the table, after its own names
and its own ``__getattr__``. Imports are lazy, and no names are added to modules: a ``sum`` in a module would shadow Python's in the module's own
code. Two modules that are read very often are the exception.
"""
from __future__ import annotations

import contextlib
import functools
import importlib
import importlib.util
import sys
import types
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec, PathFinder
from typing import Any

from ..lazy_modules import load_module
from ..suggestions import MissingAttributeError
from .table import BRINGS, COMMON, NAMES, OFTEN_READ, SUGGESTING

_MISSING = object()
# Modules with missing attributes: those of the table, and the parents of its paths.
_LACKING = {*NAMES, *SUGGESTING, *(path.rpartition(".")[0] for path in NAMES)}


@functools.cache
def entry(path: str) -> tuple[dict[str, str], list[str]]:
    """Parse the table's entry of a module.

    Returns
    -------
    tuple of (dict, list)
        Names and their targets (``"module"`` or ``"module:attribute"``), and modules with the remaining names.
    """
    names: dict[str, str] = {}
    elsewhere: list[str] = []
    source = ""
    for word in NAMES.get(path, "").split():
        name, _, target = word.partition("=")
        target = target or name
        if word.endswith(":"):
            source = word
        elif word == "*":
            elsewhere.append(source[:-1])
        else:
            names[name] = source + target if source else COMMON.get(target, target)
    return names, elsewhere


def _follow(target: str) -> Any:
    module, _, attribute = target.partition(":")
    return functools.reduce(getattr, filter(None, attribute.split(".")), load_module(module))


def lookup(path: str, own: Callable[[str], Any] | None, name: str) -> Any:
    """Return the object for `name` in the module `path`.

    Parameters
    ----------
    path : str
    own : callable or None
        The module's own ``__getattr__``, which has precedence.
    name : str

    Raises
    ------
    AttributeError
        If neither has the name, or its target is not installed.
    """
    inner = f"{path}.{name}"
    missing: AttributeError = MissingAttributeError(path, name)
    if own is not None:
        try:
            return own(name)
        except AttributeError as error:
            missing = error
    if not name.startswith("__"):
        names, elsewhere = entry(path)
        if name in names:
            try:
                return _follow(names[name])
            except ImportError as error:
                raise AttributeError(f"module '{path}' has no attribute '{name}': it leads to {names[name]} ({error})") from error
        if inner in NAMES:
            return load_module(inner)
        for module in elsewhere:
            value = getattr(load_module(module), name, _MISSING)
            if value is not _MISSING:
                return value
    raise missing


def complete(module: types.ModuleType) -> None:
    """Add the table's names to a module, after the module's own."""
    if module.__name__ in OFTEN_READ:
        for name, target in entry(module.__name__)[0].items():
            with contextlib.suppress(ImportError):
                vars(module).setdefault(name, _follow(target))
        for path in NAMES:
            if path.rpartition(".")[0] == module.__name__:
                importlib.import_module(path)
        return
    vars(module)["__getattr__"] = functools.partial(lookup, module.__name__, module.__dict__.get("__getattr__"))


class _Completing:
    """The loader of a module with missing attributes; it is not visible in the loaded module."""

    def __init__(self, loader: Any):
        self._loader = loader

    def create_module(self, spec: ModuleSpec) -> types.ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: types.ModuleType) -> None:
        vars(module)["__loader__"] = self._loader
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        self._loader.exec_module(module)
        complete(module)
        for path in NAMES:  # namespaces that the module has created itself, such as mx.nd._internal
            made = sys.modules.get(path) if path.startswith(f"{module.__name__}.") else None
            if made is not None and made.__spec__ is None:
                complete(made)


class _Leading:
    """The loader of a path without a file: the module that has all of its names, or else an empty one that forwards attributes."""

    @staticmethod
    def create_module(spec: ModuleSpec) -> types.ModuleType:
        return types.ModuleType(spec.name, f"Holds nothing of its own: it {spec.origin}.")

    @staticmethod
    def exec_module(module: types.ModuleType) -> None:
        names, elsewhere = entry(module.__name__)
        if len(elsewhere) == 1 and not names:
            sys.modules[module.__name__] = importlib.import_module(elsewhere[0])
            return
        complete(module)

        def listed() -> list[str]:
            forwarded = (name for source in elsewhere for name in dir(importlib.import_module(source)) if name[:2] != "__")
            return sorted({*vars(module), *names, *forwarded})

        vars(module)["__dir__"] = listed


class _Same:
    """The loader of a module that is already loaded under another name."""

    def __init__(self, real: str):
        self._real = real

    @staticmethod
    def create_module(spec: ModuleSpec) -> types.ModuleType:
        return types.ModuleType(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        sys.modules[module.__name__] = importlib.import_module(self._real)


class Finder:
    """The finder of the table's modules; all others are left to the next finders."""

    @staticmethod
    def find_spec(fullname: str, path: Sequence[str] | None = None, target: types.ModuleType | None = None) -> ModuleSpec | None:
        """Return the spec of a module that the table completes or creates."""
        if not fullname.startswith("mxnet."):
            return None
        parent, _, name = fullname.rpartition(".")
        real = getattr(sys.modules.get(parent), "__name__", parent)
        loader: Any  # the protocol of loaders; their base class is slow to import
        if real != parent:  # an alias of a package, which has all of the package's modules
            loader = _Same(f"{real}.{name}")
            return ModuleSpec(fullname, loader) if importlib.util.find_spec(f"{real}.{name}") else None
        if fullname not in _LACKING:
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is not None:
            loader = _Completing(spec.loader)
            spec.loader = loader
        elif fullname in NAMES:
            origin = f"leads to {', '.join(entry(fullname)[1]) or 'what programs import from it'}"
            loader = _Leading
            spec = ModuleSpec(fullname, loader, origin=origin, is_package=any(p.startswith(f"{fullname}.") for p in NAMES))
        return spec


def install() -> None:
    """Insert the finder before the others, once, and import the modules that programs expect to be imported."""
    for name in BRINGS:
        importlib.import_module(name)
    if Finder not in sys.meta_path:
        sys.meta_path.insert(0, Finder)
