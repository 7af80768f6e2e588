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
import concurrent.futures
import dataclasses
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
import torch  # noqa: E402
from differential_worker import evaluate, pack, unpack  # noqa: E402
from records import EXEMPT, RECORDS  # noqa: E402

import mxnet as mx  # noqa: E402
from mxnet.ndarray import dispatch  # noqa: E402
from mxnet.ops import registry, schema  # noqa: E402

DTYPES = ("float16", "float64", "int32", "int64", "uint8", "int8", "bool")
TOLERANCES = {"bfloat16": 3e-2, "float16": 1e-2, "float32": 1e-4, "float64": 1e-5}
TABLE = ROOT / "docs" / "differences.md"
SECONDS = 20  # for one case; MXNet hangs on some


# -- cases -------------------------------------------------------------------------------------------------------------
def cases_of(operator):
    """All cases of an operator: (label, case), each different from a sample in one respect."""
    samples = RECORDS[operator]
    for number, sample in enumerate(samples):
        base = dict(operator=operator, inputs=[pack(a) for a in sample.inputs], attributes={k: str(v) for k, v in sample.attributes.items()},
                    training=sample.training, grad_req="write", gradient=gradients(operator, sample, sample.inputs), out=written(operator, sample),
                    semantics="numpy" if operator.startswith("_np") else "legacy", bfloat16=False)
        yield f"sample {number}", base
        if base["gradient"]:
            yield f"sample {number}; grad_req=add", {**base, "grad_req": "add"}
        if number < 3:
            for label, case in variations(operator, sample, base, number):
                yield f"sample {number}; {label}", case


def gradients(operator, sample, inputs, kinds="f"):
    """Which inputs get a gradient: those of these kinds of types, floating point as a rule, that the operator doesn't write to."""
    op = registry.get(operator)
    if op.no_gradient:
        return []
    return [i for i, a in enumerate(inputs) if a.dtype.kind in kinds and i not in op.mutated_indices
            and (sample.gradient is None or i in sample.gradient)]


def written(operator, sample):
    """Which inputs receive the results, for operators that MXNet refuses to run without ``out=``."""
    if operator == "_scatter_set_nd":
        return [0]
    count = sample.attributes.get("num_weights", sample.attributes.get("num_tensors"))
    if count is None or "multi" not in operator or operator.startswith("reset"):
        return None
    stride = len(sample.inputs) // count  # less than `count` inputs belong to all weights
    return [i * stride for i in range(count)]


def variations(operator, sample, base, number):
    inputs = sample.inputs

    def changed(arrays, **more):
        return {**base, "inputs": [pack(a) for a in arrays], "gradient": gradients(operator, sample, arrays), **more}

    yield "other mode", {**base, "training": not base["training"]}
    yield "no gradient", {**base, "gradient": []}
    for dtype in DTYPES:
        if any(a.dtype.kind == "f" for a in inputs):
            yield f"dtype={dtype}", changed([convert(a, dtype) if a.dtype == inputs[0].dtype else a for a in inputs])
    if any(a.dtype.kind == "f" for a in inputs):
        integers = [convert(a, "int32") if a.dtype == inputs[0].dtype else a for a in inputs]
        yield "dtype=int32, with gradients", changed(integers, gradient=gradients(operator, sample, integers, "fi"))
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
            if number == 0:
                shapes = {"semantics": base["semantics"].replace("legacy", "np_shape")}
                yield "no rows", changed([a[:0] for a in inputs], **shapes)
                yield "no axes", changed([a.reshape(-1)[0] for a in inputs], **shapes)
        if number == 0 and first.dtype == np.float32:
            yield "inputs in bfloat16", {**base, "bfloat16": True, "gradient": []}
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


class Difference(typing.NamedTuple):
    operator: str
    label: str
    kind: str
    detail: str


@dataclasses.dataclass
class Outcome:
    """The results of an operator's cases."""

    cases: int = 0
    differences: list = dataclasses.field(default_factory=list)
    reference: list = dataclasses.field(default_factory=list)  # equal to MXNet without oneDNN only
    undefined: list = dataclasses.field(default_factory=list)  # MXNet's result changes with what memory held
    lost: list = dataclasses.field(default_factory=list)  # MXNet crashed or hung


# -- both sides --------------------------------------------------------------------------------------------------------
class Oracle:
    """MXNet 1.9.1 in a process, started again after each crash or hang.

    `environment` tells how it differs from an ordinary one.
    """

    def __init__(self, python, **environment):
        self.python, self.environment, self.process = python, environment, None

    def __call__(self, case):
        if self.process is None:
            env = {**os.environ, "OMP_NUM_THREADS": "1", "MXNET_ENGINE_TYPE": "NaiveEngine", "PYTHONPATH": "", **self.environment}
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


def invoke(name, arrays, attributes, out=None, numpy=False):
    """Call any operator of Remex by its name."""
    outputs = dispatch.invoke(registry.get(name), arrays, attributes, out, mx.np.ndarray if numpy else None)
    return outputs if isinstance(outputs, list) else [outputs]


class Comparison:
    """Compares cases with MXNet.

    Where Remex differs, MXNet is asked twice more: with its other CPU kernels (without oneDNN), one of which Remex must equal, and with
    memory that starts with other content, which shows results that MXNet never set.
    """

    def __init__(self, python, cases):
        self.cases = cases
        self.mxnet = Oracle(python, MALLOC_PERTURB_="85")
        self.without_onednn = Oracle(python, MALLOC_PERTURB_="85", MXNET_MKLDNN_ENABLED="0")
        self.other_memory = Oracle(python, MALLOC_PERTURB_="170")

    def __call__(self, operator):
        """The outcome of all cases of an operator."""
        outcome = Outcome()
        for label, case in cases_of(operator):
            if not fnmatch.fnmatch(label, self.cases):
                continue
            outcome.cases += 1
            tolerance = RECORDS[operator][int(label.split(";")[0].split()[1])].tolerance
            self._compare(operator, label, case, tolerance, outcome)
        return outcome

    def _compare(self, operator, label, case, tolerance, outcome):
        title = f"{operator} ({label})"
        expected = self.mxnet(case)
        if "lost" in expected:
            outcome.lost.append(f"{title}: MXNet {expected['lost']}")
            return
        difference = compare(operator, label, case, expected, tolerance)
        if difference is None:
            return
        again = self.other_memory(case)
        if "lost" in again or any(unset(a, b) for a, b in zip(packed_results(expected), packed_results(again))):
            outcome.undefined.append(title)
            return
        reference = self.without_onednn(case)
        if "lost" not in reference and compare(operator, label, case, reference, tolerance) is None:
            outcome.reference.append(f"{title}: {difference.kind}")
            return
        outcome.differences.append(difference)


def start_worker(python, schema, cases):
    """Prepare a process that compares operators."""
    global comparison
    torch.set_num_threads(1)
    read_schema(schema)
    comparison = Comparison(python, cases)


def run_operator(name):
    return comparison(name)


def packed_results(actual):
    """The arrays of an answer, in order."""
    if "error" not in actual:
        for group in ("outputs", "gradients", "inputs"):
            values = actual[group] if group == "outputs" else [actual[group][k] for k in sorted(actual[group], key=str)]
            yield from (v for v in values if not isinstance(v, str))


def unset(first, second):
    """Return True if two answers to one case differ by more than rounding: then a part of them is uninitialized memory."""
    return first != second and (first[:2] != second[:2] or unequal(unpack(first), unpack(second), 1e-5, False) is not None)


# -- comparison --------------------------------------------------------------------------------------------------------
def compare(operator, label, case, expected, tolerance):
    """The first difference between Remex and `expected`, or None."""
    actual = evaluate(mx, invoke, case)

    def difference(kind, detail):
        return Difference(operator, label, kind, detail)

    if "error" in expected or "error" in actual:
        if "error" not in actual:
            return difference("accepts", f"MXNet: {expected['message']}")
        if "error" not in expected:
            return difference("refuses", f"{actual['error']}: {actual['message']}")
        if expected["error"] not in actual["kinds"]:
            return difference("error type", f"{actual['error']} instead of {expected['error']}: {actual['message']}")
        return None
    if len(actual["outputs"]) != len(expected["outputs"]):
        return difference("outputs", f"{len(actual['outputs'])} instead of {len(expected['outputs'])}")
    random = any(actual["outputs"] != evaluate(mx, invoke, case, seed=seed)["outputs"] for seed in range(2, 9 if "_random" in operator else 3))
    # What was rounded on the way stays so.
    half = max((TOLERANCES.get("bfloat16" if case["bfloat16"] else i[0], 0) for i in case["inputs"]), default=0)
    for what, ours, theirs in groups(actual, expected):
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


def groups(actual, expected):
    yield "output", dict(enumerate(actual["outputs"])), dict(enumerate(expected["outputs"]))
    yield "gradient", actual["gradients"], expected["gradients"]
    yield "input", actual["inputs"], expected["inputs"]


def unequal(actual, expected, tolerance, random):
    """Return the difference between two arrays as (kind, text), or None."""
    if actual.dtype != expected.dtype:
        return "dtype", f"{actual.dtype} instead of {expected.dtype}"
    if actual.shape != expected.shape:
        return "shape", f"{actual.shape} instead of {expected.shape}"
    if random or actual.size == 0:
        return None
    limit = max(TOLERANCES.get(actual.dtype.name, 0), tolerance * 2 if actual.dtype.kind == "f" else 0)
    a, b = actual.astype("float64"), expected.astype("float64")
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
    parser.add_argument("--schema", default=str(ROOT.parent / "shared" / "reference" / "operators-1.9.1.json"),
                        help="the attributes of MXNet 1.9.1's operators")
    parser.add_argument("--operators", help="only these, separated by commas; patterns are allowed")
    parser.add_argument("--cases", default="*", help="only those with such a name, as the report shows them; a pattern")
    parser.add_argument("--report", default=str(ROOT / "build" / "differential"), help="where the .md and .json go")
    parser.add_argument("--jobs", type=int, default=2, help="how many operators are compared at the same time")
    parser.add_argument("--show", action="store_true", help="print each difference that no row accepts")
    args = parser.parse_args()
    if not args.mxnet_python:
        parser.error("--mxnet-python (or MXNET_PYTHON) must name a Python that has MXNet 1.9.1")
    rows, names = accepted_rows(), [n for n in RECORDS if n not in EXEMPT and (not args.operators or matches(n, args.operators))]
    total, open_ones, accepted = Outcome(), [], {}
    counts = {}
    with concurrent.futures.ProcessPoolExecutor(args.jobs, initializer=start_worker, initargs=(args.mxnet_python, args.schema, args.cases)) as pool:
        for name, outcome in zip(names, pool.map(run_operator, names)):
            counts[name] = outcome.cases
            for kind in ("reference", "undefined", "lost"):
                getattr(total, kind).extend(getattr(outcome, kind))
            for difference in outcome.differences:
                row = reason_for(difference, rows)
                if row is not None:
                    accepted.setdefault(row, []).append(difference)
                    continue
                open_ones.append(difference)
                if args.show:
                    print(f"{difference.operator} | {difference.label} | {difference.kind} | {difference.detail}", flush=True)
            if sys.stderr.isatty():
                print(f"\r{sum(counts.values())} cases, {len(open_ones)} differences; {name}\033[K", end="", file=sys.stderr, flush=True)
    report(args, counts, open_ones, accepted, total, rows)


def report(args, counts, open_ones, accepted, total, rows):
    summary = (f"{datetime.date.today()}: {sum(counts.values())} cases of {len(counts)} operators; {len(open_ones)} differences, "
               f"{sum(map(len, accepted.values()))} accepted below; {len(total.reference)} cases equal only MXNet's kernels without oneDNN, "
               f"in {len(total.undefined)} MXNet's result changes with what memory held, in {len(total.lost)} it crashed or hung.")
    print(("\r\033[K" if sys.stderr.isatty() else "") + summary)
    per_operator = collections.Counter(d.operator for d in open_ones)
    for name, n in per_operator.most_common():
        print(f"  {name}: {n} of {counts[name]}")
    path = pathlib.Path(args.report)
    path.parent.mkdir(parents=True, exist_ok=True)
    content = {
        "cases": counts,
        "differences": [d._asdict() for d in open_ones],
        "accepted": [{"row": rows[i], "differences": [d._asdict() for d in actual]} for i, actual in accepted.items()],
        "unused rows": [rows[i] for i in range(len(rows)) if i not in accepted],
        "without oneDNN": total.reference,
        "undefined": total.undefined,
        "lost": total.lost,
    }
    path.with_suffix(".json").write_text(json.dumps(content, indent=1))
    lines = ["# Differences between Remex and MXNet 1.9.1", "", summary, "", "| operator | case | what | detail |", "|---|---|---|---|"]
    escaped = ([str(c).replace("|", "\\|").replace("\n", " ") for c in d] for d in open_ones)
    lines += [f"| {' | '.join(d)} |" for d in escaped]
    lines += ["", "## Operators", "", "| operator | cases | differences |", "|---|---|---|"]
    lines += [f"| {n} | {counts[n]} | {per_operator[n]} |" for n in counts]
    for title, items in (("Equal to MXNet without oneDNN only", total.reference), ("Where MXNet's result changes with what memory held",
                         total.undefined), ("Lost cases", total.lost)):
        lines += ["", f"## {title}", "", *(f"- {item}" for item in items)]
    path.with_suffix(".md").write_text("\n".join(lines) + "\n")
    if not args.operators:
        write_summary(summary)


if __name__ == "__main__":
    main()
