"""Tests of benchmarks/operators.py: the libraries that it limits to AVX2, and the files that it writes."""
import pathlib
import sys
import types

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "benchmarks"))
import operators  # noqa: E402
from harness import common, isa_limit  # noqa: E402


@pytest.fixture
def measured(monkeypatch, tmp_path):
    """A run over no operators: the environments of those that would be measured, and the files that it writes."""
    environments = {}
    monkeypatch.setattr(operators, "Peer", lambda python, kind, seconds, env: environments.setdefault(kind, env))
    monkeypatch.setattr(operators, "HERE", tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setitem(sys.modules, "records", types.SimpleNamespace(RECORDS={}))  # the sample inputs of tests/ops
    monkeypatch.setattr(common, "versions", lambda python: "a machine")
    monkeypatch.setattr(isa_limit, "to_avx2", lambda: monkeypatch.setenv("ONEDNN_MAX_CPU_ISA", "AVX2"))
    monkeypatch.delenv("ONEDNN_MAX_CPU_ISA", raising=False)

    def run(*options):
        monkeypatch.setattr(sys, "argv", ["operators.py", "--mxnet-python", "python", *options])
        operators.main()
        return environments, sorted(path.name for path in tmp_path.rglob("*.*"))
    return run


def test_all_libraries_are_limited_and_the_table_without_a_limit_is_not_replaced(measured, tmp_path):
    environments, files = measured("--avx2")
    assert {kind: env["ONEDNN_MAX_CPU_ISA"] for kind, env in environments.items()} == dict.fromkeys(("torch", "remex", "mxnet"), "AVX2")
    assert files == []
    assert measured("--avx2", "--output", str(tmp_path / "limited.md"))[1] == ["limited.json", "limited.md"]


def test_a_run_over_all_writes_its_table(measured):
    environments, files = measured()
    assert not any("ONEDNN_MAX_CPU_ISA" in env for env in environments.values()) and files == ["operators.json", "operators.md"]
