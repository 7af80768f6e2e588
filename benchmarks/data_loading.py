"""Data beside its peers: images a second, and the processor's time for an image, out of the same files. All rows take some seven minutes.

    python benchmarks/data.py --mxnet-python /opt/oracle/bin/python --torch-python ENV/bin/python [--quick]

Peers of a row answer in turns, one at a time; medians count. ENV has torch, Pillow and, if there is a build for that torch, torchvision.
Ratios are of images a second and, because others may use the machine meanwhile, of the processor's time for an image, too.
"""
import argparse
import os
import statistics
import subprocess
import sys
import tempfile

import numpy as np
import peers
import pictures
import records
import rows
from processes import Failed, Process, environment
from run import load_of_others

WORKERS = os.path.join(rows.HERE, "workers")
GUIDE = 1000  # images a second that MXNet's guide calls usual with 4 threads


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    peers.add_arguments(parser)
    parser.add_argument("--torch-python", default=sys.executable, help="a Python with torch and Pillow")
    parser.set_defaults(rounds=3)
    parser.add_argument("--count", type=int, default=400, help="pictures")
    parser.add_argument("--repeat", type=int, default=2, help="how often each stands in the list that is packed")
    parser.add_argument("--lines", type=int, default=20_000, help="rows of the LibSVM file")
    parser.add_argument("--seconds", type=float, default=2.0, help="length of one peer's turn")
    parser.add_argument("--megabytes", type=int, default=2000, help="size of the file that is larger than the limit of memory")
    parser.add_argument("--limit", type=int, default=600, help="that limit, in MiB beyond what the first batch took")
    parser.add_argument("--rows", default="", help="only rows whose names have one of these in them, separated by commas")
    parser.add_argument("--quick", action="store_true", help="short turns and few pictures: to see that all works")
    parser.add_argument("--out", default=os.path.join(rows.HERE, "results", "data.md"))
    parser.add_argument("--folder", default=os.path.join(tempfile.gettempdir(), "remex-benchmarks", "data"), help="where the files lie meanwhile")
    chosen = parser.parse_args()
    if chosen.quick:
        chosen.rounds, chosen.seconds, chosen.count, chosen.megabytes, chosen.limit = 2, 0.3, 64, 300, 250
        chosen.lines = 2000
    return chosen


class Peer:
    """One process of a row."""

    def __init__(self, program, python, row):
        self.process = Process([python, "-W", "ignore", os.path.join(WORKERS, program), str(row["threads"])], False)
        try:
            self.answer = self.process.ask(do="prepare", row=row)
        except Failed:
            self.process.close()
            raise

    def turn(self, seconds):
        return self.process.ask(do="round", seconds=seconds)


class Bench:
    """Measures rows; see `measured`."""

    def __init__(self, chosen):
        self.chosen = chosen
        self.files = {"rec": os.path.join(chosen.folder, "images.rec"), "images": os.path.join(chosen.folder, "images")}
        self.lines, self.notes, self.remex = [], [], {}

    def wanted(self, name):
        return not self.chosen.rows or any(part.strip() in name for part in self.chosen.rows.split(","))

    def measured(self, **programs):
        """Medians of (seconds, processor's seconds) for an image of each peer: name to (program, Python, row)."""
        running, found = {}, {}
        try:
            for name, (program, python, row) in programs.items():
                if not python:
                    self.notes.append(f"{name}: not installed")
                    continue
                try:
                    running[name] = Peer(program, python, {**self.files, **row})
                except Failed as failure:
                    self.notes.append(f"{name}: {failure}")
            for number in range(self.chosen.rounds):
                for name in list(running)[::-1 if number % 2 else 1]:
                    answer = running[name].turn(self.chosen.seconds)
                    found.setdefault(name, []).append((answer["wall"] / answer["images"], answer["cpu"] / answer["images"]))
            answers = {name: peer.answer for name, peer in running.items()}
        finally:
            for peer in running.values():
                peer.process.close()
        return {name: tuple(map(statistics.median, zip(*values))) for name, values in found.items()}, answers

    def line(self, name, own, rival, ratio, goal):
        """A row of the table: values of the two and their ratios as texts, the ratio that counts as a number, the goal as text and number."""
        text, least = goal
        met = "yes" if (ratio <= least if text.startswith("≤") else ratio >= least) else "no"
        self.lines.append(f"| {name} | {own} | {rival} | {ratio:.2f} | {text} | {met} |")
        print(self.lines[-1], flush=True)

    def compare(self, name, found, rival, goal, program="Remex", what="image", unit=("ms", 1e3)):
        """Rows of how many a second there are, and of the processor's time; `found` has seconds for one of both."""
        if program not in found or rival not in found:
            self.lines.append(f"| {name} | | not measured | | {goal[0]} | |")
            return
        (wall, cpu), (other_wall, other_cpu) = found[program], found[rival]

        def used(seconds):
            return f"{seconds * unit[1]:.2f} {unit[0]}"
        self.line(name, f"{1 / wall:.0f} {what}s/s, {used(cpu)}", f"{1 / other_wall:.0f} {what}s/s, {used(other_cpu)} ({rival})", other_wall / wall,
                  goal)
        one = "an image" if what == "image" else f"a {what}"
        self.lines.append(f"| the same, processor time for {one} | {used(cpu)} | {used(other_cpu)} ({rival}) | {other_cpu / cpu:.2f} | | |")
        print(self.lines[-1], flush=True)

    def records(self):
        chosen = self.chosen
        for threads, goal in ((1, ("≥ 2.5", 2.5)), (2, ("≥ 4", 4.0))):
            row = {"what": "records", "threads": threads}
            found, answers = self.measured(Remex=("data_worker.py", sys.executable, row), MXNet=("data_worker.py", chosen.mxnet_python, row),
                                           PyTorch=("torch_data_worker.py", chosen.torch_python, row),
                                           libjpeg=("data_worker.py", sys.executable, {**row, "what": "decoding"}))
            if "MXNet" in found:
                difference = np.abs(np.subtract(answers["Remex"]["result"], answers["MXNet"]["result"])).max()
                if difference > 0.06:  # two steps of 256, after division by the deviation
                    raise SystemExit(f"images differ by {difference} from MXNet's")
            if "PyTorch" in answers:
                self.notes.append(f"PyTorch's transforms: {answers['PyTorch']['kind']}")
            plural = "s" if threads > 1 else ""
            self.compare(f"`ImageRecordIter`, {threads} decode thread{plural}", found, "MXNet", goal)
            self.compare(f"`ImageRecordIter`, {threads} thread{plural}, against as many workers", found, "PyTorch", ("≥ 4", 4.0))
            own, alone = found["Remex"][1], found["libjpeg"][1]
            self.line(f"processor time for an image, {threads} thread{plural}", f"{own * 1e3:.2f} ms", f"{alone * 1e3:.2f} ms (libjpeg-turbo alone)",
                      own / alone, ("≤ 1.35", 1.35))
            self.remex[threads] = own

    def folder(self):
        chosen, row = self.chosen, {"what": "folder", "threads": 2}
        found, _ = self.measured(Remex=("data_worker.py", sys.executable, row), PyTorch=("torch_data_worker.py", chosen.torch_python, row),
                                 MXNet=("data_worker.py", chosen.mxnet_python, row))
        self.compare("`DataLoader` over `ImageFolderDataset`, 2 workers", found, "PyTorch", ("≥ 1.3", 1.3))
        self.compare("the same, against MXNet's", found, "MXNet", ("≥ 1", 1.0))

    def extrapolated(self):
        if 2 in self.remex:
            rate = 4 / self.remex[2]
            self.line("4 threads on 4 cores, from the processor time", f"{rate:.0f} images/s", f"{GUIDE} images/s (MXNet's guide)", rate / GUIDE,
                      ("≥ 2", 2.0))

    def training(self):
        row = {"what": "training", "threads": 2, "batch": 8 if self.chosen.quick else 32}
        found, _ = self.measured(file=("data_worker.py", sys.executable, {**row, "from_file": True}),
                                 same=("data_worker.py", sys.executable, {**row, "from_file": False}),
                                 decoder=("data_worker.py", sys.executable, {"what": "records", "threads": 2}))
        rest = found["file"][1] - found["decoder"][1]
        self.line("training ResNet-18 from the file, less the decoder's processor time", f"{rest * 1e3:.1f} ms of the processor for an image",
                  f"{found['same'][1] * 1e3:.1f} ms (the same batch)", found["same"][1] / rest, ("≥ 0.97", 0.97))
        self.notes.append(f"training, before the decoder's {found['decoder'][1] * 1e3:.1f} ms of the processor for an image are subtracted: "
                          f"{1 / found['file'][0]:.1f} images/s from the file, {1 / found['same'][0]:.1f} with the same batch")

    def im2rec(self):
        (name, goal, *found), text = records.measure_packing(self.chosen, records.sides(self.chosen.mxnet_python)[1])
        found = {side: (value[1], value[0] / 1e6) for side, value in zip(("MXNet", "Remex"), found) if value is not None}
        self.compare(name.rpartition(":")[0], found, "MXNet", (f"≥ {goal}", goal))
        self.notes += [text] if text else []

    def libsvm(self):
        records.write_text(self.chosen.folder, self.chosen.lines)
        pythons = records.sides(self.chosen.mxnet_python)[0]
        for kind, name in (("libsvm", f"`LibSVMIter`, {records.FEATURES:,} features, {records.ENTRIES} a row"),
                           ("outputs", f"the same with {records.OUTPUTS:,} sparse outputs")):
            _, goal, *found = records.measure_iterating(self.chosen, kind, name, pythons)
            found = {side: (value[1], value[0] / 1e6) for side, value in zip(("MXNet", "Remex"), found) if value is not None}
            self.compare(name, found, "MXNet", (f"≥ {goal}", goal), what="row", unit=("µs", 1e6))

    def memory(self):
        path, limit = pictures.write_long(self.chosen.folder, self.chosen.megabytes), self.chosen.limit << 20
        size = os.path.getsize(path)
        row = {"rec": path, "threads": 2, "limit": limit, "count": self.chosen.count * size // os.path.getsize(self.files["rec"])}
        process = Process([sys.executable, os.path.join(WORKERS, "data_worker.py"), "2"], False)
        try:
            answer = process.ask(do="memory", row=row)
        finally:
            process.close()
            os.remove(path)
        self.line(f"memory while a file of {size >> 20} MiB is read, by which it grows", f"{answer['grown'] / 2 ** 20:.0f} MiB",
                  f"{limit >> 20} MiB (the limit)", answer["grown"] / limit, ("≤ 1", 1.0))


def main():
    chosen = arguments()
    os.makedirs(chosen.folder, exist_ok=True)
    others = load_of_others()
    subprocess.run([sys.executable, pictures.__file__, chosen.folder, str(chosen.count)], check=True, env=environment(sys.executable))
    bench = Bench(chosen)
    for name in ("records", "extrapolated", "folder", "training", "im2rec", "libsvm", "memory"):
        if bench.wanted(name):
            getattr(bench, name)()
    text = "\n".join([
        "# Data", "", f"`python benchmarks/data.py {' '.join(sys.argv[1:])}`", "",
        f"{chosen.count} JPEGs of {pictures.WIDTH} x {pictures.HEIGHT} pixels at quality {pictures.QUALITY}, resize 256, crop 224, mirror, "
        "normalize. A ratio is the peer's time over Remex's; against libjpeg-turbo and the limit of memory it is Remex's over that.", "",
        "| | Remex | against | ratio | goal | met |", "|---|---|---|---|---|---|", *bench.lines, "",
        *(f"- {note}" for note in dict.fromkeys(bench.notes)), "",
        f"Others used {others or 0:.0%} of the machine when it began. {peers.versions(chosen.mxnet_python)}.", ""])
    with open(chosen.out, "w") as file:
        file.write(text)


if __name__ == "__main__":
    main()
