"""Compare packing images (`im2rec` with resizing) and parsing LibSVM and CSV files with MXNet 1.9.1.

    python benchmarks/packing_and_parsing.py --mxnet-python /opt/oracle/bin/python [--quick]

Both libraries read the same files and take turns; the table has medians. Ratios are of the processor time of all processes and threads, which other
programs affect less: of an image for `im2rec`, from the difference of runs with few and many images; of a row for iterators, in their second epoch.
"""
import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time

import cv2
import numpy as np

from harness import common, synthetic_images

RESIZE, PROCESSES, FEW = 256, 2, 16
FEATURES, OUTPUTS, ENTRIES, BATCH = 250_000, 200_000, 100, 128

_ITERATE = """
import json, resource, sys, time
import mxnet as mx
data, label = "{folder}/data.svm", "{folder}/label.svm"
make = {{
    "libsvm": lambda: mx.io.LibSVMIter(data_libsvm=data, data_shape=({features},), batch_size={batch}),
    "outputs": lambda: mx.io.LibSVMIter(data_libsvm=data, data_shape=({features},), label_libsvm=label, label_shape=({outputs},), batch_size={batch}),
    "csv": lambda: mx.io.CSVIter(data_csv="{folder}/data.csv", data_shape=({entries},), batch_size={batch}),
}}["{kind}"]
it = make()
next(it)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
for batch in it:
    pass
it.reset()
rows, wall, used = 0, time.perf_counter(), time.process_time()
for batch in it:
    batch.data[0].wait_to_read()
    rows += {batch}
print(json.dumps([(time.process_time() - used) / rows * 1e6, rows / (time.perf_counter() - wall),
                  (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024]))
"""


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    common.add_arguments(parser)
    parser.add_argument("--count", type=int, default=400, help="number of images")
    parser.add_argument("--repeat", type=int, default=5, help="how often each image is in the list that is packed")
    parser.add_argument("--rows", type=int, default=20_000, help="rows of the text files")
    parser.add_argument("--quick", action="store_true", help="few images and rows, to test the setup")
    parser.add_argument("--out", default=os.path.join(common.RESULTS, "packing_and_parsing.md"), help="the file of the table")
    parser.add_argument("--folder", default=os.path.join(tempfile.gettempdir(), "remex-benchmarks", "records"),
                        help="the folder for images, lists and text files")
    args = parser.parse_args()
    if args.quick:
        args.rounds, args.count, args.repeat, args.rows = 2, 32, 2, 2000
    return args


def write_text(folder, count):
    """Write LibSVM and CSV files of numbers with six decimals."""
    rng = np.random.default_rng(0)
    with open(os.path.join(folder, "data.svm"), "w") as data, open(os.path.join(folder, "label.svm"), "w") as label:
        for i in range(count):
            columns = np.unique(rng.integers(FEATURES, size=ENTRIES))
            data.write(f"{i % OUTPUTS} " + " ".join(f"{c}:{v:.6f}" for c, v in zip(columns, rng.random(len(columns)))) + "\n")
            label.write(f"0 {rng.integers(OUTPUTS)}:1\n")
    np.savetxt(os.path.join(folder, "data.csv"), rng.random((count, ENTRIES)), fmt="%.6f", delimiter=",")


def write_list(folder, name, count, repeat):
    """Write a list of the images; return its path without the extension."""
    base = os.path.join(folder, name)
    with open(base + ".lst", "w") as file:
        for i in range(count * repeat):
            file.write(f"{i}\t{i % count % synthetic_images.CLASSES}\t{i % count % synthetic_images.CLASSES}/{i % count}.jpg\n")
    return base


def pack(command, base, folder, env):
    """Pack the images of a list; return (processor seconds, seconds)."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    process = subprocess.run([*command, base, os.path.join(folder, "images"), "--resize", str(RESIZE), "--num-thread", str(PROCESSES)],
                          capture_output=True, text=True, env=env)
    if process.returncode:
        raise SystemExit(f"{command} failed:\n{process.stderr[-2000:]}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return np.array([after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, time.perf_counter() - start])


def difference(first, second):
    """Return the mean difference of the pixels of two record files; headers and sizes must be equal."""
    from mxnet.recordio import MXRecordIO, unpack_img
    with MXRecordIO(first, "r") as one, MXRecordIO(second, "r") as other:
        differences = []
        while (record := one.read()) is not None:
            (header, image), (their_header, their_image) = unpack_img(record), unpack_img(other.read())
            if image.shape != their_image.shape or header != their_header:
                raise SystemExit(f"record {header.id} differs: {header}, {image.shape}; {their_header}, {their_image.shape}")
            differences.append(float(cv2.absdiff(image, their_image).mean()))
        if other.read() is not None:
            raise SystemExit(f"{second} has more records")
    return float(np.mean(differences))


def measure_packing(args, sides):
    """Return a row for `im2rec`, and a sentence about the difference of the files."""
    bases = {(name, size): write_list(args.folder, f"{name}-{size}", *numbers) for name in sides
             for size, numbers in (("few", (FEW, 1)), ("all", (args.count, args.repeat)))}

    def seconds(name):
        command, env = sides[name]
        few, many = (pack(command, bases[name, size], args.folder, env) for size in ("few", "all"))
        return (many - few) / (args.count * args.repeat - FEW)

    medians = common.interleave({name: (lambda n=name: seconds(n)) for name in sides}, args.rounds, lambda v: np.median(v, axis=0))
    row = [f"`im2rec`, resize {RESIZE}, {PROCESSES} processes: an image", 1.5,
           *(medians[n] * [1e6, 1] if n in medians else None for n in ("mxnet", "remex"))]
    text = ""
    if "mxnet" in medians:
        pixels = difference(*(f"{bases[name, 'all']}.rec" for name in ("remex", "mxnet")))
        text = (f"The {args.count * args.repeat} records of both have the same headers and sizes; pixels differ by {pixels:.2f} of 255 in the "
                "mean.")
    return row, text


def measure_iterating(args, kind, label, sides):
    """Return a row for an iterator, with the growth of memory after the first batch."""
    import json
    code = _ITERATE.format(folder=args.folder, kind=kind, features=FEATURES, outputs=OUTPUTS, entries=ENTRIES, batch=BATCH)

    def measure(name):
        python, env = sides[name]
        return np.array(json.loads(common.run(python, code, env)))

    medians = common.interleave({name: (lambda n=name: measure(n)) for name in sides}, args.rounds, lambda v: np.median(v, axis=0))
    return [label, 1.5, *((np.array([medians[n][0], 1 / medians[n][1], medians[n][2]]) if n in medians else None) for n in ("mxnet", "remex"))]


def cells(row):
    """Return the cells of a row as texts."""
    label, goal, mxnet, remex = row
    memory = f"{remex[2]:.0f} MiB" if len(remex) > 2 else ""
    numbers = [f"{remex[0]:.1f}", f"{1 / remex[1]:.0f}"]
    if mxnet is None:
        return [label, "not installed", "", *numbers, "", f"{goal}", memory]
    return [label, f"{mxnet[0]:.1f}", f"{1 / mxnet[1]:.0f}", *numbers, f"{mxnet[0] / remex[0]:.2f}", f"{goal}", memory]


def sides(mxnet_python):
    """Return {library: (Python, environment)}, and {library: (command, environment)} of `im2rec`."""
    env = {**common.python_env(), "OMP_NUM_THREADS": str(os.cpu_count())}
    theirs = {k: v for k, v in env.items() if k != "PYTHONPATH"}
    pythons = {"remex": (common.own_python(), env)}
    tools = {"remex": ([common.own_python(), "-W", "ignore", "-m", "mxnet.tools.im2rec"], env)}
    if mxnet_python:
        path = common.run(mxnet_python, "import mxnet, os; print(os.path.join(os.path.dirname(mxnet.__file__), 'tools', 'im2rec.py'))", theirs)
        pythons["mxnet"], tools["mxnet"] = (mxnet_python, theirs), ([mxnet_python, "-W", "ignore", path], theirs)
    return pythons, tools


def main():
    args = arguments()
    os.makedirs(args.folder, exist_ok=True)
    synthetic_images.write(args.folder, args.count)
    write_text(args.folder, args.rows)
    pythons, tools = sides(args.mxnet_python)
    packing, text = measure_packing(args, tools)
    table = [packing, *(measure_iterating(args, kind, label, pythons) for kind, label in (
        ("libsvm", f"`LibSVMIter`, {FEATURES:,} features, {ENTRIES} a row: a row"),
        ("outputs", f"the same with {OUTPUTS:,} sparse outputs from a second file"),
        ("csv", f"`CSVIter`, {ENTRIES} numbers a row: a row")))]
    lines = ["# Packing images and parsing text", "", f"`python benchmarks/packing_and_parsing.py {' '.join(sys.argv[1:])}`", "",
             common.versions(args.mxnet_python), "",
             "| | MXNet, µs of processor time | rate, 1/s | Remex, µs of processor time | rate, 1/s "
             "| MXNet / Remex, processor time (higher is better) | goal | growth of memory |",
             "|---|---|---|---|---|---|---|---|", *(f"| {' | '.join(cells(row))} |" for row in table), "",
             f"{text} {args.rows:,} rows, batches of {BATCH}, medians of {args.rounds} rounds.".strip()]
    print("\n".join(lines))
    os.makedirs(os.path.dirname(args.out), exist_ok=True)
    with open(args.out, "w") as file:
        file.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
