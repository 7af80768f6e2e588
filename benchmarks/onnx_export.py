"""Time and memory of writing a network as an ONNX file, beside MXNet 1.9.1.

    python benchmarks/onnx_export.py --mxnet-python ... [--mxnet-path FOLDER] [--network resnet152_v1] [--rounds 5]

Each export is a process of its own, which has imported everything, from the files of a network to the ONNX file. Memory is what the process takes at
most in excess of what it took before, in multiples of the weights. MXNet needs the package onnx: 1.13 is the last one that it can import, and
`--mxnet-path` names a folder with it (``pip install --target FOLDER onnx==1.13.1 protobuf==3.20.3``) if its environment has none. Writes
benchmarks/results/onnx_export.md.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

import peers

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
    file.write("5")  # the peak begins anew
before, start, busy = memory("VmRSS"), time.perf_counter(), time.process_time()
mx.onnx.export_model(prefix + "-symbol.json", prefix + "-0000.params", [(1, 3, 224, 224)], [np.float32], path, **options)
print(json.dumps({"seconds": time.perf_counter() - start, "busy": time.process_time() - busy, "memory": memory("VmHWM") - before}))
"""


def exported(python, environment, prefix, path, options):
    """Time and memory of one export."""
    result = subprocess.run([python, "-W", "ignore", "-c", EXPORT, prefix, path, json.dumps(options)], capture_output=True, text=True,
                            env=environment)
    if result.returncode:
        raise SystemExit(f"{python} failed:\n{result.stderr[-2000:]}")
    return json.loads(result.stdout.splitlines()[-1])


def save(name, folder):
    """The files of a network; the prefix of their names, and the size of the weights."""
    sys.path.insert(0, os.path.join(peers.ROOT, "src"))
    import mxnet as mx
    net = mx.gluon.model_zoo.vision.get_model(name)
    net.initialize(mx.init.Xavier())
    net.hybridize()
    net(mx.nd.zeros((1, 3, 224, 224)))
    net.export(f"{folder}/net")
    return f"{folder}/net", sum(p.data().size * 4 for p in net.collect_params().values())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    peers.add_arguments(parser)
    parser.add_argument("--mxnet-path", default="", help="a folder with the package onnx for MXNet's Python")
    parser.add_argument("--network", default="resnet152_v1")
    parser.add_argument("--output", default=os.path.join(peers.ROOT, "benchmarks", "results", "onnx_export.md"))
    args = parser.parse_args()
    kinds = {"Remex": (sys.executable, peers.python_env(), {"check": False}),
             "Remex, and the file scored by ONNX Runtime and here (as it is by default)": (sys.executable, peers.python_env(), {"check": True})}
    if args.mxnet_python:
        kinds["MXNet 1.9.1"] = args.mxnet_python, {**peers.foreign_env(), "OMP_NUM_THREADS": "1", "PYTHONPATH": args.mxnet_path}, {}
    with tempfile.TemporaryDirectory() as folder:
        prefix, weights = save(args.network, folder)
        samples = {name: [] for name in kinds}
        for _ in range(args.rounds):
            for i, (name, (python, environment, options)) in enumerate(kinds.items()):
                samples[name].append(exported(python, environment, prefix, f"{folder}/{i}.onnx", options))
                print(name, samples[name][-1], flush=True)
        sizes = [os.path.getsize(f"{folder}/{i}.onnx") for i in range(len(kinds))]
    middle = {name: {key: statistics.median(sample[key] for sample in found) for key in found[0]} for name, found in samples.items()}
    theirs = middle.get("MXNet 1.9.1")
    lines = [f"| {args.network}, {weights / 2 ** 20:.0f} MiB of weights | seconds | of a processor | / MXNet's (goal: 0.33 or less) "
             "| memory, MiB | / weights (goal: 2.2 or less) | file, MiB |",
             "|---|" + "---:|" * 6]
    for (name, found), size in zip(middle.items(), sizes):
        ratio = f"{found['busy'] / theirs['busy']:.2f}" if theirs else "not measured"
        lines.append(f"| {name} | {found['seconds']:.2f} | {found['busy']:.2f} | {ratio} | {found['memory'] / 2 ** 20:.0f} "
                     f"| {found['memory'] / weights:.2f} | {size / 2 ** 20:.0f} |")
    text = "\n".join(lines)
    print(text)
    head = f"# Writing ONNX files\n\n`python benchmarks/onnx_export.py --mxnet-python ...`; one thread; medians of {args.rounds}; "
    pathlib.Path(args.output).write_text(f"{head}{peers.versions(args.mxnet_python)}\n\n{text}\n")


if __name__ == "__main__":
    main()
