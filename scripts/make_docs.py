"""Build the documentation site: `make docs`, or

    python scripts/make_docs.py [--output build/docs/html] [--no-run] [--only-mirror]

Sphinx reads a mirror of the repository's pages in build/docs/source, so that a relative link is right on GitHub and in the site. The mirror has
the reference and the tables besides, which `site_pages` generates. Cells of guides are executed; their outputs are reused until a cell of the page, a
file of the package, or the version of a library that it computes with changes.
"""
import argparse
import os
import pathlib
import subprocess
import sys

from site_pages import fingerprint, mirror

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = ROOT / "build" / "docs"
FIRST_PAGE = """<!doctype html><title>Remex</title><meta http-equiv="refresh" content="0; url=docs/index.html"><a href="docs/index.html">Remex</a>
"""


def write_kernel_settings(folder):
    """Write the settings of the guides' kernels, instead of the user's; errors only: each would warn that it has no encryption on loopback."""
    path = folder / "profile_default" / "ipython_kernel_config.py"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text('get_config().IPKernelApp.log_level = "ERROR"\n')


def main(arguments=None):
    """Write the mirror and run Sphinx on it; the exit status is Sphinx's."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", default=str(BUILD / "html"), help="folder of the finished pages (default: %(default)s)")
    parser.add_argument("--no-run", action="store_true", help="do not execute the guides' cells")
    parser.add_argument("--only-mirror", action="store_true", help="write the pages that Sphinx reads, and stop")
    args = parser.parse_args(arguments)
    sys.path.insert(0, str(ROOT / "src"))
    from site_pages import benchmarks, reference  # imports the package
    mirror.write(ROOT, BUILD / "source", {**reference.pages(ROOT), **benchmarks.pages(ROOT)})
    if args.only_mirror:
        return 0
    write_kernel_settings(BUILD / "ipython")
    cache = BUILD / "cache" / fingerprint.of_code(ROOT / "src" / "mxnet")
    environment = {**os.environ, "DOCS_EXECUTION": "off" if args.no_run else "cache", "DOCS_CACHE": str(cache),
                   "IPYTHONDIR": str(BUILD / "ipython"),
                   "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])}
    status = subprocess.run([sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-b", "html", "-c", str(ROOT / "docs"),
                             "-d", str(BUILD / "doctrees"), str(BUILD / "source"), args.output], env=environment).returncode
    if status == 0:
        (pathlib.Path(args.output) / "index.html").write_text(FIRST_PAGE)
        print(f"the site is in {args.output}; python -m http.server -d {args.output} shows it on port 8000")
    return status


if __name__ == "__main__":
    sys.exit(main())
