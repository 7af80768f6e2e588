"""Compare ``mx.np`` and ``mx.npx`` with the names of MXNet 2.0: python tests/numpy/check_names_2.py

`names-2.0.json` has the public names of `mxnet.numpy`, `mxnet.numpy.linalg`, `.random`, `mxnet.numpy_extension` and their parameters, as the
sources of apache/mxnet (branch master, after 2.0.0.beta1) list them. A function counts when it takes every parameter of the original by the same
name, a class when it has every member.
"""
import importlib
import inspect
import json
import pathlib

TABLE = json.loads((pathlib.Path(__file__).parent / "names-2.0.json").read_text())

_DEFAULT = "float64 in the place of float32 as the type of what names none; say dtype='float64', or use mxnet.numpy.array_api"
# Names that are not here, and why.
ABSENT = {
    **{f"mxnet.numpy_extension.intgemm_{n}": "MXNet has it where it was built with the library intgemm; 1.9.1's wheels were not"
       for n in ("fully_connected", "maxabsolute", "prepare_data", "prepare_weight", "take_weight")},
    "mxnet.numpy_extension.is_np_default_dtype": _DEFAULT, "mxnet.numpy_extension.set_np_default_dtype": _DEFAULT,
    "mxnet.numpy_extension.image.random_resized_crop": "mx.image.random_size_crop is its 1.9 name",
}
# What MXNet 1.9.1 calls a parameter that 2.0 renamed; a program that gives it by position runs on both.
RENAMED = {"mxnet.numpy.squeeze": {"x": "a"}, "mxnet.numpy.diag": {"v": "array"}, "mxnet.numpy.diagflat": {"v": "array"},
           "mxnet.numpy.linalg.matrix_rank": {"M": "A"}}


def lacks(path, found, spec):
    """Say what `found` lacks of what the table has; an empty string if nothing."""
    if spec["kind"] == "class":
        return ", ".join(m for m in spec["members"] if not hasattr(found, m))
    if spec["kind"] != "function":
        return ""
    have = inspect.signature(found).parameters
    if any(p.kind is p.VAR_KEYWORD for p in have.values()):
        return ""
    names = {RENAMED.get(path, {}).get(p, p) for p in (q.rstrip("=") for q in spec["params"] if not q.startswith("*"))}
    return ", ".join(sorted(n for n in names - set(have) - {"name"} if not (n == "device" and "ctx" in have)))


def missing():
    """Path -> what is missing there, over the whole table; and the number of names in it."""
    out, count = {}, 0
    for module, names in TABLE.items():
        space = importlib.import_module(module)
        for name, spec in names.items():
            count += 1
            path = f"{module}.{name}"
            try:
                found = getattr(space, name)
            except AttributeError:
                out[path] = "the name"
                continue
            if what := lacks(path, found, spec):
                out[path] = what
    return out, count


if __name__ == "__main__":
    gaps, total = missing()
    for path, what in sorted(gaps.items()):
        print(f"{path}: {what}" + (f" ({ABSENT[path]})" if path in ABSENT else ""))
    print(f"{total - len(gaps)} of {total} names, {1 - len(gaps) / total:.2%}")
