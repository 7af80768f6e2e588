import json
import subprocess
import sys

import pytest

from mxnet2 import __main__ as runner
from mxnet2 import selection

EXCEPTIONS = """
[left out]
# They need MXNet's library
# in C.
test_a.py::test_one
[failing]
# It differs.
test_a.py::test_two[x]
test_b.py::test_th*
"""


def test_exceptions_have_reasons(tmp_path):
    path = tmp_path / "exceptions.txt"
    path.write_text(EXCEPTIONS)
    exceptions = selection.Exceptions.read(path)
    assert exceptions.left_out == {"test_a.py::test_one": "They need MXNet's library in C."}
    assert exceptions.reason("test_a.py::test_two[x]") == exceptions.reason("test_b.py::test_three") == "It differs."
    assert exceptions.reason("test_a.py::test_two[y]") is None and exceptions.reason("test_a.py::test_one") is None
    path.write_text("[failing]\ntest_a.py::test_one\n")
    with pytest.raises(ValueError, match=r"exceptions.txt:2: test_a.py::test_one stands in no section, or has no reason above it"):
        selection.Exceptions.read(path)


def test_the_exceptions_of_the_project_can_be_read():
    assert selection.Exceptions.read(runner.HERE / "exceptions.txt").left_out


def test_cases_are_chosen_evenly():
    names = [f"a[{i}]" for i in range(9)] + ["b"]
    assert selection.evenly(names, 3) == ["a[0]", "a[4]", "a[8]", "b"] and selection.evenly(names, 1) == ["a[0]", "b"]
    assert selection.short("tests/python/unittest/test_a.py::test_b[x/y::z]") == "test_a.py::test_b[x/y::z]"


def test_a_table_counts_what_runs(tmp_path):
    rows = [{"id": name, "outcome": outcome, "error": error} for name, outcome, error in (
        ("f::a", "did not run", ""), ("f::a", "passed", ""),
        ("f::b", "failed", "why"), ("f::b", "passed", ""), ("f::c", "skipped", ""), ("f::d", "passed", ""), ("f::e", "did not run", ""))]
    tests = runner.outcomes(rows)
    assert {name: row["outcome"] for name, row in tests.items()} == {"f::a": "passed", "f::b": "failed", "f::d": "passed", "f::e": "did not run"}
    passed, failed, lines = runner.judge(tests, selection.Exceptions({}, {"f::b": "differs", "f::d": "differs, too"}))
    assert passed == 2 and set(failed) == {"f::b", "f::e"}
    assert lines == ["  f::e: did not run ", "  f::d: passes, though exceptions.txt says: differs, too"]


def test_files_run_with_the_names_of_mxnet_2(tmp_path):
    repository = tmp_path / "mxnet"
    tests = repository / "tests" / "python" / "unittest"
    tests.mkdir(parents=True)
    (repository / "conftest.py").write_text("")
    (tests / "test_few.py").write_text("import mxnet as mx\n\n\ndef test_version():\n    assert mx.util.version() == '2.0'\n\n\n"
                                       "def test_wrong():\n    assert 1 == 2\n")
    git = ["git", "-C", str(repository), "-c", "user.name=n", "-c", "user.email=e"]
    for command in (["init", "-q", "-b", "master"], ["add", "."], ["commit", "-q", "-m", "tests"]):
        subprocess.run([*git, *command], check=True)
    found = subprocess.run([sys.executable, "-m", "tests.mxnet2", "--git", str(repository / ".git"), "--out", str(tmp_path / "out"), "test_few.py"],
                           cwd=runner.ROOT, capture_output=True, text=True)
    assert found.returncode == 1, found.stderr
    assert "  test_few.py::test_wrong: failed assert 1 == 2" in found.stdout and "| `test_few.py` | 1 | 2 | 50.0% |" in found.stdout
    assert [json.loads(line)["id"] for line in (tmp_path / "out" / "test_few.py.jsonl").read_text().splitlines()][0] == "test_few.py::test_version"
