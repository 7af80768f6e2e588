"""Run the core of the tests with the oldest or the newest torch that pyproject.toml permits, in an environment of its own.

    python scripts/check_torch.py oldest|newest|2.12.1 [--python python3.12] [--folder ENVIRONMENT]
"""
import argparse
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
# What touches most of torch's interfaces, in some minutes: arrays, autograd, operators, graphs, layers, Module, kernels, files.
CORE = ("tests/test_autograd.py", "tests/test_import.py", "tests/ndarray", "tests/gluon/test_block.py", "tests/module/test_module.py",
        "tests/kernels/runtime", "tests/ops/nn")


def requirement(wanted, pyproject):
    """Return pip's requirement for torch: the oldest minor version, the newest, or a version.

    Raises
    ------
    SystemExit
        If pyproject.toml has no range for torch.
    """
    results = re.search(r'"torch>=(\d+\.\d+),<(\d+)\.(\d+)"', pyproject)
    if results is None:
        raise SystemExit("pyproject.toml should require torch as 'torch>=A.B,<C.D'")
    if wanted == "oldest":
        return f"torch=={results[1]}.*"
    return f"torch=={results[2]}.{int(results[3]) - 1}.*" if wanted == "newest" else f"torch=={wanted}"


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("torch", help="oldest, newest, or a version")
    parser.add_argument("--python", default=sys.executable, help="the interpreter (default: this one)")
    parser.add_argument("--folder", type=pathlib.Path, help="keep the environment here; by default it is temporary")
    args = parser.parse_args(argv)
    with tempfile.TemporaryDirectory(prefix="remex-torch-") as work:
        folder = args.folder or pathlib.Path(work, "env")
        subprocess.run([args.python, "-m", "venv", str(folder)], check=True)
        python = folder / ("Scripts" if sys.platform == "win32" else "bin") / "python"
        torch = requirement(args.torch, (ROOT / "pyproject.toml").read_text("utf-8"))
        subprocess.run([str(python), "-m", "pip", "install", "-q", torch, "-e", f"{ROOT}[test]"], check=True)
        return subprocess.run([str(python), "-m", "pytest", *CORE], cwd=ROOT).returncode


if __name__ == "__main__":
    sys.exit(main())
