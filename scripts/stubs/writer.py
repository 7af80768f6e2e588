"""A stub file: its imports and its lines."""
import keyword

HEAD = "# Made by scripts/make_stubs.py; do not edit."
# What arguments may be, in the words of the stubs. A module takes over those that its lines name.
ALIASES = {
    "_DType": "_DType: TypeAlias = str | type | _numpy.dtype[Any]",
    "_Number": "_Number: TypeAlias = float | _numpy.number[Any] | _numpy.bool_",
    "_Int": "_Int: TypeAlias = int | _numpy.integer[Any]",
    "_Sizes": "_Sizes: TypeAlias = int | _numpy.integer[Any] | _numpy.ndarray | Sequence[int | None] | Sequence[int | _numpy.integer[Any]]",
    "_Flag": "_Flag: TypeAlias = bool | Literal[0, 1]",
    "_Context": "_Context: TypeAlias = Context | str",
    "_Annotations": '_Annotations = TypedDict("_Annotations", {"ctx_group": str, '
                    '"lr_mult": Any, "wd_mult": Any, "force_mirroring": Any, "mirror_stage": Any, "profiler_scope": str, "__profiler_scope__": str, '
                    '"__layout__": str, "__ctx_group__": str, "__lr_mult__": Any, "__wd_mult__": Any, "__init__": str, "__shape__": Any, '
                    '"__dtype__": Any, "__storage_type__": Any, "__force_mirroring__": Any}, total=False)  # what any node may carry',
}


_IMPORTS = {"Unpack[": "from typing_extensions import Unpack", "_numpy.": "import numpy as _numpy"}


class Stub:
    """The text of a ``.pyi`` file while it grows.

    Parameters
    ----------
    package : str
        The package that relative imports of the file start from.
    """

    def __init__(self, package):
        self.package, self.imports, self.lines, self.names, self.renamed = package, {}, [], set(), {}

    def uses(self, module, name, as_name=None):
        """Import `name` of `module` under `as_name`, which is returned."""
        as_name = as_name or name
        if as_name == name:
            self.imports[name] = f"from {self._relative(module)} import {name} as {name}"
        else:  # a stub exports what it imports under its own name only
            self.imports[as_name] = f"from {self._relative(module)} import {name} as _{as_name}"
            self.renamed[as_name] = f"{as_name} = _{as_name}"
        return as_name

    def exports(self, line, name):
        """Add a line that defines `name`, unless there is one."""
        if name not in self.names and name not in self.imports:
            self.names.add(name)
            self.lines.append(line)

    def _relative(self, module):
        if not module.startswith("mxnet"):
            return module
        here, there = self.package.split("."), module.split(".")
        common = 0
        while common < min(len(here), len(there)) and here[common] == there[common]:
            common += 1
        return "." * (len(here) - common + 1) + ".".join(there[common:])

    def text(self):
        """Return the text of the file."""
        body = "\n".join(self.lines)
        aliases = [line for name, line in ALIASES.items() if name in body]
        used = body + "\n".join(aliases)
        if "Context" in used:
            self.uses("mxnet.context", "Context")
        heads = ["from collections.abc import Callable, Iterator, Mapping, Sequence",
                 "from typing import Any, Literal, TypeAlias, TypedDict, overload"]
        heads += [line for word, line in _IMPORTS.items() if word in used]
        return "\n".join([HEAD, RELAXED, *heads, "", *sorted(self.imports.values()), "", *aliases,
                          *sorted(self.renamed.values()), "", *self.lines]) + "\n"


# What a method of NumPy's kind cannot be: `==` of the type that `object` says, methods of `mx.np` arrays that take what those of `mx.nd` take.
RELAXED = "# mypy: disable-error-code=\"override, misc\""


def usable(name):
    """Return True if a name is valid after ``def``."""
    return name.isidentifier() and not keyword.iskeyword(name)
