"""Compare the time and memory of exporting a network to ONNX with MXNet 1.9.1.

    python benchmarks/onnx_export.py --mxnet-python ... [--mxnet-path FOLDER] [--network resnet152_v1] [--rounds 5]

Each export, from the files of a network to the ONNX file, runs in a new process; imports are not measured. Memory is the growth of the peak, in
multiples of the weights. MXNet needs the package onnx, at most 1.13; `--mxnet-path` names a folder with it if its environment has none (``pip install
--target FOLDER onnx==1.13.1 protobuf==3.20.3``). Writes benchmarks/results/onnx_export.md.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

from harness import common

EXPORT = """
import json, resource, sys, time
import numpy as np, onnx
import mxnet as mx
import mxnet.onnx
prefix, path, options = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
if options.get("check"):
    import onnxruntime

def memory(name):
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith(name)) * 1024

mx.nd.ones((2, 2)).asnumpy()
with open("/proc/self/clear_refs", "w") as file:
    file.write("5")  # resets the peak
before, start, busy = memory("VmRSS"), time.perf_counter(), time.process_time()
mx.onnx.export_model(prefix + "-symbol.json", prefix + "-0000.params", [(1, 3, 224, 224)], [np.float32], path, **options)
print(json.dumps({"seconds": time.perf_counter() - start, "busy": time.process_time() - busy, "memory": memory("VmHWM") - before}))
"""


def measure_export(python, environment, prefix, path, options):
    """Return the time and memory of one export."""
    result = subprocess.run([python, "-W", "ignore", "-c", EXPORT, prefix, path, json.dumps(options)], capture_output=True, text=True,
                            env=environment)
    if result.returncode:
        raise SystemExit(f"{python} failed:\n{result.stderr[-2000:]}")
    return json.loads(result.stdout.splitlines()[-1])


def save(name, folder):
    """Export a network; return the prefix of its files and the size of the weights."""
    sys.path.insert(0, os.path.join(common.ROOT, "src"))
    import mxnet as mx
    net = mx.gluon.model_zoo.vision.get_model(name)
    net.initialize(mx.init.Xavier())
    net.hybridize()
    net(mx.nd.zeros((1, 3, 224, 224)))
    net.export(f"{folder}/net")
    return f"{folder}/net", sum(p.data().size * 4 for p in net.collect_params().values())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    common.add_arguments(parser)
    parser.add_argument("--mxnet-path", default="", help="a folder with the package onnx for MXNet's Python")
    parser.add_argument("--network", default="resnet152_v1", help="a network of the model zoo")
    parser.add_argument("--output", default=os.path.join(common.RESULTS, "onnx_export.md"), help="the file of the table")
    args = parser.parse_args()
    kinds = {"Remex": (sys.executable, common.python_env(), {"check": False}),
             "Remex, with the check by ONNX Runtime (its default)": (sys.executable, common.python_env(), {"check": True})}
    if args.mxnet_python:
        kinds["MXNet 1.9.1"] = args.mxnet_python, {**common.foreign_env(), "OMP_NUM_THREADS": "1", "PYTHONPATH": args.mxnet_path}, {}
    with tempfile.TemporaryDirectory() as folder:
        prefix, weights = save(args.network, folder)
        samples = {name: [] for name in kinds}
        for _ in range(args.rounds):
            for i, (name, (python, environment, options)) in enumerate(kinds.items()):
                samples[name].append(measure_export(python, environment, prefix, f"{folder}/{i}.onnx", options))
                print(name, samples[name][-1], flush=True)
        sizes = [os.path.getsize(f"{folder}/{i}.onnx") for i in range(len(kinds))]
    medians = {name: {key: statistics.median(run[key] for run in runs) for key in runs[0]} for name, runs in samples.items()}
    mxnet = medians.get("MXNet 1.9.1")
    lines = [f"| {args.network}, {weights / 2 ** 20:.0f} MiB of weights | seconds | processor seconds | / MXNet's (goal: 0.33 or less) "
             "| memory, MiB | / weights (goal: 2.2 or less) | file, MiB |",
             "|---|" + "---:|" * 6]
    for (name, values), size in zip(medians.items(), sizes):
        ratio = f"{values['busy'] / mxnet['busy']:.2f}" if mxnet else "not measured"
        lines.append(f"| {name} | {values['seconds']:.2f} | {values['busy']:.2f} | {ratio} | {values['memory'] / 2 ** 20:.0f} "
                     f"| {values['memory'] / weights:.2f} | {size / 2 ** 20:.0f} |")
    text = "\n".join(lines)
    print(text)
    head = f"# Writing ONNX files\n\n`python benchmarks/onnx_export.py --mxnet-python ...`; one thread; medians of {args.rounds}; "
    pathlib.Path(args.output).write_text(f"{head}{common.versions(args.mxnet_python)}\n\n{text}\n")


if __name__ == "__main__":
    main()
