"""Functions and methods written by hand: signatures and annotations from their source."""
import ast
import builtins
import functools
import inspect
import sys

# What the parameters of functions of `mx.np` are whose source does not say it: one of the name means one thing everywhere.
_BY_NAME = {"axis": "_Sizes | None", "dtype": "_DType | None", "ctx": "_Context | None", "size": "_Sizes | None", "shape": "_Sizes", "order": "str",
            "newshape": "_Sizes", "keepdims": "bool", "out": "{array} | None"}


@functools.cache
def _source(module):
    """The parsed source of a module, and what its imports (also those only for type checkers) bind: name -> (module, name there)."""
    tree = ast.parse(inspect.getsource(sys.modules[module]))
    package = sys.modules[module].__package__.split(".")
    bound = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            start = ".".join(package[:len(package) - node.level + 1]) if node.level else ""
            origin = ".".join(filter(None, (start, node.module)))
            bound.update({a.asname or a.name: (origin, a.name) for a in node.names})
    for node in tree.body:
        if isinstance(node, (ast.ClassDef, ast.Assign, ast.AnnAssign)):
            names = [node.name] if isinstance(node, ast.ClassDef) else [t.id for t in ast.walk(node) if isinstance(t, ast.Name)]
            bound.update({name: (module, name) for name in names if name not in bound and not hasattr(builtins, name)})
    return tree, bound


def definition(function):
    """The node of a function in the source of its module, and the module's name; (None, "") for one without a ``def`` of ours."""
    module = inspect.getmodule(function.__code__)
    if module is None or not module.__name__.startswith("mxnet"):
        return None, ""
    tree, _ = _source(module.__name__)
    line = function.__code__.co_firstlineno
    functions = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef) and line in (n.lineno, *(d.lineno for d in n.decorator_list))]
    return (functions[0], module.__name__) if functions else (None, "")


def _annotations(function, stub, array):
    """The annotations of a function as texts whose names are imported into the stub."""
    node, module = definition(function)
    if node is None:
        return {}
    _, bound = _source(module)
    annotations = {}
    for argument in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs, node.args.vararg, node.args.kwarg):
        if argument is not None and argument.annotation is not None:
            annotations[argument.arg] = argument.annotation
    if node.returns is not None:
        annotations["return"] = node.returns
    return {name: _text(annotation, bound, stub, array) for name, annotation in annotations.items()}


def _text(annotation, bound, stub, array):
    class Names(ast.NodeTransformer):
        def visit_Constant(self, node):  # noqa: N802
            return self.visit(ast.parse(node.value, mode="eval").body) if isinstance(node.value, str) else node

        def visit_Name(self, node):  # noqa: N802
            if node.id == "Array":  # of a function that serves arrays and Symbols
                return ast.Name(array)
            if node.id in bound and node.id not in ("Any", "Sequence", "Context", "Literal", "Callable", "Iterator", "Mapping"):
                module, name = bound[node.id]
                if name != array:
                    stub.uses(module, name, node.id)
            return node

        def visit_Subscript(self, node):  # noqa: N802
            return node if isinstance(node.value, ast.Name) and node.value.id == "Literal" else self.generic_visit(node)

    return ast.unparse(Names().visit(ast.parse(ast.unparse(annotation), mode="eval").body))


def _guess(parameter, array):
    """The type of a parameter of a function of ``mx.np`` that has no annotation."""
    if parameter.kind is inspect.Parameter.VAR_KEYWORD:
        return "Any"
    if parameter.name in _BY_NAME:
        return "int" if parameter.kind is inspect.Parameter.VAR_POSITIONAL else _BY_NAME[parameter.name].format(array=array)
    return "str" if isinstance(parameter.default, str) else "Any"


def parameters(function, stub, array, signature=None, drop=0, guess=False):
    """The parameters of a function, without the first `drop`, and its annotations.

    `signature` replaces that of the function, whose annotations still hold. `guess` tells the types of parameters without an annotation by
    their names and defaults.
    """
    annotations = _annotations(function, stub, array)
    parts, named = [], False
    P = inspect.Parameter
    for p in list((signature or inspect.signature(function)).parameters.values())[drop:]:
        if p.kind is P.KEYWORD_ONLY and not named:
            parts.append("*")
            named = True
        mark = {P.VAR_POSITIONAL: "*", P.VAR_KEYWORD: "**"}.get(p.kind, "")
        named = named or p.kind is P.VAR_POSITIONAL
        kind = annotations.get(p.name) or ("bool" if isinstance(p.default, bool) else _guess(p, array) if guess else "Any")
        if p.default is None and not mark and not kind.endswith(("None", "Any")):
            kind += " | None"
        parts.append("self" if p.name == "self" else f"{mark}{p.name}: {kind}{'' if p.default is p.empty else ' = ...'}")
    return parts, annotations


def function(name, value, stub, array, returns="Any", drop=0, guess=False):
    """The line of a function: `returns` is what it returns where its source does not say."""
    parts, annotations = parameters(value, stub, array, drop=drop, guess=guess)
    return f"def {name}({', '.join(parts)}) -> {annotations.get('return', returns)}: ..."


def method(name, value, stub, array, returns="Any"):
    """The lines of a method or property."""
    if isinstance(value, property):
        lines = ["    @property", f"    def {name}(self) -> {_annotations(value.fget, stub, array).get('return', returns)}: ..."]
        if value.fset is not None:
            lines += [f"    @{name}.setter", f"    def {name}(self, value: Any) -> None: ..."]
        return "\n".join(lines)
    return "    " + function(name, value, stub, array, returns)


def written_in(cls, home):
    """The names that the body of a class defines in the source of the module `home`."""
    tree, _ = _source(home)
    body = next(n for n in tree.body if isinstance(n, ast.ClassDef) and n.name == cls.__name__).body
    names = {n.name for n in body if isinstance(n, (ast.FunctionDef, ast.ClassDef))}
    return names | {t.id for n in body if isinstance(n, (ast.Assign, ast.AnnAssign)) for t in ast.walk(n) if isinstance(t, ast.Name)}
