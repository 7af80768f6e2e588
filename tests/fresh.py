"""Downloads in an environment that has nothing but ``pip install .``: a connection that breaks in the middle, a redirect, a wrong checksum.

    python -m tests.fresh [--folder FOLDER] [--without-kernels] [REQUIREMENT ...]

It makes a virtual environment in FOLDER, or takes the one that is there; installs the requirements, such as torch==2.13.0, and then this
project; and downloads from a server on loopback. It needs some minutes and pip's packages, and so is no part of the tests: there
`tests/test_downloads.py` forbids what is not declared.
"""
import argparse
import http.server
import os
import pathlib
import subprocess
import sys
import tempfile
import threading

from .test_downloads import CONTENT, FRESH, SHA1, Handler, ranges

ROOT = pathlib.Path(__file__).resolve().parents[1]
_BREAK = 131_072  # a whole number of the blocks in which it is received


def install(folder, requirements, env):
    """The Python of an environment with the requirements and this project."""
    python = folder / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True, timeout=900)
    pip = [str(python), "-m", "pip", "install", "-q", "--disable-pip-version-check"]
    if requirements:
        subprocess.run([*pip, *requirements], check=True, timeout=900)
    subprocess.run([*pip, str(ROOT)], check=True, env=env, timeout=900)
    return python


def serve():
    """A server on loopback that breaks its first connection in the middle."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.content, server.tag, server.ranges, server.length = CONTENT, '"1"', True, True
    server.codes, server.breaks, server.asked, server.after = [], [_BREAK], [], lambda: None
    server.says, server.moved_to = "bytes {start}-{end}/{total}", "/b.bin"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("requirements", nargs="*", metavar="REQUIREMENT")
    parser.add_argument("--folder", type=pathlib.Path, help="of the environment; by default one that is removed in the end")
    parser.add_argument("--without-kernels", action="store_true", help="do not compile them, which takes a minute")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as work:
        env = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
        building = {**env, "CXX": os.devnull} if chosen.without_kernels else env
        python = install(chosen.folder or pathlib.Path(work, "env"), chosen.requirements, building)
        server = serve()
        out = subprocess.run([str(python), "-c", FRESH.format(forbidden=["pytest"]), f"http://127.0.0.1:{server.server_port}/a.bin", SHA1, work],
                             capture_output=True, text=True, cwd=work, env={**env, "NO_PROXY": "127.0.0.1"}, timeout=300)
        server.shutdown()
        listed = [str(python), "-m", "pip", "list", "--disable-pip-version-check"]
        installed = subprocess.run(listed, capture_output=True, text=True, timeout=900).stdout
    print(out.stdout, out.stderr, installed, sep="\n")
    asked = [(path, wanted) for (path, *_), wanted in zip(server.asked, ranges(server))]
    if asked[:4] != [("/a.bin", None), ("/a.bin", f"bytes={_BREAK}-"), ("/moved.bin", None), ("/b.bin", None)]:
        raise SystemExit(f"asked was {asked}")
    if not out.stdout.endswith(f"[{len(CONTENT)}, {len(CONTENT)}] SHA-1 {'0' * 20}\n"):
        raise SystemExit("the downloads failed")
    print("continued after the break, followed the redirect, refused the wrong checksum")


if __name__ == "__main__":
    main()
