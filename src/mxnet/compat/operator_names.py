"""MXNet 1.9.1's assignment of operators to modules by their names, for programs that generate operator functions."""
from __future__ import annotations

import inspect
import sys
import types
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..suggestions import shortened

PREFIXES = ["_contrib_", "_linalg_", "_sparse_", "_image_", "_random_"]  # prefixes of operators of mx.nd.contrib, mx.nd.linalg, ...
NP_PREFIX, NPX_PREFIX, NP_INTERNAL_PREFIX = "_np_", "_npx_", "_npi_"  # prefixes of mx.np, of mx.npx, and of their internal operators
NP_SUBMODULES = ["_random_", "_linalg_"]
NPX_SUBMODULES = ["_image_", "_random_"]
LISTS = {"_npi_split", "_npi_hsplit"}  # NumPy operators that return a list


def prefix_of(op_name: str) -> str:
    """Return the prefix of an operator's name that determines its module; "" if there is none."""
    return next((prefix for prefix in PREFIXES if op_name.startswith(prefix)), "")


def is_of_numpy(op_name: str) -> bool:
    """Return True if an operator belongs to ``mx.np`` or ``mx.npx``."""
    return op_name.startswith((NP_PREFIX, NPX_PREFIX, NP_INTERNAL_PREFIX))


def returns_list(op_name: str) -> bool:
    """Return True if a NumPy operator returns a list."""
    return op_name in LISTS


def submodule_of(op_name: str, op_name_prefix: str, submodule_name_list: Iterable[str]) -> str:
    """Return the submodule of an operator with the given prefix; "" if it is in none of the list.

    Raises
    ------
    AssertionError
        If its name has another prefix.
    """
    if not op_name.startswith(op_name_prefix):
        raise AssertionError(f"the name of an operator that starts with {op_name_prefix!r} expected, received {shortened(op_name)}")
    rest = op_name.removeprefix(op_name_prefix)
    return next((name for name in submodule_name_list if rest.startswith(name)), "")


def place_of(name: str, module: Any, submodule_dict: Mapping[str, types.ModuleType]) -> tuple[str, types.ModuleType]:
    """Return the name of an operator's function, and its module.

    Parameters
    ----------
    name : str
        The operator's name.
    module : module
        ``mx.nd`` or ``mx.sym``.
    submodule_dict : dict of str to module
        The submodules, by prefix.
    """
    prefix = prefix_of(name)
    # Of the random operators only those ending in "_like" are in mx.nd.random: its other functions accept numbers and arrays.
    if prefix and (prefix != "_random_" or name.endswith("_like")):
        return name.removeprefix(prefix), submodule_dict[prefix]
    return name, module._internal if name.startswith("_") else module


def build_param_doc(arg_names: Sequence[str], arg_types: Sequence[str], arg_descs: Sequence[str], remove_dup: bool = True) -> str:
    """Return the section of a docstring that describes parameters.

    Parameters
    ----------
    arg_names, arg_types, arg_descs : list of str
    remove_dup : bool
        Describe each name only once. ``num_args`` is left out.

    Example
    -------
    >>> from mxnet.base import build_param_doc
    >>> print(build_param_doc(['data'], ['NDArray'], ['The input']))
    Parameters
    ----------
    data : NDArray
        The input
    <BLANKLINE>
    """
    lines, seen = ["Parameters", "----------"], {"num_args"}
    for name, kind, text in zip(arg_names, arg_types, arg_descs):
        if name == "num_args" or remove_dup and name in seen:
            continue
        seen.add(name)
        lines.append(f"{name} : {kind}")
        if text:
            lines.append(f"    {text}")
    return "\n".join(lines) + "\n"


def add_fileline_to_docstring(module: str | types.ModuleType | type, incursive: bool = True) -> None:
    """Append file and line of the definition to the docstrings of a module's functions, and with `incursive` of its classes' methods."""
    for _, member in inspect.getmembers(sys.modules[module] if isinstance(module, str) else module):
        if inspect.isclass(member) and incursive:
            add_fileline_to_docstring(member, False)
        function = getattr(member, "__func__", member)
        if inspect.isfunction(function) and function.__doc__ and "From:" not in function.__doc__:
            try:
                function.__doc__ += f"\n\nFrom:{inspect.getsourcefile(function)}:{inspect.getsourcelines(function)[1]}"
            except OSError:
                pass  # defined at run time: there is no file
