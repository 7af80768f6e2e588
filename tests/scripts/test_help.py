"""Every command of benchmarks/, scripts/ and examples/ answers ``--help``, and does nothing else then."""
import ast
import os
import pathlib
import subprocess

import pytest

from forked import python

ROOT = pathlib.Path(__file__).resolve().parents[2]
LIBRARIES = ("harness", "workers", "stubs", "site_pages", "common", "symbols")  # folders whose files are imported, or started by a command


def is_command(path):
    return not set(path.relative_to(ROOT).parts) & set(LIBRARIES) and path.name not in ("coverage_table.py", "differential_worker.py")


COMMANDS = [path for folder in ("benchmarks", "scripts", "examples") for path in sorted((ROOT / folder).rglob("*.py")) if is_command(path)]
# Runs each program in a fork of a process that has imported what most of them import.
PROGRAM = """
import os, runpy, sys
import mxnet
for number, path in enumerate(sys.argv[1:]):
    child = os.fork()
    if not child:
        status = 1
        try:
            os.dup2(os.open(f"{number}.txt", os.O_CREAT | os.O_WRONLY), 1)
            sys.argv[:], sys.path[0] = [path, "--help"], os.path.dirname(path)
            os.mkdir(f"{number}"), os.chdir(f"{number}")
            runpy.run_path(path, run_name="__main__")
        except SystemExit as end:
            status = end.code or 0
        finally:
            sys.stdout.flush()
            os._exit(status)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


@pytest.fixture(scope="module")
def answers(tmp_path_factory):
    """By command: exit status, output, and the files that it left in its folder."""
    folder = tmp_path_factory.mktemp("help")
    env = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "TMPDIR": str(folder), "OMP_NUM_THREADS": "1"}
    done = subprocess.run([*python(), "-c", PROGRAM, *map(str, COMMANDS)], cwd=folder, env=env, capture_output=True, text=True, timeout=200)
    statuses = list(map(int, done.stdout.split()))
    assert len(statuses) == len(COMMANDS), done.stderr
    return {path: (status, (folder / f"{i}.txt").read_text(), os.listdir(folder / f"{i}"), done.stderr)
            for i, (path, status) in enumerate(zip(COMMANDS, statuses))}


@pytest.mark.parametrize("path", COMMANDS, ids=lambda path: str(path.relative_to(ROOT)))
def test_help_is_printed_and_nothing_is_done(answers, path):
    status, output, files, errors = answers[path]
    assert status == 0, errors
    assert output.startswith(f"usage: {path.name} [-h]") and files == []


@pytest.mark.parametrize("path", COMMANDS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_option_has_a_line_of_help(path):
    calls = [node for node in ast.walk(ast.parse(path.read_text("utf-8")))
             if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "add_argument"]
    assert [call.args[0].value for call in calls if not any(keyword.arg == "help" for keyword in call.keywords)] == []
