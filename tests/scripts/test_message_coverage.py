import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "scripts"))

import message_coverage  # noqa: E402
from coverage_table import percentage  # noqa: E402

LEAST = 90  # percent of all messages
LEAST_OF_PACKAGE = 70
FEW = 4  # packages with up to so many messages have no share worth a limit


def test_messages_contain_the_received_value():
    rows = message_coverage.coverage()
    assert {"ops", "ndarray", "gluon", "optimizer", "module"} <= set(rows)
    below = {package: missing[:5] for package, (complete, missing) in rows.items()
             if complete + len(missing) > FEW and percentage(complete, missing) < LEAST_OF_PACKAGE}
    assert below == {}
    assert percentage(sum(c for c, _ in rows.values()), [place for _, missing in rows.values() for place in missing]) >= LEAST


@pytest.fixture()
def package(tmp_path):
    (tmp_path / "things").mkdir()
    (tmp_path / "things" / "one.py").write_text('''\
def f(x, name, least=0):
    if x < least:
        raise ValueError(f"a number from {least} on expected, received {x}")
    if x > 9:
        raise ValueError(f"{name}: a smaller number expected")
    size = len(x)
    if size != 3:
        raise MXNetError("three entries expected, not {}".format(len(x)))
    if size == 4:
        raise MXNetError("%s entries" % name)
    if x is None:
        raise TypeError("a number expected, received None")
    if name:
        raise malformed("a message" if size else f"a message of {name}")
    try:
        y = g(x)
    except ValueError as error:
        raise MXNetError(f"the file is damaged: {error}") from None
    raise MXNetError(f"f: {y} is nothing of " + LIMIT)


def g(self, value):
    def inner(key):
        raise KeyError(f"no key {key!r}")
    if self.open:
        raise RuntimeError(f"{self.path} is open")
    for part in value:
        raise IndexError(f"{part} is too large")
    raise NotImplementedError("no such operation")


def h(x):
    if x:
        raise _failed("all of it", x)
    if not x:
        raise Unsupported("a loop")
    raise ValueError(x)
''')
    return tmp_path


def test_a_value_of_the_condition_counts_and_a_label_does_not(package):
    rows = message_coverage.coverage(package)
    assert list(rows) == ["things"]
    complete, missing = rows["things"]
    assert [place.split(" ", 1)[0] for place in missing] == ["things/one.py:5", "things/one.py:10", "things/one.py:14", "things/one.py:26"]
    assert complete == 7  # lines 3, 8, 12, 18, 19, 24, 28


def test_the_script_fails_below_the_threshold(monkeypatch, capsys):
    monkeypatch.setattr(message_coverage, "coverage", lambda: {"a": (3, ["a.py:1 'text'"]), "b": (1, [])})
    assert message_coverage.main(["--threshold", "75"]) == 0
    assert message_coverage.main(["--threshold", "76", "--missing"]) == 1
    assert "a.py:1 'text'" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        message_coverage.main(["--package", "c"])
