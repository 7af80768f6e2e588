"""How the paths and names in `table` come about: an import hook for ``mxnet.*``, and nothing else.

A path without a file of its own becomes a module that leads on; a module with a file gets what it lacks from the table, after its own names
and its own ``__getattr__``. Nothing is imported before it is asked for, and nothing is put into a module: a ``sum`` in it would hide Python's
from the module's own code. Two modules that are read all the time are the exception.
"""
import contextlib
import functools
import importlib
import importlib.util
import operator
import os
import sys
import threading
import types
from importlib.machinery import ModuleSpec, PathFinder

from ..suggestions import MissingAttributeError
from .table import BRINGS, COMMON, CUSTOM_OPERATORS, NAMES, OFTEN_READ, SUGGESTING

_MISSING = object()
_PATIENCE = 5.0  # seconds; an import may wait for another thread that wants to import, too
_one_at_a_time, _after_fork = threading.RLock(), threading.RLock()
if hasattr(os, "register_at_fork"):  # in the child nobody is left to release the first
    os.register_at_fork(after_in_child=functools.partial(operator.setitem, globals(), "_one_at_a_time", _after_fork))
# Modules that lack something: those of the table, and those that a path of the table lies in.
_LACKING = {*NAMES, *SUGGESTING, *(path.rpartition(".")[0] for path in NAMES)}


@functools.cache
def entry(path):
    """What the table says of a module.

    Returns
    -------
    tuple of (dict, list)
        Names and where they lead (``"module"`` or ``"module:attribute"``), and modules that have the remaining names.
    """
    names, elsewhere, source = {}, [], ""
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


def load(name):
    """Import a module for somebody who asks for an attribute: for one thread at a time.

    Of two threads of which one imports a package and the other a module of it, Python takes each to wait for the other, and fails (its issue 83065).
    """
    if (module := sys.modules.get(name)) is not None and not getattr(module.__spec__, "_initializing", False):
        return module
    lock = _one_at_a_time
    taken = lock.acquire(timeout=_PATIENCE)
    try:
        return importlib.import_module(name)
    finally:
        if taken:
            lock.release()


def _follow(target):
    module, _, attribute = target.partition(":")
    return functools.reduce(getattr, filter(None, attribute.split(".")), load(module))


def register_custom_operator(op_type):
    """Import the module that registers this operator for `Custom`, if one here does."""
    if op_type in CUSTOM_OPERATORS:
        importlib.import_module(CUSTOM_OPERATORS[op_type])


def lookup(path, own, name):
    """The object that `name` leads to in the module `path`.

    Parameters
    ----------
    path : str
    own : callable or None
        The module's own ``__getattr__``, which comes first.
    name : str

    Raises
    ------
    AttributeError
        If neither has the name, or what it leads to is not installed.
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
            return load(inner)
        for module in elsewhere:
            found = getattr(load(module), name, _MISSING)
            if found is not _MISSING:
                return found
    raise missing


def complete(module):
    """Give a module what the table has for it, behind what it has itself."""
    if module.__name__ in OFTEN_READ:
        for name, target in entry(module.__name__)[0].items():
            with contextlib.suppress(ImportError):
                vars(module).setdefault(name, _follow(target))
        for path in NAMES:
            if path.rpartition(".")[0] == module.__name__:
                importlib.import_module(path)
        return
    module.__getattr__ = functools.partial(lookup, module.__name__, module.__dict__.get("__getattr__"))


class _Completing:
    """The loader of a module that lacks something; once it is loaded nothing shows of this one."""

    def __init__(self, loader):
        self._loader = loader

    def create_module(self, spec):
        return self._loader.create_module(spec)

    def exec_module(self, module):
        module.__spec__.loader = module.__loader__ = self._loader
        self._loader.exec_module(module)
        complete(module)
        for path in NAMES:  # namespaces that the module has made by hand, such as mx.nd._internal
            made = sys.modules.get(path) if path.startswith(f"{module.__name__}.") else None
            if made is not None and made.__spec__ is None:
                complete(made)


class _Leading:
    """The loader of a path that has no file: the module that has all of its names, or else an empty one that leads on."""

    @staticmethod
    def create_module(spec):
        return types.ModuleType(spec.name, f"Holds nothing of its own: it {spec.origin}.")

    @staticmethod
    def exec_module(module):
        names, elsewhere = entry(module.__name__)
        if len(elsewhere) == 1 and not names:
            sys.modules[module.__name__] = importlib.import_module(elsewhere[0])
            return
        complete(module)
        module.__dir__ = lambda: sorted({*vars(module), *names, *(n for m in elsewhere for n in dir(importlib.import_module(m)) if n[:2] != "__")})


class _Same:
    """The loader of a module that has another name already."""

    def __init__(self, real):
        self._real = real

    @staticmethod
    def create_module(spec):
        return types.ModuleType(spec.name)

    def exec_module(self, module):
        sys.modules[module.__name__] = importlib.import_module(self._real)


class Finder:
    """Finds the modules of the table; everything else is left to the finders behind it."""

    @staticmethod
    def find_spec(fullname, path=None, target=None):
        """The spec of a module that the table completes or makes."""
        if not fullname.startswith("mxnet."):
            return None
        parent, _, name = fullname.rpartition(".")
        real = getattr(sys.modules.get(parent), "__name__", parent)
        if real != parent:  # another name of a package, which has all of its modules
            return ModuleSpec(fullname, _Same(f"{real}.{name}")) if importlib.util.find_spec(f"{real}.{name}") else None
        if fullname not in _LACKING:
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is not None:
            spec.loader = _Completing(spec.loader)
        elif fullname in NAMES:
            origin = f"leads to {', '.join(entry(fullname)[1]) or 'what programs import from it'}"
            spec = ModuleSpec(fullname, _Leading, origin=origin, is_package=any(p.startswith(f"{fullname}.") for p in NAMES))
        return spec


def install():
    """Put the finder in front of the others, once, and import what programs expect to be imported."""
    for name in BRINGS:
        importlib.import_module(name)
    if Finder not in sys.meta_path:
        sys.meta_path.insert(0, Finder)
