import os
import pathlib
import re
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent
PROGRAMS = ROOT / "tests" / "typing"


@pytest.fixture(scope="module")
def findings(tmp_path_factory):
    """What mypy says of both programs, knowing this package only by what is installed of it: (file, line) -> message."""
    pytest.importorskip("mypy")
    command = [sys.executable, "-m", "mypy", "--config-file=", "--follow-imports=normal", "--cache-dir", str(tmp_path_factory.mktemp("cache")),
               "--no-error-summary", "--check-untyped-defs", *map(str, sorted(PROGRAMS.glob("*.py")))]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path_factory.mktemp("elsewhere"),
                          env={**os.environ, "MYPYPATH": str(ROOT / "src")}, timeout=280)
    assert done.returncode in (0, 1), done.stdout + done.stderr
    lines = (re.fullmatch(r"(.*?):(\d+): error: (.*)", line) for line in done.stdout.splitlines())
    return {(pathlib.Path(m[1]).name, int(m[2])): m[3] for m in lines if m and pathlib.Path(m[1]).parent == PROGRAMS}


def test_a_right_program_has_no_errors(findings):
    assert {line: message for (file, line), message in findings.items() if file == "program.py"} == {}


def test_a_right_program_runs():
    done = subprocess.run([sys.executable, PROGRAMS / "program.py"], capture_output=True, text=True, check=False,
                          env={**os.environ, "PYTHONPATH": str(ROOT / "src")}, timeout=280)
    assert done.returncode == 0, done.stderr


def test_each_mistake_is_found(findings):
    lines = (PROGRAMS / "mistakes.py").read_text().splitlines()
    wrong = [number for number, line in enumerate(lines, 1) if "# wrong" in line]
    assert len(wrong) >= 10
    assert sorted(line for file, line in findings if file == "mistakes.py") == wrong
