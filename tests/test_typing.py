import os
import pathlib
import re
import subprocess
import sys

import pytest

from forked import python

ROOT = pathlib.Path(__file__).resolve().parent.parent
PROGRAMS = ROOT / "tests" / "typing"


def findings(tmp_path):
    """What mypy says of both programs, knowing this package only by what is installed of it: (file, line) -> message.

    It keeps what it knows about modules for the next time, and leaves torch alone: a third of its work.
    """
    pytest.importorskip("mypy")
    (tmp_path / "mypy.ini").write_text("[mypy]\n[mypy-torch.*]\nfollow_imports = skip\n")
    command = [sys.executable, "-m", "mypy", "--config-file=mypy.ini", "--follow-imports=normal", "--cache-dir", str(ROOT / ".mypy_cache" / "typing"),
               "--no-error-summary", "--check-untyped-defs", *map(str, sorted(PROGRAMS.glob("*.py")))]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path, env={**os.environ, "MYPYPATH": str(ROOT / "src")},
                          timeout=280)
    assert done.returncode in (0, 1), done.stdout + done.stderr
    lines = (re.fullmatch(r"(.*?):(\d+): error: (.*)", line) for line in done.stdout.splitlines())
    return {(pathlib.Path(m[1]).name, int(m[2])): m[3] for m in lines if m and pathlib.Path(m[1]).parent == PROGRAMS}


def test_a_right_program_runs():
    done = subprocess.run([*python(), PROGRAMS / "program.py"], capture_output=True, text=True, check=False,
                          env={**os.environ, "PYTHONPATH": str(ROOT / "src")}, timeout=280)
    assert done.returncode == 0, done.stderr


def test_a_right_program_has_no_errors_and_each_mistake_is_found(tmp_path):
    found = findings(tmp_path)
    assert {line: message for (file, line), message in found.items() if file == "program.py"} == {}
    lines = (PROGRAMS / "mistakes.py").read_text().splitlines()
    wrong = [number for number, line in enumerate(lines, 1) if "# wrong" in line]
    assert len(wrong) >= 10
    assert sorted(line for file, line in found if file == "mistakes.py") == wrong
