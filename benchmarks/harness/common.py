"""What all benchmarks share: where MXNet runs, interleaving, medians, and how a table says what it was made with."""
import datetime
import os
import platform
import statistics
import subprocess
import sys

import held


def add_arguments(parser):
    """The options that every benchmark takes."""
    parser.add_argument("--mxnet-python", default=os.environ.get("MXNET_PYTHON", ""),
                        help="the Python of an environment with the real MXNet 1.9.1; without it MXNet's column says so")
    parser.add_argument("--rounds", type=int, default=7, help="interleaved repetitions; medians are reported")


def python_env():
    """The environment of a child process: one thread, this checkout's sources first."""
    path = [os.path.join(ROOT, "src"), os.environ.get("PYTHONPATH", "")]
    return {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(filter(None, path))}


ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def threads():
    """How many threads each peer may take, as a text: OMP_NUM_THREADS if that is set, else one for each processor.

    MXNet has to be told: of its own it takes half of an x86 machine's, which it believes to be hyperthreads.
    """
    return os.environ.get("OMP_NUM_THREADS") or str(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count())


def foreign_env():
    """The environment of a program of another Python: this project's package has the name of MXNet's."""
    return {**{name: value for name, value in os.environ.items() if name != "PYTHONPATH"}, "OMP_NUM_THREADS": threads()}


def run(python, code, env=None):
    """What a program prints, run by one of the Pythons; None if that one is missing."""
    if not python:
        return None
    if env is None and python != sys.executable:
        env = foreign_env()
    result = subprocess.run([python, "-W", "ignore", "-c", code], capture_output=True, text=True, env=env)
    if result.returncode:
        raise SystemExit(f"{python} failed:\n{result.stderr[-2000:]}")
    return result.stdout.strip()


def interleave(tasks, rounds, choose=statistics.median):
    """Run each named function once a round, so that a slow spell of the machine hits all; returns medians, or what `choose` makes of the values."""
    samples = {name: [] for name in tasks}
    for _ in range(rounds):
        for name, task in tasks.items():
            value = task()
            if value is not None:
                samples[name].append(value)
    return {name: choose(v) if v else None for name, v in samples.items()}


def processor():
    """Its name, and what tells designs apart that makers sell under one name: an `AMD EPYC` of family 25, model 17, is a Zen 4."""
    if not os.path.exists("/proc/cpuinfo"):
        return platform.processor()
    with open("/proc/cpuinfo") as file:
        known = {key.strip(): value.strip() for key, _, value in (line.partition(":") for line in file)}
    numbers = ", ".join(f"{word} {known[key]}" for key, word in (("cpu family", "family"), ("model", "model")) if key in known)
    told = f", held to {os.environ['ONEDNN_MAX_CPU_ISA']}" if "ONEDNN_MAX_CPU_ISA" in os.environ else ""
    how = f" {os.environ[held.BY]}" if held.BY in os.environ else ""
    return known.get("model name", platform.processor()) + (f" ({numbers})" if numbers else "") + told + how


def versions(mxnet_python):
    """One line: machine, versions, commit, date."""
    import torch
    commit = subprocess.run(["git", "-C", ROOT, "rev-parse", "--short", "HEAD"], capture_output=True, text=True).stdout.strip() or "unknown"
    theirs = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}  # whose package has the same name
    mxnet = run(mxnet_python, "import mxnet; print(mxnet.__version__)", theirs) if mxnet_python else "not installed"
    return (f"{processor()}, {os.cpu_count()} cores; Python {platform.python_version()}, torch {torch.__version__}, MXNet {mxnet}; "
            f"commit {commit}; {datetime.date.today()}")


def own_python():
    """The Python that runs this benchmark."""
    return sys.executable
