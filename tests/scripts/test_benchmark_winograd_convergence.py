"""Tests of benchmarks/winograd_convergence.py: the table, and the trainings that are repeated."""
import json
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "benchmarks"))
import winograd_convergence  # noqa: E402


def trained(loss, accuracy=0.9):
    return {"losses": [loss], "accuracy": accuracy, "convolutions": ["convolutions, forward: 20 x direct"], "machine": "a machine"}


def test_the_table_gives_the_difference_in_standard_deviations():
    lines = winograd_convergence.table({"direct": [trained(1.0), trained(3.0)], "the fastest": [trained(1.5), trained(3.5)]}, 1)
    assert lines[2:4] == ["| loss, epoch 1 | 2.0000 | 2.5000 | 5.0e-01 | 1.4e+00 |", "| accuracy | 0.9000 | 0.9000 | 0.0e+00 | 0.0e+00 |"]
    assert lines[-1] == "The algorithms differ by at most 0.35 standard deviations of the seeds."


def test_a_difference_without_a_deviation_counts_as_one():
    lines = winograd_convergence.table({"direct": [trained(1.0), trained(1.0)], "the fastest": [trained(1.5), trained(1.5)]}, 1)
    assert lines[-1].startswith("The algorithms differ by at most 1.00 ")


def test_stored_trainings_are_not_repeated(tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr(winograd_convergence, "train_in_process",
                        lambda seed, algorithm, epochs: asked.append((seed, algorithm)) or trained(float(seed)))
    monkeypatch.setattr(winograd_convergence.common, "versions", lambda python: "a machine")
    monkeypatch.setattr(sys, "argv", ["winograd_convergence.py", "--seeds", "2", "--epochs", "1", "--results", str(tmp_path)])
    (tmp_path / "winograd_convergence.json").write_text(
        json.dumps({"0": {"direct": trained(0.5)}, "1": {"direct": {**trained(0.5), "losses": [1.0, 2.0]}}}))
    winograd_convergence.main()
    assert asked == [(0, "the fastest"), (1, "direct"), (1, "the fastest")]
    assert json.loads((tmp_path / "winograd_convergence.json").read_text())["0"]["direct"]["losses"] == [0.5]
    text = (tmp_path / "winograd_convergence.md").read_text()
    assert "- convolutions, forward: 20 x direct" in text and "| loss, epoch 1 | 0.7500 | 0.5000 |" in text and text.endswith("a machine\n")
    winograd_convergence.main()
    assert len(asked) == 3


def test_an_interrupted_run_keeps_its_trainings(tmp_path, monkeypatch):
    def train(seed, algorithm, epochs):
        if seed:
            raise KeyboardInterrupt
        return trained(1.0)
    monkeypatch.setattr(winograd_convergence, "train_in_process", train)
    monkeypatch.setattr(winograd_convergence.common, "versions", lambda python: "a machine")
    monkeypatch.setattr(sys, "argv", ["winograd_convergence.py", "--seeds", "2", "--epochs", "1", "--results", str(tmp_path)])
    with pytest.raises(KeyboardInterrupt):
        winograd_convergence.main()
    assert sorted(json.loads((tmp_path / "winograd_convergence.json").read_text())["0"]) == ["direct", "the fastest"]
    assert [path.name for path in tmp_path.iterdir()] == ["winograd_convergence.json"]
