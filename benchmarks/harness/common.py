"""Options, environments of child processes, interleaved measuring, and the description of the machine, for all benchmarks."""
import datetime
import os
import platform
import statistics
import subprocess
import sys
import time

from harness import isa_limit

BENCHMARKS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
ROOT = os.path.dirname(BENCHMARKS)
WORKERS = os.path.join(BENCHMARKS, "workers")
RESULTS = os.path.join(BENCHMARKS, "results")


def add_arguments(parser):
    """Add the options that most benchmarks take."""
    parser.add_argument("--mxnet-python", default=os.environ.get("MXNET_PYTHON", ""),
                        help="the Python of an environment with the real MXNet 1.9.1; without it MXNet's column is empty")
    parser.add_argument("--rounds", type=int, default=7, help="interleaved repetitions; medians are reported")


def comma_separated(text):
    """Return the parts of an option's value, such as ``resnet50,mobilenet``."""
    return [part.strip() for part in text.split(",") if part.strip()]


def threads():
    """Return the number of threads of each library, as text: OMP_NUM_THREADS if that is set, else one for each processor.

    MXNet needs the number: by default it takes half of an x86 machine's processors, which it assumes to be hyperthreads.
    """
    return os.environ.get("OMP_NUM_THREADS") or str(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count())


def python_env():
    """Return the environment of a child process with this project's package: one thread, this checkout's sources first."""
    path = [os.path.join(ROOT, "src"), os.environ.get("PYTHONPATH", "")]
    return {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(filter(None, path))}


def foreign_env():
    """Return the environment of another Python, without this project's package, which has the name of MXNet's."""
    return {**{name: value for name, value in os.environ.items() if name != "PYTHONPATH"}, "OMP_NUM_THREADS": threads()}


def run(python, code, env=None):
    """Return the output of a program that runs in the given Python; None if that Python is missing."""
    if not python:
        return None
    if env is None and python != sys.executable:
        env = foreign_env()
    result = subprocess.run([python, "-W", "ignore", "-c", code], capture_output=True, text=True, env=env)
    if result.returncode:
        raise SystemExit(f"{python} failed:\n{result.stderr[-2000:]}")
    return result.stdout.strip()


def interleave(functions, rounds, choose=statistics.median):
    """Run each named function once a round, so that slow phases of the machine affect all; return medians, or what `choose` makes of the values."""
    samples = {name: [] for name in functions}
    for _ in range(rounds):
        for name, function in functions.items():
            value = function()
            if value is not None:
                samples[name].append(value)
    return {name: choose(values) if values else None for name, values in samples.items()}


def other_load():
    """Return the share of the processors' time that other programs use now, while all workers wait; None where it is unknown."""
    def reading():
        with open("/proc/stat") as file:
            numbers = [int(n) for n in file.readline().split()[1:]]
        return sum(numbers), numbers[3] + numbers[4]
    if not os.path.exists("/proc/stat"):
        return None
    before = reading()
    time.sleep(0.5)
    total, idle = (after - start for after, start in zip(reading(), before, strict=True))
    return round(1 - idle / max(total, 1), 2)


def available_memory():
    """Return the bytes that new processes can have; infinity where that is unknown."""
    if not os.path.exists("/proc/meminfo"):
        return float("inf")
    with open("/proc/meminfo") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith("MemAvailable"))


def processor():
    """Return the processor's name with family and model, which distinguish designs of one name: `AMD EPYC`, family 25, model 17, is a Zen 4."""
    if not os.path.exists("/proc/cpuinfo"):
        return platform.processor()
    with open("/proc/cpuinfo") as file:
        fields = {key.strip(): value.strip() for key, _, value in (line.partition(":") for line in file)}
    numbers = ", ".join(f"{word} {fields[key]}" for key, word in (("cpu family", "family"), ("model", "model")) if key in fields)
    limit = f", limited to {os.environ['ONEDNN_MAX_CPU_ISA']}" if "ONEDNN_MAX_CPU_ISA" in os.environ else ""
    mechanism = f" {os.environ[isa_limit.MECHANISM]}" if isa_limit.MECHANISM in os.environ else ""
    return fields.get("model name", platform.processor()) + (f" ({numbers})" if numbers else "") + limit + mechanism


def commit():
    """Return the short hash of this checkout's commit."""
    git = subprocess.run(["git", "-C", ROOT, "rev-parse", "--short", "HEAD"], capture_output=True, text=True)
    return git.stdout.strip() or "unknown"


def versions(mxnet_python):
    """Return one line: machine, versions, commit, date."""
    import torch
    env = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}  # this project's package has the name of MXNet's
    mxnet = run(mxnet_python, "import mxnet; print(mxnet.__version__)", env) if mxnet_python else "not installed"
    return (f"{processor()}, {os.cpu_count()} cores; Python {platform.python_version()}, torch {torch.__version__}, MXNet {mxnet}; "
            f"commit {commit()}; {datetime.date.today()}")


def own_python():
    """Return the Python that runs this benchmark."""
    return sys.executable
