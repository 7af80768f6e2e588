"""Run the cells of the guides in docs/guides, without Jupyter and Sphinx:

    python scripts/run_guides.py [--jobs 2] [--seconds 300] [NAME ...]

Each page runs in a process of its own, in an empty folder. A cell tagged `raises-exception` must raise. Cells tagged `picture` are left out where
matplotlib is missing. The exit status is the number of pages that failed.
"""
import argparse
import ast
import contextlib
import importlib.util
import io
import os
import pathlib
import re
import signal
import sys
import tempfile
import time
import traceback

ROOT = pathlib.Path(__file__).resolve().parent.parent
GUIDES = ROOT / "docs" / "guides"
_CELL = re.compile(r"^```\{code-cell\}[^\n]*\n((?::[^\n]*\n)*)(.*?)^```$", re.M | re.S)


def cells(text):
    """Return (tags, source, line) of each cell of a page."""
    return [(set(re.findall(r"[\w-]+", match[1].partition(":tags:")[2])), match[2], text.count("\n", 0, match.start(2)) + 1)
            for match in _CELL.finditer(text)]


def run_page(path):
    """Run the cells of a page in this process, in the current folder.

    Raises
    ------
    Exception
        What a cell raised, or an AssertionError if one should have and did not.
    """
    pictures = importlib.util.find_spec("matplotlib") is not None
    if pictures:
        import matplotlib
        matplotlib.use("Agg")
    namespace = {"__name__": "__main__"}
    for tags, source, line in cells(path.read_text()):
        if "picture" in tags and not pictures:
            continue
        try:
            _run_cell(source, str(path), line, namespace)
        except Exception:
            if "raises-exception" not in tags:
                raise
        else:
            if "raises-exception" in tags:
                raise AssertionError(f"{path}:{line}: this cell should raise an exception, and raised none")


def _run_cell(source, name, line, namespace):
    tree = ast.increment_lineno(ast.parse(source, name), line - 1)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, name, "exec"), namespace)
    if last is not None:
        value = eval(compile(ast.Expression(last.value), name, "eval"), namespace)
        for show in ("_repr_html_", "__repr__"):
            if callable(getattr(value, show, None)) and not isinstance(value, type):
                getattr(value, show)()


def _child(path, report, seconds):
    os.setpgid(0, 0)
    signal.alarm(seconds)
    status, began = 1, time.process_time()
    text = io.StringIO()
    try:
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(text), contextlib.redirect_stderr(text):
            os.chdir(folder)
            run_page(path)
            os.chdir("/")
        status, text = 0, io.StringIO()
    except BaseException:
        text.write(traceback.format_exc(limit=-3))
    report.write_text(f"{time.process_time() - began:.1f}\n{text.getvalue()[-3000:]}")
    os._exit(status)


def main(arguments=None):
    """Run the pages; return the number of those that failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pages", nargs="*", metavar="NAME", help="names of pages, such as ndarray; all if none is given")
    parser.add_argument("--jobs", type=int, default=1, help="pages that run at a time (default: 1)")
    parser.add_argument("--seconds", type=int, default=300, help="limit for a page (default: 300)")
    args = parser.parse_args(arguments)
    waiting = [GUIDES / f"{name}.md" for name in args.pages] or [p for p in sorted(GUIDES.glob("*.md")) if cells(p.read_text())]
    sys.path.insert(0, str(ROOT / "src"))
    os.environ["PYTHONPATH"] = os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])  # for processes that a cell starts
    import mxnet  # noqa: F401  once for all pages, which are forks of this process
    failed, running = 0, {}
    with tempfile.TemporaryDirectory() as folder:
        while waiting or running:
            while waiting and len(running) < args.jobs:
                path = waiting.pop(0)
                report = pathlib.Path(folder) / path.stem
                sys.stdout.flush()
                process = os.fork()
                if process == 0:
                    _child(path, report, args.seconds)
                running[process] = path, report
            process, status = os.wait()
            if process not in running:
                continue
            path, report = running.pop(process)
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process, signal.SIGKILL)  # what the page left running
            written = report.read_text() if report.exists() else "\nended by a signal, or at the limit of time\n"
            seconds, _, text = written.partition("\n")
            failed += status != 0
            print(f"{path.stem:24s} {'ok' if status == 0 else 'FAILED'} {seconds}\n{text}", end="", flush=True)
    return failed


if __name__ == "__main__":
    sys.exit(main())
