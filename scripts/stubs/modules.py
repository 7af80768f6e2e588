"""Which stub files there are, and what stands in them.

A package has a stub where it makes functions at run time, and a module ``_attached`` that no program imports where methods are given to a
class after its definition: type checkers take the class there, `Methods`, for a base of the array's or the Symbol's.
"""
import ast
import importlib
import inspect
import types

from mxnet.ndarray import methods as operator_methods
from mxnet.ops.registry import OPERATORS

from . import inspected, operators
from .writer import Stub, usable

# Sub-namespaces of mx.nd and mx.sym that are made of operators with a prefix.
SPACES = {"contrib": "_contrib_", "linalg": "_linalg_", "image": "_image_"}
_BINARY = {f"__{side}{name}__" for side in ("", "r", "i") for name in
           "add sub mul truediv floordiv mod pow matmul and or xor".split()}
_COMPARISONS = {f"__{name}__" for name in "eq ne lt le gt ge".split()}
_UNARY = {f"__{name}__" for name in "neg pos abs invert ceil floor trunc".split()}
_OF_CLASSES = {"__doc__", "__module__", "__slots__", "__weakref__", "__dict__", "__hash__"}


def _only_raises(function):
    """Return True if a function only raises an error."""
    node, _ = inspected.definition(function)
    body = [n for n in node.body if not (isinstance(n, ast.Expr) and isinstance(n.value, ast.Constant))] if node else []
    return len(body) == 1 and isinstance(body[0], ast.Raise)


def package(front, array):
    """``mx.nd`` or ``mx.sym``: what is written by hand, then the operators."""
    name = f"mxnet.{front}"
    module, stub = importlib.import_module(name), Stub(name)
    for lazy in ("np", "npx", "numpy", "numpy_extension"):  # imported on demand: their lines must not depend on what ran before
        package, _, module_name = getattr(module, lazy).__name__.rpartition(".")
        stub.uses(package, module_name, lazy)
    stub.uses(f"{name}.{front}", array)
    for key, value in sorted(vars(module).items()):
        if key.startswith("_") and key != "_internal":
            continue
        if inspect.ismodule(value):
            _submodule(stub, key, value, name)
        elif inspect.isclass(value) and value.__name__ != array:
            stub.uses(value.__module__, value.__name__, key)
        elif inspect.isfunction(value) and value.__module__ != f"{name}.op":
            if value.__module__ == name:  # made of the operators that Python writes `+`, `<`, ...
                stub.exports(_of_two(key, value, array), key)
            else:
                stub.uses(value.__module__, value.__name__, key)
    _operators(stub, "", array)
    return stub.text()


def _submodule(stub, key, value, name):
    if not value.__name__.startswith(name + "."):
        return
    if key in SPACES or vars(value).get("__file__"):
        stub.uses(name, value.__name__.rpartition(".")[2], key)
    else:
        stub.exports(f"{key}: Any", key)  # a namespace that is no file, and has no stub


def _of_two(name, value, array):
    parts = [f"{p}: {array} | _Number" for p in inspect.signature(value).parameters]
    return f"def {name}({', '.join(parts)}) -> {array}: ..."


def _operators(stub, prefix, array):
    for name in sorted(OPERATORS):
        short = name[len(prefix):]
        if (name.startswith(prefix) if prefix else not name.startswith("_")) and usable(short):
            stub.exports(operators.function(short, OPERATORS[name], array), short)


def space(front, array, key):
    """A sub-namespace: what is written by hand, then the operators with its prefix."""
    name = f"mxnet.{front}.{key}"
    module, stub = importlib.import_module(name), Stub(f"mxnet.{front}")
    stub.uses(f"mxnet.{front}.{front}", array)
    for own, value in sorted(vars(module).items()):
        if inspect.isfunction(value) and value.__module__ == name and not own.startswith("_"):
            stub.exports(inspected.function(own, value, stub, array), own)
    _operators(stub, SPACES[key], array)
    return stub.text()


def attached(cls, base, home, package_name, table=None):
    """The module with the methods that a class is given.

    Parameters
    ----------
    cls : type
    base : type or None
        What `Methods` derives from, for checkers.
    home : str
        The module of the class.
    package_name : str
    table : dict, optional
        The functions of ``mx.np`` that methods lead to.
    """
    array, stub = cls.__name__, Stub(package_name)
    stub.uses(home, array)
    heading = "class Methods:"
    if base is not None:
        heading = f"class Methods({stub.uses(base[0], base[1])}):"
    written, lines = inspected.written_in(cls, home), []
    for name, value in sorted(vars(cls).items()):
        if name in written or name in _OF_CLASSES or isinstance(value, types.MemberDescriptorType) or not callable(value) \
                and not isinstance(value, property):
            continue
        lines += _method(name, value, stub, array, table or {})
    stub.lines += [heading, *lines]
    return stub.text()


def _method(name, value, stub, array, table):
    if name in _BINARY or name in _COMPARISONS:
        return [f"    def {name}(self, other: {array} | _Number) -> {array}: ..."]
    if name in _UNARY:
        return [f"    def {name}(self) -> {array}: ..."]
    if inspect.isfunction(value) and not name.startswith("__") and _only_raises(value):
        return []
    if isinstance(value, (staticmethod, classmethod)):
        return [f"    {name}: Any"]
    if name in table:
        return [_from_table(name, value, stub, array, table[name])]
    if not table and name in OPERATORS and name in operator_methods.names():
        return [operators.method(name, OPERATORS[name], array)]
    return [inspected.method(name, value, stub, array)]


def _from_table(name, value, stub, array, function):
    """A method that is a function of ``mx.np``: that without frontend and first array, or with the order that the method says."""
    signature, drop = inspect.signature(value), 1
    if "kwargs" in signature.parameters:
        signature, drop = inspect.signature(function), 2
    parts, annotations = inspected.parameters(function, stub, array, signature, drop, guess=True)
    return f"    def {name}({', '.join(['self', *parts])}) -> {annotations.get('return', array)}: ..."


def numpy_space(name, array, home, functions, prefixes=()):
    """``mx.np`` or ``mx.sym.np``, or one of their sub-namespaces.

    Parameters
    ----------
    name : str
        The module's.
    array, home : str
        The class of its arrays, and the module of that.
    functions : dict
        The functions written once for arrays and Symbols, by name.
    prefixes : tuple of str
        Operators whose names begin so are functions of the module, under the rest of their names.
    """
    module = importlib.import_module(name)
    stub = Stub(name if module.__file__.endswith("__init__.py") else name.rpartition(".")[0])
    stub.uses(home, array)
    made = {n[len(prefix):]: op for prefix in prefixes for n, op in OPERATORS.items() if n.startswith(prefix) and not n.startswith(prefix + "_")}
    for key, value in sorted(vars(module).items()):
        hidden = key.startswith("_") or inspect.isfunction(value) and key not in getattr(module, "__all__", [key])
        if not hidden and key not in functions and (key not in made or value.__module__ == "mxnet.numpy_extension.operators"):
            _plain(stub, key, value, name, array)
    for key, function in sorted(functions.items()):
        if usable(key):
            stub.exports(inspected.function(key, function, stub, array, array, drop=1, guess=True), key)
    for key, op in sorted(made.items()):
        stub.exports(operators.function(key, op, array), key)
    return stub.text()


def _plain(stub, key, value, name, array):
    """A name of a module of ``mx.np`` that is none of the functions written for both kinds of arrays."""
    if inspect.ismodule(value):
        if value.__name__.startswith(name + ".") and vars(value).get("__file__"):  # a path of the table of names has none
            stub.uses(name, value.__name__.rpartition(".")[2], key)
    elif inspect.isclass(value):
        if value.__name__ != array:
            stub.uses(value.__module__, key if value.__module__ == "numpy" else value.__name__, key)
    elif inspect.isfunction(value):
        if hasattr(value, "__wrapped__"):  # what NumPy computes
            stub.exports(f"def {key}(*args: Any, **kwargs: Any) -> Any: ...", key)
        elif value.__module__ == name or not value.__module__.startswith("mxnet"):
            stub.exports(inspected.function(key, value, stub, array), key)
        else:
            stub.uses(value.__module__, value.__name__, key)
    elif isinstance(value, (int, float)) or value is None:
        stub.exports(f"{key}: {type(value).__name__ if value is not None else None}", key)


def root():
    """``mxnet`` itself, whose parts are imported when they are asked for."""
    import mxnet
    stub = Stub("mxnet")
    for key, target in sorted({**{n: n for n in mxnet._SUBMODULES}, **mxnet._LAZY}.items()):
        parent, _, last = f"mxnet.{target}".rpartition(".")
        stub.uses(parent, last, key)
    for key in mxnet.__all__:
        value = getattr(mxnet, key)
        if inspect.ismodule(value):
            parent, _, last = value.__name__.rpartition(".")
            stub.uses(parent, last, key)
        elif isinstance(value, str):
            stub.exports(f"{key}: str", key)
        else:
            stub.uses(value.__module__, value.__name__, key)
    return stub.text()
