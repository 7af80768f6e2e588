"""Install the distributions of a folder as a stranger would, and use them: a new environment, no compiler, a package that requires `mxnet>=1.6`.

    python scripts/check_install.py dist [--python python3.12] [--torch 2.13.0] [--folder ENVIRONMENT]

It prints the time of the installation and its size, then runs README's program, `remex diagnose`, and `pip check`. The exit status is 1 if one fails.
"""
import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
_TINY = {"needs_mxnet.py": "import mxnet as mx\n\n\ndef total():\n    return mx.nd.ones((2, 3)).sum().asscalar()\n",
         "needs_mxnet-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: needs-mxnet\nVersion: 1.0\nRequires-Dist: mxnet>=1.6\n",
         "needs_mxnet-1.0.dist-info/WHEEL": "Wheel-Version: 1.0\nGenerator: check_install\nRoot-Is-Purelib: true\nTag: py3-none-any\n"}


def write_tiny_package(folder):
    """Write the wheel of a package whose metadata says `Requires-Dist: mxnet>=1.6`."""
    record = "needs_mxnet-1.0.dist-info/RECORD"
    with zipfile.ZipFile(folder / "needs_mxnet-1.0-py3-none-any.whl", "w") as archive:
        for name, text in _TINY.items():
            archive.writestr(name, text)
        archive.writestr(record, "".join(f"{name},,\n" for name in (*_TINY, record)))


def readme_program():
    """Return the first Python program of README.md."""
    return re.search(r"```python\n(.*?)```", (ROOT / "README.md").read_text("utf-8"), re.DOTALL)[1]


def size_of(folder):
    """Return the bytes of all files below a folder, each counted once."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file() and not path.is_symlink())


def run(title, command, env, folder):
    """Run a step; print its title, output and time, and return whether it succeeded."""
    begin = time.perf_counter()
    done = subprocess.run([str(part) for part in command], env=env, cwd=folder, capture_output=True, text=True)
    print(f"== {title}: {'ok' if done.returncode == 0 else f'FAILED with status {done.returncode}'}, {time.perf_counter() - begin:.1f} s", flush=True)
    print("\n".join("   " + line for line in (done.stdout + done.stderr).splitlines()), flush=True)
    return done.returncode == 0


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("dist", type=pathlib.Path, help="the folder that scripts/build_dist.py has filled")
    parser.add_argument("--python", default=sys.executable, help="the interpreter of the new environment (default: this one)")
    parser.add_argument("--torch", help="this version of torch, such as 2.13.0; by default what pip takes")
    parser.add_argument("--folder", type=pathlib.Path, help="keep the environment here; by default it is temporary")
    args = parser.parse_args(argv)
    with tempfile.TemporaryDirectory(prefix="remex-install-") as work:
        folder, work = (args.folder or pathlib.Path(work, "env")).resolve(), pathlib.Path(work)
        subprocess.run([args.python, "-m", "venv", str(folder)], check=True)
        scripts = folder / ("Scripts" if os.name == "nt" else "bin")
        python = scripts / ("python.exe" if os.name == "nt" else "python")
        env = {key: value for key, value in os.environ.items() if key not in ("CXX", "CC", "PYTHONPATH")}
        env.update(PATH=str(scripts), MXNET_HOME=str(work / "home"), PIP_DISABLE_PIP_VERSION_CHECK="1")  # no compiler on PATH
        before = size_of(folder)
        write_tiny_package(work)
        pip = [python, "-m", "pip", "install", "-q", "--find-links", args.dist.resolve()]
        wanted = ["remexnet", *([f"torch=={args.torch}"] if args.torch else [])]
        passed = run(f"pip install {' '.join(wanted)}", [*pip, *wanted], env, work)
        print(f"   {(size_of(folder) - before) / 1e9:.2f} GB installed")
        passed &= run("pip install needs-mxnet (Requires-Dist: mxnet>=1.6)",
                      [*pip, "--find-links", args.dist.resolve() / "local", "--find-links", work, "needs-mxnet"], env, work)
        for title, command in (
                ("import of a package that requires mxnet", [python, "-c", "import needs_mxnet; assert needs_mxnet.total() == 6"]),
                ("README's program", [python, "-c", readme_program()]),
                ("remex diagnose", [scripts / "remex", "diagnose"]),
                ("remex --help", [scripts / "remex", "--help"]),
                ("im2rec --help", [scripts / "im2rec", "--help"]),
                ("pip check", [python, "-m", "pip", "check"])):
            passed &= run(title, command, env, work)
    print("all passed" if passed else "FAILED")
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
