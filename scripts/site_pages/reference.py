"""The reference: pages of operators, of modules, and of environment variables, from the registry and the docstrings."""
import importlib
import types

from . import differences, docstrings, traits_table

SPACES = {"": "nd", "contrib": "nd.contrib", "linalg": "nd.linalg", "image": "nd.image", "random": "nd.random", "sparse": "nd.sparse"}
PREFIXES = {"contrib": ("_contrib_",), "linalg": ("_linalg_",), "image": ("_image_",), "random": ("_random_", "_sample_"), "sparse": ("_sparse_", "")}
MODULES = """
    ndarray ndarray.sparse ndarray.random ndarray.contrib autograd symbol symbol.contrib executor gluon gluon.nn gluon.rnn gluon.loss gluon.data
    gluon.data.vision gluon.data.vision.transforms gluon.utils gluon.model_zoo.vision gluon.contrib.nn gluon.contrib.rnn gluon.contrib.estimator
    gluon.contrib.data module model rnn io recordio image optimizer lr_scheduler initializer metric callback monitor kvstore profiler
    visualization onnx contrib.onnx contrib.amp contrib.quantization contrib.text.vocab contrib.text.embedding contrib.text.utils context device
    util random engine runtime test_utils operator library interop attribute name base environment""".split()
NUMPY = {"": "numpy", "random": "numpy.random", "linalg": "numpy.linalg", "npx": "numpy_extension", "npx.random": "numpy_extension.random",
         "npx.image": "numpy_extension.image"}


# Public names in their module that are no part of its interface: other modules of the package need them.
INTERNAL = {"mxnet.context": {"ctx_or_device", "intern_context", "parse_context", "takes_device"},
            "mxnet.gluon.data.vision.transforms": {"Pending", "Row"}}


def pages(root):
    """Return the pages of the reference by path."""
    import mxnet as mx
    names = operator_names(mx)
    results = {"reference/index.md": index(), "reference/environment.md": environment(mx)}
    results.update(operator_pages(root, names))
    results.update(module_pages({name.removeprefix("nd."): page_name(publics[0]) for publics in names.values() for name in publics}))
    results.update(numpy_pages())
    return {path: text.encode() for path, text in results.items()}


def index():
    """Return the first page of the reference."""
    return """# Reference

The pages are made from the package when the site is built: signatures, types and defaults are those that calls check, and the tests run the examples.

```{toctree}
:maxdepth: 1

nd/index
np/index
modules/index
operators
environment
```
"""


# -- operators ----------------------------------------------------------------------------------------------------------------


def operator_names(mx):
    """Return the public names of each operator, such as ``nd.contrib.foreach``, by operator."""
    from mxnet.ops.registry import OPERATORS, exists, get
    results = {}
    for space, path in SPACES.items():
        module = getattr(mx.nd, space) if space else mx.nd
        for name in dir(module):
            value = None if name.startswith("_") else getattr(module, name, None)
            if not callable(value) or getattr(value, "__module__", "") != "mxnet.ndarray.op":
                continue
            full = next((prefix + name for prefix in PREFIXES.get(space, ("",)) if exists(prefix + name)), None)
            if full:
                results.setdefault(get(full).name, []).append(f"{path}.{name}")
    return {OPERATORS[name]: sorted(names, key=lambda n: (n.count("."), n.rpartition(".")[2] != name, n)) for name, names in sorted(results.items())}


def page_name(public):
    """Return the name of the page for ``nd.contrib.x``."""
    return public.removeprefix("nd.")


def operator_pages(root, names):
    """Return the page of each operator of `names`, their index and the table of where they run."""
    rows, known = traits_table.rows(root, names), differences.table(root)
    pages, taken = {}, {}
    for op, publics in names.items():
        page = page_name(publics[0])
        while page.lower() in taken:  # file systems may not tell upper from lower case
            page += "_"
        taken[page.lower()] = publics
        pages[op] = page
    results = {f"reference/nd/{page}.md": operator_page(op, names[op], rows[op.name], differences.of(op, known)) for op, page in pages.items()}
    results["reference/nd/index.md"] = operator_index(names, pages)
    results["reference/operators.md"] = operator_table(names, pages, rows)
    return results


def operator_page(op, publics, row, known):
    """Return the page of an operator."""
    first, *others = publics
    also = [f"`mx.{name}`" for name in others] + [f"`mx.{'sym' + name[2:]}`" for name in publics]
    text = [f"# {docstrings.escaped(page_name(first))}\n", object_of("function", f"mxnet.{first}{operator_signature(op)}"),
            docstrings.markdown(op.__doc__, leave_out=("Parameters",)), f"Also: {', '.join(also)}; in JSON files `{op.name}`.\n",
            "## Parameters\n", parameter_table(op), "## Where it runs\n",
            "| " + " | ".join(row) + " |\n" + "|---" * len(row) + "|\n| " + " | ".join(cell or "no" for cell in row.values()) + " |\n",
            "Own kernel and oneDNN: in a call by itself, besides what torch uses. In a graph `net.explain()` prints the backend of each part. "
            "[All operators](../operators.md).\n"]
    if known:
        text.append("## Differences from MXNet 1.9.1\n\n| kind | case | why |\n|---|---|---|\n"
                    + "".join(f"| {kind} | `{case}` | {with_site_links(reason)} |\n" for kind, case, reason in known))
    return "\n".join(text)


def operator_signature(op):
    """Return the parameters of an operator with their defaults."""
    inputs = [f"*{name}" if op.variadic and name == op.inputs[-1] else f"{name}=None" if name in op.optional_inputs else name for name in op.inputs]
    attributes = [f"{a.name}" if a.required else f"{a.name}={default_of(a)}" for a in op.attributes.values()]
    star = ["*"] if attributes and not op.variadic and any(a.required for a in op.attributes.values()) else []
    return "(" + ", ".join(inputs + star + attributes + ["out=None", "name=None"]) + ")"


def default_of(attribute):
    """Return an attribute's default as it is written in a program."""
    from mxnet.ops.schema import to_string
    return repr(attribute.default) if isinstance(attribute.default, str) else to_string(attribute.default)


def parameter_table(op):
    """Return the table of an operator's inputs and attributes."""
    lines = ["| name | type | default |", "|---|---|---|"]
    for name in op.inputs:
        kind = "arrays, any number" if op.variadic and name == op.inputs[-1] else "array, optional" if name in op.optional_inputs else "array"
        lines.append(f"| `{name}` | {kind}{', written to' if name in op.mutates else ''} | |")
    for a in op.attributes.values():
        kind = docstrings.escaped(a.expected) + (" or None" if a.optional else "")
        lines.append(f"| `{a.name}` | {kind} | {'required' if a.required else '`' + default_of(a) + '`'} |")
    return "\n".join(lines) + "\n"


def operator_index(names, pages):
    """Return the page that lists every public name of an operator."""
    lines = ["# mx.nd: operators\n", "Functions of arrays; `mx.sym` has the same for Symbols. [Where each runs](../operators.md); arrays, creation, "
             "saving and random numbers: [modules](../modules/index.md).\n"]
    for path in SPACES.values():
        rows = sorted((name, op) for op, publics in names.items() for name in publics if name.rpartition(".")[0] == path)
        if rows:
            lines += [f"## mx.{path}\n", "| name | |", "|---|---|"]
            lines += [f"| [{docstrings.escaped(name.rpartition('.')[2])}](<{pages[op]}.md>) | {docstrings.summary(op.__doc__)} |"
                      for name, op in rows]
            lines.append("")
    return "\n".join(lines)


def operator_table(names, pages, rows):
    """Return the table of where each operator runs."""
    columns = list(next(iter(rows.values())))
    lines = ["# Where each operator runs\n", "An empty cell: not there. *Own kernel* and *oneDNN*: the operator's function reaches one in a call on "
             "the CPU; graphs use more of them, and `net.explain()` prints which. *GPU*: torch, cuDNN and Triton; some operators "
             "[wait](../docs/gpu.md). *INT8*: has a quantized form. *ONNX*: is exported.\n",
             "| operator | " + " | ".join(columns) + " |", "|---" * (1 + len(columns)) + "|"]
    lines += [f"| [{docstrings.escaped(names[op][0])}](<nd/{page}.md>) | " + " | ".join(rows[op.name].values()) + " |" for op, page in pages.items()]
    counts = [sum(bool(rows[op.name][column]) for op in names) for column in columns]
    return "\n".join(lines + [f"| **{len(names)} operators** | " + " | ".join(map(str, counts)) + " |"]) + "\n"


def with_site_links(text):
    """Return a reason of docs/differences.md with its links as they are from reference/nd."""
    return text.replace("](", "](../../docs/")


# -- Python modules -----------------------------------------------------------------------------------------------------------


def object_of(kind, signature, indexed=True):
    """Return a directive that shows a signature, and makes its name a target of search."""
    return f"```{{py:{kind}}} {signature}\n{'' if indexed else ':no-index:' + chr(10)}```\n"


def public(module):
    """Return the public classes and functions of a module by name; what it only imports from elsewhere is left out unless ``__all__`` names it."""
    listed = getattr(module, "__all__", None)
    results = {}
    for name in sorted(set(listed or dir(module))):
        value = getattr(module, name, None) if not name.startswith("_") else None
        home = getattr(value, "__module__", None)
        if isinstance(value, types.ModuleType) or not callable(value) or home in (None, "mxnet.ndarray.op", "mxnet.symbol.op"):
            continue
        if name in INTERNAL.get(module.__name__, ()):
            continue
        if home.startswith("mxnet") and (listed or is_public(module, home)):
            results[name] = value
    return results


def is_public(module, home):
    """Return True if the module `home` of an object belongs to `module`: it lies below it, or beside it in a package below ``mxnet``."""
    package = module.__name__.rpartition(".")[0]
    return home.startswith(module.__name__) or package != "mxnet" and home.rpartition(".")[0] == package


def module_pages(operators):
    """Return a page for each of `MODULES`, and their index; `operators` has the page of each operator by its name."""
    results, lines, seen = {}, ["# Modules\n", "```{toctree}\n:maxdepth: 1\n"], set()
    for name in MODULES:
        module = importlib.import_module(f"mxnet.{name}")
        members = public(module)
        if not members:
            continue
        results[f"reference/modules/{name}.md"] = module_page(name, module, members, seen, operators)
        lines.append(name)
    results["reference/modules/index.md"] = "\n".join([*lines, "```\n"])
    return results


def module_page(name, module, members, seen, operators):
    """Return the page of a module."""
    short = "mx." + name.replace("ndarray", "nd").replace("symbol", "sym")
    parts = [f"# {docstrings.escaped(short)}\n", docstrings.markdown(module.__doc__)]
    for member, value in members.items():
        full = f"mxnet.{name}.{member}"
        first = id(value) not in seen
        seen.add(id(value))
        kind = "class" if isinstance(value, type) else "function"
        parts += [f"## {docstrings.escaped(member)}\n", object_of(kind, docstrings.signature(value, full), indexed=first)]  # links go to one place
        if first:
            parts.append(docstrings.markdown(value.__doc__))
            if isinstance(value, type):
                parts.append(methods(value, operators if member in ("NDArray", "Symbol") else {}))
        else:
            parts.append(f"The same as `{value.__module__}.{getattr(value, '__qualname__', member)}`. {docstrings.summary(value.__doc__)}.\n")
    return "\n".join(parts)


def methods(cls, operators):
    """Return the public methods and properties that a class defines itself; those that call an operator of their name link to its page's example."""
    parts = []
    for name, value in sorted(vars(cls).items()):
        inner = value.__func__ if isinstance(value, (classmethod, staticmethod)) else value
        doc = getattr(inner, "__doc__", None)
        if name.startswith("_") or not (callable(inner) or isinstance(inner, property)) or isinstance(inner, type):
            continue
        if isinstance(inner, property):
            parts.append(f"**`{name}`** (property)\n\n{docstrings.markdown(doc)}")
        else:
            parts.append(f"**`{docstrings.signature(inner, name)}`**\n\n{docstrings.markdown(doc)}")
            if name in operators and ">>>" not in (doc or ""):
                parts.append(f"Example: [`mx.nd.{name}`](<../nd/{operators[name]}.md>).\n")
    return "\n".join(parts)


def numpy_functions(module):
    """Return (name, function) of the public functions of a module of ``mx.np`` or ``mx.npx``."""
    for name in sorted(dir(module)):
        value = None if name.startswith("_") else getattr(module, name, None)
        home = getattr(value, "__module__", None) or ""
        if callable(value) and not isinstance(value, (type, types.ModuleType)) and (home == "mxnet.ndarray.op" or home.startswith("mxnet.numpy")):
            yield name, value


def numpy_pages():
    """Return the pages of ``mx.np`` and ``mx.npx``: by the module in which a function is defined."""
    from mxnet.numpy.frontend import TABLE
    families = {}
    for space, path in NUMPY.items():
        module = importlib.import_module(f"mxnet.{path}")
        for name, value in numpy_functions(module):
            home = getattr(TABLE.get(space, {}).get(name), "__module__", value.__module__)
            family = home.rpartition(".")[2] if home.startswith("mxnet.numpy.") and not space else ""
            short = path.replace("numpy_extension", "npx").replace("numpy", "np")
            families.setdefault((short, family), {})[f"mxnet.{short}.{name}"] = value
    results, lines = {}, ["# mx.np and mx.npx\n", "NumPy's functions, and layers, on the same arrays. [The guide](../../docs/guides/numpy.md).\n",
                        "```{toctree}\n:maxdepth: 1\n"]
    for (short, family), functions in sorted(families.items()):
        page = f"{short}-{family}" if family else short
        title = f"mx.{short}" + (f": {family.replace('_', ' ')}" if family else "")
        parts = [f"# {title}\n"]
        for full, function in functions.items():
            parts += [f"## {docstrings.escaped(full.rpartition('.')[2])}\n", object_of("function", docstrings.signature(function, full)),
                      docstrings.markdown(function.__doc__)]
        results[f"reference/np/{page}.md"] = "\n".join(parts)
        lines.append(page)
    results["reference/np/index.md"] = "\n".join([*lines, "```\n"])
    return results


def environment(mx):
    """Return the table of environment variables."""
    lines = ["# Environment variables: the table\n", "Variables that MXNet documents, and some of this project. "
             "[Which matter most](../docs/guides/environment.md).\n",
             "| variable | default | effect |", "|---|---|---|"]
    for v in mx.environment.VARIABLES.values():
        default = "" if v.default is None else f"`{v.default}`"
        lines.append(f"| `{v.name}` | {default} | {'' if v.acts else '*none*: '}{docstrings.inline(v.note)} |")
    return "\n".join(lines) + "\n"


__all__ = ["pages"]
