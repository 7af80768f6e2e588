"""Compare data loading: images a second, and the processor time of an image, from the same files. All rows take some seven minutes.

    python benchmarks/data_loading.py --mxnet-python /opt/oracle/bin/python --torch-python ENV/bin/python [--quick]

The libraries of a row are measured in turns, one at a time; the table has medians. ENV has torch, Pillow and, if there is a build for that torch,
torchvision. Ratios are of images a second and of the processor time of an image, which other programs affect less.
"""
import argparse
import os
import statistics
import sys
import tempfile

import numpy as np

import packing_and_parsing
from harness import common, synthetic_images
from harness.worker_processes import Failed, Process

GUIDE = 1000  # images a second with 4 threads, from MXNet's guide


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    common.add_arguments(parser)
    parser.add_argument("--torch-python", default=sys.executable, help="a Python with torch and Pillow")
    parser.set_defaults(rounds=3)
    parser.add_argument("--count", type=int, default=400, help="number of images")
    parser.add_argument("--repeat", type=int, default=2, help="how often each image is in the list that is packed")
    parser.add_argument("--lines", type=int, default=20_000, help="rows of the LibSVM file")
    parser.add_argument("--seconds", type=float, default=2.0, help="length of one peer's turn")
    parser.add_argument("--megabytes", type=int, default=2000, help="size of the file that is larger than the limit of memory")
    parser.add_argument("--limit", type=int, default=600, help="that limit, in MiB beyond what the first batch took")
    parser.add_argument("--rows", default="", help="only rows whose names have one of these in them, separated by commas")
    parser.add_argument("--quick", action="store_true", help="short turns and few images, to test the setup")
    parser.add_argument("--out", default=os.path.join(common.RESULTS, "data_loading.md"), help="the file of the table")
    parser.add_argument("--folder", default=os.path.join(tempfile.gettempdir(), "remex-benchmarks", "data"),
                        help="the folder for images and record files")
    args = parser.parse_args()
    if args.quick:
        args.rounds, args.seconds, args.count, args.megabytes, args.limit = 2, 0.3, 64, 300, 250
        args.lines = 2000
    return args


class Peer:
    """One worker process of a row."""

    def __init__(self, program, python, row):
        self.process = Process([python, "-W", "ignore", os.path.join(common.WORKERS, program), str(row["threads"])], False)
        try:
            self.answer = self.process.ask(do="prepare", row=row)
        except Failed:
            self.process.close()
            raise

    def measure(self, seconds):
        return self.process.ask(do="round", seconds=seconds)


class Bench:
    """Measures the rows of the table; see `measure`."""

    def __init__(self, args):
        self.args = args
        self.files = {"rec": os.path.join(args.folder, "images.rec"), "images": os.path.join(args.folder, "images")}
        self.lines, self.notes, self.remex = [], [], {}

    def wanted(self, name):
        return not self.args.rows or any(part.strip() in name for part in self.args.rows.split(","))

    def measure(self, **programs):
        """Return ({peer: medians of (seconds, processor seconds) of an image}, {peer: answer}); `programs` is peer=(program, Python, row)."""
        running, samples = {}, {}
        try:
            for name, (program, python, row) in programs.items():
                if not python:
                    self.notes.append(f"{name}: not installed")
                    continue
                try:
                    running[name] = Peer(program, python, {**self.files, **row})
                except Failed as failure:
                    self.notes.append(f"{name}: {failure}")
            for number in range(self.args.rounds):
                for name in list(running)[::-1 if number % 2 else 1]:
                    answer = running[name].measure(self.args.seconds)
                    samples.setdefault(name, []).append((answer["wall"] / answer["images"], answer["cpu"] / answer["images"]))
            answers = {name: peer.answer for name, peer in running.items()}
        finally:
            for peer in running.values():
                peer.process.close()
        return {name: tuple(map(statistics.median, zip(*values))) for name, values in samples.items()}, answers

    def line(self, name, own, baseline, ratio, goal):
        """Add a row to the table: values of Remex and the baseline as texts, their ratio, the goal as text and number."""
        text, least = goal
        met = "yes" if (ratio <= least if text.startswith("≤") else ratio >= least) else "no"
        self.lines.append(f"| {name} | {own} | {baseline} | {ratio:.2f} | {text} | {met} |")
        print(self.lines[-1], flush=True)

    def compare(self, name, seconds, baseline, goal, program="Remex", what="image", unit=("ms", 1e3)):
        """Add rows for the rate and for the processor time; `seconds` has (seconds, processor seconds) of one image by peer."""
        if program not in seconds or baseline not in seconds:
            self.lines.append(f"| {name} | | not measured | | {goal[0]} | |")
            return
        (wall, cpu), (other_wall, other_cpu) = seconds[program], seconds[baseline]

        def with_unit(value):
            return f"{value * unit[1]:.2f} {unit[0]}"
        self.line(name, f"{1 / wall:.0f} {what}s/s, {with_unit(cpu)}", f"{1 / other_wall:.0f} {what}s/s, {with_unit(other_cpu)} ({baseline})",
                  other_wall / wall, goal)
        one = "an image" if what == "image" else f"a {what}"
        self.lines.append(f"| the same, processor time of {one} | {with_unit(cpu)} | {with_unit(other_cpu)} ({baseline}) | "
                          f"{other_cpu / cpu:.2f} | | |")
        print(self.lines[-1], flush=True)

    def records(self):
        args = self.args
        for threads, goal in ((1, ("≥ 2.5", 2.5)), (2, ("≥ 4", 4.0))):
            row = {"what": "records", "threads": threads}
            seconds, answers = self.measure(Remex=("data_worker.py", sys.executable, row), MXNet=("data_worker.py", args.mxnet_python, row),
                                           PyTorch=("torch_data_worker.py", args.torch_python, row),
                                           libjpeg=("data_worker.py", sys.executable, {**row, "what": "decoding"}))
            if "MXNet" in seconds:
                difference = np.abs(np.subtract(answers["Remex"]["result"], answers["MXNet"]["result"])).max()
                if difference > 0.06:  # two steps of 256, after division by the deviation
                    raise SystemExit(f"images differ by {difference} from MXNet's")
            if "PyTorch" in answers:
                self.notes.append(f"PyTorch's transforms: {answers['PyTorch']['kind']}")
            plural = "s" if threads > 1 else ""
            self.compare(f"`ImageRecordIter`, {threads} decode thread{plural}", seconds, "MXNet", goal)
            self.compare(f"`ImageRecordIter`, {threads} thread{plural}, against as many workers", seconds, "PyTorch", ("≥ 4", 4.0))
            own, alone = seconds["Remex"][1], seconds["libjpeg"][1]
            self.line(f"processor time for an image, {threads} thread{plural}", f"{own * 1e3:.2f} ms", f"{alone * 1e3:.2f} ms (libjpeg-turbo alone)",
                      own / alone, ("≤ 1.35", 1.35))
            self.remex[threads] = own

    def folder(self):
        args, row = self.args, {"what": "folder", "threads": 2}
        seconds, _ = self.measure(Remex=("data_worker.py", sys.executable, row), PyTorch=("torch_data_worker.py", args.torch_python, row),
                                 MXNet=("data_worker.py", args.mxnet_python, row))
        self.compare("`DataLoader` over `ImageFolderDataset`, 2 workers", seconds, "PyTorch", ("≥ 1.3", 1.3))
        self.compare("the same, against MXNet's", seconds, "MXNet", ("≥ 1", 1.0))

    def extrapolated(self):
        if 2 in self.remex:
            rate = 4 / self.remex[2]
            self.line("4 threads on 4 cores, from the processor time", f"{rate:.0f} images/s", f"{GUIDE} images/s (MXNet's guide)", rate / GUIDE,
                      ("≥ 2", 2.0))

    def training(self):
        row = {"what": "training", "threads": 2, "batch": 8 if self.args.quick else 32}
        seconds, _ = self.measure(file=("data_worker.py", sys.executable, {**row, "from_file": True}),
                                 same=("data_worker.py", sys.executable, {**row, "from_file": False}),
                                 decoder=("data_worker.py", sys.executable, {"what": "records", "threads": 2}))
        rest = seconds["file"][1] - seconds["decoder"][1]
        self.line("training ResNet-18 from the file, without the decoder's processor time", f"{rest * 1e3:.1f} ms of the processor for an image",
                  f"{seconds['same'][1] * 1e3:.1f} ms (the same batch)", seconds["same"][1] / rest, ("≥ 0.97", 0.97))
        self.notes.append(f"training, before the decoder's {seconds['decoder'][1] * 1e3:.1f} ms of the processor for an image are subtracted: "
                          f"{1 / seconds['file'][0]:.1f} images/s from the file, {1 / seconds['same'][0]:.1f} with the same batch")

    def im2rec(self):
        (name, goal, *results), text = packing_and_parsing.measure_packing(self.args, packing_and_parsing.sides(self.args.mxnet_python)[1])
        seconds = {side: (value[1], value[0] / 1e6) for side, value in zip(("MXNet", "Remex"), results) if value is not None}
        self.compare(name.rpartition(":")[0], seconds, "MXNet", (f"≥ {goal}", goal))
        self.notes += [text] if text else []

    def libsvm(self):
        packing_and_parsing.write_text(self.args.folder, self.args.lines)
        pythons = packing_and_parsing.sides(self.args.mxnet_python)[0]
        for kind, name in (("libsvm", f"`LibSVMIter`, {packing_and_parsing.FEATURES:,} features, {packing_and_parsing.ENTRIES} a row"),
                           ("outputs", f"the same with {packing_and_parsing.OUTPUTS:,} sparse outputs")):
            _, goal, *results = packing_and_parsing.measure_iterating(self.args, kind, name, pythons)
            seconds = {side: (value[1], value[0] / 1e6) for side, value in zip(("MXNet", "Remex"), results) if value is not None}
            self.compare(name, seconds, "MXNet", (f"≥ {goal}", goal), what="row", unit=("µs", 1e6))

    def memory(self):
        path, limit = synthetic_images.write_long(self.args.folder, self.args.megabytes), self.args.limit << 20
        size = os.path.getsize(path)
        row = {"rec": path, "threads": 2, "limit": limit, "count": self.args.count * size // os.path.getsize(self.files["rec"])}
        process = Process([sys.executable, os.path.join(common.WORKERS, "data_worker.py"), "2"], False)
        try:
            answer = process.ask(do="memory", row=row)
        finally:
            process.close()
            os.remove(path)
        self.line(f"memory while a file of {size >> 20} MiB is read, by which it grows", f"{answer['grown'] / 2 ** 20:.0f} MiB",
                  f"{limit >> 20} MiB (the limit)", answer["grown"] / limit, ("≤ 1", 1.0))


def main():
    args = arguments()
    os.makedirs(args.folder, exist_ok=True)
    others = common.other_load()
    synthetic_images.write(args.folder, args.count)
    bench = Bench(args)
    for name in ("records", "extrapolated", "folder", "training", "im2rec", "libsvm", "memory"):
        if bench.wanted(name):
            getattr(bench, name)()
    text = "\n".join([
        "# Data loading", "", f"`python benchmarks/data_loading.py {' '.join(sys.argv[1:])}`", "",
        f"{args.count} JPEGs of {synthetic_images.WIDTH} x {synthetic_images.HEIGHT} pixels at quality {synthetic_images.QUALITY}, resize 256, "
        "crop 224, mirror, normalize. Ratio: the baseline's time over Remex's, higher is better; for libjpeg-turbo and the memory limit Remex's over "
        "that, lower is better.", "",
        "| | Remex | baseline | ratio | goal | met |", "|---|---|---|---|---|---|", *bench.lines, "",
        *(f"- {note}" for note in dict.fromkeys(bench.notes)), "",
        f"Load of other programs at the start: {others or 0:.0%}. {common.versions(args.mxnet_python)}.", ""])
    with open(args.out, "w") as file:
        file.write(text)


if __name__ == "__main__":
    main()
