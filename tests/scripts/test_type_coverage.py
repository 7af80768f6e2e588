import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "scripts"))

import type_coverage  # noqa: E402


def test_every_public_function_is_annotated():
    rows = type_coverage.coverage()
    assert {"ops", "ndarray", "gluon", "optimizer", "metric"} <= set(rows)
    assert {package: missing[:5] for package, (_, missing) in rows.items() if missing} == {}


@pytest.fixture()
def package(tmp_path):
    (tmp_path / "things").mkdir()
    (tmp_path / "_own.py").write_text("def f(x): pass\n")
    (tmp_path / "things" / "_own.py").write_text("def f(x): pass\n")
    (tmp_path / "things" / "one.py").write_text("""\
@op("relu")
def relu(data): pass

def f(a: int, b, *c, **d: int): pass

def _g(x): pass

class A:
    def __init__(self, x: int): pass
    def __len__(self): return 0
    def _own(self, x): pass
    @staticmethod
    def s(x) -> int: return x
    @property
    def p(self) -> int: return 1

class _B:
    def f(self, x): pass
""")
    return tmp_path


def test_parameters_and_returns_of_public_names_are_counted(package):
    rows = type_coverage.coverage(package)
    assert list(rows) == ["things"]
    annotated, missing = rows["things"]
    assert annotated == 5  # a, **d, x of __init__, the returns of s and p
    assert missing == ["things/one.py:4 f(b)", "things/one.py:4 f(c)", "things/one.py:4 f(return)", "things/one.py:10 A.__len__(return)",
                       "things/one.py:13 A.s(x)"]


def test_the_script_fails_below_the_threshold(monkeypatch, capsys):
    monkeypatch.setattr(type_coverage, "coverage", lambda: {"a": (3, ["a.py:1 f(x)"]), "b": (1, [])})
    assert type_coverage.main(["--threshold", "75"]) == 0
    assert type_coverage.main(["--threshold", "76", "--missing"]) == 1
    assert "a.py:1 f(x)" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        type_coverage.main(["--package", "c"])
