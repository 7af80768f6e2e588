"""Runs every operator here and in MXNet 1.9.1, on cases made from its schema and records, and says what differs.

    python scripts/differential.py --mxnet-python /opt/oracle/bin/python
    python scripts/differential.py --mxnet-python ... --operators Pooling,sum --show

Each sample of `tests/ops/records.py` is varied: the types of its inputs, each attribute of `operators-1.9.1.json` over values of its
kind and values that are wrong, `grad_req`, the mode, the shapes, missing inputs. Compared are values, types, shapes, gradients,
changed inputs, and whether an error is raised. What differs on purpose stands in `docs/differences.md` with its reason and isn't
counted. Writes a report for people (`.md`) and one for programs (`.json`).
"""
import argparse
import collections
import datetime
import fnmatch
import json
import os
import pathlib
import pickle
import re
import select
import struct
import subprocess
import sys
import typing

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests" / "ops"), str(ROOT / "scripts")]

import numpy as np  # noqa: E402
from differential_worker import evaluate, pack, unpack  # noqa: E402
from records import EXEMPT, RECORDS  # noqa: E402

import mxnet as mx  # noqa: E402
from mxnet.ndarray import dispatch  # noqa: E402
from mxnet.ops import registry, schema  # noqa: E402

DTYPES = ("float16", "float64", "int32", "int64", "uint8", "int8", "bool")
TOLERANCES = {"float16": 1e-2, "float32": 1e-4, "float64": 1e-5}
TABLE = ROOT / "docs" / "differences.md"
SECONDS = 20  # for one case; MXNet hangs on some


# -- cases -------------------------------------------------------------------------------------------------------------
def cases_of(operator):
    """All cases of an operator: (label, case), each different from a sample in one respect."""
    samples = RECORDS[operator]
    for number, sample in enumerate(samples):
        base = dict(operator=operator, inputs=[pack(a) for a in sample.inputs], attributes={k: str(v) for k, v in sample.attributes.items()},
                    training=sample.training, grad_req="write", gradient=gradients(operator, sample, sample.inputs))
        yield f"sample {number}", base
        if base["gradient"]:
            yield f"sample {number}; grad_req=add", {**base, "grad_req": "add"}
        if number < 3:
            for label, case in variations(operator, sample, base, number):
                yield f"sample {number}; {label}", case


def gradients(operator, sample, inputs):
    """Which inputs get a gradient: those of floating point that the operator doesn't write to."""
    op = registry.get(operator)
    if op.no_gradient:
        return []
    return [i for i, a in enumerate(inputs) if a.dtype.kind == "f" and i not in op.mutated_indices
            and (sample.gradient is None or i in sample.gradient)]


def variations(operator, sample, base, number):
    inputs = sample.inputs

    def changed(arrays):
        return {**base, "inputs": [pack(a) for a in arrays], "gradient": gradients(operator, sample, arrays)}

    yield "other mode", {**base, "training": not base["training"]}
    yield "no gradient", {**base, "gradient": []}
    for dtype in DTYPES:
        if any(a.dtype.kind == "f" for a in inputs):
            yield f"dtype={dtype}", changed([convert(a, dtype) if a.dtype == inputs[0].dtype else a for a in inputs])
    if len(inputs) > 1:
        yield "last input float64", changed([*inputs[:-1], convert(inputs[-1], "float64")])
        yield "no last input", changed(inputs[:-1])
    if inputs:
        first, rest = inputs[0], inputs[1:]
        yield "first input flat", changed([first.reshape(-1), *rest])
        yield "first input has one more axis", changed([first[None], *rest])
        if first.ndim:
            yield "first input cut", changed([first[:1], *rest])
        yield "one more input", changed([*inputs, first])
        if all(a.shape == first.shape for a in inputs) and first.ndim:
            yield "one row", changed([a[:1] for a in inputs])
            yield "one axis", changed([a.reshape(-1) for a in inputs])
            yield "five axes", changed([a.reshape((1,) * (5 - a.ndim) + a.shape) if a.ndim < 5 else a for a in inputs])
            yield "many", changed([np.tile(a, (7,) * a.ndim) for a in inputs])
    if number < 2:
        for name, kind, default in SCHEMA.get(operator, ()):
            for text in texts(operator, name, kind):
                if text != base["attributes"].get(name):
                    yield f"{name}={text}", {**base, "attributes": {**base["attributes"], name: text}}
            if default is None and name in base["attributes"]:
                yield f"no {name}", {**base, "attributes": {k: v for k, v in base["attributes"].items() if k != name}}
        yield "unknown=1", {**base, "attributes": {**base["attributes"], "unknown": "1"}}


def convert(array, dtype):
    """The array in another type, without what that type can't hold."""
    if dtype == "bool":
        return array > 0
    return np.nan_to_num(np.abs(array * 3), posinf=9).astype(dtype) if dtype in ("uint8", "int8", "int32", "int64") else array.astype(dtype)


def texts(operator, name, kind):
    """Values, as a file spells them, that an attribute of that kind is tried with; some are wrong."""
    wrong = ["nonsense"]
    attribute = registry.get(operator).attributes.get(name)
    if name in ("workspace", "cudnn_tune", "cudnn_off", "ctx", "num_args", "filename"):
        return []
    if kind.startswith("{"):
        return [t.strip(" '") for t in kind.strip("{}").split(",")] + wrong
    if kind.startswith("boolean"):
        return ["True", "False", "1", "0"] + wrong
    if kind.startswith(("Shape", "tuple of <long>")):
        axes = attribute is not None and attribute.kind == schema.Axes or name in ("axis", "axes")
        return (["()", "0", "-1", "(0,)", "(-1,)", "(0, 1)", "[1]", "9"] if axes else ["()", "(1,)", "(2, 2)", "[1, 2]"]) + \
            (["None"] if "None" in kind else []) + wrong
    if kind.startswith(("int", "long")):
        return ["0", "1", "2", "-1", "9"] + (["None"] if "None" in kind else []) + ["1.5"] + wrong
    if kind.startswith(("float", "double", "real_t")):
        return ["0", "0.5", "2", "-1", "1e-3"] + (["None"] if "None" in kind else []) + wrong
    if kind.startswith("tuple of <"):
        return ["(0.5, 0.5)", "(1,)", "[0.1,0.2]"] + wrong
    return []


SCHEMA: dict = {}


def read_schema(path):
    """The attributes of each operator: (name, kind, default)."""
    stored = json.loads(pathlib.Path(path).read_text())
    for name in RECORDS:
        entry = stored.get(name, {})
        while "same_as" in entry:
            entry = stored[entry["same_as"]]
        SCHEMA[name] = [a for a in entry.get("args", ()) if not a[1].startswith(("NDArray", "Symbol"))]


# -- both sides --------------------------------------------------------------------------------------------------------
class Oracle:
    """MXNet 1.9.1 in a process, started again after each crash or hang."""

    def __init__(self, python):
        self.python, self.process = python, None

    def __call__(self, case):
        if self.process is None:
            env = {**os.environ, "OMP_NUM_THREADS": "1", "MXNET_ENGINE_TYPE": "NaiveEngine", "PYTHONPATH": ""}
            self.process = subprocess.Popen([self.python, "-W", "ignore", str(ROOT / "scripts" / "differential_worker.py")], stdin=subprocess.PIPE,
                                            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=env)
        question = pickle.dumps(case, protocol=4)
        try:
            self.process.stdin.write(struct.pack("<q", len(question)) + question)
            self.process.stdin.flush()
            return pickle.loads(self._read(struct.unpack("<q", self._read(8))[0]))
        except (EOFError, BrokenPipeError, TimeoutError) as error:
            self.process.kill()
            self.process.wait()
            self.process = None
            return {"lost": "hangs" if isinstance(error, TimeoutError) else "crashes"}

    def _read(self, size):
        content = b""
        while len(content) < size:
            if not select.select([self.process.stdout], [], [], SECONDS)[0]:
                raise TimeoutError
            part = os.read(self.process.stdout.fileno(), size - len(content))
            if not part:
                raise EOFError
            content += part
        return content


def invoke(name, arrays, attributes):
    """How Remex calls any operator by its name."""
    outputs = dispatch.invoke(registry.get(name), arrays, attributes)
    return outputs if isinstance(outputs, list) else [outputs]


# -- comparison --------------------------------------------------------------------------------------------------------
class Difference(typing.NamedTuple):
    operator: str
    label: str
    kind: str
    detail: str


def compare(operator, label, case, expected, tolerance):
    """The first difference between Remex and `expected`, or None."""
    found = evaluate(mx, invoke, case)

    def difference(kind, detail):
        return Difference(operator, label, kind, detail)

    if "error" in expected or "error" in found:
        if "error" not in found:
            return difference("accepts", f"MXNet: {expected['message']}")
        if "error" not in expected:
            return difference("refuses", f"{found['error']}: {found['message']}")
        if found["error"] != expected["error"]:
            return difference("error type", f"{found['error']} instead of {expected['error']}: {found['message']}")
        return None
    if len(found["outputs"]) != len(expected["outputs"]):
        return difference("outputs", f"{len(found['outputs'])} instead of {len(expected['outputs'])}")
    random = any(found["outputs"] != evaluate(mx, invoke, case, seed=seed)["outputs"] for seed in range(2, 9 if "_random" in operator else 3))
    half = max((TOLERANCES.get(i[0], 0) for i in case["inputs"]), default=0)  # what was rounded on the way stays so
    for what, ours, theirs in groups(found, expected):
        if "error" in (*ours, *theirs):
            if ("error" in ours) != ("error" in theirs):
                return difference(f"{what} refused" if "error" in ours else f"{what} accepted", str(ours.get("error") or theirs.get("error")))
            continue
        for i in {**ours, **theirs}:
            if i not in ours or i not in theirs:
                return difference(what, f"{i}: changed {'here' if i in ours else 'in MXNet'} only")
            problem = unequal(unpack(ours[i]), unpack(theirs[i]), max(tolerance, half), random)
            if problem:
                return difference(f"{what} {problem[0]}", f"{i}: {problem[1]}")
    return None


def groups(found, expected):
    yield "output", dict(enumerate(found["outputs"])), dict(enumerate(expected["outputs"]))
    yield "gradient", found["gradients"], expected["gradients"]
    yield "input", found["inputs"], expected["inputs"]


def unequal(found, expected, tolerance, random):
    """What differs between two arrays (kind, text), or None."""
    if found.dtype != expected.dtype:
        return "dtype", f"{found.dtype} instead of {expected.dtype}"
    if found.shape != expected.shape:
        return "shape", f"{found.shape} instead of {expected.shape}"
    if random or found.size == 0:
        return None
    limit = max(TOLERANCES.get(found.dtype.name, 0), tolerance * 2 if found.dtype.kind == "f" else 0)
    a, b = found.astype("float64"), expected.astype("float64")
    scale = max(1.0, float(np.abs(b[np.isfinite(b)]).max(initial=0)))
    bad = ~np.isclose(a, b, rtol=limit, atol=limit * scale, equal_nan=True)
    if bad.any():
        i = tuple(int(v) for v in np.argwhere(bad)[0])
        return "value", f"{int(bad.sum())} of {bad.size}; at {i} {a[i]:.6g} instead of {b[i]:.6g}"
    return None


# -- the table of accepted differences ---------------------------------------------------------------------------------
def accepted_rows():
    """The rows of docs/differences.md: (operator, kind, case, why); the first three are patterns."""
    rows = []
    for line in TABLE.read_text().splitlines() if TABLE.exists() else ():
        cells = [c.strip().strip("`").replace("\\|", "|") for c in re.split(r"(?<!\\)\|", line)[1:-1]]
        if len(cells) == 4 and cells[0] not in ("operator", "") and not set(cells[0]) <= set("-: "):
            rows.append(tuple(cells))
    return rows


def matches(text, patterns):
    return any(fnmatch.fnmatchcase(text, p.strip()) for p in patterns.split(","))


def reason_for(difference, rows):
    """The number of the row that accepts a difference, or None."""
    for i, (operator, kind, case, _) in enumerate(rows):
        if matches(difference.operator, operator) and matches(difference.kind, kind) and fnmatch.fnmatchcase(difference.label, case):
            return i
    return None


def write_summary(text):
    """Put the counts of a full run into docs/differences.md, between its marks."""
    page = TABLE.read_text()
    TABLE.write_text(re.sub(r"(<!-- run -->\n).*?(<!-- end -->)", lambda m: m[1] + text + "\n" + m[2], page, flags=re.S))


# -- the program -------------------------------------------------------------------------------------------------------
def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mxnet-python", default=os.environ.get("MXNET_PYTHON"), help="the Python of an environment with MXNet 1.9.1")
    parser.add_argument("--schema", default=str(ROOT.parent / "shared" / "reference" / "operators-1.9.1.json"))
    parser.add_argument("--operators", help="only these, separated by commas; patterns are allowed")
    parser.add_argument("--report", default=str(ROOT / "build" / "differential"), help="where the .md and .json go")
    parser.add_argument("--show", action="store_true", help="print each difference that no row accepts")
    args = parser.parse_args()
    if not args.mxnet_python:
        parser.error("--mxnet-python (or MXNET_PYTHON) must name a Python that has MXNet 1.9.1")
    read_schema(args.schema)
    oracle, rows = Oracle(args.mxnet_python), accepted_rows()
    counts, open_ones, accepted, lost = collections.Counter(), [], collections.Counter(), []
    names = [n for n in RECORDS if n not in EXEMPT and (not args.operators or matches(n, args.operators))]
    for name in names:
        for label, case in cases_of(name):
            counts[name] += 1
            expected = oracle(case)
            if "lost" in expected:
                lost.append(f"{name} ({label}): MXNet {expected['lost']}")
                continue
            number = int(label.split(";")[0].split()[1])
            difference = compare(name, label, case, expected, RECORDS[name][number].tolerance)
            if difference is None:
                continue
            row = reason_for(difference, rows)
            if row is None:
                open_ones.append(difference)
                if args.show:
                    print(f"{difference.operator} | {difference.label} | {difference.kind} | {difference.detail}", flush=True)
            else:
                accepted[row] += 1
    report(args, names, counts, open_ones, accepted, lost, rows)


def report(args, names, counts, open_ones, accepted, lost, rows):
    summary = (f"{datetime.date.today()}: {sum(counts.values())} cases of {len(names)} operators; {len(open_ones)} differences, "
               f"{sum(accepted.values())} accepted below; in {len(lost)} cases MXNet crashed or hung.")
    print(summary)
    per_operator = collections.Counter(d.operator for d in open_ones)
    for name, n in per_operator.most_common():
        print(f"  {name}: {n} of {counts[name]}")
    path = pathlib.Path(args.report)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.with_suffix(".json").write_text(json.dumps({
        "cases": counts, "differences": [d._asdict() for d in open_ones], "accepted": {rows[i][0] + " " + rows[i][1]: n for i, n in accepted.items()},
        "lost": lost, "unused rows": [rows[i] for i in range(len(rows)) if i not in accepted]}, indent=1))
    lines = ["# Differences between Remex and MXNet 1.9.1", "", summary, "", "| operator | case | what | detail |", "|---|---|---|---|"]
    escaped = ([str(c).replace("|", "\\|").replace("\n", " ") for c in d] for d in open_ones)
    lines += [f"| {' | '.join(d)} |" for d in escaped]
    lines += ["", "## Operators", "", "| operator | cases | differences |", "|---|---|---|"]
    lines += [f"| {n} | {counts[n]} | {per_operator[n]} |" for n in names]
    lines += ["", "## Lost cases", "", *(f"- {item}" for item in lost)]
    path.with_suffix(".md").write_text("\n".join(lines) + "\n")
    if not args.operators:
        write_summary(summary)


if __name__ == "__main__":
    main()
