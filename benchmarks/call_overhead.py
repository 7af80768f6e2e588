"""Measure the overhead of one small operator call in Remex, torch and MXNet 1.9.1, interleaved in one run.

    python benchmarks/call_overhead.py --mxnet-python /opt/oracle/bin/python
"""
import argparse

from harness import common

CALLS = {
    "x + y (2x2)": ("x + y", "x + y"),
    "x + 1.0 (2x2)": ("x + 1.0", "x + 1.0"),
    "exp(x) (2x2)": ("nd.exp(x)", "torch.exp(x)"),
    "broadcast_add(x, y) (2x2)": ("nd.broadcast_add(x, y)", "torch.add(x, y)"),
    "sum(x, axis=1) (2x2)": ("nd.sum(x, axis=1)", "torch.sum(x, dim=1)"),
    "dot(x, y) (2x2)": ("nd.dot(x, y)", "torch.mm(x, y)"),
    "relu(x) (2x2)": ("nd.relu(x)", "torch.relu(x)"),
    "x.reshape((4,))": ("x.reshape((4,))", "x.reshape((4,))"),
    "x[0]": ("x[0]", "x[0]"),
    "np.sum(x, axis=1) (2x2)": ("mx.np.sum(p, axis=1)", "torch.sum(x, dim=1)"),
    "np.mean(x, axis=1) (2x2)": ("mx.np.mean(p, axis=1)", "torch.mean(x, dim=1)"),
    "np.max(x, axis=1) (2x2)": ("mx.np.max(p, axis=1)", "torch.amax(x, dim=1)"),
    "np.argmax(x, axis=1) (2x2)": ("mx.np.argmax(p, axis=1)", "torch.argmax(x, dim=1)"),
    "relu(w * y) recorded, and its gradient (2x2)": ("step()", "step()"),
}
_REPEAT = "import timeit\nn = {n}\nt = timeit.Timer(lambda: {call})\nt.timeit(n // 10)\nprint(min(t.repeat(3, n)) / n * 1e6)"
_MX = """import mxnet as mx
from mxnet import autograd, nd
x, y, w, p = nd.ones((2, 2)), nd.ones((2, 2)), nd.ones((2, 2)), mx.np.ones((2, 2))
w.attach_grad()
def step():
    with autograd.record():
        z = nd.relu(w * y)
    z.backward()
"""
_TORCH = """import torch
x, y, w = torch.ones(2, 2), torch.ones(2, 2), torch.ones(2, 2, requires_grad=True)
def step():
    torch.relu(w * y).backward(x)
"""


def program():
    """Return a program that prints the microseconds of each call, one a line, in processor time of the thread."""
    return _MX + "import time, timeit\n" + "".join(
        f"t = timeit.Timer(lambda: {call}, timer=time.thread_time)\nt.timeit(1000)\nprint(min(t.repeat(7, 5000)) / 5000 * 1e6)\n"
        for call, _ in CALLS.values())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    common.add_arguments(parser)
    args = parser.parse_args()
    own, env = common.own_python(), common.python_env()

    def measure(python, setup, call, n):
        out = common.run(python, setup + _REPEAT.format(n=n, call=call), env if python == own else {"OMP_NUM_THREADS": "1"})
        return float(out) if out else None

    print(f"{common.versions(args.mxnet_python)}\n")
    print("| call | torch, µs | Remex, µs | Remex / torch | MXNet until it returns, µs | MXNet / Remex |")
    print("|---|---|---|---|---|---|")
    for label, (mx_call, torch_call) in CALLS.items():
        micros = common.interleave({
            "torch": lambda c=torch_call: measure(own, _TORCH, c, 50000),
            "remex": lambda c=mx_call: measure(own, _MX, c, 50000),
            "mxnet": lambda c=mx_call: measure(args.mxnet_python, _MX, c, 3000),
        }, args.rounds)
        mxnet = f"{micros['mxnet']:.1f} | {micros['mxnet'] / micros['remex']:.1f}" if micros["mxnet"] else "not installed | "
        print(f"| {label} | {micros['torch']:.2f} | {micros['remex']:.2f} | {micros['remex'] / micros['torch']:.2f} | {mxnet} |", flush=True)


if __name__ == "__main__":
    main()
