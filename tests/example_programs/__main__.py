"""The programs of MXNet's folder `example/`, run on the real MXNet 1.9.1 and on Remex.

    python -m tests.example_programs --git GIT_DIR --mxnet-python PYTHON [--python PYTHON] [--only TEXT] [--jobs 2]

from the root of the repository. GIT_DIR is a snapshot of apache/mxnet; the programs stay in a temporary folder. Both Pythons need
scikit-learn, pandas and matplotlib, as the programs do. A row says how each ended, the processor time of both beyond their imports, and the last
figures that were printed. What ends well on MXNet has to end well here.
"""
import argparse
import concurrent.futures
import os
import pathlib
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from . import table

ROOT = pathlib.Path(__file__).resolve().parents[2]
KERNELS = pathlib.Path(os.environ.get("MXNET_HOME") or pathlib.Path.home() / ".mxnet") / "kernels"
START = pathlib.Path(__file__).with_name("start.py")
SAYS = re.compile(r"accuracy|loss|perplexity|mse|error|f1|cost|images/sec|entropy|likelihood|auc|rmse|duration|nll", re.IGNORECASE)


def extract(git, folder):
    """Write the files of ``example/`` at tag 1.9.1 that the snapshot has."""
    def ask(*command, **options):
        return subprocess.run(["git", "--git-dir", git, *command], stdout=subprocess.PIPE, check=True, **options).stdout
    listed = [line.split("\t", 1) for line in ask("ls-tree", "-r", "1.9.1", "example").decode().splitlines()]
    names = {path: entry.split()[2] for entry, path in listed if entry.split()[1] == "blob"}
    answer, at = ask("cat-file", "--batch", input="\n".join(names.values()).encode()), 0
    for path in names:
        end = answer.index(b"\n", at)
        said = answer[at:end].split()
        at = end + 1
        if said[1] != b"missing":  # large files may be
            target = folder / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(answer[at:at + int(said[2])])
            at += int(said[2]) + 1


def prepare(program, source, folder):
    """The folder where the program starts, with its data, its text edited."""
    area = program.path.split("/")[0]
    shutil.copytree(source / "example" / area, folder / area)
    path = folder / program.path
    for file in path.parent.glob("*.py") if program.cpu else [path]:
        text = file.read_text()
        for before, after in program.edits if file == path else ():
            if before not in text:
                raise SystemExit(f"{program.path} has no {before!r}")
            text = text.replace(before, after)
        for before, after in table.CPUS if program.cpu else ():
            text = text.replace(before, after)
        file.write_text(text)
    for make in program.data:
        make(path.parent)
    return path.parent


def wait(process, limit):
    """``(status, resources used)`` of a process and all that it started, which end with the limit."""
    ended = time.time() + limit
    while not (found := os.wait4(process.pid, os.WNOHANG))[0]:
        if time.time() > ended:
            os.killpg(process.pid, signal.SIGKILL)
        time.sleep(0.05)
    process.returncode = os.waitstatus_to_exitcode(found[1])
    return process.returncode, found[2]


def run(program, python, source, limit, path):
    """``(status, processor seconds, the last figures)``."""
    with tempfile.TemporaryDirectory() as name:
        start = prepare(program, source, pathlib.Path(name))
        (start / ".home").mkdir(exist_ok=True)
        KERNELS.mkdir(parents=True, exist_ok=True)
        (start / ".home" / "kernels").symlink_to(KERNELS)  # compiled once, as on a user's machine
        env = {**os.environ, "PYTHONPATH": path, "PYTHONWARNINGS": "ignore", "PYTHONHASHSEED": "0", "MXNET_HOME": str(start / ".home"),
               "MPLBACKEND": "Agg"}
        for command in filter(None, (program.first, f"{pathlib.Path(program.path).name} {program.arguments}")):
            log = pathlib.Path(name) / "log"
            with open(log, "w") as file:
                process = subprocess.Popen([python, str(START), *shlex.split(command)], cwd=start, env=env, stdin=subprocess.DEVNULL,
                                           stdout=file, stderr=subprocess.STDOUT, start_new_session=True)
                code, used = wait(process, limit)
            lines = [line.strip() for line in log.read_text(errors="replace").splitlines() if line.strip()]
            if code:
                break
        figures = [line for line in lines if SAYS.search(line) and re.search(r"\d", line)]
        said = "; ".join(lines[-2:]) if code else (figures or lines or [""])[-1]
        return ("ok" if code == 0 else f"status {code}"), used.ru_utime + used.ru_stime, said[-150:]


def importing(python, path):
    """Processor seconds that the imports alone take."""
    process = subprocess.Popen([python, "-c", "import mxnet"], env={**os.environ, "PYTHONPATH": path})
    used = os.wait4(process.pid, 0)[2]
    return used.ru_utime + used.ru_stime


def main():
    """Run what was chosen, print a row for each and how many run here of those that run on MXNet."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--git", required=True)
    parser.add_argument("--mxnet-python", help="without it Remex runs alone")
    parser.add_argument("--python", default=sys.executable, help="the Python for Remex")
    parser.add_argument("--only", default="", help="programs whose name and arguments contain this")
    parser.add_argument("--limit", type=int, default=180, help="seconds for each")
    parser.add_argument("--jobs", type=int, default=1)
    chosen = parser.parse_args()
    peers = {"Remex": (chosen.python, str(ROOT / "src"))}
    if chosen.mxnet_python:
        peers = {"MXNet": (chosen.mxnet_python, ""), **peers}
    imports = {name: min(importing(*peer) for _ in range(2)) for name, peer in peers.items()}
    programs = [p for p in table.PROGRAMS if chosen.only in p.name]
    counts = dict.fromkeys(("both", "MXNet only", "Remex only", "neither"), 0)
    with tempfile.TemporaryDirectory() as name, concurrent.futures.ThreadPoolExecutor(chosen.jobs) as pool:
        source = pathlib.Path(name)
        extract(chosen.git, source)

        def both(program):
            return program, {peer: run(program, python, source, chosen.limit, path) for peer, (python, path) in peers.items()}
        for program, found in pool.map(both, programs):
            spent = {peer: seconds - imports[peer] for peer, (_, seconds, _) in found.items()}
            ratio = f"{spent['Remex'] / spent['MXNet']:.2f}" if spent.get("MXNet", 0) > 0 else "-"
            print(program.name, *(f"{peer}: {status}, {spent[peer]:.1f} s; {said}" for peer, (status, _, said) in found.items()),
                  f"processor time beside MXNet: {ratio}", sep="\n    ", flush=True)
            good = {peer: status == "ok" for peer, (status, _, _) in found.items()}
            here, there = good["Remex"], good.get("MXNet", False)
            counts["both" if here and there else "Remex only" if here else "MXNet only" if there else "neither"] += 1
    print(", ".join(f"{key}: {value}" for key, value in counts.items()))
    return counts["MXNet only"]


if __name__ == "__main__":
    sys.exit(main())
