"""Check distributions before a release: metadata, contents, platform tags, and that a second build of the commit has the same hashes.

    python scripts/check_dist.py dist [--again]

It needs `pip install '.[release]'`, runs `twine check --strict`, `check-wheel-contents` and `auditwheel show`, and builds again
with ``--again``. The exit status is 1 if a check fails.
"""
import argparse
import pathlib
import re
import subprocess
import sys
import tarfile
import tempfile
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
# What an sdist needs for its tests to run, and a wheel for its users.
IN_SDIST = ("conftest.py", "CHANGELOG.md", "docs/install.md", "examples/digits.py", "packaging/mxnet/pyproject.toml", "scripts/build_dist.py",
            "tests/forked.py", "tests/ops/records.py", "benchmarks/run.py", "src/mxnet/kernels/nn/softmax.cpp", "src/mxnet/kernels/runtime/vectors.h")
IN_WHEEL = ("mxnet/py.typed", "mxnet/__init__.pyi", "mxnet/kernels/nn/softmax.cpp", "mxnet/profiler/page/page.js")


def missing(path):
    """Return the files that a distribution lacks."""
    if path.suffix == ".whl":
        with zipfile.ZipFile(path) as archive:
            names, expected = set(archive.namelist()), IN_WHEEL
    else:
        with tarfile.open(path) as archive:
            names, expected = {name.partition("/")[2] for name in archive.getnames()}, IN_SDIST
    return [name for name in expected if name not in names]


def platform_problem(text):
    """Return what `auditwheel show` says against a wheel for Linux, or None where it fits manylinux_2_28 or an older policy."""
    results = re.search(r'constrained\s+to\s+be\s+compatible\s+with\s+the\s+following\s+platform\s+tag:\s+"([^"]+)"|'
                      r'consistent\s+with\s+the\s+following\s+platform\s+tag:\s+"([^"]+)"', text)
    tag = next(filter(None, results.groups()), "") if results else ""
    version = re.fullmatch(r"manylinux_2_(\d+)_\w+", tag)
    if version and int(version[1]) <= 28:
        return None
    return f"auditwheel finds it consistent with {tag or 'no platform tag'}, and PyPI's users need manylinux_2_28: build it in that image"


def run(*command):
    """Run a checker of this environment, print its command, and return its status and output."""
    print("+", *command, flush=True)
    done = subprocess.run([sys.executable, "-m", *map(str, command)], capture_output=True, text=True)
    print(done.stdout + done.stderr, flush=True)
    return done.returncode, done.stdout + done.stderr


def check(folder):
    """Return the problems of a folder's distributions, as sentences."""
    wheels = sorted(folder.glob("remexnet-*.whl"))
    files = [*wheels, *sorted(folder.glob("remexnet-*.tar.gz"))]
    problems = [f"{folder} has no distribution of remexnet"] if not files else []
    problems += [f"{path.name} lacks {name}" for path in files for name in missing(path)]
    if files and run("twine", "check", "--strict", *files)[0]:
        problems.append("twine check fails")
    for wheel in wheels:
        if run("check_wheel_contents", "--config", ROOT / "pyproject.toml", wheel)[0]:
            problems.append(f"check-wheel-contents fails for {wheel.name}")
        if "linux" in wheel.name:
            problem = platform_problem(run("auditwheel", "show", wheel)[1])
            problems += [f"{wheel.name}: {problem}"] if problem else []
    return problems


def differences(folder):
    """Build again what the folder's SHA256SUMS lists, and return the lines that differ."""
    first = (folder / "SHA256SUMS").read_text().splitlines()
    kinds = [kind for kind, ending in (("sdist", ".tar.gz"), ("wheel", ".whl"), ("local", ".whl"))
             if any(line.endswith(ending) and ("  local/" in line) == (kind == "local") for line in first)]
    wheel = next((line for line in first if line.endswith(".whl") and "  local/" not in line), "")
    option = ["--no-kernels"] if "-any.whl" in wheel else ["--manylinux"] if "-manylinux" in wheel else []
    with tempfile.TemporaryDirectory(prefix="remex-again-") as work:
        command = [sys.executable, str(ROOT / "scripts" / "build_dist.py"), "--out", work, *option]
        subprocess.run([*command, *(part for kind in kinds for part in ("--only", kind))], check=True, stdout=subprocess.DEVNULL)
        second = pathlib.Path(work, "SHA256SUMS").read_text().splitlines()
    return sorted(set(first) ^ set(second))


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=pathlib.Path, help="the folder that scripts/build_dist.py has filled")
    parser.add_argument("--again", action="store_true", help="build the same files again, and compare the hashes with SHA256SUMS")
    args = parser.parse_args(argv)
    problems = check(args.folder)
    if args.again:
        problems += [f"another build has another hash: {line}" for line in differences(args.folder)]
    for problem in problems:
        print("check_dist:", problem, file=sys.stderr)
    print(f"{len(problems) or 'no'} problem{'s' if len(problems) != 1 else ''}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
