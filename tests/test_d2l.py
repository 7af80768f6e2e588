import subprocess
import sys

import pytest

from d2l import __main__ as runner
from d2l import book, session
from mxnet2.selection import Exceptions

TEXT = """
```{.python .input  n=1}
%load_ext d2lbook.tab
tab.interact_select('mxnet', 'jax')
```
Words.
```{.python .input #first}
%%tab mxnet, jax
%matplotlib inline
x = 1
```
```{.python .input}
#@tab jax
y = 2
```
```{.python .input}
%%tab all
!ls
z = x + 1
```
```python
no = 0
```
```{.python .input #last}
z
```
"""


def sources(text, tab="mxnet"):
    return [[line for line in cell.source.splitlines() if line] for cell in book.cells("a/b", text, tab)]


def test_cells_of_a_tab_are_its_own_and_those_of_all():
    assert sources(TEXT) == [["x = 1"], ["z = x + 1"], ["z"]]
    assert sources(TEXT, "jax") == [["x = 1"], ["#@tab jax", "y = 2"], ["z = x + 1"], ["z"]]
    first, _, last = book.cells("a/b", TEXT)
    assert first.label == "first" and last == ("a/b::c865f6c5", "last", "z\n")
    again = book.cells("a/b", TEXT + "```{.python .input}\nz\n```\n")
    assert [cell.name for cell in again[2:]] == ["a/b::c865f6c5", "a/b::c865f6c5-2"]


def test_a_section_without_the_tab_has_no_cells():
    assert sources(TEXT, "pytorch") == [] and sources("```{.python .input}\n1\n```\n") == []
    assert sources("```{.python .input}\n1\n```\n```{.python .input}\n#@tab mxnet\n2\n```\n") == [["1"], ["#@tab mxnet", "2"]]


def run(*cells):
    asked, refused = [], []
    section = session.Section(asked, refused)
    section.names["refused"] = refused
    return [section.run(f"c{number}", cell, 60) for number, cell in enumerate(cells)]


def test_cells_that_need_a_download_are_left_out_and_those_that_need_their_names():
    rows = run("y = 1", "refused.append('http://x/data'); x = y = 1 / 0", "print(y)", "x = 2", "x", "z")
    assert [row["outcome"] for row in rows] == ["ran", "left out", "left out", "ran", "ran", "failed"]
    assert rows[2]["why"] == "it needs a download: http://x/data" and rows[4]["output"] == "2\n"
    assert rows[5]["why"] == "NameError: name 'z' is not defined"


def test_trainings_are_shortened():
    rows = run("lr, num_epochs = 0.1, 9\nnum_epochs", "print(dict(max_epochs=5, k=5)); 7;")
    assert [row["output"] for row in rows] == ["1\n", "{'max_epochs': 1, 'k': 5}\n"] and rows[0]["altered"]
    assert [row["altered"] for row in run("num_epochs = 1")] == [False]


def test_names_that_a_cell_binds():
    tree = session.ast.parse("import a.b, c as d\nfor e in []:\n    f = [g for g in e]\ndef h():\n    i = 1\nx.j = 2")
    assert session.bound(tree) == {"a", "d", "e", "f", "h"}


def test_outputs_agree_but_for_spaces_and_last_digits():
    assert runner.numbers_agree("[1.00001,  2.]", "[1.00002 , 2.]") and not runner.numbers_agree("[1.001, 2.]", "[1., 2.]")
    assert not runner.numbers_agree("(2, 3)", "(2, 4)")
    assert runner.numbers_agree("(np.float64(0.5), <class 'a.B'>)", "(0.5, a.B)\n[12:00:01] /src/base.cc:48: no GPUs found.")


def test_exceptions_do_not_count_or_count_as_failed():
    rows = {f"a::{name}": {"outcome": outcome, "why": "E: e"} for name, outcome in (("1", "ran"), ("2", "failed"), ("3", "failed"), ("4", "ran"))}
    counts, reasons, lines = runner.judge(rows, Exceptions({"a::2": "It needs a GPU."}, {"a::4": "It differs."}))
    assert counts == {"ran": 2, "failed": 1, "left out": 1} and reasons == {"It needs a GPU.": 1}
    assert lines == ["  a::3: E: e", "  a::4: runs, though exceptions.txt says: It differs."]


def test_a_book_runs(tmp_path):
    for module in ("matplotlib", "matplotlib_inline", "IPython"):
        pytest.importorskip(module)
    repository = tmp_path / "book"
    for path, text in (("d2l/__init__.py", ""), ("d2l/mxnet.py", "class Trainer:\n    def prepare_data(self, data):\n        pass\n"),
                       ("chapter_a/b.md", "```{.python .input}\n%%tab mxnet\nfrom d2l import mxnet as d2l\n1\n```\n"
                                          "```{.python .input}\n%%tab mxnet\n1 / 0\n```\n")):
        (repository / path).parent.mkdir(parents=True, exist_ok=True)
        (repository / path).write_text(text)
    git = ["git", "-C", str(repository), "-c", "user.name=n", "-c", "user.email=e"]
    for command in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "book"]):
        subprocess.run([*git, *command], check=True)
    found = subprocess.run([sys.executable, "-m", "tests.d2l", "--git", str(repository / ".git"), "--out", str(tmp_path / "out")],
                           cwd=runner.ROOT, capture_output=True, text=True)
    assert found.returncode == 1, found.stderr
    assert "chapter_a/b: 1 ran, 1 failed, 0 left out\n" in found.stdout and "ZeroDivisionError: division by zero" in found.stdout
    assert "1 of 2 cells run (50.0%); 0 are left out." in found.stdout
