"""The benchmark for GPUs runs on a processor, too, where its numbers say nothing."""
import json
import pathlib
import subprocess

from forked import python

ROOT = pathlib.Path(__file__).parents[2]
REPORT = """<testsuites><testsuite name="pytest" errors="0" failures="{}" skipped="3" tests="13" time="4.2"></testsuite></testsuites>"""


def run(tmp_path, failures):
    (tmp_path / "tests.xml").write_text(REPORT.format(failures))
    options = ["--device", "cpu", "--parts", "calls", "--networks", "add", "--rounds", "1", "--seconds", "0.01"]
    options += ["--tests", str(tmp_path / "tests.xml"), "--results", str(tmp_path)]
    return subprocess.run([*python(), str(ROOT / "benchmarks" / "gpu.py"), *options], capture_output=True, text=True, timeout=200)


def test_a_report_has_tests_and_rates(tmp_path):
    done = run(tmp_path, 0)
    assert done.returncode == 0, done.stderr
    page, found = next(tmp_path.glob("*.md")).read_text(), json.loads(next(tmp_path.glob("*.json")).read_text())
    assert "Tests of `tests/gpu`: 10 of 10 passed, 3 skipped, 4 s" in page and "| calls: add, batch 1, float32 (TF32) |" in page
    assert sorted(found["rows"][0]["rate"]) == ["PyTorch eager", "Remex"] and min(found["rows"][0]["rate"].values()) > 0


def test_failed_tests_are_the_exit_status(tmp_path):
    done = run(tmp_path, 2)
    assert done.returncode == 1 and "8 of 10 passed" in done.stdout
