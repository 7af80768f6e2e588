"""Where each operator runs: by its own kernels, oneDNN, OpenVINO, on GPUs, in INT8, in ONNX files."""
import re
import types


def rows(root, operators):
    """Return a dict of the six cells of each operator, by its name."""
    from mxnet.contrib import onnx  # noqa: F401  registers the operators of imported files
    from mxnet.graph.backends.openvino import conversion, model  # noqa: F401
    from mxnet.onnx.mx2onnx import registry
    waits = dict(re.findall(r"^\| `([^`]+)` \| ([^|]+) \|", (root / "docs" / "gpu.md").read_text(), re.M))
    return {op.name: {
        "own kernel": "yes" if reaches(op.raw, is_kernel) else "",
        "oneDNN": "yes" if reaches(op.raw, calls_onednn) else "",
        "OpenVINO": "yes" if op.name in conversion.CONVERTERS else "",
        "GPU": f"waits for {waits[op.name].strip()}" if op.name in waits else "yes",
        "INT8": "computes in it" if op.computes_quantized else "yes" if op.quantized is not None else "",
        "ONNX": "yes" if registry.find(op) else "",
    } for op in operators}


def is_kernel(thing):
    """Return True for a function or module of the package's kernels."""
    name = thing.__name__ if isinstance(thing, types.ModuleType) else getattr(thing, "__module__", None) or ""
    return name.startswith("mxnet.kernels.") and not name.startswith(("mxnet.kernels.runtime", "mxnet.kernels.random.fallback"))


def calls_onednn(thing):
    """Return True for a function that names torch's operators of oneDNN."""
    code = getattr(thing, "__code__", None)
    return code is not None and any("mkldnn" in name or "onednn" in name for name in code.co_names)


def reaches(fn, wanted, _depth=6):
    """Return True if a function of the package, or one that it references, is `wanted`."""
    todo, seen = [(fn, _depth)], set()
    while todo:
        thing, depth = todo.pop()
        thing = getattr(thing, "raw", thing)
        if id(thing) in seen:
            continue
        seen.add(id(thing))
        if wanted(thing):
            return True
        if depth and isinstance(thing, types.FunctionType) and thing.__module__.startswith("mxnet."):
            todo += [(results, depth - 1) for results in _referenced(thing, thing.__code__)]
    return False


def _referenced(fn, code):
    for name in code.co_names:
        thing = fn.__globals__.get(name)
        if isinstance(thing, types.ModuleType) and thing.__name__.startswith("mxnet.kernels."):
            yield thing
            yield from (getattr(thing, attribute) for attribute in code.co_names if isinstance(getattr(thing, attribute, None), types.FunctionType))
        elif callable(thing):
            yield thing
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _referenced(fn, constant)
    for cell in fn.__closure__ or ():
        try:
            if callable(cell.cell_contents):
                yield cell.cell_contents
        except ValueError:  # not filled
            pass
