"""Tests of the pages that benchmarks/run.py writes: the baseline, the ratio, the table. Nothing is timed."""
import math
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "benchmarks"))
from harness import common, report, tasks  # noqa: E402

MACHINE = {"processor": "a processor", "cores": 2, "memory": "8 GB", "system": "", "python": "3.11", "versions": {"Remex": "0.1"}, "commit": "abc",
           "date": "2026-11-21"}


def measured(task="scoring", network="resnet50", batch=1, failures=(), **values):
    row = next(r for r in tasks.rows([task]) if r["network"] == network and r["batch"] == batch)
    return {**row, "values": {name.replace("_", " "): v for name, v in values.items()}, "failures": dict(failures), "others": 0.01,
            "machine": MACHINE}


def test_the_peer_with_the_least_median_is_the_baseline():
    result = report.ratio(measured(Remex=[0.01, 0.02, 0.03], MXNet=[0.05, 0.05, 0.001], OpenVINO=[0.03, 0.03, 0.1]))
    assert result == (pytest.approx(1.5), "OpenVINO")


def test_the_summary_names_the_notes_of_the_checkout_that_it_lies_in(tmp_path):
    results = tmp_path / "checkout" / "benchmarks" / "results" / "other"
    results.mkdir(parents=True)
    report.summarize(results)
    notes = pathlib.Path(common.ROOT) / "docs" / "performance.md"
    assert f"[docs/performance.md]({report.os.path.relpath(notes, results)})" in (results / "README.md").read_text()
    (tmp_path / "checkout" / "docs").mkdir()
    (tmp_path / "checkout" / "docs" / "performance.md").touch()
    report.summarize(results)
    assert "[docs/performance.md](../../../docs/performance.md)" in (results / "README.md").read_text()


def test_a_goal_may_name_the_baseline():
    assert report.ratio(measured("mlp", "mlp", 8, Remex=[1e-5], PyTorch=[3e-5], MXNet=[2e-5])) == (pytest.approx(3), "PyTorch")
    module = measured("module", Remex=[0.98], Remex_Module=[1.0])
    assert report.ratio(module) == (pytest.approx(0.98), "Remex")


def test_no_ratio_without_both():
    assert math.isnan(report.ratio(measured(Remex=[1.0]))[0]) and math.isnan(report.ratio(measured(MXNet=[1.0]))[0])


def test_every_goal_has_rows_and_every_row_has_remex_first():
    for task in tasks.GOALS:
        rows = tasks.rows([task])
        assert rows
        assert all(tasks.peers(row)[0] in (tasks.REMEX, tasks.MODULE) for row in rows)
        assert len({tasks.label(row) for row in rows}) == len(rows)


def test_an_unknown_task_is_named():
    with pytest.raises(SystemExit, match="no task 'speed'; there are scoring, scoring-bf16"):
        tasks.rows(["speed"])


def test_the_table_says_what_was_measured_and_what_was_not():
    text = report.table("scoring", [
        measured(batch=8, Remex=[0.02] * 3, OpenVINO=[0.01] * 3, MXNet=[0.09] * 2, failures={"ONNX Runtime": "onnxruntime is not installed"}),
        measured(batch=1, Remex=[0.01] * 3, OpenVINO=[0.02] * 3)])
    lines = text.splitlines()
    assert "**1.000** in the geometric mean of 2 rows (goal 1.25); lowest 0.500 (resnet50, batch 8)." in text
    assert "Under 1.0: resnet50, batch 8 (0.500)." in lines
    first, second = (line for line in lines if line.startswith("| resnet50"))
    assert first.startswith("| resnet50, batch 1 | 10 | 20 | - |") and "| 2.000 | OpenVINO | 100.0 |" in first
    assert "| 90~ |" in second and "| 0.500 | OpenVINO | 400.0 |" in second
    assert "- ONNX Runtime: onnxruntime is not installed" in lines
    assert "a processor, 2 cores, 8 GB; Python 3.11; Remex 0.1; commit abc; 2026-11-21." in lines


def test_rows_below_the_limit_are_named_from_the_lowest_on_and_nothing_is_said_where_there_are_none():
    def times(batch, others):
        return measured("training", batch=batch, Remex=[1.0], MXNet=[others])
    text = report.table("training", [times(1, 1.0), times(8, 0.7), times(4, 1.05)])
    assert "Under 1.05: resnet50, batch 8 (0.700); resnet50, batch 1 (1.000)." in text
    assert "Under" not in report.table("training", [times(1, 1.05)])
    assert "Under" not in report.table("mlp", [measured("mlp", "mlp", 8, Remex=[1.0], PyTorch=[0.5])])  # its goal has no limit for a row


def test_results_are_kept_and_taken_up_again(tmp_path):
    assert report.load(tmp_path, "mlp") == {"task": "mlp", "rows": {}}
    stored = {"task": "mlp", "rows": {"mlp, batch 8": measured("mlp", "mlp", 8, Remex=[1e-5], PyTorch=[2e-5])}}
    report.save(tmp_path, "mlp", stored)
    assert report.load(tmp_path, "mlp")["rows"].keys() == {"mlp, batch 8"}
    report.write(tmp_path, "mlp")
    assert (tmp_path / "mlp.md").read_text().startswith("# mlp: milliseconds per call")
