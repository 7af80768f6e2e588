"""Check that a tag, the package's version and CHANGELOG.md agree: ``python scripts/check_version.py v0.1.0``; without a tag, the last two."""
import argparse
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]


def version():
    """Return the version in `mxnet/libinfo.py`, without an import of it."""
    return re.search(r'^remex_version = "([^"]+)"', (ROOT / "src" / "mxnet" / "libinfo.py").read_text("utf-8"), re.MULTILINE)[1]


def released(text):
    """Return the versions that a changelog has dated headings of, the newest first."""
    return re.findall(r"^## \[?(\d+\.\d+\.\d+[^\] ]*)\]? - \d{4}-\d{2}-\d{2}$", text, re.MULTILINE)


def address():
    """Return the project's address in setup.py, without running it."""
    return re.search(r'^ADDRESS = "([^"]*)"', (ROOT / "setup.py").read_text("utf-8"), re.MULTILINE)[1]


def problems(tag, current, changelog, place):
    """Return what does not agree or is missing, as sentences."""
    results = []
    if tag is not None and not place.startswith("https://"):
        results.append("setup.py has no ADDRESS: set the project's, such as https://github.com/NAME/remex, so that the metadata have links")
    if tag is not None and tag != f"v{current}":
        results.append(f"the tag is {tag}, and mxnet.libinfo.remex_version asks for v{current}")
    if tag is not None and current not in released(changelog):
        results.append(f"CHANGELOG.md has no heading '## [{current}] - YYYY-MM-DD'")
    if "## [Unreleased]" not in changelog:
        results.append("CHANGELOG.md has no heading '## [Unreleased]'")
    return results


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.partition(":")[0])
    parser.add_argument("tag", nargs="?", help="such as v0.1.0")
    results = problems(parser.parse_args(argv).tag, version(), (ROOT / "CHANGELOG.md").read_text("utf-8"), address())
    for problem in results:
        print("check_version:", problem, file=sys.stderr)
    return 1 if results else 0


if __name__ == "__main__":
    sys.exit(main())
