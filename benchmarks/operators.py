"""Compare every operator with torch's nearest call and MXNet 1.9.1: forward, and forward with backward, on small and large inputs.

    python benchmarks/operators.py --mxnet-python /opt/oracle/bin/python
    python benchmarks/operators.py --mxnet-python ... --operators exp,sum,Convolution --rounds 3

Small inputs are those of `tests/ops/records.py`; large ones those of `harness/operator_inputs.py`, or the small ones repeated to about a million
numbers. Each library runs in one process; rounds are interleaved, and the table has medians. Times include waiting for the result. The cell of a
library whose call fails, or takes too long, is empty. Without --operators the run covers all but the
`_np*` operators and writes benchmarks/results/operators.md and operators.json.
"""
import argparse
import fnmatch
import json
import math
import os
import pathlib
import pickle
import select
import struct
import subprocess
import sys
import time

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
MILLION = 1 << 20

# Torch's nearest call where it has another name, as an expression of the inputs a, b, c, d.
TORCH = {
    **{f"{p}_{n}": f"torch.{n}(a, b)" for p in ("elemwise", "broadcast") for n in ("add", "sub", "mul", "div")},
    **{f"{p}{n}": f"torch.{t}(a, b)" for p in ("_", "broadcast_") for n, t in (
        ("mod", "remainder"), ("power", "pow"), ("hypot", "hypot"), ("maximum", "maximum"), ("minimum", "minimum"), ("equal", "eq"),
        ("not_equal", "ne"), ("greater", "gt"), ("greater_equal", "ge"), ("lesser", "lt"), ("lesser_equal", "le"),
        ("logical_and", "logical_and"), ("logical_or", "logical_or"), ("logical_xor", "logical_xor"))},
    **{f"_{n}_scalar": e for n, e in {"plus": "a + 1.3", "minus": "a - 1.3", "rminus": "1.3 - a", "mul": "a * 1.3", "div": "a / 1.3",
                                      "rdiv": "1.3 / a",
                                      "mod": "a % 1.3", "power": "a ** 1.3", "rpower": "1.3 ** a", "maximum": "a.clamp(min=1.3)",
                                      "minimum": "a.clamp(max=1.3)", "equal": "a == 1.0", "not_equal": "a != 1.0", "greater": "a > 1.0",
                                      "greater_equal": "a >= 1.0", "lesser": "a < 1.0", "lesser_equal": "a <= 1.0"}.items()},
    "arcsin": "torch.asin(a)", "arccos": "torch.acos(a)", "arctan": "torch.atan(a)", "arcsinh": "torch.asinh(a)", "arccosh": "torch.acosh(a)",
    "arctanh": "torch.atanh(a)", "degrees": "torch.rad2deg(a)", "radians": "torch.deg2rad(a)", "rint": "torch.round(a)", "fix": "torch.trunc(a)",
    "softsign": "F.softsign(a)", "gammaln": "torch.lgamma(a)", "gamma": "torch.lgamma(a).exp()", "negative": "torch.neg(a)",
    "_copy": "a.clone()", "cbrt": "a.pow(1 / 3)", "clip": "a.clamp(-0.7, 0.9)",
    "smooth_l1": "F.smooth_l1_loss(a, torch.zeros_like(a), reduction='none')",
    "where": "torch.where(a > 0, b, c)", "add_n": "a + b + c", "Cast": "a.double()", "BlockGrad": "a.detach().clone()",
    "sum": "a.sum(*axis)", "mean": "a.mean(*axis)", "prod": "a.prod(*axis)", "max": "a.amax(*axis)", "min": "a.amin(*axis)",
    "nansum": "a.nansum(*axis)",
    "norm": "torch.linalg.vector_norm(a, 2, *axis)",
    "argmax": "a.argmax(*axis)", "argmin": "a.argmin(*axis)", "argmax_channel": "a.argmax(1)", "moments": "torch.var_mean(a, 0)",
    "Reshape": "a.reshape(-1)", "Flatten": "a.flatten(1)", "transpose": "a.permute(*range(a.dim())[::-1]).contiguous()",
    "expand_dims": "a.unsqueeze(-1)",
    "squeeze": "a.squeeze()", "SwapAxis": "a.transpose(0, -1).contiguous()", "Concat": "torch.cat((a, b), 1)", "stack": "torch.stack((a, b), -1)",
    "tile": "a.repeat(2, 1, 2)", "repeat": "a.repeat_interleave(2)", "reverse": "a.flip(0, 1)", "broadcast_to": "a.expand(2, 3).contiguous()",
    "diag": "torch.diag(a, -1)", "take": "a[b.long().clamp(0, a.shape[0] - 1)]",
    "one_hot": "F.one_hot(a.long().clamp(0, 3), 4).float()", "cumsum": "torch.cumsum(a.reshape(-1), 0)", "topk": "a.topk(k, -1).indices.float()",
    "sort": "a.sort(-1).values", "argsort": "a.argsort(-1).float()", "dot": "torch.mm(a, b)", "batch_dot": "torch.bmm(a, b)",
    "_linalg_inverse": "torch.linalg.inv(a)", "_linalg_det": "torch.linalg.det(a)", "_linalg_potrf": "torch.linalg.cholesky(a)",
    "Activation": "torch.relu(a)", "softmax": "torch.softmax(a, -1)", "log_softmax": "torch.log_softmax(a, -1)",
    "softmin": "torch.softmax(-a, -1)",
    "LeakyReLU": "F.leaky_relu(a, 0.3)", "hard_sigmoid": "(0.2 * a + 0.5).clamp(0, 1)", "Convolution": "conv(a, b, c)",
    "Deconvolution": "deconv(a, b)",
    "FullyConnected": "F.linear(a.flatten(1), b, c)", "Embedding": "F.embedding(a.long(), b)",
    "Pooling": "F.max_pool2d(a, 3, 2, 1) if a.dim() == 4 else F.max_pool1d(a, 3, 2, 1)",
    "BatchNorm": "F.batch_norm(a, d.clone(), e.clone(), b, c, train, 0.1)",
    "LayerNorm": "F.layer_norm(a, a.shape[-1:], b, c)", "GroupNorm": "F.group_norm(a, 2, b, c)",
    "InstanceNorm": "F.instance_norm(a, weight=b, bias=c)",
    "L2Normalization": "F.normalize(a.flatten(1), dim=1)", "Dropout": "F.dropout(a, 0.4, train)", "SoftmaxOutput": "torch.softmax(a, -1)",
    "sgd_update": "a - 0.1 * b", "_random_uniform": "torch.rand(shape)", "_random_normal": "torch.randn(shape)",
    "_zeros": "torch.zeros(shape)", "_ones": "torch.ones(shape)", "_full": "torch.full(shape, 1.5)", "_arange": "torch.arange(start, stop)",
}


# -- a worker process ----------------------------------------------------------------------------------------
def unpack(packed):
    dtype, shape, content = packed
    return np.frombuffer(content, dtype).reshape(shape).copy()


def find(mx, name):
    """Return the function of `mx.nd` for an operator of that name."""
    for prefix, space in (("_contrib_", "contrib"), ("_linalg_", "linalg"), ("_image_", "image"), ("_sparse_", "sparse")):
        if name.startswith(prefix) and hasattr(getattr(mx.nd, space), name[len(prefix):]):
            return getattr(getattr(mx.nd, space), name[len(prefix):])
    return getattr(mx.nd._internal, name) if name.startswith("_") else getattr(mx.nd, name)


def mxnet_task(case):
    """Return (call, wait) in Remex or MXNet; the program is the same."""
    import mxnet as mx
    call, attributes = find(mx, case["operator"]), case["attributes"]
    arrays = [mx.nd.array(unpack(p), dtype=p[0]) for p in case["inputs"]]
    if not case["backward"]:
        return lambda: call(*arrays, **attributes), mx.nd.waitall
    for i in case["gradient"]:
        arrays[i].attach_grad()

    def both():
        with mx.autograd.record():
            out = call(*arrays, **attributes)
        (out[0] if isinstance(out, (list, tuple)) else out).backward()
    return both, mx.nd.waitall


def torch_task(case):
    """Return (call, wait) in torch."""
    import torch
    import torch.nn.functional as F
    tensors = [torch.from_numpy(unpack(p)) for p in case["inputs"]]
    dims = tensors[0].dim() - 2 if tensors else 0
    more = {k: v for k, v in (("stride", case["attributes"].get("stride", 1)), ("padding", case["attributes"].get("pad", 0)))}
    # MXNet's layers train while recording, and predict otherwise.
    attributes = case["attributes"]
    names = {**attributes, "axis": [attributes["axis"]] if "axis" in attributes else [], "torch": torch, "F": F,
             "train": case["backward"], "conv": lambda a, b, c=None: getattr(F, f"conv{dims}d")(a, b, c, **more),
             "deconv": lambda a, b: getattr(F, f"conv_transpose{dims}d")(a, b, **more)}
    call = eval(f"lambda {', '.join('abcdefgh'[:len(tensors)])}: {case['torch']}", names)
    if not case["backward"]:
        return lambda: call(*tensors), lambda: None
    leaves = [tensors[i].requires_grad_() for i in case["gradient"]]

    def both():
        for leaf in leaves:
            leaf.grad = None
        out = call(*tensors)
        out.backward(torch.ones_like(out))
    return both, lambda: None


def prepare(make, case, seconds):
    """Return a function that measures the microseconds of a call, over as many calls as fit in `seconds`; None where the call fails."""
    try:
        task, wait = make(case)
        task()
        wait()
        start = time.perf_counter()
        task()
        wait()
        count = max(1, min(2000, int(seconds / max(time.perf_counter() - start, 1e-7))))
    except Exception as error:
        print(case["operator"], type(error).__name__, str(error)[:200], file=sys.stderr)
        return None

    def measure():
        start = time.perf_counter()
        for _ in range(count):
            task()
        wait()
        return (time.perf_counter() - start) / count * 1e6
    return measure


def worker(kind, seconds):
    """Answer requests on stdin: each is a length and a pickled case, or None to measure the last case again."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    measure = None
    while size := sys.stdin.buffer.read(8):
        case = pickle.loads(sys.stdin.buffer.read(struct.unpack("<q", size)[0]))
        if case:
            measure = None  # frees the last case's arrays first
            measure = prepare(torch_task if kind == "torch" else mxnet_task, case, seconds)
        answer = pickle.dumps(measure and measure(), protocol=4)
        answers.write(struct.pack("<q", len(answer)) + answer)
        answers.flush()


class Peer:
    """The process of a library, which is restarted if it dies. A call with a case prepares it, one without measures the last again."""

    def __init__(self, python, kind, seconds, env, patience=60):
        self.command = [python, "-W", "ignore", str(HERE / "operators.py"), "--worker", kind, str(seconds)]
        self.env, self.patience, self.process, self.broken = env, patience, None, False

    def __call__(self, case=None):
        if case:
            self.broken = False
        if self.broken:
            return None
        if self.process is None:
            self.process = subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=self.env)
        request = pickle.dumps(case, protocol=4)
        try:
            self.process.stdin.write(struct.pack("<q", len(request)) + request)
            self.process.stdin.flush()
            if not select.select([self.process.stdout], [], [], self.patience)[0]:
                raise TimeoutError
            size = self.process.stdout.read(8)
            result = pickle.loads(self.process.stdout.read(struct.unpack("<q", size)[0]))
        except (BrokenPipeError, TimeoutError, struct.error, EOFError):
            self.process.kill()
            self.process.wait()
            self.process = result = None
        self.broken = result is None
        return result


# -- the driver -------------------------------------------------------------------------------------------------------
def torch_call(name):
    """Return the expression of torch's nearest call, None where there is none."""
    import torch
    return TORCH.get(name) or (f"torch.{name}(a)" if callable(getattr(torch, name, None)) else None)


def cases(name, sample, op, large, same_shape):
    """Yield (size, pass, case) of an operator: small and large, forward and both."""
    def pack(array):
        return array.dtype.name, array.shape, np.ascontiguousarray(array).tobytes()
    sizes = {"small": (sample.inputs, sample.attributes)}
    if name in large:
        inputs, attributes = large[name]
        random = np.random.RandomState(0)
        sizes["large"] = [random.uniform(0.1, 1, i).astype("float32") if isinstance(i, tuple) else i for i in inputs], attributes
    elif sample.inputs and all(a.shape == sample.inputs[0].shape for a in sample.inputs) and (
            op.shape_inference is same_shape or name.endswith("_update") or len(sample.inputs) == 1 and not sample.attributes):
        times = max(1, MILLION // max(1, sample.inputs[0].size))
        sizes["large"] = [np.tile(a, (times,) + (1,) * (a.ndim - 1)) for a in sample.inputs], sample.attributes
    for size, (inputs, attributes) in sizes.items():
        gradient = [i for i, a in enumerate(inputs) if a.dtype.kind == "f" and i not in op.mutated_indices
                    and (sample.gradient is None or i in sample.gradient)]
        case = dict(operator=name, inputs=[pack(a) for a in inputs], attributes=attributes, gradient=gradient, torch=torch_call(name), backward=False)
        yield size, "forward", case
        if gradient and not op.no_gradient:
            yield size, "both", {**case, "backward": True}


def mean(values):
    return math.exp(sum(map(math.log, values)) / len(values)) if values else float("nan")


def summary(rows):
    """Yield lines about the ratios, and the ten slowest operators."""
    large = sorted((r["mxnet"] / r["remex"], f"{r['operator']} {r['pass']}") for r in rows if r["input"] == "large" and r["mxnet"] and r["remex"])
    every = [r["mxnet"] / r["remex"] for r in rows if r["mxnet"] and r["remex"]]
    small = sorted((r["remex"] / r["torch"], r["operator"]) for r in rows
                   if r["input"] == "small" and r["pass"] == "forward" and r["torch"] and r["remex"])
    if every:
        slower = [f"{n} ({x:.2f})" for x, n in large if x < 1]
        yield (f"- MXNet / Remex, geometric mean: {mean([x for x, _ in large]):.2f} over {len(large)} large inputs, "
               f"{mean(every):.2f} over all {len(every)}")
        yield f"- Slower than MXNet on large inputs, {len(slower)}: " + (", ".join(slower) or "none")
        yield "- The ten lowest speed-ups over MXNet on large inputs: " + ", ".join(f"{n} ({x:.2f})" for x, n in large[:10])
    if small:
        yield f"- Remex / torch, small inputs, forward, geometric mean: {mean([x for x, _ in small]):.2f} over {len(small)}"
        yield "- The ten highest ratios to torch on small inputs: " + ", ".join(f"{n} ({x:.1f})" for x, n in small[:-11:-1])
    failed = sorted({r["operator"] for r in rows if not r["remex"]})
    yield "- Not measured in Remex: " + (", ".join(failed) or "none")


def main():
    from harness import common, isa_limit
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    common.add_arguments(parser)
    parser.add_argument("--operators", help="only these, separated by commas; wildcards are allowed")
    parser.add_argument("--inputs", choices=("small", "large"), help="only these inputs")
    parser.add_argument("--seconds", type=float, default=0.02, help="the least length of one measurement")
    parser.add_argument("--threads", type=int, default=2, help="OMP_NUM_THREADS of all libraries")
    parser.add_argument("--output", help="the table's file, beside which a .json is written; a run over all writes benchmarks/results/operators.md")
    parser.add_argument("--avx2", action="store_true", help="limit all libraries to AVX2, as run.py does; writes only to --output")
    args = parser.parse_args()
    sys.path[:0] = [str(HERE.parent / "src"), str(HERE.parent / "tests" / "ops")]
    from records import RECORDS

    from harness.operator_inputs import LARGE
    from mxnet.ops import registry
    if args.avx2:
        isa_limit.to_avx2()
    env = {**common.python_env(), "OMP_NUM_THREADS": str(args.threads)}
    sides = {"torch": Peer(common.own_python(), "torch", args.seconds, env), "remex": Peer(common.own_python(), "remex", args.seconds, env)}
    if args.mxnet_python:
        sides["mxnet"] = Peer(args.mxnet_python, "mxnet", args.seconds, {**env, "PYTHONPATH": ""})
    patterns = args.operators.split(",") if args.operators else None
    names = [n for n in RECORDS if (any(fnmatch.fnmatchcase(n, p) for p in patterns) if patterns else not n.startswith("_np"))]
    head = ["| operator | input | pass | torch, µs | Remex, µs | Remex / torch | MXNet, µs | MXNet / Remex |", "|---|---|---|---|---|---|---|---|"]
    versions, started = f"{common.versions(args.mxnet_python)}; {args.threads} threads", time.monotonic()
    print("\n".join([versions, "", *head]))
    rows, lines = [], []
    for name in names:
        for size, kind, case in cases(name, RECORDS[name][0], registry.get(name), LARGE, registry._same_shape):
            if args.inputs not in (None, size):
                continue
            # The first measurement is a warm-up.
            ready = {s: peer for s, peer in sides.items() if (s != "torch" or case["torch"]) and peer(case) is not None}
            row = {"operator": name, "input": size, "pass": kind, **dict.fromkeys(("torch", "remex", "mxnet")),
                   **common.interleave(ready, args.rounds)}
            rows.append(row)
            ratios = (row["remex"] / row["torch"] if row["torch"] and row["remex"] else None,
                       row["mxnet"] / row["remex"] if row["mxnet"] and row["remex"] else None)
            cells = [f"{v:.2f}" if v else "" for v in (row["torch"], row["remex"], ratios[0], row["mxnet"], ratios[1])]
            lines.append(f"| {name} | {size} | {kind} | {' | '.join(cells)} |")
            print(lines[-1], flush=True)
    notes = [*summary(rows), f"- The run took {(time.monotonic() - started) / 60:.0f} minutes"]
    print("\n" + "\n".join(notes))
    path = args.output or (None if patterns or args.inputs or args.avx2 else str(HERE / "results" / "operators.md"))
    if path:
        command = "python benchmarks/operators.py " + " ".join(sys.argv[1:])
        path = pathlib.Path(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join(["# Operators", "", f"`{command}`", "", versions, "", *notes, "", *head, *lines]) + "\n")
        path.with_suffix(".json").write_text(json.dumps({"command": command, "versions": versions, "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--worker"]:
        worker(sys.argv[2], float(sys.argv[3]))
    else:
        main()
