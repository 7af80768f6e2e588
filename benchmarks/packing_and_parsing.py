"""Tools and text: `im2rec` with resizing, LibSVM and CSV files, beside MXNet 1.9.1.

    python benchmarks/records.py --mxnet-python /opt/oracle/bin/python [--quick]

The same pictures and the same files; both sides take turns, medians count. Ratios are of the processor's time, that of all processes and threads
together, since others may use the machine meanwhile: for `im2rec` per image, what a run with few images takes being subtracted; for iterators per
row, in their second epoch.
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
import peers
import pictures
import rows

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
    peers.add_arguments(parser)
    parser.add_argument("--count", type=int, default=400, help="pictures; each stands several times in the list")
    parser.add_argument("--repeat", type=int, default=5, help="how often")
    parser.add_argument("--rows", type=int, default=20_000, help="rows of the text files")
    parser.add_argument("--quick", action="store_true", help="few pictures and rows: to see that all works")
    parser.add_argument("--out", default=os.path.join(rows.HERE, "results", "records.md"))
    parser.add_argument("--folder", default=os.path.join(tempfile.gettempdir(), "remex-benchmarks", "records"), help="where the files lie meanwhile")
    chosen = parser.parse_args()
    if chosen.quick:
        chosen.rounds, chosen.count, chosen.repeat, chosen.rows = 2, 32, 2, 2000
    return chosen


def write_text(folder, count):
    """Rows of sparse and dense numbers with six decimals."""
    rng = np.random.default_rng(0)
    with open(os.path.join(folder, "data.svm"), "w") as data, open(os.path.join(folder, "label.svm"), "w") as label:
        for i in range(count):
            columns = np.unique(rng.integers(FEATURES, size=ENTRIES))
            data.write(f"{i % OUTPUTS} " + " ".join(f"{c}:{v:.6f}" for c, v in zip(columns, rng.random(len(columns)))) + "\n")
            label.write(f"0 {rng.integers(OUTPUTS)}:1\n")
    np.savetxt(os.path.join(folder, "data.csv"), rng.random((count, ENTRIES)), fmt="%.6f", delimiter=",")


def write_list(folder, name, count, repeat):
    """A list of the pictures; its path without the ending."""
    base = os.path.join(folder, name)
    with open(base + ".lst", "w") as file:
        for i in range(count * repeat):
            file.write(f"{i}\t{i % count % pictures.CLASSES}\t{i % count % pictures.CLASSES}/{i % count}.jpg\n")
    return base


def packed(command, base, folder, env):
    """(processor's seconds, seconds) of packing a list."""
    used, wall = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run([*command, base, os.path.join(folder, "images"), "--resize", str(RESIZE), "--num-thread", str(PROCESSES)],
                          capture_output=True, text=True, env=env)
    if done.returncode:
        raise SystemExit(f"{command} failed:\n{done.stderr[-2000:]}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return np.array([after.ru_utime + after.ru_stime - used.ru_utime - used.ru_stime, time.perf_counter() - wall])


def difference(first, second):
    """The mean difference of the pixels of two record files; the sizes of all images must agree."""
    from mxnet.recordio import MXRecordIO, unpack_img
    with MXRecordIO(first, "r") as one, MXRecordIO(second, "r") as other:
        found = []
        while (record := one.read()) is not None:
            (header, image), (their_header, their_image) = unpack_img(record), unpack_img(other.read())
            if image.shape != their_image.shape or header != their_header:
                raise SystemExit(f"record {header.id} differs: {header}, {image.shape}; {their_header}, {their_image.shape}")
            found.append(float(cv2.absdiff(image, their_image).mean()))
        if other.read() is not None:
            raise SystemExit(f"{second} has more records")
    return float(np.mean(found))


def measure_packing(chosen, sides):
    """A row for `im2rec`, and a sentence about what it wrote."""
    bases = {(name, size): write_list(chosen.folder, f"{name}-{size}", *numbers) for name in sides
             for size, numbers in (("few", (FEW, 1)), ("all", (chosen.count, chosen.repeat)))}

    def seconds(name):
        command, env = sides[name]
        few, many = (packed(command, bases[name, size], chosen.folder, env) for size in ("few", "all"))
        return (many - few) / (chosen.count * chosen.repeat - FEW)

    found = peers.interleave({name: (lambda n=name: seconds(n)) for name in sides}, chosen.rounds, lambda v: np.median(v, axis=0))
    row = [f"`im2rec`, resize {RESIZE}, {PROCESSES} processes: an image", 1.5,
           *(found[n] * [1e6, 1] if n in found else None for n in ("mxnet", "remex"))]
    text = ""
    if "mxnet" in found:
        pixels = difference(*(f"{bases[name, 'all']}.rec" for name in ("remex", "mxnet")))
        text = (f"The {chosen.count * chosen.repeat} records of both have the same headers and sizes; pixels differ by {pixels:.2f} of 255 in the "
                "mean.")
    return row, text


def measure_iterating(chosen, kind, label, sides):
    """A row for an iterator: also how much memory grew behind the first batch."""
    import json
    code = _ITERATE.format(folder=chosen.folder, kind=kind, features=FEATURES, outputs=OUTPUTS, entries=ENTRIES, batch=BATCH)

    def asked(name):
        python, env = sides[name]
        return np.array(json.loads(peers.run(python, code, env)))

    found = peers.interleave({name: (lambda n=name: asked(n)) for name in sides}, chosen.rounds, lambda v: np.median(v, axis=0))
    return [label, 1.5, *((np.array([found[n][0], 1 / found[n][1], found[n][2]]) if n in found else None) for n in ("mxnet", "remex"))]


def cells(row):
    label, goal, mxnet, remex = row
    memory = f"{remex[2]:.0f} MiB" if len(remex) > 2 else ""
    numbers = [f"{remex[0]:.1f}", f"{1 / remex[1]:.0f}"]
    if mxnet is None:
        return [label, "not installed", "", *numbers, "", f"{goal}", memory]
    return [label, f"{mxnet[0]:.1f}", f"{1 / mxnet[1]:.0f}", *numbers, f"{mxnet[0] / remex[0]:.2f}", f"{goal}", memory]


def sides(mxnet_python):
    """How each side's Python is run, as (Python, environment), and its `im2rec`, as (command, environment)."""
    env = {**peers.python_env(), "OMP_NUM_THREADS": str(os.cpu_count())}
    theirs = {k: v for k, v in env.items() if k != "PYTHONPATH"}
    pythons = {"remex": (peers.own_python(), env)}
    tools = {"remex": ([peers.own_python(), "-W", "ignore", "-m", "mxnet.tools.im2rec"], env)}
    if mxnet_python:
        path = peers.run(mxnet_python, "import mxnet, os; print(os.path.join(os.path.dirname(mxnet.__file__), 'tools', 'im2rec.py'))", theirs)
        pythons["mxnet"], tools["mxnet"] = (mxnet_python, theirs), ([mxnet_python, "-W", "ignore", path], theirs)
    return pythons, tools


def main():
    chosen = arguments()
    os.makedirs(chosen.folder, exist_ok=True)
    pictures.write(chosen.folder, chosen.count)
    write_text(chosen.folder, chosen.rows)
    pythons, tools = sides(chosen.mxnet_python)
    packing, text = measure_packing(chosen, tools)
    table = [packing, *(measure_iterating(chosen, kind, label, pythons) for kind, label in (
        ("libsvm", f"`LibSVMIter`, {FEATURES:,} features, {ENTRIES} a row: a row"),
        ("outputs", f"the same with {OUTPUTS:,} sparse outputs from a second file"),
        ("csv", f"`CSVIter`, {ENTRIES} numbers a row: a row")))]
    lines = ["# Tools and text", "", f"`python benchmarks/records.py {' '.join(sys.argv[1:])}`", "", peers.versions(chosen.mxnet_python), "",
             "| | MXNet, processor's µs | a second | Remex, processor's µs | a second | MXNet / Remex, processor's time | goal | memory grew by |",
             "|---|---|---|---|---|---|---|---|", *(f"| {' | '.join(cells(row))} |" for row in table), "",
             f"{text} {chosen.rows:,} rows, batches of {BATCH}, medians of {chosen.rounds} rounds.".strip()]
    print("\n".join(lines))
    os.makedirs(os.path.dirname(chosen.out), exist_ok=True)
    with open(chosen.out, "w") as file:
        file.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
